//! Which assignor a group has, who can run it, and what makes it compute anew.

use super::computing_client::{all_to, asking, assignor, install_of, of_versions, running};
use super::consumer_client::{Client, beat_of, join_of, shard, topics};
use super::consumer_migration::owning;
use super::group_test::GroupTest;
use super::requests::old_join;
use crate::coordinator::event::{EpochReason, Event, FallBackReason, PassedOverReason};
use crate::coordinator::request::{ClientAssignor, ConsumerGroupHeartbeatRequest};
use crate::wire::error_code::ErrorCode;

fn chosen(test: &mut GroupTest) -> String {
    test.describe_consumer().assignor_name.to_string()
}

fn says(member_id: &str, epoch: i32, assignors: &[ClientAssignor]) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        client_assignors: Some(assignors.to_vec()),
        ..beat_of(member_id, epoch)
    }
}

/// A member that runs "lag" and has everything.
fn alone() -> (GroupTest, Client) {
    let mut test = shard();
    let mut client = Client::new("a");
    client.hear(&test.beat(running("a", &[assignor("lag")])));
    test.give_all_to(0, "a", client.epoch);
    client.beat(&mut test);
    client.beat(&mut test);
    assert_eq!(&*test.state(), "Stable");
    (test, client)
}

fn bumps(test: &GroupTest) -> Vec<EpochReason> {
    let bump = |event: &Event| match event {
        Event::GroupEpochBumped { reason, .. } => Some(*reason),
        _ => None,
    };
    test.events.iter().filter_map(bump).collect()
}

#[test]
fn a_member_without_the_assignor_brings_the_group_back_to_a_server_assignor() {
    let (mut test, mut a) = alone();
    assert_eq!(chosen(&mut test), "lag");
    test.beat(join_of("b"));
    assert_eq!(chosen(&mut test), "uniform");
    assert_eq!(test.computed_by().as_deref(), Some("uniform"));
    a.beat(&mut test);
    test.beat(beat_of("b", -1));
    assert_eq!(chosen(&mut test), "lag");
    assert!(a.beat(&mut test).should_compute_assignment);
}

#[test]
fn a_rolling_upgrade_never_stops_and_only_who_reads_everything_computes() {
    let mut test = shard();
    let mut old = Client::new("a");
    old.hear(&test.beat(running("a", &[of_versions(0, 1)])));
    test.give_all_to(0, "a", old.epoch);
    old.beat(&mut test);
    old.beat(&mut test);
    // The first new one writes version 2, which the old one cannot read.
    let joined = test.beat(running("b", &[of_versions(1, 2)]));
    assert!(joined.should_compute_assignment);
    assert!(!old.beat(&mut test).should_compute_assignment);
    test.give_all_to(1, "b", joined.member_epoch);
    old.beat(&mut test);
    old.beat(&mut test);
    // One that does not read the old one's any more: nobody reads all three.
    let newest = test.beat(running("c", &[of_versions(2, 3)]));
    assert_eq!(newest.error, ErrorCode::NONE, "it is let in");
    assert_eq!(test.fell_back(), [FallBackReason::NoCandidate]);
    assert_eq!(test.computed_by().as_deref(), Some("uniform"));
    // With the old one gone the newest reads all there are.
    test.beat(beat_of("a", -1));
    let epoch = test.member("c").member_epoch;
    assert!(test.beat(beat_of("c", epoch)).should_compute_assignment);
}

