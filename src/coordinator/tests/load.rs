//! What a restart keeps.

use super::group_test::GroupTest;
use super::requests::{SESSION_MS, commit_as, join_as, old_join, protocols, static_join, sync_as};
use crate::coordinator::event::{Event, RebalanceReason};
use crate::coordinator::record::Record;
use crate::coordinator::request::{JoinGroupRequest, Text};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

const SESSION: u64 = SESSION_MS as u64;

#[test]
fn a_stable_group_goes_on_as_if_nothing_had_been() {
    let mut test = GroupTest::new();
    let ids = test.form(vec![old_join(), static_join("i")]);
    test.commit(commit_as(&ids[0], 1, 5));
    let mut test = test.restarted();
    assert_eq!(&*test.state(), "Stable");
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
    let sync = test.sync(sync_as(&ids[1], 1));
    assert_eq!(test.sync_reply(sync).assignment, "a1");
    assert_eq!(test.commit(commit_as(&ids[0], 1, 6)), [ErrorCode::NONE]);
    let follower = test.join(JoinGroupRequest {
        member_id: ids[1].clone(),
        ..static_join("i")
    });
    assert_eq!(test.joined(follower).leader, ids[0]);
    assert_eq!(test.inspected, Vec::<Text>::new());
    assert_eq!(test.events, [Event::OffsetsCommitted { count: 1 }]);
}

#[test]
fn a_loaded_group_is_the_group_that_was_recorded() {
    let mut test = GroupTest::new();
    test.form(vec![old_join(), static_join("i"), old_join()]);
    let mut again = test.restarted();
    assert_eq!(again.describe(), test.describe());
    assert_eq!(again.view(), test.view());
}

#[test]
fn sessions_begin_with_the_load() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let mut test = test.restarted();
    test.advance_ms(SESSION - 1);
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
    test.advance_ms(1);
    assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(&*test.state(), "PreparingRebalance");
}

#[test]
fn a_rebalance_that_a_restart_broke_off_falls_back_to_the_last_recorded_generation() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    test.join(join_as(&ids[0]));
    test.join(join_as(&ids[1]));
    assert_eq!(&*test.state(), "CompletingRebalance");
    let mut test = test.restarted();
    assert_eq!(&*test.state(), "Stable");
    assert_eq!(test.heartbeat(&ids[0], 2), ErrorCode::ILLEGAL_GENERATION);
    let leader = test.join(join_as(&ids[0]));
    let follower = test.join(join_as(&ids[1]));
    assert_eq!(test.joined(leader).generation_id, 2);
    assert_eq!(test.joined(follower).generation_id, 2);
}

#[test]
fn a_restart_in_the_join_phase_lets_everybody_come_back_with_its_id() {
    let mut test = GroupTest::new();
    let ids = test.form(vec![old_join(), old_join(), static_join("i")]);
    test.join(join_as(&ids[0]));
    assert_eq!(&*test.state(), "PreparingRebalance");
    let mut test = test.restarted();
    test.advance_ms(2_000);
    for id in &ids[..2] {
        assert_eq!(test.heartbeat(id, 1), ErrorCode::NONE);
    }
    let rejoins = [
        join_as(&ids[0]),
        join_as(&ids[1]),
        JoinGroupRequest {
            member_id: ids[2].clone(),
            ..static_join("i")
        },
    ];
    let tickets = rejoins.map(|request| test.join(request));
    let leader = test.joined(tickets[0]);
    assert_eq!((leader.members.len(), leader.leader), (3, ids[0].clone()));
    for (ticket, id) in tickets.into_iter().zip(&ids) {
        assert_eq!(
            (test.joined(ticket).member_id, test.joined(ticket).generation_id),
            (id.clone(), leader.generation_id)
        );
    }
}

/// That it had left was to be recorded with the next generation.
#[test]
fn a_leader_that_left_before_a_restart_is_waited_for_no_longer_than_its_session() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    assert_eq!(test.leave(&[(&ids[0], None)]), [ErrorCode::NONE]);
    let mut test = test.restarted();
    for _ in 0..2 {
        assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::NONE);
        test.advance_ms(SESSION / 2);
    }
    assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::REBALANCE_IN_PROGRESS);
    let rejoined = test.join(join_as(&ids[1]));
    let joined = test.joined(rejoined);
    assert_eq!((joined.leader, joined.members.len()), (ids[1].clone(), 1));
}

