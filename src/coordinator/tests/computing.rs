//! Who computes a target, what the group does meanwhile, and what happens if it is not done.

use super::computing_client::{
    EXTERNAL_TIMEOUT_MS, UNHEARD_MS, all_to, asking, assignor, install_of, registration, running,
};
use super::consumer_client::{
    Client, REBALANCE_MS, SESSION_MS, at_once, beat_of, join_of, settle, shard, shard_with, static_join_of, topics,
};
use super::group_test::GroupTest;
use crate::coordinator::event::{Event, FallBackReason, PassedOverReason};
use crate::coordinator::group_patterns::GroupPatterns;
use crate::coordinator::request::{ConsumerGroupHeartbeatRequest, InstallAssignmentRequest};
use crate::coordinator::settings::{ExternalAssignorRule, Settings};
use crate::wire::error_code::ErrorCode;

/// A group of stock members that ask for "lag", which an external assignor computes.
fn with_external(members: &[&str]) -> (GroupTest, Vec<Client>) {
    let mut test = shard();
    test.register("x");
    let mut clients = Vec::new();
    for id in members {
        let poll = test.poll("x");
        let join = test.send_beat(asking(id, "lag"));
        assert!(test.beat_reply(poll).should_compute_assignment, "told at once");
        assert!(!test.is_answered(join), "it waits for its partitions");
        test.give_all_to(0, "x", 1);
        let mut client = Client::new(id);
        client.hear(&test.beat_reply(join));
        clients.push(client);
    }
    settle(&mut test, &mut clients);
    assert_eq!(test.computed_by().as_deref(), Some("lag"));
    (test, clients)
}

#[test]
fn the_old_target_stays_in_force_while_somebody_computes() {
    let (mut test, mut clients) = with_external(&["a"]);
    let poll = test.poll("x");
    let join = test.send_beat(asking("b", "lag"));
    assert!(test.beat_reply(poll).should_compute_assignment);
    assert_eq!(test.computing().as_deref(), Some("x"));
    let epoch = clients[0].epoch;
    for _ in 0..3 {
        let told = clients[0].beat(&mut test);
        assert_eq!((told.member_epoch, told.assignment), (epoch, None));
    }
    assert_eq!((&*test.state(), clients[0].owned.len()), ("Assigning", 6));
    test.give_all_to(1, "x", 1);
    assert_eq!(test.beat_reply(join).member_epoch, epoch + 1);
    clients.push(Client::new("b"));
    clients[1].hear(&test.beat_reply(join));
    settle(&mut test, &mut clients);
    assert_eq!((clients[0].owned.len(), clients[1].owned.len()), (0, 6));
}

#[test]
fn a_join_waits_three_seconds_for_an_external_one_and_not_longer() {
    let mut test = shard();
    test.register("x");
    test.poll("x");
    let join = test.send_beat(asking("a", "lag"));
    test.advance_ms(2_999);
    assert!(!test.is_answered(join));
    test.advance_ms(1);
    let told = test.beat_reply(join);
    assert_eq!(
        (
            told.error,
            told.member_epoch,
            told.assignment.map(|assigned| assigned.len())
        ),
        (ErrorCode::NONE, 1, Some(0))
    );
    test.give_all_to(0, "x", 1);
    assert_eq!(
        test.beat(beat_of("a", 1)).assignment.map(|assigned| assigned.len()),
        Some(6)
    );
}

#[test]
fn who_is_too_slow_is_passed_over_and_not_fenced() {
    let (mut test, mut clients) = with_external(&["a"]);
    let poll = test.poll("x");
    test.tell_topics(topics(&[("t", 1, 7)]));
    assert!(test.beat_reply(poll).should_compute_assignment);
    let prepared = test.prepare("x", 1);
    for _ in 0..EXTERNAL_TIMEOUT_MS / 5_000 - 1 {
        test.advance_ms(5_000);
        clients[0].beat(&mut test);
        test.poll("x");
    }
    assert_eq!((test.passed_over(), clients[0].owned.len()), (vec![], 6));
    test.advance_ms(5_000);
    assert_eq!(test.passed_over(), [("x".into(), PassedOverReason::TimedOut)]);
    assert_eq!(test.fell_back(), [FallBackReason::AllPassedOver]);
    assert_eq!(test.computed_by().as_deref(), Some("uniform"));
    settle(&mut test, &mut clients);
    assert_eq!(clients[0].owned.len(), 7);
    assert_eq!(test.view().externals.len(), 1, "it is still there");
    let late = install_of("x", 1, &prepared, all_to(&prepared, 0));
    assert_eq!(test.install(late).0, ErrorCode::UNKNOWN_MEMBER_ID);
    // With the next change it has its turn again.
    test.advance_ms(500);
    let poll = test.poll("x");
    test.tell_topics(topics(&[("t", 1, 8)]));
    assert!(test.beat_reply(poll).should_compute_assignment);
}

