//! The coordinator's records, in Kafka's own key and value formats (`__consumer_offsets`).
//!
//! A key is a type number and the fields of its schema, a value is a version and the fields of that version; the schemas
//! are those of Kafka's group coordinator: `OffsetCommitKey`, `OffsetCommitValue`, `GroupMetadataKey`, `GroupMetadataValue`
//! and, for consumer groups, `ConsumerGroup...Key` and `...Value`.
//! Every version is read; what is written is what Kafka 4.4 writes, byte for byte.

mod client_assignor;
mod codec;
mod consumer_assignment;
mod consumer_group;
mod group_config;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use uuid::Uuid;

use super::request::Text;
pub(crate) use codec::MAX_TEXT_BYTES;
pub use codec::Problem;
use codec::{Form, Reader, Writer};
pub use consumer_assignment::{CurrentAssignmentValue, MemberState, TargetMemberValue};
pub use consumer_group::{
    ClassicMemberValue, ConsumerGroupMetadataValue, ConsumerGroupRecord, ConsumerMemberValue, ResolvedRegexValue,
    TargetAssignmentValue,
};
pub use group_config::GroupConfigValue;

/// One change of durable state. Keys are Kafka's coordinator record keys (types 0 to 8 and 16), plus two of our
/// own (`GroupOwned`, `GroupConfig`) that Kafka's loaders skip as unknown types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Key type 1. `None` is the tombstone.
    OffsetCommit { key: OffsetKey, value: Option<OffsetValue> },
    /// Key type 2. `None` is the tombstone.
    GroupMetadata {
        group_id: Text,
        value: Option<GroupMetadataValue>,
    },
    /// Key types 3 to 8 and 16.
    ConsumerGroup {
        group_id: Text,
        record: ConsumerGroupRecord,
    },
    /// Key type 10001, ours: the group was taken over from the upstream, whose offsets for it no longer count.
    GroupOwned {
        group_id: Text,
        value: Option<GroupOwnedValue>,
    },
    /// Key type 10002, ours: what the group was given for itself. `None` is the tombstone.
    GroupConfig {
        group_id: Text,
        value: Option<GroupConfigValue>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffsetKey {
    pub group_id: Text,
    pub topic: Text,
    pub partition: i32,
}

/// Value v4 (v1 when it carries an expiry, and then there is no room for a leader epoch or a topic id).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetValue {
    pub offset: i64,
    /// -1 when unknown.
    pub leader_epoch: i32,
    pub metadata: Text,
    pub commit_timestamp_ms: i64,
    /// Only where a v2-4 commit named its retention.
    pub expire_timestamp_ms: Option<i64>,
    /// Nil when unknown.
    pub topic_id: Uuid,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMetadataValue {
    pub protocol_type: Text,
    pub generation: i32,
    pub protocol: Option<Text>,
    pub leader: Option<Text>,
    /// -1 when unknown.
    pub current_state_timestamp_ms: i64,
    pub members: Vec<MemberValue>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberValue {
    pub member_id: Text,
    pub group_instance_id: Option<Text>,
    pub client_id: Text,
    pub client_host: Text,
    /// -1 in values of v0; the session timeout takes its place.
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    pub subscription: Bytes,
    pub assignment: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupOwnedValue {
    /// Wall clock, when it was taken over.
    pub since_ms: i64,
}

/// A record as the store keeps it; a `None` value deletes the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRecord {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// A record that cannot be read; says which message, which field, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}: {field} {problem}")]
pub struct RecordError {
    pub message: &'static str,
    pub field: &'static str,
    pub problem: Problem,
}

/// The key types, as Kafka's `CoordinatorRecordType` numbers them.
mod key_type {
    pub(super) const LEGACY_OFFSET_COMMIT: i16 = 0;
    pub(super) const OFFSET_COMMIT: i16 = 1;
    pub(super) const GROUP_METADATA: i16 = 2;
    pub(super) const CONSUMER_GROUP_METADATA: i16 = 3;
    pub(super) const CONSUMER_GROUP_PARTITION_METADATA: i16 = 4;
    pub(super) const CONSUMER_GROUP_MEMBER: i16 = 5;
    pub(super) const CONSUMER_GROUP_TARGET: i16 = 6;
    pub(super) const CONSUMER_GROUP_TARGET_MEMBER: i16 = 7;
    pub(super) const CONSUMER_GROUP_CURRENT_ASSIGNMENT: i16 = 8;
    pub(super) const CONSUMER_GROUP_REGEX: i16 = 16;
    /// Ours; far from Kafka's numbers, so that its loaders and tools skip it.
    pub(super) const GROUP_OWNED: i16 = 10_001;
    pub(super) const GROUP_CONFIG: i16 = 10_002;
}

impl Record {
    /// The record as it is stored.
    #[must_use]
    pub fn to_raw(&self) -> RawRecord {
        match self {
            Self::OffsetCommit { key, value } => RawRecord {
                key: key.to_bytes(),
                value: value.as_ref().map(OffsetValue::to_bytes),
            },
            Self::GroupMetadata { group_id, value } => RawRecord {
                key: group_key(key_type::GROUP_METADATA, group_id),
                value: value.as_ref().map(GroupMetadataValue::to_bytes),
            },
            Self::ConsumerGroup { group_id, record } => record.to_raw(group_id),
            Self::GroupOwned { group_id, value } => RawRecord {
                key: group_key(key_type::GROUP_OWNED, group_id),
                value: value.as_ref().map(GroupOwnedValue::to_bytes),
            },
            Self::GroupConfig { group_id, value } => RawRecord {
                key: group_key(key_type::GROUP_CONFIG, group_id),
                value: value.map(GroupConfigValue::to_bytes),
            },
        }
    }

    /// Reads a stored record; `None` for a key type of a newer or another coordinator, which is to be skipped.
    ///
    /// # Errors
    /// The bytes are not what the schema says. Nothing is reserved by a length that the bytes name.
    pub fn from_raw(raw: &RawRecord) -> Result<Option<Self>, RecordError> {
        let value = raw.value.as_deref();
        let mut key = Reader::new("record key", &raw.key);
        let record = match key.int16("type")? {
            key_type::LEGACY_OFFSET_COMMIT | key_type::OFFSET_COMMIT => Self::OffsetCommit {
                key: OffsetKey::read(&mut key)?,
                value: value.map(OffsetValue::from_bytes).transpose()?,
            },
            key_type::GROUP_METADATA => Self::GroupMetadata {
                group_id: key.text("group", Form::Classic)?,
                value: value.map(GroupMetadataValue::from_bytes).transpose()?,
            },
            key_type::GROUP_OWNED => Self::GroupOwned {
                group_id: key.text("group", Form::Classic)?,
                value: value.map(GroupOwnedValue::from_bytes).transpose()?,
            },
            key_type::GROUP_CONFIG => Self::GroupConfig {
                group_id: key.text("group", Form::Classic)?,
                value: value.map(GroupConfigValue::from_bytes).transpose()?,
            },
            key_type @ (key_type::CONSUMER_GROUP_METADATA..=key_type::CONSUMER_GROUP_CURRENT_ASSIGNMENT
            | key_type::CONSUMER_GROUP_REGEX) => {
                let group_id = key.text("group", Form::Classic)?;
                match ConsumerGroupRecord::read(key_type, &mut key, value)? {
                    Some(record) => Self::ConsumerGroup { group_id, record },
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        key.end()?;
        Ok(Some(record))
    }

    /// The group that the record is of.
    #[must_use]
    pub const fn group_id(&self) -> &Text {
        match self {
            Self::OffsetCommit { key, .. } => &key.group_id,
            Self::GroupMetadata { group_id, .. }
            | Self::ConsumerGroup { group_id, .. }
            | Self::GroupOwned { group_id, .. }
            | Self::GroupConfig { group_id, .. } => group_id,
        }
    }
}

/// The group of a stored key, whatever its type: each of Kafka's coordinator keys, and ours, begins with it.
///
/// # Errors
/// The key ends before the group's name does, or the name is no text.
pub fn key_group_id(key: &[u8]) -> Result<Text, RecordError> {
    let mut key = Reader::new("record key", key);
    key.int16("type")?;
    key.text("group", Form::Classic)
}

fn group_key(key_type: i16, group_id: &str) -> Bytes {
    let mut out = Writer::new(key_type, group_id.len() + 2);
    out.text(group_id);
    out.finish()
}

impl OffsetKey {
    fn to_bytes(&self) -> Bytes {
        let mut out = Writer::new(key_type::OFFSET_COMMIT, self.group_id.len() + self.topic.len() + 8);
        out.text(&self.group_id);
        out.text(&self.topic);
        out.int32(self.partition);
        out.finish()
    }

    fn read(key: &mut Reader<'_>) -> Result<Self, RecordError> {
        Ok(Self {
            group_id: key.text("group", Form::Classic)?,
            topic: key.text("topic", Form::Classic)?,
            partition: key.int32("partition")?,
        })
    }
}

impl OffsetValue {
    const TOPIC_ID_TAG: u32 = 0;

    fn to_bytes(&self) -> Bytes {
        // As it comes out where the metadata is short: bytes that fill their memory need no second piece of it.
        let capacity = self.metadata.len() + if self.topic_id.is_nil() { 22 } else { 40 };
        if let Some(expire_timestamp_ms) = self.expire_timestamp_ms {
            let mut out = Writer::new(1, self.metadata.len() + 26);
            out.int64(self.offset);
            out.text(&self.metadata);
            out.int64(self.commit_timestamp_ms);
            out.int64(expire_timestamp_ms);
            return out.finish();
        }
        let mut out = Writer::new(4, capacity);
        out.int64(self.offset);
        out.int32(self.leader_epoch);
        out.flexible_text(&self.metadata);
        out.int64(self.commit_timestamp_ms);
        if self.topic_id.is_nil() {
            out.no_tagged_fields();
        } else {
            out.tagged_uuid(Self::TOPIC_ID_TAG, self.topic_id);
        }
        out.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut value = Reader::new("OffsetCommitValue", bytes);
        let version = value.int16("version")?;
        let form = match version {
            0..=3 => Form::Classic,
            4 => Form::Flexible,
            _ => return Err(value.error("value", Problem::Version(version))),
        };
        let offset = value.int64("offset")?;
        let leader_epoch = if version >= 3 { value.int32("leaderEpoch")? } else { -1 };
        let metadata = value.text("metadata", form)?;
        let commit_timestamp_ms = value.int64("commitTimestamp")?;
        let expire_timestamp_ms = if version == 1 {
            value.int64("expireTimestamp")?
        } else {
            -1
        };
        let mut topic_id = Uuid::nil();
        if form == Form::Flexible {
            let error = value.error("topicId", Problem::TagSize(0));
            value.tagged_fields(|tag, bytes| {
                if tag == Self::TOPIC_ID_TAG {
                    topic_id = Uuid::from_slice(bytes).map_err(|_| RecordError {
                        problem: Problem::TagSize(bytes.len()),
                        ..error.clone()
                    })?;
                }
                Ok(())
            })?;
        }
        value.end()?;
        Ok(Self {
            offset,
            leader_epoch,
            metadata,
            commit_timestamp_ms,
            expire_timestamp_ms: (expire_timestamp_ms != -1).then_some(expire_timestamp_ms),
            topic_id,
        })
    }
}

impl GroupMetadataValue {
    /// v4 is only read: Kafka 4.4 still writes v3.
    const WRITTEN_VERSION: i16 = 3;

    fn to_bytes(&self) -> Bytes {
        let members: usize = self.members.iter().map(MemberValue::capacity).sum();
        let mut out = Writer::new(Self::WRITTEN_VERSION, self.protocol_type.len() + members + 128);
        out.text(&self.protocol_type);
        out.int32(self.generation);
        out.nullable_text(self.protocol.as_deref());
        out.nullable_text(self.leader.as_deref());
        out.int64(self.current_state_timestamp_ms);
        out.length(self.members.len());
        for member in &self.members {
            member.write(&mut out);
        }
        out.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut value = Reader::new("GroupMetadataValue", bytes);
        let version = value.int16("version")?;
        let form = match version {
            0..=3 => Form::Classic,
            4 => Form::Flexible,
            _ => return Err(value.error("value", Problem::Version(version))),
        };
        let protocol_type = value.text("protocolType", form)?;
        let generation = value.int32("generation")?;
        let protocol = value.nullable_text("protocol", form)?;
        let leader = value.nullable_text("leader", form)?;
        let current_state_timestamp_ms = if version >= 2 {
            value.int64("currentStateTimestamp")?
        } else {
            -1
        };
        let mut members = Vec::new();
        for _ in 0..value.array_length("members", form)? {
            members.push(MemberValue::read(&mut value, version, form)?);
        }
        if form == Form::Flexible {
            value.tagged_fields(|_, _| Ok(()))?;
        }
        value.end()?;
        Ok(Self {
            protocol_type,
            generation,
            protocol,
            leader,
            current_state_timestamp_ms,
            members,
        })
    }
}

impl MemberValue {
    fn capacity(&self) -> usize {
        let texts = self.member_id.len() + self.client_id.len() + self.client_host.len();
        let instance = self.group_instance_id.as_ref().map_or(0, |id| id.len());
        texts + instance + self.subscription.len() + self.assignment.len() + 24
    }

    fn write(&self, out: &mut Writer) {
        out.text(&self.member_id);
        out.nullable_text(self.group_instance_id.as_deref());
        out.text(&self.client_id);
        out.text(&self.client_host);
        out.int32(self.rebalance_timeout_ms);
        out.int32(self.session_timeout_ms);
        out.bytes(&self.subscription);
        out.bytes(&self.assignment);
    }

    fn read(value: &mut Reader<'_>, version: i16, form: Form) -> Result<Self, RecordError> {
        let member_id = value.text("members.memberId", form)?;
        let group_instance_id = if version >= 3 {
            value.nullable_text("members.groupInstanceId", form)?
        } else {
            None
        };
        let member = Self {
            member_id,
            group_instance_id,
            client_id: value.text("members.clientId", form)?,
            client_host: value.text("members.clientHost", form)?,
            rebalance_timeout_ms: if version >= 1 {
                value.int32("members.rebalanceTimeout")?
            } else {
                -1
            },
            session_timeout_ms: value.int32("members.sessionTimeout")?,
            subscription: value.bytes("members.subscription", form)?,
            assignment: value.bytes("members.assignment", form)?,
        };
        if form == Form::Flexible {
            value.tagged_fields(|_, _| Ok(()))?;
        }
        Ok(member)
    }
}

impl GroupOwnedValue {
    /// Flexible, so that fields can be added as tags.
    fn to_bytes(&self) -> Bytes {
        let mut out = Writer::new(0, 16);
        out.int64(self.since_ms);
        out.no_tagged_fields();
        out.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut value = Reader::new("GroupOwnedValue", bytes);
        let version = value.int16("version")?;
        if version != 0 {
            return Err(value.error("value", Problem::Version(version)));
        }
        let since_ms = value.int64("since")?;
        value.tagged_fields(|_, _| Ok(()))?;
        value.end()?;
        Ok(Self { since_ms })
    }
}
