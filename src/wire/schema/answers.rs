//! Upstream answers that are merged with ours, or that answer requests of our own.

use super::*;

pub static LIST_OFFSETS_RESPONSE: Schema = Schema {
    api_key: 2,
    name: "ListOffsets response",
    min: 1,
    max: 11,
    flexible_since: 6,
    fields: &[
        int32("throttle_time_ms").since(2),
        structs(
            "topics",
            &[
                string("name"),
                structs(
                    "partitions",
                    &[
                        int32("partition_index"),
                        int16("error_code"),
                        int64("timestamp"),
                        int64("offset"),
                        int32("leader_epoch").since(4),
                    ],
                ),
            ],
        ),
    ],
};

pub static OFFSET_COMMIT_RESPONSE: Schema = Schema {
    api_key: 8,
    name: "OffsetCommit response",
    min: 2,
    max: 10,
    flexible_since: 8,
    fields: &[
        int32("throttle_time_ms").since(3),
        structs(
            "topics",
            &[
                string("name").until(9),
                uuid("topic_id").since(10),
                structs("partitions", &[int32("partition_index"), int16("error_code")]),
            ],
        ),
    ],
};

pub static OFFSET_FETCH_RESPONSE: Schema = Schema {
    api_key: 9,
    name: "OffsetFetch response",
    min: 1,
    max: 10,
    flexible_since: 6,
    fields: &[
        int32("throttle_time_ms").since(3),
        structs(
            "topics",
            &[
                string("name"),
                structs(
                    "partitions",
                    &[
                        int32("partition_index"),
                        int64("committed_offset"),
                        int32("committed_leader_epoch").since(5),
                        string("metadata").nullable(),
                        int16("error_code"),
                    ],
                ),
            ],
        )
        .until(7),
        int16("error_code").since(2).until(7),
        structs(
            "groups",
            &[
                string("group_id"),
                structs(
                    "topics",
                    &[
                        string("name").until(9),
                        uuid("topic_id").since(10),
                        structs(
                            "partitions",
                            &[
                                int32("partition_index"),
                                int64("committed_offset"),
                                int32("committed_leader_epoch"),
                                string("metadata").nullable(),
                                int16("error_code"),
                            ],
                        ),
                    ],
                ),
                int16("error_code"),
            ],
        )
        .since(8),
    ],
};

pub static DESCRIBE_GROUPS_RESPONSE: Schema = Schema {
    api_key: 15,
    name: "DescribeGroups response",
    min: 0,
    max: 6,
    flexible_since: 5,
    fields: &[
        int32("throttle_time_ms").since(1),
        structs(
            "groups",
            &[
                int16("error_code"),
                string("error_message").since(6).nullable(),
                string("group_id"),
                string("group_state"),
                string("protocol_type"),
                string("protocol_data"),
                structs(
                    "members",
                    &[
                        string("member_id"),
                        string("group_instance_id").since(4).nullable(),
                        string("client_id"),
                        string("client_host"),
                        bytes("member_metadata"),
                        bytes("member_assignment"),
                    ],
                ),
                int32("authorized_operations").since(3),
            ],
        ),
    ],
};

pub static LIST_GROUPS_RESPONSE: Schema = Schema {
    api_key: 16,
    name: "ListGroups response",
    min: 0,
    max: 5,
    flexible_since: 3,
    fields: &[
        int32("throttle_time_ms").since(1),
        int16("error_code"),
        structs(
            "groups",
            &[
                string("group_id"),
                string("protocol_type"),
                string("group_state").since(4),
                string("group_type").since(5),
            ],
        ),
    ],
};

pub static SASL_HANDSHAKE_RESPONSE: Schema = Schema {
    api_key: 17,
    name: "SaslHandshake response",
    min: 0,
    max: 1,
    flexible_since: NEVER,
    fields: &[int16("error_code"), array("mechanisms", &Kind::String)],
};

pub static API_VERSIONS_RESPONSE: Schema = Schema {
    api_key: 18,
    name: "ApiVersions response",
    min: 0,
    max: 5,
    flexible_since: 3,
    fields: &[
        int16("error_code"),
        structs(
            "api_keys",
            &[int16("api_key"), int16("min_version"), int16("max_version")],
        ),
        int32("throttle_time_ms").since(1),
        structs(
            "supported_features",
            &[string("name"), int16("min_version"), int16("max_version")],
        )
        .since(3)
        .tag(0),
        int64("finalized_features_epoch").since(3).tag(1),
        structs(
            "finalized_features",
            &[string("name"), int16("max_version_level"), int16("min_version_level")],
        )
        .since(3)
        .tag(2),
        boolean("zk_migration_ready").since(3).tag(3),
    ],
};

pub static LIST_CONFIG_RESOURCES_RESPONSE: Schema = Schema {
    api_key: 74,
    name: "ListConfigResources response",
    min: 0,
    max: 1,
    flexible_since: 0,
    fields: &[
        int32("throttle_time_ms"),
        int16("error_code"),
        structs(
            "config_resources",
            &[string("resource_name"), int8("resource_type").since(1)],
        ),
    ],
};