#[test]
fn who_does_not_come_for_the_groups_state_is_replaced_soon() {
    let (mut test, _) = with_external(&["a"]);
    test.register("y");
    let polls = ["x", "y"].map(|id| test.poll(id));
    test.tell_topics(topics(&[("t", 1, 7)]));
    assert!(test.beat_reply(polls[1]).should_compute_assignment, "y had none so far");
    assert!(!test.is_answered(polls[0]));
    test.advance_ms(5_000);
    assert!(!test.beat_reply(polls[0]).should_compute_assignment);
    let poll = test.poll("x");
    test.advance_ms(1_000);
    assert_eq!(test.passed_over(), [("y".into(), PassedOverReason::Silent)]);
    assert!(test.beat_reply(poll).should_compute_assignment);
    test.give_all_to(0, "x", 1);
    assert_eq!(test.fell_back(), []);
}

#[test]
fn who_leaves_while_it_computes_is_replaced_at_once() {
    let (mut test, _) = with_external(&["a"]);
    test.register("y");
    let polls = ["x", "y"].map(|id| test.poll(id));
    test.tell_topics(topics(&[("t", 1, 7)]));
    assert!(test.beat_reply(polls[1]).should_compute_assignment);
    test.prepare("y", 1);
    test.beat(beat_of("y", -1));
    assert!(test.beat_reply(polls[0]).should_compute_assignment);
    assert_eq!(test.passed_over(), [("y".into(), PassedOverReason::Gone)]);
    test.give_all_to(0, "x", 1);
}

#[test]
fn everybody_failing_leaves_it_to_the_server_assignor_with_the_last_error() {
    let (mut test, mut clients) = with_external(&["a"]);
    test.register("y");
    let mut polls = vec![test.poll("x"), test.poll("y")];
    test.tell_topics(topics(&[("t", 1, 7)]));
    for (id, error) in [("y", 3), ("x", 4)] {
        let told = polls.pop().expect("a poll");
        assert!(test.beat_reply(told).should_compute_assignment);
        let prepared = test.prepare(id, 1);
        let failed = InstallAssignmentRequest {
            error,
            ..install_of(id, 1, &prepared, Vec::new())
        };
        assert_eq!(test.install(failed), (ErrorCode::NONE, None));
    }
    let failed = PassedOverReason::Failed;
    assert_eq!(test.passed_over(), [("y".into(), failed), ("x".into(), failed)]);
    assert_eq!(test.fell_back(), [FallBackReason::AllPassedOver]);
    let told = clients[0].beat(&mut test);
    assert_eq!(told.assignment.map(|assigned| assigned.len()), Some(7));
    assert_eq!((told.assigned_by.error, test.consumer_view().assignor_error), (4, 4));
    let mut test = test.restarted();
    assert_eq!(test.consumer_view().assignor_error, 4, "it is durable");
}

#[test]
fn without_anybody_who_could_a_server_assignor_computes_at_once() {
    let mut test = shard();
    test.register("x");
    let join = test.send_beat(asking("a", "lag"));
    test.beat(beat_of("x", -1));
    assert_eq!(test.beat_reply(join).assignment.map(|assigned| assigned.len()), Some(6));
    assert_eq!(test.fell_back(), [FallBackReason::NoCandidate]);
    test.beat(asking("b", "lag"));
    assert_eq!(test.fell_back().len(), 2);
}

