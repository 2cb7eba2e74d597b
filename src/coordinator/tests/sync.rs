//! SyncGroup.

use bytes::Bytes;

use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{REBALANCE_MS, join_as, old_join, protocols, sync_as};
use crate::coordinator::event::{Event, RebalanceReason};
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{JoinGroupRequest, SyncGroupRequest, Text};
use crate::wire::error_code::ErrorCode;

/// A group whose members have joined and not synced.
fn completing(test: &mut GroupTest, size: usize) -> Vec<Text> {
    let tickets: Vec<Ticket> = (0..size).map(|_| test.join(old_join())).collect();
    test.advance_ms(2 * INITIAL_DELAY_MS);
    assert_eq!(&*test.state(), "CompletingRebalance");
    tickets
        .into_iter()
        .map(|ticket| test.joined(ticket).member_id)
        .collect()
}

fn leader_sync(member_id: &Text, generation_id: i32, assignments: &[(&Text, &'static str)]) -> SyncGroupRequest {
    let assignments = assignments.iter();
    let assignments = assignments.map(|(id, assignment)| ((*id).clone(), Bytes::from_static(assignment.as_bytes())));
    SyncGroupRequest {
        assignments: assignments.collect(),
        ..sync_as(member_id, generation_id)
    }
}

#[test]
fn a_member_the_leader_forgot_gets_an_empty_assignment_and_strangers_are_ignored() {
    // 44
    let mut test = GroupTest::new();
    let ids = completing(&mut test, 2);
    let stranger = Text::from("stranger");
    let leader = test.sync(leader_sync(&ids[0], 1, &[(&ids[0], "mine"), (&stranger, "theirs")]));
    let follower = test.sync(sync_as(&ids[1], 1));
    assert_eq!(test.sync_reply(leader).assignment, "mine");
    assert_eq!(test.sync_reply(follower).assignment, "");
    let written: Vec<_> = test
        .last_metadata()
        .expect("a value")
        .members
        .iter()
        .map(|member| &member.member_id)
        .collect();
    assert_eq!(written, [&ids[0], &ids[1]]);
}

#[test]
fn a_follower_that_syncs_first_waits_for_the_leader() {
    // 45
    let mut test = GroupTest::new();
    let ids = completing(&mut test, 2);
    let follower = test.sync(sync_as(&ids[1], 1));
    assert!(!test.is_answered(follower));
    assert_eq!(test.view().parked_syncs, 1);
    let leader = test.sync(leader_sync(&ids[0], 1, &[(&ids[0], "a"), (&ids[1], "b")]));
    assert_eq!(test.sync_reply(leader).assignment, "a");
    assert_eq!(test.sync_reply(follower).assignment, "b");
}

#[test]
fn a_sync_of_another_generation_of_a_stranger_or_during_the_join_phase_is_refused() {
    // 46
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let error = |test: &mut GroupTest, request| {
        let ticket = test.sync(request);
        test.sync_reply(ticket).error
    };
    assert_eq!(error(&mut test, sync_as(&ids[1], 0)), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(
        error(&mut test, sync_as(&"stranger".into(), 1)),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    test.join(join_as(&ids[0]));
    assert_eq!(&*test.state(), "PreparingRebalance");
    assert_eq!(error(&mut test, sync_as(&ids[1], 1)), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn a_sync_in_an_absent_or_empty_group_is_of_an_unknown_member() {
    let mut test = GroupTest::new();
    let ticket = test.sync(sync_as(&"m".into(), 0));
    assert_eq!(test.sync_reply(ticket).error, ErrorCode::UNKNOWN_MEMBER_ID);
    test.member_id();
    assert_eq!(&*test.state(), "Empty");
    let ticket = test.sync(sync_as(&"m".into(), 0));
    assert_eq!(test.sync_reply(ticket).error, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_sync_without_a_group_id_is_refused() {
    let mut test = GroupTest::new();
    let ticket = test.sync(SyncGroupRequest {
        group_id: "".into(),
        ..sync_as(&"m".into(), 0)
    });
    assert_eq!(test.sync_reply(ticket).error, ErrorCode::INVALID_GROUP_ID);
}

#[test]
fn a_sync_that_names_another_protocol_is_refused_and_a_good_one_is_told_the_groups() {
    // 48
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    let named = |protocol_type: &str, protocol_name: &str| SyncGroupRequest {
        protocol_type: Some(protocol_type.into()),
        protocol_name: Some(protocol_name.into()),
        ..sync_as(&ids[0], 1)
    };
    for (protocol_type, protocol_name) in [("connect", "range"), ("consumer", "roundrobin")] {
        let ticket = test.sync(named(protocol_type, protocol_name));
        assert_eq!(test.sync_reply(ticket).error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    }
    let ticket = test.sync(named("consumer", "range"));
    let reply = test.sync_reply(ticket);
    assert_eq!(reply.error, ErrorCode::NONE);
    assert_eq!(reply.protocol_type.as_deref(), Some("consumer"));
    assert_eq!(reply.protocol_name.as_deref(), Some("range"));
    assert_eq!(reply.assignment, "a0");
}

#[test]
fn a_follower_that_never_syncs_is_taken_out_at_the_rebalance_timeout() {
    // 49
    let mut test = GroupTest::new();
    let ids = completing(&mut test, 2);
    let leader = test.sync(leader_sync(&ids[0], 1, &[]));
    assert_eq!(test.sync_reply(leader).error, ErrorCode::NONE);
    for _ in 0..6 {
        test.advance_ms(5_000);
        let leader = test.heartbeat(&ids[0], 1);
        let follower = test.heartbeat(&ids[1], 1);
        if follower == ErrorCode::UNKNOWN_MEMBER_ID {
            assert_eq!(leader, ErrorCode::REBALANCE_IN_PROGRESS);
        }
    }
    assert_eq!(&*test.state(), "PreparingRebalance");
    assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(test.events.iter().any(|event| matches!(
        event,
        Event::MemberRemoved { member_id, reason: RebalanceReason::SyncTimedOut, .. } if *member_id == ids[1]
    )));
}

#[test]
fn a_leader_that_never_syncs_is_taken_out_and_the_parked_follower_sent_back_to_join() {
    // 49
    let mut test = GroupTest::new();
    let ids = completing(&mut test, 2);
    let follower = test.sync(sync_as(&ids[1], 1));
    for _ in 0..6 {
        test.advance_ms(5_000);
        test.heartbeat(&ids[0], 1);
    }
    assert_eq!(test.sync_reply(follower).error, ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::UNKNOWN_MEMBER_ID);
    let rejoined = test.join(join_as(&ids[1]));
    assert_eq!(test.joined(rejoined).leader, ids[1]);
}

#[test]
fn once_everybody_has_synced_the_sync_timeout_passes_unnoticed() {
    // 50
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    for _ in 0..2 * REBALANCE_MS / 5_000 {
        test.advance_ms(5_000);
        assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
        assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::NONE);
    }
}

#[test]
fn a_join_before_the_assignment_is_durable_starts_a_new_round_and_the_syncs_still_get_their_answers() {
    // 52
    let mut test = GroupTest::new();
    let ids = completing(&mut test, 2);
    let newcomer = test.member_id();
    test.store_is_prompt = false;
    let follower = test.sync(sync_as(&ids[1], 1));
    let leader = test.sync(leader_sync(&ids[0], 1, &[(&ids[0], "a"), (&ids[1], "b")]));
    test.join(join_as(&newcomer));
    assert_eq!(&*test.state(), "PreparingRebalance");
    assert!(!test.is_answered(leader) && !test.is_answered(follower));
    test.sync_store();
    assert_eq!(test.sync_reply(leader).assignment, "a");
    assert_eq!(test.sync_reply(follower).assignment, "b");
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn completing_a_parked_sync_begins_the_session_anew() {
    let mut test = GroupTest::new();
    let ids = completing(&mut test, 2);
    test.advance_ms(2_000);
    let follower = test.sync(sync_as(&ids[1], 1));
    // A parked member's session may run out; it is not silent.
    for _ in 0..4 {
        test.advance_ms(5_000);
        assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
    }
    test.sync(leader_sync(&ids[0], 1, &[]));
    assert_eq!(test.sync_reply(follower).error, ErrorCode::NONE);
    test.advance_ms(9_999);
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
    test.advance_ms(1);
    assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_second_sync_of_a_parked_member_takes_the_place_of_the_first() {
    let mut test = GroupTest::new();
    let ids = completing(&mut test, 2);
    let first = test.sync(sync_as(&ids[1], 1));
    let second = test.sync(sync_as(&ids[1], 1));
    assert_eq!(test.sync_reply(first).error, ErrorCode::REBALANCE_IN_PROGRESS);
    test.sync(leader_sync(&ids[0], 1, &[(&ids[1], "b")]));
    assert_eq!(test.sync_reply(second).assignment, "b");
}

#[test]
fn a_leader_that_syncs_again_in_stable_gets_its_assignment_and_changes_nothing() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let written = test.records.len();
    let again = test.sync(leader_sync(&ids[0], 1, &[(&ids[0], "other")]));
    assert_eq!(test.sync_reply(again).assignment, "a0");
    assert_eq!(test.records.len(), written);
}

#[test]
fn reaching_stable_tells_how_long_the_group_was_without_assignment() {
    let mut test = GroupTest::new();
    let ticket = test.join(JoinGroupRequest {
        reason: Some("first start".into()),
        ..old_join()
    });
    test.advance_ms(INITIAL_DELAY_MS);
    let id = test.joined(ticket).member_id;
    test.advance_ms(500);
    test.sync(leader_sync(&id, 1, &[]));
    assert!(test.events.contains(&Event::RebalanceStarted {
        group_id: "g".into(),
        generation_id: 0,
        reason: RebalanceReason::MemberJoined,
        member_id: Some(id),
        client_reason: Some("first start".into()),
    }));
    assert!(test.events.contains(&Event::RebalanceCompleted {
        group_id: "g".into(),
        generation_id: 1,
        members: 1,
        took_ms: 3_500,
    }));
}

/// How long each rebalance took that reached Stable.
fn durations(test: &GroupTest) -> Vec<u64> {
    let took = |event: &Event| match event {
        Event::RebalanceCompleted { took_ms, .. } => Some(*took_ms),
        _ => None,
    };
    test.events.iter().filter_map(took).collect()
}

#[test]
fn rounds_that_follow_each_other_without_an_assignment_are_one_rebalance() {
    let mut test = GroupTest::new();
    let ids = completing(&mut test, 2);
    test.advance_ms(1_000);
    let changed = JoinGroupRequest {
        protocols: protocols(&["range", "sticky"]),
        ..join_as(&ids[0])
    };
    test.join(changed);
    test.join(join_as(&ids[1]));
    test.sync(leader_sync(&ids[0], 2, &[]));
    assert_eq!(durations(&test), [2 * INITIAL_DELAY_MS + 1_000]);
}

#[test]
fn the_time_that_a_group_was_empty_is_not_part_of_its_next_rebalance() {
    let mut test = GroupTest::new();
    let ids = completing(&mut test, 1);
    test.leave(&[(&ids[0], None)]);
    assert_eq!(&*test.state(), "Empty");
    test.advance_ms(60_000);
    let ticket = test.join(old_join());
    test.advance_ms(INITIAL_DELAY_MS);
    let id = test.joined(ticket).member_id;
    test.sync(leader_sync(&id, 3, &[]));
    assert_eq!(durations(&test), [INITIAL_DELAY_MS]);
}
