//! Client-side assignors: the messages that no broker has, and the fields that only Convoke's heartbeat has.

use super::*;
use crate::wire::assignment::heartbeat::{
    ASSIGNMENT_ERROR, ASSIGNMENT_METADATA, ASSIGNMENT_METADATA_VERSION, CLIENT_ASSIGNORS, GROUPS_TO_COMPUTE,
    SHOULD_COMPUTE_ASSIGNMENT,
};

pub static CONSUMER_GROUP_PREPARE_ASSIGNMENT_REQUEST: Schema = Schema {
    api_key: 20848,
    name: "ConsumerGroupPrepareAssignment request",
    min: 0,
    max: 0,
    flexible_since: 0,
    fields: &[string("group_id"), string("member_id"), int32("member_epoch")],
};

pub static CONSUMER_GROUP_PREPARE_ASSIGNMENT_RESPONSE: Schema = Schema {
    api_key: 20848,
    name: "ConsumerGroupPrepareAssignment response",
    min: 0,
    max: 0,
    flexible_since: 0,
    fields: &[
        int32("throttle_time_ms"),
        int16("error_code"),
        string("error_message").nullable(),
        int32("group_epoch"),
        string("assignor_name"),
        structs(
            "members",
            &[
                string("member_id"),
                int32("member_epoch"),
                string("instance_id").nullable(),
                string("rack_id").nullable(),
                array("subscribed_topic_ids", &Kind::Uuid),
                structure(
                    "assignor",
                    &[int8("reason"), int16("metadata_version"), bytes("metadata_bytes")],
                ),
                structs("topic_partitions", TOPIC_PARTITIONS),
            ],
        ),
        structs(
            "topics",
            &[uuid("topic_id"), string("topic_name"), int32("num_partitions")],
        ),
    ],
};

pub static CONSUMER_GROUP_INSTALL_ASSIGNMENT_REQUEST: Schema = Schema {
    api_key: 20849,
    name: "ConsumerGroupInstallAssignment request",
    min: 0,
    max: 0,
    flexible_since: 0,
    fields: &[
        string("group_id"),
        string("member_id"),
        int32("member_epoch"),
        int32("group_epoch"),
        int8("error"),
        structs(
            "members",
            &[
                string("member_id"),
                structs("partitions", TOPIC_PARTITIONS),
                int16("metadata_version"),
                bytes("metadata_bytes"),
            ],
        ),
    ],
};

pub static CONSUMER_GROUP_INSTALL_ASSIGNMENT_RESPONSE: Schema = Schema {
    api_key: 20849,
    name: "ConsumerGroupInstallAssignment response",
    min: 0,
    max: 0,
    flexible_since: 0,
    fields: &[
        int32("throttle_time_ms"),
        int16("error_code"),
        string("error_message").nullable(),
    ],
};

const TOPIC_PARTITIONS: &[Field] = &[uuid("topic_id"), array("partitions", &Kind::Int32)];

pub(super) const HEARTBEAT_CLIENT_ASSIGNORS: Field = structs(
    "client_assignors",
    &[
        string("name"),
        int16("minimum_version"),
        int16("maximum_version"),
        int8("reason"),
        int16("metadata_version"),
        bytes("metadata_bytes"),
    ],
)
.since(1)
.tag(CLIENT_ASSIGNORS);

pub(super) const HEARTBEAT_SHOULD_COMPUTE_ASSIGNMENT: Field = boolean("should_compute_assignment")
    .since(1)
    .tag(SHOULD_COMPUTE_ASSIGNMENT);

pub(super) const HEARTBEAT_GROUPS_TO_COMPUTE: Field = array("groups_to_compute", &Kind::String)
    .since(1)
    .tag(GROUPS_TO_COMPUTE);

pub(super) const HEARTBEAT_ASSIGNMENT_ERROR: Field = int8("error").since(1).tag(ASSIGNMENT_ERROR);

pub(super) const HEARTBEAT_ASSIGNMENT_METADATA_VERSION: Field =
    int16("metadata_version").since(1).tag(ASSIGNMENT_METADATA_VERSION);

pub(super) const HEARTBEAT_ASSIGNMENT_METADATA: Field = bytes("metadata_bytes").since(1).tag(ASSIGNMENT_METADATA);
