//! Fetch (API 1), from version 16: the tagged field `NodeEndpoints` (KIP-951).
//!
//! `CurrentLeader` stays, in the answer as in Produce's: it is only a node id, and clients take it without an endpoint.

use super::node_endpoints::NODE_ENDPOINT_TAG;
use super::walker::{Field, Schema};

/// The first version with endpoints.
const FIRST_VERSION: i16 = 16;

pub(super) fn schema(version: i16) -> Option<&'static Schema> {
    (version >= FIRST_VERSION).then_some(&SCHEMA)
}

static SCHEMA: Schema = Schema {
    fields: &[
        Field::Fixed(4 + 2 + 4), // ThrottleTimeMs, ErrorCode, SessionId
        Field::Array(&[Field::Fixed(16), Field::Array(PARTITION)]), // Responses: TopicId, Partitions
    ],
    addresses_tag: Some(NODE_ENDPOINT_TAG),
};

const PARTITION: &[Field] = &[
    Field::Fixed(4),                      // PartitionIndex
    Field::Fixed(2),                      // ErrorCode
    Field::Fixed(8),                      // HighWatermark
    Field::Fixed(8 + 8),                  // LastStableOffset, LogStartOffset
    Field::Array(&[Field::Fixed(8 + 8)]), // AbortedTransactions: ProducerId, FirstOffset
    Field::Fixed(4),                      // PreferredReadReplica
    Field::Blob,                          // Records
];
