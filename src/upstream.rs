//! Our own client to the brokers: connections with our own credentials, the picture of the cluster, settings, imports.

pub mod cluster;

/// Why the upstream did not answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum UpstreamError {
    #[error("cannot reach {address}: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("{address} closed the connection")]
    Closed { address: String },
    #[error("{address} did not answer within {timeout_ms} ms")]
    Timeout { address: String, timeout_ms: u64 },
    #[error("{address} refused our credentials: {reason}")]
    Authentication { address: String, reason: String },
    #[error("{address} answered {api} with {error:?}{hint}")]
    Refused {
        address: String,
        api: &'static str,
        error: crate::wire::error_code::ErrorCode,
        hint: String,
    },
    #[error("{address} sent what cannot be read: {reason}")]
    Malformed { address: String, reason: String },
}
