//! The coordinator's records, in Kafka's own key and value formats (`__consumer_offsets`).

use bytes::Bytes;
use uuid::Uuid;

use super::request::Text;

/// One change of durable state. Keys are Kafka's coordinator record keys (types 0/1 and 2), plus one of our own
/// (`GroupOwned`) that Kafka's loaders skip as an unknown type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Key type 1. `None` is the tombstone.
    OffsetCommit { key: OffsetKey, value: Option<OffsetValue> },
    /// Key type 2. `None` is the tombstone.
    GroupMetadata {
        group_id: Text,
        value: Option<GroupMetadataValue>,
    },
    /// Key type 10001, ours: the group was taken over from the upstream, whose offsets for it no longer count.
    GroupOwned {
        group_id: Text,
        value: Option<GroupOwnedValue>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffsetKey {
    pub group_id: Text,
    pub topic: Text,
    pub partition: i32,
}

/// Value v4 (v1 when it carries an expiry).
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
