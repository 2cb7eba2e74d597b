//! Who owns each partition, and what becomes of it for each member.

use std::sync::Arc;

use super::MemberSpec;
use super::space::Space;
use crate::coordinator::partitions::Partitions;

/// No member.
pub(super) const NOBODY: u32 = u32::MAX;

/// The owner of each partition of a space.
#[derive(Debug)]
pub(super) struct Placement {
    pub(super) owners: Vec<u32>,
    /// How many partitions each member owns.
    pub(super) loads: Vec<u32>,
    /// Which members' targets may differ from what they had.
    changed: Vec<bool>,
}

impl Placement {
    pub(super) fn new(members: usize, space: &Space) -> Self {
        Self {
            owners: vec![NOBODY; space.len()],
            loads: vec![0; members],
            changed: vec![false; members],
        }
    }

    /// Lets a member keep a partition of its target, unless somebody has it already.
    pub(super) fn keep(&mut self, partition: usize, member: usize) {
        if self.owners[partition] == NOBODY {
            self.own(partition, member);
        } else {
            self.changed[member] = true;
        }
    }

    /// A partition of this member's target is none of its partitions any longer.
    pub(super) fn lose(&mut self, member: usize) {
        self.changed[member] = true;
    }

    /// Gives a partition that nobody has.
    pub(super) fn give(&mut self, partition: usize, member: usize) {
        self.changed[member] = true;
        self.own(partition, member);
    }

    /// Takes a partition from its owner.
    pub(super) fn take(&mut self, partition: usize) {
        let owner = self.owners[partition] as usize;
        self.owners[partition] = NOBODY;
        self.loads[owner] -= 1;
        self.changed[owner] = true;
    }

    /// Each member's target, the old one where it is the same.
    pub(super) fn targets(self, members: &[MemberSpec], space: &Space) -> Vec<Arc<Partitions>> {
        let anew = self.changed.iter().zip(&self.loads);
        let mut anew: Vec<Vec<_>> = anew
            .map(|(&changed, &load)| Vec::with_capacity(if changed { load as usize } else { 0 }))
            .collect();
        // A walk in the order of indexes leaves every member's partitions in order.
        for (partition, &owner) in space.iter().zip(&self.owners) {
            let owner = owner as usize;
            if self.changed.get(owner) == Some(&true) {
                anew[owner].push(partition);
            }
        }
        let all = members.iter().zip(anew).zip(self.changed);
        all.map(|((member, partitions), changed)| {
            let partitions = changed.then(|| Partitions::from_ascending(partitions));
            match partitions {
                Some(partitions) if partitions != *member.target => Arc::new(partitions),
                _ => Arc::clone(&member.target),
            }
        })
        .collect()
    }

    fn own(&mut self, partition: usize, member: usize) {
        // Members are counted by an i32 (group.consumer.max.size), so that their numbers fit and are never NOBODY.
        self.owners[partition] = member as u32;
        self.loads[member] += 1;
    }
}