#[test]
fn who_can_no_longer_read_everything_is_passed_over_when_it_asks() {
    let (mut test, a) = alone();
    test.tell_topics(topics(&[("t", 1, 7)]));
    assert!(test.beat(beat_of("a", a.epoch)).should_compute_assignment);
    test.send_beat(running("b", &[of_versions(0, 2)]));
    assert_eq!(test.computing().as_deref(), Some("a"));
    assert_eq!(test.try_prepare("a", a.epoch).error, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(test.passed_over(), [("a".into(), PassedOverReason::Unfit)]);
    assert_eq!(test.computing().as_deref(), Some("b"), "whose join was parked");
}

#[test]
fn who_takes_its_assignor_back_is_passed_over() {
    let (mut test, a) = alone();
    test.register("x");
    test.tell_topics(topics(&[("t", 1, 7)]));
    let poll = test.poll("x");
    assert!(test.beat_reply(poll).should_compute_assignment);
    let other = ConsumerGroupHeartbeatRequest {
        client_assignors: Some(vec![assignor("zone")]),
        ..beat_of("x", 1)
    };
    test.beat(other);
    assert_eq!(test.passed_over(), [("x".into(), PassedOverReason::Unfit)]);
    assert!(test.beat(beat_of("a", a.epoch)).should_compute_assignment);
}

#[test]
fn an_external_one_helps_members_that_run_it_themselves() {
    let (mut test, a) = alone();
    test.register("x");
    let poll = test.poll("x");
    test.tell_topics(topics(&[("t", 1, 7)]));
    assert!(test.beat_reply(poll).should_compute_assignment, "it does nothing else");
    assert!(!test.beat(beat_of("a", a.epoch)).should_compute_assignment);
}

#[test]
fn a_reason_asks_for_a_new_assignment_and_so_does_other_metadata() {
    let (mut test, a) = alone();
    let before = bumps(&test).len();
    let same = says("a", a.epoch, &[assignor("lag")]);
    assert!(!test.beat(same).should_compute_assignment, "nothing new");
    let mut asks = assignor("lag");
    asks.reason = 7;
    assert!(test.beat(says("a", a.epoch, &[asks])).should_compute_assignment);
    test.give_all_to(0, "a", a.epoch);
    let epoch = test.beat(beat_of("a", a.epoch)).member_epoch;
    test.advance_ms(1_000);
    let mut described = assignor("lag");
    described.metadata = vec![1].into();
    assert!(
        test.beat(says("a", epoch, &[described.clone()]))
            .should_compute_assignment
    );
    test.give_all_to(0, "a", epoch);
    let epoch = test.beat(beat_of("a", epoch)).member_epoch;
    test.advance_ms(1_000);
    let more = [described, assignor("zone")];
    assert!(test.beat(says("a", epoch, &more)).should_compute_assignment);
    let asked = EpochReason::AssignmentAsked;
    assert_eq!(bumps(&test)[before..], [asked, asked, EpochReason::AssignorChanged]);
}

#[test]
fn whoever_asks_all_the_time_gets_one_in_a_second() {
    let (mut test, mut a) = alone();
    let before = bumps(&test).len();
    let mut asks = assignor("lag");
    asks.reason = 1;
    for _ in 0..30 {
        let told = test.beat(says("a", a.epoch, std::slice::from_ref(&asks)));
        a.hear(&told);
        if told.should_compute_assignment {
            test.give_all_to(0, "a", a.epoch);
        }
        test.advance_ms(100);
    }
    assert!((3..=4).contains(&(bumps(&test).len() - before)), "{:?}", bumps(&test));
    test.advance_ms(1_000);
    let last = bumps(&test).len();
    test.advance_ms(10_000);
    assert_eq!(bumps(&test).len(), last, "what was kept is heeded once");
}

#[test]
fn an_external_one_asks_by_its_reason() {
    let mut test = shard();
    test.register("x");
    let poll = test.poll("x");
    test.send_beat(asking("a", "lag"));
    assert!(test.beat_reply(poll).should_compute_assignment);
    test.give_all_to(0, "x", 1);
    let mut moved = assignor("lag");
    moved.reason = 2;
    let other = ClientAssignor {
        name: "zone".into(),
        ..moved.clone()
    };
    assert!(test.beat(says("x", 1, &[moved])).should_compute_assignment);
    test.give_all_to(0, "x", 1);
    test.advance_ms(2_000);
    let epoch = test.group_epoch();
    assert!(!test.beat(says("x", 1, &[other])).should_compute_assignment);
    assert_eq!(test.group_epoch(), epoch, "the group does not have that one");
}

#[test]
fn a_wish_during_a_computation_is_for_the_next_one() {
    let (mut test, a) = alone();
    let mut asks = assignor("lag");
    asks.reason = 1;
    assert!(test.beat(says("a", a.epoch, &[asks.clone()])).should_compute_assignment);
    let prepared = test.prepare("a", a.epoch);
    asks.metadata = vec![1].into();
    test.beat(says("a", a.epoch, &[asks]));
    assert_eq!(test.group_epoch(), prepared.group_epoch, "too soon");
    test.advance_ms(1_000);
    assert_eq!(test.group_epoch(), prepared.group_epoch + 1);
    test.install(install_of("a", a.epoch, &prepared, all_to(&prepared, 0)));
    assert!(test.beat(beat_of("a", a.epoch)).should_compute_assignment);
}

#[test]
fn classic_members_are_placed_by_an_external_one_as_well() {
    let mut test = shard();
    test.register("x");
    let poll = test.poll("x");
    let join = test.send_beat(asking("a", "lag"));
    assert!(test.beat_reply(poll).should_compute_assignment);
    test.give_all_to(0, "x", 1);
    assert_eq!(test.beat_reply(join).error, ErrorCode::NONE);
    let poll = test.poll("x");
    let join = test.join(owning(&[], old_join()));
    let classic = test.joined(join).member_id;
    assert!(test.beat_reply(poll).should_compute_assignment);
    let prepared = test.prepare("x", 1);
    assert_eq!(prepared.members.len(), 2);
    let place = prepared.members.iter().position(|member| member.member_id == classic);
    let members = all_to(&prepared, place.expect("the classic one"));
    assert_eq!(test.install(install_of("x", 1, &prepared, members)).0, ErrorCode::NONE);
    let target = test.member(&classic).target_assignment;
    assert_eq!(target.iter().map(|topic| topic.partitions.len()).sum::<usize>(), 6);
}

#[test]
fn a_classic_members_protocols_are_no_names_of_assignors() {
    let (mut test, _) = alone();
    let mut join = owning(&[], old_join());
    for protocol in &mut join.protocols {
        protocol.name = "lag".into();
    }
    let join = test.join(join);
    test.joined(join);
    assert_eq!(chosen(&mut test), "uniform");
}
