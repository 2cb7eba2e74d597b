//! Offsets.

use super::{Script, says, script};
use crate::step::{Ask, Group, Id, Instance, Note, Offset, Round, Step};

pub fn all() -> Vec<Script> {
    vec![
        script("the last offset of a group is deleted", last_offset()),
        script("a group that is not there is committed for", not_there()),
        script("a partition is committed twice, the second time in vain", twice()),
    ]
}

/// The empty group id, of which there is one for all conversations: held before any other.
pub fn nameless() -> Script {
    let of = |step: Step| Step {
        group: Group::Nameless,
        ..step
    };
    let groups = vec![Group::Nameless];
    let fetch = |version, topics| {
        let ask = Ask::Fetch {
            groups: vec![Group::Nameless],
            member: None,
            topics,
            stable: version >= 7,
        };
        of(says(0, version, ask))
    };
    let describe = Ask::Describe {
        groups,
        operations: false,
    };
    let delete_offsets = Ask::DeleteOffsets {
        topics: vec![("one", vec![0])],
    };
    let mut steps: Vec<Step> = (2..=9).map(|version| of(Step { version, ..commit(-1) })).collect();
    for round in [0, 1] {
        steps.push(of(commit(round)));
    }
    for version in 1..=9 {
        steps.push(fetch(version, Some(vec![("one", vec![0, 1])])));
        steps.push(fetch(version, if version < 2 { Some(Vec::new()) } else { None }));
    }
    steps.extend((0..=5).map(|version| says(0, version, describe.clone())));
    steps.push(of(says(0, 0, delete_offsets)));
    steps.push(fetch(8, None));
    script("the empty group id", steps)
}

fn commit(round: i32) -> Step {
    let offset = Offset {
        partition: 0,
        offset: 1,
        leader_epoch: -1,
        metadata: Note::Null,
    };
    let ask = Ask::Commit {
        id: Id::Empty,
        instance: Instance::None,
        round: Round::Exactly(round),
        retention_ms: -1,
        topics: vec![("one", vec![offset])],
    };
    says(0, 9, ask)
}

fn last_offset() -> Vec<Step> {
    let groups = vec![Group::Known(0)];
    let describe = Ask::Describe {
        groups: groups.clone(),
        operations: false,
    };
    let delete_offsets = Ask::DeleteOffsets {
        topics: vec![("one", vec![0])],
    };
    vec![
        commit(-1),
        says(0, 5, describe.clone()),
        says(0, 0, delete_offsets),
        says(0, 5, describe),
        says(0, 2, Ask::Delete { groups }),
    ]
}

fn twice() -> Vec<Step> {
    let offset = |offset, metadata| Offset {
        partition: 0,
        offset,
        leader_epoch: -1,
        metadata,
    };
    let commit = Ask::Commit {
        id: Id::Empty,
        instance: Instance::None,
        round: Round::Exactly(-1),
        retention_ms: -1,
        topics: vec![("one", vec![offset(1, Note::Null), offset(2, Note::Long(4097))])],
    };
    let fetch = Ask::Fetch {
        groups: vec![Group::Known(0)],
        member: None,
        topics: None,
        stable: true,
    };
    vec![says(0, 9, commit), says(0, 8, fetch)]
}

fn not_there() -> Vec<Step> {
    vec![commit(3), commit(-1)]
}
