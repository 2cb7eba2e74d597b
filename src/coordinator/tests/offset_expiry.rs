//! Offsets and groups that run out of their retention (KIP-211).

use std::sync::Arc;

use super::group_test::{GroupTest, WALL_MS};
use super::requests::{
    commit_as, commit_of, commit_topic, first_join, offset_record, old_join, protocols, subscription,
};
use crate::coordinator::event::Event;
use crate::coordinator::input::Input;
use crate::coordinator::record::{GroupOwnedValue, Record};
use crate::coordinator::request::{JoinGroupRequest, OffsetCommitPartition, OffsetCommitRequest, Protocol, Text};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// Offsets are kept for an hour and looked through every ten minutes.
fn hourly() -> GroupTest {
    GroupTest::with_settings(Settings {
        offsets_retention_ms: HOUR_MS as i64,
        ..Settings::default()
    })
}

/// A member that is never silent for too long.
fn patient(protocol_type: &str, protocol: Protocol) -> JoinGroupRequest {
    JoinGroupRequest {
        session_timeout_ms: 1_800_000,
        protocol_type: protocol_type.into(),
        protocols: vec![protocol],
        ..old_join()
    }
}

fn consumer_of(topics: &[&str]) -> JoinGroupRequest {
    let name = "range".into();
    let metadata = subscription(topics);
    patient("consumer", Protocol { name, metadata })
}

/// Lets hours pass while a member heartbeats.
fn advance_alive(test: &mut GroupTest, ms: u64, member_id: &Text) {
    for _ in 0..ms / (20 * MINUTE_MS) {
        test.advance_ms(20 * MINUTE_MS);
        assert_eq!(test.heartbeat(member_id, 1), ErrorCode::NONE);
    }
}

#[test]
fn a_simple_group_loses_its_offsets_an_hour_after_their_commit_and_goes_with_the_last() {
    let mut test = hourly();
    test.commit(commit_of(1));
    test.advance_ms(50 * MINUTE_MS);
    let mut later = commit_of(2);
    later.topics = vec![commit_topic("u", 2)];
    test.commit(later);
    test.advance_ms(20 * MINUTE_MS);
    assert_eq!((test.fetch("t"), test.fetch("u")), (-1, 2));
    assert!(test.events.contains(&Event::OffsetsExpired { count: 1 }));
    test.advance_ms(HOUR_MS);
    assert_eq!((test.fetch("u"), &*test.state()), (-1, ""));
    assert_eq!(test.last_metadata(), None);
    assert!(test.events.contains(&Event::GroupDeleted { group_id: "g".into() }));
}

#[test]
fn a_group_that_became_empty_keeps_its_offsets_for_the_retention_from_then() {
    // 131
    let mut test = hourly();
    let id = test.form(vec![consumer_of(&["t"])]).remove(0);
    test.commit(commit_as(&id, 1, 5));
    advance_alive(&mut test, 3 * HOUR_MS, &id);
    test.leave(&[(&id, None)]);
    test.advance_ms(HOUR_MS - 1);
    assert_eq!(test.fetch("t"), 5);
    test.advance_ms(11 * MINUTE_MS);
    assert_eq!((test.fetch("t"), &*test.state()), (-1, ""));
}

#[test]
fn a_stable_group_loses_only_the_offsets_of_topics_it_is_not_subscribed_to() {
    let mut test = hourly();
    let mut request = commit_of(1);
    request.topics = vec![commit_topic("t", 1), commit_topic("old", 1)];
    test.commit(request);
    let id = test.form(vec![consumer_of(&["t"])]).remove(0);
    advance_alive(&mut test, 2 * HOUR_MS, &id);
    assert_eq!((test.fetch("t"), test.fetch("old")), (1, -1));
    assert_eq!(&*test.state(), "Stable");
}

