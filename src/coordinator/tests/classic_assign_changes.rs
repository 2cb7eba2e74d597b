//! What changes around a group that is assigned for: topics, rules, restarts, static members, other protocols.

use std::sync::Arc;

use bytes::Bytes;

use super::classic_assign::{
    Cooperative, assert_leaderless, assigned_by, half_moved, join_all, of_t, offering, settle, shard, synced,
};
use super::consumer_client::{T, U, beat_of, join_of, topics};
use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{join_as, static_join, subscription, sync_as};
use crate::coordinator::event::RebalanceReason;
use crate::coordinator::input::Input;
use crate::coordinator::request::{JoinGroupRequest, SyncGroupRequest, Text};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

#[test]
fn a_topic_that_grows_is_assigned_at_once() {
    let mut test = shard(None);
    let mut members = [Cooperative::new(&mut test), Cooperative::new(&mut test)];
    let [first, second] = &mut members;
    settle(&mut test, &mut [first, second]);
    test.events.clear();
    // Another topic does not matter.
    test.tell_topics(topics(&[("t", T, 4), ("u", U, 3)]));
    assert_eq!(test.began_because(), []);
    test.tell_topics(topics(&[("t", T, 7), ("u", U, 3)]));
    assert_eq!(test.began_because(), [RebalanceReason::TopicsChanged]);
    assert_eq!(
        test.heartbeat(&first.id, first.generation_id),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    settle(&mut test, &mut [first, second]);
    let mut all = [&first.owned[..], &second.owned].concat();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4, 5, 6]);
    // The same picture again changes nothing.
    test.events.clear();
    test.tell_topics(topics(&[("t", T, 7)]));
    assert_eq!(test.began_because(), []);
}

#[test]
fn a_topic_that_comes_or_goes_is_noticed() {
    let mut test = GroupTest::with_settings(assigned_by(None));
    test.tell_topics(topics(&[("u", U, 2)]));
    let mut member = Cooperative::new(&mut test);
    settle(&mut test, &mut [&mut member]);
    assert!(member.owned.is_empty());
    test.tell_topics(topics(&[("t", T, 2)]));
    settle(&mut test, &mut [&mut member]);
    assert_eq!(member.owned, [0, 1]);
    test.tell_topics(topics(&[("u", U, 2)]));
    settle(&mut test, &mut [&mut member]);
    assert!(member.owned.is_empty());
}

#[test]
fn a_group_that_a_member_leads_is_left_to_look_after_its_topics_itself() {
    let mut test = GroupTest::new();
    test.tell_topics(topics(&[("t", T, 4)]));
    test.stable_group(1);
    test.events.clear();
    test.tell_topics(topics(&[("t", T, 5)]));
    assert_eq!(test.began_because(), []);
}

#[test]
fn after_a_restart_members_go_on_and_changed_topics_are_still_noticed() {
    let mut test = shard(None);
    let mut members = [Cooperative::new(&mut test), Cooperative::new(&mut test)];
    let [first, second] = &mut members;
    settle(&mut test, &mut [first, second]);
    let mut again = test.restarted();
    assert_eq!(again.began_because(), []);
    assert_eq!(again.heartbeat(&first.id, first.generation_id), ErrorCode::NONE);
    assert_eq!(synced(&mut again, &second.id, second.generation_id), second.owned);
    let view = again.view().groups.remove(0).classic.expect("members");
    assert_eq!((view.assigned_by, view.assignor), ("coordinator", None));
    again.tell_topics(topics(&[("t", T, 5)]));
    assert_eq!(again.began_because(), [RebalanceReason::TopicsChanged]);
    // It also grew while nobody looked.
    let mut late = GroupTest::loaded_from(assigned_by(None), &test.records);
    late.tell_topics(topics(&[("t", T, 5)]));
    assert_eq!(late.began_because(), [RebalanceReason::TopicsChanged]);
}

#[test]
fn what_a_restart_found_withheld_is_handed_out_by_one_more_rebalance() {
    let mut test = shard(None);
    let (mut first, mut second) = half_moved(&mut test);
    let mut again = test.restarted();
    assert_eq!(again.began_because(), [RebalanceReason::TopicsChanged]);
    settle(&mut again, &mut [&mut first, &mut second]);
    assert_eq!((first.owned.len(), second.owned.len()), (2, 2));
}

