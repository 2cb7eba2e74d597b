//! What a consumer group looks like from outside.

use uuid::Uuid;

use super::consumer_client::{Client, T, at_once, beat_of, join_of, shard, shard_with, topics};
use super::requests::first_join;
use crate::coordinator::event::Event;
use crate::coordinator::input::{Presence, UpstreamGroup};
use crate::coordinator::record::MemberState;
use crate::coordinator::request::{AssignedTopic, ConsumerGroupHeartbeatRequest, Request, Response};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

#[test]
fn a_member_is_described_with_what_it_has_and_is_to_have() {
    let mut test = shard();
    test.beat(ConsumerGroupHeartbeatRequest {
        rack_id: Some("r".into()),
        ..join_of("a")
    });
    Client::joined(&mut test, "b");
    let group = test.describe_consumer();
    assert_eq!(
        (group.error, &*group.state, &*group.assignor_name),
        (ErrorCode::NONE, "Reconciling", "uniform")
    );
    assert_eq!((group.group_epoch, group.assignment_epoch), (3, 3));
    let a = &group.members[0];
    assert_eq!((&*a.member_id, a.member_epoch, a.is_classic), ("a", 2, false));
    assert_eq!(
        (a.rack_id.as_deref(), &*a.client_id, &*a.client_host),
        (Some("r"), "client", "/10.0.0.1")
    );
    assert_eq!(a.subscribed_topic_names, ["t".into()]);
    let everything = AssignedTopic {
        topic_id: Uuid::from_u128(T),
        name: "t".into(),
        partitions: vec![0, 1, 2, 3, 4, 5],
    };
    assert_eq!(a.assignment, [everything]);
    assert_eq!(a.target_assignment[0].partitions.len(), 3);
    assert_eq!(group.members[1].assignment, []);
    test.tell_topics(topics(&[]));
    assert_eq!(test.member("a").assignment, [], "a topic that is gone has no name");
}

#[test]
fn what_a_member_is_to_give_up_is_described_as_its_own_until_it_has() {
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    Client::joined(&mut test, "b");
    a.beat(&mut test);
    assert_eq!((a.numbers().len(), test.member("a").member_epoch), (3, 2));
    assert_eq!(test.member("a").assignment[0].partitions, [0, 1, 2, 3, 4, 5]);
    a.beat(&mut test);
    assert_eq!(test.member("a").assignment[0].partitions, a.numbers());
}

#[test]
fn where_consumer_groups_are_switched_off_there_are_none() {
    let mut test = shard_with(Settings {
        consumer_groups: false,
        ..at_once()
    });
    assert_eq!(test.beat_error(join_of("a")), ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!(
        test.beat_error(beat_of("", 5)),
        ErrorCode::UNSUPPORTED_VERSION,
        "before anything else"
    );
    assert_eq!(test.describe_consumer().error, ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!(test.list(&[], &[]).groups.len(), 0);
}

#[test]
fn only_a_consumer_group_is_described_as_one() {
    // Scenario 140.
    let mut test = shard();
    let ticket = test.join(first_join());
    assert!(test.is_answered(ticket));
    assert_eq!(test.describe_consumer().error, ErrorCode::GROUP_ID_NOT_FOUND);
    let mut test = shard();
    Client::joined(&mut test, "a");
    let described = test.describe();
    assert_eq!((&*described.state, described.members.len()), ("Dead", 0));
    assert_eq!(
        described.error_message.as_deref(),
        Some("Group g is not a classic group.")
    );
    let group_id = "".into();
    match test.call(Request::ConsumerGroupDescribe { group_id }) {
        Response::ConsumerGroupDescribe(response) => assert_eq!(response.error, ErrorCode::INVALID_GROUP_ID),
        other => panic!("not a description: {other:?}"),
    }
}

#[test]
fn it_is_listed_by_its_type_and_state() {
    // Scenario 141.
    let mut test = shard();
    Client::joined(&mut test, "a");
    let listed = test.list(&["stable"], &["Consumer"]).groups;
    assert_eq!(
        (&*listed[0].group_type, &*listed[0].protocol_type),
        ("consumer", "consumer")
    );
    assert!(test.list(&[], &["classic"]).groups.is_empty());
    test.beat(beat_of("a", -1));
    assert_eq!(test.list(&["empty"], &[]).groups.len(), 1);
}

#[test]
fn partitions_on_their_way_are_in_view() {
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    Client::joined(&mut test, "b");
    a.beat(&mut test);
    let group = test.view().groups.remove(0);
    let consumer = group.consumer.expect("a consumer group");
    assert_eq!((group.generation_id, consumer.assignment_epoch), (3, 3));
    assert_eq!((consumer.partitions_to_revoke, consumer.partitions_to_assign), (3, 3));
    let states: Vec<MemberState> = group
        .members
        .iter()
        .map(|member| member.consumer.as_ref().expect("one").state)
        .collect();
    assert_eq!(
        states,
        [MemberState::UnrevokedPartitions, MemberState::UnreleasedPartitions]
    );
}

fn live() -> UpstreamGroup {
    UpstreamGroup {
        presence: Presence::Live {
            group_type: "consumer".into(),
            protocol_type: "consumer".into(),
            state: "Stable".into(),
        },
        offsets: Vec::new(),
    }
}

#[test]
fn members_that_the_upstream_has_go_on_there() {
    let mut test = shard();
    test.upstream = Some(Ok(live()));
    for epoch in [5, -1] {
        let ticket = test.send_beat(beat_of("a", epoch));
        assert_eq!(test.reply(ticket), Response::NotOwned);
    }
    assert_eq!(test.beat_error(join_of("a")), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    assert!(test.records.is_empty());
    test.advance_ms(40_000);
    assert_eq!(test.beat_error(join_of("a")), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    assert!(
        test.events
            .iter()
            .any(|event| matches!(event, Event::TakeoverRefused { .. }))
    );
}

#[test]
fn a_group_that_is_met_first_by_a_heartbeat_is_asked_about_and_taken_over() {
    let mut test = shard();
    test.upstream = None;
    let ticket = test.send_beat(join_of("a"));
    assert!(!test.is_answered(ticket));
    assert_eq!(test.inspected, ["g".into()]);
    let group_id = "g".into();
    let result = Ok(super::requests::vacant());
    test.input(crate::coordinator::input::Input::Inspected { group_id, result });
    assert_eq!(test.beat_reply(ticket).member_epoch, 2);
    assert!(
        test.events
            .iter()
            .any(|event| matches!(event, Event::GroupTakenOver { .. }))
    );
}
