//! What Kafka's own types wrote, decoded and written again; and round trips of whatever fits.

use kafka_protocol::messages::consumer_group_heartbeat_response as heartbeat_response;
use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use kafka_protocol::protocol::StrBytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::heartbeat::*;
use super::install::*;
use super::prepare::*;
use super::*;
use crate::wire::api::{
    CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_INSTALL_ASSIGNMENT, CONSUMER_GROUP_PREPARE_ASSIGNMENT,
};
use crate::wire::codec::golden::{assignment_requests, assignment_responses, encoded};
use crate::wire::codec::{Encode, GuardedRequest, GuardedResponse, decode_request, decode_response};

const ORDERS: Uuid = Uuid::from_u64_pair(1, 2);
const PAYMENTS: Uuid = Uuid::from_u64_pair(3, 4);

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn on(topic_id: Uuid, partitions: &[i32]) -> TopicPartitions {
    TopicPartitions {
        topic_id,
        partitions: partitions.to_vec(),
    }
}

fn are_requests<T: GuardedRequest + Encode + PartialEq + std::fmt::Debug>(api_key: i16, expected: &[T]) {
    let golden = assignment_requests(api_key, 0);
    assert_eq!(golden.len(), expected.len());
    for (body, expected) in golden.into_iter().zip(expected) {
        assert_eq!(encoded(expected, 0), body);
        assert_eq!(&decode_request::<T>(0, body).expect("Kafka wrote it"), expected);
    }
}

fn are_responses<T: GuardedResponse + Encode + PartialEq + std::fmt::Debug>(api_key: i16, expected: &[T]) {
    let golden = assignment_responses(api_key, 0);
    assert_eq!(golden.len(), expected.len());
    for (body, expected) in golden.into_iter().zip(expected) {
        assert_eq!(encoded(expected, 0), body);
        assert_eq!(&decode_response::<T>(0, body).expect("Kafka wrote it"), expected);
    }
}

#[test]
fn prepare_is_what_kafkas_types_write() {
    let request = PrepareAssignmentRequest {
        group_id: text("orders-app"),
        member_id: text("m-1"),
        member_epoch: 5,
    };
    are_requests(CONSUMER_GROUP_PREPARE_ASSIGNMENT, &[request]);
    let first = PreparedMember {
        member_id: text("m-1"),
        member_epoch: 5,
        instance_id: Some(text("i-1")),
        rack_id: Some(text("r1")),
        subscribed_topic_ids: vec![ORDERS, PAYMENTS],
        assignor: MemberAssignor {
            reason: 1,
            metadata_version: 2,
            metadata: bytes::Bytes::from_static(&[1, 2, 0xff]),
        },
        topic_partitions: vec![on(ORDERS, &[0, 2])],
    };
    let stock = PreparedMember {
        member_id: text("m-2"),
        member_epoch: 4,
        ..PreparedMember::default()
    };
    let topic = |topic_id, name, num_partitions| TopicMetadata {
        topic_id,
        topic_name: text(name),
        num_partitions,
    };
    let prepared = PrepareAssignmentResponse {
        throttle_time_ms: 3,
        group_epoch: 6,
        assignor_name: text("lag-balanced"),
        members: vec![first, stock],
        topics: vec![topic(ORDERS, "orders", 3), topic(PAYMENTS, "payé", 200)],
        ..PrepareAssignmentResponse::default()
    };
    let stale = PrepareAssignmentResponse {
        error_code: 113,
        error_message: Some(text("stale")),
        ..PrepareAssignmentResponse::default()
    };
    are_responses(CONSUMER_GROUP_PREPARE_ASSIGNMENT, &[prepared, stale]);
}

