//! Client-side assignors: the two requests that compute an assignment, and the heartbeat's fields of our own.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

use super::access::rules::{DESCRIBE, READ, Rules, upstream};
use super::access::{checking, forget};
use super::kit::*;
use super::unavailable::setups;
use crate::handler::Answer;
use crate::wire::api::*;
use crate::wire::assignment::TopicPartitions;
use crate::wire::assignment::heartbeat::{
    AssignedBy, ClientAssignor, assigned_by, set_client_assignors, should_compute_assignment,
};
use crate::wire::assignment::install::{InstallAssignmentRequest, InstallAssignmentResponse, InstalledMember};
use crate::wire::assignment::prepare::{PrepareAssignmentRequest, PrepareAssignmentResponse};
use crate::wire::codec::{self, Encode, GuardedResponse};

fn prepare(group_id: &str, member_id: &str, member_epoch: i32) -> PrepareAssignmentRequest {
    PrepareAssignmentRequest {
        group_id: string(group_id),
        member_id: string(member_id),
        member_epoch,
    }
}

fn install(group_id: &str, member_id: &str, member_epoch: i32) -> InstallAssignmentRequest {
    InstallAssignmentRequest {
        group_id: string(group_id),
        member_id: string(member_id),
        member_epoch,
        ..InstallAssignmentRequest::default()
    }
}

fn body(request: &impl Encode) -> Bytes {
    let mut body = BytesMut::new();
    codec::encode(request, 0, &mut body).expect("well-formed");
    body.freeze()
}

async fn exchange<T: GuardedResponse>(
    setup: &Setup,
    api_key: i16,
    request: &impl Encode,
    upstream: &mut Upstream,
) -> (T, i16) {
    match setup.handle(api_key, 0, body(request), upstream).await {
        Answer::Reply(body, error) => (codec::decode_response(0, body.freeze()).expect("well-formed"), error.0),
        other => panic!("{other:?}"),
    }
}

/// The errors of both requests with the same ids and epoch, and whether each has a message.
async fn errors(setup: &Setup, ids: (&str, &str, i32), upstream: &mut Upstream) -> [(i16, bool); 2] {
    let (group_id, member_id, epoch) = ids;
    let request = prepare(group_id, member_id, epoch);
    let (prepared, counted): (PrepareAssignmentResponse, _) =
        exchange(setup, CONSUMER_GROUP_PREPARE_ASSIGNMENT, &request, upstream).await;
    assert_eq!(prepared.error_code, counted);
    let request = install(group_id, member_id, epoch);
    let (installed, counted): (InstallAssignmentResponse, _) =
        exchange(setup, CONSUMER_GROUP_INSTALL_ASSIGNMENT, &request, upstream).await;
    assert_eq!(installed.error_code, counted);
    [
        (prepared.error_code, prepared.error_message.is_some()),
        (installed.error_code, installed.error_message.is_some()),
    ]
}