#[test]
fn an_id_that_was_only_handed_out_does_not_survive() {
    let mut test = GroupTest::new();
    let id = test.member_id();
    let mut test = test.restarted();
    assert_eq!(&*test.state(), "Empty");
    let ticket = test.join(join_as(&id));
    assert_eq!(test.join_reply(ticket).error, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn an_empty_group_keeps_its_generation() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    test.leave(&[(&ids[0], None)]);
    let mut test = test.restarted();
    assert_eq!((&*test.state(), test.generation_id()), ("Empty", 2));
}

#[test]
fn a_group_above_the_size_limit_shrinks_to_the_first_who_rejoin() {
    // 25
    let mut test = GroupTest::new();
    let ids = test.stable_group(5);
    let settings = Settings {
        group_max_size: 3,
        ..Settings::default()
    };
    let mut test = GroupTest::loaded_from(settings, &test.records);
    assert_eq!(&*test.state(), "PreparingRebalance");
    let tickets: Vec<_> = ids.iter().rev().map(|id| test.join(join_as(id))).collect();
    let (kept, refused) = tickets.split_at(3);
    for ticket in kept {
        assert_eq!(test.joined(*ticket).generation_id, 2);
    }
    for ticket in refused {
        let reply = test.join_reply(*ticket);
        assert_eq!(
            (reply.error, &*reply.member_id),
            (ErrorCode::GROUP_MAX_SIZE_REACHED, "")
        );
    }
    assert!(test.events.iter().any(|event| matches!(
        event,
        Event::RebalanceStarted {
            reason: RebalanceReason::OverCapacity,
            ..
        }
    )));
}

#[test]
fn a_group_of_exactly_the_size_limit_is_left_alone() {
    let mut test = GroupTest::new();
    test.stable_group(2);
    let settings = Settings {
        group_max_size: 2,
        ..Settings::default()
    };
    let mut test = GroupTest::loaded_from(settings, &test.records);
    assert_eq!(&*test.state(), "Stable");
}

#[test]
fn a_loaded_member_supports_the_protocol_that_had_been_selected() {
    let mut test = GroupTest::new();
    let both = || JoinGroupRequest {
        protocols: protocols(&["range", "sticky"]),
        ..old_join()
    };
    test.form(vec![both(), both()]);
    let mut test = test.restarted();
    let sticky = test.join(JoinGroupRequest {
        protocols: protocols(&["sticky"]),
        ..old_join()
    });
    assert_eq!(test.join_reply(sticky).error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let newcomer = test.join(both());
    assert!(!test.is_answered(newcomer));
}

#[test]
fn a_record_without_a_rebalance_timeout_means_the_session_timeout() {
    // 23
    let mut test = GroupTest::new();
    test.stable_group(1);
    let mut records = test.records.clone();
    for record in &mut records {
        if let Record::GroupMetadata { value: Some(value), .. } = record {
            for member in &mut value.members {
                member.rebalance_timeout_ms = -1;
            }
        }
    }
    let mut test = GroupTest::loaded_from(Settings::default(), &records);
    assert_eq!(test.view().groups[0].members[0].rebalance_timeout_ms, SESSION_MS);
}

#[test]
fn the_order_of_records_of_different_keys_does_not_matter() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    test.commit(commit_as(&ids[0], 1, 5));
    // The store keeps the latest value of each key.
    let metadata = test.last_metadata().cloned();
    let mut latest: Vec<Record> = test.records.clone();
    latest.retain(|record| !matches!(record, Record::GroupMetadata { .. }));
    latest.push(Record::GroupMetadata {
        group_id: "g".into(),
        value: metadata,
    });
    let mut forth = GroupTest::loaded_from(Settings::default(), &latest);
    latest.reverse();
    let mut back = GroupTest::loaded_from(Settings::default(), &latest);
    assert_eq!(forth.view(), back.view());
    assert_eq!(&*back.state(), "Stable");
    assert_eq!(back.fetch("t"), 5);
}
