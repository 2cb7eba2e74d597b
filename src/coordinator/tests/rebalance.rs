//! The join phase: when it ends, and for whom.

use std::sync::Arc;

use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{REBALANCE_MS, SESSION_MS, first_join, join_as, old_join, protocols, static_join};
use crate::coordinator::event::{Event, RebalanceReason};
use crate::coordinator::input::{Input, Ticket};
use crate::coordinator::request::{JoinGroupRequest, Text};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

const REBALANCE: u64 = REBALANCE_MS as u64;
const SESSION: u64 = SESSION_MS as u64;

/// Lets time pass while this member heartbeats.
fn advance_alive(test: &mut GroupTest, ms: u64, member_id: &Text, generation_id: i32) {
    for _ in 0..ms / 1_000 {
        test.advance_ms(1_000);
        test.heartbeat(member_id, generation_id);
    }
}

#[test]
fn the_first_rebalance_waits_once_more_for_somebody_who_came_late() {
    // 6
    let mut test = GroupTest::new();
    let first = test.join(old_join());
    test.advance_ms(2_000);
    let second = test.join(old_join());
    test.advance_ms(2 * INITIAL_DELAY_MS - 2_000 - 1);
    assert!(!test.is_answered(first));
    test.advance_ms(1);
    assert_eq!(test.joined(first).generation_id, 1);
    assert_eq!(test.joined(second).generation_id, 1);
    assert_eq!(test.joined(first).members.len(), 2);
}

#[test]
fn the_first_rebalance_ends_at_the_rebalance_timeout_however_many_keep_coming() {
    // 7
    for rebalance_timeout_ms in [REBALANCE_MS, 10_000] {
        let hurried = || JoinGroupRequest {
            rebalance_timeout_ms,
            ..old_join()
        };
        let mut test = GroupTest::new();
        let first = test.join(hurried());
        let mut waited_ms = 0;
        while !test.is_answered(first) {
            test.advance_ms(1_000);
            waited_ms += 1_000;
            assert!(waited_ms <= rebalance_timeout_ms, "still waiting");
            test.join(hurried());
        }
        assert_eq!(waited_ms, rebalance_timeout_ms);
    }
}

#[test]
fn the_first_rebalance_does_not_end_early_when_everybody_is_there() {
    // 8
    let mut test = GroupTest::new();
    let ids = [test.member_id(), test.member_id()];
    let tickets = ids.map(|id| test.join(join_as(&id)));
    test.advance_ms(INITIAL_DELAY_MS - 1);
    assert!(tickets.iter().all(|ticket| !test.is_answered(*ticket)));
    test.advance_ms(INITIAL_DELAY_MS + 1);
    assert!(tickets.iter().all(|ticket| test.is_answered(*ticket)));
}

#[test]
fn without_an_initial_delay_the_first_join_is_answered_in_the_same_step() {
    let mut test = GroupTest::with_settings(Settings {
        group_initial_rebalance_delay_ms: 0,
        ..Settings::default()
    });
    let id = test.member_id();
    let ticket = test.join(join_as(&id));
    assert_eq!(test.joined(ticket).generation_id, 1);
}

#[test]
fn a_later_rebalance_waits_for_ids_that_were_handed_out() {
    // 9
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    let pending = test.member_id();
    let rejoined = test.join(join_as(&ids[0]));
    assert!(!test.is_answered(rejoined));
    let joined = test.join(join_as(&pending));
    assert_eq!(test.joined(rejoined).members.len(), 2);
    assert_eq!(test.joined(joined).generation_id, 2);
}

#[test]
fn a_later_rebalance_ends_when_an_id_that_was_handed_out_expires() {
    // 9
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    test.member_id();
    let rejoined = test.join(join_as(&ids[0]));
    test.advance_ms(SESSION - 1);
    assert!(!test.is_answered(rejoined));
    test.advance_ms(1);
    assert_eq!(test.joined(rejoined).members.len(), 1);
}

