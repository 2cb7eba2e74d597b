//! ShareFetch (API 78), versions 1 and 2 (the same answer): `NodeEndpoints`, an ordinary array here.

use super::node_endpoints::NODE_ENDPOINT;
use super::walker::{Field, Schema};

/// Version 0 was early access, and no broker offers it.
const FIRST_VERSION: i16 = 1;

pub(super) fn schema(version: i16) -> Option<&'static Schema> {
    (version >= FIRST_VERSION).then_some(&SCHEMA)
}

static SCHEMA: Schema = Schema {
    fields: &[
        Field::Fixed(4 + 2),                                        // ThrottleTimeMs, ErrorCode
        Field::Blob,                                                // ErrorMessage
        Field::Fixed(4),                                            // AcquisitionLockTimeoutMs
        Field::Array(&[Field::Fixed(16), Field::Array(PARTITION)]), // Responses: TopicId, Partitions
        Field::Addresses(NODE_ENDPOINT),                            // NodeEndpoints
    ],
    addresses_tag: None,
};

const PARTITION: &[Field] = &[
    Field::Fixed(4),                          // PartitionIndex
    Field::Fixed(2),                          // ErrorCode
    Field::Blob,                              // ErrorMessage
    Field::Fixed(2),                          // AcknowledgeErrorCode
    Field::Blob,                              // AcknowledgeErrorMessage
    Field::Struct(&[Field::Fixed(4 + 4)]),    // CurrentLeader: LeaderId, LeaderEpoch
    Field::Blob,                              // Records
    Field::Array(&[Field::Fixed(8 + 8 + 2)]), // AcquiredRecords: FirstOffset, LastOffset, DeliveryCount
];
