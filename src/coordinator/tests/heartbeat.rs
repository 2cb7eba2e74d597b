//! Heartbeats and sessions.

use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{SESSION_MS, commit_as, commit_of, join_as, old_join, static_join};
use crate::coordinator::event::{Event, RebalanceReason};
use crate::coordinator::request::{HeartbeatRequest, Request, Response};
use crate::wire::error_code::ErrorCode;

const SESSION: u64 = SESSION_MS as u64;

#[test]
fn a_heartbeat_in_an_absent_or_empty_group_is_of_an_unknown_member() {
    // 53
    let mut test = GroupTest::new();
    assert_eq!(test.heartbeat(&"m".into(), 0), ErrorCode::UNKNOWN_MEMBER_ID);
    let ids = test.stable_group(1);
    test.leave(&[(&ids[0], None)]);
    assert_eq!(&*test.state(), "Empty");
    assert_eq!(test.heartbeat(&ids[0], 2), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_heartbeat_without_a_group_id_is_refused() {
    let mut test = GroupTest::new();
    let request = HeartbeatRequest {
        group_id: "".into(),
        generation_id: 1,
        member_id: "m".into(),
        group_instance_id: None,
    };
    assert_eq!(test.heartbeat_of(request), ErrorCode::INVALID_GROUP_ID);
}

#[test]
fn a_heartbeat_of_another_generation_is_refused() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
    assert_eq!(test.heartbeat(&ids[0], 0), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(test.heartbeat(&ids[0], 2), ErrorCode::ILLEGAL_GENERATION);
}

#[test]
fn a_heartbeat_is_fine_while_the_leader_still_assigns() {
    // 53
    let mut test = GroupTest::new();
    let ticket = test.join(old_join());
    test.advance_ms(INITIAL_DELAY_MS);
    let id = test.joined(ticket).member_id;
    assert_eq!(&*test.state(), "CompletingRebalance");
    assert_eq!(test.heartbeat(&id, 1), ErrorCode::NONE);
}

#[test]
fn a_heartbeat_in_the_join_phase_calls_the_member_to_rejoin_and_extends_its_session() {
    // 53
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    test.join(join_as(&ids[0]));
    for _ in 0..4 {
        test.advance_ms(SESSION / 2);
        assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::REBALANCE_IN_PROGRESS);
    }
}

#[test]
fn a_member_that_falls_silent_is_taken_out_at_its_session_timeout_and_the_others_rejoin() {
    // 55
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    test.advance_ms(SESSION - 1);
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
    assert_eq!(&*test.state(), "Stable");
    test.advance_ms(1);
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(test.events.contains(&Event::MemberRemoved {
        group_id: "g".into(),
        member_id: ids[1].clone(),
        group_instance_id: None,
        client_id: "client".into(),
        client_host: "/10.0.0.1".into(),
        reason: RebalanceReason::SessionExpired,
        client_reason: None,
    }));
    let rejoined = test.join(join_as(&ids[0]));
    assert_eq!(test.joined(rejoined).members.len(), 1);
}

#[test]
fn a_session_that_a_heartbeat_extended_does_not_end_at_its_first_deadline() {
    // 150
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    test.advance_ms(SESSION / 2);
    test.heartbeat(&ids[0], 1);
    test.advance_ms(SESSION - 1);
    assert_eq!(&*test.state(), "Stable");
    test.advance_ms(1);
    assert_eq!(&*test.state(), "Empty");
}

#[test]
fn a_member_that_falls_silent_in_the_join_phase_holds_up_nobody() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let leader = test.join(join_as(&ids[0]));
    test.advance_ms(SESSION);
    assert_eq!(test.joined(leader).members.len(), 1);
}

#[test]
fn a_commit_shows_that_its_member_lives() {
    // 56
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    for offset in 0..4 {
        test.advance_ms(SESSION / 2);
        assert_eq!(test.commit(commit_as(&ids[0], 1, offset)), [ErrorCode::NONE]);
    }
    assert_eq!(&*test.state(), "Stable");
}

#[test]
fn a_refused_commit_shows_nothing() {
    // 56
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    test.advance_ms(SESSION / 2);
    assert_eq!(test.commit(commit_as(&ids[0], 0, 1)), [ErrorCode::ILLEGAL_GENERATION]);
    assert_eq!(test.commit(commit_of(1)), [ErrorCode::UNKNOWN_MEMBER_ID]);
    test.advance_ms(SESSION / 2);
    assert_eq!(&*test.state(), "Empty");
}

#[test]
fn after_a_stall_of_the_process_every_session_begins_anew() {
    let mut test = GroupTest::new();
    let ids = test.form(vec![old_join(), old_join(), static_join("i")]);
    test.stall_ms(10 * SESSION);
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
    assert!(test.events.contains(&Event::SessionsRenewed {
        gap_ms: 10 * SESSION,
        members: 3,
    }));
    test.advance_ms(SESSION - 1);
    assert_eq!(&*test.state(), "Stable");
    test.advance_ms(1);
    assert_eq!(&*test.state(), "Empty");
}

#[test]
fn after_a_stall_in_the_join_phase_everybody_has_the_whole_timeout_to_rejoin() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let leader = test.join(join_as(&ids[0]));
    test.stall_ms(10 * SESSION);
    assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::REBALANCE_IN_PROGRESS);
    test.join(join_as(&ids[1]));
    assert_eq!(test.joined(leader).members.len(), 2);
}

#[test]
fn a_step_that_comes_a_little_late_renews_nothing() {
    let mut test = GroupTest::new();
    test.stable_group(1);
    test.advance_ms(SESSION - 3_000);
    test.stall_ms(3_000);
    assert_eq!(&*test.state(), "Empty");
}

#[test]
fn a_store_that_stands_still_throws_nobody_out() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    test.store_is_prompt = false;
    test.send(Request::OffsetCommit(commit_as(&ids[0], 1, 5)));
    let heartbeat = Request::Heartbeat(HeartbeatRequest {
        group_id: "g".into(),
        generation_id: 1,
        member_id: ids[1].clone(),
        group_instance_id: None,
    });
    let waiting = test.send(heartbeat);
    test.advance_ms(10 * SESSION);
    let error = ErrorCode::COORDINATOR_NOT_AVAILABLE;
    assert_eq!(test.reply(waiting), Response::Unavailable { error });
    test.sync_store();
    assert!(test.events.contains(&Event::SessionsRenewed {
        gap_ms: 10 * SESSION,
        members: 2,
    }));
    test.advance_ms(SESSION - 1);
    assert_eq!(&*test.state(), "Stable");
    test.advance_ms(1);
    assert_eq!(&*test.state(), "Empty");
}
