//! Committed offsets of one shard, and the rules that need nothing but them.
//!
//! Each method answers with records and changes nothing; memory changes only in [`Offsets::apply`], for a new record and
//! for a loaded one alike. Who may commit, fetch or delete is the group's to say and was decided before
//! (Kafka's `OffsetMetadataManager`, without transactions).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use uuid::Uuid;

use super::input::{DeletedTopic, ImportedOffset};
use super::record::{MAX_TEXT_BYTES, OffsetKey, OffsetValue, Record};
use super::request::{
    FetchedOffset, OffsetCommitPartition, OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest,
    OffsetDeleteResponse, OffsetTopic, Text,
};
use crate::wire::error_code::ErrorCode;

type Partitions = BTreeMap<i32, OffsetValue>;
type Topics = BTreeMap<Text, Partitions>;

/// The committed offsets of every group of a shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offsets {
    groups: BTreeMap<Text, Topics>,
    total: usize,
}

/// When the offsets of a group expire (KIP-211).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    pub base: ExpiryBase,
    /// `offsets.retention.minutes`, in milliseconds.
    pub retention_ms: i64,
}

/// From when the retention is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpiryBase {
    /// From each offset's commit.
    Commit,
    /// From one moment for the whole group: when it became empty (wall clock).
    Moment(i64),
}

impl Offsets {
    /// Takes a durable change in: a value replaces, `None` removes.
    pub fn apply(&mut self, key: &OffsetKey, value: Option<&OffsetValue>) {
        match value {
            Some(value) => {
                let topics = self.groups.entry(key.group_id.clone()).or_default();
                let partitions = topics.entry(key.topic.clone()).or_default();
                if partitions.insert(key.partition, value.clone()).is_none() {
                    self.total += 1;
                }
            }
            None => self.remove(key),
        }
    }

    fn remove(&mut self, key: &OffsetKey) {
        let Some(topics) = self.groups.get_mut(&key.group_id) else {
            return;
        };
        let Some(partitions) = topics.get_mut(&key.topic) else {
            return;
        };
        if partitions.remove(&key.partition).is_some() {
            self.total -= 1;
        }
        if partitions.is_empty() {
            topics.remove(&key.topic);
        }
        if topics.is_empty() {
            self.groups.remove(&key.group_id);
        }
    }

    /// Records for an admitted commit, in the order of the request, so that the last of several for one partition wins;
    /// and the answer, in which only a partition whose metadata is too long fails.
    ///
    /// `now_ms` is the wall clock, `metadata_max` is `offset.metadata.max.bytes`.
    #[must_use]
    pub fn commit(
        request: &OffsetCommitRequest,
        now_ms: i64,
        metadata_max: i32,
    ) -> (Vec<Record>, OffsetCommitResponse) {
        let expire_timestamp_ms = request
            .retention_time_ms
            .map(|retention| now_ms.saturating_add(retention));
        let mut records = Vec::new();
        let mut answer = Vec::with_capacity(request.topics.len());
        for topic in &request.topics {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for partition in &topic.partitions {
                if metadata_too_long(&partition.metadata, metadata_max) {
                    partitions.push((partition.partition, ErrorCode::OFFSET_METADATA_TOO_LARGE));
                    continue;
                }
                partitions.push((partition.partition, ErrorCode::NONE));
                records.push(Record::OffsetCommit {
                    key: OffsetKey {
                        group_id: request.group_id.clone(),
                        topic: topic.name.clone(),
                        partition: partition.partition,
                    },
                    value: Some(committed(partition, topic.topic_id, now_ms, expire_timestamp_ms)),
                });
            }
            let topic = OffsetTopic {
                name: topic.name.clone(),
                topic_id: topic.topic_id,
            };
            answer.push((topic, partitions));
        }
        (records, OffsetCommitResponse { topics: answer })
    }

    /// The offsets of the named partitions, or of all that have one. A partition without one, or whose topic was created
    /// anew since (both ids known, and different), is answered -1. "All" names topics with the ids that were stored; one that
    /// was made anew may stand there under each of its ids.
    #[must_use]
    pub fn fetch(
        &self,
        group_id: &str,
        topics: Option<&[(OffsetTopic, Vec<i32>)]>,
    ) -> Vec<(OffsetTopic, Vec<FetchedOffset>)> {
        let known = self.groups.get(group_id);
        let Some(topics) = topics else {
            return known.into_iter().flatten().flat_map(fetch_all).collect();
        };
        topics
            .iter()
            .map(|(topic, partitions)| {
                let known = known.and_then(|topics| topics.get(&topic.name));
                let find = |partition: &i32| {
                    let value = known.and_then(|partitions| partitions.get(partition));
                    let value = value.filter(|value| !other_topic(value.topic_id, topic.topic_id));
                    fetched(*partition, value)
                };
                (topic.clone(), partitions.iter().map(find).collect())
            })
            .collect()
    }

