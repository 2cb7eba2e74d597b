//! The records of consumer groups (KIP-848): key types 3 to 8 and 16. All values are flexible and of version 0.

use std::sync::Arc;

use bytes::Bytes;

use super::client_assignor::{
    ASSIGNOR_ERROR_TAG, ASSIGNOR_NAME_TAG, CLIENT_ASSIGNORS_TAG, assignors_from_bytes, assignors_to_bytes,
    name_from_bytes, text_to_bytes, whole,
};
use super::codec::{Form, Problem, Reader, Writer};
use super::consumer_assignment::{CurrentAssignmentValue, TargetMemberValue};
use super::{RawRecord, RecordError, group_key, key_type};
use crate::coordinator::request::{ClientAssignor, Protocol, Text};
use crate::coordinator::topic_names::TopicNames;

/// One change of a consumer group. `None` is the tombstone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsumerGroupRecord {
    /// Key type 3, the one that makes a group known; its tombstone ends the group.
    Metadata(Option<ConsumerGroupMetadataValue>),
    /// Key type 4, which Kafka writes no longer: the topics' partitions, here as they are stored.
    PartitionMetadata(Option<Bytes>),
    /// Key type 5.
    Member {
        member_id: Text,
        value: Option<Arc<ConsumerMemberValue>>,
    },
    /// Key type 6.
    Target(Option<TargetAssignmentValue>),
    /// Key type 7: what a member is to hold.
    TargetMember {
        member_id: Text,
        value: Option<TargetMemberValue>,
    },
    /// Key type 8: what a member holds.
    CurrentAssignment {
        member_id: Text,
        value: Option<CurrentAssignmentValue>,
    },
    /// Key type 16.
    Regex {
        pattern: Text,
        value: Option<ResolvedRegexValue>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerGroupMetadataValue {
    pub epoch: i32,
    /// Of the topics that the group is subscribed to; 0 when none of them exists.
    pub metadata_hash: i64,
}

/// What a member says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerMemberValue {
    pub instance_id: Option<Text>,
    pub rack_id: Option<Text>,
    pub client_id: Text,
    pub client_host: Text,
    /// Members of a group that have equal ones share one list.
    pub subscribed_topic_names: TopicNames,
    /// Empty for none.
    pub subscribed_topic_regex: Text,
    /// -1 when it never said.
    pub rebalance_timeout_ms: i32,
    pub server_assignor: Option<Text>,
    /// In its order of preference. Ours.
    pub client_assignors: Vec<ClientAssignor>,
    /// Of a member that speaks the classic protocol.
    pub classic: Option<ClassicMemberValue>,
}

/// What the classic protocol needs of its member in a consumer group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassicMemberValue {
    pub session_timeout_ms: i32,
    /// In the member's order of preference.
    pub protocols: Vec<Protocol>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetAssignmentValue {
    pub epoch: i32,
    /// Wall clock, when it was computed; 0 when unknown.
    pub timestamp_ms: i64,
    /// The client-side assignor that computed it; `None` of a server assignor. Ours.
    pub assignor: Option<Text>,
    /// The error of the client-side assignor that should have; 0 for none. Ours.
    pub assignor_error: i8,
}

/// The topics that a pattern stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedRegexValue {
    /// By name, ordered.
    pub topics: Vec<Text>,
    /// Of the broker's metadata image; nobody outside of it knows one, so what is written here is 0.
    pub version: i64,
    /// Wall clock.
    pub timestamp_ms: i64,
}

impl ConsumerGroupRecord {
    /// Whether it takes something away.
    #[must_use]
    pub const fn is_tombstone(&self) -> bool {
        match self {
            Self::Metadata(value) => value.is_none(),
            Self::PartitionMetadata(value) => value.is_none(),
            Self::Member { value, .. } => value.is_none(),
            Self::Target(value) => value.is_none(),
            Self::TargetMember { value, .. } => value.is_none(),
            Self::CurrentAssignment { value, .. } => value.is_none(),
            Self::Regex { value, .. } => value.is_none(),
        }
    }