#[tokio::test]
async fn who_may_not_read_the_group_is_told_nothing_else() {
    let setup = checking().await;
    for (operations, ids, error) in [
        (DESCRIBE, ("g", "me", 1), 30),
        (DESCRIBE, ("g", "", -1), 30),
        (READ, ("g", "", 1), 42),
        (READ, ("g", "me", 1), 69),
        (0, ("delegated-g", "me", 1), 30),
    ] {
        forget(&setup).await;
        let mut upstream = upstream(Rules::group(operations));
        let errors = errors(&setup, ids, &mut upstream).await.map(|(error, _)| error);
        assert_eq!(errors, [error; 2], "{ids:?}");
    }
    forget(&setup).await;
    let gone = errors(&setup, ("g", "me", 1), &mut Upstream::gone()).await;
    assert_eq!(gone, [(15, false); 2], "no answer is no access");
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_refused_with_the_reason() {
    let setup = Setup::new().await;
    for (ids, error, has_message) in [
        (("", "", -1), 24, false),
        (("g", "", -1), 42, true),
        (("g", "me", -1), 42, true),
        (("delegated-g", "me", 1), 69, true),
        (("nothing", "me", 1), 69, true),
    ] {
        let errors = errors(&setup, ids, &mut Upstream::unused()).await;
        assert_eq!(errors, [(error, has_message); 2], "{ids:?}");
    }
}

#[tokio::test]
async fn while_nothing_can_be_looked_at_computing_has_to_wait() {
    for (setup, error) in setups().await {
        let errors = errors(&setup, ("g", "me", 1), &mut Upstream::unused()).await;
        assert_eq!(errors, [(error, false); 2]);
    }
}

/// A heartbeat of a process that computes and reads nothing.
pub(super) fn external(member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
    let register = ConsumerGroupHeartbeatRequest::default()
        .with_group_id(string("g").into())
        .with_member_id(string("external"))
        .with_member_epoch(member_epoch);
    if member_epoch != 0 {
        return register;
    }
    let mut register = register
        .with_rebalance_timeout_ms(20_000)
        .with_subscribed_topic_names(Some(Vec::new()))
        .with_topic_partitions(Some(Vec::new()));
    set_client_assignors(&mut register, &[assignor()]).expect("it fits");
    register
}

pub(super) fn assignor() -> ClientAssignor {
    ClientAssignor {
        name: string("lag-balanced"),
        maximum_version: 3,
        metadata_version: 2,
        metadata: Bytes::from_static(b"mine"),
        ..ClientAssignor::default()
    }
}

pub(super) fn member(member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
    let member = ConsumerGroupHeartbeatRequest::default()
        .with_group_id(string("g").into())
        .with_member_id(string("me"))
        .with_member_epoch(member_epoch);
    if member_epoch != 0 {
        return member;
    }
    member
        .with_rebalance_timeout_ms(20_000)
        .with_subscribed_topic_names(Some(vec![string("orders").into()]))
        .with_topic_partitions(Some(Vec::new()))
}

pub(super) async fn hears(
    setup: &Setup,
    version: i16,
    request: &ConsumerGroupHeartbeatRequest,
) -> ConsumerGroupHeartbeatResponse {
    let answer = setup.handle_apart(CONSUMER_GROUP_HEARTBEAT, version, encode(request, version));
    let Answer::Reply(body, error) = answer.await else {
        panic!("no reply to {request:?}");
    };
    let response: ConsumerGroupHeartbeatResponse = codec::decode_response(version, body.freeze()).expect("well-formed");
    assert_eq!(response.error_code, error.0);
    response
}

/// Asks for the group and gives all of the topic to one member, with a word to it.
pub(super) async fn compute(
    setup: &Setup,
    group_id: &str,
    (caller, epoch): (&str, i32),
    reads: &str,
) -> PrepareAssignmentResponse {
    let request = prepare(group_id, caller, epoch);
    let upstream = &mut Upstream::unused();
    let (prepared, _): (PrepareAssignmentResponse, _) =
        exchange(setup, CONSUMER_GROUP_PREPARE_ASSIGNMENT, &request, upstream).await;
    assert_eq!(prepared.error_code, 0, "{:?}", prepared.error_message);
    let target = InstalledMember {
        member_id: string(reads),
        partitions: vec![TopicPartitions {
            topic_id: ORDERS,
            partitions: vec![2, 0, 1],
        }],
        metadata_version: 5,
        metadata: Bytes::from_static(b"yours"),
    };
    let request = InstallAssignmentRequest {
        group_epoch: prepared.group_epoch,
        members: vec![target],
        ..install(group_id, caller, epoch)
    };
    let (installed, _): (InstallAssignmentResponse, _) =
        exchange(setup, CONSUMER_GROUP_INSTALL_ASSIGNMENT, &request, upstream).await;
    assert_eq!(installed.error_code, 0, "{:?}", installed.error_message);
    prepared
}

/// The partitions that a member is told, and what the assignor says.
pub(super) fn told(response: &ConsumerGroupHeartbeatResponse) -> Option<(Vec<i32>, AssignedBy)> {
    let assignment = response.assignment.as_ref()?;
    let topics = assignment.topic_partitions.iter();
    let partitions = topics.flat_map(|topic| topic.partitions.iter().copied()).collect();
    Some((partitions, assigned_by(assignment).expect("well-formed")))
}

fn yours() -> AssignedBy {
    AssignedBy {
        error: 0,
        metadata_version: 5,
        metadata: Bytes::from_static(b"yours"),
    }
}

#[tokio::test]
async fn an_external_assignor_places_the_partitions_of_a_stock_member() {
    for version in 0..=1 {
        let setup = Setup::new().await;
        let registered = hears(&setup, 1, &external(0)).await;
        assert_eq!((registered.error_code, registered.member_epoch), (0, 1));
        assert!(registered.heartbeat_interval_ms > 0 && registered.assignment.is_none());
        let joins = member(0).with_server_assignor(Some(string("lag-balanced")));
        let external_computes = async {
            let response = hears(&setup, 1, &external(1)).await;
            assert!(
                should_compute_assignment(&response).expect("well-formed"),
                "{response:?}"
            );
            compute(&setup, "g", ("external", 1), "me").await
        };
        let (prepared, joined) = tokio::join!(external_computes, hears(&setup, version, &joins));
        assert_eq!(
            (prepared.assignor_name.as_str(), prepared.members.len()),
            ("lag-balanced", 1)
        );
        let (stock, topic) = (&prepared.members[0], &prepared.topics[0]);
        assert_eq!(
            (stock.member_id.as_str(), &stock.subscribed_topic_ids[..]),
            ("me", &[ORDERS][..])
        );
        assert_eq!(stock.assignor, Default::default(), "it only names the assignor");
        assert_eq!(
            (topic.topic_id, topic.topic_name.as_str(), topic.num_partitions),
            (ORDERS, "orders", 3)
        );
        let said = if version == 0 { AssignedBy::default() } else { yours() };
        assert_eq!(told(&joined), Some((vec![0, 1, 2], said)), "v{version}");
        assert!(!should_compute_assignment(&joined).expect("well-formed"));
        let left = hears(&setup, 1, &external(-1)).await;
        assert_eq!((left.error_code, left.member_epoch), (0, -1));
        assert_eq!(hears(&setup, 1, &external(1)).await.error_code, 25);
    }
}

#[tokio::test]
async fn a_member_that_lists_an_assignor_computes_for_its_group() {
    let setup = Setup::new().await;
    let mut joins = member(0);
    set_client_assignors(&mut joins, &[assignor()]).expect("it fits");
    let joined = hears(&setup, 1, &joins).await;
    assert!(should_compute_assignment(&joined).expect("well-formed"), "{joined:?}");
    assert_eq!(told(&joined), Some((Vec::new(), AssignedBy::default())));
    let epoch = joined.member_epoch;
    let request = InstallAssignmentRequest {
        members: vec![InstalledMember::default()],
        ..install("g", "me", epoch)
    };
    let upstream = &mut Upstream::unused();
    let (refused, _): (InstallAssignmentResponse, _) =
        exchange(&setup, CONSUMER_GROUP_INSTALL_ASSIGNMENT, &request, upstream).await;
    assert_eq!((refused.error_code, refused.error_message.is_some()), (20848, true));
    for (ids, error) in [
        (("g", "you", epoch), 25),
        (("g", "me", epoch + 1), 113),
        (("nothing", "me", epoch), 69),
    ] {
        let errors = errors(&setup, ids, upstream).await.map(|(error, _)| error);
        assert_eq!(errors, [error; 2], "{ids:?}");
    }
    let prepared = compute(&setup, "g", ("me", epoch), "me").await;
    let said = &prepared.members[0].assignor;
    assert_eq!((said.metadata_version, &said.metadata[..]), (2, &b"mine"[..]));
    let next = hears(&setup, 1, &member(epoch)).await;
    assert_eq!(told(&next), Some((vec![0, 1, 2], yours())));
    assert!(!should_compute_assignment(&next).expect("well-formed"));
    let over = errors(&setup, ("g", "me", next.member_epoch), upstream).await;
    assert_eq!(over.map(|(error, _)| error), [25; 2], "nobody is to compute now");
}

#[tokio::test]
async fn an_assignor_that_fails_is_named_to_the_members_that_another_places() {
    let setup = Setup::new().await;
    let mut joins = member(0);
    set_client_assignors(&mut joins, &[assignor()]).expect("it fits");
    let epoch = hears(&setup, 1, &joins).await.member_epoch;
    let upstream = &mut Upstream::unused();
    let request = prepare("g", "me", epoch);
    let (prepared, _): (PrepareAssignmentResponse, _) =
        exchange(&setup, CONSUMER_GROUP_PREPARE_ASSIGNMENT, &request, upstream).await;
    let request = InstallAssignmentRequest {
        group_epoch: prepared.group_epoch,
        error: -7,
        ..install("g", "me", epoch)
    };
    let (installed, _): (InstallAssignmentResponse, _) =
        exchange(&setup, CONSUMER_GROUP_INSTALL_ASSIGNMENT, &request, upstream).await;
    assert_eq!(installed.error_code, 0, "{:?}", installed.error_message);
    let next = hears(&setup, 1, &member(epoch)).await;
    let failed = AssignedBy {
        error: -7,
        ..AssignedBy::default()
    };
    assert_eq!(told(&next), Some((vec![0, 1, 2], failed)));
}

#[tokio::test]
async fn an_external_assignor_is_not_made_a_consumer_of_the_brokers() {
    let setup = Setup::new().await;
    for group_id in ["delegated-g", "live-g"] {
        let request = external(0).with_group_id(string(group_id).into());
        let answer = setup
            .handle(
                CONSUMER_GROUP_HEARTBEAT,
                1,
                encode(&request, 1),
                &mut Upstream::unused(),
            )
            .await;
        let Answer::Reply(body, error) = answer else {
            panic!("{group_id}: {answer:?}");
        };
        let answer: ConsumerGroupHeartbeatResponse = codec::decode_response(1, body.freeze()).expect("well-formed");
        assert_eq!((answer.error_code, error.0), (69, 69), "{group_id}");
        assert!(answer.error_message.is_some());
    }
}

#[tokio::test]
async fn an_external_assignor_is_gone_with_its_connection() {
    let setup = Setup::new().await;
    hears(&setup, 1, &external(0)).await;
    let joins = member(0).with_server_assignor(Some(string("lag-balanced")));
    // It is told to compute, and is killed.
    let killed = async {
        let response = hears(&setup, 1, &external(1)).await;
        assert!(should_compute_assignment(&response).expect("well-formed"));
        setup.apart.lock().await.clear();
    };
    let ((), joined) = tokio::join!(killed, hears(&setup, 1, &joins));
    let (partitions, _) = told(&joined).expect("an assignment");
    assert_eq!(partitions, [0, 1, 2], "a server assignor has placed them, at once");
    assert_eq!(hears(&setup, 1, &external(1)).await.error_code, 25);
}

/// Of all groups together: one after another an assignor registers for each, and none goes.
#[tokio::test(start_paused = true)]
async fn what_all_groups_keep_of_assignors_metadata_is_bounded_and_free_again_when_they_are_gone() {
    const LONG: usize = 60 * 1024;
    let setup = Setup::new().await;
    let held = || setup.services.metrics.group_memory.get();
    let fitting = GROUP_MEMORY_MAX / LONG;
    let long = ClientAssignor {
        metadata: Bytes::from(vec![7; LONG]),
        ..assignor()
    };
    let mut refused = 0;
    for number in 0..2 * fitting {
        let group_id = string(&format!("g{number}"));
        let mut register = external(0).with_group_id(group_id.into());
        set_client_assignors(&mut register, std::slice::from_ref(&long)).expect("it fits");
        match hears(&setup, 1, &register).await.error_code {
            0 => {}
            // COORDINATOR_NOT_AVAILABLE
            15 => refused += 1,
            error => panic!("error {error}"),
        }
    }
    assert_eq!(refused, fitting);
    assert_eq!(held(), i64::try_from(fitting * LONG).expect("small"));
    let too_much = InstallAssignmentRequest {
        members: vec![InstalledMember {
            metadata: Bytes::from(vec![7; LONG]),
            ..InstalledMember::default()
        }],
        ..install("g", "external", 1)
    };
    let upstream = &mut Upstream::unused();
    let (installed, _): (InstallAssignmentResponse, _) =
        exchange(&setup, CONSUMER_GROUP_INSTALL_ASSIGNMENT, &too_much, upstream).await;
    assert_eq!(installed.error_code, 15);
    // Nobody is heard of any more.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(held(), 0);
    let mut register = external(0);
    set_client_assignors(&mut register, &[long]).expect("it fits");
    assert_eq!(hears(&setup, 1, &register).await.error_code, 0);
}
