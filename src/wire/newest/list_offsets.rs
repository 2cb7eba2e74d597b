//! ListOffsets v11: the response is that of v10.

use bytes::Bytes;
use kafka_protocol::messages::ListOffsetsResponse;

use crate::wire::codec::{WireError, decode_known};

/// Decodes a v11 body.
///
/// # Errors
/// `Malformed`.
pub fn decode_response(body: Bytes) -> Result<ListOffsetsResponse, WireError> {
    decode_known(body, 10)
}
