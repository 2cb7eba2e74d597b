//! Upstream answers whose addresses are rewritten.

use super::*;

pub static PRODUCE_RESPONSE: Schema = Schema {
    api_key: 0,
    name: "Produce response",
    min: 3,
    max: 13,
    flexible_since: 9,
    fields: &[
        structs(
            "responses",
            &[
                string("name").until(12),
                uuid("topic_id").since(13),
                structs(
                    "partition_responses",
                    &[
                        int32("index"),
                        int16("error_code"),
                        int64("base_offset"),
                        int64("log_append_time_ms"),
                        int64("log_start_offset").since(5),
                        structs(
                            "record_errors",
                            &[int32("batch_index"), string("batch_index_error_message").nullable()],
                        )
                        .since(8),
                        string("error_message").since(8).nullable(),
                        structure("current_leader", &[int32("leader_id"), int32("leader_epoch")])
                            .since(10)
                            .tag(0),
                    ],
                ),
            ],
        ),
        int32("throttle_time_ms"),
        structs(
            "node_endpoints",
            &[
                int32("node_id"),
                string("host"),
                int32("port"),
                string("rack").nullable(),
            ],
        )
        .since(10)
        .tag(0),
    ],
};

pub static FETCH_RESPONSE: Schema = Schema {
    api_key: 1,
    name: "Fetch response",
    min: 4,
    max: 18,
    flexible_since: 12,
    fields: &[
        int32("throttle_time_ms"),
        int16("error_code").since(7),
        int32("session_id").since(7),
        structs(
            "responses",
            &[
                string("topic").until(12),
                uuid("topic_id").since(13),
                structs(
                    "partitions",
                    &[
                        int32("partition_index"),
                        int16("error_code"),
                        int64("high_watermark"),
                        int64("last_stable_offset"),
                        int64("log_start_offset").since(5),
                        structs("aborted_transactions", &[int64("producer_id"), int64("first_offset")]).nullable(),
                        int32("preferred_read_replica").since(11),
                        records("records").nullable(),
                        structure("diverging_epoch", &[int32("epoch"), int64("end_offset")])
                            .since(12)
                            .tag(0),
                        structure("current_leader", &[int32("leader_id"), int32("leader_epoch")])
                            .since(12)
                            .tag(1),
                        structure("snapshot_id", &[int64("end_offset"), int32("epoch")])
                            .since(12)
                            .tag(2),
                    ],
                ),
            ],
        ),
        structs(
            "node_endpoints",
            &[
                int32("node_id"),
                string("host"),
                int32("port"),
                string("rack").nullable(),
            ],
        )
        .since(16)
        .tag(0),
    ],
};

pub static METADATA_RESPONSE: Schema = Schema {
    api_key: 3,
    name: "Metadata response",
    min: 0,
    max: 13,
    flexible_since: 9,
    fields: &[
        int32("throttle_time_ms").since(3),
        structs(
            "brokers",
            &[
                int32("node_id"),
                string("host"),
                int32("port"),
                string("rack").since(1).nullable(),
            ],
        ),
        string("cluster_id").since(2).nullable(),
        int32("controller_id").since(1),
        structs(
            "topics",
            &[
                int16("error_code"),
                string("name").nullable_since(12),
                uuid("topic_id").since(10),
                boolean("is_internal").since(1),
                structs(
                    "partitions",
                    &[
                        int16("error_code"),
                        int32("partition_index"),
                        int32("leader_id"),
                        int32("leader_epoch").since(7),
                        array("replica_nodes", &Kind::Int32),
                        array("isr_nodes", &Kind::Int32),
                        array("offline_replicas", &Kind::Int32).since(5),
                    ],
                ),
                int32("topic_authorized_operations").since(8),
            ],
        ),
        int32("cluster_authorized_operations").since(8).until(10),
        int16("error_code").since(13),
    ],
};

pub static FIND_COORDINATOR_RESPONSE: Schema = Schema {
    api_key: 10,
    name: "FindCoordinator response",
    min: 0,
    max: 6,
    flexible_since: 3,
    fields: &[
        int32("throttle_time_ms").since(1),
        int16("error_code").until(3),
        string("error_message").since(1).until(3).nullable(),
        int32("node_id").until(3),
        string("host").until(3),
        int32("port").until(3),
        structs(
            "coordinators",
            &[
                string("key"),
                int32("node_id"),
                string("host"),
                int32("port"),
                int16("error_code"),
                string("error_message").nullable(),
            ],
        )
        .since(4),
    ],
};

