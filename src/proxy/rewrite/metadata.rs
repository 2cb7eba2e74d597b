//! Metadata (API 3), versions 0 to 13: `Brokers[].{Host, Port}`.

use bytes::Bytes;

use super::splice::Splice;
use super::{Addresses, RewriteError};
use crate::wire::reader::Reader;

const FLEXIBLE_SINCE: i16 = 9;

/// The brokers come first, and nothing behind them names a host: the topics, most of the answer, are copied unread.
pub(super) fn rewrite(version: i16, body: Bytes, addresses: &dyn Addresses) -> Result<Bytes, RewriteError> {
    let flexible = version >= FLEXIBLE_SINCE;
    let mut reader = Reader::new(&body);
    let mut splice = Splice::new(&body, addresses);
    if version >= 3 {
        reader.skip(4)?; // ThrottleTimeMs
    }
    for _ in 0..reader.array_len(flexible)?.unwrap_or(0) {
        splice.address(&mut reader, flexible)?;
        if version >= 1 {
            reader.nullable_string(flexible)?; // Rack
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
    }
    splice.finish(&body)
}
