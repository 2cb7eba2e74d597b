//! What Kafka 4.4.0 writes, decoded, and what is written here, compared with what Kafka writes.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartitions, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{
    ApiVersionsResponse, DeleteGroupsRequest, OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest,
    OffsetFetchResponse,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::api_versions::ApiVersionsRequest;
use super::delete_groups::{DeletableGroupResult, DeleteGroupsResponse};
use super::*;
use crate::wire::api::{API_VERSIONS, DELETE_GROUPS, OFFSET_COMMIT, OFFSET_FETCH};
use crate::wire::codec::golden::{encoded, request, requests, response};
use crate::wire::codec::{Encode, WireError, decode_request, decode_response};

fn text(text: &'static str) -> StrBytes {
    StrBytes::from_static_str(text)
}

/// The topic of the golden messages.
const TOPIC: Uuid = Uuid::from_u64_pair(1, 2);

#[test]
fn offset_commit_v10_names_topics_by_id() {
    let partitions = vec![
        OffsetCommitRequestPartition::default()
            .with_partition_index(7)
            .with_committed_offset(123_456_789_012)
            .with_committed_leader_epoch(42)
            .with_committed_metadata(Some(text("café"))),
        OffsetCommitRequestPartition::default()
            .with_partition_index(8)
            .with_committed_metadata(None),
    ];
    let topic = OffsetCommitRequestTopic::default()
        .with_topic_id(TOPIC)
        .with_partitions(partitions);
    let expected = OffsetCommitRequest::default()
        .with_group_id(text("orders").into())
        .with_generation_id_or_member_epoch(3)
        .with_member_id(text("m-1"))
        .with_group_instance_id(None)
        .with_topics(vec![topic]);
    let decoded: OffsetCommitRequest = decode_request(10, request(OFFSET_COMMIT, 10)).expect("Kafka wrote it");
    assert_eq!(decoded, expected);
}

#[test]
fn offset_commit_v10_is_answered_by_id() {
    let partition = |index, error| {
        OffsetCommitResponsePartition::default()
            .with_partition_index(index)
            .with_error_code(error)
    };
    let topic = OffsetCommitResponseTopic::default()
        .with_topic_id(TOPIC)
        .with_partitions(vec![partition(7, 0), partition(8, 100)]);
    let answer = OffsetCommitResponse::default()
        .with_throttle_time_ms(5)
        .with_topics(vec![topic]);
    assert_eq!(encoded(&answer, 10), response(OFFSET_COMMIT, 10));
}

#[test]
fn offset_fetch_v10_names_topics_by_id_and_null_means_all() {
    let topic = OffsetFetchRequestTopics::default()
        .with_topic_id(TOPIC)
        .with_partition_indexes(vec![7, 8]);
    let orders = OffsetFetchRequestGroup::default()
        .with_group_id(text("orders").into())
        .with_member_id(Some(text("m-1")))
        .with_member_epoch(3)
        .with_topics(Some(vec![topic]));
    let all = OffsetFetchRequestGroup::default()
        .with_group_id(text("all").into())
        .with_member_id(None)
        .with_member_epoch(-1)
        .with_topics(None);
    let decoded: OffsetFetchRequest = decode_request(10, request(OFFSET_FETCH, 10)).expect("Kafka wrote it");
    assert_eq!(decoded.groups, vec![orders, all]);
    assert!(decoded.require_stable);
}

#[test]
fn offset_fetch_v10_is_answered_by_id() {
    let partition = |index, offset, epoch, metadata, error| {
        OffsetFetchResponsePartitions::default()
            .with_partition_index(index)
            .with_committed_offset(offset)
            .with_committed_leader_epoch(epoch)
            .with_metadata(metadata)
            .with_error_code(error)
    };
    let partitions = vec![
        partition(7, 123_456_789_012, 42, Some(text("m")), 0),
        partition(8, -1, -1, None, 100),
    ];
    let topic = OffsetFetchResponseTopics::default()
        .with_topic_id(TOPIC)
        .with_partitions(partitions);
    let group = OffsetFetchResponseGroup::default()
        .with_group_id(text("orders").into())
        .with_topics(vec![topic]);
    let answer = OffsetFetchResponse::default().with_groups(vec![group]);
    assert_eq!(encoded(&answer, 10), response(OFFSET_FETCH, 10));
    assert_eq!(
        decode_response::<OffsetFetchResponse>(10, response(OFFSET_FETCH, 10)).expect("valid"),
        answer
    );
}