#[test]
fn install_is_what_kafkas_types_write() {
    let first = InstalledMember {
        member_id: text("m-1"),
        partitions: vec![on(ORDERS, &[0, 1, 2]), on(PAYMENTS, &[199])],
        metadata_version: 300,
        metadata: bytes::Bytes::from_static(&[0xca, 0xfe]),
    };
    let second = InstalledMember {
        member_id: text("m-2"),
        ..InstalledMember::default()
    };
    let request = |error, members| InstallAssignmentRequest {
        group_id: text("orders-app"),
        member_id: text("m-1"),
        member_epoch: 5,
        group_epoch: 6,
        error,
        members,
    };
    are_requests(
        CONSUMER_GROUP_INSTALL_ASSIGNMENT,
        &[request(0, vec![first, second]), request(-7, Vec::new())],
    );
    let refused = InstallAssignmentResponse {
        throttle_time_ms: 9,
        error_code: 20848,
        error_message: Some(text("partition 3 of orders is nobody's")),
    };
    are_responses(
        CONSUMER_GROUP_INSTALL_ASSIGNMENT,
        &[InstallAssignmentResponse::default(), refused],
    );
}

#[test]
fn a_heartbeat_names_assignors_or_none_any_more_or_leaves_them_as_they_were() {
    let preferred = ClientAssignor {
        name: text("lag-balanced"),
        minimum_version: 1,
        maximum_version: 3,
        reason: 2,
        metadata_version: 3,
        metadata: bytes::Bytes::from_static(&[9, 8]),
    };
    let plain = ClientAssignor {
        name: text("plain"),
        minimum_version: -1,
        ..ClientAssignor::default()
    };
    let golden = assignment_requests(CONSUMER_GROUP_HEARTBEAT, VERSION);
    let expected = [Some(vec![preferred, plain]), Some(Vec::new()), None];
    assert_eq!(golden.len(), expected.len());
    for (body, expected) in golden.into_iter().zip(expected) {
        let decoded: ConsumerGroupHeartbeatRequest = decode_request(VERSION, body.clone()).expect("Kafka wrote it");
        assert_eq!(client_assignors(&decoded).expect("well-formed"), expected);
        let mut written = ConsumerGroupHeartbeatRequest::default()
            .with_group_id(text("orders-app").into())
            .with_member_id(text("m-1"))
            .with_member_epoch(5)
            .with_subscribed_topic_names(None)
            .with_topic_partitions(None);
        if let Some(assignors) = expected {
            set_client_assignors(&mut written, &assignors).expect("they fit");
        }
        assert_eq!(encoded(&written, VERSION), body);
    }
}

#[test]
fn a_heartbeat_is_answered_with_work_or_with_what_the_assignor_says() {
    let answer = ConsumerGroupHeartbeatResponse::default()
        .with_member_id(Some(text("m-1")))
        .with_member_epoch(5)
        .with_heartbeat_interval_ms(5000);
    let mut to_compute = answer.clone();
    set_should_compute_assignment(&mut to_compute);
    let groups = [text("orders-eu"), text("orders-ü")];
    let mut for_groups = answer.clone();
    set_groups_to_compute(&mut for_groups, &groups).expect("they fit");
    let assigned = AssignedBy {
        error: -7,
        metadata_version: 300,
        metadata: bytes::Bytes::from_static(&[0xca, 0xfe]),
    };
    let topic = heartbeat_response::TopicPartitions::default()
        .with_topic_id(ORDERS)
        .with_partitions(vec![0, 1]);
    let mut assignment = heartbeat_response::Assignment::default().with_topic_partitions(vec![topic]);
    set_assigned_by(&mut assignment, &assigned).expect("it fits");
    let written = [to_compute, for_groups, answer.with_assignment(Some(assignment))];
    let expected = [
        (true, None, None),
        (false, Some(groups.to_vec()), None),
        (false, None, Some(assigned)),
    ];
    let golden = assignment_responses(CONSUMER_GROUP_HEARTBEAT, VERSION);
    assert_eq!(golden.len(), written.len());
    for ((body, written), expected) in golden.into_iter().zip(written).zip(expected) {
        assert_eq!(encoded(&written, VERSION), body);
        let decoded: ConsumerGroupHeartbeatResponse = decode_response(VERSION, body).expect("Kafka wrote it");
        assert_eq!(decoded, written);
        let to_compute = should_compute_assignment(&decoded).expect("well-formed");
        let groups = groups_to_compute(&decoded).expect("well-formed");
        let said = decoded
            .assignment
            .map(|assignment| assigned_by(&assignment).expect("well-formed"));
        assert_eq!((to_compute, groups, said), expected);
    }
}