    /// Tombstones for the named partitions that have an offset; a topic the group is subscribed to is refused whole.
    #[must_use]
    pub fn delete(
        &self,
        request: &OffsetDeleteRequest,
        subscribed: impl Fn(&str) -> bool,
    ) -> (Vec<Record>, OffsetDeleteResponse) {
        let mut records = Vec::new();
        let mut answer = Vec::with_capacity(request.topics.len());
        for (topic, partitions) in &request.topics {
            let error = if subscribed(topic) {
                ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC
            } else {
                let known = self.groups.get(&request.group_id).and_then(|topics| topics.get(topic));
                let has_offset = |partition: &&i32| known.is_some_and(|known| known.contains_key(*partition));
                let doomed = partitions.iter().filter(has_offset);
                records.extend(doomed.map(|partition| tombstone(&request.group_id, topic, *partition)));
                ErrorCode::NONE
            };
            answer.push((
                topic.clone(),
                partitions.iter().map(|partition| (*partition, error)).collect(),
            ));
        }
        let response = OffsetDeleteResponse {
            error: ErrorCode::NONE,
            topics: answer,
        };
        (records, response)
    }

    /// Tombstones for everything the group has.
    #[must_use]
    pub fn delete_group(&self, group_id: &str) -> Vec<Record> {
        self.select(group_id, |_, _| true)
    }

    /// Tombstones for what has run out: past its own expiry if the commit named one, else past the retention. A topic that
    /// the group is subscribed to keeps its offsets for ever. `now_ms` is the wall clock.
    #[must_use]
    pub fn expire(
        &self,
        group_id: &str,
        expiry: Expiry,
        now_ms: i64,
        subscribed: impl Fn(&str) -> bool,
    ) -> Vec<Record> {
        self.select(group_id, |topic, value| {
            expiry.is_due(value, now_ms) && !subscribed(topic)
        })
    }

    /// Tombstones, in every group, for the offsets of topics that are gone: those of the same name whose id is the deleted
    /// topic's or not known.
    #[must_use]
    pub fn delete_topics(&self, deleted: &[DeletedTopic]) -> Vec<Record> {
        let mut records = Vec::new();
        for (group_id, topics) in &self.groups {
            for topic in deleted {
                let partitions = topics.get(&topic.name).into_iter().flatten();
                let doomed = partitions.filter(|(_, value)| !other_topic(value.topic_id, topic.id));
                records.extend(doomed.map(|(partition, _)| tombstone(group_id, &topic.name, *partition)));
            }
        }
        records
    }

    /// Every topic that has an offset committed with an id, by that id.
    #[must_use]
    pub fn topics(&self) -> BTreeMap<Uuid, Text> {
        let mut found = BTreeMap::new();
        for (name, partitions) in self.groups.values().flatten() {
            let mut last = Uuid::nil();
            for value in partitions.values() {
                if value.topic_id != last && !value.topic_id.is_nil() {
                    last = value.topic_id;
                    found.entry(last).or_insert_with(|| name.clone());
                }
            }
        }
        found
    }

    /// Records for what the upstream had committed for a group that is taken over. What is already here is newer and stays.
    /// The upstream does not say when it was committed, so the retention starts at `now_ms` (wall clock).
    #[must_use]
    pub fn import(&self, group_id: &Text, offsets: &[ImportedOffset], now_ms: i64) -> Vec<Record> {
        let missing = |offset: &&ImportedOffset| {
            offset.offset >= 0 && self.get(group_id, &offset.topic, offset.partition).is_none()
        };
        offsets
            .iter()
            .filter(missing)
            .map(|offset| Record::OffsetCommit {
                key: OffsetKey {
                    group_id: group_id.clone(),
                    topic: offset.topic.clone(),
                    partition: offset.partition,
                },
                value: Some(OffsetValue {
                    offset: offset.offset,
                    leader_epoch: offset.leader_epoch,
                    metadata: offset.metadata.clone(),
                    commit_timestamp_ms: now_ms,
                    expire_timestamp_ms: None,
                    topic_id: offset.topic_id,
                }),
            })
            .collect()
    }

