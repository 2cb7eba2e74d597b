//! Static members (KIP-345, KIP-814).

use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{REBALANCE_MS, SESSION_MS, commit_as, join_as, old_join, protocols, static_join, sync_as};
use crate::coordinator::event::{Event, RebalanceReason};
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{HeartbeatRequest, JoinGroupRequest, OffsetCommitRequest, SyncGroupRequest, Text};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

/// A static member by a client below v9.
fn old_static_join(instance_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        supports_skipping_assignment: false,
        ..static_join(instance_id)
    }
}

/// A Stable group of the static members "i0" and "i1"; the first of them leads.
fn static_group() -> (GroupTest, Vec<Text>) {
    let mut test = GroupTest::new();
    let ids = test.form(vec![static_join("i0"), static_join("i1")]);
    (test, ids)
}

fn heartbeat_of(test: &mut GroupTest, member_id: &Text, instance_id: &str) -> ErrorCode {
    test.heartbeat_of(HeartbeatRequest {
        group_id: "g".into(),
        generation_id: 1,
        member_id: member_id.clone(),
        group_instance_id: Some(instance_id.into()),
    })
}

#[test]
fn a_static_member_joins_at_once_with_an_id_made_of_its_instance() {
    // 30
    let mut test = GroupTest::new();
    let ticket = test.join(static_join("i0"));
    assert!(!test.is_answered(ticket));
    test.advance_ms(INITIAL_DELAY_MS);
    let joined = test.joined(ticket);
    assert!(joined.member_id.starts_with("i0-"), "{}", joined.member_id);
    assert_eq!(joined.generation_id, 1);
    assert_eq!(joined.members[0].group_instance_id.as_deref(), Some("i0"));
}

#[test]
fn a_leader_that_returns_is_told_to_skip_the_assignment_and_nobody_else_notices() {
    // 31
    let (mut test, ids) = static_group();
    test.events.clear();
    let ticket = test.join(static_join("i0"));
    let joined = test.joined(ticket);
    assert_ne!(joined.member_id, ids[0]);
    assert_eq!((joined.generation_id, joined.skip_assignment), (1, true));
    assert_eq!(joined.leader, joined.member_id);
    assert_eq!(joined.members.len(), 2);
    assert_eq!(test.events, []);
    assert_eq!(heartbeat_of(&mut test, &ids[1], "i1"), ErrorCode::NONE);
    let sync = test.sync(sync_as(&joined.member_id, 1));
    assert_eq!(test.sync_reply(sync).assignment, "a0");
}

#[test]
fn a_leader_of_an_old_client_that_returns_takes_itself_for_a_follower() {
    // 32
    let (mut test, ids) = static_group();
    let ticket = test.join(old_static_join("i0"));
    let joined = test.joined(ticket);
    assert_eq!((joined.generation_id, joined.skip_assignment), (1, false));
    assert_eq!(joined.leader, ids[0]);
    assert_eq!(joined.members, []);
}

#[test]
fn a_follower_that_returns_is_told_the_leader() {
    // 33
    let (mut test, ids) = static_group();
    let ticket = test.join(static_join("i1"));
    let joined = test.joined(ticket);
    assert_eq!((joined.generation_id, joined.skip_assignment), (1, false));
    assert_eq!(joined.leader, ids[0]);
    assert_eq!(joined.members, []);
}

#[test]
fn the_new_id_and_the_old_assignment_of_a_member_that_returned_survive_a_restart() {
    let (mut test, _) = static_group();
    let ticket = test.join(static_join("i1"));
    let id = test.joined(ticket).member_id;
    let mut test = test.restarted();
    assert_eq!(heartbeat_of(&mut test, &id, "i1"), ErrorCode::NONE);
    let sync = test.sync(sync_as(&id, 1));
    assert_eq!(test.sync_reply(sync).assignment, "a1");
}