#[test]
fn what_is_zero_or_empty_is_not_sent() {
    let mut assignment = heartbeat_response::Assignment::default();
    set_assigned_by(&mut assignment, &AssignedBy::default()).expect("nothing");
    assert_eq!(assignment, heartbeat_response::Assignment::default());
    assert_eq!(assigned_by(&assignment).expect("nothing"), AssignedBy::default());
}

/// Version 0 is older than the fields: a broker of that time skips them, whatever is in them.
#[test]
fn version_0_of_a_heartbeat_has_no_assignors() {
    let body = assignment_requests(CONSUMER_GROUP_HEARTBEAT, VERSION).remove(0);
    // Version 1 has one nullable text more: the pattern, which is null here.
    let at = body.len()
        - body
            .windows(2)
            .rev()
            .position(|pair| pair == [0xf0, 0xa2])
            .expect("a tag")
        - 2;
    let older = [&body[..at - 2], &body[at - 1..]].concat();
    let decoded: ConsumerGroupHeartbeatRequest = decode_request(0, older.into()).expect("skipped");
    assert_eq!(client_assignors(&decoded).expect("nothing"), None);
}

#[test]
fn assignors_that_cannot_be_read_are_no_heartbeat() {
    let mut request = ConsumerGroupHeartbeatRequest::default();
    for content in [&b""[..], &[2], &[3, 1], &[1, 0], &[0]] {
        let tags = &mut request.unknown_tagged_fields;
        tags.insert(CLIENT_ASSIGNORS.cast_signed(), bytes::Bytes::copy_from_slice(content));
        let decoded: Result<ConsumerGroupHeartbeatRequest, _> = decode_request(VERSION, encoded(&request, VERSION));
        // Bytes behind the end of a field are ignored, as they are behind the end of a body.
        assert_eq!(decoded.is_ok(), content == [1, 0], "{content:?}: {decoded:?}");
    }
}

#[test]
fn other_versions_are_neither_read_nor_written() {
    let mut out = BytesMut::new();
    for version in [-1, 1] {
        assert!(
            PrepareAssignmentRequest::default()
                .encode_body(version, &mut out)
                .is_err()
        );
        assert!(
            PrepareAssignmentResponse::default()
                .encode_body(version, &mut out)
                .is_err()
        );
        assert!(
            InstallAssignmentRequest::default()
                .encode_body(version, &mut out)
                .is_err()
        );
        assert!(
            InstallAssignmentResponse::default()
                .encode_body(version, &mut out)
                .is_err()
        );
        let body = assignment_requests(CONSUMER_GROUP_PREPARE_ASSIGNMENT, 0).remove(0);
        assert!(decode_request::<PrepareAssignmentRequest>(version, body).is_err());
    }
    assert!(out.is_empty());
}

#[test]
fn odd_requests_are_read_as_brokers_read_them() {
    let mut body = assignment_requests(CONSUMER_GROUP_PREPARE_ASSIGNMENT, 0)
        .remove(0)
        .to_vec();
    let plain: PrepareAssignmentRequest = decode_request(0, body.clone().into()).expect("Kafka wrote it");
    body.extend([1, 2, 3]);
    assert_eq!(
        decode_request::<PrepareAssignmentRequest>(0, body.into()).expect("bytes behind"),
        plain
    );
}

fn texts() -> impl Strategy<Value = StrBytes> {
    "\\PC{0,8}".prop_map(StrBytes::from_string)
}

fn metadata() -> impl Strategy<Value = bytes::Bytes> {
    vec(any::<u8>(), 0..200).prop_map(bytes::Bytes::from)
}

fn uuids() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

fn topics() -> impl Strategy<Value = Vec<TopicPartitions>> {
    let topic =
        (uuids(), vec(any::<i32>(), 0..4)).prop_map(|(topic_id, partitions)| TopicPartitions { topic_id, partitions });
    vec(topic, 0..4)
}

