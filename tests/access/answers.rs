//! Answers in a form in which those of the two sides are the same: every field, in an order that does not depend on hash maps,
//! groups without the letter of their side.

use bytes::Bytes;
use convoke::upstream::connection::CLIENT_ID;
use convoke::wire::newest::delete_groups::DeleteGroupsResponse;
use convoke::wire::{api, codec};
use convoke_support::Result;
use kafka_protocol::messages::{
    ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatResponse, DescribeGroupsResponse, HeartbeatResponse,
    JoinGroupResponse, LeaveGroupResponse, ListGroupsResponse, OffsetCommitResponse, OffsetDeleteResponse,
    OffsetFetchResponse, SyncGroupResponse,
};
use kafka_protocol::protocol::Decodable;

use crate::rules::Side;

/// An answer as text.
pub fn normal(side: Side, api_key: i16, version: i16, body: Bytes) -> Result<String> {
    let text = match api_key {
        api::OFFSET_COMMIT => {
            let mut answer: OffsetCommitResponse = codec::decode_response(version, body)?;
            answer.topics.sort_by_key(|topic| (topic.name.clone(), topic.topic_id));
            for topic in &mut answer.topics {
                topic.partitions.sort_by_key(|partition| partition.partition_index);
            }
            format!("{answer:#?}")
        }
        api::OFFSET_FETCH => offset_fetch(codec::decode_response(version, body)?),
        api::JOIN_GROUP => format!("{:#?}", whole::<JoinGroupResponse>(version, body)?),
        api::HEARTBEAT => format!("{:#?}", whole::<HeartbeatResponse>(version, body)?),
        api::LEAVE_GROUP => format!("{:#?}", whole::<LeaveGroupResponse>(version, body)?),
        api::CONSUMER_GROUP_HEARTBEAT => format!("{:#?}", whole::<ConsumerGroupHeartbeatResponse>(version, body)?),
        api::CONSUMER_GROUP_DESCRIBE => {
            let mut answer: ConsumerGroupDescribeResponse = codec::decode_response(version, body)?;
            answer.groups.sort_by_key(|group| group.group_id.clone());
            format!("{answer:#?}")
        }
        api::SYNC_GROUP => format!("{:#?}", whole::<SyncGroupResponse>(version, body)?),
        api::DESCRIBE_GROUPS => {
            let mut answer: DescribeGroupsResponse = codec::decode_response(version, body)?;
            answer.groups.sort_by_key(|group| group.group_id.clone());
            format!("{answer:#?}")
        }
        api::LIST_GROUPS => {
            let mut answer: ListGroupsResponse = codec::decode_response(version, body)?;
            // Each side has groups of its own, and through Convoke the others are seen as well.
            let own = side.group("x").replace('x', "");
            answer.groups.retain(|group| group.group_id.starts_with(&own));
            answer.groups.sort_by_key(|group| group.group_id.clone());
            format!("{answer:#?}")
        }
        api::OFFSET_DELETE => {
            let mut answer: OffsetDeleteResponse = whole(version, body)?;
            answer.topics.sort_by_key(|topic| topic.name.clone());
            for topic in &mut answer.topics {
                topic.partitions.sort_by_key(|partition| partition.partition_index);
            }
            format!("{answer:#?}")
        }
        api::DELETE_GROUPS => {
            let mut answer: DeleteGroupsResponse = codec::decode_response(version, body)?;
            answer.results.sort_by_key(|result| result.group_id.clone());
            format!("{answer:#?}")
        }
        _ => return Err(format!("no answer of {api_key} is known").into()),
    };
    let lines = text.lines().map(|line| {
        let is_given = line.trim_start().starts_with("member_id: \"") && line.contains(CLIENT_ID);
        if is_given {
            "member_id: given by the coordinator"
        } else {
            line
        }
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = text.replace("\"b-", "\"").replace("\"c-", "\"");
    // Messages name groups too.
    Ok(text.replace("roup b-", "roup ").replace("roup c-", "roup "))
}

fn offset_fetch(mut answer: OffsetFetchResponse) -> String {
    answer.topics.sort_by_key(|topic| topic.name.clone());
    for group in &mut answer.groups {
        group.topics.sort_by_key(|topic| (topic.name.clone(), topic.topic_id));
        for topic in &mut group.topics {
            topic.partitions.sort_by_key(|partition| partition.partition_index);
        }
    }
    for topic in &mut answer.topics {
        topic.partitions.sort_by_key(|partition| partition.partition_index);
    }
    format!("{answer:#?}")
}

fn whole<T: Decodable>(version: i16, mut body: Bytes) -> Result<T> {
    let answer = T::decode(&mut body, version)?;
    if body.is_empty() {
        Ok(answer)
    } else {
        Err(format!("{} bytes are left over", body.len()).into())
    }
}