pub static DESCRIBE_QUORUM_RESPONSE: Schema = Schema {
    api_key: 55,
    name: "DescribeQuorum response",
    min: 0,
    max: 2,
    flexible_since: 0,
    fields: &[
        int16("error_code"),
        string("error_message").since(2).nullable(),
        structs(
            "topics",
            &[
                string("topic_name"),
                structs(
                    "partitions",
                    &[
                        int32("partition_index"),
                        int16("error_code"),
                        string("error_message").since(2).nullable(),
                        int32("leader_id"),
                        int32("leader_epoch"),
                        int64("high_watermark"),
                        structs(
                            "current_voters",
                            &[
                                int32("replica_id"),
                                uuid("replica_directory_id").since(2),
                                int64("log_end_offset"),
                                int64("last_fetch_timestamp").since(1),
                                int64("last_caught_up_timestamp").since(1),
                            ],
                        ),
                        structs(
                            "observers",
                            &[
                                int32("replica_id"),
                                uuid("replica_directory_id").since(2),
                                int64("log_end_offset"),
                                int64("last_fetch_timestamp").since(1),
                                int64("last_caught_up_timestamp").since(1),
                            ],
                        ),
                    ],
                ),
            ],
        ),
        structs(
            "nodes",
            &[
                int32("node_id"),
                structs("listeners", &[string("name"), string("host"), uint16("port")]),
            ],
        )
        .since(2),
    ],
};

pub static DESCRIBE_CLUSTER_RESPONSE: Schema = Schema {
    api_key: 60,
    name: "DescribeCluster response",
    min: 0,
    max: 2,
    flexible_since: 0,
    fields: &[
        int32("throttle_time_ms"),
        int16("error_code"),
        string("error_message").nullable(),
        int8("endpoint_type").since(1),
        string("cluster_id"),
        int32("controller_id"),
        structs(
            "brokers",
            &[
                int32("broker_id"),
                string("host"),
                int32("port"),
                string("rack").nullable(),
                boolean("is_fenced").since(2),
            ],
        ),
        int32("cluster_authorized_operations"),
    ],
};

pub static SHARE_FETCH_RESPONSE: Schema = Schema {
    api_key: 78,
    name: "ShareFetch response",
    min: 1,
    max: 2,
    flexible_since: 1,
    fields: &[
        int32("throttle_time_ms"),
        int16("error_code"),
        string("error_message").nullable(),
        int32("acquisition_lock_timeout_ms"),
        structs(
            "responses",
            &[
                uuid("topic_id"),
                structs(
                    "partitions",
                    &[
                        int32("partition_index"),
                        int16("error_code"),
                        string("error_message").nullable(),
                        int16("acknowledge_error_code"),
                        string("acknowledge_error_message").nullable(),
                        structure("current_leader", &[int32("leader_id"), int32("leader_epoch")]),
                        records("records"),
                        structs(
                            "acquired_records",
                            &[int64("first_offset"), int64("last_offset"), int16("delivery_count")],
                        ),
                    ],
                ),
            ],
        ),
        structs(
            "node_endpoints",
            &[
                int32("node_id"),
                string("host"),
                int32("port"),
                string("rack").nullable(),
            ],
        ),
    ],
};

pub static SHARE_ACKNOWLEDGE_RESPONSE: Schema = Schema {
    api_key: 79,
    name: "ShareAcknowledge response",
    min: 1,
    max: 2,
    flexible_since: 1,
    fields: &[
        int32("throttle_time_ms"),
        int16("error_code"),
        string("error_message").nullable(),
        int32("acquisition_lock_timeout_ms").since(2),
        structs(
            "responses",
            &[
                uuid("topic_id"),
                structs(
                    "partitions",
                    &[
                        int32("partition_index"),
                        int16("error_code"),
                        string("error_message").nullable(),
                        structure("current_leader", &[int32("leader_id"), int32("leader_epoch")]),
                    ],
                ),
            ],
        ),
        structs(
            "node_endpoints",
            &[
                int32("node_id"),
                string("host"),
                int32("port"),
                string("rack").nullable(),
            ],
        ),
    ],
};
