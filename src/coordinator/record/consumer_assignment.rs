//! What members of consumer groups are to hold and what they hold: the values of key types 7 and 8.

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::RecordError;
use super::client_assignor::{METADATA_TAG, METADATA_VERSION_TAG, bytes_to_bytes, whole};
use super::codec::{Form, Problem, Reader, Writer};
use super::consumer_group::{end_flexible, version_0};
use crate::coordinator::held::HeldPartitions;
use crate::coordinator::partitions::{Partitions, TopicPartition};

/// How far a member is on its way to its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentAssignmentValue {
    pub member_epoch: i32,
    pub previous_member_epoch: i32,
    pub state: MemberState,
    pub assigned: HeldPartitions,
    pub pending_revocation: HeldPartitions,
}

/// Kafka's `MemberState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberState {
    /// Has what it is to have, at its epoch.
    Stable,
    /// Has to give up partitions first.
    UnrevokedPartitions,
    /// Waits for partitions that others have not given up.
    UnreleasedPartitions,
    /// Written by a newer coordinator.
    Unknown,
}

impl MemberState {
    /// As metrics and pages name it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::UnrevokedPartitions => "unrevoked_partitions",
            Self::UnreleasedPartitions => "unreleased_partitions",
            Self::Unknown => "unknown",
        }
    }

    const fn to_number(self) -> i8 {
        match self {
            Self::Stable => 0,
            Self::UnrevokedPartitions => 1,
            Self::UnreleasedPartitions => 2,
            Self::Unknown => 127,
        }
    }

    const fn from_number(number: i8) -> Self {
        match number {
            0 => Self::Stable,
            1 => Self::UnrevokedPartitions,
            2 => Self::UnreleasedPartitions,
            _ => Self::Unknown,
        }
    }
}

impl CurrentAssignmentValue {
    pub(super) fn to_bytes(&self) -> Bytes {
        let held = self.assigned.len() + self.pending_revocation.len();
        let mut out = Writer::new(0, held * 12 + 64);
        out.int32(self.member_epoch);
        out.int32(self.previous_member_epoch);
        out.int8(self.state.to_number());
        held_to_bytes(&self.assigned, &mut out);
        held_to_bytes(&self.pending_revocation, &mut out);
        out.no_tagged_fields();
        out.finish()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut value = version_0("ConsumerGroupCurrentMemberAssignmentValue", bytes)?;
        let member_epoch = value.int32("memberEpoch")?;
        let current = Self {
            member_epoch,
            previous_member_epoch: value.int32("previousMemberEpoch")?,
            state: MemberState::from_number(value.int8("state")?),
            assigned: held_from_bytes("assignedPartitions", member_epoch, &mut value)?,
            pending_revocation: held_from_bytes("partitionsPendingRevocation", member_epoch, &mut value)?,
        };
        end_flexible(&mut value)?;
        Ok(current)
    }
}

/// What a member is to hold, and what a client-side assignor says to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetMemberValue {
    pub partitions: Arc<Partitions>,
    /// Ours, as the next.
    pub metadata_version: i16,
    pub metadata: Bytes,
}

impl From<Arc<Partitions>> for TargetMemberValue {
    /// Without metadata, as server assignors have none.
    fn from(partitions: Arc<Partitions>) -> Self {
        Self {
            partitions,
            metadata_version: 0,
            metadata: Bytes::new(),
        }
    }
}

impl TargetMemberValue {
    /// Whether it is the same; the very same partitions are not looked at.
    pub(in crate::coordinator) fn is_same(&self, other: &Self) -> bool {
        self.metadata_version == other.metadata_version
            && self.metadata == other.metadata
            && (Arc::ptr_eq(&self.partitions, &other.partitions) || self.partitions == other.partitions)
    }

