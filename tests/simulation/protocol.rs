//! The bytes that consumers exchange through the coordinator.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use convoke::coordinator::request::{JoinGroupMember, Text};

use crate::plan::TOPICS;

/// A partition of one of `TOPICS`.
pub(crate) type Partition = (usize, i32);

/// A `ConsumerProtocolSubscription` v0.
pub(crate) fn subscription(topics: &BTreeSet<usize>) -> Bytes {
    let mut bytes = 0_i16.to_be_bytes().to_vec();
    bytes.extend(u32::try_from(topics.len()).unwrap().to_be_bytes());
    for topic in topics {
        let name = TOPICS[*topic].0;
        bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        bytes.extend(name.as_bytes());
    }
    bytes.extend((-1_i32).to_be_bytes());
    bytes.into()
}

/// Names have two bytes, so topics stand 4 bytes apart.
fn topics_of(subscription: &[u8]) -> BTreeSet<usize> {
    let names = subscription[6..subscription.len() - 4]
        .chunks(4)
        .map(|chunk| &chunk[2..]);
    names
        .map(|name| TOPICS.iter().position(|(topic, _)| topic.as_bytes() == name).unwrap())
        .collect()
}

/// The leader's work: each partition to one of those subscribed to its topic, in turn.
pub(crate) fn assign(members: &[JoinGroupMember]) -> Vec<(Text, Bytes)> {
    let mut assigned: BTreeMap<&Text, BTreeSet<Partition>> = members
        .iter()
        .map(|member| (&member.member_id, BTreeSet::new()))
        .collect();
    for (topic, (_, partitions)) in TOPICS.iter().enumerate() {
        let wants = |member: &&JoinGroupMember| topics_of(&member.metadata).contains(&topic);
        let takers: Vec<&Text> = members.iter().filter(wants).map(|member| &member.member_id).collect();
        for (partition, taker) in (0..*partitions).zip(takers.iter().cycle()) {
            assigned.get_mut(taker).unwrap().insert((topic, partition));
        }
    }
    let encode = |(id, partitions): (&Text, BTreeSet<Partition>)| (id.clone(), encode(&partitions));
    assigned.into_iter().map(encode).collect()
}

fn encode(partitions: &BTreeSet<Partition>) -> Bytes {
    let bytes = partitions
        .iter()
        .flat_map(|(topic, partition)| [*topic as u8, *partition as u8]);
    bytes.collect()
}

pub(crate) fn decode(assignment: &[u8]) -> BTreeSet<Partition> {
    assignment
        .chunks(2)
        .map(|pair| (usize::from(pair[0]), i32::from(pair[1])))
        .collect()
}