#[test]
fn delete_groups_v3_has_messages_and_older_versions_do_without() {
    let decoded: DeleteGroupsRequest = decode_request(3, request(DELETE_GROUPS, 3)).expect("Kafka wrote it");
    assert_eq!(decoded.groups_names, vec![text("orders"), text("payments")]);

    let result = |group, error_code, message: Option<&'static str>| DeletableGroupResult {
        group_id: text(group),
        error_code,
        error_message: message.map(text),
    };
    let results = vec![
        result("orders", 0, None),
        result("payments", 68, Some("The group is not empty.")),
    ];
    let answer = DeleteGroupsResponse {
        throttle_time_ms: 0,
        results,
    };
    assert_eq!(encoded(&answer, 3), response(DELETE_GROUPS, 3));
    assert_eq!(
        decode_response::<DeleteGroupsResponse>(3, response(DELETE_GROUPS, 3)).expect("valid"),
        answer
    );

    let older = DeleteGroupsResponse {
        throttle_time_ms: 0,
        results: vec![result("orders", 69, Some("not sent"))],
    };
    assert_eq!(encoded(&older, 1), response(DELETE_GROUPS, 1));
}

#[test]
fn api_versions_v5_says_which_cluster_and_node_are_meant() {
    let expected = |cluster_id, node_id| ApiVersionsRequest {
        client_software_name: text("apache-kafka-java"),
        client_software_version: text("4.4.0"),
        cluster_id,
        node_id,
    };
    let of_a_node = expected(Some(text("Wx1yTqJ1Q5uVv0Gk3Yb6aA")), 3);
    let bootstrap = expected(None, -1);
    let golden = requests(API_VERSIONS, 5);
    assert_eq!(golden.len(), 2);
    for (body, expected) in golden.into_iter().zip([of_a_node, bootstrap]) {
        let decoded: ApiVersionsRequest = decode_request(5, body.clone()).expect("Kafka wrote it");
        assert_eq!(decoded, expected);
        assert_eq!(encoded(&decoded, 5), body);
    }
    let decoded: ApiVersionsRequest = decode_request(0, Bytes::new()).expect("v0 is empty");
    assert_eq!(decoded, ApiVersionsRequest::default());
}

#[test]
fn api_versions_v5_is_answered_as_v4() {
    let answer = |zk_migration_ready| {
        ApiVersionsResponse::default()
            .with_api_keys(vec![ApiVersion::default().with_api_key(18).with_max_version(5)])
            .with_supported_features(vec![
                SupportedFeatureKey::default()
                    .with_name(text("group.version"))
                    .with_max_version(1),
            ])
            .with_finalized_features_epoch(9)
            .with_finalized_features(vec![
                FinalizedFeatureKey::default()
                    .with_name(text("metadata.version"))
                    .with_max_version_level(33)
                    .with_min_version_level(33),
            ])
            .with_zk_migration_ready(zk_migration_ready)
    };
    for (version, zk_migration_ready) in [(4, true), (5, false)] {
        let golden = response(API_VERSIONS, version);
        let mut out = BytesMut::new();
        api_versions::encode_response(&answer(zk_migration_ready), version, &mut out).expect("valid");
        assert_eq!(out, golden);
        let decoded: ApiVersionsResponse = decode_response(version, golden).expect("Kafka wrote it");
        assert_eq!(decoded, answer(zk_migration_ready));
    }
    let mut out = BytesMut::new();
    let refused = api_versions::encode_response(&answer(false), 6, &mut out);
    assert!(matches!(refused, Err(WireError::UnsupportedVersion { version: 6, .. })));
}

#[test]
fn versions_that_do_not_exist_are_not_written() {
    let mut out = BytesMut::new();
    assert!(DeleteGroupsResponse::default().encode_body(4, &mut out).is_err());
    assert!(ApiVersionsRequest::default().encode_body(6, &mut out).is_err());
    assert!(out.is_empty());
}