    pub(super) fn to_bytes(&self) -> Bytes {
        let target = &self.partitions;
        let mut out = Writer::new(0, target.len() * 8 + self.metadata.len() + 64);
        let topics: Vec<(Uuid, Vec<i32>)> = target.by_topic().map(|(id, numbers)| (id, numbers.collect())).collect();
        out.flexible_length(topics.len());
        for (topic_id, numbers) in topics {
            out.uuid(topic_id);
            out.flexible_int32s(numbers.into_iter());
            out.no_tagged_fields();
        }
        let version = self.metadata_version.to_be_bytes();
        let metadata = (!self.metadata.is_empty()).then(|| bytes_to_bytes(&self.metadata));
        let mut fields: Vec<(u32, &[u8])> = Vec::new();
        if self.metadata_version != 0 {
            fields.push((METADATA_VERSION_TAG, &version));
        }
        if let Some(metadata) = &metadata {
            fields.push((METADATA_TAG, metadata));
        }
        out.tagged_fields(&fields);
        out.finish()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut value = version_0("ConsumerGroupTargetAssignmentMemberValue", bytes)?;
        let mut partitions = Vec::new();
        for _ in 0..value.array_length("topicPartitions", Form::Flexible)? {
            let topic_id = value.uuid("topicPartitions.topicId")?;
            let numbers = value.int32s("topicPartitions.partitions")?;
            partitions.extend(
                numbers
                    .into_iter()
                    .map(|partition| TopicPartition { topic_id, partition }),
            );
            value.tagged_fields(|_, _| Ok(()))?;
        }
        let mut target = Self::from(Arc::new(partitions.into_iter().collect::<Partitions>()));
        let message = value.message();
        value.tagged_fields(|tag, bytes| {
            match tag {
                METADATA_VERSION_TAG => {
                    target.metadata_version = whole(message, bytes, |content| content.int16("metadataVersion"))?;
                }
                METADATA_TAG => {
                    target.metadata = whole(message, bytes, |content| content.bytes("metadata", Form::Flexible))?;
                }
                _ => {}
            }
            Ok(())
        })?;
        value.end()?;
        Ok(target)
    }
}

const ASSIGNMENT_EPOCHS_TAG: u32 = 0;

fn held_to_bytes(held: &HeldPartitions, out: &mut Writer) {
    let held: Vec<(TopicPartition, i32)> = held.iter().collect();
    let topics = || held.chunk_by(|(one, _), (other, _)| one.topic_id == other.topic_id);
    out.flexible_length(topics().count());
    for topic in topics() {
        out.uuid(topic[0].0.topic_id);
        out.flexible_int32s(topic.iter().map(|(partition, _)| partition.partition));
        let mut epochs = Writer::headless();
        epochs.flexible_int32s(topic.iter().map(|(_, epoch)| *epoch));
        out.tagged(ASSIGNMENT_EPOCHS_TAG, &epochs.finish());
    }
}

/// Partitions without epochs were assigned at the member's epoch, as far as anybody knows.
fn held_from_bytes(
    field: &'static str,
    member_epoch: i32,
    value: &mut Reader<'_>,
) -> Result<HeldPartitions, RecordError> {
    let mut held = Vec::new();
    for _ in 0..value.array_length(field, Form::Flexible)? {
        let topic_id = value.uuid(field)?;
        let numbers = value.int32s(field)?;
        let message = value.message();
        let mut epochs = None;
        value.tagged_fields(|tag, bytes| {
            if tag == ASSIGNMENT_EPOCHS_TAG {
                epochs = nullable_int32s(&mut Reader::new(message, bytes))?;
            }
            Ok(())
        })?;
        let epochs = epochs.unwrap_or_else(|| vec![member_epoch; numbers.len()]);
        if epochs.len() != numbers.len() {
            return Err(value.error(field, Problem::Uneven(epochs.len(), numbers.len())));
        }
        let partitions = numbers
            .into_iter()
            .map(|partition| TopicPartition { topic_id, partition });
        held.extend(partitions.zip(epochs));
    }
    Ok(held.into_iter().collect())
}

fn nullable_int32s(content: &mut Reader<'_>) -> Result<Option<Vec<i32>>, RecordError> {
    const FIELD: &str = "assignmentEpochs";
    let Some(length) = content.nullable_array_length(FIELD)? else {
        return Ok(None);
    };
    let mut numbers = Vec::new();
    for _ in 0..length {
        numbers.push(content.int32(FIELD)?);
    }
    content.end()?;
    Ok(Some(numbers))
}
