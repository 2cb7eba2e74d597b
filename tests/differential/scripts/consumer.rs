//! Groups of the consumer protocol, and groups that change their protocol.

use super::classic::{describe, heartbeat, join_for, joining_with, subscription, sync, two};
use super::{Script, says, script};
use crate::step::{Ask, Beat, Group, Id, Instance, Metadata, Owned, Round, Step};

const REBALANCE_MS: i32 = 60_000;

pub fn all() -> Vec<Script> {
    vec![
        script("a pattern", pattern()),
        script("a static member joins twice", joins_twice()),
        script("a static member comes back", comes_back()),
        script("a group goes to the consumer protocol and back", there_and_back()),
        script("an empty group changes its protocol", empty()),
        script("a consumer that hardly came leaves classic members", hardly_came()),
        script("classic members join anew when the last consumer is gone", join_anew()),
        script("one of two consumers leaves", one_leaves()),
        script("a consumer comes in the middle of a round", in_a_round()),
        script("a classic member that was taken out comes back", taken_out_comes_back()),
        script(
            "a static classic member comes back with what it is to give up",
            comes_back_with_more(),
        ),
    ]
}

/// Members of odd numbers are static.
pub fn silent(actor: usize) -> Beat {
    Beat {
        id: Id::Chosen,
        instance: if actor % 2 == 1 { Instance::Own } else { Instance::None },
        epoch: Round::Own,
        rack: None,
        rebalance_ms: -1,
        topics: None,
        regex: None,
        assignor: Some("range"),
        owned: Owned::Unsaid,
    }
}

pub fn beat(actor: usize, beat: Beat) -> Step {
    says(actor, 1, Ask::Beat(beat))
}

pub fn joining(actor: usize) -> Beat {
    Beat {
        epoch: Round::Exactly(0),
        rebalance_ms: REBALANCE_MS,
        topics: Some(vec!["three"]),
        owned: Owned::Nothing,
        ..silent(actor)
    }
}

pub fn first(actor: usize) -> Step {
    beat(actor, joining(actor))
}

pub fn acknowledge(actor: usize) -> Step {
    beat(
        actor,
        Beat {
            id: Id::Own,
            owned: Owned::Told,
            ..silent(actor)
        },
    )
}

pub fn leave(actor: usize, epoch: i32) -> Step {
    beat(
        actor,
        Beat {
            id: Id::Own,
            epoch: Round::Exactly(epoch),
            ..silent(actor)
        },
    )
}

pub fn describe_consumers() -> Step {
    let ask = Ask::DescribeConsumers {
        groups: vec![Group::Known(0)],
        operations: false,
    };
    says(4, 1, ask)
}

fn pattern() -> Vec<Step> {
    let with_pattern = Beat {
        topics: None,
        regex: Some("t.*"),
        ..joining(0)
    };
    vec![beat(0, with_pattern), acknowledge(0), describe_consumers()]
}

fn joins_twice() -> Vec<Step> {
    vec![first(1), first(1), describe_consumers()]
}

fn comes_back() -> Vec<Step> {
    let with_another_id = |actor| {
        beat(
            actor,
            Beat {
                id: Id::ChosenAnew,
                ..joining(actor)
            },
        )
    };
    vec![
        first(1),
        first(3),
        acknowledge(1),
        acknowledge(3),
        with_another_id(1),
        leave(1, -2),
        describe_consumers(),
        acknowledge(3),
        with_another_id(1),
        acknowledge(1),
        describe_consumers(),
        acknowledge(3),
        leave(3, -1),
        describe_consumers(),
    ]
}

fn there_and_back() -> Vec<Step> {
    let long = |actor, id| join_for(actor, 5, id, Instance::Own, REBALANCE_MS, REBALANCE_MS);
    let rejoin = |actor| long(actor, Id::Own);
    let mut steps = two(long(0, Id::Empty), long(1, Id::Empty), rejoin(0));
    steps.extend([first(3), describe(), describe_consumers()]);
    for _ in 0..3 {
        steps.extend([
            heartbeat(0),
            rejoin(0),
            sync(0),
            heartbeat(1),
            rejoin(1),
            sync(1),
            acknowledge(3),
            describe_consumers(),
        ]);
    }
    steps.extend([leave(3, -1), describe(), describe_consumers()]);
    steps.extend([
        heartbeat(0),
        heartbeat(1),
        rejoin(0),
        rejoin(1),
        sync(0),
        sync(1),
        describe(),
    ]);
    steps
}

fn hardly_came() -> Vec<Step> {
    vec![
        first(3),
        join_for(1, 5, Id::Empty, Instance::Own, REBALANCE_MS, REBALANCE_MS),
        leave(3, -1),
        describe(),
    ]
}

fn join_anew() -> Vec<Step> {
    let mut steps = hardly_came();
    steps.push(join_for(1, 5, Id::Own, Instance::Own, REBALANCE_MS, REBALANCE_MS));
    steps
}

fn one_leaves() -> Vec<Step> {
    vec![first(1), first(3), leave(1, -1), describe_consumers()]
}

/// The one whose join is parked does not have the protocol of the last generation.
fn in_a_round() -> Vec<Step> {
    let of = |actor, id, names: &[&'static str]| {
        let protocols = names.iter().map(|name| (*name, subscription(Owned::Nothing)));
        joining_with(actor, id, protocols.collect())
    };
    vec![
        of(0, Id::Empty, &["roundrobin", "range"]),
        of(2, Id::Empty, &["range"]),
        first(4),
    ]
}

fn taken_out_comes_back() -> Vec<Step> {
    let cooperative = |id, owned| joining_with(2, id, vec![("cooperative-sticky", subscription(owned))]);
    let leave_group = Ask::Leave {
        members: vec![(Id::Own, Instance::None)],
    };
    vec![
        cooperative(Id::Empty, Owned::Nothing),
        sync(2),
        first(0),
        says(2, 3, leave_group),
        acknowledge(0),
        cooperative(Id::Own, Owned::Told),
    ]
}

/// Its epoch is told while it has what is another's, and after.
fn comes_back_with_more() -> Vec<Step> {
    let join = |id, owned| {
        let ask = Ask::Join {
            id,
            instance: Instance::Own,
            session_ms: REBALANCE_MS,
            rebalance_ms: REBALANCE_MS,
            protocol_type: "consumer",
            protocols: vec![("cooperative-sticky", owning(owned))],
        };
        says(1, 9, ask)
    };
    let mut steps = vec![join(Id::Empty, Owned::Nothing), sync(1), first(4)];
    for owned in [Owned::Told, Owned::Told, Owned::Fewer, Owned::Nothing] {
        steps.extend([
            join(Id::Empty, owned),
            sync(1),
            heartbeat(1),
            acknowledge(4),
            describe_consumers(),
        ]);
    }
    steps
}

fn owning(owned: Owned) -> Metadata {
    Metadata::Subscription {
        version: 3,
        topics: vec!["three"],
        owned,
    }
}

fn empty() -> Vec<Step> {
    let dynamic = |actor, id| join_for(actor, 5, id, Instance::None, REBALANCE_MS, REBALANCE_MS);
    vec![
        first(0),
        leave(0, -1),
        describe(),
        describe_consumers(),
        dynamic(2, Id::Empty),
        dynamic(2, Id::Own),
        sync(2),
        describe(),
        says(
            2,
            5,
            Ask::Leave {
                members: vec![(Id::Own, Instance::None)],
            },
        ),
        describe(),
        first(0),
        describe_consumers(),
    ]
}