#[test]
fn who_is_registered_and_silent_is_waited_for_a_moment() {
    let mut test = shard();
    test.register("x");
    let join = test.send_beat(asking("a", "lag"));
    test.advance_ms(3_000);
    assert_eq!(test.beat_reply(join).assignment.map(|assigned| assigned.len()), Some(0));
    test.advance_ms(UNHEARD_MS - 3_001);
    assert_eq!(test.fell_back(), []);
    test.advance_ms(1);
    assert_eq!(test.fell_back(), [FallBackReason::NobodyHeard]);
    assert_eq!(
        test.beat(beat_of("a", 1)).assignment.map(|assigned| assigned.len()),
        Some(6)
    );
}

#[test]
fn the_only_one_who_can_is_a_joiner_that_is_told_at_once() {
    let mut test = shard();
    let joined = test.beat(running("a", &[assignor("lag")]));
    assert_eq!((joined.member_epoch, joined.should_compute_assignment), (1, true));
    test.give_all_to(0, "a", 1);
    let told = test.beat(beat_of("a", 1));
    assert_eq!(
        (told.member_epoch, told.assignment.map(|assigned| assigned.len())),
        (2, Some(6))
    );
    assert!(!told.should_compute_assignment);
}

#[test]
fn members_that_join_together_are_held_up_by_the_one_of_them_that_computes_a_moment_only() {
    let mut test = shard_with(Settings::default());
    let joins = ["a", "b"].map(|id| test.send_beat(running(id, &[assignor("lag")])));
    test.advance_ms(100);
    let told = test.beat_reply(joins[0]);
    assert!(told.should_compute_assignment && !test.is_answered(joins[1]));
    let prepared = test.prepare("a", told.member_epoch);
    assert_eq!(prepared.members.len(), 2);
    test.install(install_of("a", 1, &prepared, all_to(&prepared, 1)));
    assert_eq!(
        test.beat_reply(joins[1]).assignment.map(|assigned| assigned.len()),
        Some(6)
    );
}

#[test]
fn a_member_that_runs_it_is_told_with_its_heartbeat_until_it_has_asked() {
    let mut test = shard();
    let mut a = Client::new("a");
    a.hear(&test.beat(running("a", &[assignor("lag")])));
    test.give_all_to(0, "a", a.epoch);
    a.beat(&mut test);
    a.beat(&mut test);
    let join = test.send_beat(running("b", &[assignor("lag")]));
    assert!(test.beat_reply(join).should_compute_assignment, "b is there first");
    assert!(!a.beat(&mut test).should_compute_assignment);
    let again = test.beat(beat_of("b", 2));
    assert!(again.should_compute_assignment, "until it asked");
    test.prepare("b", 2);
    assert!(!test.beat(beat_of("b", 2)).should_compute_assignment);
    // The member that computes is killed.
    test.advance_ms(SESSION_MS / 2);
    a.beat(&mut test);
    test.advance_ms(SESSION_MS / 2);
    assert_eq!(test.passed_over(), [("b".into(), PassedOverReason::Gone)]);
    assert!(a.beat(&mut test).should_compute_assignment);
    test.give_all_to(0, "a", a.epoch);
}

#[test]
fn a_members_own_rebalance_timeout_bounds_it() {
    let mut test = shard();
    let told = test.beat(running("a", &[assignor("lag")]));
    assert!(told.should_compute_assignment);
    test.prepare("a", 1);
    for _ in 0..REBALANCE_MS / 5_000 {
        assert_eq!(test.passed_over(), []);
        test.advance_ms(5_000);
        test.beat(beat_of("a", 1));
    }
    assert_eq!(test.passed_over(), [("a".into(), PassedOverReason::TimedOut)]);
    assert_eq!(test.describe_consumer().members.len(), 1);
    assert_eq!(test.computed_by().as_deref(), Some("uniform"));
}

#[test]
fn an_hour_for_a_computation_is_not_granted() {
    let mut test = shard();
    let patient = ConsumerGroupHeartbeatRequest {
        rebalance_timeout_ms: i32::MAX,
        ..running("a", &[assignor("lag")])
    };
    test.beat(patient);
    test.prepare("a", 1);
    for _ in 0..60 {
        assert_eq!(test.passed_over(), []);
        test.advance_ms(5_000);
        test.beat(beat_of("a", 1));
    }
    assert_eq!(test.passed_over(), [("a".into(), PassedOverReason::TimedOut)]);
}

