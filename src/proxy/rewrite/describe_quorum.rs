//! DescribeQuorum (API 55), from version 2: `Nodes[].Listeners`, the controllers' own addresses, are left empty.
//!
//! They are not mapped, because a controller has no listener here: on a combined node the node's listener leads to
//! the broker, which refuses the Raft APIs. No client connects by these addresses; the admin tools print them
//! (`kafka-metadata-quorum describe`) and take a node without any. Node ids and directory ids stay.

use bytes::{BufMut, Bytes};

use super::splice::{EMPTY_ARRAY, Splice};
use super::walker::{Event, Walker};
use super::{Addresses, RewriteError};
use crate::wire::reader::{ReadError, Reader};
use crate::wire::schema::DESCRIBE_QUORUM_RESPONSE;

/// Earlier answers have no addresses.
pub(super) const FIRST_VERSION: i16 = 2;

pub(super) fn rewrite(version: i16, body: Bytes, addresses: &dyn Addresses) -> Result<Bytes, RewriteError> {
    let mut splice = Splice::new(&body, addresses);
    let mut walker = Walker::new(&DESCRIBE_QUORUM_RESPONSE, version, "nodes", body.len());
    let mut at = 0;
    let Some(Event::Array) = walker.advance(&body, &mut at)? else {
        return Err(ReadError::Truncated.into());
    };
    let mut reader = Reader::new(&body);
    reader.skip(at)?;
    for _ in 0..reader.array_len(true)?.unwrap_or(0) {
        reader.skip(4)?; // NodeId
        let start = reader.position();
        let listeners = reader.array_len(true)?.unwrap_or(0);
        for _ in 0..listeners {
            reader.string(true)?; // Name
            reader.string(true)?; // Host
            reader.skip(2)?; // Port
            reader.skip_tagged_fields()?;
        }
        if listeners > 0 {
            splice.replace(start..reader.position()).put_u8(EMPTY_ARRAY);
        }
        reader.skip_tagged_fields()?;
    }
    splice.finish(&body)
}
