//! Frames and request heads, read by hand: the first bytes stand at fixed places in every version.
//!
//! A frame is a 4-byte big-endian length and that many bytes. A request starts with api key, version, correlation id and
//! client id; flexible headers add tagged fields. Responses start with the correlation id (and tagged fields when flexible).

/// What routing needs to know of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    pub api_key: i16,
    pub api_version: i16,
    pub correlation_id: i32,
    /// Lossy where it is not UTF-8.
    pub client_id: Option<String>,
    /// Where the body begins, counted from the first byte after the length.
    pub body_offset: usize,
}
