//! Classic groups.

use super::{Script, says, script, silence};
use crate::step::{Ask, Assign, Group, Id, Instance, Metadata, Owned, Round, Said, Step};

/// Long enough for every step of a script.
pub const LONG_MS: i32 = 60_000;
pub const SHORT_MS: i32 = 2_000;
/// Longer than the short one by what a busy machine may take for a step.
pub const PAST_SHORT_MS: u64 = 4_000;

pub fn all() -> Vec<Script> {
    let mut all = vec![
        script("a member that is not heard is taken out", session_ends()),
        script("a member that does not join again is left behind", rebalance_ends()),
        script("a member that does not sync is taken out", sync_ends()),
        script("a static member that is silent keeps its place", silent_static()),
        script("a second request takes the place of a parked one", replaced()),
        script("an id is given back before it was used", given_back()),
        script("a protocol is listed twice", listed_twice()),
        script("a member is taken out while its sync is parked", taken_out()),
    ];
    // Where Kafka lets chance decide, both sides may agree.
    for _ in 0..4 {
        all.push(script("votes are equal", equal_votes()));
    }
    for _ in 0..8 {
        all.push(script("the leader goes", leader_goes()));
    }
    all
}

/// Of a consumer that reads one topic.
pub fn subscription(owned: Owned) -> Metadata {
    Metadata::Subscription {
        version: 1,
        topics: vec!["three"],
        owned,
    }
}

/// A dynamic member with protocols of its choice.
pub fn joining_with(actor: usize, id: Id, protocols: Vec<(&'static str, Metadata)>) -> Step {
    let ask = Ask::Join {
        id,
        instance: Instance::None,
        session_ms: LONG_MS,
        rebalance_ms: LONG_MS,
        protocol_type: "consumer",
        protocols,
    };
    says(actor, 3, ask)
}

pub fn join_for(actor: usize, version: i16, id: Id, instance: Instance, session_ms: i32, rebalance_ms: i32) -> Step {
    let ask = Ask::Join {
        id,
        instance,
        session_ms,
        rebalance_ms,
        protocol_type: "consumer",
        protocols: vec![("range", subscription(Owned::Nothing))],
    };
    says(actor, version, ask)
}

pub fn join(actor: usize, version: i16, id: Id) -> Step {
    join_for(actor, version, id, Instance::None, LONG_MS, LONG_MS)
}

/// As a dynamic member: who is static may leave out its instance id.
pub fn sync(actor: usize) -> Step {
    let ask = Ask::Sync {
        id: Id::Own,
        instance: Instance::None,
        generation: Round::Own,
        protocol: Said::Right,
        assign: Assign::Partitions,
    };
    says(actor, 3, ask)
}

pub fn heartbeat(actor: usize) -> Step {
    let ask = Ask::Heartbeat {
        id: Id::Own,
        instance: Instance::None,
        generation: Round::Own,
    };
    says(actor, 3, ask)
}

pub fn describe() -> Step {
    let ask = Ask::Describe {
        groups: vec![Group::Known(0)],
        operations: false,
    };
    says(4, 5, ask)
}

/// Two members that are stable.
pub fn two(first: Step, second: Step, first_again: Step) -> Vec<Step> {
    vec![first, sync(0), second, first_again, sync(0), sync(1), describe()]
}

fn session_ends() -> Vec<Step> {
    let mut steps = two(
        join(0, 3, Id::Empty),
        join_for(1, 3, Id::Empty, Instance::None, SHORT_MS, LONG_MS),
        join(0, 3, Id::Own),
    );
    steps.extend([
        silence(PAST_SHORT_MS),
        heartbeat(1),
        heartbeat(0),
        describe(),
        join(0, 3, Id::Own),
        sync(0),
        describe(),
    ]);
    steps
}

fn rebalance_ends() -> Vec<Step> {
    let short = |actor, id| join_for(actor, 3, id, Instance::None, LONG_MS, SHORT_MS);
    vec![
        short(0, Id::Empty),
        sync(0),
        short(1, Id::Empty),
        heartbeat(0),
        silence(PAST_SHORT_MS),
        heartbeat(0),
        sync(1),
        describe(),
    ]
}

fn sync_ends() -> Vec<Step> {
    let short = |actor, id| join_for(actor, 3, id, Instance::None, LONG_MS, SHORT_MS);
    vec![
        short(0, Id::Empty),
        sync(0),
        short(1, Id::Empty),
        short(0, Id::Own),
        sync(0),
        silence(PAST_SHORT_MS),
        describe(),
        heartbeat(0),
        heartbeat(1),
    ]
}

fn silent_static() -> Vec<Step> {
    let short = |actor, id, instance| join_for(actor, 5, id, instance, LONG_MS, SHORT_MS);
    vec![
        short(0, Id::Empty, Instance::Own),
        sync(0),
        short(1, Id::Empty, Instance::Own),
        silence(PAST_SHORT_MS),
        describe(),
        sync(1),
        describe(),
    ]
}

fn replaced() -> Vec<Step> {
    let again = |step: Step| Step { lane: 9, ..step };
    vec![
        join(0, 3, Id::Empty),
        sync(0),
        join(1, 3, Id::Empty),
        join(0, 3, Id::Own),
        sync(1),
        again(sync(1)),
        sync(0),
        describe(),
    ]
}

fn taken_out() -> Vec<Step> {
    let leave = Ask::Leave {
        members: vec![(Id::Of(1), Instance::None)],
    };
    vec![
        join(0, 3, Id::Empty),
        sync(0),
        join(1, 3, Id::Empty),
        join(0, 3, Id::Own),
        sync(1),
        says(2, 3, leave),
        describe(),
    ]
}

/// Whoever leads next.
fn leader_goes() -> Vec<Step> {
    let leave = Ask::Leave {
        members: vec![(Id::Of(0), Instance::None)],
    };
    let mut steps: Vec<Step> = (0..3).map(|actor| join(actor, 3, Id::Empty)).collect();
    steps.extend([join(0, 3, Id::Own), says(0, 3, leave)]);
    steps.extend((1..3).map(|actor| join(actor, 3, Id::Own)));
    steps.push(describe());
    steps
}

fn listed_twice() -> Vec<Step> {
    let range = || ("range", subscription(Owned::Nothing));
    // Only one side answers, if late on a busy machine: then it has time to.
    vec![
        joining_with(0, Id::Empty, vec![range(), range()]),
        silence(PAST_SHORT_MS),
    ]
}

fn equal_votes() -> Vec<Step> {
    let voting = |actor, id, names: [&'static str; 2]| {
        let protocols = names.map(|name| (name, subscription(Owned::Nothing)));
        joining_with(actor, id, protocols.to_vec())
    };
    vec![
        voting(0, Id::Empty, ["cooperative-sticky", "range"]),
        voting(1, Id::Empty, ["range", "cooperative-sticky"]),
        voting(0, Id::Own, ["cooperative-sticky", "range"]),
        voting(1, Id::Own, ["range", "cooperative-sticky"]),
        voting(0, Id::Own, ["range", "cooperative-sticky"]),
        voting(1, Id::Own, ["cooperative-sticky", "range"]),
        voting(0, Id::Own, ["range", "cooperative-sticky"]),
    ]
}

fn given_back() -> Vec<Step> {
    let leave = Ask::Leave {
        members: vec![(Id::Own, Instance::None)],
    };
    vec![
        join(0, 3, Id::Empty),
        sync(0),
        join(1, 5, Id::Empty),
        says(1, 3, leave),
        heartbeat(0),
    ]
}
