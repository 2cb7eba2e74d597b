//! Classic groups whose assignment an external assignor computes: who is asked, what members wait for, and what if nothing comes.

use bytes::Bytes;

use super::classic_assign::{
    Cooperative, assert_leaderless, assigned_by, eager_joins, half_moved, join_all, of_t, offering,
};
use super::computing_client::{UNHEARD_MS, all_to, install_of, prepare_of};
use super::consumer_client::{T, U, beat_of, partition, topics};
use super::group_test::GroupTest;
use super::requests::{SESSION_MS, join_as, protocols, static_join, subscription, sync_as};
use crate::coordinator::assignor::ClassicAssignor;
use crate::coordinator::event::{Event, FallBackReason, PassedOverReason};
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{
    ClassicGroupView, InstallAssignmentRequest, InstalledMember, JoinGroupRequest, Request, Text,
};
use crate::coordinator::settings::{ClassicAssignmentRule, Settings};
use crate::wire::error_code::ErrorCode;

/// Members of these tests wait as long as their sessions are, which are the shortest of the bounds.
const PATIENCE_MS: u64 = SESSION_MS as u64;

/// Settings by which "lag" assigns for the group, and else this one.
pub(super) fn outside(fallback: Option<ClassicAssignor>) -> Settings {
    let settings = assigned_by(Some("lag"));
    let rules = settings.coordinator_assigned.iter().cloned();
    let rules = rules.map(|rule| ClassicAssignmentRule { fallback, ..rule });
    Settings {
        coordinator_assigned: rules.collect(),
        ..settings
    }
}

/// Such a shard, with the topics "t" of four and "u" of two partitions, where "x" has registered "lag".
pub(super) fn shard_with(settings: Settings) -> GroupTest {
    let mut test = GroupTest::with_settings(settings);
    test.tell_topics(topics(&[("t", T, 4), ("u", U, 2)]));
    test.register("x");
    test
}

pub(super) fn shard() -> GroupTest {
    shard_with(outside(None))
}

/// Members of an eager protocol, who wait in their syncs.
#[derive(Debug)]
pub(super) struct Eager {
    pub(super) joins: Vec<JoinGroupRequest>,
    pub(super) syncs: Vec<Ticket>,
    pub(super) generation_id: i32,
}

impl Eager {
    /// They have come into an empty group. Two or more, the last thing that happened is the end of their join phase.
    pub(super) fn new(test: &mut GroupTest, count: usize) -> Self {
        let joins = eager_joins(test, count, "range");
        let mut members = Self {
            joins,
            syncs: Vec::new(),
            generation_id: 0,
        };
        let joined = join_all(test, members.joins.clone());
        members.generation_id = joined[0].generation_id;
        joined.iter().for_each(assert_leaderless);
        members.sync(test);
        members
    }

    pub(super) fn ids(&self) -> Vec<Text> {
        self.joins.iter().map(|join| join.member_id.clone()).collect()
    }

    /// All join again, which ends the join phase.
    pub(super) fn rejoin(&mut self, test: &mut GroupTest) {
        let joins: Vec<Ticket> = self.joins.iter().map(|join| test.join(join.clone())).collect();
        for join in joins {
            self.generation_id = test.joined(join).generation_id;
        }
        self.sync(test);
    }

    fn sync(&mut self, test: &mut GroupTest) {
        let ids = self.ids();
        let sync = |id: &Text| sync_as(id, self.generation_id);
        self.syncs = ids.iter().map(|id| test.sync(sync(id))).collect();
    }

    pub(super) fn wait(&self, test: &GroupTest) -> bool {
        !self.syncs.iter().any(|sync| test.is_answered(*sync))
    }

    /// What their syncs were answered with.
    pub(super) fn parts(&self, test: &GroupTest) -> Vec<Vec<i32>> {
        let part = |sync: &Ticket| {
            let reply = test.sync_reply(*sync);
            assert_eq!(reply.error, ErrorCode::NONE);
            of_t(&reply.assignment)
        };
        self.syncs.iter().map(part).collect()
    }

    /// The same where it does not matter whose they are.
    fn sorted_parts(&self, test: &GroupTest) -> Vec<Vec<i32>> {
        let mut parts = self.parts(test);
        parts.sort_unstable();
        parts
    }

