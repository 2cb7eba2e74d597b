//! Produce (API 0), from version 10: the tagged field `NodeEndpoints` (KIP-951).

use super::node_endpoints::NODE_ENDPOINT_TAG;
use super::walker::{Field, Schema};

/// The first version with endpoints.
const FIRST_VERSION: i16 = 10;
/// The first version that names topics by id.
const TOPIC_ID_SINCE: i16 = 13;

pub(super) fn schema(version: i16) -> Option<&'static Schema> {
    match version {
        ..FIRST_VERSION => None,
        FIRST_VERSION..TOPIC_ID_SINCE => Some(&BY_NAME),
        TOPIC_ID_SINCE.. => Some(&BY_TOPIC_ID),
    }
}

static BY_NAME: Schema = Schema {
    fields: &[
        Field::Array(&[Field::Blob, Field::Array(PARTITION)]), // Responses: Name, PartitionResponses
        Field::Fixed(4),                                       // ThrottleTimeMs
    ],
    addresses_tag: Some(NODE_ENDPOINT_TAG),
};

static BY_TOPIC_ID: Schema = Schema {
    fields: &[
        Field::Array(&[Field::Fixed(16), Field::Array(PARTITION)]), // Responses: TopicId, PartitionResponses
        Field::Fixed(4),                                            // ThrottleTimeMs
    ],
    addresses_tag: Some(NODE_ENDPOINT_TAG),
};

const PARTITION: &[Field] = &[
    Field::Fixed(4 + 2),     // Index, ErrorCode
    Field::Fixed(8 + 8 + 8), // BaseOffset, LogAppendTimeMs, LogStartOffset
    Field::Array(&[
        // RecordErrors
        Field::Fixed(4), // BatchIndex
        Field::Blob,     // BatchIndexErrorMessage
    ]),
    Field::Blob, // ErrorMessage
];
