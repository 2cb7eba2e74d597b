//! One request of each kind and version, that whoever may make it is not refused for any reason that the two sides could
//! differ in.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use convoke::wire::api;
use convoke_support::Result;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, DeleteGroupsRequest, DescribeGroupsRequest, GroupId,
    HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest, OffsetDeleteRequest,
    OffsetFetchRequest, SyncGroupRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::client::encode;
use crate::rules::ASKED_TOPICS;

/// Ids of topics by name. Topics that do not exist have one that nobody has.
pub type TopicIds = BTreeMap<String, Uuid>;

/// Those of the consumer protocol, which brokers of 3.8 refuse whoever asks.
pub const CONSUMER_GROUP_APIS: [i16; 2] = [api::CONSUMER_GROUP_HEARTBEAT, api::CONSUMER_GROUP_DESCRIBE];

/// Every other API that ends in Convoke.
pub const APIS: [i16; 10] = [
    api::OFFSET_COMMIT,
    api::OFFSET_FETCH,
    api::JOIN_GROUP,
    api::HEARTBEAT,
    api::LEAVE_GROUP,
    api::SYNC_GROUP,
    api::DESCRIBE_GROUPS,
    api::LIST_GROUPS,
    api::DELETE_GROUPS,
    api::OFFSET_DELETE,
];

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn group(group_id: &str) -> GroupId {
    text(group_id).into()
}

fn topics() -> impl Iterator<Item = TopicName> {
    ASKED_TOPICS.into_iter().map(|name| text(name).into())
}

/// The bodies to send about one group. OffsetFetch has two: some topics, and all.
pub fn about(api_key: i16, version: i16, group_id: &str, ids: &TopicIds) -> Result<Vec<Bytes>> {
    let body = match api_key {
        api::OFFSET_COMMIT if version >= 10 => commit_by_id(group_id, ids),
        api::OFFSET_COMMIT => encode(&commit(group_id), version)?,
        api::OFFSET_FETCH if version >= 10 => {
            return Ok(vec![fetch_by_id(group_id, Some(ids)), fetch_by_id(group_id, None)]);
        }
        api::OFFSET_FETCH => return fetches(version, group_id),
        api::JOIN_GROUP => encode(&join(group_id), version)?,
        api::HEARTBEAT => encode(
            &HeartbeatRequest::default()
                .with_group_id(group(group_id))
                .with_generation_id(1)
                .with_member_id(text("ghost")),
            version,
        )?,
        api::LEAVE_GROUP => encode(&leave(group_id, version), version)?,
        api::SYNC_GROUP => encode(&sync(group_id, version), version)?,
        api::OFFSET_DELETE => encode(&offset_delete(group_id), version)?,
        api::CONSUMER_GROUP_HEARTBEAT => return consumer_heartbeats(version, group_id),
        _ => return Err(format!("{api_key} is not about one group").into()),
    };
    Ok(vec![body])
}

/// The body to send about several groups at once.
pub fn about_all(api_key: i16, version: i16, group_ids: &[String]) -> Result<Bytes> {
    let groups = group_ids.iter().map(|group_id| group(group_id)).collect();
    match api_key {
        api::DESCRIBE_GROUPS => {
            let request = DescribeGroupsRequest::default().with_groups(groups);
            encode(&request.with_include_authorized_operations(version >= 3), version)
        }
        api::LIST_GROUPS => encode(&ListGroupsRequest::default(), version),
        api::CONSUMER_GROUP_DESCRIBE => {
            let request = ConsumerGroupDescribeRequest::default().with_group_ids(groups);
            encode(&request.with_include_authorized_operations(true), version)
        }
        // The request of v3 is that of v2.
        api::DELETE_GROUPS => encode(
            &DeleteGroupsRequest::default().with_groups_names(groups),
            version.min(2),
        ),
        _ => Err(format!("{api_key} is about one group").into()),
    }
}

/// Refused for its session timeout by whoever looks at it, so that nobody waits for a rebalance.
fn join(group_id: &str) -> JoinGroupRequest {
    JoinGroupRequest::default()
        .with_group_id(group(group_id))
        .with_session_timeout_ms(1)
        .with_member_id(text(""))
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![
            JoinGroupRequestProtocol::default()
                .with_name(text("range"))
                .with_metadata(Bytes::from_static(b"subscription")),
        ])
}

/// Of nobody who is a member: one that names no topics, one that names some, and a join that lacks what a join needs.
fn consumer_heartbeats(version: i16, group_id: &str) -> Result<Vec<Bytes>> {
    let request = ConsumerGroupHeartbeatRequest::default()
        .with_group_id(group(group_id))
        .with_member_id(text("ghost"))
        .with_member_epoch(3);
    let naming = request.clone().with_subscribed_topic_names(Some(topics().collect()));
    let lacking = request.clone().with_member_epoch(0);
    [request, naming, lacking]
        .iter()
        .map(|request| encode(request, version))
        .collect()
}