    /// The assignor asks, and gives each of them these partitions of "t".
    pub(super) fn give(&self, test: &mut GroupTest, parts: &[&[i32]]) {
        let prepared = test.prepare("x", 1);
        let members = self.ids().into_iter().zip(parts);
        let members = members.map(|(id, numbers)| installed(&id, numbers)).collect();
        let install = install_of("x", 1, &prepared, members);
        assert_eq!(test.install(install), (ErrorCode::NONE, None));
    }
}

pub(super) fn installed(member_id: &Text, numbers: &[i32]) -> InstalledMember {
    InstalledMember {
        member_id: member_id.clone(),
        partitions: numbers.iter().map(|number| partition(T, *number)).collect(),
        metadata_version: 0,
        metadata: Bytes::new(),
    }
}

impl GroupTest {
    /// The next heartbeat of "x", which is answered at once: it is to compute.
    pub(super) fn told(&mut self) {
        let poll = self.poll("x");
        assert!(self.beat_reply(poll).should_compute_assignment);
    }

    pub(super) fn classic_view(&mut self) -> ClassicGroupView {
        self.view().groups.remove(0).classic.expect("members")
    }
}

#[test]
fn what_an_external_assignor_computes_is_what_syncs_wait_for() {
    let mut test = shard();
    let members = Eager::new(&mut test, 2);
    assert!(members.wait(&test));
    assert_eq!(&*test.state(), "CompletingRebalance");
    test.told();
    let computing = test.classic_view().computation.expect("under way");
    assert_eq!(
        (&*computing.assignor, computing.member_id.as_deref()),
        ("lag", Some("x"))
    );
    members.give(&mut test, &[&[3], &[0, 1, 2]]);
    assert_eq!(members.parts(&test), [vec![3], vec![0, 1, 2]]);
    assert_eq!(&*test.state(), "Stable");
    let record = test.last_metadata().expect("a record");
    assert_eq!((record.generation, record.leader.as_deref()), (1, None));
    let view = test.classic_view();
    assert_eq!(
        (view.assigned_by, view.assignor.as_deref(), view.computation),
        ("external", Some("lag"), None)
    );
    let told = test.events.iter().find_map(|event| match event {
        Event::ComputationInstalled {
            group_epoch,
            member_id,
            members,
            partitions_withheld,
            ..
        } => Some((*group_epoch, &**member_id, *members, *partitions_withheld)),
        _ => None,
    });
    assert_eq!(told, Some((1, "x", 2, Some(0))));
}

#[test]
fn it_is_told_the_members_with_their_topics_and_what_they_had() {
    let mut test = shard();
    let mut member = Eager::new(&mut test, 1);
    test.told();
    member.give(&mut test, &[&[0, 1, 2, 3]]);
    let poll = test.poll("x");
    let both = subscription(&["u", "none", "t"]);
    let newcomer = test.join(offering("range", both, static_join("i")));
    member.rejoin(&mut test);
    let newcomer = test.joined(newcomer).member_id;
    assert!(
        test.beat_reply(poll).should_compute_assignment,
        "one that waits is told at once"
    );
    let mut prepared = test.prepare("x", 1);
    assert_eq!((prepared.group_epoch, &*prepared.assignor_name), (2, "lag"));
    prepared
        .members
        .sort_by_key(|member| member.group_instance_id.is_some());
    let told: Vec<_> = prepared
        .members
        .iter()
        .map(|member| {
            let numbers: Vec<i32> = member.target.iter().map(|had| had.partition).collect();
            let topics: Vec<u128> = member.topic_ids.iter().map(|id| id.as_u128()).collect();
            assert_eq!((member.member_epoch, member.reason, member.metadata.len()), (2, 0, 0));
            (
                member.member_id.clone(),
                member.group_instance_id.as_deref(),
                topics,
                numbers,
            )
        })
        .collect();
    let first = (member.ids().remove(0), None, vec![T], vec![0, 1, 2, 3]);
    assert_eq!(told, [first, (newcomer, Some("i"), vec![T, U], vec![])]);
    let topics: Vec<_> = prepared
        .topics
        .iter()
        .map(|topic| (topic.topic_id.as_u128(), &*topic.name, topic.partitions))
        .collect();
    assert_eq!(topics, [(T, "t", 4), (U, "u", 2)]);
    assert_eq!(
        test.install(install_of("x", 1, &prepared, all_to(&prepared, 1))),
        (ErrorCode::NONE, None)
    );
    assert_eq!(member.parts(&test), [[] as [i32; 0]]);
}

