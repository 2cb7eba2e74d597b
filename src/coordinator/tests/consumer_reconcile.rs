//! Partitions on their way from one member to another.

use super::consumer_client::{
    Client, REBALANCE_MS, T, U, at_once, beat_of, join_of, of_t, owning, partition, settle, shard, shard_with,
};
use crate::coordinator::event::{EpochReason, Event};
use crate::coordinator::held::HeldPartitions;
use crate::coordinator::partitions::Partitions;
use crate::coordinator::record::{ConsumerGroupRecord, CurrentAssignmentValue, MemberState, Record};
use crate::coordinator::request::ConsumerGroupHeartbeatRequest;
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

#[test]
fn what_is_to_move_is_given_up_before_it_is_taken() {
    // Scenarios 85, 86.
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    let mut b = Client::joined(&mut test, "b");
    assert_eq!((b.epoch, b.numbers()), (3, vec![]), "nothing is free yet");
    assert_eq!(&*test.state(), "Reconciling");
    a.beat(&mut test);
    assert_eq!(
        (a.epoch, a.numbers().len()),
        (2, 3),
        "it stays at its epoch until it has given up"
    );
    b.beat(&mut test);
    assert_eq!(b.numbers(), Vec::<i32>::new(), "a has not said that it gave up");
    let acknowledged = a.beat(&mut test);
    assert_eq!((acknowledged.member_epoch, acknowledged.assignment), (3, None));
    b.beat(&mut test);
    assert_eq!((b.epoch, b.numbers().len()), (3, 3));
    assert!(!a.owned.intersects(&b.owned));
    assert_eq!(&*test.state(), "Stable");
}

#[test]
fn saying_nothing_or_too_little_gives_nothing_up() {
    // Scenarios 87, 88.
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    Client::joined(&mut test, "b");
    a.beat(&mut test);
    let kept = (*a.owned).clone();
    let still = |more: &[i32]| {
        kept.iter()
            .copied()
            .chain(of_t(more).iter().copied())
            .collect::<Partitions>()
    };
    let silent = test.beat(beat_of("a", 2));
    assert_eq!((silent.member_epoch, silent.assignment), (2, None));
    let lost: Vec<i32> = (0..6).filter(|number| !kept.contains(&partition(T, *number))).collect();
    let partly = test.beat(owning("a", 2, still(&lost[..1])));
    assert_eq!((partly.member_epoch, partly.assignment), (2, None));
    let given_up = test.beat(owning("a", 2, kept));
    assert_eq!(given_up.member_epoch, 3);
}

#[test]
fn who_never_gives_up_is_fenced() {
    // Scenario 89.
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    let mut b = Client::joined(&mut test, "b");
    a.beat(&mut test);
    let half_ms = u64::try_from(REBALANCE_MS).expect("positive") / 2;
    for _ in 0..2 {
        assert_eq!(test.beat(beat_of("a", 2)).error, ErrorCode::NONE);
        test.advance_ms(half_ms);
        b.beat(&mut test);
    }
    assert_eq!(test.beat_error(beat_of("a", 2)), ErrorCode::UNKNOWN_MEMBER_ID);
    settle(&mut test, &mut [b.clone()]);
    assert_eq!(test.member("b").assignment[0].partitions.len(), 6);
    assert!(test.events.iter().any(|event| matches!(
        event,
        Event::ConsumerMemberRemoved {
            reason: EpochReason::RebalanceTimedOut,
            ..
        }
    )));
}

#[test]
fn who_gave_up_goes_to_the_newest_target() {
    // Scenario 90.
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    Client::joined(&mut test, "b");
    a.beat(&mut test);
    Client::joined(&mut test, "c");
    a.beat(&mut test);
    assert_eq!(
        (a.epoch, a.numbers().len()),
        (2, 2),
        "there is more to give up, still at the epoch it is at"
    );
    a.beat(&mut test);
    assert_eq!(a.epoch, 4);
}

#[test]
fn who_waits_for_partitions_follows_a_newer_target_meanwhile() {
    // Scenario 91.
    let mut test = shard();
    let a = Client::joined(&mut test, "a");
    let mut b = Client::joined(&mut test, "b");
    b.hear(&test.beat(ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(vec!["u".into()]),
        ..b.request()
    }));
    assert_eq!((b.epoch, b.owned.len()), (4, 3));
    assert_eq!(a.numbers().len(), 6, "which never heard of any of it");
}

