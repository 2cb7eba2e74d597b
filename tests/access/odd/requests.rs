//! What odd requests are made of.

use bytes::Bytes;
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
    OffsetFetchRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::{Encodable, StrBytes};

use super::asker::Asker;
use crate::client::encode;

type Body = Box<dyn Fn(&Asker<'_>) -> Result<Bytes>>;

/// A request: its API and version, and its body on one side.
pub struct Odd {
    pub what: String,
    pub api_key: i16,
    pub version: i16,
    pub body: Body,
}

pub fn odd<M: Encodable>(what: &str, api_key: i16, version: i16, request: impl Fn(&Asker<'_>) -> M + 'static) -> Odd {
    Odd {
        what: what.to_owned(),
        api_key,
        version,
        body: Box::new(move |asker| {
            // The requests of these versions are those of the one before, but for topic ids.
            let version = if api_key == api::DELETE_GROUPS {
                version.min(2)
            } else {
                version
            };
            encode(&request(asker), version)
        }),
    }
}

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub fn commit(group: GroupId, topics: &[(&str, &[i32])], metadata: &str) -> OffsetCommitRequest {
    let topics = topics.iter().map(|(name, partitions)| {
        let partitions = partitions.iter().enumerate().map(|(place, index)| {
            OffsetCommitRequestPartition::default()
                .with_partition_index(*index)
                .with_committed_offset(i64::try_from(place).unwrap_or_default() + 40)
                .with_committed_metadata(Some(text(metadata)))
        });
        OffsetCommitRequestTopic::default()
            .with_name(text(name).into())
            .with_partitions(partitions.collect())
    });
    OffsetCommitRequest::default()
        .with_group_id(group)
        .with_generation_id_or_member_epoch(-1)
        .with_topics(topics.collect())
}

pub fn fetch(version: i16, groups: &[GroupId], topics: Option<&[(&str, &[i32])]>) -> OffsetFetchRequest {
    if version < 8 {
        let topics = topics.map(|topics| {
            let topics = topics.iter().map(|(name, partitions)| {
                OffsetFetchRequestTopic::default()
                    .with_name(text(name).into())
                    .with_partition_indexes(partitions.to_vec())
            });
            topics.collect()
        });
        let group = groups.first().cloned().unwrap_or_default();
        return OffsetFetchRequest::default().with_group_id(group).with_topics(topics);
    }
    let groups = groups.iter().map(|group| {
        let topics = topics.map(|topics| {
            let topics = topics.iter().map(|(name, partitions)| {
                OffsetFetchRequestTopics::default()
                    .with_name(text(name).into())
                    .with_partition_indexes(partitions.to_vec())
            });
            topics.collect()
        });
        OffsetFetchRequestGroup::default()
            .with_group_id(group.clone())
            .with_topics(topics)
    });
    OffsetFetchRequest::default().with_groups(groups.collect())
}

pub fn delete(group: GroupId, topics: &[(&str, &[i32])]) -> OffsetDeleteRequest {
    let topics = topics.iter().map(|(name, partitions)| {
        let partitions = partitions
            .iter()
            .map(|index| OffsetDeleteRequestPartition::default().with_partition_index(*index));
        OffsetDeleteRequestTopic::default()
            .with_name(text(name).into())
            .with_partitions(partitions.collect())
    });
    OffsetDeleteRequest::default()
        .with_group_id(group)
        .with_topics(topics.collect())
}

/// Refused for its session timeout by whoever looks at it.
pub fn join(group: GroupId) -> JoinGroupRequest {
    JoinGroupRequest::default()
        .with_group_id(group)
        .with_session_timeout_ms(1)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![JoinGroupRequestProtocol::default().with_name(text("range"))])
}

fn sync(group: GroupId, version: i16) -> SyncGroupRequest {
    let named = (version >= 5).then(|| text("consumer"));
    SyncGroupRequest::default()
        .with_group_id(group)
        .with_generation_id(1)
        .with_member_id(text("ghost"))
        .with_protocol_type(named.clone())
        .with_protocol_name(named)
}

pub fn leave(group: GroupId, version: i16, member_ids: &[&str]) -> LeaveGroupRequest {
    let request = LeaveGroupRequest::default().with_group_id(group);
    if version < 3 {
        return request.with_member_id(text(member_ids.first().unwrap_or(&"")));
    }
    let members = member_ids
        .iter()
        .map(|id| MemberIdentity::default().with_member_id(text(id)));
    request.with_members(members.collect())
}

/// A plain request of each API that is about one group, of this version.
pub fn about(api_key: i16, version: i16, group: &'static str) -> Odd {
    let what = format!("{group:?}");
    let what = what.as_str();
    match api_key {
        api::OFFSET_COMMIT => odd(what, api_key, version, move |asker| {
            commit(asker.group(group), &[("open", &[0])], "")
        }),
        api::OFFSET_FETCH => odd(what, api_key, version, move |asker| {
            fetch(version, &[asker.group(group)], Some(&[("open", &[0])]))
        }),
        api::JOIN_GROUP => odd(what, api_key, version, move |asker| join(asker.group(group))),
        api::HEARTBEAT => odd(what, api_key, version, move |asker| {
            HeartbeatRequest::default()
                .with_group_id(asker.group(group))
                .with_member_id(text("ghost"))
        }),
        api::LEAVE_GROUP => odd(what, api_key, version, move |asker| {
            leave(asker.group(group), version, &["ghost"])
        }),
        api::SYNC_GROUP => odd(what, api_key, version, move |asker| sync(asker.group(group), version)),
        api::DESCRIBE_GROUPS => odd(what, api_key, version, move |asker| {
            DescribeGroupsRequest::default().with_groups(vec![asker.group(group)])
        }),
        api::DELETE_GROUPS => odd(what, api_key, version, move |asker| {
            DeleteGroupsRequest::default().with_groups_names(vec![asker.group(group)])
        }),
        api::OFFSET_DELETE => odd(what, api_key, version, move |asker| {
            delete(asker.group(group), &[("open", &[0])])
        }),
        api::CONSUMER_GROUP_HEARTBEAT => odd(what, api_key, version, move |asker| {
            ConsumerGroupHeartbeatRequest::default()
                .with_group_id(asker.group(group))
                .with_member_id(text("ghost"))
                .with_member_epoch(1)
        }),
        api::CONSUMER_GROUP_DESCRIBE => odd(what, api_key, version, move |asker| {
            ConsumerGroupDescribeRequest::default().with_group_ids(vec![asker.group(group)])
        }),
        _ => odd(what, api_key, version, move |_| {
            ListGroupsRequest::default().with_states_filter(if version >= 4 { vec![text(group)] } else { Vec::new() })
        }),
    }
}