fn sync(group_id: &str, version: i16) -> SyncGroupRequest {
    let request = SyncGroupRequest::default()
        .with_group_id(group(group_id))
        .with_generation_id(1)
        .with_member_id(text("ghost"));
    if version < 5 {
        return request;
    }
    request
        .with_protocol_type(Some(text("consumer")))
        .with_protocol_name(Some(text("range")))
}

fn leave(group_id: &str, version: i16) -> LeaveGroupRequest {
    let request = LeaveGroupRequest::default().with_group_id(group(group_id));
    if version < 3 {
        request.with_member_id(text("ghost"))
    } else {
        request.with_members(vec![MemberIdentity::default().with_member_id(text("ghost"))])
    }
}

/// By nobody in particular, as tools commit.
pub fn commit(group_id: &str) -> OffsetCommitRequest {
    let topics = topics().map(|name| {
        let partitions = [0, 7].map(|index| {
            OffsetCommitRequestPartition::default()
                .with_partition_index(index)
                .with_committed_offset(42)
                .with_committed_metadata(Some(text("note")))
        });
        OffsetCommitRequestTopic::default()
            .with_name(name)
            .with_partitions(partitions.to_vec())
    });
    OffsetCommitRequest::default()
        .with_group_id(group(group_id))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(topics.collect())
}

fn fetches(version: i16, group_id: &str) -> Result<Vec<Bytes>> {
    let mut bodies = Vec::new();
    for all in [false, true] {
        if all && version < 2 {
            continue;
        }
        let request = if version >= 8 {
            let topics = topics().map(|name| {
                OffsetFetchRequestTopics::default()
                    .with_name(name)
                    .with_partition_indexes(vec![0, 7])
            });
            let group = OffsetFetchRequestGroup::default()
                .with_group_id(group(group_id))
                .with_topics((!all).then(|| topics.collect()));
            OffsetFetchRequest::default().with_groups(vec![group])
        } else {
            let topics = topics().map(|name| {
                OffsetFetchRequestTopic::default()
                    .with_name(name)
                    .with_partition_indexes(vec![0, 7])
            });
            OffsetFetchRequest::default()
                .with_group_id(group(group_id))
                .with_topics((!all).then(|| topics.collect()))
        };
        bodies.push(encode(&request, version)?);
    }
    Ok(bodies)
}

fn offset_delete(group_id: &str) -> OffsetDeleteRequest {
    let topics = topics().map(|name| {
        let partitions = [0, 7].map(|index| OffsetDeleteRequestPartition::default().with_partition_index(index));
        OffsetDeleteRequestTopic::default()
            .with_name(name)
            .with_partitions(partitions.to_vec())
    });
    OffsetDeleteRequest::default()
        .with_group_id(group(group_id))
        .with_topics(topics.collect())
}

/// Compact forms of one byte, for what kafka-protocol does not write.
fn compact(out: &mut BytesMut, text: &str) {
    out.put_u8(u8::try_from(text.len() + 1).unwrap_or(u8::MAX));
    out.put_slice(text.as_bytes());
}

/// OffsetCommit v10.
fn commit_by_id(group_id: &str, ids: &TopicIds) -> Bytes {
    let mut out = BytesMut::new();
    compact(&mut out, group_id);
    out.put_i32(-1);
    compact(&mut out, "");
    out.put_u8(0);
    out.put_u8(u8::try_from(ids.len() + 1).unwrap_or(u8::MAX));
    for id in ids.values() {
        out.put_slice(id.as_bytes());
        out.put_u8(3);
        for index in [0, 7] {
            out.put_i32(index);
            out.put_i64(42);
            out.put_i32(-1);
            compact(&mut out, "note");
            out.put_u8(0);
        }
        out.put_u8(0);
    }
    out.put_u8(0);
    out.freeze()
}

/// OffsetFetch v10; `None` asks for all topics.
fn fetch_by_id(group_id: &str, ids: Option<&TopicIds>) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(2);
    compact(&mut out, group_id);
    out.put_u8(0);
    out.put_i32(-1);
    match ids {
        None => out.put_u8(0),
        Some(ids) => {
            out.put_u8(u8::try_from(ids.len() + 1).unwrap_or(u8::MAX));
            for id in ids.values() {
                out.put_slice(id.as_bytes());
                out.put_u8(3);
                out.put_i32(0);
                out.put_i32(7);
                out.put_u8(0);
            }
        }
    }
    out.put_u8(0);
    out.put_u8(0);
    out.put_u8(0);
    out.freeze()
}
