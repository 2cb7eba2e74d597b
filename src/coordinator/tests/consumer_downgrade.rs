//! Consumer groups whose last consumer goes or is replaced, and that are classic groups after it.

use super::classic_assign::{assert_leaderless, assigned_by};
use super::consumer_client::{
    Client, T, at_once, beat_of, join_of, owning as owns, shard, shard_with, static_join_of, topics,
};
use super::consumer_migration::{classic_group, owning, rejoin, with_policy};
use super::group_test::GroupTest;
use super::requests::{join_as, old_join, static_join, subscription, sync_as};
use crate::coordinator::consumer_protocol::read_assignment;
use crate::coordinator::event::Event;
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{JoinGroupRequest, Protocol, Text};
use crate::coordinator::settings::{MigrationPolicy, Settings};
use crate::wire::error_code::ErrorCode;

/// A settled group of a static consumer of instance "i" and a classic member; the id of that one.
fn static_consumer_and_classic(test: &mut GroupTest) -> Text {
    test.beat(static_join_of("a", "i"));
    let ticket = test.join(owning(&[], old_join()));
    let id = test.joined(ticket).member_id;
    let kept = test.beat(beat_of("a", 2)).assignment.expect("less than before");
    test.beat(owns("a", 2, (*kept).clone()));
    assert_eq!(rejoin(test, &id, &[]).1.len(), 3);
    assert_eq!((&*test.state(), test.group_epoch()), ("Stable", 3));
    id
}

fn is_classic(test: &mut GroupTest) -> bool {
    test.list(&[], &["classic"]).groups.len() == 1
}

/// What the member is told by a sync.
fn synced(test: &mut GroupTest, id: &Text, generation_id: i32) -> Vec<i32> {
    let ticket = test.sync(sync_as(id, generation_id));
    let synced = test.sync_reply(ticket);
    assert_eq!(synced.error, ErrorCode::NONE);
    let assigned = read_assignment(&synced.assignment).expect("an assignment").partitions;
    assigned.into_iter().flat_map(|(_, numbers)| numbers).collect()
}

/// The last consumer's successor is in at once, as who has to join anew; its id.
fn told_to_join_anew(test: &mut GroupTest, ticket: Ticket) -> Text {
    let joined = test.joined(ticket);
    assert!(is_classic(test));
    assert_eq!((&*test.state(), joined.members.len()), ("PreparingRebalance", 0));
    let generation_id = test.generation_id();
    let synced = test.sync(sync_as(&joined.member_id, generation_id));
    assert_eq!(test.sync_reply(synced).error, ErrorCode::REBALANCE_IN_PROGRESS);
    joined.member_id
}

#[test]
fn when_the_last_consumer_leaves_the_group_is_a_classic_one_again() {
    // Scenario 115.
    let mut test = shard();
    let ids = classic_group(&mut test, &[&[0, 1, 2], &[3, 4, 5]]);
    let mut c = Client::joined(&mut test, "c");
    c.beat(&mut test);
    test.beat(beat_of("c", -1));
    assert_eq!((&*test.state(), test.generation_id()), ("PreparingRebalance", 3));
    let converted = test.events.iter().rev().find_map(|event| match event {
        Event::GroupConverted { to, members, .. } => Some((*to, *members)),
        _ => None,
    });
    assert_eq!(converted, Some(("classic", 2)));
    let again = test.restarted().view().groups.remove(0);
    assert_eq!(
        (&*again.group_type, &*again.state, again.generation_id),
        ("classic", "Stable", 3)
    );
    let tickets: Vec<_> = ids.iter().map(|id| test.join(owning(&[], join_as(id)))).collect();
    assert_eq!(test.joined(tickets[0]).generation_id, 4);
    assert_eq!(test.list(&[], &["classic"]).groups.len(), 1);
}

#[test]
fn a_group_that_may_not_go_back_stays_a_consumer_group() {
    // Scenario 115.
    let mut test = with_policy(MigrationPolicy::Upgrade);
    let ids = classic_group(&mut test, &[&[0, 1, 2], &[3, 4, 5]]);
    Client::joined(&mut test, "c");
    test.beat(beat_of("c", -1));
    assert_eq!(test.list(&[], &["consumer"]).groups.len(), 1);
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::REBALANCE_IN_PROGRESS);
    let (_, kept) = rejoin(&mut test, &ids[0], &[0, 1, 2]);
    assert_eq!(rejoin(&mut test, &ids[0], &kept).0, 3);
}

#[test]
fn a_group_that_is_too_large_for_a_classic_one_stays_what_it_is() {
    let mut test = shard_with(Settings {
        group_max_size: 2,
        ..at_once()
    });
    Client::joined(&mut test, "a");
    let ids: Vec<Text> = (0..3)
        .map(|_| {
            let ticket = test.join(owning(&[], old_join()));
            test.joined(ticket).member_id
        })
        .collect();
    test.beat(beat_of("a", -1));
    assert!(!is_classic(&mut test));
    for id in &ids {
        let (generation_id, _) = rejoin(&mut test, id, &[]);
        assert_eq!(test.heartbeat(id, generation_id), ErrorCode::NONE);
    }
    test.leave(&[(&ids[0], None)]);
    assert!(is_classic(&mut test), "it is small enough now");
}

