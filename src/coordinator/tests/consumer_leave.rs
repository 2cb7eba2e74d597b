//! Members that leave.

use super::consumer_client::{Client, SESSION_MS, beat_of, join_of, settle, shard, static_join_of};
use crate::coordinator::event::{EpochReason, Event};
use crate::coordinator::record::{ConsumerGroupRecord, Record, TargetAssignmentValue};
use crate::wire::error_code::ErrorCode;

#[test]
fn who_leaves_makes_room_for_the_others() {
    // Scenario 76.
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    let mut b = Client::joined(&mut test, "b");
    settle(&mut test, &mut [a.clone(), b.clone()]);
    a.hear(&test.beat(join_of("a")));
    let left = test.beat(beat_of("b", -1));
    assert_eq!(
        (left.error, left.member_id.as_deref(), left.member_epoch),
        (ErrorCode::NONE, Some("b"), -1)
    );
    assert_eq!(test.group_epoch(), 4);
    assert_eq!(test.beat_error(beat_of("b", 3)), ErrorCode::UNKNOWN_MEMBER_ID);
    a.beat(&mut test);
    assert_eq!((a.epoch, a.numbers().len()), (4, 6));
    b.owned = Default::default();
}

#[test]
fn the_last_to_leave_leaves_an_empty_group_whose_next_member_is_not_held_up() {
    // Scenario 76.
    let mut test = shard();
    Client::joined(&mut test, "a");
    test.beat(beat_of("a", -1));
    let group = test.describe_consumer();
    assert_eq!(
        (&*group.state, group.group_epoch, group.assignment_epoch),
        ("Empty", 3, 3)
    );
    let last = test.records.iter().rev().find_map(|record| match record {
        Record::ConsumerGroup {
            record: ConsumerGroupRecord::Target(Some(target)),
            ..
        } => Some(target.clone()),
        _ => None,
    });
    assert_eq!(last, Some(TargetAssignmentValue::of_server(3, 0)));
    assert_eq!(test.beat(join_of("b")).member_epoch, 4);
}

#[test]
fn when_all_have_fallen_silent_the_group_is_at_rest_and_its_next_member_is_not_held_up() {
    let mut test = shard();
    Client::joined(&mut test, "a");
    Client::joined(&mut test, "b");
    test.advance_ms(SESSION_MS);
    for test in [&mut test.restarted(), &mut test] {
        let group = test.describe_consumer();
        assert_eq!((&*group.state, group.members.len()), ("Empty", 0));
        assert_eq!(group.group_epoch, group.assignment_epoch);
        let joined = test.beat(join_of("c"));
        assert_eq!(joined.assignment.map(|assigned| assigned.len()), Some(6));
    }
}

#[test]
fn whoever_leaves_leaves_no_ghost_however_far_it_had_come() {
    for beats in 0..6 {
        let mut test = shard();
        let mut a = Client::joined(&mut test, "a");
        let mut b = Client::joined(&mut test, "b");
        for beat in 0..beats {
            let client = if beat % 2 == 0 { &mut a } else { &mut b };
            client.beat(&mut test);
        }
        assert_eq!(test.beat(beat_of("b", -1)).member_epoch, -1);
        let left: Vec<_> = test
            .describe_consumer()
            .members
            .into_iter()
            .map(|member| member.member_id)
            .collect();
        assert_eq!(left, ["a".into()], "after {beats} heartbeats");
        // One that was on its way already.
        assert_eq!(test.beat_error(b.request()), ErrorCode::UNKNOWN_MEMBER_ID);
        settle(&mut test, &mut [a]);
        assert_eq!(test.member("a").assignment[0].partitions.len(), 6);
    }
}

#[test]
fn who_is_named_twice_leaves_once() {
    let mut test = shard();
    Client::joined(&mut test, "a");
    Client::joined(&mut test, "b");
    let epoch = test.group_epoch();
    assert_eq!(test.leave(&[("a", None), ("a", None)]), [ErrorCode::NONE; 2]);
    assert_eq!(test.group_epoch(), epoch + 1);
}

#[test]
fn an_administrator_takes_static_members_out() {
    let mut test = shard();
    test.beat(static_join_of("a", "i"));
    test.beat(static_join_of("b", "j"));
    Client::joined(&mut test, "c");
    let epoch = test.group_epoch();
    let errors = test.leave(&[
        ("", Some("i")),
        ("", Some("unknown")),
        ("x", Some("j")),
        ("c", None),
        ("stranger", None),
    ]);
    assert_eq!(
        errors,
        [
            ErrorCode::NONE,
            ErrorCode::UNKNOWN_MEMBER_ID,
            ErrorCode::FENCED_INSTANCE_ID,
            ErrorCode::NONE,
            ErrorCode::UNKNOWN_MEMBER_ID
        ]
    );
    assert_eq!(test.group_epoch(), epoch + 1, "all with one bump");
    assert!(test.events.iter().any(|event| matches!(
        event,
        Event::GroupEpochBumped {
            reason: EpochReason::RemovedByAdmin,
            ..
        }
    )));
}
