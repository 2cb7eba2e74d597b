//! `uniform` where all members have the same subscription (Kafka's `UniformHomogeneousAssignmentBuilder`).
//!
//! With P partitions and M members, P mod M members may have ⌈P/M⌉ partitions and the others ⌊P/M⌋. The members that have that many
//! already come first in getting the greater quota, so that what moves is the least that balance allows.

use super::MemberSpec;
use super::placement::{NOBODY, Placement};
use super::space::Space;

pub(super) fn place(members: &[MemberSpec], space: &Space) -> Placement {
    let mut placement = Placement::new(members.len(), space);
    if members.is_empty() {
        return placement;
    }
    keep(&mut placement, members, space);
    let quotas = quotas(&placement, space);
    release(&mut placement, &quotas, members, space);
    fill(&mut placement, &quotas);
    placement
}

/// Every member keeps what it has, as long as it exists.
fn keep(placement: &mut Placement, members: &[MemberSpec], space: &Space) {
    for (member, spec) in members.iter().enumerate() {
        for located in space.locate(spec.target.iter()) {
            match located {
                Some((_, partition)) => placement.keep(partition, member),
                None => placement.lose(member),
            }
        }
    }
}

/// How many partitions each member is to have.
fn quotas(placement: &Placement, space: &Space) -> Vec<u32> {
    let members = placement.loads.len();
    // Both fit in 32 bits where members are fewer than 2^32 and partitions fit in memory.
    let (least, mut extras) = ((space.len() / members) as u32, space.len() % members);
    let mut quotas = vec![least; members];
    for wants_extra in [true, false] {
        for (quota, &load) in quotas.iter_mut().zip(&placement.loads) {
            if extras > 0 && wants_extra == (load > least) {
                *quota += 1;
                extras -= 1;
            }
        }
    }
    quotas
}

/// Members above their quota lose their last partitions.
fn release(placement: &mut Placement, quotas: &[u32], members: &[MemberSpec], space: &Space) {
    for (member, (&quota, spec)) in quotas.iter().zip(members).enumerate() {
        let surplus = placement.loads[member].saturating_sub(quota) as usize;
        if surplus == 0 {
            continue;
        }
        let held: Vec<usize> = space
            .locate(spec.target.iter().rev())
            .filter_map(|located| located.map(|(_, partition)| partition))
            .filter(|&partition| placement.owners[partition] as usize == member)
            .take(surplus)
            .collect();
        for partition in held {
            placement.take(partition);
        }
    }
}

/// What nobody has goes to the members below their quota, each filled before the next.
fn fill(placement: &mut Placement, quotas: &[u32]) {
    let mut member = 0;
    for partition in 0..placement.owners.len() {
        if placement.owners[partition] != NOBODY {
            continue;
        }
        while placement.loads[member] >= quotas[member] {
            member += 1;
        }
        placement.give(partition, member);
    }
}
