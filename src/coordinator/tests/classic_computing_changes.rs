//! What changes while an external assignor computes for a classic group, and what makes it be asked again.

use super::classic_assign::{assert_leaderless, offering};
use super::classic_computing::{Eager, shard};
use super::computing_client::{UNHEARD_MS, all_to, assignor, install_of};
use super::consumer_client::{T, beat_of, join_of, topics};
use super::group_test::GroupTest;
use super::requests::{join_as, subscription};
use crate::coordinator::event::{FallBackReason, RebalanceReason};
use crate::coordinator::request::{ClientAssignor, ConsumerGroupHeartbeatRequest, Text};
use crate::wire::error_code::ErrorCode;

/// A heartbeat of "x" that asks for a new assignment.
fn asking() -> ConsumerGroupHeartbeatRequest {
    let asks = ClientAssignor {
        reason: 1,
        ..assignor("lag")
    };
    ConsumerGroupHeartbeatRequest {
        client_assignors: Some(vec![asks]),
        ..beat_of("x", 1)
    }
}

/// Two members, of which the second has everything, by what "x" computed.
fn settled() -> (GroupTest, Eager) {
    let mut test = shard();
    let members = Eager::new(&mut test, 2);
    test.told();
    members.give(&mut test, &[&[], &[0, 1, 2, 3]]);
    test.events.clear();
    (test, members)
}

#[test]
fn who_comes_while_it_is_computed_begins_the_round_anew_and_what_members_had_is_not_forgotten() {
    let (mut test, mut members) = settled();
    members.rejoin_by_topics(&mut test, 5);
    test.told();
    let stale = test.prepare("x", 1);
    let third = test.member_id();
    let newcomer = test.join(offering("range", subscription(&["t"]), join_as(&third)));
    for sync in &members.syncs {
        assert_eq!(test.sync_reply(*sync).error, ErrorCode::REBALANCE_IN_PROGRESS);
    }
    let install = install_of("x", 1, &stale, all_to(&stale, 0));
    assert_eq!(test.install(install).0, ErrorCode::UNKNOWN_MEMBER_ID);
    members.rejoin(&mut test);
    assert_leaderless(&test.joined(newcomer));
    test.told();
    let prepared = test.prepare("x", 1);
    assert_eq!((prepared.group_epoch, prepared.members.len()), (3, 3));
    let second = members.ids().remove(1);
    let had = prepared.members.iter().find(|member| member.member_id == second);
    assert_eq!(had.expect("a member").target.len(), 4);
    assert_eq!(test.passed_over(), []);
}

impl Eager {
    /// The topic grows, and all join again.
    fn rejoin_by_topics(&mut self, test: &mut GroupTest, partitions: i32) {
        test.tell_topics(topics(&[("t", T, partitions)]));
        self.rejoin(test);
    }
}

#[test]
fn a_topic_that_grows_meanwhile_is_assigned_by_the_next_generation() {
    let mut test = shard();
    let mut members = Eager::new(&mut test, 1);
    test.told();
    let prepared = test.prepare("x", 1);
    test.events.clear();
    test.tell_topics(topics(&[("t", T, 6)]));
    assert!(members.wait(&test));
    let install = install_of("x", 1, &prepared, all_to(&prepared, 0));
    assert_eq!(test.install(install), (ErrorCode::NONE, None));
    assert_eq!(members.parts(&test), [vec![0, 1, 2, 3]]);
    assert_eq!(test.began_because(), [RebalanceReason::TopicsChanged]);
    members.rejoin(&mut test);
    test.told();
    test.give_all_to(0, "x", 1);
    assert_eq!(members.parts(&test), [vec![0, 1, 2, 3, 4, 5]]);
}

#[test]
fn one_that_comes_after_another_had_to_assign_is_asked_and_one_that_comes_back_is_not() {
    let (mut test, mut members) = settled();
    assert!(!test.register("x").should_compute_assignment);
    assert_eq!(test.began_because(), [], "it did assign");
    test.beat(beat_of("x", -1));
    members.rejoin_by_topics(&mut test, 5);
    assert!(members.wait(&test), "it may be back at once");
    test.advance_ms(UNHEARD_MS);
    assert_eq!(test.fell_back(), [FallBackReason::NoCandidate]);
    test.events.clear();
    test.register("x");
    assert_eq!(test.began_because(), [RebalanceReason::AssignorChanged]);
    members.rejoin(&mut test);
    test.told();
    members.give(&mut test, &[&[0], &[1, 2, 3, 4]]);
    assert_eq!(members.parts(&test), [vec![0], vec![1, 2, 3, 4]]);
}