    pub(super) fn to_raw(&self, group_id: &str) -> RawRecord {
        let (key, value) = match self {
            Self::Metadata(value) => (
                group_key(key_type::CONSUMER_GROUP_METADATA, group_id),
                value.as_ref().map(ConsumerGroupMetadataValue::to_bytes),
            ),
            Self::PartitionMetadata(value) => (
                group_key(key_type::CONSUMER_GROUP_PARTITION_METADATA, group_id),
                value.clone(),
            ),
            Self::Member { member_id, value } => (
                member_key(key_type::CONSUMER_GROUP_MEMBER, group_id, member_id),
                value.as_ref().map(|value| value.to_bytes()),
            ),
            Self::Target(value) => (
                group_key(key_type::CONSUMER_GROUP_TARGET, group_id),
                value.as_ref().map(TargetAssignmentValue::to_bytes),
            ),
            Self::TargetMember { member_id, value } => (
                member_key(key_type::CONSUMER_GROUP_TARGET_MEMBER, group_id, member_id),
                value.as_ref().map(TargetMemberValue::to_bytes),
            ),
            Self::CurrentAssignment { member_id, value } => (
                member_key(key_type::CONSUMER_GROUP_CURRENT_ASSIGNMENT, group_id, member_id),
                value.as_ref().map(CurrentAssignmentValue::to_bytes),
            ),
            Self::Regex { pattern, value } => (
                member_key(key_type::CONSUMER_GROUP_REGEX, group_id, pattern),
                value.as_ref().map(ResolvedRegexValue::to_bytes),
            ),
        };
        RawRecord { key, value }
    }

    /// Reads what comes behind the type and the group of a key, and the value. `None` for a type that is none of these.
    pub(super) fn read(key_type: i16, key: &mut Reader<'_>, value: Option<&[u8]>) -> Result<Option<Self>, RecordError> {
        let record = match key_type {
            key_type::CONSUMER_GROUP_METADATA => {
                Self::Metadata(value.map(ConsumerGroupMetadataValue::from_bytes).transpose()?)
            }
            key_type::CONSUMER_GROUP_PARTITION_METADATA => Self::PartitionMetadata(value.map(Bytes::copy_from_slice)),
            key_type::CONSUMER_GROUP_MEMBER => Self::Member {
                member_id: key.text("memberId", Form::Classic)?,
                value: value.map(ConsumerMemberValue::from_bytes).transpose()?.map(Arc::new),
            },
            key_type::CONSUMER_GROUP_TARGET => Self::Target(value.map(TargetAssignmentValue::from_bytes).transpose()?),
            key_type::CONSUMER_GROUP_TARGET_MEMBER => Self::TargetMember {
                member_id: key.text("memberId", Form::Classic)?,
                value: value.map(TargetMemberValue::from_bytes).transpose()?,
            },
            key_type::CONSUMER_GROUP_CURRENT_ASSIGNMENT => Self::CurrentAssignment {
                member_id: key.text("memberId", Form::Classic)?,
                value: value.map(CurrentAssignmentValue::from_bytes).transpose()?,
            },
            key_type::CONSUMER_GROUP_REGEX => Self::Regex {
                pattern: key.text("regularExpression", Form::Classic)?,
                value: value.map(ResolvedRegexValue::from_bytes).transpose()?,
            },
            _ => return Ok(None),
        };
        Ok(Some(record))
    }
}

impl ConsumerGroupMetadataValue {
    const METADATA_HASH_TAG: u32 = 0;

    fn to_bytes(&self) -> Bytes {
        let mut out = Writer::new(0, 20);
        out.int32(self.epoch);
        tagged_int64_or_default(&mut out, Self::METADATA_HASH_TAG, self.metadata_hash);
        out.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut value = version_0("ConsumerGroupMetadataValue", bytes)?;
        let epoch = value.int32("epoch")?;
        let metadata_hash = last_tagged_int64(&mut value, Self::METADATA_HASH_TAG, "metadataHash")?;
        Ok(Self { epoch, metadata_hash })
    }
}

impl TargetAssignmentValue {
    const TIMESTAMP_TAG: u32 = 0;

    /// Of a target that a server assignor computed.
    #[must_use]
    pub const fn of_server(epoch: i32, timestamp_ms: i64) -> Self {
        Self {
            epoch,
            timestamp_ms,
            assignor: None,
            assignor_error: 0,
        }
    }