#[test]
fn a_return_that_changes_the_selected_protocol_rebalances() {
    // 34
    let mut test = GroupTest::new();
    let both = |instance_id| JoinGroupRequest {
        protocols: protocols(&["range", "sticky"]),
        ..static_join(instance_id)
    };
    let ids = test.form(vec![both("i0"), both("i1")]);
    let ticket = test.join(JoinGroupRequest {
        protocols: protocols(&["sticky"]),
        ..static_join("i1")
    });
    assert!(!test.is_answered(ticket));
    assert_eq!(&*test.state(), "PreparingRebalance");
    assert_eq!(heartbeat_of(&mut test, &ids[0], "i0"), ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(test.events.iter().any(|event| matches!(
        event,
        Event::RebalanceStarted {
            reason: RebalanceReason::StaticMemberReplaced,
            ..
        }
    )));
}

#[test]
fn a_return_that_does_not_become_durable_leaves_the_old_member() {
    // 35
    let (mut test, ids) = static_group();
    let before = test.records.clone();
    test.store_is_prompt = false;
    let ticket = test.join(static_join("i1"));
    assert!(!test.is_answered(ticket));
    assert!(test.unload(ErrorCode::COORDINATOR_NOT_AVAILABLE).contains_key(&ticket));
    let mut test = GroupTest::loaded_from(Settings::default(), &before);
    assert_eq!(heartbeat_of(&mut test, &ids[1], "i1"), ErrorCode::NONE);
}

#[test]
fn the_former_self_of_a_member_that_returned_is_fenced() {
    // 36
    let (mut test, ids) = static_group();
    let ticket = test.join(static_join("i1"));
    let id = test.joined(ticket).member_id;
    let fenced = ErrorCode::FENCED_INSTANCE_ID;
    assert_eq!(heartbeat_of(&mut test, &ids[1], "i1"), fenced);
    let sync = test.sync(SyncGroupRequest {
        group_instance_id: Some("i1".into()),
        ..sync_as(&ids[1], 1)
    });
    assert_eq!(test.sync_reply(sync).error, fenced);
    let commit = OffsetCommitRequest {
        group_instance_id: Some("i1".into()),
        ..commit_as(&ids[1], 1, 1)
    };
    assert_eq!(test.commit(commit), [fenced]);
    assert_eq!(test.leave(&[(&ids[1], Some("i1"))]), [fenced]);
    let rejoin = test.join(JoinGroupRequest {
        member_id: ids[1].clone(),
        ..static_join("i1")
    });
    assert_eq!(test.join_reply(rejoin).error, fenced);
    assert_eq!(heartbeat_of(&mut test, &id, "i1"), ErrorCode::NONE);
}

#[test]
fn of_two_that_claim_an_instance_the_later_one_keeps_it_while_joins_are_parked() {
    // 37
    let mut test = GroupTest::new();
    let first = test.join(static_join("i0"));
    let second = test.join(static_join("i0"));
    assert_eq!(test.join_reply(first).error, ErrorCode::FENCED_INSTANCE_ID);
    assert!(!test.is_answered(second));
    test.advance_ms(2 * INITIAL_DELAY_MS);
    assert_eq!(test.joined(second).members.len(), 1);
}

#[test]
fn a_member_that_returns_while_its_join_is_parked_may_wait_longer_than_its_session() {
    let mut test = GroupTest::with_settings(Settings {
        group_initial_rebalance_delay_ms: 2 * SESSION_MS,
        ..Settings::default()
    });
    test.join(static_join("i0"));
    let second = test.join(static_join("i0"));
    test.advance_ms(2 * SESSION_MS as u64);
    assert_eq!(test.joined(second).generation_id, 1);
}

#[test]
fn of_two_that_claim_an_instance_the_later_one_starts_a_new_round_while_the_assignment_is_awaited() {
    // 38
    let mut test = GroupTest::new();
    let tickets: [Ticket; 2] = ["i0", "i1"].map(|instance_id| test.join(static_join(instance_id)));
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let [leader, follower] = tickets.map(|ticket| test.joined(ticket).member_id);
    let parked = test.sync(sync_as(&follower, 1));
    let returned = test.join(static_join("i1"));
    assert_eq!(test.sync_reply(parked).error, ErrorCode::FENCED_INSTANCE_ID);
    assert!(!test.is_answered(returned));
    assert_eq!(&*test.state(), "PreparingRebalance");
    let rejoined = test.join(join_as(&leader));
    assert_eq!(test.joined(rejoined).generation_id, 2);
    assert_eq!(test.joined(returned).generation_id, 2);
}

#[test]
fn an_instance_of_an_empty_group_is_unknown() {
    // 39
    let (mut test, ids) = static_group();
    test.leave(&[(&ids[0], Some("i0")), (&ids[1], Some("i1"))]);
    assert_eq!(&*test.state(), "Empty");
    let ticket = test.join(JoinGroupRequest {
        member_id: ids[0].clone(),
        ..static_join("i0")
    });
    assert_eq!(test.join_reply(ticket).error, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_silent_static_member_keeps_its_place_and_gets_an_assignment() {
    // 41
    let mut test = GroupTest::new();
    let patient = JoinGroupRequest {
        session_timeout_ms: 10 * REBALANCE_MS,
        ..static_join("i")
    };
    let ids = test.form(vec![old_join(), patient]);
    let leader = test.join(join_as(&ids[0]));
    test.advance_ms(REBALANCE_MS as u64);
    let joined = test.joined(leader);
    assert_eq!(joined.generation_id, 2);
    assert_eq!(joined.members.len(), 2);
    let sync = test.sync(SyncGroupRequest {
        assignments: vec![(ids[0].clone(), "x".into()), (ids[1].clone(), "y".into())],
        ..sync_as(&ids[0], 2)
    });
    assert_eq!(test.sync_reply(sync).assignment, "x");
    let late = test.sync(sync_as(&ids[1], 2));
    assert_eq!(test.sync_reply(late).assignment, "y");
}

#[test]
fn an_administrator_takes_static_members_out_by_their_instance() {
    // 42
    let (mut test, ids) = static_group();
    test.events.clear();
    let errors = test.leave(&[("", Some("i1")), ("", Some("stranger")), ("", None)]);
    let unknown = ErrorCode::UNKNOWN_MEMBER_ID;
    assert_eq!(errors, [ErrorCode::NONE, unknown, unknown]);
    let reasons: Vec<RebalanceReason> = test
        .events
        .iter()
        .filter_map(|event| match event {
            Event::RebalanceStarted { reason, .. } | Event::MemberRemoved { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [RebalanceReason::MemberRemovedByAdmin; 2]);
    assert_eq!(heartbeat_of(&mut test, &ids[0], "i0"), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn leaving_with_the_instance_of_another_is_fenced_for_that_entry_alone() {
    // 43
    let (mut test, ids) = static_group();
    let errors = test.leave(&[(&ids[0], Some("i1")), (&ids[1], Some("i1"))]);
    assert_eq!(errors, [ErrorCode::FENCED_INSTANCE_ID, ErrorCode::NONE]);
}

#[test]
fn a_static_leader_that_rejoins_with_its_id_starts_a_rebalance() {
    let (mut test, ids) = static_group();
    let ticket = test.join(JoinGroupRequest {
        member_id: ids[0].clone(),
        ..static_join("i0")
    });
    assert!(!test.is_answered(ticket));
    assert_eq!(&*test.state(), "PreparingRebalance");
}

#[test]
fn a_static_member_returns_to_its_place_in_a_full_group() {
    let mut test = GroupTest::with_settings(Settings {
        group_max_size: 2,
        ..Settings::default()
    });
    test.form(vec![static_join("i0"), static_join("i1")]);
    let third = test.join(static_join("i2"));
    assert_eq!(test.join_reply(third).error, ErrorCode::GROUP_MAX_SIZE_REACHED);
    let returned = test.join(static_join("i1"));
    assert_eq!(test.joined(returned).generation_id, 1);
}

#[test]
fn the_session_of_a_member_that_returned_is_its_own_and_the_old_one_ends_quietly() {
    let (mut test, ids) = static_group();
    test.advance_ms(SESSION_MS as u64 / 2);
    let ticket = test.join(static_join("i1"));
    let id = test.joined(ticket).member_id;
    heartbeat_of(&mut test, &ids[0], "i0");
    test.advance_ms(SESSION_MS as u64 - 1);
    assert_eq!(heartbeat_of(&mut test, &id, "i1"), ErrorCode::NONE);
}

#[test]
fn a_member_that_returned_and_falls_silent_is_taken_out_at_its_session_timeout() {
    let (mut test, ids) = static_group();
    test.advance_ms(SESSION_MS as u64 / 2);
    let ticket = test.join(static_join("i1"));
    let id = test.joined(ticket).member_id;
    heartbeat_of(&mut test, &ids[0], "i0");
    test.advance_ms(SESSION_MS as u64 - 1);
    heartbeat_of(&mut test, &ids[0], "i0");
    assert_eq!(&*test.state(), "Stable");
    test.advance_ms(1);
    assert_eq!(heartbeat_of(&mut test, &id, "i1"), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_member_that_returned_must_still_sync_in_time() {
    let mut test = GroupTest::new();
    let tickets: [Ticket; 2] = ["i0", "i1"].map(|instance_id| test.join(static_join(instance_id)));
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let [leader, _] = tickets.map(|ticket| test.joined(ticket).member_id);
    test.sync(sync_as(&leader, 1));
    let returned = test.join(static_join("i1"));
    let id = test.joined(returned).member_id;
    for _ in 0..REBALANCE_MS / 5_000 {
        test.advance_ms(5_000);
        heartbeat_of(&mut test, &leader, "i0");
        heartbeat_of(&mut test, &id, "i1");
    }
    assert_eq!(heartbeat_of(&mut test, &id, "i1"), ErrorCode::UNKNOWN_MEMBER_ID);
}
