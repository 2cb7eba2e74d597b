//! What remains of a conversation is taken away, on either side.

use convoke::wire::{api, codec};
use convoke_support::Result;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, DeleteGroupsRequest, DescribeGroupsRequest,
    DescribeGroupsResponse, GroupId, LeaveGroupRequest,
};
use kafka_protocol::protocol::StrBytes;

use crate::conversation::Talker;
use crate::requests::{encode, text};

/// Takes a group's members out, then the group away.
pub async fn group(side: &mut Talker<'_>, number: usize) -> Result<()> {
    let group: GroupId = text(&side.names.group(number)).into();
    let members = members(side, &group).await?;
    if !members.is_empty() {
        let members = members
            .into_iter()
            .map(|id| MemberIdentity::default().with_member_id(id));
        let leave = LeaveGroupRequest::default()
            .with_group_id(group.clone())
            .with_members(members.collect());
        side.control(api::LEAVE_GROUP, 3, &encode(&leave, 3)?).await?;
    }
    delete(side, group).await
}

/// Takes the group of the empty id away, which has no members.
pub async fn nameless(side: &mut Talker<'_>) -> Result<()> {
    delete(side, GroupId::default()).await
}

async fn delete(side: &mut Talker<'_>, group: GroupId) -> Result<()> {
    let delete = DeleteGroupsRequest::default().with_groups_names(vec![group]);
    side.control(api::DELETE_GROUPS, 1, &encode(&delete, 1)?).await?;
    Ok(())
}

async fn members(side: &mut Talker<'_>, group: &GroupId) -> Result<Vec<StrBytes>> {
    let describe = DescribeGroupsRequest::default().with_groups(vec![group.clone()]);
    let described = side.control(api::DESCRIBE_GROUPS, 4, &encode(&describe, 4)?).await?;
    let described: DescribeGroupsResponse = codec::decode_response(4, described)?;
    let classic = described.groups.into_iter().flat_map(|group| group.members);
    let mut ids: Vec<StrBytes> = classic.map(|member| member.member_id).collect();
    if ids.is_empty() && side.has_consumer_groups() {
        let describe = ConsumerGroupDescribeRequest::default().with_group_ids(vec![group.clone()]);
        let described = side
            .control(api::CONSUMER_GROUP_DESCRIBE, 0, &encode(&describe, 0)?)
            .await?;
        let described: ConsumerGroupDescribeResponse = codec::decode_response(0, described)?;
        let consumers = described.groups.into_iter().flat_map(|group| group.members);
        ids.extend(consumers.map(|member| member.member_id));
    }
    Ok(ids)
}
