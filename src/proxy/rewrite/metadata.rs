//! Metadata (API 3), versions 0 to 13: `Brokers[].{Host, Port}`.

use bytes::Bytes;

use super::bytes_cursor::{Cursor, Lengths};
use super::splice::Splice;
use super::{Addresses, RewriteError};

const FLEXIBLE_SINCE: i16 = 9;

/// The brokers come first, and nothing behind them names a host: the topics, most of the answer, are copied unread.
pub(super) fn rewrite(version: i16, body: Bytes, addresses: &dyn Addresses) -> Result<Bytes, RewriteError> {
    let mut cursor = Cursor::new(&body, Lengths::flexible_since(FLEXIBLE_SINCE, version));
    let mut splice = Splice::new(&body, addresses);
    if version >= 3 {
        cursor.skip(4)?; // ThrottleTimeMs
    }
    for _ in 0..cursor.array_len()? {
        splice.address(&mut cursor)?;
        if version >= 1 {
            cursor.string()?; // Rack
        }
        cursor.skip_tags()?;
    }
    splice.finish(&body)
}
