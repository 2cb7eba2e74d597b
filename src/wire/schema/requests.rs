//! Requests that end here.

use super::*;

pub static OFFSET_COMMIT_REQUEST: Schema = Schema {
    api_key: 8,
    name: "OffsetCommit request",
    min: 2,
    max: 10,
    flexible_since: 8,
    fields: &[
        string("group_id"),
        int32("generation_id_or_member_epoch"),
        string("member_id"),
        int64("retention_time_ms").until(4),
        string("group_instance_id").since(7).nullable(),
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
                        int32("committed_leader_epoch").since(6),
                        string("committed_metadata").nullable(),
                    ],
                ),
            ],
        ),
    ],
};

pub static OFFSET_FETCH_REQUEST: Schema = Schema {
    api_key: 9,
    name: "OffsetFetch request",
    min: 1,
    max: 10,
    flexible_since: 6,
    fields: &[
        string("group_id").until(7),
        structs("topics", &[string("name"), array("partition_indexes", &Kind::Int32)])
            .until(7)
            .nullable_since(2),
        structs(
            "groups",
            &[
                string("group_id"),
                string("member_id").since(9).nullable(),
                int32("member_epoch").since(9),
                structs(
                    "topics",
                    &[
                        string("name").until(9),
                        uuid("topic_id").since(10),
                        array("partition_indexes", &Kind::Int32),
                    ],
                )
                .nullable(),
            ],
        )
        .since(8),
        boolean("require_stable").since(7),
    ],
};

pub static FIND_COORDINATOR_REQUEST: Schema = Schema {
    api_key: 10,
    name: "FindCoordinator request",
    min: 0,
    max: 6,
    flexible_since: 3,
    fields: &[
        string("key").until(3),
        int8("key_type").since(1),
        array("coordinator_keys", &Kind::String).since(4),
    ],
};

pub static JOIN_GROUP_REQUEST: Schema = Schema {
    api_key: 11,
    name: "JoinGroup request",
    min: 0,
    max: 9,
    flexible_since: 6,
    fields: &[
        string("group_id"),
        int32("session_timeout_ms"),
        int32("rebalance_timeout_ms").since(1),
        string("member_id"),
        string("group_instance_id").since(5).nullable(),
        string("protocol_type"),
        structs("protocols", &[string("name"), bytes("metadata")]),
        string("reason").since(8).nullable(),
    ],
};

pub static HEARTBEAT_REQUEST: Schema = Schema {
    api_key: 12,
    name: "Heartbeat request",
    min: 0,
    max: 4,
    flexible_since: 4,
    fields: &[
        string("group_id"),
        int32("generation_id"),
        string("member_id"),
        string("group_instance_id").since(3).nullable(),
    ],
};

pub static LEAVE_GROUP_REQUEST: Schema = Schema {
    api_key: 13,
    name: "LeaveGroup request",
    min: 0,
    max: 5,
    flexible_since: 4,
    fields: &[
        string("group_id"),
        string("member_id").until(2),
        structs(
            "members",
            &[
                string("member_id"),
                string("group_instance_id").nullable(),
                string("reason").since(5).nullable(),
            ],
        )
        .since(3),
    ],
};

pub static SYNC_GROUP_REQUEST: Schema = Schema {
    api_key: 14,
    name: "SyncGroup request",
    min: 0,
    max: 5,
    flexible_since: 4,
    fields: &[
        string("group_id"),
        int32("generation_id"),
        string("member_id"),
        string("group_instance_id").since(3).nullable(),
        string("protocol_type").since(5).nullable(),
        string("protocol_name").since(5).nullable(),
        structs("assignments", &[string("member_id"), bytes("assignment")]),
    ],
};

pub static DESCRIBE_GROUPS_REQUEST: Schema = Schema {
    api_key: 15,
    name: "DescribeGroups request",
    min: 0,
    max: 6,
    flexible_since: 5,
    fields: &[
        array("groups", &Kind::String),
        boolean("include_authorized_operations").since(3),
    ],
};