#[test]
fn a_dynamic_member_that_does_not_rejoin_in_time_is_taken_out() {
    // 18
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let leader = test.join(join_as(&ids[0]));
    advance_alive(&mut test, REBALANCE, &ids[1], 1);
    assert_eq!(test.joined(leader).members.len(), 1);
    assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(test.events.iter().any(|event| matches!(
        event,
        Event::MemberRemoved { member_id, reason: RebalanceReason::JoinTimedOut, .. } if *member_id == ids[1]
    )));
}

#[test]
fn if_the_leader_does_not_rejoin_another_member_leads() {
    // 19
    let mut test = GroupTest::new();
    let ids = test.stable_group(3);
    test.leave(&[(&ids[2], None)]);
    let follower = test.join(join_as(&ids[1]));
    advance_alive(&mut test, REBALANCE, &ids[0], 1);
    let joined = test.joined(follower);
    assert_eq!(joined.leader, ids[1]);
    assert_eq!(joined.members.len(), 1);
}

#[test]
fn if_nobody_rejoins_the_group_is_empty_and_that_is_recorded() {
    // 20
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    test.leave(&[(&ids[0], None)]);
    advance_alive(&mut test, REBALANCE, &ids[1], 1);
    assert_eq!(&*test.state(), "Empty");
    let written = test.last_metadata().expect("a value");
    assert_eq!((written.generation, written.members.len()), (2, 0));
    assert_eq!((&written.protocol, &written.leader), (&None, &None));
    assert!(test.events.contains(&Event::GroupEmpty {
        group_id: "g".into(),
        generation_id: 2,
    }));
}

#[test]
fn a_group_of_silent_static_members_goes_on_preparing_until_their_sessions_end() {
    // 21
    let mut test = GroupTest::new();
    let ids = test.form(vec![old_join(), static_join("i")]);
    test.leave(&[(&ids[0], None)]);
    advance_alive(&mut test, 2 * REBALANCE, &ids[1], 1);
    assert_eq!(&*test.state(), "PreparingRebalance");
    assert_eq!(test.generation_id(), 1);
    test.advance_ms(SESSION);
    assert_eq!(&*test.state(), "Empty");
    assert_eq!(test.generation_id(), 2);
}

#[test]
fn a_silent_static_member_without_any_rebalance_timeout_does_not_keep_the_shard_busy() {
    let mut test = GroupTest::new();
    let hurried = JoinGroupRequest {
        rebalance_timeout_ms: 0,
        ..static_join("i")
    };
    let ids = test.form(vec![old_join(), hurried]);
    test.leave(&[(&ids[0], None)]);
    assert_eq!(&*test.state(), "PreparingRebalance");
    assert_eq!(test.next_deadline_ms(), Some(test.now().monotonic_ms + 1_000));
}

#[test]
fn a_first_join_that_stays_unanswered_for_five_minutes_is_given_up() {
    // 22
    let mut test = GroupTest::new();
    let patient = JoinGroupRequest {
        rebalance_timeout_ms: 600_000,
        ..old_join()
    };
    let ids = test.form(vec![patient]);
    let newcomer = test.join(old_join());
    advance_alive(&mut test, 299_000, &ids[0], 1);
    assert!(!test.is_answered(newcomer));
    advance_alive(&mut test, 1_000, &ids[0], 1);
    let reply = test.join_reply(newcomer);
    assert_eq!((reply.error, &*reply.member_id), (ErrorCode::UNKNOWN_MEMBER_ID, ""));
    assert_eq!(test.view().groups[0].members.len(), 1);
}

#[test]
fn a_parked_join_outlives_its_session_timeout() {
    // 28, 55
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let leader = test.join(join_as(&ids[0]));
    advance_alive(&mut test, 2 * SESSION, &ids[1], 1);
    assert!(!test.is_answered(leader));
    let follower = test.join(join_as(&ids[1]));
    assert_eq!(test.joined(leader).members.len(), 2);
    assert_eq!(test.joined(follower).generation_id, 2);
}

