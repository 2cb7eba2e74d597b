//! FindCoordinator (API 10), versions 0 to 6: one address up to version 3, one for each key from version 4 (KIP-699).
//!
//! A key without a coordinator stays as it is: node -1, an empty host and the upstream's error.

use bytes::Bytes;

use super::splice::Splice;
use super::{Addresses, RewriteError};
use crate::wire::reader::Reader;

const FLEXIBLE_SINCE: i16 = 3;
const BATCHED_SINCE: i16 = 4;

pub(super) fn rewrite(version: i16, body: Bytes, addresses: &dyn Addresses) -> Result<Bytes, RewriteError> {
    let flexible = version >= FLEXIBLE_SINCE;
    let mut reader = Reader::new(&body);
    let mut splice = Splice::new(&body, addresses);
    if version >= 1 {
        reader.skip(4)?; // ThrottleTimeMs
    }
    if version >= BATCHED_SINCE {
        for _ in 0..reader.array_len(flexible)?.unwrap_or(0) {
            reader.nullable_string(flexible)?; // Key
            splice.address(&mut reader, flexible)?;
            reader.skip(2)?; // ErrorCode
            reader.nullable_string(flexible)?; // ErrorMessage
            reader.skip_tagged_fields()?;
        }
    } else {
        reader.skip(2)?; // ErrorCode
        if version >= 1 {
            reader.nullable_string(flexible)?; // ErrorMessage
        }
        splice.address(&mut reader, flexible)?;
    }
    splice.finish(&body)
}