#[test]
fn what_a_member_has_to_give_up_and_gets_back_is_its_own() {
    // Scenario 92.
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    Client::joined(&mut test, "b");
    a.beat(&mut test);
    test.beat(beat_of("b", -1));
    a.beat(&mut test);
    assert_eq!((a.epoch, a.numbers()), (4, vec![0, 1, 2, 3, 4, 5]));
    assert_eq!(&*test.state(), "Stable");
}

#[test]
fn who_gives_up_a_topic_loses_it_before_the_next_target() {
    // Scenario 93.
    let mut test = shard_with(Settings {
        group_consumer_assignment_interval_ms: Some(1_000),
        ..at_once()
    });
    let mut a = Client::new("a");
    let both = Some(vec!["t".into(), "u".into()]);
    let ticket = test.send_beat(ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: both,
        ..join_of("a")
    });
    test.advance_ms(100);
    a.hear(&test.beat_reply(ticket));
    assert_eq!(a.owned.len(), 9);
    a.beat(&mut test);
    a.hear(&test.beat(ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(vec!["t".into()]),
        ..a.request()
    }));
    assert_eq!((a.epoch, a.owned.len()), (2, 6), "at its old epoch");
    assert!(!a.owned.contains(&partition(U, 0)));
    assert_eq!(&*test.state(), "Assigning");
    test.advance_ms(1_000);
    a.beat(&mut test);
    assert_eq!((a.epoch, &*test.state()), (3, "Stable"));
}

fn reloaded_in(state: MemberState) -> super::group_test::GroupTest {
    let mut test = shard();
    Client::joined(&mut test, "a");
    let held: HeldPartitions = [(partition(T, 0), 2)].into_iter().collect();
    test.records.push(Record::ConsumerGroup {
        group_id: "g".into(),
        record: ConsumerGroupRecord::CurrentAssignment {
            member_id: "a".into(),
            value: Some(CurrentAssignmentValue {
                member_epoch: 2,
                previous_member_epoch: 0,
                state,
                assigned: held,
                pending_revocation: HeldPartitions::default(),
            }),
        },
    });
    test.restarted()
}

#[test]
fn a_member_in_a_state_of_the_future_begins_anew() {
    // Scenario 96.
    let mut test = reloaded_in(MemberState::Unknown);
    assert_eq!(
        test.beat_error(owning("a", 2, of_t(&[0]))),
        ErrorCode::FENCED_MEMBER_EPOCH
    );
    assert_eq!(test.beat_error(beat_of("a", 2)), ErrorCode::FENCED_MEMBER_EPOCH);
    let anew = test.beat(join_of("a"));
    assert_eq!(anew.error, ErrorCode::NONE);
    assert_eq!(anew.assignment.map(|assigned| assigned.len()), Some(6));
}

#[test]
fn the_time_to_give_up_begins_anew_after_a_reload() {
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    Client::joined(&mut test, "b");
    a.beat(&mut test);
    let mut test = test.restarted();
    test.advance_ms(40_000);
    test.beat(beat_of("a", 2));
    test.advance_ms(20_000);
    assert_eq!(test.beat_error(beat_of("a", 2)), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_log_without_what_a_member_held_before_gives_no_partition_two_owners() {
    // Scenario 97.
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    let mut b = Client::joined(&mut test, "b");
    a.beat(&mut test);
    a.beat(&mut test);
    b.beat(&mut test);
    // As compaction leaves it: of each member only the last, and before them the tombstone of one who held everything.
    let is_current = |record: &Record, id: &str| {
        matches!(record, Record::ConsumerGroup { record: ConsumerGroupRecord::CurrentAssignment { member_id, .. }, .. }
            if &**member_id == id)
    };
    let last = |id: &str| {
        test.records
            .iter()
            .rposition(|record| is_current(record, id))
            .expect("recorded")
    };
    let (last_a, last_b) = (last("a"), last("b"));
    let mut place = 0;
    test.records.retain(|record| {
        let keep = !(is_current(record, "a") && place != last_a || is_current(record, "b") && place != last_b);
        place += 1;
        keep
    });
    let mut test = test.restarted();
    settle(&mut test, &mut [a.clone(), b.clone()]);
    let (of_a, of_b) = (test.member("a"), test.member("b"));
    assert_eq!(
        of_a.assignment[0].partitions.len() + of_b.assignment[0].partitions.len(),
        6
    );
}
