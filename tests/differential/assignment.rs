//! What classic consumers say to each other: their subscription and their assignment, as the leader of a group would make it.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use convoke_support::Result;
use kafka_protocol::messages::consumer_protocol_assignment::TopicPartition as AssignedTopic;
use kafka_protocol::messages::consumer_protocol_subscription::TopicPartition as OwnedTopic;
use kafka_protocol::messages::{ConsumerProtocolAssignment, ConsumerProtocolSubscription};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

use crate::actor::{Held, Named};
use crate::names::Names;
use crate::world::Topics;

/// The metadata of a join.
pub fn subscription(version: i16, topics: &[&str], owned: &Held, known: &Topics) -> Result<Bytes> {
    let mut message = ConsumerProtocolSubscription::default();
    message.topics = topics
        .iter()
        .map(|topic| StrBytes::from_string(known.called(topic).to_owned()))
        .collect();
    if version >= 1 {
        let owned = owned.iter().filter_map(|(id, partitions)| {
            let name = StrBytes::from_string(known.name(*id)?.to_owned());
            let topic = OwnedTopic::default().with_topic(name.into());
            Some(topic.with_partitions(partitions.iter().copied().collect()))
        });
        message.owned_partitions = owned.collect();
    }
    versioned(version, &message)
}

/// The topics of a subscription; none if it is not one.
pub fn topics(metadata: &Bytes) -> Vec<String> {
    let subscription: Option<ConsumerProtocolSubscription> = read_versioned(metadata);
    let topics = subscription.map(|subscription| subscription.topics).unwrap_or_default();
    topics.iter().map(ToString::to_string).collect()
}

/// The partitions of an assignment, or `None` if it is not one.
pub fn read(assignment: &Bytes, known: &Topics) -> Option<Held> {
    let assignment: ConsumerProtocolAssignment = read_versioned(assignment)?;
    let topics = assignment.assigned_partitions.iter();
    let topics = topics.filter_map(|topic| Some((known.id(&topic.topic)?, topic.partitions.iter().copied().collect())));
    Some(topics.collect())
}

/// An assignment in the same form whoever wrote it: topics and partitions in order.
pub fn show(assignment: &Bytes) -> String {
    let version = assignment.first_chunk().map(|version| i16::from_be_bytes(*version));
    let read = read_versioned::<ConsumerProtocolAssignment>(assignment);
    let (Some(version), Some(read)) = (version, read) else {
        return format!("{assignment:?}");
    };
    let topics = read.assigned_partitions.into_iter().map(|mut topic| {
        topic.partitions.sort_unstable();
        (topic.topic.to_string(), topic.partitions)
    });
    let topics: BTreeMap<_, _> = topics.collect();
    format!("v{version} {topics:?}, user data {:?}", read.user_data)
}

/// Gives each topic's partitions to its subscribers in turn. Members are in the order of their names, which is the same on both sides.
pub fn assign(
    members: &[Named],
    names: &Names,
    known: &Topics,
    user_data: Option<&'static [u8]>,
) -> Result<Vec<(String, Bytes)>> {
    let mut members: Vec<&Named> = members.iter().collect();
    members.sort_by_key(|member| names.member(&member.id));
    let mut assigned: Vec<BTreeMap<&str, Vec<i32>>> = vec![BTreeMap::new(); members.len()];
    for (topic, count) in known.counts() {
        let has = |member: &&Named| member.topics.iter().any(|name| name == topic);
        let subscribers: Vec<usize> = (0..members.len()).filter(|at| has(&members[*at])).collect();
        for (partition, subscriber) in (0..count).zip(subscribers.iter().cycle()) {
            assigned[*subscriber].entry(topic).or_default().push(partition);
        }
    }
    let messages = members.into_iter().zip(assigned).map(|(member, topics)| {
        let topics = topics.into_iter().map(|(topic, partitions)| {
            let name = StrBytes::from_string(topic.to_owned());
            AssignedTopic::default()
                .with_topic(name.into())
                .with_partitions(partitions)
        });
        let message = ConsumerProtocolAssignment::default()
            .with_assigned_partitions(topics.collect())
            .with_user_data(user_data.map(Bytes::from_static));
        Ok((member.id.clone(), versioned(1, &message)?))
    });
    messages.collect()
}

fn versioned(version: i16, message: &impl Encodable) -> Result<Bytes> {
    let mut bytes = BytesMut::new();
    bytes.put_i16(version);
    message.encode(&mut bytes, version)?;
    Ok(bytes.freeze())
}

fn read_versioned<T: Decodable>(bytes: &Bytes) -> Option<T> {
    let mut bytes = bytes.clone();
    let version = bytes.try_get_i16().ok()?;
    // The decoder reserves memory for as many topics as the bytes say.
    let count = i32::from_be_bytes(*bytes.first_chunk()?);
    if usize::try_from(count).ok()? > bytes.len() {
        return None;
    }
    // What follows a later version's fields is skipped.
    T::decode(&mut bytes, version.clamp(0, 3)).ok()
}
