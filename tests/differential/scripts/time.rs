//! Members for whom time runs out: their session, or what they have to give up partitions or to join again.

use super::classic::{LONG_MS, PAST_SHORT_MS, SHORT_MS, describe, heartbeat, join_for, sync};
use super::consumer::{acknowledge, beat, describe_consumers, first, joining, leave, silent};
use super::{Script, says, script, silence};
use crate::step::{Ask, Beat, Group, Id, Instance, Round, SHORT_SESSION_MS, Step};

/// Long enough for a short session to be over, in parts in which others are heard.
const PARTS: usize = 5;
const PART_MS: u64 = SHORT_SESSION_MS as u64 / 3;

pub fn all(is_old: bool) -> Vec<Script> {
    let mut all = vec![script(
        "a static classic member comes back after its session",
        static_classic(),
    )];
    all.push(script("a join has no rebalance timeout", no_timeout()));
    if !is_old {
        all.push(script("consumers are silent for their session", consumers_are_silent()));
        all.push(script("a static consumer that went comes back late", static_is_late()));
        all.push(script("a consumer does not give up in time", does_not_give_up()));
        all.push(script(
            "a classic member among consumers is silent",
            classic_is_silent(),
        ));
        all.push(script(
            "a classic member among consumers does not join again",
            classic_does_not_join(),
        ));
        all.push(script(
            "a classic member among consumers does not sync",
            classic_does_not_sync(),
        ));
    }
    all
}

/// The others are heard meanwhile.
fn while_heard(heard: &[Step]) -> Vec<Step> {
    let part = |_| [&[silence(PART_MS)][..], heard].concat();
    (0..PARTS).flat_map(part).collect()
}

fn shortened() -> Step {
    says(0, 0, Ask::ShortSessions)
}

fn quiet(actor: usize) -> Step {
    let said = Beat {
        id: Id::Own,
        ..silent(actor)
    };
    beat(actor, said)
}

fn anew(actor: usize) -> Step {
    let said = Beat {
        id: Id::ChosenAnew,
        ..joining(actor)
    };
    beat(actor, said)
}

fn with_short_rebalances(actor: usize) -> Step {
    let said = Beat {
        rebalance_ms: SHORT_MS,
        ..joining(actor)
    };
    beat(actor, said)
}

/// A dynamic one and a static one are silent, a third is heard.
fn consumers_are_silent() -> Vec<Step> {
    let mut steps = vec![
        shortened(),
        first(0),
        first(1),
        first(2),
        acknowledge(0),
        acknowledge(1),
        acknowledge(2),
    ];
    steps.push(acknowledge(0));
    steps.extend(while_heard(&[quiet(0)]));
    steps.extend([
        acknowledge(0),
        describe_consumers(),
        quiet(2),
        quiet(1),
        anew(1),
        acknowledge(0),
        acknowledge(1),
        first(2),
        acknowledge(0),
        acknowledge(1),
        acknowledge(2),
        describe_consumers(),
    ]);
    // Then nobody is heard.
    steps.extend([silence(PART_MS * 5), describe_consumers(), quiet(0), quiet(1)]);
    steps
}

/// It leaves for a while, which is longer than its session.
fn static_is_late() -> Vec<Step> {
    let mut steps = vec![
        shortened(),
        first(0),
        first(1),
        acknowledge(0),
        acknowledge(1),
        leave(1, -2),
    ];
    steps.extend(while_heard(&[quiet(0)]));
    steps.extend([
        acknowledge(0),
        describe_consumers(),
        anew(1),
        acknowledge(0),
        acknowledge(1),
        describe_consumers(),
    ]);
    steps
}

fn does_not_give_up() -> Vec<Step> {
    vec![
        with_short_rebalances(0),
        first(2),
        quiet(0),
        describe_consumers(),
        silence(PAST_SHORT_MS),
        // Until then the target of those that are left may not be computed.
        acknowledge(2),
        describe_consumers(),
        quiet(0),
        acknowledge(2),
        describe_consumers(),
        first(0),
        quiet(0),
        acknowledge(2),
        quiet(0),
        describe_consumers(),
    ]
}

fn classic(session_ms: i32, rebalance_ms: i32, id: Id) -> Step {
    join_for(1, 5, id, Instance::Own, session_ms, rebalance_ms)
}

fn classic_is_silent() -> Vec<Step> {
    vec![
        classic(SHORT_MS, LONG_MS, Id::Empty),
        sync(1),
        first(4),
        heartbeat(1),
        silence(PAST_SHORT_MS),
        acknowledge(4),
        heartbeat(1),
        describe_consumers(),
        classic(LONG_MS, LONG_MS, Id::Empty),
        sync(1),
        acknowledge(4),
        describe_consumers(),
    ]
}

/// It is told to, and does not.
fn classic_does_not_join() -> Vec<Step> {
    vec![
        classic(LONG_MS, SHORT_MS, Id::Empty),
        sync(1),
        first(4),
        heartbeat(1),
        silence(PAST_SHORT_MS),
        acknowledge(4),
        heartbeat(1),
        describe_consumers(),
    ]
}

fn classic_does_not_sync() -> Vec<Step> {
    vec![
        first(4),
        classic(LONG_MS, SHORT_MS, Id::Empty),
        silence(PAST_SHORT_MS),
        acknowledge(4),
        sync(1),
        heartbeat(1),
        describe_consumers(),
    ]
}

fn no_timeout() -> Vec<Step> {
    vec![
        join_for(0, 3, Id::Empty, Instance::None, LONG_MS, -1),
        silence(PAST_SHORT_MS),
        sync(0),
    ]
}

fn static_classic() -> Vec<Step> {
    let commit = Ask::Fetch {
        groups: vec![Group::Known(0)],
        member: Some((Id::Own, Round::Own)),
        topics: None,
        stable: false,
    };
    vec![
        join_for(0, 5, Id::Empty, Instance::Own, LONG_MS, LONG_MS),
        sync(0),
        classic(SHORT_MS, LONG_MS, Id::Empty),
        join_for(0, 5, Id::Own, Instance::Own, LONG_MS, LONG_MS),
        sync(0),
        sync(1),
        silence(PAST_SHORT_MS),
        heartbeat(0),
        classic(LONG_MS, LONG_MS, Id::Own),
        classic(LONG_MS, LONG_MS, Id::Empty),
        join_for(0, 5, Id::Own, Instance::Own, LONG_MS, LONG_MS),
        sync(0),
        sync(1),
        says(1, 8, commit),
        describe(),
    ]
}
