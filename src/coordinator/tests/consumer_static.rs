//! Static members of consumer groups.

use super::consumer_client::{
    Client, SESSION_MS, at_once, beat_of, join_of, settle, shard, shard_with, static_join_of,
};
use crate::coordinator::request::ConsumerGroupHeartbeatRequest;
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

/// A heartbeat of a static member that says nothing else.
fn static_beat(member_id: &str, instance_id: &str, member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_instance_id: Some(instance_id.into()),
        ..beat_of(member_id, member_epoch)
    }
}

#[test]
fn a_static_member_that_returns_has_its_partitions_at_once() {
    // Scenario 98.
    let mut test = shard();
    let mut a = Client::new("a");
    a.hear(&test.beat(static_join_of("a", "i")));
    let mut b = Client::joined(&mut test, "b");
    a.beat(&mut test);
    a.beat(&mut test);
    b.beat(&mut test);
    let epoch = test.group_epoch();
    let left = test.beat(static_beat("a", "i", -2));
    assert_eq!(
        (left.error, left.member_epoch, left.assignment),
        (ErrorCode::NONE, -2, None)
    );
    b.beat(&mut test);
    assert_eq!(b.numbers().len(), 3, "what the one that left had is kept for it");
    let back = test.beat(static_join_of("c", "i"));
    assert_eq!((back.error, back.member_epoch), (ErrorCode::NONE, epoch));
    assert_eq!(back.assignment.as_ref(), Some(&a.owned));
    assert_eq!(test.group_epoch(), epoch);
    assert_eq!(&*test.state(), "Stable");
    assert_eq!(test.beat_error(static_beat("a", "i", 3)), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(
        test.beat_error(static_beat("a", "i", -1)),
        ErrorCode::FENCED_INSTANCE_ID
    );
    assert_eq!(test.beat_error(beat_of("a", 3)), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn who_is_refused_is_told_why_in_the_words_of_a_broker() {
    let mut test = shard();
    test.beat(static_join_of("a", "i"));
    let mut said = |request| test.beat(request).error_message.expect("a message").to_string();
    let owned = "cannot join the group because the instance id is owned by a member.";
    assert_eq!(
        said(static_join_of("c", "i")),
        format!("Static member c with instance id i {owned}")
    );
    let fenced = "Static member c with instance id i was fenced by member a.";
    assert_eq!(said(static_beat("c", "i", 2)), fenced);
    assert_eq!(said(static_beat("c", "i", -1)), fenced);
    assert_eq!(said(static_beat("c", "k", 2)), "Instance id k is unknown.");
    assert_eq!(said(static_beat("c", "k", -2)), "Instance id k is unknown.");
    assert_eq!(said(beat_of("c", 2)), "Member c is not a member of group g.");
    assert_eq!(said(beat_of("c", -1)), "Member c is not a member of group g.");
    let epochs = |comparison: &str, epoch: i32| {
        format!(
            "The consumer group member has a {comparison} member epoch ({epoch}) than the one known by the group \
             coordinator (2). The member must abandon all its partitions and rejoin."
        )
    };
    assert_eq!(said(static_beat("a", "i", 3)), epochs("greater", 3));
    assert_eq!(said(static_beat("a", "i", 1)), epochs("smaller", 1));
}

#[test]
fn a_static_member_that_does_not_return_is_taken_out() {
    // Scenario 99.
    let mut test = shard();
    test.beat(static_join_of("a", "i"));
    test.advance_ms(1_000);
    test.beat(static_beat("a", "i", -2));
    test.advance_ms(SESSION_MS - 1_000);
    assert_eq!(&*test.state(), "Empty");
}

#[test]
fn a_static_member_that_says_that_it_leaves_for_good_is_gone_at_once() {
    let mut test = shard();
    test.beat(static_join_of("a", "i"));
    let mut b = Client::joined(&mut test, "b");
    assert_eq!(test.beat(static_beat("a", "i", -1)).member_epoch, -1);
    b.beat(&mut test);
    assert_eq!(b.numbers().len(), 6, "nothing is kept for it");
    let back = test.beat(static_join_of("c", "i"));
    assert_eq!(back.error, ErrorCode::NONE, "its instance id is free");
}

#[test]
fn an_instance_id_in_use_is_not_given_to_another() {
    // Scenario 100.
    let mut test = shard_with(Settings {
        group_consumer_max_size: 1,
        ..at_once()
    });
    test.beat(static_join_of("a", "i"));
    assert_eq!(
        test.beat_error(static_join_of("b", "i")),
        ErrorCode::UNRELEASED_INSTANCE_ID
    );
    assert_eq!(
        test.beat_error(static_join_of("b", "j")),
        ErrorCode::GROUP_MAX_SIZE_REACHED
    );
}

#[test]
fn a_static_member_may_repeat_its_own_join() {
    let mut test = shard();
    let first = test.beat(static_join_of("a", "i"));
    let again = test.beat(static_join_of("a", "i"));
    assert_eq!(again, first);
}

#[test]
fn unknown_and_foreign_instances_are_told_apart() {
    // Scenario 101.
    let mut test = shard();
    test.beat(static_join_of("a", "i"));
    Client::joined(&mut test, "b");
    assert_eq!(test.beat_error(static_beat("a", "j", 2)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(test.beat_error(static_beat("b", "i", 3)), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(test.beat_error(static_beat("a", "j", -2)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(
        test.beat_error(static_beat("b", "i", -2)),
        ErrorCode::FENCED_INSTANCE_ID
    );
}

#[test]
fn a_replacement_with_another_subscription_is_another_epoch() {
    // Scenario 102.
    let mut test = shard();
    test.beat(static_join_of("a", "i"));
    test.beat(static_beat("a", "i", -2));
    let back = test.beat(ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(vec!["u".into()]),
        ..static_join_of("b", "i")
    });
    assert_eq!(
        (back.member_epoch, back.assignment.map(|assigned| assigned.len())),
        (3, Some(3))
    );
}

#[test]
fn a_member_that_becomes_static_stays_who_it_is() {
    let mut test = shard();
    Client::joined(&mut test, "a");
    let now_static = test.beat(static_join_of("a", "i"));
    assert_eq!((now_static.error, now_static.member_epoch), (ErrorCode::NONE, 2));
    assert_eq!(test.member("a").group_instance_id.as_deref(), Some("i"));
}

#[test]
fn a_place_that_is_kept_survives_a_reload() {
    let mut test = shard();
    let mut a = Client::new("a");
    a.hear(&test.beat(static_join_of("a", "i")));
    test.beat(static_beat("a", "i", -2));
    let mut test = test.restarted();
    let back = test.beat(static_join_of("b", "i"));
    assert_eq!((back.member_epoch, back.assignment), (2, Some(a.owned)));
    let mut b = Client::new("b");
    b.hear(&test.beat(static_join_of("b", "i")));
    settle(&mut test, &mut [b]);
    test.beat(join_of("c"));
    assert_eq!(&*test.state(), "Reconciling");
}