#[test]
fn a_rule_holds_from_the_next_rebalance_on_and_until_the_next_without_it() {
    let mut test = GroupTest::new();
    test.tell_topics(topics(&[("t", T, 4)]));
    let ids = test.stable_group(1);
    // With the rule, nothing moves before members join.
    let mut with = GroupTest::loaded_from(assigned_by(None), &test.records);
    with.tell_topics(topics(&[("t", T, 4)]));
    assert_eq!(with.began_because(), []);
    let rejoined = with.join(join_as(&ids[0]));
    assert_leaderless(&with.joined(rejoined));
    assert_eq!(synced(&mut with, &ids[0], 2), [0, 1, 2, 3]);
    // Without it nobody watches the topics but the coordinator, until a member leads again.
    let mut without = GroupTest::loaded_from(Settings::default(), &with.records);
    without.tell_topics(topics(&[("t", T, 4)]));
    assert_eq!(without.began_because(), []);
    without.tell_topics(topics(&[("t", T, 5)]));
    assert_eq!(without.began_because(), [RebalanceReason::TopicsChanged]);
    let rejoined = without.join(join_as(&ids[0]));
    assert_eq!(without.joined(rejoined).leader, ids[0]);
}

fn static_of(instance_id: &str, metadata: &[&str]) -> JoinGroupRequest {
    offering("range", subscription(metadata), static_join(instance_id))
}

#[test]
fn a_static_member_that_returns_has_its_part_again_and_nobody_notices() {
    let mut test = shard(None);
    let joined = join_all(&mut test, vec![static_of("i0", &["t"]), static_of("i1", &["t"])]);
    let parts: Vec<Vec<i32>> = joined
        .iter()
        .zip(["i0", "i1"])
        .map(|(joined, instance_id)| of_t(&sync_static(&mut test, &joined.member_id, instance_id)))
        .collect();
    test.events.clear();
    for supports_skipping_assignment in [true, false] {
        let ticket = test.join(JoinGroupRequest {
            supports_skipping_assignment,
            ..static_of("i0", &["t"])
        });
        let back = test.joined(ticket);
        assert_eq!(
            (back.generation_id, &*back.leader, back.skip_assignment),
            (1, "", false)
        );
        assert_eq!(back.members, []);
        assert_eq!(of_t(&sync_static(&mut test, &back.member_id, "i0")), parts[0]);
    }
    assert_eq!(test.began_because(), []);
}

#[test]
fn a_static_member_that_returns_with_other_topics_gets_them() {
    for metadata in [subscription(&["t", "u"]), Bytes::from_static(b"?")] {
        let mut test = shard(None);
        let joined = join_all(&mut test, vec![static_of("i0", &["t"])]);
        sync_static(&mut test, &joined[0].member_id, "i0");
        test.events.clear();
        let ticket = test.join(offering("range", metadata, static_join("i0")));
        assert_eq!(test.began_because(), [RebalanceReason::StaticMemberReplaced]);
        assert_eq!(test.joined(ticket).generation_id, 2);
    }
}

fn sync_static(test: &mut GroupTest, member_id: &Text, instance_id: &str) -> Bytes {
    let ticket = test.sync(SyncGroupRequest {
        group_instance_id: Some(instance_id.into()),
        ..sync_as(member_id, 1)
    });
    let reply = test.sync_reply(ticket);
    assert_eq!(reply.error, ErrorCode::NONE);
    reply.assignment
}

#[test]
fn a_consumer_of_the_new_protocol_may_come_and_go() {
    let mut test = shard(None);
    let mut member = Cooperative::new(&mut test);
    settle(&mut test, &mut [&mut member]);
    let new = test.beat(join_of("new"));
    assert_eq!(new.error, ErrorCode::NONE, "{new:?}");
    assert_eq!(&*test.view().groups[0].group_type, "consumer");
    test.beat(beat_of("new", -1));
    assert_eq!(&*test.view().groups[0].group_type, "classic");
    settle(&mut test, &mut [&mut member]);
    assert_eq!(member.owned, [0, 1, 2, 3]);
}

#[test]
fn settings_that_change_meanwhile_keep_the_rule() {
    let mut test = shard(None);
    let mut member = Cooperative::new(&mut test);
    settle(&mut test, &mut [&mut member]);
    let settings = Settings {
        group_max_size: 7,
        ..assigned_by(None)
    };
    test.input(Input::Settings(Arc::new(settings)));
    let newcomer = Cooperative::new(&mut test);
    let ticket = newcomer.join(&mut test);
    let rejoined = member.join(&mut test);
    test.advance_ms(INITIAL_DELAY_MS);
    assert_leaderless(&test.joined(ticket));
    assert_leaderless(&test.joined(rejoined));
}
