//! The KIP-951 endpoints of Produce, Fetch, ShareFetch and ShareAcknowledge: the addresses of nodes that the answer's
//! errors send a client to. A tagged field of the answer in Produce (API 0, from version 10) and Fetch (API 1, from
//! version 16), its last ordinary field in ShareFetch (API 78) and ShareAcknowledge (API 79, both from version 1).
//!
//! `CurrentLeader` of the partitions stays: it is only a node id, and clients follow it by the addresses that they
//! know.

use bytes::Bytes;

use super::splice::{EMPTY_ARRAY, Splice, put_unsigned_varint};
use super::walker::{Event, Walker};
use super::{Addresses, Malformed, RewriteError};
use crate::wire::api;
use crate::wire::reader::{ReadError, Reader};
use crate::wire::schema::{FETCH_RESPONSE, PRODUCE_RESPONSE, SHARE_ACKNOWLEDGE_RESPONSE, SHARE_FETCH_RESPONSE, Schema};

/// The field's name in all four.
pub(super) const FIELD: &str = "node_endpoints";

/// The schema of an answer that has endpoints in this version.
pub(super) fn schema(api_key: i16, version: i16) -> Option<&'static Schema> {
    let schema = match api_key {
        api::PRODUCE => &PRODUCE_RESPONSE,
        api::FETCH => &FETCH_RESPONSE,
        api::SHARE_FETCH => &SHARE_FETCH_RESPONSE,
        api::SHARE_ACKNOWLEDGE => &SHARE_ACKNOWLEDGE_RESPONSE,
        _ => return None,
    };
    let has_endpoints = schema
        .fields
        .iter()
        .any(|field| field.name == FIELD && field.is_in(version));
    has_endpoints.then_some(schema)
}

/// Rewrites an answer that is held whole.
pub(super) fn rewrite(
    schema: &'static Schema,
    version: i16,
    body: Bytes,
    addresses: &dyn Addresses,
) -> Result<Bytes, RewriteError> {
    let mut splice = Splice::new(&body, addresses);
    let mut walker = Walker::new(schema, version, FIELD, body.len());
    let mut at = 0;
    let mut size_at = 0;
    while let Some(event) = walker.advance(&body, &mut at)? {
        match event {
            Event::Tag { .. } => size_at = at,
            Event::TagContent => {
                let end = at + walker.skip_hint();
                let content = &body[at..end];
                let mut part = Splice::new(content, addresses);
                let mut reader = Reader::new(content);
                endpoints(&mut reader, &mut part)?;
                if reader.remaining() > 0 {
                    return Err(Malformed::TrailingBytes.into());
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
                let mut reader = Reader::new(&body);
                reader.skip(at)?;
                endpoints(&mut reader, &mut splice)?;
            }
        }
    }
    if !walker.is_done() {
        return Err(ReadError::Truncated.into());
    }
    splice.finish(&body)
}

/// Whether there are endpoints in an answer that is held whole.
pub(super) fn are_in(schema: &'static Schema, version: i16, body: &[u8]) -> Result<bool, Malformed> {
    let mut walker = Walker::new(schema, version, FIELD, body.len());
    let mut at = 0;
    while let Some(event) = walker.advance(body, &mut at)? {
        let here = match event {
            Event::Tag { .. } => false,
            Event::TagContent => true,
            Event::Array => body.get(at).is_some_and(|first| *first > EMPTY_ARRAY),
        };
        if here {
            return Ok(true);
        }
    }
    if !walker.is_done() {
        return Err(ReadError::Truncated.into());
    }
    Ok(false)
}

/// Replaces the addresses in an array of endpoints.
fn endpoints(reader: &mut Reader<'_>, splice: &mut Splice<'_>) -> Result<(), Malformed> {
    for _ in 0..reader.array_len(true)?.unwrap_or(0) {
        splice.address(reader, true)?;
        reader.nullable_string(true)?; // Rack
        reader.skip_tagged_fields()?;
    }
    Ok(())
}
