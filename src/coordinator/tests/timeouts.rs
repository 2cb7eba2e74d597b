//! How long a group waits, where clients ask for very little, for very much, or for nothing at all.

use super::group_test::GroupTest;
use super::requests::{SESSION_MS, join_as, old_join, protocols, static_join};
use crate::coordinator::request::{JoinGroupRequest, Text};
use crate::wire::error_code::ErrorCode;

const SESSION: u64 = SESSION_MS as u64;

/// A first join that wants to be waited for so long.
fn waiting(rebalance_timeout_ms: i32, request: JoinGroupRequest) -> JoinGroupRequest {
    JoinGroupRequest {
        rebalance_timeout_ms,
        ..request
    }
}

/// As JoinGroup v0 is read, which knows of one timeout only.
#[test]
fn members_that_know_only_sessions_settle_and_are_waited_for_no_longer_than_one() {
    let mut test = GroupTest::new();
    let v0 = |request| waiting(SESSION_MS, request);
    let ids = test.form(vec![v0(old_join()), v0(old_join())]);
    for _ in 0..12 {
        test.advance_ms(5_000);
        assert_eq!(
            [test.heartbeat(&ids[0], 1), test.heartbeat(&ids[1], 1)],
            [ErrorCode::NONE; 2]
        );
    }
    let rejoined = test.join(v0(join_as(&ids[0])));
    for _ in 0..9 {
        test.advance_ms(1_000);
        assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert!(!test.is_answered(rejoined));
    test.advance_ms(1_000);
    assert_eq!(test.joined(rejoined).members.len(), 1);
    assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn waiting_for_as_long_as_a_number_can_say_overflows_nothing() {
    let endless = |request| JoinGroupRequest {
        session_timeout_ms: 1_800_000,
        ..waiting(i32::MAX, request)
    };
    let mut test = GroupTest::new();
    let ids = test.form(vec![endless(old_join()), endless(old_join())]);
    let mut test = test.restarted();
    let newcomer = test.join(endless(old_join()));
    let leader = test.join(endless(join_as(&ids[0])));
    for _ in 0..4 {
        test.advance_ms(1_000_000);
        assert_eq!(
            test.heartbeat(&ids[1], 1),
            ErrorCode::REBALANCE_IN_PROGRESS,
            "nobody is thrown out"
        );
        assert!(!test.is_answered(leader));
        if test.is_answered(newcomer) {
            assert_eq!(
                test.join_reply(newcomer).error,
                ErrorCode::UNKNOWN_MEMBER_ID,
                "a first join has its five minutes"
            );
        }
    }
    test.join(endless(join_as(&ids[1])));
    assert_eq!(test.joined(leader).members.len(), 2);
}

#[test]
fn a_static_member_that_returns_with_less_patience_is_waited_for_no_longer_than_that() {
    for restarts in [false, true] {
        let mut test = GroupTest::new();
        let static_member = |rebalance_timeout_ms| JoinGroupRequest {
            session_timeout_ms: 600_000,
            ..waiting(rebalance_timeout_ms, static_join("i"))
        };
        test.form(vec![static_member(300_000)]);
        let returned = test.join(static_member(5_000));
        assert_eq!(test.joined(returned).generation_id, 1);
        if restarts {
            test = test.restarted();
        }
        let newcomer = test.join(waiting(5_000, old_join()));
        test.advance_ms(4_999);
        assert!(!test.is_answered(newcomer));
        test.advance_ms(1);
        assert_eq!(test.joined(newcomer).members.len(), 2);
    }
}

#[test]
fn a_member_has_its_whole_session_from_the_answer_to_its_join_on() {
    let mut test = GroupTest::new();
    let hasty = |request| JoinGroupRequest {
        session_timeout_ms: 6_000,
        ..waiting(6_000, request)
    };
    let ids = test.form(vec![hasty(old_join()), hasty(old_join())]);
    let follower = test.join(JoinGroupRequest {
        protocols: protocols(&["range", "sticky"]),
        ..hasty(join_as(&ids[1]))
    });
    test.advance_ms(3_000);
    test.heartbeat(&ids[0], 1);
    test.advance_ms(2_900);
    test.join(hasty(join_as(&ids[0])));
    assert_eq!(test.joined(follower).generation_id, 2);
    test.advance_ms(5_900);
    assert_eq!(test.heartbeat(&ids[1], 2), ErrorCode::NONE);
}

#[test]
fn joining_again_and_again_does_not_make_the_round_longer() {
    let mut test = GroupTest::new();
    let slow = |request| waiting(60_000, request);
    let ids: Vec<Text> = test.form(vec![slow(old_join()), slow(old_join())]);
    let mut last = test.join(slow(join_as(&ids[0])));
    for _ in 0..5 {
        for _ in 0..2 {
            test.advance_ms(5_000);
            test.heartbeat(&ids[1], 1);
        }
        // Its client has given the connection up.
        let next = test.join(slow(join_as(&ids[0])));
        assert_eq!(test.join_reply(last).error, ErrorCode::REBALANCE_IN_PROGRESS);
        assert_eq!((test.view().parked_joins, test.view().groups[0].members.len()), (1, 2));
        last = next;
    }
    test.advance_ms(5_000);
    test.heartbeat(&ids[1], 1);
    assert!(!test.is_answered(last));
    test.advance_ms(5_000);
    assert_eq!(test.joined(last).members.len(), 1);
}

/// Two members of which the second does not hear for long that the leader is still computing.
#[test]
fn heartbeats_while_the_leader_computes_keep_sessions_alive_and_start_nothing() {
    let mut test = GroupTest::new();
    let tickets = [test.join(old_join()), test.join(old_join())];
    test.advance_ms(6_000);
    let ids = tickets.map(|ticket| test.joined(ticket).member_id);
    for _ in 0..10 {
        test.advance_ms(SESSION / 4);
        assert_eq!(
            [test.heartbeat(&ids[0], 1), test.heartbeat(&ids[1], 1)],
            [ErrorCode::NONE; 2]
        );
    }
    assert_eq!(&*test.state(), "CompletingRebalance");
    test.sync_all(&ids, 1);
    assert_eq!(test.generation_id(), 1);
}
