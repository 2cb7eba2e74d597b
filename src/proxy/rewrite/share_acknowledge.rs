//! ShareAcknowledge (API 79), versions 1 and 2: `NodeEndpoints`, an ordinary array here.

use super::node_endpoints::NODE_ENDPOINT;
use super::walker::{Field, Schema};

/// Version 0 was early access, and no broker offers it.
const FIRST_VERSION: i16 = 1;
/// The first version with AcquisitionLockTimeoutMs.
const LOCK_TIMEOUT_SINCE: i16 = 2;

pub(super) fn schema(version: i16) -> Option<&'static Schema> {
    match version {
        ..FIRST_VERSION => None,
        FIRST_VERSION..LOCK_TIMEOUT_SINCE => Some(&WITHOUT_LOCK_TIMEOUT),
        LOCK_TIMEOUT_SINCE.. => Some(&WITH_LOCK_TIMEOUT),
    }
}

static WITHOUT_LOCK_TIMEOUT: Schema = Schema {
    fields: &[
        Field::Fixed(4 + 2), // ThrottleTimeMs, ErrorCode
        Field::Blob,         // ErrorMessage
        Field::Array(TOPIC), // Responses
        Field::Addresses(NODE_ENDPOINT),
    ],
    addresses_tag: None,
};

static WITH_LOCK_TIMEOUT: Schema = Schema {
    fields: &[
        Field::Fixed(4 + 2), // ThrottleTimeMs, ErrorCode
        Field::Blob,         // ErrorMessage
        Field::Fixed(4),     // AcquisitionLockTimeoutMs
        Field::Array(TOPIC), // Responses
        Field::Addresses(NODE_ENDPOINT),
    ],
    addresses_tag: None,
};

const TOPIC: &[Field] = &[
    Field::Fixed(16), // TopicId
    Field::Array(&[
        Field::Fixed(4 + 2),                   // PartitionIndex, ErrorCode
        Field::Blob,                           // ErrorMessage
        Field::Struct(&[Field::Fixed(4 + 4)]), // CurrentLeader: LeaderId, LeaderEpoch
    ]), // Partitions
];