fn prepared() -> impl Strategy<Value = PrepareAssignmentResponse> {
    let said = (any::<i8>(), any::<i16>(), metadata());
    let names = (texts(), any::<i32>(), option::of(texts()), option::of(texts()));
    let member = (names, vec(uuids(), 0..3), said, topics()).prop_map(
        |((member_id, member_epoch, instance_id, rack_id), subscribed_topic_ids, said, topic_partitions)| {
            PreparedMember {
                member_id,
                member_epoch,
                instance_id,
                rack_id,
                subscribed_topic_ids,
                assignor: MemberAssignor {
                    reason: said.0,
                    metadata_version: said.1,
                    metadata: said.2,
                },
                topic_partitions,
            }
        },
    );
    let topic = (uuids(), texts(), any::<i32>()).prop_map(|(topic_id, topic_name, num_partitions)| TopicMetadata {
        topic_id,
        topic_name,
        num_partitions,
    });
    let head = (any::<i32>(), any::<i16>(), option::of(texts()), any::<i32>(), texts());
    (head, vec(member, 0..4), vec(topic, 0..4)).prop_map(|(head, members, topics)| PrepareAssignmentResponse {
        throttle_time_ms: head.0,
        error_code: head.1,
        error_message: head.2,
        group_epoch: head.3,
        assignor_name: head.4,
        members,
        topics,
    })
}

fn installed() -> impl Strategy<Value = InstallAssignmentRequest> {
    let member = (texts(), topics(), any::<i16>(), metadata()).prop_map(
        |(member_id, partitions, metadata_version, metadata)| InstalledMember {
            member_id,
            partitions,
            metadata_version,
            metadata,
        },
    );
    let head = (texts(), texts(), any::<i32>(), any::<i32>(), any::<i8>());
    (head, vec(member, 0..4)).prop_map(|(head, members)| InstallAssignmentRequest {
        group_id: head.0,
        member_id: head.1,
        member_epoch: head.2,
        group_epoch: head.3,
        error: head.4,
        members,
    })
}

fn assignors() -> impl Strategy<Value = Vec<ClientAssignor>> {
    let numbers = (any::<i16>(), any::<i16>(), any::<i8>(), any::<i16>());
    let assignor = (texts(), numbers, metadata()).prop_map(|(name, numbers, metadata)| ClientAssignor {
        name,
        minimum_version: numbers.0,
        maximum_version: numbers.1,
        reason: numbers.2,
        metadata_version: numbers.3,
        metadata,
    });
    vec(assignor, 0..4)
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_it_was(prepared in prepared(), installed in installed(), assignors in assignors()) {
        prop_assert_eq!(decode_response::<PrepareAssignmentResponse>(0, encoded(&prepared, 0)).unwrap(), prepared);
        prop_assert_eq!(decode_request::<InstallAssignmentRequest>(0, encoded(&installed, 0)).unwrap(), installed);
        let mut heartbeat = ConsumerGroupHeartbeatRequest::default();
        set_client_assignors(&mut heartbeat, &assignors).unwrap();
        let heartbeat: ConsumerGroupHeartbeatRequest = decode_request(VERSION, encoded(&heartbeat, VERSION)).unwrap();
        prop_assert_eq!(client_assignors(&heartbeat).unwrap(), Some(assignors));
    }

    #[test]
    fn no_content_of_a_field_makes_reading_it_panic(content in vec(any::<u8>(), 0..60)) {
        let content = bytes::Bytes::from(content);
        let tags = || (20848..=20850).map(|tag| (tag, content.clone())).collect();
        let request = ConsumerGroupHeartbeatRequest::default().with_unknown_tagged_fields(tags());
        let _ = client_assignors(&request);
        let response = ConsumerGroupHeartbeatResponse::default().with_unknown_tagged_fields(tags());
        let _ = should_compute_assignment(&response);
        let _ = groups_to_compute(&response);
        let _ = assigned_by(&heartbeat_response::Assignment::default().with_unknown_tagged_fields(tags()));
    }
}