    /// One committed offset.
    #[must_use]
    pub fn get(&self, group_id: &str, topic: &str, partition: i32) -> Option<&OffsetValue> {
        self.groups.get(group_id)?.get(topic)?.get(&partition)
    }

    /// How many partitions the group has an offset for.
    #[must_use]
    pub fn count(&self, group_id: &str) -> usize {
        let topics = self.groups.get(group_id).into_iter().flatten();
        topics.map(|(_, partitions)| partitions.len()).sum()
    }

    /// How many offsets there are in all groups.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.total
    }

    /// The groups that have an offset, in order.
    pub fn groups(&self) -> impl Iterator<Item = &Text> {
        self.groups.keys()
    }

    fn select(&self, group_id: &str, doomed: impl Fn(&str, &OffsetValue) -> bool) -> Vec<Record> {
        let Some((group_id, topics)) = self.groups.get_key_value(group_id) else {
            return Vec::new();
        };
        let mut records = Vec::new();
        for (topic, partitions) in topics {
            let doomed = partitions.iter().filter(|(_, value)| doomed(topic, value));
            records.extend(doomed.map(|(partition, _)| tombstone(group_id, topic, *partition)));
        }
        records
    }
}

impl Expiry {
    fn is_due(self, value: &OffsetValue, now_ms: i64) -> bool {
        if let Some(expire_timestamp_ms) = value.expire_timestamp_ms {
            return now_ms >= expire_timestamp_ms;
        }
        let base = match self.base {
            ExpiryBase::Commit => value.commit_timestamp_ms,
            ExpiryBase::Moment(moment_ms) => moment_ms,
        };
        now_ms.saturating_sub(base) >= self.retention_ms
    }
}

/// Kafka compares `offset.metadata.max.bytes` with Java's string length, which is UTF-16 units; and its record format has
/// no room for more than `MAX_TEXT_BYTES`, whatever the setting says.
fn metadata_too_long(metadata: &str, max_units: i32) -> bool {
    let max_units = usize::try_from(max_units).unwrap_or(0);
    metadata.len() > MAX_TEXT_BYTES || (metadata.len() > max_units && metadata.encode_utf16().count() > max_units)
}

/// The value of one commit. A value with an expiry is written in a version without leader epoch and topic id, so memory
/// does not keep them either: what is loaded later must be the same.
fn committed(
    partition: &OffsetCommitPartition,
    topic_id: Uuid,
    now_ms: i64,
    expire_timestamp_ms: Option<i64>,
) -> OffsetValue {
    let (leader_epoch, topic_id) = match expire_timestamp_ms {
        Some(_) => (-1, Uuid::nil()),
        None => (partition.leader_epoch, topic_id),
    };
    OffsetValue {
        offset: partition.offset,
        leader_epoch,
        metadata: partition.metadata.clone(),
        commit_timestamp_ms: now_ms,
        expire_timestamp_ms,
        topic_id,
    }
}

/// Whether both ids are known and differ: the topic was created anew under its old name.
fn other_topic(stored: Uuid, asked: Uuid) -> bool {
    !stored.is_nil() && !asked.is_nil() && stored != asked
}

fn tombstone(group_id: &Text, topic: &Text, partition: i32) -> Record {
    Record::OffsetCommit {
        key: OffsetKey {
            group_id: group_id.clone(),
            topic: topic.clone(),
            partition,
        },
        value: None,
    }
}

fn fetch_all((name, partitions): (&Text, &Partitions)) -> BTreeMap<OffsetTopic, Vec<FetchedOffset>> {
    let mut topics: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (partition, value) in partitions {
        let topic = OffsetTopic {
            name: name.clone(),
            topic_id: value.topic_id,
        };
        let offsets = topics.entry(topic).or_default();
        offsets.push(fetched(*partition, Some(value)));
    }
    topics
}

fn fetched(partition: i32, value: Option<&OffsetValue>) -> FetchedOffset {
    FetchedOffset {
        partition,
        offset: value.map_or(-1, |value| value.offset),
        leader_epoch: value.map_or(-1, |value| value.leader_epoch),
        metadata: value.map_or_else(|| Text::from(""), |value| value.metadata.clone()),
        error: ErrorCode::NONE,
    }
}