#[test]
fn the_group_waits_as_long_as_its_most_patient_member_asks() {
    // 29
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let leader = test.join(JoinGroupRequest {
        rebalance_timeout_ms: 2 * REBALANCE_MS,
        ..join_as(&ids[0])
    });
    let follower = test.join(join_as(&ids[1]));
    assert_eq!(test.joined(leader).generation_id, 2);
    assert_eq!(test.joined(follower).generation_id, 2);
    test.sync_all(&ids, 2);
    let leader = test.join(join_as(&ids[0]));
    advance_alive(&mut test, REBALANCE, &ids[1], 2);
    assert!(test.is_answered(leader), "the leader asked for less this time");
}

#[test]
fn a_raised_rebalance_timeout_counts_from_the_next_rebalance() {
    // 29
    let mut test = GroupTest::new();
    let patient = JoinGroupRequest {
        rebalance_timeout_ms: 2 * REBALANCE_MS,
        ..old_join()
    };
    let ids = test.form(vec![patient, old_join()]);
    let follower = test.join(JoinGroupRequest {
        protocols: protocols(&["range", "sticky"]),
        ..join_as(&ids[1])
    });
    advance_alive(&mut test, 2 * REBALANCE - 1_000, &ids[0], 1);
    assert!(!test.is_answered(follower));
    advance_alive(&mut test, 1_000, &ids[0], 1);
    assert_eq!(test.joined(follower).members.len(), 1);
}

#[test]
fn a_group_emptied_by_leaving_waits_the_initial_delay_again() {
    // 57
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    test.leave(&[(&ids[0], None)]);
    let ticket = test.join(old_join());
    test.advance_ms(INITIAL_DELAY_MS - 1);
    assert!(!test.is_answered(ticket));
    test.advance_ms(1);
    assert_eq!(test.joined(ticket).generation_id, 3);
}

#[test]
fn a_member_that_joins_a_stable_group_starts_a_rebalance_that_names_it_and_its_words() {
    let mut test = GroupTest::new();
    test.stable_group(1);
    let newcomer = test.member_id();
    test.events.clear();
    test.join(JoinGroupRequest {
        reason: Some("scaling out".into()),
        ..join_as(&newcomer)
    });
    assert_eq!(
        test.events,
        [Event::RebalanceStarted {
            group_id: "g".into(),
            generation_id: 1,
            reason: RebalanceReason::MemberJoined,
            member_id: Some(newcomer),
            client_reason: Some("scaling out".into()),
        }]
    );
}

#[test]
fn a_join_phase_that_only_waits_for_one_who_is_turned_away_ends_at_once() {
    let settings = |group_max_size| Settings {
        group_max_size,
        ..Settings::default()
    };
    let mut test = GroupTest::with_settings(settings(2));
    let ids = test.stable_group(2);
    test.input(Input::Settings(Arc::new(settings(1))));
    let leader = test.join(join_as(&ids[0]));
    let refused: Ticket = test.join(join_as(&ids[1]));
    assert_eq!(test.join_reply(refused).error, ErrorCode::GROUP_MAX_SIZE_REACHED);
    assert_eq!(test.joined(leader).members.len(), 1);
}

#[test]
fn members_of_a_first_rebalance_that_all_go_leave_an_empty_group() {
    let mut test = GroupTest::new();
    let id = test.member_id();
    let joined = test.join(join_as(&id));
    test.leave(&[(&id, None)]);
    assert_eq!(test.join_reply(joined).error, ErrorCode::UNKNOWN_MEMBER_ID);
    test.advance_ms(INITIAL_DELAY_MS);
    assert_eq!(&*test.state(), "Empty");
    assert_eq!(test.generation_id(), 1);
    let ticket = test.join(first_join());
    assert_eq!(test.join_reply(ticket).error, ErrorCode::MEMBER_ID_REQUIRED);
}

#[test]
fn a_round_that_begins_while_the_assignment_is_awaited_shows_no_stale_assignments() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    test.join(join_as(&ids[0]));
    test.join(join_as(&ids[1]));
    assert_eq!(&*test.state(), "CompletingRebalance");
    test.join(old_join());
    assert_eq!(&*test.state(), "PreparingRebalance");
    let members = test.describe().members;
    assert!(members.iter().all(|member| member.assignment.is_empty()), "{members:?}");
}
