//! The bytes that consumers exchange through the coordinator: `ConsumerProtocolSubscription` v3 and
//! `ConsumerProtocolAssignment` v1.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use convoke::coordinator::request::{JoinGroupMember, Text};

use crate::commits::by_topic;
use crate::topics::{index_of_name, name_of};

/// A partition of a topic of the simulation, by the topic's index.
pub(crate) type Partition = (usize, i32);

/// The protocol whose members keep what they have while they join.
pub(crate) const COOPERATIVE: &str = "cooperative-sticky";

pub(crate) fn subscription(
    topics: &BTreeSet<usize>,
    owned: &BTreeSet<Partition>,
    generation_id: i32,
    rack: Option<&str>,
) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i16(3);
    bytes.put_i32(topics.len().try_into().unwrap());
    topics.iter().for_each(|topic| put_text(&mut bytes, name_of(*topic)));
    bytes.put_i32(-1);
    put_partitions(&mut bytes, owned);
    bytes.put_i32(generation_id);
    match rack {
        Some(rack) => put_text(&mut bytes, rack),
        None => bytes.put_i16(-1),
    }
    bytes.freeze()
}

/// What a subscription names and owns.
fn read_subscription(mut bytes: &[u8]) -> (BTreeSet<usize>, BTreeSet<Partition>) {
    bytes.get_i16();
    let topics = (0..bytes.get_i32()).map(|_| topic(&mut bytes)).collect();
    bytes.get_i32();
    (topics, partitions(&mut bytes))
}

/// The leader's work: each partition to one of those subscribed to its topic, in turn. Where members keep what they have, a
/// partition that somebody has goes to nobody else before that one has given it up.
pub(crate) fn assign(
    members: &[JoinGroupMember],
    is_cooperative: bool,
    count: impl Fn(usize) -> i32,
) -> Vec<(Text, Bytes)> {
    let read = |member: &JoinGroupMember| (member.member_id.clone(), read_subscription(&member.metadata));
    let members: Vec<(Text, _)> = members.iter().map(read).collect();
    let topics: BTreeSet<usize> = members.iter().flat_map(|(_, (topics, _))| topics).copied().collect();
    let mut assigned: BTreeMap<&Text, BTreeSet<Partition>> =
        members.iter().map(|(id, _)| (id, BTreeSet::new())).collect();
    for topic in topics {
        let wants = |(_, (topics, _)): &&(Text, (BTreeSet<usize>, _))| topics.contains(&topic);
        let takers: Vec<&Text> = members.iter().filter(wants).map(|(id, _)| id).collect();
        for (number, taker) in (0..count(topic)).zip(takers.iter().cycle()) {
            let partition = (topic, number);
            let is_others =
                |(id, (_, owned)): &(Text, (_, BTreeSet<Partition>))| id != *taker && owned.contains(&partition);
            if !(is_cooperative && members.iter().any(is_others)) {
                assigned.get_mut(taker).unwrap().insert(partition);
            }
        }
    }
    let encode = |(id, partitions): (&Text, BTreeSet<Partition>)| (id.clone(), assignment(&partitions));
    assigned.into_iter().map(encode).collect()
}

/// The topics that members are subscribed to.
pub(crate) fn topics_of(members: &[JoinGroupMember]) -> BTreeSet<usize> {
    let topics = members.iter().flat_map(|member| read_subscription(&member.metadata).0);
    topics.collect()
}

fn assignment(partitions: &BTreeSet<Partition>) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i16(1);
    put_partitions(&mut bytes, partitions);
    bytes.put_i32(-1);
    bytes.freeze()
}

pub(crate) fn decode(mut assignment: &[u8]) -> BTreeSet<Partition> {
    if assignment.is_empty() {
        return BTreeSet::new();
    }
    assignment.get_i16();
    partitions(&mut assignment)
}

fn put_text(bytes: &mut BytesMut, text: &str) {
    bytes.put_i16(text.len().try_into().unwrap());
    bytes.put_slice(text.as_bytes());
}

fn put_partitions(bytes: &mut BytesMut, partitions: &BTreeSet<Partition>) {
    let topics = by_topic(partitions);
    bytes.put_i32(topics.len().try_into().unwrap());
    for (topic, numbers) in topics {
        put_text(bytes, &topic.name);
        bytes.put_i32(numbers.len().try_into().unwrap());
        numbers.into_iter().for_each(|number| bytes.put_i32(number));
    }
}

fn topic(bytes: &mut &[u8]) -> usize {
    let len = usize::try_from(bytes.get_i16()).unwrap();
    let (name, rest) = bytes.split_at(len);
    *bytes = rest;
    index_of_name(std::str::from_utf8(name).unwrap()).unwrap()
}

fn partitions(bytes: &mut &[u8]) -> BTreeSet<Partition> {
    let mut partitions = BTreeSet::new();
    for _ in 0..bytes.get_i32() {
        let topic = topic(bytes);
        partitions.extend((0..bytes.get_i32()).map(|_| (topic, bytes.get_i32())));
    }
    partitions
}
