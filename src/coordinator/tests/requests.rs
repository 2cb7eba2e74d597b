//! Requests and records as the tests mean them: a consumer "client" of today in the group "g", topic "t", partition 0.

use bytes::Bytes;

use crate::coordinator::input::{Presence, UpstreamGroup};
use crate::coordinator::record::{OffsetKey, OffsetValue, Record};
use crate::coordinator::request::{
    JoinGroupRequest, OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic, OffsetFetchRequest, OffsetTopic,
    Protocol, SyncGroupRequest, Text,
};

pub(super) const SESSION_MS: i32 = 10_000;
pub(super) const REBALANCE_MS: i32 = 30_000;

pub(super) fn vacant() -> UpstreamGroup {
    UpstreamGroup {
        presence: Presence::Vacant,
        offsets: Vec::new(),
    }
}

/// Metadata of a consumer that is subscribed to these topics.
pub(super) fn subscription(topics: &[&str]) -> Bytes {
    let mut bytes = vec![0, 0];
    bytes.extend(i32::try_from(topics.len()).expect("few topics").to_be_bytes());
    for topic in topics {
        bytes.extend(i16::try_from(topic.len()).expect("short names").to_be_bytes());
        bytes.extend(topic.as_bytes());
    }
    bytes.extend([0xff; 4]);
    bytes.into()
}

pub(super) fn protocols(names: &[&str]) -> Vec<Protocol> {
    let protocol = |name: &&str| Protocol {
        name: (*name).into(),
        metadata: subscription(&["t"]),
    };
    names.iter().map(protocol).collect()
}

/// The first join of a dynamic member by a client of today (v9).
pub(super) fn first_join() -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: "g".into(),
        member_id: "".into(),
        group_instance_id: None,
        client_id: "client".into(),
        client_host: "/10.0.0.1".into(),
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        protocol_type: "consumer".into(),
        protocols: protocols(&["range"]),
        require_known_member_id: true,
        supports_skipping_assignment: true,
        reason: None,
    }
}

/// The first join of a client below v4, which gets no id in advance.
pub(super) fn old_join() -> JoinGroupRequest {
    JoinGroupRequest {
        require_known_member_id: false,
        supports_skipping_assignment: false,
        ..first_join()
    }
}

/// A join with a known id.
pub(super) fn join_as(member_id: &Text) -> JoinGroupRequest {
    JoinGroupRequest {
        member_id: member_id.clone(),
        ..first_join()
    }
}

/// The join of a static member that comes (back) without its id.
pub(super) fn static_join(instance_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_instance_id: Some(instance_id.into()),
        ..first_join()
    }
}

/// The sync of a follower.
pub(super) fn sync_as(member_id: &Text, generation_id: i32) -> SyncGroupRequest {
    SyncGroupRequest {
        group_id: "g".into(),
        generation_id,
        member_id: member_id.clone(),
        group_instance_id: None,
        protocol_type: None,
        protocol_name: None,
        assignments: Vec::new(),
    }
}

/// The commit of an offset for partition 0 of topic "t", outside a generation.
pub(super) fn commit_of(offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: "g".into(),
        generation_id_or_member_epoch: -1,
        member_id: "".into(),
        group_instance_id: None,
        retention_time_ms: None,
        knows_member_epochs: true,
        topics: vec![commit_topic("t", offset)],
    }
}

pub(super) fn commit_as(member_id: &Text, generation_id: i32, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        generation_id_or_member_epoch: generation_id,
        member_id: member_id.clone(),
        ..commit_of(offset)
    }
}

pub(super) fn commit_topic(name: &str, offset: i64) -> OffsetCommitTopic {
    OffsetCommitTopic {
        name: name.into(),
        topic_id: uuid::Uuid::nil(),
        partitions: vec![OffsetCommitPartition {
            partition: 0,
            offset,
            leader_epoch: -1,
            metadata: "".into(),
        }],
    }
}

pub(super) fn fetch_of(topic: &str) -> OffsetFetchRequest {
    let topic = OffsetTopic {
        name: topic.into(),
        topic_id: uuid::Uuid::nil(),
    };
    OffsetFetchRequest {
        group_id: "g".into(),
        member_id: None,
        member_epoch: -1,
        topics: Some(vec![(topic, vec![0])]),
        require_stable: false,
    }
}

/// A durable offset of partition 0 of a topic, committed at this moment (wall clock).
pub(super) fn offset_record(topic: &str, offset: i64, commit_timestamp_ms: i64) -> Record {
    Record::OffsetCommit {
        key: OffsetKey {
            group_id: "g".into(),
            topic: topic.into(),
            partition: 0,
        },
        value: Some(OffsetValue {
            offset,
            leader_epoch: -1,
            metadata: "".into(),
            commit_timestamp_ms,
            expire_timestamp_ms: None,
            topic_id: uuid::Uuid::nil(),
        }),
    }
}