#[test]
fn one_that_registers_later_is_used_once_it_is_there() {
    let mut test = shard();
    test.register("x");
    let join = test.send_beat(asking("a", "lag"));
    test.beat(beat_of("x", -1));
    let mut clients = [Client::new("a")];
    clients[0].hear(&test.beat_reply(join));
    settle(&mut test, &mut clients);
    assert_eq!(test.computed_by().as_deref(), Some("uniform"));
    let epoch = test.group_epoch();
    assert!(test.register("x").should_compute_assignment, "there is something to do");
    assert_eq!(test.group_epoch(), epoch + 1);
    test.give_all_to(0, "x", 1);
    settle(&mut test, &mut clients);
    // Once it did, another registration is no reason.
    let epoch = test.group_epoch();
    assert!(!test.register("x").should_compute_assignment);
    assert!(!test.register("y").should_compute_assignment);
    assert_eq!(test.group_epoch(), epoch);
}

#[test]
fn an_assignor_that_is_only_away_for_a_moment_is_waited_for() {
    let (mut test, _) = with_external(&["a"]);
    test.beat(beat_of("x", -1));
    test.tell_topics(topics(&[("t", 1, 7)]));
    test.advance_ms(UNHEARD_MS - 1);
    assert_eq!(test.fell_back(), []);
    assert!(test.register("x").should_compute_assignment);
    test.give_all_to(0, "x", 1);
    test.beat(beat_of("x", -1));
    test.tell_topics(topics(&[("t", 1, 8)]));
    test.advance_ms(UNHEARD_MS);
    assert_eq!(test.fell_back(), [FallBackReason::NoCandidate]);
}

#[test]
fn a_restart_in_the_middle_begins_the_computation_anew() {
    let (mut test, mut clients) = with_external(&["a"]);
    let poll = test.poll("x");
    test.tell_topics(topics(&[("t", 1, 7)]));
    assert!(test.beat_reply(poll).should_compute_assignment);
    let prepared = test.prepare("x", 1);
    let mut test = test.restarted();
    assert_eq!(
        (&*test.state(), test.computed_by().as_deref()),
        ("Assigning", Some("lag"))
    );
    let install = install_of("x", 1, &prepared, all_to(&prepared, 0));
    assert_eq!(test.install(install).0, ErrorCode::UNKNOWN_MEMBER_ID);
    let told = clients[0].beat(&mut test);
    assert_eq!((told.error, told.assignment), (ErrorCode::NONE, None), "nothing moved");
    assert!(test.register("x").should_compute_assignment);
    test.give_all_to(0, "x", 1);
    settle(&mut test, &mut clients);
    assert_eq!(clients[0].owned.len(), 7);
    assert_eq!(test.fell_back(), []);
}

#[test]
fn the_last_member_that_leaves_ends_the_computation() {
    let (mut test, _) = with_external(&["a"]);
    let poll = test.poll("x");
    test.tell_topics(topics(&[("t", 1, 7)]));
    assert!(test.beat_reply(poll).should_compute_assignment);
    let prepared = test.prepare("x", 1);
    test.beat(beat_of("a", -1));
    assert_eq!((&*test.state(), test.consumer_view().computation), ("Empty", None));
    let install = install_of("x", 1, &prepared, all_to(&prepared, 0));
    assert_eq!(test.install(install).0, ErrorCode::UNKNOWN_MEMBER_ID);
    test.advance_ms(60_000);
    assert_eq!(test.passed_over(), []);
}

#[test]
fn who_computes_is_asked_for_often_and_not_without_a_pause() {
    let (mut test, _) = with_external(&["a"]);
    let poll = test.poll("x");
    test.tell_topics(topics(&[("t", 1, 7)]));
    assert!(test.beat_reply(poll).should_compute_assignment);
    let told = test.poll("x");
    assert!(test.beat_reply(told).should_compute_assignment, "it has not asked yet");
    test.prepare("x", 1);
    let busy = test.poll("x");
    assert!(!test.is_answered(busy));
    test.advance_ms(500);
    assert!(!test.beat_reply(busy).should_compute_assignment);
}