#[test]
fn a_group_that_may_only_go_back_does() {
    // Scenarios 112, 115.
    let mut test = with_policy(MigrationPolicy::Downgrade);
    Client::joined(&mut test, "a");
    let ticket = test.join(owning(&[], old_join()));
    let id = test.joined(ticket).member_id;
    test.beat(beat_of("a", -1));
    assert!(is_classic(&mut test));
    let ticket = test.join(owning(&[], join_as(&id)));
    assert_eq!(test.joined(ticket).leader, id);
    assert_eq!(
        test.beat_error(join_of("b")),
        ErrorCode::GROUP_ID_NOT_FOUND,
        "and there is no way forth"
    );
}

#[test]
fn a_classic_static_member_takes_the_place_of_the_last_consumer_and_nobody_else_notices() {
    // Scenario 116.
    let mut test = shard();
    let other = static_consumer_and_classic(&mut test);
    let rest = test.member("a").assignment[0].partitions.clone();
    let ticket = test.join(owning(&[], static_join("i")));
    assert!(is_classic(&mut test));
    let joined = test.joined(ticket);
    assert_eq!((joined.generation_id, &*test.state()), (3, "Stable"));
    assert_eq!(
        (joined.skip_assignment, &joined.leader),
        (true, &joined.member_id),
        "it looks after the topics"
    );
    assert_eq!(test.heartbeat(&other, 3), ErrorCode::NONE);
    assert_eq!(test.heartbeat(&joined.member_id, 3), ErrorCode::NONE);
    assert_eq!(synced(&mut test, &joined.member_id, 3), rest);
    let begun = |event: &Event| matches!(event, Event::RebalanceStarted { .. });
    assert!(!test.events.iter().any(begun));
    let members = test.describe().members;
    assert_eq!(test.restarted().describe().members, members);
}

#[test]
fn a_classic_static_member_alone_is_told_of_its_former_self_as_the_leader() {
    let mut test = shard();
    test.beat(static_join_of("a", "i"));
    let ticket = test.join(JoinGroupRequest {
        supports_skipping_assignment: false,
        ..owning(&[], static_join("i"))
    });
    let joined = test.joined(ticket);
    assert_eq!((joined.generation_id, &*joined.leader), (2, "a"));
    assert_eq!((joined.members.len(), joined.skip_assignment), (0, false));
    assert_eq!(synced(&mut test, &joined.member_id, 2), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn where_the_coordinator_assigns_nobody_leads_after_the_last_consumer_and_topics_are_watched() {
    let mut test = shard_with(assigned_by(None));
    let other = static_consumer_and_classic(&mut test);
    for supports_skipping_assignment in [true, false] {
        let ticket = test.join(JoinGroupRequest {
            supports_skipping_assignment,
            ..owning(&[], static_join("i"))
        });
        assert!(is_classic(&mut test));
        assert_leaderless(&test.joined(ticket));
    }
    assert_eq!(test.heartbeat(&other, 3), ErrorCode::NONE);
    test.tell_topics(topics(&[("t", T, 7)]));
    assert_eq!(test.heartbeat(&other, 3), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn a_classic_static_member_with_another_subscription_makes_everybody_join_anew() {
    // Scenario 116.
    let mut test = shard();
    let other = static_consumer_and_classic(&mut test);
    let ticket = test.join(JoinGroupRequest {
        protocols: vec![Protocol {
            name: "range".into(),
            metadata: subscription(&["t", "u"]),
        }],
        ..static_join("i")
    });
    let successor = told_to_join_anew(&mut test, ticket);
    assert_eq!(test.heartbeat(&other, 4), ErrorCode::REBALANCE_IN_PROGRESS);
    let again = [&successor, &other].map(|id| test.join(owning(&[], join_as(id))));
    assert_eq!(again.map(|ticket| test.joined(ticket).generation_id), [5, 5]);
}

#[test]
fn while_somebody_has_not_got_its_part_the_last_consumers_successor_makes_everybody_join_anew() {
    let mut test = shard();
    test.beat(static_join_of("a", "i"));
    let ticket = test.join(owning(&[], old_join()));
    let other = test.joined(ticket);
    assert_eq!(&*test.state(), "Reconciling");
    let ticket = test.join(owning(&[], static_join("i")));
    let successor = told_to_join_anew(&mut test, ticket);
    assert_eq!(
        test.heartbeat(&other.member_id, other.generation_id),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    let again = [&successor, &other.member_id].map(|id| test.join(owning(&[], join_as(id))));
    let again = again.map(|ticket| test.joined(ticket));
    assert_eq!(again[1].generation_id, 4);
    assert_eq!(again[0].members.len(), 2, "it leads");
}

#[test]
fn what_is_still_read_is_nobody_elses_when_the_protocol_changes_back_before_all_have_joined_anew() {
    let mut test = shard();
    let ids = classic_group(&mut test, &[&[0, 1, 2], &[3, 4, 5]]);
    Client::joined(&mut test, "c");
    test.beat(beat_of("c", -1));
    assert!(is_classic(&mut test));
    let d = Client::joined(&mut test, "d");
    assert_eq!(
        d.owned.len(),
        0,
        "all of it is read by those that have not heard of anything"
    );
    for (id, numbers) in ids.iter().zip([[0, 1, 2], [3, 4, 5]]) {
        assert_eq!(test.member(id).assignment[0].partitions, numbers);
    }
}