#[test]
fn members_wait_so_long_and_are_not_fenced_for_it() {
    let mut test = shard();
    let mut members = Eager::new(&mut test, 2);
    test.told();
    let prepared = test.prepare("x", 1);
    for _ in 0..2 {
        test.advance_ms(PATIENCE_MS / 2 - 1);
        test.poll("x");
        assert!(members.wait(&test));
    }
    assert_eq!(test.passed_over(), []);
    test.advance_ms(2);
    assert_eq!(members.sorted_parts(&test), [[0, 1], [2, 3]]);
    assert_eq!(test.passed_over(), [("x".into(), PassedOverReason::TimedOut)]);
    assert_eq!(test.fell_back(), [FallBackReason::AllPassedOver]);
    let view = test.classic_view();
    assert_eq!(
        (view.assigned_by, view.assignor.as_deref()),
        ("coordinator", Some("range"))
    );
    let late = install_of("x", 1, &prepared, all_to(&prepared, 0));
    assert_eq!(test.install(late).0, ErrorCode::UNKNOWN_MEMBER_ID);
    for id in members.ids() {
        assert_eq!(test.heartbeat(&id, 1), ErrorCode::NONE);
    }
    // With the next generation it has its turn again.
    test.poll("x");
    test.tell_topics(topics(&[("t", T, 5)]));
    members.rejoin(&mut test);
    members.give(&mut test, &[&[0, 1, 2, 3, 4], &[]]);
    assert_eq!(members.parts(&test), [vec![0, 1, 2, 3, 4], vec![]]);
}

#[test]
fn in_its_place_comes_what_the_rule_says_or_the_members_agree_on() {
    for (fallback, parts) in [
        (None, [vec![0, 1], vec![2, 3]]),
        (Some(ClassicAssignor::RoundRobin), [vec![0, 2], vec![1, 3]]),
    ] {
        let mut test = shard_with(outside(fallback));
        test.beat(beat_of("x", -1));
        let members = Eager::new(&mut test, 2);
        assert_eq!(members.sorted_parts(&test), parts);
        assert_eq!(test.fell_back(), [FallBackReason::NoCandidate], "nobody is waited for");
    }
}

#[test]
fn who_is_registered_and_not_heard_is_waited_for_a_moment() {
    let mut test = shard();
    let members = Eager::new(&mut test, 2);
    test.advance_ms(UNHEARD_MS - 1);
    assert!(members.wait(&test));
    test.advance_ms(1);
    assert_eq!(test.fell_back(), [FallBackReason::NobodyHeard]);
    members.parts(&test);
}

#[test]
fn another_one_has_no_more_time_than_the_first_has_left() {
    let mut test = shard();
    let members = Eager::new(&mut test, 2);
    test.told();
    test.prepare("x", 1);
    test.register("y");
    test.advance_ms(PATIENCE_MS - 1_000);
    test.beat(beat_of("x", -1));
    assert_eq!(test.passed_over(), [("x".into(), PassedOverReason::Gone)]);
    let poll = test.poll("y");
    assert!(test.beat_reply(poll).should_compute_assignment);
    test.advance_ms(999);
    assert!(members.wait(&test));
    test.advance_ms(1);
    assert!(!members.wait(&test));
    // One that was not heard yet has no turn at all.
    let mut test = shard();
    let members = Eager::new(&mut test, 2);
    test.told();
    test.prepare("x", 1);
    test.advance_ms(PATIENCE_MS - 1_000);
    test.register("y");
    test.advance_ms(1_000);
    assert_eq!(test.fell_back(), [FallBackReason::TimeOver]);
    assert!(!members.wait(&test));
}

#[test]
fn what_cannot_be_is_refused_with_its_reason_and_the_third_time_passed_over() {
    let mut test = shard();
    let members = Eager::new(&mut test, 2);
    test.told();
    let prepared = test.prepare("x", 1);
    let id = members.ids().remove(0);
    for (numbers, said) in [
        (&[0, 1, 2][..], "Partition 3 of topic t is given to nobody."),
        (&[0, 1, 2, 3, 4], "There is no partition 4 of topic t."),
        (&[0, 0], "twice"),
    ] {
        let wrong = install_of("x", 1, &prepared, vec![installed(&id, numbers)]);
        let (error, message) = test.install(wrong);
        assert_eq!(error, ErrorCode::INVALID_ASSIGNMENT);
        assert!(message.expect("a reason").contains(said), "{said}");
    }
    assert_eq!(test.passed_over(), [("x".into(), PassedOverReason::Refused)]);
    assert_eq!(members.sorted_parts(&test), [[0, 1], [2, 3]]);
}