pub static DESCRIBE_CONFIGS_RESPONSE: Schema = Schema {
    api_key: 32,
    name: "DescribeConfigs response",
    min: 1,
    max: 4,
    flexible_since: 4,
    fields: &[
        int32("throttle_time_ms"),
        structs(
            "results",
            &[
                int16("error_code"),
                string("error_message").nullable(),
                int8("resource_type"),
                string("resource_name"),
                structs(
                    "configs",
                    &[
                        string("name"),
                        string("value").nullable(),
                        boolean("read_only"),
                        int8("config_source"),
                        boolean("is_sensitive"),
                        structs(
                            "synonyms",
                            &[string("name"), string("value").nullable(), int8("source")],
                        ),
                        int8("config_type").since(3),
                        string("documentation").since(3).nullable(),
                    ],
                ),
            ],
        ),
    ],
};

/// One resource of an answer to AlterConfigs or IncrementalAlterConfigs.
const ALTERED: &[Field] = &[
    int16("error_code"),
    string("error_message").nullable(),
    int8("resource_type"),
    string("resource_name"),
];

pub static ALTER_CONFIGS_RESPONSE: Schema = Schema {
    api_key: 33,
    name: "AlterConfigs response",
    min: 0,
    max: 2,
    flexible_since: 2,
    fields: &[int32("throttle_time_ms"), structs("responses", ALTERED)],
};

pub static INCREMENTAL_ALTER_CONFIGS_RESPONSE: Schema = Schema {
    api_key: 44,
    name: "IncrementalAlterConfigs response",
    min: 0,
    max: 1,
    flexible_since: 1,
    fields: &[int32("throttle_time_ms"), structs("responses", ALTERED)],
};

pub static SASL_AUTHENTICATE_RESPONSE: Schema = Schema {
    api_key: 36,
    name: "SaslAuthenticate response",
    min: 0,
    max: 2,
    flexible_since: 2,
    fields: &[
        int16("error_code"),
        string("error_message").nullable(),
        bytes("auth_bytes"),
        int64("session_lifetime_ms").since(1),
    ],
};

pub static DELETE_GROUPS_RESPONSE: Schema = Schema {
    api_key: 42,
    name: "DeleteGroups response",
    min: 0,
    max: 3,
    flexible_since: 2,
    fields: &[
        int32("throttle_time_ms"),
        structs(
            "results",
            &[
                string("group_id"),
                int16("error_code"),
                string("error_message").since(3).nullable(),
            ],
        ),
    ],
};

pub static CONSUMER_GROUP_HEARTBEAT_RESPONSE: Schema = Schema {
    api_key: 68,
    name: "ConsumerGroupHeartbeat response",
    min: 0,
    max: 1,
    flexible_since: 0,
    fields: &[
        int32("throttle_time_ms"),
        int16("error_code"),
        string("error_message").nullable(),
        string("member_id").nullable(),
        int32("member_epoch"),
        int32("heartbeat_interval_ms"),
        structure(
            "assignment",
            &[
                structs(
                    "topic_partitions",
                    &[uuid("topic_id"), array("partitions", &Kind::Int32)],
                ),
                HEARTBEAT_ASSIGNMENT_ERROR,
                HEARTBEAT_ASSIGNMENT_METADATA_VERSION,
                HEARTBEAT_ASSIGNMENT_METADATA,
            ],
        )
        .nullable(),
        HEARTBEAT_SHOULD_COMPUTE_ASSIGNMENT,
        HEARTBEAT_GROUPS_TO_COMPUTE,
    ],
};

pub static CONSUMER_GROUP_DESCRIBE_RESPONSE: Schema = Schema {
    api_key: 69,
    name: "ConsumerGroupDescribe response",
    min: 0,
    max: 1,
    flexible_since: 0,
    fields: &[
        int32("throttle_time_ms"),
        structs(
            "groups",
            &[
                int16("error_code"),
                string("error_message").nullable(),
                string("group_id"),
                string("group_state"),
                int32("group_epoch"),
                int32("assignment_epoch"),
                string("assignor_name"),
                structs(
                    "members",
                    &[
                        string("member_id"),
                        string("instance_id").nullable(),
                        string("rack_id").nullable(),
                        int32("member_epoch"),
                        string("client_id"),
                        string("client_host"),
                        array("subscribed_topic_names", &Kind::String),
                        string("subscribed_topic_regex").nullable(),
                        structure("assignment", DESCRIBED_ASSIGNMENT),
                        structure("target_assignment", DESCRIBED_ASSIGNMENT),
                        int8("member_type").since(1),
                    ],
                ),
                int32("authorized_operations"),
            ],
        ),
    ],
};

/// What a described member of a consumer group has, or is to have.
static DESCRIBED_ASSIGNMENT: &[Field] = &[structs(
    "topic_partitions",
    &[
        uuid("topic_id"),
        string("topic_name"),
        array("partitions", &Kind::Int32),
    ],
)];
