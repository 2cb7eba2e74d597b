//! How a connection ended, for the metric and for the log.

use std::borrow::Cow;
use std::io;

use crate::telemetry::close_reason::CloseReason;
use crate::wire::codec::WireError;

/// Why a connection ends, in one label and in words.
#[derive(Debug)]
pub(super) struct End {
    pub(super) reason: CloseReason,
    pub(super) detail: Cow<'static, str>,
}

impl End {
    pub(super) fn new(reason: CloseReason, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            reason,
            detail: detail.into(),
        }
    }

    /// The client closed its side between two frames: it may still wait for answers.
    pub(super) const fn client_closed() -> Self {
        Self {
            reason: CloseReason::ClientClosed,
            detail: Cow::Borrowed("the client closed its side"),
        }
    }

    pub(super) fn client_closed_within_a_frame() -> Self {
        Self::new(
            CloseReason::ClientClosed,
            "the client closed its side in the middle of a request",
        )
    }

    pub(super) fn client_failed(error: &io::Error) -> Self {
        Self::new(CloseReason::ClientFailed, error.to_string())
    }

    pub(super) fn upstream_closed(detail: &'static str) -> Self {
        Self::new(CloseReason::UpstreamClosed, detail)
    }

    pub(super) fn upstream_failed(error: &io::Error) -> Self {
        Self::new(CloseReason::UpstreamFailed, error.to_string())
    }

    pub(super) fn upstream_malformed(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(CloseReason::UpstreamMalformed, detail)
    }

    /// The client sent what cannot be read or is not taken.
    pub(super) fn client_misbehaved(error: &WireError) -> Self {
        let reason = match error {
            WireError::TooLong { .. } => CloseReason::FrameTooLong,
            WireError::UnknownApi(_) | WireError::UnsupportedVersion { .. } => CloseReason::UnsupportedApi,
            WireError::Malformed(_) => CloseReason::Malformed,
        };
        let detail = match error {
            WireError::TooLong { .. } => format!("{error} (limits.frame_max)"),
            _ => error.to_string(),
        };
        Self::new(reason, detail)
    }

    /// Whether the client ended the connection in good order, so that it may be waiting for its last answers.
    pub(super) const fn leaves_client_waiting(&self) -> bool {
        matches!(self.reason, CloseReason::ClientClosed | CloseReason::Drained)
    }
}
