//! DescribeQuorum (API 55), from version 2: `Nodes[].Listeners`, the controllers' own addresses, are left empty.
//!
//! They are not mapped, because a controller has no listener here: on a combined node the node's listener leads to the broker,
//! which refuses the Raft APIs. No client connects by these addresses; the admin tools print them
//! (`kafka-metadata-quorum describe`) and take a node without any. Node ids and directory ids stay.

use bytes::{BufMut, Bytes};

use super::bytes_cursor::{Cursor, EMPTY_ARRAY, Lengths};
use super::splice::Splice;
use super::walker::{Event, Field, Schema, Walker};
use super::{Addresses, RewriteError};

/// Earlier answers have no addresses.
pub(super) const FIRST_VERSION: i16 = 2;

static SCHEMA: Schema = Schema {
    fields: &[
        Field::Fixed(2),       // ErrorCode
        Field::Blob,           // ErrorMessage
        Field::Array(TOPIC),   // Topics
        Field::Addresses(&[]), // Nodes
    ],
    addresses_tag: None,
};

const TOPIC: &[Field] = &[
    Field::Blob,             // TopicName
    Field::Array(PARTITION), // Partitions
];

const PARTITION: &[Field] = &[
    Field::Fixed(4 + 2),     // PartitionIndex, ErrorCode
    Field::Blob,             // ErrorMessage
    Field::Fixed(4 + 4 + 8), // LeaderId, LeaderEpoch, HighWatermark
    Field::Array(REPLICA),   // CurrentVoters
    Field::Array(REPLICA),   // Observers
];

const REPLICA: &[Field] = &[
    Field::Fixed(4 + 16 + 8 + 8 + 8), // ReplicaId, ReplicaDirectoryId, LogEndOffset, LastFetchTimestamp, LastCaughtUpTimestamp
];

pub(super) fn rewrite(body: Bytes, addresses: &dyn Addresses) -> Result<Bytes, RewriteError> {
    let mut splice = Splice::new(&body, addresses);
    let mut walker = Walker::new(&SCHEMA, body.len());
    let mut at = 0;
    let Some(Event::Array) = walker.advance(&body, &mut at)? else {
        return Err(walker.malformed("the body ends early").into());
    };
    let mut cursor = Cursor::new(&body, Lengths::Compact);
    cursor.skip(at)?;
    for _ in 0..cursor.array_len()? {
        cursor.skip(4)?; // NodeId
        let start = cursor.at();
        let listeners = cursor.array_len()?;
        for _ in 0..listeners {
            cursor.string()?; // Name
            cursor.string()?; // Host
            cursor.skip(2)?; // Port
            cursor.skip_tags()?;
        }
        if listeners > 0 {
            splice.replace(start..cursor.at()).put_u8(EMPTY_ARRAY);
        }
        cursor.skip_tags()?;
    }
    splice.finish(&body)
}
