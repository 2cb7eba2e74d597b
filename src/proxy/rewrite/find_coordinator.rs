//! FindCoordinator (API 10), versions 0 to 6: one address up to version 3, one for each key from version 4 (KIP-699).
//!
//! A key without a coordinator stays as it is: node -1, an empty host and the upstream's error.

use bytes::Bytes;

use super::bytes_cursor::{Cursor, Lengths};
use super::splice::Splice;
use super::{Addresses, RewriteError};

const FLEXIBLE_SINCE: i16 = 3;
const BATCHED_SINCE: i16 = 4;

pub(super) fn rewrite(version: i16, body: Bytes, addresses: &dyn Addresses) -> Result<Bytes, RewriteError> {
    let mut cursor = Cursor::new(&body, Lengths::flexible_since(FLEXIBLE_SINCE, version));
    let mut splice = Splice::new(&body, addresses);
    if version >= 1 {
        cursor.skip(4)?; // ThrottleTimeMs
    }
    if version >= BATCHED_SINCE {
        for _ in 0..cursor.array_len()? {
            cursor.string()?; // Key
            splice.address(&mut cursor)?;
            cursor.skip(2)?; // ErrorCode
            cursor.string()?; // ErrorMessage
            cursor.skip_tags()?;
        }
    } else {
        cursor.skip(2)?; // ErrorCode
        if version >= 1 {
            cursor.string()?; // ErrorMessage
        }
        splice.address(&mut cursor)?;
    }
    splice.finish(&body)
}