    fn to_bytes(&self) -> Bytes {
        let timestamp = self.timestamp_ms.to_be_bytes();
        let assignor = self.assignor.as_deref().map(text_to_bytes);
        let error = self.assignor_error.to_be_bytes();
        // Kafka leaves a tagged field out that has its default, and so do ours.
        let mut fields: Vec<(u32, &[u8])> = Vec::new();
        if self.timestamp_ms != 0 {
            fields.push((Self::TIMESTAMP_TAG, &timestamp));
        }
        if let Some(assignor) = &assignor {
            fields.push((ASSIGNOR_NAME_TAG, assignor));
        }
        if self.assignor_error != 0 {
            fields.push((ASSIGNOR_ERROR_TAG, &error));
        }
        let mut out = Writer::new(0, 20);
        out.int32(self.epoch);
        out.tagged_fields(&fields);
        out.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut value = version_0("ConsumerGroupTargetAssignmentMetadataValue", bytes)?;
        let message = value.message();
        let mut target = Self {
            epoch: value.int32("assignmentEpoch")?,
            timestamp_ms: 0,
            assignor: None,
            assignor_error: 0,
        };
        value.tagged_fields(|tag, bytes| {
            match tag {
                Self::TIMESTAMP_TAG => {
                    target.timestamp_ms = whole(message, bytes, |content| content.int64("assignmentTimestamp"))?;
                }
                ASSIGNOR_NAME_TAG => target.assignor = Some(name_from_bytes(message, bytes)?),
                ASSIGNOR_ERROR_TAG => {
                    target.assignor_error = whole(message, bytes, |content| content.int8("assignorError"))?;
                }
                _ => {}
            }
            Ok(())
        })?;
        value.end()?;
        Ok(target)
    }
}

impl ConsumerMemberValue {
    const CLASSIC_TAG: u32 = 0;

    fn to_bytes(&self) -> Bytes {
        let names: usize = self.subscribed_topic_names.iter().map(|name| name.len() + 3).sum();
        let mut out = Writer::new(0, names + self.client_id.len() + self.client_host.len() + 128);
        out.flexible_nullable_text(self.instance_id.as_deref());
        out.flexible_nullable_text(self.rack_id.as_deref());
        out.flexible_text(&self.client_id);
        out.flexible_text(&self.client_host);
        out.flexible_texts(&self.subscribed_topic_names);
        out.flexible_text(&self.subscribed_topic_regex);
        out.int32(self.rebalance_timeout_ms);
        out.flexible_nullable_text(self.server_assignor.as_deref());
        let classic = self.classic.as_ref().map(ClassicMemberValue::to_bytes);
        let assignors = (!self.client_assignors.is_empty()).then(|| assignors_to_bytes(&self.client_assignors));
        let mut fields: Vec<(u32, &[u8])> = vec![(Self::CLASSIC_TAG, classic.as_deref().unwrap_or(&[NULL_STRUCT]))];
        if let Some(assignors) = &assignors {
            fields.push((CLIENT_ASSIGNORS_TAG, assignors));
        }
        out.tagged_fields(&fields);
        out.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut value = version_0("ConsumerGroupMemberMetadataValue", bytes)?;
        let mut member = Self {
            instance_id: value.nullable_text("instanceId", Form::Flexible)?,
            rack_id: value.nullable_text("rackId", Form::Flexible)?,
            client_id: value.text("clientId", Form::Flexible)?,
            client_host: value.text("clientHost", Form::Flexible)?,
            subscribed_topic_names: value.texts("subscribedTopicNames")?.into(),
            subscribed_topic_regex: value
                .nullable_text("subscribedTopicRegex", Form::Flexible)?
                .unwrap_or_else(|| "".into()),
            rebalance_timeout_ms: value.int32("rebalanceTimeoutMs")?,
            server_assignor: value.nullable_text("serverAssignor", Form::Flexible)?,
            client_assignors: Vec::new(),
            classic: None,
        };
        let message = value.message();
        value.tagged_fields(|tag, bytes| {
            match tag {
                Self::CLASSIC_TAG => member.classic = ClassicMemberValue::from_bytes(bytes)?,
                CLIENT_ASSIGNORS_TAG => member.client_assignors = assignors_from_bytes(message, bytes)?,
                _ => {}
            }
            Ok(())
        })?;
        value.end()?;
        Ok(member)
    }
}

