//! Why a client connection ended: one name for the log, the metric label and the code.

/// Each way in which a client connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CloseReason {
    /// The client closed it, with nothing under way or not.
    ClientClosed,
    /// Reading from or writing to the client failed (a reset, a broken pipe).
    ClientFailed,
    /// The upstream node closed its side.
    UpstreamClosed,
    /// Reading from or writing to the upstream node failed.
    UpstreamFailed,
    /// The upstream node could not be reached when the connection first needed it.
    UpstreamUnreachable,
    /// The upstream node did not answer a request of ours, on the client's behalf, in time.
    UpstreamSilent,
    /// The upstream node sent bytes that cannot be read.
    UpstreamMalformed,
    /// The client sent nothing for `limits.idle_timeout`.
    IdleTimeout,
    /// The client did not take its answers for `limits.idle_timeout`.
    ClientStalled,
    /// A frame was longer than the limit.
    FrameTooLong,
    /// A request that ends here was longer than `limits.owned_request_max`.
    RequestTooLong,
    /// The client speaks TLS; the listener does not.
    TlsBytes,
    /// The client sent bytes that cannot be read.
    Malformed,
    /// The client used an api or version that it was not offered.
    UnsupportedApi,
    /// A request came before authentication, in the midst of it, or after its session ended.
    IllegalSaslState,
    /// The upstream node's api versions were not known in time, so there was nothing to offer.
    VersionsUnknown,
    /// Behind the upstream's address is another cluster now.
    OtherCluster,
    /// A handler had no answer that the client would understand.
    Refused,
    /// The process is stopping and nothing was under way any more.
    Drained,
    /// The process is stopping and `drain_timeout` passed first.
    DrainTimeout,
    /// The task of the connection panicked: a defect.
    Panicked,
}

impl CloseReason {
    /// Every reason, so that metrics can be made once at start.
    pub const ALL: [Self; 21] = [
        Self::ClientClosed,
        Self::ClientFailed,
        Self::UpstreamClosed,
        Self::UpstreamFailed,
        Self::UpstreamUnreachable,
        Self::UpstreamSilent,
        Self::UpstreamMalformed,
        Self::IdleTimeout,
        Self::ClientStalled,
        Self::FrameTooLong,
        Self::RequestTooLong,
        Self::TlsBytes,
        Self::Malformed,
        Self::UnsupportedApi,
        Self::IllegalSaslState,
        Self::VersionsUnknown,
        Self::OtherCluster,
        Self::Refused,
        Self::Drained,
        Self::DrainTimeout,
        Self::Panicked,
    ];

    /// Whether somebody has to mend something, at the client, at the upstream or here, and may not notice otherwise.
    #[must_use]
    pub const fn needs_attention(self) -> bool {
        match self {
            Self::UpstreamUnreachable
            | Self::UpstreamSilent
            | Self::UpstreamMalformed
            | Self::ClientStalled
            | Self::FrameTooLong
            | Self::RequestTooLong
            | Self::TlsBytes
            | Self::Malformed
            | Self::UnsupportedApi
            | Self::IllegalSaslState
            | Self::VersionsUnknown
            | Self::OtherCluster
            | Self::Refused => true,
            Self::ClientClosed
            | Self::ClientFailed
            | Self::UpstreamClosed
            | Self::UpstreamFailed
            | Self::IdleTimeout
            | Self::Drained
            | Self::DrainTimeout
            | Self::Panicked => false,
        }
    }

    /// The metric label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::ClientClosed => "client_closed",
            Self::ClientFailed => "client_failed",
            Self::UpstreamClosed => "upstream_closed",
            Self::UpstreamFailed => "upstream_failed",
            Self::UpstreamUnreachable => "upstream_unreachable",
            Self::UpstreamSilent => "upstream_silent",
            Self::UpstreamMalformed => "upstream_malformed",
            Self::IdleTimeout => "idle_timeout",
            Self::ClientStalled => "client_stalled",
            Self::FrameTooLong => "frame_too_long",
            Self::RequestTooLong => "request_too_long",
            Self::TlsBytes => "tls_bytes",
            Self::Malformed => "malformed",
            Self::UnsupportedApi => "unsupported_api",
            Self::IllegalSaslState => "illegal_sasl_state",
            Self::VersionsUnknown => "versions_unknown",
            Self::OtherCluster => "other_cluster",
            Self::Refused => "refused",
            Self::Drained => "drained",
            Self::DrainTimeout => "drain_timeout",
            Self::Panicked => "panicked",
        }
    }
}

impl std::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_listed_once_in_order() {
        for (index, reason) in CloseReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index, "{reason}");
        }
    }
}
