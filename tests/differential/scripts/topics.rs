//! Topics that come, grow and go while groups read them.

use super::classic::{describe, heartbeat, joining_with, sync};
use super::consumer::{acknowledge, beat, describe_consumers, joining, leave};
use super::{Script, says, script};
use crate::step::{Ask, Beat, Group, Id, Instance, Metadata, Note, Offset, Owned, Round, Step, TopicChange};
use crate::world::OWN_TOPIC;

pub fn all(is_old: bool) -> Vec<Script> {
    let mut all = vec![script("the topic of a classic group changes", classic_group())];
    if !is_old {
        all.push(script("the topic of consumers changes", consumers()));
        all.push(script("the topic of members of both protocols changes", both()));
        all.push(script("the topic of a group that is empty changes", empty()));
    }
    all
}

fn change(change: TopicChange) -> Step {
    says(0, 0, Ask::Topic(change))
}

fn reading(actor: usize) -> Step {
    let said = Beat {
        topics: Some(vec![OWN_TOPIC, "one"]),
        ..joining(actor)
    };
    beat(actor, said)
}

fn classic(id: Id) -> Step {
    let metadata = Metadata::Subscription {
        version: 1,
        topics: vec![OWN_TOPIC],
        owned: Owned::Nothing,
    };
    joining_with(0, id, vec![("range", metadata)])
}

fn commit(version: i16) -> Step {
    let offset = Offset {
        partition: 0,
        offset: 5,
        leader_epoch: -1,
        metadata: Note::Null,
    };
    let topics = vec![
        (OWN_TOPIC, vec![offset, Offset { partition: 2, ..offset }]),
        ("one", vec![offset]),
    ];
    let ask = Ask::Commit {
        id: Id::Own,
        instance: Instance::None,
        round: Round::Own,
        retention_ms: -1,
        topics,
    };
    says(0, version, ask)
}

fn fetch(version: i16, is_named: bool) -> Step {
    let ask = Ask::Fetch {
        groups: vec![Group::Known(0)],
        member: None,
        topics: is_named.then(|| vec![(OWN_TOPIC, vec![0, 2])]),
        stable: true,
    };
    says(0, version, ask)
}

/// Nothing of the group itself changes, but what is committed goes with the topic.
fn classic_group() -> Vec<Step> {
    let mut steps = vec![
        change(TopicChange::Created(2)),
        classic(Id::Empty),
        sync(0),
        commit(9),
        fetch(8, false),
    ];
    steps.extend([change(TopicChange::Grown(3)), heartbeat(0), commit(9), fetch(8, true)]);
    steps.extend([
        change(TopicChange::Deleted),
        heartbeat(0),
        fetch(8, false),
        fetch(8, true),
        commit(9),
    ]);
    steps.extend([
        change(TopicChange::Created(1)),
        fetch(8, true),
        commit(9),
        classic(Id::Own),
        sync(0),
        describe(),
    ]);
    steps
}

fn consumers() -> Vec<Step> {
    let everybody = || {
        let heard = [
            acknowledge(0),
            acknowledge(1),
            acknowledge(0),
            acknowledge(1),
            describe_consumers(),
        ];
        heard.into_iter()
    };
    let mut steps = vec![reading(0), acknowledge(0), reading(1)];
    steps.extend(everybody());
    for next in [
        TopicChange::Created(1),
        TopicChange::Grown(4),
        TopicChange::Deleted,
        TopicChange::Created(2),
    ] {
        steps.push(change(next));
        steps.extend(everybody());
        steps.extend([commit(9), fetch(9, false), commit(10), fetch(10, true)]);
    }
    steps
}

fn both() -> Vec<Step> {
    let everybody = || {
        let heard = [
            acknowledge(1),
            heartbeat(0),
            classic(Id::Own),
            sync(0),
            acknowledge(1),
            describe_consumers(),
        ];
        heard.into_iter()
    };
    let mut steps = vec![change(TopicChange::Created(2)), classic(Id::Empty), sync(0), reading(1)];
    for next in [TopicChange::Grown(5), TopicChange::Deleted, TopicChange::Created(3)] {
        steps.extend(everybody());
        steps.push(change(next));
    }
    steps.extend(everybody());
    steps
}

fn empty() -> Vec<Step> {
    vec![
        change(TopicChange::Created(2)),
        reading(0),
        leave(0, -1),
        change(TopicChange::Grown(3)),
        describe_consumers(),
        reading(0),
        acknowledge(0),
        describe_consumers(),
        leave(0, -1),
        change(TopicChange::Deleted),
        describe_consumers(),
        reading(0),
        describe_consumers(),
    ]
}