pub static LIST_GROUPS_REQUEST: Schema = Schema {
    api_key: 16,
    name: "ListGroups request",
    min: 0,
    max: 5,
    flexible_since: 3,
    fields: &[
        array("states_filter", &Kind::String).since(4),
        array("types_filter", &Kind::String).since(5),
    ],
};

pub static API_VERSIONS_REQUEST: Schema = Schema {
    api_key: 18,
    name: "ApiVersions request",
    min: 0,
    max: 5,
    flexible_since: 3,
    fields: &[
        string("client_software_name").since(3),
        string("client_software_version").since(3),
        string("cluster_id").since(5).nullable(),
        int32("node_id").since(5),
    ],
};

pub static DESCRIBE_CONFIGS_REQUEST: Schema = Schema {
    api_key: 32,
    name: "DescribeConfigs request",
    min: 1,
    max: 4,
    flexible_since: 4,
    fields: &[
        structs(
            "resources",
            &[
                int8("resource_type"),
                string("resource_name"),
                array("configuration_keys", &Kind::String).nullable(),
            ],
        ),
        boolean("include_synonyms"),
        boolean("include_documentation").since(3),
    ],
};

pub static ALTER_CONFIGS_REQUEST: Schema = Schema {
    api_key: 33,
    name: "AlterConfigs request",
    min: 0,
    max: 2,
    flexible_since: 2,
    fields: &[
        structs(
            "resources",
            &[
                int8("resource_type"),
                string("resource_name"),
                structs("configs", &[string("name"), string("value").nullable()]),
            ],
        ),
        boolean("validate_only"),
    ],
};

pub static DELETE_GROUPS_REQUEST: Schema = Schema {
    api_key: 42,
    name: "DeleteGroups request",
    min: 0,
    max: 3,
    flexible_since: 2,
    fields: &[array("groups_names", &Kind::String)],
};

pub static INCREMENTAL_ALTER_CONFIGS_REQUEST: Schema = Schema {
    api_key: 44,
    name: "IncrementalAlterConfigs request",
    min: 0,
    max: 1,
    flexible_since: 1,
    fields: &[
        structs(
            "resources",
            &[
                int8("resource_type"),
                string("resource_name"),
                structs(
                    "configs",
                    &[string("name"), int8("config_operation"), string("value").nullable()],
                ),
            ],
        ),
        boolean("validate_only"),
    ],
};

pub static OFFSET_DELETE_REQUEST: Schema = Schema {
    api_key: 47,
    name: "OffsetDelete request",
    min: 0,
    max: 0,
    flexible_since: NEVER,
    fields: &[
        string("group_id"),
        structs(
            "topics",
            &[string("name"), structs("partitions", &[int32("partition_index")])],
        ),
    ],
};

pub static CONSUMER_GROUP_HEARTBEAT_REQUEST: Schema = Schema {
    api_key: 68,
    name: "ConsumerGroupHeartbeat request",
    min: 0,
    max: 1,
    flexible_since: 0,
    fields: &[
        string("group_id"),
        string("member_id"),
        int32("member_epoch"),
        string("instance_id").nullable(),
        string("rack_id").nullable(),
        int32("rebalance_timeout_ms"),
        array("subscribed_topic_names", &Kind::String).nullable(),
        string("subscribed_topic_regex").since(1).nullable(),
        string("server_assignor").nullable(),
        structs(
            "topic_partitions",
            &[uuid("topic_id"), array("partitions", &Kind::Int32)],
        )
        .nullable(),
        HEARTBEAT_CLIENT_ASSIGNORS,
    ],
};

pub static CONSUMER_GROUP_DESCRIBE_REQUEST: Schema = Schema {
    api_key: 69,
    name: "ConsumerGroupDescribe request",
    min: 0,
    max: 1,
    flexible_since: 0,
    fields: &[
        array("group_ids", &Kind::String),
        boolean("include_authorized_operations"),
    ],
};
