//! Groups that have as many members as they may: three by the classic protocol, five by the other.

use super::classic::{describe, heartbeat, join, join_for, sync};
use super::consumer::{acknowledge, beat, describe_consumers, first, joining, leave};
use super::{Script, says, script};
use crate::step::{Ask, Beat, Id, Instance, Step};

const LONG_MS: i32 = 60_000;

pub fn all(is_old: bool) -> Vec<Script> {
    let mut all = vec![
        script("a classic group is full", classic_is_full()),
        script("a classic group is full while it rebalances", rebalancing_is_full()),
    ];
    all.push(script(
        "a static member returns to a full classic group",
        static_returns(),
    ));
    if !is_old {
        all.push(script(
            "a static consumer returns to a full group",
            static_consumer_returns(),
        ));
        all.push(script("a group of consumers is full", consumers_are_full()));
        all.push(script(
            "a full classic group goes to the consumer protocol",
            full_goes(),
        ));
        all.push(script("a group is too large for the way back", too_large()));
    }
    all
}

fn joined(actor: usize) -> Step {
    join(actor, 3, Id::Empty)
}

fn settled(actors: &[usize]) -> Vec<Step> {
    let joins = actors.iter().map(|actor| join(*actor, 3, Id::Own));
    joins.chain(actors.iter().map(|actor| sync(*actor))).collect()
}

fn go(actor: usize) -> Step {
    let ask = Ask::Leave {
        members: vec![(Id::Of(actor), Instance::None)],
    };
    says(actor, 3, ask)
}

fn long(actor: usize, version: i16, id: Id, instance: Instance) -> Step {
    join_for(actor, version, id, instance, LONG_MS, LONG_MS)
}

/// Dynamic and static members, with and without an id that was asked for, come to three that are settled.
fn classic_is_full() -> Vec<Step> {
    let mut steps = vec![joined(0), sync(0), joined(2), joined(4)];
    steps.extend(settled(&[0, 2, 4]));
    steps.extend([
        joined(1),
        long(3, 5, Id::Empty, Instance::None),
        long(3, 5, Id::Own, Instance::None),
        long(3, 5, Id::Empty, Instance::Own),
        heartbeat(0),
        describe(),
        go(4),
        joined(1),
        heartbeat(0),
    ]);
    steps.extend(settled(&[0, 2, 1]));
    steps.push(describe());
    steps
}

/// The fourth comes while others have not joined again: those that join take the places of those that do not.
fn rebalancing_is_full() -> Vec<Step> {
    let mut steps = vec![joined(0), sync(0), joined(2), joined(4)];
    steps.extend(settled(&[0, 2, 4]));
    steps.extend([
        go(4),
        joined(1),
        joined(3),
        joined(5),
        join(0, 3, Id::Own),
        describe(),
        join(2, 3, Id::Own),
        describe(),
        sync(0),
        sync(1),
        sync(2),
        sync(3),
        describe(),
    ]);
    steps
}

fn static_returns() -> Vec<Step> {
    let all = [0, 2, 4];
    let mut steps: Vec<Step> = Vec::new();
    for actor in all {
        steps.push(long(actor, 5, Id::Empty, Instance::Own));
        if actor == 0 {
            steps.push(sync(0));
        }
    }
    steps.extend(settled(&all));
    steps.push(long(2, 5, Id::Empty, Instance::Own));
    steps
}

fn static_consumer_returns() -> Vec<Step> {
    let mut steps: Vec<Step> = (0..5).map(first).collect();
    let again = Beat {
        id: Id::ChosenAnew,
        ..joining(1)
    };
    steps.extend([leave(1, -2), beat(1, again)]);
    steps
}

fn consumers_are_full() -> Vec<Step> {
    let mut steps: Vec<Step> = (0..6).map(first).collect();
    steps.extend([
        // One that is in may join again.
        first(2),
        long(5, 3, Id::Empty, Instance::None),
        long(5, 5, Id::Empty, Instance::Own),
        leave(1, -2),
        first(5),
        long(5, 5, Id::Empty, Instance::Own),
        leave(3, -1),
        acknowledge(0),
        first(5),
        describe_consumers(),
    ]);
    steps
}

fn full_goes() -> Vec<Step> {
    let mut steps = vec![joined(0), sync(0), joined(2), joined(4)];
    steps.extend(settled(&[0, 2, 4]));
    // All of them know each other's ids by their order, which the range assignor goes by.
    steps.extend([
        first(1),
        first(3),
        first(5),
        describe_consumers(),
        joined(5),
        describe_consumers(),
    ]);
    steps
}

/// Four classic members would remain, of which a classic group may have three.
fn too_large() -> Vec<Step> {
    let mut steps = vec![first(5)];
    steps.extend((0..4).map(|actor| long(actor, 5, Id::Empty, Instance::Own)));
    steps.extend([
        describe_consumers(),
        leave(5, -1),
        describe(),
        describe_consumers(),
        heartbeat(0),
        long(0, 5, Id::Own, Instance::Own),
        first(5),
        says(
            1,
            3,
            Ask::Leave {
                members: vec![(Id::Own, Instance::Own)],
            },
        ),
        acknowledge(5),
        leave(5, -1),
        describe(),
        describe_consumers(),
    ]);
    steps
}
