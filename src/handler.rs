//! The APIs that end here, one file for each: decode, ask the coordinator, encode.
//!
//! A group that is not coordinated here (listed under `groups.delegate`, of a type that never is, or in use at the upstream)
//! is passed on: a request about it alone goes upstream as it came, one about several groups is split and its answers merged.

use std::future::Future;

use bytes::{Bytes, BytesMut};

use crate::coordinator::request::Text;
use crate::upstream::UpstreamError;
use crate::wire::error_code::ErrorCode;

/// What becomes of a request.
#[derive(Debug)]
pub enum Answer {
    /// This body, without a head; the first error in it, for the metrics.
    Reply(BytesMut, ErrorCode),
    /// The client's own frame goes upstream, and what comes back goes to the client.
    Forward,
    /// The connection ends, as a broker ends it over a request that cannot be read.
    Close(&'static str),
}

/// Who asks.
#[derive(Debug, Clone)]
pub struct Caller {
    pub client_id: Text,
    /// As Kafka prints it: `/1.2.3.4`.
    pub client_host: Text,
    /// The upstream node that the connection stands for; `None` on a bootstrap connection.
    pub node_id: Option<i32>,
}

/// The client's own upstream connection, for requests of ours in its name.
pub trait ClientUpstream: Send {
    /// Sends a request in order with the client's own and resolves with the body after the response's head.
    ///
    /// # Errors
    /// The upstream did not answer.
    fn call(
        &mut self,
        api_key: i16,
        version: i16,
        body: Bytes,
    ) -> impl Future<Output = Result<Bytes, UpstreamError>> + Send;
}
