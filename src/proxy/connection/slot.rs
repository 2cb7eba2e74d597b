//! The queue of answers that a client waits for, in the order of its requests.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::proxy::sasl::Sent;
use crate::proxy::stream::ReadSide;
use crate::upstream::UpstreamError;

/// What comes next on the way to the client.
#[derive(Debug)]
pub(super) enum Slot {
    /// An answer of our own.
    Local(Box<Local>),
    /// The upstream's next frame, for the client.
    Forwarded(Forwarded),
    /// The upstream's next frame, a bare SASL token for the client.
    Token,
    /// The upstream's next frame, for us: the answer to a request of ours on the client's connection.
    Injected(Injected),
    /// From here on the upstream's frames come from this connection.
    Upstream(ReadSide),
}

/// A whole frame that was made here.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) api_key: i16,
    pub(super) frame: BytesMut,
    /// When the request was read.
    pub(super) received: Instant,
    /// How much of the time since was spent waiting for the upstream.
    pub(super) upstream: Duration,
    /// Its share of what a connection may hold for a client that does not read.
    pub(super) _budget: OwnedSemaphorePermit,
}

/// A request that went upstream.
#[derive(Debug)]
pub(super) struct Forwarded {
    pub(super) api_key: i16,
    pub(super) api_version: i16,
    pub(super) correlation_id: i32,
    /// When the request was read.
    pub(super) received: Instant,
    /// For SASL frames: what was asked, so that the answer can be understood.
    pub(super) sasl: Option<Box<Sent>>,
}

/// A request of ours.
#[derive(Debug)]
pub(super) struct Injected {
    pub(super) api_key: i16,
    pub(super) api_version: i16,
    pub(super) correlation_id: i32,
    pub(super) reply: oneshot::Sender<Result<Bytes, UpstreamError>>,
}
