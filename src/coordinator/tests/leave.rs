//! LeaveGroup.

use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{SESSION_MS, join_as, old_join, static_join, sync_as};
use crate::coordinator::event::{Event, RebalanceReason};
use crate::coordinator::request::{LeaveGroupRequest, LeavingMember, Request, Response, Text};
use crate::wire::error_code::ErrorCode;

#[test]
fn when_the_last_member_leaves_the_group_is_empty_and_its_generation_recorded() {
    // 57
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    assert_eq!(test.leave(&[(&ids[0], None)]), [ErrorCode::NONE]);
    assert_eq!(&*test.state(), "Empty");
    let written = test.last_metadata().expect("a value");
    assert_eq!((written.generation, &written.protocol), (2, &None));
    assert_eq!(&*written.protocol_type, "consumer");
    assert_eq!(written.current_state_timestamp_ms, test.wall_ms());
}

#[test]
fn a_member_that_leaves_while_its_join_is_parked_is_answered() {
    // 58
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let leader = test.join(join_as(&ids[0]));
    assert_eq!(test.leave(&[(&ids[0], None)]), [ErrorCode::NONE]);
    let reply = test.join_reply(leader);
    assert_eq!((reply.error, &*reply.member_id), (ErrorCode::UNKNOWN_MEMBER_ID, ""));
}

#[test]
fn a_member_that_is_taken_out_while_its_sync_is_parked_is_answered() {
    let mut test = GroupTest::new();
    let leader = test.join(old_join());
    let follower = test.join(static_join("i"));
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let parked = test.sync(sync_as(&test.joined(follower).member_id, 1));
    assert_eq!(test.leave(&[("", Some("i"))]), [ErrorCode::NONE]);
    assert_eq!(test.sync_reply(parked).error, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(test.joined(leader).generation_id, 1);
    assert_eq!(&*test.state(), "PreparingRebalance");
}

#[test]
fn unknown_members_and_members_of_unknown_groups_fail_one_by_one() {
    // 59
    let mut test = GroupTest::new();
    assert_eq!(test.leave(&[("m", None)]), [ErrorCode::UNKNOWN_MEMBER_ID]);
    assert_eq!(test.records, []);
    let ids = test.stable_group(2);
    assert_eq!(
        test.leave(&[("m", None), (&ids[1], None)]),
        [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::NONE]
    );
}

#[test]
fn leaving_a_group_without_a_name_is_refused() {
    let mut test = GroupTest::new();
    let ticket = test.send(Request::LeaveGroup(LeaveGroupRequest {
        group_id: "".into(),
        members: Vec::new(),
    }));
    match test.reply(ticket) {
        Response::LeaveGroup(response) => {
            assert_eq!(response.error, ErrorCode::INVALID_GROUP_ID);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn members_that_leave_together_cause_one_rebalance() {
    // 60
    let mut test = GroupTest::new();
    let ids = test.stable_group(4);
    test.events.clear();
    let leaving: Vec<(&str, Option<&str>)> = ids[1..].iter().map(|id| (&**id, None)).collect();
    assert_eq!(test.leave(&leaving), [ErrorCode::NONE; 3]);
    let rebalances = test
        .events
        .iter()
        .filter(|event| matches!(event, Event::RebalanceStarted { .. }));
    assert_eq!(rebalances.count(), 1);
    let rejoined = test.join(join_as(&ids[0]));
    assert_eq!(test.joined(rejoined).members.len(), 1);
}

#[test]
fn the_last_to_leave_rebalances_nobody() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    test.events.clear();
    assert_eq!(test.leave(&[(&ids[0], None)]), [ErrorCode::NONE]);
    assert!(
        matches!(test.events[..], [Event::MemberRemoved { .. }, Event::GroupEmpty { .. }]),
        "{:?}",
        test.events
    );
}

#[test]
fn the_next_in_line_leads_when_the_leader_leaves() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(3);
    test.leave(&[(&ids[0], None)]);
    assert_eq!(test.view().groups[0].leader.as_ref(), Some(&ids[1]));
    let late = test.join(join_as(&ids[2]));
    let next = test.join(join_as(&ids[1]));
    assert_eq!(test.joined(next).leader, ids[1]);
    assert_eq!(test.joined(late).members, []);
}

#[test]
fn an_id_that_was_only_handed_out_can_be_given_back_without_a_rebalance() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    let pending = test.member_id();
    assert_eq!(test.leave(&[(&pending, None)]), [ErrorCode::NONE]);
    assert_eq!(&*test.state(), "Stable");
    assert_eq!(test.view().groups[0].pending_members, 0);
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
}

#[test]
fn giving_an_id_back_ends_a_join_phase_that_waited_for_it() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    let pending = test.member_id();
    let rejoined = test.join(join_as(&ids[0]));
    assert!(!test.is_answered(rejoined));
    assert_eq!(test.leave(&[(&pending, None)]), [ErrorCode::NONE]);
    assert_eq!(test.joined(rejoined).generation_id, 2);
}

#[test]
fn the_last_one_missing_ends_the_join_phase_by_leaving() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let leader = test.join(join_as(&ids[0]));
    test.leave(&[(&ids[1], None)]);
    assert_eq!(test.joined(leader).members.len(), 1);
}

#[test]
fn a_member_that_left_has_no_session_left() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    test.leave(&[(&ids[1], None)]);
    let rejoined = test.join(join_as(&ids[0]));
    test.sync_all(&ids[..1], test.joined(rejoined).generation_id);
    for _ in 0..4 {
        test.advance_ms(SESSION_MS as u64 / 2);
        assert_eq!(test.heartbeat(&ids[0], 2), ErrorCode::NONE);
    }
}

#[test]
fn the_words_of_a_member_that_leaves_are_told() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    test.send(Request::LeaveGroup(LeaveGroupRequest {
        group_id: "g".into(),
        members: vec![LeavingMember {
            member_id: ids[1].clone(),
            group_instance_id: None,
            reason: Some("closing".into()),
        }],
    }));
    let words = test.events.iter().find_map(|event| match event {
        Event::MemberRemoved {
            reason, client_reason, ..
        } => Some((*reason, client_reason.clone())),
        _ => None,
    });
    assert_eq!(words, Some((RebalanceReason::MemberLeft, Some(Text::from("closing")))));
}
