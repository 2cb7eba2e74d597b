//! What clients commit: for each partition an offset that nobody else has.

use std::collections::BTreeSet;

use convoke::coordinator::request::{OffsetCommitPartition, OffsetCommitTopic, OffsetTopic};
use uuid::Uuid;

use crate::client::Surroundings;
use crate::protocol::Partition;
use crate::topics::name_of;

pub(crate) fn by_topic(partitions: &BTreeSet<Partition>) -> Vec<(OffsetTopic, Vec<i32>)> {
    let topics: BTreeSet<usize> = partitions.iter().map(|(topic, _)| *topic).collect();
    let of = |topic: usize| {
        partitions
            .iter()
            .filter(move |(of, _)| *of == topic)
            .map(|(_, partition)| *partition)
    };
    let named = |topic: usize| OffsetTopic {
        name: name_of(topic).into(),
        topic_id: Uuid::nil(),
    };
    topics
        .into_iter()
        .map(|topic| (named(topic), of(topic).collect()))
        .collect()
}

/// An offset of its own for each partition.
pub(crate) fn commit_topics(partitions: &BTreeSet<Partition>, around: &mut Surroundings<'_>) -> Vec<OffsetCommitTopic> {
    let mut topics = Vec::new();
    for (topic, partitions) in by_topic(partitions) {
        let commit = |partition| OffsetCommitPartition {
            partition,
            offset: around.fresh_number(),
            leader_epoch: -1,
            metadata: "".into(),
        };
        topics.push(OffsetCommitTopic {
            name: topic.name,
            topic_id: topic.topic_id,
            partitions: partitions.into_iter().map(commit).collect(),
        });
    }
    topics
}