#[test]
fn one_that_registers_again_while_it_computes_has_begun_anew() {
    let (mut test, _) = with_external(&["a"]);
    let poll = test.poll("x");
    test.tell_topics(topics(&[("t", 1, 7)]));
    assert!(test.beat_reply(poll).should_compute_assignment);
    test.prepare("x", 1);
    assert!(test.register("x").should_compute_assignment, "it is told again");
    test.prepare("x", 1);
    test.register("x");
    assert_eq!(test.fell_back(), []);
    test.prepare("x", 1);
    test.register("x");
    assert_eq!(
        test.fell_back(),
        [FallBackReason::AllPassedOver],
        "three times is enough"
    );
    assert_eq!(test.computed_by().as_deref(), Some("uniform"));
}

#[test]
fn a_rule_overrides_what_members_ask_for() {
    let rule = ExternalAssignorRule {
        name: "lag".into(),
        groups: GroupPatterns::new(&["g*".into()]),
        always: true,
    };
    let mut test = shard_with(Settings {
        external_assignors: [rule].into(),
        ..at_once()
    });
    test.register("x");
    let poll = test.poll("x");
    let join = test.send_beat(join_of("a"));
    assert!(test.beat_reply(poll).should_compute_assignment);
    test.give_all_to(0, "x", 1);
    assert_eq!(test.beat_reply(join).assignment.map(|assigned| assigned.len()), Some(6));
    assert_eq!(&*test.describe_consumer().assignor_name, "lag");
}

#[test]
fn a_static_member_that_comes_back_with_another_id_has_its_part_of_what_was_computed_meanwhile() {
    let mut test = shard();
    test.register("x");
    let with_name = |id: &str| ConsumerGroupHeartbeatRequest {
        server_assignor: Some("lag".into()),
        ..static_join_of(id, "i")
    };
    let poll = test.poll("x");
    let join = test.send_beat(with_name("a"));
    assert!(test.beat_reply(poll).should_compute_assignment);
    let prepared = test.prepare("x", 1);
    test.advance_ms(3_000);
    let epoch = test.beat_reply(join).member_epoch;
    let away = ConsumerGroupHeartbeatRequest {
        member_epoch: -2,
        ..with_name("a")
    };
    test.beat(away);
    assert!(epoch > 0);
    let back = test.send_beat(with_name("b"));
    test.install(install_of("x", 1, &prepared, all_to(&prepared, 0)));
    assert_eq!(test.beat_reply(back).assignment.map(|assigned| assigned.len()), Some(6));
}

#[test]
fn each_step_is_told() {
    let (test, _) = with_external(&["a"]);
    let computing = test.events.iter().filter_map(|event| match event {
        Event::ExternalAssignorRegistered { assignors, .. } => Some(format!("registered {}", assignors.join(","))),
        Event::ComputationWanted { group_epoch, .. } => Some(format!("wanted {group_epoch}")),
        Event::ComputationGiven { member_id, .. } => Some(format!("given {member_id}")),
        Event::ComputationInstalled {
            group_epoch,
            partitions_moved,
            members,
            ..
        } => Some(format!("installed {group_epoch} {members} {partitions_moved}")),
        _ => None,
    });
    let steps: Vec<String> = computing.collect();
    assert_eq!(steps, ["registered lag", "wanted 2", "given x", "installed 2 1 6"]);
}

#[test]
fn the_one_that_was_chosen_longest_ago_has_its_turn() {
    let (mut test, _) = with_external(&["a"]);
    test.register("w");
    let mut order = Vec::new();
    for partitions in 7..11 {
        let polls = ["x", "w"].map(|id| (id, test.poll(id)));
        test.tell_topics(topics(&[("t", 1, partitions)]));
        let told = |(id, poll): &(&'static str, _)| {
            (test.is_answered(*poll) && test.beat_reply(*poll).should_compute_assignment).then_some(*id)
        };
        let chosen = polls.iter().find_map(told).expect("one is told");
        order.push(chosen);
        test.give_all_to(0, chosen, 1);
    }
    assert_eq!(order, ["w", "x", "w", "x"]);
    assert_eq!(registration("w").member_epoch, 0);
}
