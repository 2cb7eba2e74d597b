//! `range` (Kafka's `RangeAssignor`): each topic is cut into ranges for its subscribers, in an order that is the same for all topics.
//!
//! Static members come first, by instance id, then the others by member id. The order does not depend on the present target, so
//! nothing but that order makes it sticky.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::MemberSpec;
use super::placement::Placement;
use super::space::Space;
use super::subscriptions::Subscriptions;

pub(super) fn place(members: &[MemberSpec], subscriptions: &Subscriptions<'_>, space: &Space) -> Placement {
    let mut placement = Placement::new(members.len(), space);
    let order = order(members);
    let ranks = ranks(&order);
    // The ranks of each subscription's members, ascending.
    let ranked: Vec<Vec<u32>> = subscriptions
        .all
        .iter()
        .map(|subscription| {
            let mut ranked: Vec<u32> = subscription
                .members
                .iter()
                .map(|&member| ranks[member as usize])
                .collect();
            ranked.sort_unstable();
            ranked
        })
        .collect();
    let subscribers = subscriptions.by_topic(space);
    for topic in 0..space.topics() {
        let subscriptions = subscribers.of(topic).iter().map(|&index| &ranked[index as usize][..]);
        cut(&mut placement, space, topic, subscriptions.collect(), &order);
    }
    for (member, spec) in members.iter().enumerate() {
        if !spec.target.is_empty() {
            placement.lose(member);
        }
    }
    placement
}

/// Gives the topic's partitions to the members of these subscriptions, whose ranks are given.
fn cut(placement: &mut Placement, space: &Space, topic: usize, subscriptions: Vec<&[u32]>, order: &[u32]) {
    let partitions = space.partitions(topic);
    let members: usize = subscriptions.iter().map(|members| members.len()).sum();
    if members == 0 {
        return;
    }
    let (least, extras) = (partitions.len() / members, partitions.len() % members);
    let mut next = partitions.start;
    let mut heads: BinaryHeap<_> = subscriptions
        .into_iter()
        .filter_map(|ranks| ranks.split_first().map(Reverse))
        .collect();
    let mut place = 0;
    while next < partitions.end {
        let Some(Reverse((rank, rest))) = heads.pop() else {
            break;
        };
        heads.extend(rest.split_first().map(Reverse));
        let member = order[*rank as usize] as usize;
        for _ in 0..least + usize::from(place < extras) {
            placement.give(next, member);
            next += 1;
        }
        place += 1;
    }
}

/// The members as ranges are handed out, which is also the order of `MemberInfo` in Kafka's clients.
pub(super) fn order(members: &[MemberSpec]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(members.len()).collect();
    order.sort_by_key(|&member| {
        let spec = &members[member as usize];
        match &spec.instance_id {
            Some(instance_id) => (false, instance_id),
            None => (true, &spec.member_id),
        }
    });
    order
}

/// The place of each member in the order.
fn ranks(order: &[u32]) -> Vec<u32> {
    let mut ranks = vec![0; order.len()];
    for (rank, &member) in (0..).zip(order) {
        ranks[member as usize] = rank;
    }
    ranks
}
