//! When targets are computed, and who waits for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::consumer_client::{Client, T, U, at_once, beat_of, join_of, settle, shard_with, topics};
use super::group_test::GroupTest;
use crate::coordinator::event::Event;
use crate::coordinator::group_config::GroupConfig;
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{ConsumerGroupHeartbeatRequest, Response};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

fn with_interval(interval_ms: i32) -> GroupTest {
    shard_with(Settings {
        group_consumer_assignment_interval_ms: Some(interval_ms),
        ..at_once()
    })
}

fn computations(test: &GroupTest) -> usize {
    let is_one = |event: &&Event| matches!(event, Event::TargetComputed { .. });
    test.events.iter().filter(is_one).count()
}

#[test]
fn members_that_join_together_are_placed_together() {
    // Scenario 94.
    let mut test = shard_with(Settings::default());
    let tickets: Vec<Ticket> = (0..5)
        .map(|number| {
            test.advance_ms(5);
            test.send_beat(join_of(&format!("m{number}")))
        })
        .collect();
    assert!(!tickets.iter().any(|ticket| test.is_answered(*ticket)));
    assert_eq!(test.view().parked_joins, 5);
    test.advance_ms(20);
    assert_eq!(computations(&test), 1);
    let assigned = |ticket: &Ticket| test.beat_reply(*ticket).assignment.expect("told").len();
    assert_eq!(tickets.iter().map(assigned).sum::<usize>(), 6);
    assert_eq!((&*test.state(), test.group_epoch()), ("Stable", 6));
    let settled = test.events.iter().find_map(|event| match event {
        Event::ConsumerGroupSettled { members, took_ms, .. } => Some((*members, *took_ms)),
        _ => None,
    });
    assert_eq!(settled, Some((5, 40)));
}

#[test]
fn a_stream_of_joins_does_not_put_the_target_off_for_ever() {
    let mut test = shard_with(Settings::default());
    for number in 0..130 {
        test.send_beat(join_of(&format!("m{number}")));
        test.advance_ms(10);
    }
    assert_eq!(computations(&test), 2, "one for each half second");
}

#[test]
fn targets_keep_their_interval_and_come_without_a_heartbeat() {
    // Scenarios 94, 95.
    let mut test = with_interval(1_000);
    let first = test.send_beat(join_of("a"));
    test.advance_ms(20);
    assert_eq!(
        test.beat_reply(first).assignment.map(|assigned| assigned.len()),
        Some(6)
    );
    let second = test.send_beat(join_of("b"));
    test.advance_ms(500);
    assert!(!test.is_answered(second));
    assert_eq!(&*test.state(), "Assigning");
    let old = test.beat(beat_of("a", 2));
    assert_eq!(
        (old.member_epoch, old.assignment),
        (2, None),
        "who is in goes on with the old target"
    );
    test.advance_ms(500);
    assert_eq!(test.beat_reply(second).member_epoch, 3);
    assert_eq!(computations(&test), 2);
}

#[test]
fn without_an_interval_every_change_is_computed_at_once() {
    // Scenario 95.
    let mut test = with_interval(0);
    test.beat(join_of("a"));
    test.beat(join_of("b"));
    assert_eq!(computations(&test), 2);
}

#[test]
fn a_groups_own_interval_holds() {
    let config = GroupConfig {
        assignment_interval_ms: Some(0),
        heartbeat_interval_ms: Some(7_000),
        session_timeout_ms: Some(50_000),
    };
    let mut test = shard_with(Settings {
        group_configs: Arc::new(BTreeMap::from([("g".into(), config)])),
        group_consumer_assignment_interval_ms: Some(1_000),
        ..at_once()
    });
    assert_eq!(test.beat(join_of("a")).heartbeat_interval_ms, 7_000);
    test.advance_ms(49_999);
    assert_eq!(&*test.state(), "Stable");
    test.advance_ms(1);
    assert_eq!(&*test.state(), "Empty");
}