#[test]
fn one_that_has_no_assignment_says_so() {
    let mut test = shard();
    let members = Eager::new(&mut test, 2);
    test.told();
    let prepared = test.prepare("x", 1);
    let declined = InstallAssignmentRequest {
        error: 7,
        ..install_of("x", 1, &prepared, Vec::new())
    };
    assert_eq!(test.install(declined), (ErrorCode::NONE, None));
    assert_eq!(test.passed_over(), [("x".into(), PassedOverReason::Failed)]);
    assert_eq!(members.sorted_parts(&test), [[0, 1], [2, 3]]);
}

#[test]
fn what_moves_under_a_cooperative_protocol_is_withheld_and_then_given_as_it_was_computed() {
    let mut test = shard();
    let mut first = Cooperative::new(&mut test);
    let joined = first.join(&mut test);
    test.advance_ms(6_000);
    assert_leaderless(&test.joined(joined));
    test.told();
    test.give_all_to(0, "x", 1);
    first.sync(&mut test, joined);
    let mut second = Cooperative::new(&mut test);
    let poll = test.poll("x");
    let joins = [first.join(&mut test), second.join(&mut test)];
    assert!(test.beat_reply(poll).should_compute_assignment);
    let prepared = test.prepare("x", 1);
    let members = vec![installed(&first.id, &[3]), installed(&second.id, &[0, 1, 2])];
    assert_eq!(
        test.install(install_of("x", 1, &prepared, members)),
        (ErrorCode::NONE, None)
    );
    assert!(first.sync(&mut test, joins[0]));
    assert!(!second.sync(&mut test, joins[1]));
    assert_eq!((&first.owned[..], &second.owned[..]), (&[3][..], &[][..]));
    assert_eq!(test.classic_view().partitions_withheld, 3);
    // The round that follows ends in what the first one was for, and nobody is asked again.
    let poll = test.poll("x");
    let joins = [first.join(&mut test), second.join(&mut test)];
    assert!(!first.sync(&mut test, joins[0]) && !second.sync(&mut test, joins[1]));
    assert!(!test.is_answered(poll));
    assert_eq!((&first.owned[..], &second.owned[..]), (&[3][..], &[0, 1, 2][..]));
    assert_eq!(test.classic_view().assigned_by, "external");
    assert_eq!(test.fell_back(), []);
}

#[test]
fn a_group_whose_assignor_is_away_does_not_wait_again_for_the_round_that_follows() {
    let mut test = shard();
    test.beat(beat_of("x", -1));
    let (mut first, mut second) = half_moved(&mut test);
    let fell_back = test.fell_back().len();
    let joins = [first.join(&mut test), second.join(&mut test)];
    assert!(!first.sync(&mut test, joins[0]) && !second.sync(&mut test, joins[1]));
    assert_eq!((first.owned.len(), second.owned.len()), (2, 2));
    assert_eq!(test.fell_back().len(), fell_back);
}

#[test]
fn groups_of_other_types_and_of_assignors_of_their_own_are_not_touched() {
    for (protocol_type, protocol) in [("connect", "range"), ("consumer", "stream")] {
        let mut test = shard();
        let id = test.member_id();
        let joined = join_all(
            &mut test,
            vec![JoinGroupRequest {
                protocol_type: protocol_type.into(),
                protocols: protocols(&[protocol]),
                ..join_as(&id)
            }],
        );
        assert_eq!(joined[0].leader, id);
        let poll = test.poll("x");
        assert!(!test.is_answered(poll));
        assert_eq!(test.try_prepare("x", 1).error, ErrorCode::UNKNOWN_MEMBER_ID);
        test.sync_all(&[id], 1);
    }
}

#[test]
fn nobody_else_is_told_or_heard() {
    let mut test = shard();
    let members = Eager::new(&mut test, 1);
    test.told();
    test.register("y");
    let id = members.ids().remove(0);
    for (caller, epoch, error) in [
        ("nobody", 1, ErrorCode::UNKNOWN_MEMBER_ID),
        (&*id, 1, ErrorCode::UNKNOWN_MEMBER_ID),
        ("y", 1, ErrorCode::UNKNOWN_MEMBER_ID),
        ("x", 2, ErrorCode::STALE_MEMBER_EPOCH),
    ] {
        assert_eq!(test.try_prepare(caller, epoch).error, error, "{caller}");
    }
    let elsewhere = test.send(Request::PrepareAssignment(prepare_of("x", 1)));
    assert!(test.is_answered(elsewhere));
    members.give(&mut test, &[&[0, 1, 2, 3]]);
}
