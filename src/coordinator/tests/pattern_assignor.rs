//! External assignors that have registered for all groups of a pattern, as one shard sees them.

use super::classic_assign::{assert_leaderless, assigned_by, eager_joins, join_all};
use super::computing_client::{all_to, asking, install_of, prepare_of, registration};
use super::consumer_client::{SESSION_MS, T, U, beat_of, join_of, shard, topics};
use super::group_test::GroupTest;
use super::requests::sync_as;
use crate::coordinator::event::{EpochReason, Event, PassedOverReason};
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, PatternHeartbeatRequest, PrepareAssignmentRequest,
    Request, Response, Text,
};
use crate::wire::error_code::ErrorCode;

/// For the groups "g…".
const PATTERN: &str = "g*";

fn heartbeat(member_id: &str, member_epoch: i32) -> PatternHeartbeatRequest {
    let said = registration(member_id);
    PatternHeartbeatRequest {
        heartbeat: ConsumerGroupHeartbeatRequest {
            group_id: PATTERN.into(),
            member_epoch,
            topic_partitions: said.topic_partitions.clone().filter(|_| member_epoch == 0),
            ..said
        },
        is_own_shard: true,
    }
}

impl GroupTest {
    fn pattern_poll(&mut self, member_id: &str) -> Ticket {
        self.send(Request::PatternHeartbeat(heartbeat(member_id, 1)))
    }

    /// Its registration, or another that is answered at once.
    fn pattern_beat(&mut self, request: PatternHeartbeatRequest) -> ConsumerGroupHeartbeatResponse {
        let ticket = self.send(Request::PatternHeartbeat(request));
        self.beat_reply(ticket)
    }

    fn named(&self, poll: Ticket) -> Vec<Text> {
        let told = self.beat_reply(poll);
        assert_eq!((told.error, told.should_compute_assignment), (ErrorCode::NONE, false));
        told.groups_to_compute.expect("those of a pattern")
    }

    /// It gives all to the first member of the group.
    fn compute_for(&mut self, group_id: &str, member_id: &str) {
        let prepare = PrepareAssignmentRequest {
            group_id: group_id.into(),
            ..prepare_of(member_id, 1)
        };
        let Response::PrepareAssignment(prepared) = self.call(Request::PrepareAssignment(prepare)) else {
            panic!("not what was prepared");
        };
        assert_eq!(prepared.error, ErrorCode::NONE);
        let mut install = install_of(member_id, 1, &prepared, all_to(&prepared, 0));
        install.group_id = group_id.into();
        assert_eq!(self.install(install), (ErrorCode::NONE, None));
    }
}

fn asking_in(group_id: &str) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: group_id.into(),
        ..asking("a", "lag")
    }
}

fn registered() -> GroupTest {
    let mut test = shard();
    let told = test.pattern_beat(heartbeat("x", 0));
    assert_eq!((told.member_epoch, told.groups_to_compute), (1, Some(Vec::new())));
    test
}

#[test]
fn a_groups_first_assignment_is_computed_by_who_has_registered_for_the_pattern() {
    let mut test = registered();
    let poll = test.pattern_poll("x");
    assert!(!test.is_answered(poll));
    let join = test.send_beat(asking_in("g-new"));
    assert_eq!(test.named(poll), ["g-new".into()]);
    test.compute_for("g-new", "x");
    let joined = test.beat_reply(join);
    assert_eq!(joined.assignment.map(|assigned| assigned.len()), Some(6));
    // Another group's members may not ask for it.
    let elsewhere = test.beat(asking_in("h"));
    assert_eq!(elsewhere.error, ErrorCode::UNSUPPORTED_ASSIGNOR);
}

#[test]
fn several_groups_are_named_at_once_until_it_has_asked_for_each() {
    let mut test = registered();
    let joins = ["g1", "g2", "g3"].map(|group_id| test.send_beat(asking_in(group_id)));
    let poll = test.pattern_poll("x");
    assert_eq!(test.named(poll), ["g1", "g2", "g3"].map(Text::from));
    test.compute_for("g2", "x");
    assert!(test.is_answered(joins[1]) && !test.is_answered(joins[0]));
    let poll = test.pattern_poll("x");
    assert_eq!(test.named(poll), ["g1", "g3"].map(Text::from));
    test.compute_for("g1", "x");
    test.compute_for("g3", "x");
    let poll = test.pattern_poll("x");
    test.advance_ms(4_999);
    assert!(!test.is_answered(poll));
    test.advance_ms(1);
    assert_eq!(test.named(poll), [] as [Text; 0]);
}

#[test]
fn a_shard_that_was_loaded_meanwhile_takes_it_in_by_its_next_heartbeat() {
    let test = registered();
    let mut test = test.restarted();
    let poll = test.pattern_poll("x");
    assert!(!test.is_answered(poll), "it has nothing to do");
    test.send_beat(asking_in("g"));
    assert_eq!(test.named(poll), ["g".into()]);
    let mut brief = heartbeat("y", 1);
    brief.heartbeat.rebalance_timeout_ms = -1;
    assert_eq!(
        test.pattern_beat(brief).error,
        ErrorCode::UNKNOWN_MEMBER_ID,
        "it does not say everything"
    );
    let mut other = heartbeat("x", 2);
    other.heartbeat.topic_partitions = None;
    assert_eq!(test.pattern_beat(other).error, ErrorCode::FENCED_MEMBER_EPOCH);
}

