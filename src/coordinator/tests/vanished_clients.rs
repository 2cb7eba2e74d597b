//! Clients that go away in the middle of something, come back as somebody else, or never come back. A connection that closes
//! is no news to a group: what is seen is that nobody speaks any more.

use std::collections::BTreeSet;

use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{SESSION_MS, commit_as, commit_of, join_as, old_join, sync_as};
use crate::coordinator::event::Event;
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{JoinGroupMember, JoinGroupRequest, Text};
use crate::wire::error_code::ErrorCode;

const SESSION: u64 = SESSION_MS as u64;

/// A first join of a group of this type by a client below v4.
fn join_of_type(protocol_type: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        protocol_type: protocol_type.into(),
        ..old_join()
    }
}

/// The same of a known member.
fn rejoin_of_type(protocol_type: &str, member_id: &Text) -> JoinGroupRequest {
    JoinGroupRequest {
        protocol_type: protocol_type.into(),
        ..join_as(member_id)
    }
}

fn ids_of(members: &[JoinGroupMember]) -> Vec<&Text> {
    members.iter().map(|member| &member.member_id).collect()
}

/// How often the group was told of losing this member.
fn removals(test: &GroupTest, id: &Text) -> usize {
    let is_one = |event: &&Event| matches!(event, Event::MemberRemoved { member_id, .. } if member_id == id);
    test.events.iter().filter(is_one).count()
}

#[test]
fn a_newcomer_that_never_hears_its_answer_is_gone_after_its_session_and_the_rest_go_on() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    // Its connection is closed while the join is parked.
    let unheard = test.join(old_join());
    let rejoined = test.join(join_as(&ids[0]));
    let generation_id = test.joined(rejoined).generation_id;
    assert_eq!(test.joined(rejoined).members.len(), 2, "the round does not wait for it");
    let ghost = test.joined(unheard).member_id;
    test.sync(sync_as(&ids[0], generation_id));
    for _ in 0..2 {
        assert_eq!(test.heartbeat(&ids[0], generation_id), ErrorCode::NONE);
        test.advance_ms(SESSION / 2);
    }
    assert_eq!(test.heartbeat(&ghost, generation_id), ErrorCode::UNKNOWN_MEMBER_ID);
    let rejoined = test.join(join_as(&ids[0]));
    assert_eq!(ids_of(&test.joined(rejoined).members), [&ids[0]]);
}

#[test]
fn a_member_of_an_old_client_outlives_the_five_minutes_for_first_joins() {
    let mut test = GroupTest::new();
    let ids = test.form(vec![old_join()]);
    for _ in 0..200 {
        test.advance_ms(2_000);
        assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
    }
    assert_eq!(test.generation_id(), 1);
}

#[test]
fn first_joins_that_are_sent_anew_over_and_over_leave_no_ghosts() {
    let mut test = GroupTest::new();
    let patient = JoinGroupRequest {
        rebalance_timeout_ms: 600_000,
        ..old_join()
    };
    let ids = test.form(vec![patient]);
    let abandoned: Vec<Ticket> = (0..20).map(|_| test.join(old_join())).collect();
    assert_eq!(test.view().parked_joins, 20);
    for _ in 0..60 {
        test.advance_ms(5_000);
        assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::REBALANCE_IN_PROGRESS);
    }
    for ticket in abandoned {
        assert_eq!(test.join_reply(ticket).error, ErrorCode::UNKNOWN_MEMBER_ID);
    }
    let view = test.view();
    assert_eq!((view.parked_joins, view.groups[0].members.len()), (0, 1));
    let rejoined = test.join(join_as(&ids[0]));
    assert_eq!(ids_of(&test.joined(rejoined).members), [&ids[0]]);
}

#[test]
fn fifty_ids_that_nobody_comes_back_with_make_no_member_and_are_forgotten() {
    let mut test = GroupTest::new();
    let ids: BTreeSet<Text> = (0..50).map(|_| test.member_id()).collect();
    assert_eq!(ids.len(), 50);
    let described = test.describe();
    assert_eq!((&*described.state, described.members.len()), ("Empty", 0));
    assert_eq!(test.view().groups[0].pending_members, 50);
    test.advance_ms(SESSION);
    assert_eq!(test.view().groups[0].pending_members, 0);
}

/// Whether it stood still or was cut off: it may believe for ever that it is in the group.
#[test]
fn whoever_was_taken_out_is_refused_whatever_it_sends() {
    for protocol_type in ["consumer", "connect"] {
        let mut test = GroupTest::new();
        let ids = test.form(vec![join_of_type(protocol_type), join_of_type(protocol_type)]);
        assert_eq!(test.commit(commit_as(&ids[1], 1, 5)), [ErrorCode::NONE]);
        for _ in 0..2 {
            test.advance_ms(SESSION / 2);
            test.heartbeat(&ids[0], 1);
        }
        let rejoined = test.join(rejoin_of_type(protocol_type, &ids[0]));
        assert_eq!(test.joined(rejoined).generation_id, 2);
        test.sync_all(&ids[..1], 2);

        let unknown = ErrorCode::UNKNOWN_MEMBER_ID;
        for generation_id in [1, 2] {
            assert_eq!(test.heartbeat(&ids[1], generation_id), unknown);
            let sync = test.sync(sync_as(&ids[1], generation_id));
            assert_eq!(test.sync_reply(sync).error, unknown);
            assert_eq!(test.commit(commit_as(&ids[1], generation_id, 99)), [unknown]);
        }
        let rejoin = test.join(rejoin_of_type(protocol_type, &ids[1]));
        assert_eq!(test.join_reply(rejoin).error, unknown);
        assert_eq!(test.leave(&[(&ids[1], None)]), [unknown]);
        assert_eq!(test.fetch("t"), 5);
        assert_eq!(test.heartbeat(&ids[0], 2), ErrorCode::NONE, "nobody else notices");
    }
}

