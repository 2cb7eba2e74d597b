//! Bodies that Kafka 4.4.0 wrote, through the guard and kafka-protocol and back, and answers of ours as Kafka writes them.

use kafka_protocol::messages::consumer_group_describe_response as described;
use kafka_protocol::messages::consumer_group_heartbeat_response::{Assignment, TopicPartitions};
use kafka_protocol::messages::fetch_response::{
    AbortedTransaction, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
};
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use kafka_protocol::messages::{
    ConsumerGroupHeartbeatResponse, FetchResponse, GroupId, HeartbeatResponse, JoinGroupResponse, LeaveGroupResponse,
    OffsetDeleteResponse, SyncGroupResponse,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::golden::{encoded, request, response};
use super::*;
use crate::wire::api::{
    CONSUMER_GROUP_DESCRIBE, CONSUMER_GROUP_HEARTBEAT, FETCH, HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, OFFSET_DELETE,
    SHARE_ACKNOWLEDGE, SHARE_FETCH, SYNC_GROUP,
};

fn text(text: &'static str) -> StrBytes {
    StrBytes::from_static_str(text)
}

/// A request that Kafka wrote, decoded; encoded again it must be what it was.
fn decoded_request<T: GuardedRequest + Encode>(version: i16) -> T {
    let body = request(T::SCHEMA.api_key, version);
    let message: T = decode_request(version, body.clone()).expect("Kafka wrote it");
    assert_eq!(encoded(&message, version), body, "{}", T::SCHEMA.name);
    message
}

/// The same for a response.
fn decoded_response<T: GuardedResponse + Encode>(version: i16) -> T {
    let body = response(T::SCHEMA.api_key, version);
    let message: T = decode_response(version, body.clone()).expect("Kafka wrote it");
    assert_eq!(encoded(&message, version), body, "{}", T::SCHEMA.name);
    message
}

#[test]
fn requests_of_kafka_are_decoded_at_their_newest_version() {
    let join: JoinGroupRequest = decoded_request(9);
    assert_eq!((join.session_timeout_ms, join.rebalance_timeout_ms), (45_000, 300_000));
    assert_eq!(
        (join.group_instance_id, join.reason),
        (Some(text("i-1")), Some(text("rejoin")))
    );
    let protocols: Vec<_> = join
        .protocols
        .iter()
        .map(|protocol| (&*protocol.name, &*protocol.metadata))
        .collect();
    assert_eq!(protocols, [("range", &[0, 1, 2][..]), ("cooperative-sticky", &[])]);

    let sync: SyncGroupRequest = decoded_request(5);
    assert_eq!((sync.generation_id, sync.protocol_name), (4, Some(text("range"))));
    assert_eq!(&*sync.assignments[0].assignment, [0, 1, 2]);

    let leave: LeaveGroupRequest = decoded_request(5);
    assert_eq!(leave.members[0].reason, Some(text("closed")));
    assert_eq!(leave.members[1].group_instance_id, Some(text("i-1")));

    let find: FindCoordinatorRequest = decoded_request(6);
    assert_eq!(
        (find.key_type, find.coordinator_keys),
        (0, vec![text("orders"), text("payments")])
    );

    let list: ListGroupsRequest = decoded_request(5);
    assert_eq!((list.states_filter, list.types_filter.len()), (vec![text("Stable")], 2));

    let delete: OffsetDeleteRequest = decoded_request(0);
    assert_eq!(delete.topics[0].partitions[0].partition_index, 7);
}

#[test]
fn addresses_in_answers_of_kafka_are_found_where_they_stand() {
    let metadata: MetadataResponse = decoded_response(13);
    assert_eq!(
        (&*metadata.brokers[1].host, metadata.brokers[1].port),
        ("broker-2.example", 9093)
    );
    assert_eq!((&metadata.topics[1].name, metadata.topics[1].error_code), (&None, 100));

    let found: FindCoordinatorResponse = decoded_response(6);
    assert_eq!(
        (&*found.coordinators[0].host, found.coordinators[0].port),
        ("broker-2.example", 9092)
    );
    assert_eq!(
        (found.coordinators[1].error_code, &found.coordinators[1].error_message),
        (15, &Some(text("not yet")))
    );

    let produced: ProduceResponse = decoded_response(13);
    assert_eq!(
        (&*produced.node_endpoints[0].host, produced.node_endpoints[0].port),
        ("broker-2.example", 9093)
    );
    assert_eq!(
        produced.responses[0].partition_responses[0].current_leader.leader_epoch,
        8
    );

    let cluster: DescribeClusterResponse = decoded_response(2);
    assert_eq!(
        (&*cluster.brokers[0].host, cluster.brokers[0].is_fenced),
        ("broker-2.example", true)
    );

    let quorum: DescribeQuorumResponse = decoded_response(2);
    let listener = &quorum.nodes[0].listeners[0];
    assert_eq!(
        (&*listener.name, &*listener.host, listener.port),
        ("CONTROLLER", "controller-3.example", 50_000)
    );
}

#[test]
fn answers_about_groups_are_decoded_and_written_as_kafka_does() {
    let described: DescribeGroupsResponse = decoded_response(6);
    let member = &described.groups[0].members[0];
    assert_eq!(
        (&*member.client_host, &*member.member_assignment),
        ("/127.0.0.1", &[3, 4][..])
    );
    assert_eq!(described.groups[1].error_message, Some(text("Group none not found.")));

    let listed: ListGroupsResponse = decoded_response(5);
    assert_eq!(
        (&*listed.groups[0].group_state, &*listed.groups[0].group_type),
        ("Stable", "classic")
    );
}

#[test]
fn join_and_sync_are_answered_as_kafka_does() {
    let members = vec![
        JoinGroupResponseMember::default()
            .with_member_id(text("m-1"))
            .with_group_instance_id(Some(text("i-1")))
            .with_metadata(Bytes::from_static(&[0, 1, 2])),
        JoinGroupResponseMember::default()
            .with_member_id(text("m-2"))
            .with_group_instance_id(None),
    ];
    let join = JoinGroupResponse::default()
        .with_generation_id(4)
        .with_protocol_type(Some(text("consumer")))
        .with_protocol_name(Some(text("range")))
        .with_leader(text("m-1"))
        .with_skip_assignment(true)
        .with_member_id(text("m-1"))
        .with_members(members);
    assert_eq!(encoded(&join, 9), response(JOIN_GROUP, 9));

    let sync = SyncGroupResponse::default()
        .with_protocol_type(Some(text("consumer")))
        .with_protocol_name(Some(text("range")))
        .with_assignment(Bytes::from_static(&[0, 1, 2]));
    assert_eq!(encoded(&sync, 5), response(SYNC_GROUP, 5));
}

#[test]
fn heartbeats_leaves_and_deleted_offsets_are_answered_as_kafka_does() {
    assert_eq!(
        encoded(&HeartbeatResponse::default().with_error_code(27), 4),
        response(HEARTBEAT, 4)
    );

    let members = vec![
        MemberResponse::default()
            .with_member_id(text("m-1"))
            .with_group_instance_id(None),
        MemberResponse::default()
            .with_group_instance_id(Some(text("i-1")))
            .with_error_code(25),
    ];
    assert_eq!(
        encoded(&LeaveGroupResponse::default().with_members(members), 5),
        response(LEAVE_GROUP, 5)
    );

    let partition = OffsetDeleteResponsePartition::default()
        .with_partition_index(7)
        .with_error_code(86);
    let topic = OffsetDeleteResponseTopic::default()
        .with_name(text("t").into())
        .with_partitions(vec![partition]);
    assert_eq!(
        encoded(&OffsetDeleteResponse::default().with_topics(vec![topic]), 0),
        response(OFFSET_DELETE, 0)
    );
}

#[test]
fn requests_of_consumer_groups_are_decoded_in_both_versions() {
    let join: ConsumerGroupHeartbeatRequest = decoded_request(1);
    assert_eq!((join.member_epoch, join.rebalance_timeout_ms), (0, 300_000));
    assert_eq!(
        (join.instance_id, join.rack_id, join.server_assignor),
        (Some(text("i-1")), Some(text("r1")), Some(text("uniform")))
    );
    assert_eq!(
        join.subscribed_topic_names,
        Some(vec![text("t").into(), text("u").into()])
    );
    assert_eq!(join.subscribed_topic_regex, Some(text("t.*")));
    assert_eq!(join.topic_partitions, Some(Vec::new()));

    let acknowledged: ConsumerGroupHeartbeatRequest = decoded_request(0);
    assert_eq!(
        (acknowledged.subscribed_topic_names, acknowledged.rebalance_timeout_ms),
        (None, -1)
    );
    let owned = acknowledged.topic_partitions.expect("owned");
    assert_eq!(owned[0].topic_id, Uuid::from_u64_pair(1, 2));
    assert_eq!(owned[0].partitions, [7, 8]);

    let describe: ConsumerGroupDescribeRequest = decoded_request(1);
    assert_eq!(describe.group_ids, [GroupId(text("orders")), GroupId(text("payments"))]);
    assert!(describe.include_authorized_operations);
}

#[test]
fn heartbeats_of_consumer_groups_are_answered_as_kafka_does() {
    let topic = TopicPartitions::default()
        .with_topic_id(Uuid::from_u64_pair(1, 2))
        .with_partitions(vec![7, 8]);
    let assigned = ConsumerGroupHeartbeatResponse::default()
        .with_member_id(Some(text("m-1")))
        .with_member_epoch(4)
        .with_heartbeat_interval_ms(5_000)
        .with_assignment(Some(Assignment::default().with_topic_partitions(vec![topic])));
    assert_eq!(encoded(&assigned, 1), response(CONSUMER_GROUP_HEARTBEAT, 1));

    let fenced = ConsumerGroupHeartbeatResponse::default()
        .with_error_code(110)
        .with_error_message(Some(text("fenced")));
    assert_eq!(encoded(&fenced, 0), response(CONSUMER_GROUP_HEARTBEAT, 0));
}

#[test]
fn described_consumer_groups_are_decoded_and_written_as_kafka_does() {
    let read: ConsumerGroupDescribeResponse = decoded_response(1);
    assert_eq!(read.groups[1].error_code, 69);

    let topic = described::TopicPartitions::default()
        .with_topic_id(Uuid::from_u64_pair(1, 2))
        .with_topic_name(text("t").into());
    let partitions = |partitions: &[i32]| {
        let topic = topic.clone().with_partitions(partitions.to_vec());
        described::Assignment::default().with_topic_partitions(vec![topic])
    };
    let member = described::Member::default()
        .with_member_id(text("m-1"))
        .with_instance_id(Some(text("i-1")))
        .with_member_epoch(4)
        .with_client_id(text("c"))
        .with_client_host(text("/127.0.0.1"))
        .with_subscribed_topic_names(vec![text("t").into()])
        .with_subscribed_topic_regex(Some(text("t.*")))
        .with_assignment(partitions(&[7]))
        .with_target_assignment(partitions(&[7, 8]))
        .with_member_type(1);
    let group = described::DescribedGroup::default()
        .with_group_id(text("orders").into())
        .with_group_state(text("Stable"))
        .with_group_epoch(4)
        .with_assignment_epoch(4)
        .with_assignor_name(text("uniform"))
        .with_members(vec![member]);
    let absent = described::DescribedGroup::default()
        .with_error_code(69)
        .with_error_message(Some(text("Group none not found.")))
        .with_group_id(text("none").into());
    let answer = ConsumerGroupDescribeResponse::default().with_groups(vec![group, absent]);
    assert_eq!(encoded(&answer, 1), response(CONSUMER_GROUP_DESCRIBE, 1));
}

#[test]
fn fetch_v18_with_endpoints_is_as_kafka_writes_it() {
    let golden = response(FETCH, 18);
    // The batch of one record that the generator put in.
    let records = golden
        .windows(4)
        .position(|window| window == [0, 0, 0, 0x3a])
        .expect("the length of the batch")
        - 8;
    let records = golden.slice(records..records + 12 + 0x3a);
    let partition = PartitionData::default()
        .with_partition_index(0)
        .with_high_watermark(9)
        .with_last_stable_offset(9);
    let aborted = AbortedTransaction::default()
        .with_producer_id(5.into())
        .with_first_offset(1);
    let moved = PartitionData::default()
        .with_partition_index(1)
        .with_error_code(6)
        .with_high_watermark(-1)
        .with_last_stable_offset(-1)
        .with_log_start_offset(-1)
        .with_aborted_transactions(None)
        .with_records(None)
        .with_current_leader(
            LeaderIdAndEpoch::default()
                .with_leader_id(2.into())
                .with_leader_epoch(8),
        );
    let partitions = vec![
        partition
            .with_log_start_offset(0)
            .with_aborted_transactions(Some(vec![aborted]))
            .with_preferred_read_replica(2.into())
            .with_records(Some(records)),
        moved,
    ];
    let topic = FetchableTopicResponse::default()
        .with_topic_id(Uuid::from_u64_pair(1, 2))
        .with_partitions(partitions);
    let endpoint = NodeEndpoint::default()
        .with_node_id(2.into())
        .with_host(text("broker-2.example"))
        .with_port(9093)
        .with_rack(None);
    let answer = FetchResponse::default()
        .with_session_id(77)
        .with_responses(vec![topic])
        .with_node_endpoints(vec![endpoint]);
    assert_eq!(encoded(&answer, 18), golden);
}

#[test]
fn answers_of_share_groups_pass_the_guard_in_the_versions_that_kafka_protocol_lacks() {
    guard::check(&schema::SHARE_FETCH_RESPONSE, 2, &response(SHARE_FETCH, 2)).expect("Kafka wrote it");
    guard::check(&schema::SHARE_ACKNOWLEDGE_RESPONSE, 2, &response(SHARE_ACKNOWLEDGE, 2)).expect("Kafka wrote it");
}

#[test]
fn a_field_that_the_version_lacks_is_not_written_silently() {
    let mut out = BytesMut::new();
    let join = JoinGroupResponse::default().with_skip_assignment(true);
    let error = encode(&join, 8, &mut out)
        .expect_err("v8 has no such field")
        .to_string();
    assert!(error.starts_with("cannot encode JoinGroupResponse v8: "), "{error}");
}
