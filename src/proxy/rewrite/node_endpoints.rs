//! The KIP-951 endpoints of Produce, Fetch, ShareFetch and ShareAcknowledge in an answer that is held whole.

use bytes::Bytes;

use super::bytes_cursor::{Cursor, Lengths, Malformed};
use super::splice::{Splice, put_unsigned_varint};
use super::walker::{Event, Field, Schema, Walker};
use super::{Addresses, RewriteError};

/// The tagged field of Produce and Fetch answers that holds the endpoints.
pub(super) const NODE_ENDPOINT_TAG: u32 = 0;

/// One endpoint.
pub(super) const NODE_ENDPOINT: &[Field] = &[
    Field::Fixed(4), // NodeId
    Field::Blob,     // Host
    Field::Fixed(4), // Port
    Field::Blob,     // Rack
];

pub(super) fn rewrite(schema: &'static Schema, body: Bytes, addresses: &dyn Addresses) -> Result<Bytes, RewriteError> {
    let mut splice = Splice::new(&body, addresses);
    let mut walker = Walker::new(schema, body.len());
    let mut at = 0;
    let mut size_at = 0;
    while let Some(event) = walker.advance(&body, &mut at)? {
        match event {
            Event::Tag { .. } => size_at = at,
            Event::TagContent => {
                let end = at + walker.skip_hint();
                let content = &body[at..end];
                let mut part = Splice::new(content, addresses);
                let read = endpoints(Cursor::new(content, Lengths::Compact), &mut part).map_err(|e| e.behind(at))?;
                if read < content.len() {
                    return Err(walker.malformed("bytes behind the node endpoints").into());
                }
                splice.unknown_of(&mut part);
                if part.changed() {
                    let content = part.into_part();
                    let out = splice.replace(size_at..end);
                    put_unsigned_varint(out, content.len());
                    out.extend_from_slice(&content);
                }
            }
            Event::Array => {
                let mut cursor = Cursor::new(&body, Lengths::Compact);
                cursor.skip(at)?;
                endpoints(cursor, &mut splice)?;
            }
        }
    }
    if !walker.is_done() {
        return Err(walker.malformed("the body ends early").into());
    }
    splice.finish(&body)
}

/// Replaces the addresses in an array of endpoints; where the array ends.
fn endpoints(mut cursor: Cursor<'_>, splice: &mut Splice<'_>) -> Result<usize, Malformed> {
    for _ in 0..cursor.array_len()? {
        splice.address(&mut cursor)?;
        cursor.string()?; // Rack
        cursor.skip_tags()?;
    }
    Ok(cursor.at())
}
