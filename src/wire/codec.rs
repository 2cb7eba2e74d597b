//! The length guard and kafka-protocol behind one pair of functions: nothing is decoded that the guard has not passed.

/// What is wrong with bytes from a peer.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("frame of {len} bytes, at most {max} are taken")]
    TooLong { len: usize, max: usize },
    #[error("{0}")]
    Malformed(String),
    #[error("unknown api key {0}")]
    UnknownApi(i16),
    #[error("{api} has no version {version}")]
    UnsupportedVersion { api: &'static str, version: i16 },
}