#[test]
fn one_that_leaves_or_is_silent_is_gone_in_each_of_its_groups() {
    let mut test = registered();
    let joins = ["g1", "g2"].map(|group_id| test.send_beat(asking_in(group_id)));
    let poll = test.pattern_poll("x");
    assert_eq!(test.named(poll).len(), 2);
    assert_eq!(test.pattern_beat(heartbeat("x", -1)).member_epoch, -1);
    let gone = PassedOverReason::Gone;
    assert_eq!(test.passed_over(), [("x".into(), gone), ("x".into(), gone)]);
    assert!(
        joins.iter().all(|join| test.is_answered(*join)),
        "the server assignor has placed them"
    );
    test.pattern_beat(heartbeat("y", 0));
    test.advance_ms(SESSION_MS);
    assert_eq!(test.view().externals, []);
    let told: Vec<EpochReason> = test
        .events
        .iter()
        .filter_map(|event| match event {
            Event::ExternalAssignorGone { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect();
    assert_eq!(told, [EpochReason::MemberLeft, EpochReason::SessionExpired]);
}

#[test]
fn what_it_asks_for_it_asks_for_in_each_of_its_groups() {
    let mut test = registered();
    for group_id in ["g1", "g2"] {
        test.send_beat(asking_in(group_id));
        let poll = test.pattern_poll("x");
        assert_eq!(test.named(poll), [group_id.into()]);
        test.compute_for(group_id, "x");
    }
    test.advance_ms(1_000);
    let mut asks = heartbeat("x", 1);
    asks.heartbeat.client_assignors.as_mut().expect("one")[0].reason = 1;
    let told = test.pattern_beat(asks);
    assert_eq!(told.groups_to_compute, Some(["g1", "g2"].map(Text::from).into()));
}

#[test]
fn people_are_told_of_it_by_one_shard() {
    let mut test = shard();
    let mut elsewhere = heartbeat("x", 0);
    elsewhere.is_own_shard = false;
    test.pattern_beat(elsewhere);
    test.pattern_beat(PatternHeartbeatRequest {
        is_own_shard: false,
        ..heartbeat("x", -1)
    });
    assert_eq!((test.events.len(), test.view().externals.len()), (0, 0));
    test.pattern_beat(heartbeat("x", 0));
    let poll = test.pattern_poll("x");
    assert!(!test.is_answered(poll));
    let shown = test.view().externals.remove(0);
    assert_eq!(
        (&*shown.group_id, &*shown.member_id, shown.parked),
        (PATTERN, "x", true)
    );
    let answers = test.unload(ErrorCode::NOT_COORDINATOR);
    assert!(answers.contains_key(&poll));
}

#[test]
fn one_of_the_group_itself_and_one_of_its_pattern_take_turns() {
    let mut test = registered();
    test.register("y");
    let polls = (test.pattern_poll("x"), test.poll("y"));
    test.send_beat(asking("a", "lag"));
    let (pattern, own) = (test.is_answered(polls.0), test.is_answered(polls.1));
    assert!(pattern != own, "one of them is told");
    let (first, second) = if own { ("y", "x") } else { ("x", "y") };
    test.give_all_to(0, first, 1);
    let polls = (test.pattern_poll("x"), test.poll("y"));
    test.tell_topics(topics(&[("t", T, 7), ("u", U, 3)]));
    assert_eq!(
        (test.is_answered(polls.0), test.is_answered(polls.1)),
        (second == "x", second == "y")
    );
    // What is said to the group itself is nothing that one of the pattern says.
    assert_eq!(test.beat(beat_of("x", 1)).error, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_group_that_changes_its_protocol_wants_nothing_any_more() {
    let mut test = GroupTest::with_settings(assigned_by(Some("lag")));
    test.tell_topics(topics(&[("t", T, 4)]));
    test.pattern_beat(heartbeat("x", 0));
    let joins = eager_joins(&mut test, 1, "range");
    join_all(&mut test, joins);
    let poll = test.pattern_poll("x");
    assert_eq!(test.named(poll), ["g".into()]);
    test.beat(join_of("new"));
    assert_eq!(&*test.view().groups[0].group_type, "consumer");
    let poll = test.pattern_poll("x");
    assert!(!test.is_answered(poll));
    assert_eq!(test.try_prepare("x", 1).error, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_classic_groups_first_generation_is_computed_by_it_too() {
    let mut test = GroupTest::with_settings(assigned_by(Some("lag")));
    test.tell_topics(topics(&[("t", T, 4)]));
    test.pattern_beat(heartbeat("x", 0));
    let joins = eager_joins(&mut test, 1, "range");
    let joined = join_all(&mut test, joins).remove(0);
    assert_leaderless(&joined);
    let poll = test.pattern_poll("x");
    assert_eq!(test.named(poll), ["g".into()]);
    let sync = test.sync(sync_as(&joined.member_id, 1));
    assert!(!test.is_answered(sync));
    test.compute_for("g", "x");
    assert_eq!(test.sync_reply(sync).error, ErrorCode::NONE);
    assert_eq!(test.fell_back(), []);
}
