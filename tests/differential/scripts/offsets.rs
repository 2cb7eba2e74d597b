//! Offsets.

use super::{Script, says, script};
use crate::step::{Ask, Group, Id, Instance, Note, Offset, Round, Step};

pub fn all() -> Vec<Script> {
    vec![
        script("the last offset of a group is deleted", last_offset()),
        script("a group that is not there is committed for", not_there()),
    ]
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

fn not_there() -> Vec<Step> {
    vec![commit(3), commit(-1)]
}