#[test]
fn a_stable_group_whose_subscription_cannot_be_read_loses_nothing() {
    // 132
    let mut test = hourly();
    test.commit(commit_of(1));
    let name = "range".into();
    let metadata = "?".into();
    let id = test
        .form(vec![patient("consumer", Protocol { name, metadata })])
        .remove(0);
    advance_alive(&mut test, 2 * HOUR_MS, &id);
    assert_eq!(test.fetch("t"), 1);
}

#[test]
fn a_group_that_rebalances_loses_nothing() {
    let mut test = hourly();
    let mut request = commit_of(1);
    request.topics = vec![commit_topic("old", 1)];
    test.commit(request);
    let slow = || JoinGroupRequest {
        rebalance_timeout_ms: i32::MAX,
        ..consumer_of(&["t"])
    };
    let ids = test.form(vec![slow(), slow()]);
    test.join(JoinGroupRequest {
        member_id: ids[0].clone(),
        ..slow()
    });
    for _ in 0..6 {
        test.advance_ms(20 * MINUTE_MS);
        assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert_eq!(test.fetch("old"), 1);
}

#[test]
fn a_group_of_another_type_loses_nothing_while_it_has_members() {
    let mut test = hourly();
    test.commit(commit_of(1));
    let id = test
        .form(vec![patient("connect", protocols(&["sessioned"]).remove(0))])
        .remove(0);
    advance_alive(&mut test, 2 * HOUR_MS, &id);
    assert_eq!(test.fetch("t"), 1);
}

#[test]
fn a_commit_may_name_its_own_retention() {
    // 137
    let mut test = hourly();
    test.commit(OffsetCommitRequest {
        retention_time_ms: Some(MINUTE_MS as i64),
        ..commit_of(1)
    });
    test.advance_ms(11 * MINUTE_MS);
    assert_eq!(test.fetch("t"), -1);
}

#[test]
fn what_a_commit_says_of_its_retention_holds_after_a_restart() {
    let mut test = hourly();
    let keep = |topic: &str, retention_time_ms| OffsetCommitRequest {
        retention_time_ms,
        topics: vec![commit_topic(topic, 1)],
        ..commit_of(1)
    };
    for (topic, retention_time_ms) in [
        ("0", Some(0)),
        ("minute", Some(60_000)),
        ("day", Some(86_400_000)),
        ("none", None),
    ] {
        test.commit(keep(topic, retention_time_ms));
    }
    let shown = |test: &mut GroupTest| ["0", "minute", "day", "none"].map(|topic| test.fetch(topic));
    assert_eq!(shown(&mut test), [1; 4], "until somebody looks");
    let mut test = test.restarted();
    assert_eq!(shown(&mut test), [1; 4]);
    test.advance_ms(11 * MINUTE_MS);
    assert_eq!(shown(&mut test), [-1, -1, 1, 1]);
    test.advance_ms(HOUR_MS);
    assert_eq!(shown(&mut test), [-1, -1, 1, -1]);
}

#[test]
fn the_longest_retention_that_can_be_said_expires_nothing() {
    let mut test = GroupTest::with_settings(Settings {
        offsets_retention_ms: i64::from(i32::MAX) * 60_000,
        ..Settings::default()
    });
    test.commit(commit_of(1));
    test.advance_ms(24 * HOUR_MS);
    assert_eq!(test.fetch("t"), 1);
}

#[test]
fn a_group_with_members_stays_without_an_offset() {
    let mut test = hourly();
    let id = test.form(vec![consumer_of(&["t"])]).remove(0);
    advance_alive(&mut test, 2 * HOUR_MS, &id);
    assert_eq!((test.fetch_all(), &*test.state()), (0, "Stable"));
}

#[test]
fn a_subscribed_topic_keeps_its_offsets_beyond_the_retention_that_a_commit_named() {
    // 137
    let mut test = hourly();
    let id = test.form(vec![consumer_of(&["t"])]).remove(0);
    test.commit(OffsetCommitRequest {
        retention_time_ms: Some(MINUTE_MS as i64),
        ..commit_as(&id, 1, 1)
    });
    advance_alive(&mut test, HOUR_MS, &id);
    assert_eq!(test.fetch("t"), 1);
}

#[test]
fn a_group_without_offsets_and_members_goes_at_the_next_look() {
    let mut test = hourly();
    test.member_id();
    test.advance_ms(11 * MINUTE_MS);
    assert_eq!(&*test.state(), "");
}

#[test]
fn a_group_stays_while_somebody_holds_an_id_for_it() {
    let mut test = hourly();
    test.advance_ms(9 * MINUTE_MS + 59_000);
    test.member_id();
    test.advance_ms(5_000);
    assert_eq!(&*test.state(), "Empty");
    let ticket = test.join(first_join());
    assert_eq!(test.join_reply(ticket).error, ErrorCode::MEMBER_ID_REQUIRED);
}

#[test]
fn the_mark_of_a_group_outlives_it_by_the_retention_and_a_day() {
    let mut test = hourly();
    test.commit(commit_of(1));
    test.delete_group();
    let marked = |test: &mut GroupTest| test.list(&[], &[]).owned == ["g".into()];
    test.advance_ms(25 * HOUR_MS - 1);
    assert!(marked(&mut test));
    test.advance_ms(11 * MINUTE_MS);
    assert!(!marked(&mut test));
    let tombstone = Record::GroupOwned {
        group_id: "g".into(),
        value: None,
    };
    assert_eq!(test.records.last(), Some(&tombstone));
}

#[test]
fn the_mark_of_a_group_that_lives_stays() {
    let mut test = GroupTest::loaded_from(
        Settings::default(),
        &[
            offset_record("t", 1, WALL_MS),
            Record::GroupOwned {
                group_id: "g".into(),
                value: Some(GroupOwnedValue { since_ms: 0 }),
            },
        ],
    );
    test.advance_ms(HOUR_MS);
    assert_eq!(test.list(&[], &[]).owned, ["g".into()]);
}

#[test]
fn a_shorter_interval_counts_at_once_and_the_same_one_again_postpones_nothing() {
    let mut test = hourly();
    let settings = |interval_ms| {
        Input::Settings(Arc::new(Settings {
            offsets_retention_ms: MINUTE_MS as i64,
            offsets_retention_check_interval_ms: interval_ms,
            ..Settings::default()
        }))
    };
    test.commit(commit_of(1));
    for _ in 0..10 {
        test.advance_ms(MINUTE_MS);
        test.input(settings(600_000));
    }
    assert_eq!(test.fetch("t"), -1);
    test.commit(commit_of(1));
    test.input(settings(1_000));
    test.advance_ms(MINUTE_MS);
    assert_eq!(test.fetch("t"), -1);
}

#[test]
fn a_pass_over_much_that_has_run_out_is_many_small_batches() {
    let mut test = hourly();
    for group in 0..3 {
        let mut commit = commit_of(1);
        commit.group_id = format!("group-{group}").as_str().into();
        let one = commit_topic("t", 1);
        let partitions = (0..1_500).map(|partition| OffsetCommitPartition {
            partition,
            ..one.partitions[0].clone()
        });
        commit.topics[0].partitions = partitions.collect();
        test.commit(commit);
    }
    test.events.clear();
    let before = test.appended();
    test.advance_ms(70 * MINUTE_MS);
    let expired: Vec<usize> = test
        .events
        .iter()
        .filter_map(|event| match event {
            Event::OffsetsExpired { count } => Some(*count),
            _ => None,
        })
        .collect();
    assert_eq!(expired.iter().sum::<usize>(), 4_500);
    assert!(expired.iter().all(|count| *count <= 1_000), "{expired:?}");
    assert!(test.appended().0 - before.0 >= 5);
    let deleted = |event: &&Event| matches!(event, Event::GroupDeleted { .. });
    assert_eq!(test.events.iter().filter(deleted).count(), 3);
}