#[test]
fn a_member_that_leaves_in_the_moment_in_which_its_session_ends_goes_once() {
    for (before_ms, expected) in [(1, ErrorCode::NONE), (0, ErrorCode::UNKNOWN_MEMBER_ID)] {
        let mut test = GroupTest::new();
        let ids = test.stable_group(3);
        test.advance_ms(SESSION / 2);
        test.heartbeat(&ids[2], 1);
        test.advance_ms(SESSION / 2 - 1);
        // Without a step at the deadline itself.
        test.stall_ms(1 - before_ms);
        assert_eq!(test.leave(&[(&ids[0], None)]), [expected]);
        test.advance_ms(before_ms);
        assert_eq!([removals(&test, &ids[0]), removals(&test, &ids[1])], [1, 1]);
        assert_eq!(test.heartbeat(&ids[2], 1), ErrorCode::REBALANCE_IN_PROGRESS);
        test.advance_ms(SESSION);
        assert_eq!(removals(&test, &ids[2]), 1, "sessions still end");
        assert_eq!(&*test.state(), "Empty");
    }
}

#[test]
fn whoever_comes_after_a_killed_one_is_alone_at_once() {
    let mut test = GroupTest::new();
    let hasty = || JoinGroupRequest {
        session_timeout_ms: 6_000,
        ..old_join()
    };
    test.form(vec![hasty()]);
    test.advance_ms(7_000);
    let ticket = test.join(hasty());
    test.advance_ms(INITIAL_DELAY_MS);
    let joined = test.joined(ticket);
    assert_eq!((joined.members.len(), joined.generation_id), (1, 3));
}

#[test]
fn a_client_that_restarts_over_and_over_is_the_one_that_leads_in_the_end() {
    for protocol_type in ["consumer", "sr"] {
        let mut test = GroupTest::new();
        for _ in 0..20 {
            // The one before has gone without a word.
            let ticket = test.join(join_of_type(protocol_type));
            test.advance_ms(SESSION);
            let joined = test.joined(ticket);
            assert_eq!(joined.leader, joined.member_id);
            assert_eq!(ids_of(&joined.members), [&joined.member_id]);
            test.sync_all(&[joined.member_id], joined.generation_id);
        }
    }
}

#[test]
fn a_group_can_be_deleted_when_the_sessions_of_those_who_did_not_leave_are_over() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    test.commit(commit_as(&ids[0], 1, 5));
    assert_eq!(test.delete_group(), ErrorCode::NON_EMPTY_GROUP);
    test.advance_ms(SESSION - 1);
    assert_eq!(test.delete_group(), ErrorCode::NON_EMPTY_GROUP);
    test.advance_ms(1);
    assert_eq!(test.delete_group(), ErrorCode::NONE);
    assert_eq!(test.fetch("t"), -1);
}

#[test]
fn a_tool_that_joined_only_to_commit_is_in_nobodys_way_after_its_session() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    assert_eq!(test.commit(commit_as(&ids[0], 1, 5)), [ErrorCode::NONE]);
    assert_eq!(test.commit(commit_of(6)), [ErrorCode::UNKNOWN_MEMBER_ID]);
    test.advance_ms(SESSION);
    assert_eq!((&*test.state(), test.fetch("t")), ("Empty", 5));
    assert_eq!(test.commit(commit_of(6)), [ErrorCode::NONE]);
    assert_eq!(test.fetch("t"), 6);
}

#[test]
fn a_leader_that_is_killed_and_comes_back_costs_two_generations() {
    let mut test = GroupTest::new();
    let sr = |id: &Text| rejoin_of_type("sr", id);
    let ids = test.form(vec![join_of_type("sr"), join_of_type("sr"), join_of_type("sr")]);
    for _ in 0..2 {
        test.advance_ms(SESSION / 2);
        test.heartbeat(&ids[1], 1);
        test.heartbeat(&ids[2], 1);
    }
    let rejoined = [test.join(sr(&ids[2])), test.join(sr(&ids[1]))];
    let leader = test.joined(rejoined[1]);
    assert_eq!((leader.generation_id, &leader.leader), (2, &ids[1]));
    assert_eq!(
        ids_of(&leader.members),
        [&ids[1], &ids[2]],
        "in the order in which they came"
    );
    test.sync_all(&ids[1..], 2);

    let back = test.join(join_of_type("sr"));
    let rejoined = [test.join(sr(&ids[2])), test.join(sr(&ids[1]))];
    let leader = test.joined(rejoined[1]);
    assert_eq!((leader.generation_id, &leader.leader), (3, &ids[1]));
    let back = test.joined(back).member_id;
    assert_eq!(ids_of(&leader.members), [&ids[1], &ids[2], &back]);
}