#[test]
fn a_restart_is_no_reason_to_move_anything() {
    let (test, members) = settled();
    let mut test = test.restarted();
    test.register("x");
    assert_eq!(test.began_because(), []);
    assert_eq!(test.heartbeat(&members.ids()[0], 1), ErrorCode::NONE);
    test.beat(asking());
    assert_eq!(test.began_because(), [RebalanceReason::AssignmentAsked]);
}

#[test]
fn what_was_not_computed_before_a_restart_is_asked_for_when_members_join_again() {
    let (mut test, mut members) = settled();
    members.rejoin_by_topics(&mut test, 5);
    test.told();
    test.prepare("x", 1);
    let mut test = test.restarted();
    // They are back where their last assignment was, which the topic has outgrown.
    assert_eq!(test.began_because(), [RebalanceReason::TopicsChanged]);
    assert_eq!(test.heartbeat(&members.ids()[0], 2), ErrorCode::ILLEGAL_GENERATION);
    test.register("x");
    members.rejoin(&mut test);
    test.told();
    members.give(&mut test, &[&[0, 1, 2, 3, 4], &[]]);
    assert_eq!(members.parts(&test), [vec![0, 1, 2, 3, 4], vec![]]);
}

#[test]
fn a_reason_begins_a_rebalance_and_many_of_them_one_a_second() {
    let (mut test, mut members) = settled();
    test.beat(asking());
    assert_eq!(test.began_because(), [RebalanceReason::AssignmentAsked]);
    members.rejoin(&mut test);
    test.told();
    members.give(&mut test, &[&[0, 1, 2, 3], &[]]);
    test.send_beat(asking());
    test.send_beat(asking());
    assert_eq!(test.began_because().len(), 1);
    test.advance_ms(1_000);
    assert_eq!(test.began_because().len(), 2);
}

#[test]
fn a_reason_that_comes_while_it_is_computed_is_heeded_afterwards() {
    let (mut test, mut members) = settled();
    members.rejoin_by_topics(&mut test, 5);
    test.events.clear();
    test.told();
    test.beat(asking());
    test.advance_ms(1_500);
    assert_eq!(
        test.began_because(),
        [],
        "what is computed is computed from what it says now"
    );
    let prepared = test.prepare("x", 1);
    test.send_beat(asking());
    test.advance_ms(2_500);
    assert!(members.wait(&test));
    assert_eq!(
        test.install(install_of("x", 1, &prepared, all_to(&prepared, 0))).0,
        ErrorCode::NONE
    );
    assert_eq!(test.began_because(), []);
    test.advance_ms(1_000);
    assert_eq!(test.began_because(), [RebalanceReason::AssignmentAsked]);
}

#[test]
fn a_consumer_of_the_new_protocol_ends_the_computation() {
    let (mut test, mut members) = settled();
    members.rejoin_by_topics(&mut test, 5);
    test.told();
    let prepared = test.prepare("x", 1);
    test.beat(join_of("new"));
    assert_eq!(&*test.view().groups[0].group_type, "consumer");
    for sync in &members.syncs {
        assert_eq!(test.sync_reply(*sync).error, ErrorCode::REBALANCE_IN_PROGRESS);
    }
    let install = install_of("x", 1, &prepared, all_to(&prepared, 0));
    assert_eq!(test.install(install).0, ErrorCode::UNKNOWN_MEMBER_ID);
    test.advance_ms(30_000);
    assert_eq!(test.passed_over(), []);
}

#[test]
fn the_last_member_that_leaves_ends_the_computation() {
    let mut test = shard();
    let members = Eager::new(&mut test, 1);
    test.told();
    let prepared = test.prepare("x", 1);
    let id: Text = members.ids().remove(0);
    test.leave(&[(&id, None)]);
    assert_eq!((&*test.state(), test.view().groups[0].classic.clone()), ("Empty", None));
    let install = install_of("x", 1, &prepared, all_to(&prepared, 0));
    assert_eq!(test.install(install).0, ErrorCode::UNKNOWN_MEMBER_ID);
    test.beat(asking());
    test.advance_ms(60_000);
    assert_eq!((test.passed_over(), test.fell_back()), (vec![], vec![]));
}