#[test]
fn a_second_join_takes_the_place_of_the_first() {
    let mut test = with_interval(1_000);
    let first = test.send_beat(join_of("a"));
    let second = test.send_beat(join_of("a"));
    assert_eq!(test.beat_reply(first).error, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    test.advance_ms(20);
    assert_eq!(test.beat_reply(second).member_epoch, 2);
}

#[test]
fn who_leaves_while_its_join_waits_is_told_so() {
    let mut test = with_interval(1_000);
    let join = test.send_beat(join_of("a"));
    assert_eq!(test.beat(beat_of("a", -1)).member_epoch, -1);
    assert_eq!(test.beat_reply(join).error, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(test.describe_consumer().members, []);
    let next = test.send_beat(join_of("b"));
    test.advance_ms(20);
    assert_eq!(test.beat_reply(next).error, ErrorCode::NONE);
}

#[test]
fn a_join_that_waits_is_answered_when_the_shard_goes() {
    let mut test = with_interval(1_000);
    let join = test.send_beat(join_of("a"));
    let error = ErrorCode::NOT_COORDINATOR;
    assert_eq!(test.unload(error)[&join], Response::Unavailable { error });
}

#[test]
fn a_target_that_was_to_come_comes_after_a_reload() {
    let mut test = with_interval(1_000);
    test.send_beat(join_of("a"));
    let mut test = test.restarted();
    assert_eq!(&*test.state(), "Assigning");
    test.advance_ms(20);
    let again = test.beat(join_of("a"));
    assert_eq!(
        (again.member_epoch, again.assignment.map(|assigned| assigned.len())),
        (2, Some(6))
    );
}

#[test]
fn topics_that_change_twice_are_one_target() {
    let mut test = with_interval(1_000);
    let join = test.send_beat(join_of("a"));
    test.advance_ms(20);
    assert!(test.is_answered(join));
    test.tell_topics(topics(&[("t", T, 7), ("u", U, 3)]));
    test.tell_topics(topics(&[("t", T, 8), ("u", U, 3)]));
    test.advance_ms(1_000);
    assert_eq!((computations(&test), test.group_epoch()), (2, 4));
    let told = test.beat(beat_of("a", 2));
    assert_eq!(
        (told.member_epoch, told.assignment.map(|assigned| assigned.len())),
        (4, Some(8))
    );
}

#[test]
fn the_assignor_that_most_ask_for_is_used() {
    let mut test = with_interval(0);
    let vote = |id: &str, assignor: &str| ConsumerGroupHeartbeatRequest {
        server_assignor: Some(assignor.into()),
        ..join_of(id)
    };
    let mut clients = Vec::new();
    for (id, assignor) in [("a", "uniform"), ("b", "range"), ("c", "range")] {
        let mut client = Client::new(id);
        client.hear(&test.beat(vote(id, assignor)));
        clients.push(client);
    }
    assert_eq!(&*test.describe_consumer().assignor_name, "range");
    settle(&mut test, &mut clients);
    let numbers: Vec<Vec<i32>> = clients.iter().map(Client::numbers).collect();
    assert_eq!(numbers, [[0, 1], [2, 3], [4, 5]]);
}

#[test]
fn a_thousand_members_that_come_together_settle_with_one_target() {
    let mut test = shard_with(Settings::default());
    test.tell_topics(topics(&[("t", T, 1_000)]));
    let tickets: Vec<Ticket> = (0..1_000)
        .map(|number| {
            if number % 10 == 0 {
                test.advance_ms(4);
            }
            test.send_beat(join_of(&format!("m{number:04}")))
        })
        .collect();
    test.advance_ms(100);
    assert_eq!((computations(&test), &*test.state()), (1, "Stable"));
    let one_each = |ticket: &Ticket| {
        test.beat_reply(*ticket)
            .assignment
            .is_some_and(|assigned| assigned.len() == 1)
    };
    assert!(tickets.iter().all(one_each));
}

#[test]
fn a_group_whose_assignor_fails_goes_on_with_its_last_target_until_there_is_another() {
    // Otherwise than scenario 72.
    let mut test = with_interval(1_000);
    let a = test.send_beat(join_of("a"));
    test.advance_ms(20);
    assert_eq!(test.beat_reply(a).member_epoch, 2);
    let failures = |test: &GroupTest| {
        let is_one = |event: &&Event| matches!(event, Event::AssignorFailed { .. });
        test.events.iter().filter(is_one).count()
    };
    // No upstream says so; it stands for whatever an assignor may fail of.
    test.tell_topics(topics(&[("t", T, -1)]));
    let b = test.send_beat(join_of("b"));
    test.advance_ms(1_000);
    let refused = test.beat_reply(b);
    assert_eq!(refused.error, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    assert!(refused.error_message.is_some_and(|message| message.contains("uniform")));
    assert_eq!((failures(&test), &*test.state()), (1, "Assigning"));
    let kept = test.beat(beat_of("a", 2));
    assert_eq!((kept.error, kept.member_epoch), (ErrorCode::NONE, 2));

    let again = test.send_beat(join_of("b"));
    test.advance_ms(5_000);
    assert_eq!(failures(&test), 2, "it is tried again");
    assert_eq!(test.beat_reply(again).error, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    let mut loaded = test.restarted();
    for test in [&mut test, &mut loaded] {
        test.tell_topics(topics(&[("t", T, 6)]));
        let again = test.send_beat(join_of("b"));
        test.advance_ms(5_000);
        assert_eq!(test.beat_reply(again).error, ErrorCode::NONE);
        assert_eq!(
            test.beat(beat_of("a", 2)).assignment.map(|assigned| assigned.len()),
            Some(3)
        );
    }
}