impl ClassicMemberValue {
    /// The content of the tagged field: a nullable struct, which begins with whether it is there.
    fn to_bytes(&self) -> Bytes {
        let mut out = Writer::headless();
        out.int8(PRESENT_STRUCT);
        out.int32(self.session_timeout_ms);
        out.flexible_length(self.protocols.len());
        for protocol in &self.protocols {
            out.flexible_text(&protocol.name);
            out.flexible_bytes(&protocol.metadata);
            out.no_tagged_fields();
        }
        out.no_tagged_fields();
        out.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Option<Self>, RecordError> {
        let mut value = Reader::new("ConsumerGroupMemberMetadataValue", bytes);
        if value.int8("classicMemberMetadata")? != PRESENT_STRUCT {
            return Ok(None);
        }
        let session_timeout_ms = value.int32("sessionTimeoutMs")?;
        let mut protocols = Vec::new();
        for _ in 0..value.array_length("supportedProtocols", Form::Flexible)? {
            protocols.push(Protocol {
                name: value.text("supportedProtocols.name", Form::Flexible)?,
                metadata: value.bytes("supportedProtocols.metadata", Form::Flexible)?,
            });
            value.tagged_fields(|_, _| Ok(()))?;
        }
        value.tagged_fields(|_, _| Ok(()))?;
        value.end()?;
        Ok(Some(Self {
            session_timeout_ms,
            protocols,
        }))
    }
}

impl ResolvedRegexValue {
    fn to_bytes(&self) -> Bytes {
        let names: usize = self.topics.iter().map(|name| name.len() + 3).sum();
        let mut out = Writer::new(0, names + 32);
        out.flexible_texts(&self.topics);
        out.int64(self.version);
        out.int64(self.timestamp_ms);
        out.no_tagged_fields();
        out.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut value = version_0("ConsumerGroupRegularExpressionValue", bytes)?;
        let mut regex = Self {
            topics: value.texts("topics")?,
            version: value.int64("version")?,
            timestamp_ms: value.int64("timestamp")?,
        };
        regex.topics.sort_unstable();
        regex.topics.dedup();
        end_flexible(&mut value)?;
        Ok(regex)
    }
}

/// How a nullable struct in a tagged field begins.
const NULL_STRUCT: u8 = 0;
const PRESENT_STRUCT: i8 = 1;

fn member_key(key_type: i16, group_id: &str, second: &str) -> Bytes {
    let mut out = Writer::new(key_type, group_id.len() + second.len() + 4);
    out.text(group_id);
    out.text(second);
    out.finish()
}

pub(super) fn version_0<'a>(message: &'static str, bytes: &'a [u8]) -> Result<Reader<'a>, RecordError> {
    let mut value = Reader::new(message, bytes);
    match value.int16("version")? {
        0 => Ok(value),
        version => Err(value.error("value", Problem::Version(version))),
    }
}

pub(super) fn end_flexible(value: &mut Reader<'_>) -> Result<(), RecordError> {
    value.tagged_fields(|_, _| Ok(()))?;
    value.end()
}

/// Kafka leaves a tagged field out that has its default.
fn tagged_int64_or_default(out: &mut Writer, tag: u32, number: i64) {
    match number {
        0 => out.no_tagged_fields(),
        number => out.tagged_int64(tag, number),
    }
}

/// The tagged fields at the end of a value, of which one is a number that is 0 when left out.
fn last_tagged_int64(value: &mut Reader<'_>, known: u32, field: &'static str) -> Result<i64, RecordError> {
    let message = value.message();
    let mut number = 0;
    value.tagged_fields(|tag, bytes| {
        if tag == known {
            let mut content = Reader::new(message, bytes);
            number = content.int64(field)?;
            content.end()?;
        }
        Ok(())
    })?;
    value.end()?;
    Ok(number)
}
