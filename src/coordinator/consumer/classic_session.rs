//! Members of a consumer group that speak the classic protocol: SyncGroup and Heartbeat. By the answer
//! REBALANCE_IN_PROGRESS they learn that there is something to give up or to take, and join again.

use bytes::Bytes;

use super::ConsumerGroup;
use super::members::Member;
use crate::coordinator::classic::sync_refusal;
use crate::coordinator::consumer_protocol::{self, CONSUMER, NamedPartitions};
use crate::coordinator::context::Context;
use crate::coordinator::partitions::Partitions;
use crate::coordinator::record::{ClassicMemberValue, MemberState};
use crate::coordinator::request::{HeartbeatRequest, Response, SyncGroupRequest, SyncGroupResponse, Text};
use crate::coordinator::timer::GroupTimer;
use crate::coordinator::topics::Topics;
use crate::wire::error_code::ErrorCode;

impl ConsumerGroup {
    /// SyncGroup: the member is told what it has. What it says of others' assignments is not heard.
    pub(in crate::coordinator) fn on_classic_sync(
        &mut self,
        request: &SyncGroupRequest,
        cx: &mut Context<'_>,
    ) -> Response {
        match self.sync_assignment(request, cx) {
            Ok((protocol_name, assignment)) => Response::SyncGroup(SyncGroupResponse {
                error: ErrorCode::NONE,
                protocol_type: Some(CONSUMER.into()),
                protocol_name,
                assignment,
            }),
            Err(error) => sync_refusal(error),
        }
    }

    fn sync_assignment(
        &self,
        request: &SyncGroupRequest,
        cx: &mut Context<'_>,
    ) -> Result<(Option<Text>, Bytes), ErrorCode> {
        let instance_id = request.group_instance_id.as_ref();
        let (member, classic) = self.classic_member(&request.member_id, instance_id, request.generation_id)?;
        let protocol = classic.protocols.first().map(|protocol| protocol.name.clone());
        let is_other = |given: &Option<Text>, ours: Option<&str>| given.is_some() && given.as_deref() != ours;
        if is_other(&request.protocol_type, Some(CONSUMER)) || is_other(&request.protocol_name, protocol.as_deref()) {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        let is_behind = self.target_epoch > member.current.member_epoch;
        if is_behind && member.current.state != MemberState::UnrevokedPartitions {
            self.await_rejoin(member, cx);
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        cx.cancel(&self.id, GroupTimer::ClassicSync(member.id.clone()));
        self.arm_classic_session(member, classic, cx);
        let assignment = encode(member.current.assigned.partitions(), classic, cx.topics);
        Ok((protocol, assignment))
    }

    pub(in crate::coordinator) fn on_classic_heartbeat(
        &mut self,
        request: &HeartbeatRequest,
        cx: &mut Context<'_>,
    ) -> ErrorCode {
        let instance_id = request.group_instance_id.as_ref();
        let found = self.classic_member(&request.member_id, instance_id, request.generation_id);
        let (member, classic) = match found {
            Ok(found) => found,
            Err(error) => return error,
        };
        self.arm_classic_session(member, classic, cx);
        let is_to_rejoin = match member.current.state {
            _ if member.current.member_epoch < self.target_epoch => true,
            MemberState::UnrevokedPartitions => true,
            MemberState::UnreleasedPartitions => self.is_all_released(member),
            MemberState::Stable | MemberState::Unknown => false,
        };
        match is_to_rejoin {
            true => {
                self.await_rejoin(member, cx);
                ErrorCode::REBALANCE_IN_PROGRESS
            }
            false => ErrorCode::NONE,
        }
    }

    fn classic_member(
        &self,
        member_id: &Text,
        instance_id: Option<&Text>,
        generation_id: i32,
    ) -> Result<(&Member, &ClassicMemberValue), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.members.static_member(instance_id) {
                None => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
                Some(holder) if holder != member_id => return Err(ErrorCode::FENCED_INSTANCE_ID),
                Some(_) => {}
            }
        }
        let member = self.members.get(member_id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        let classic = member.said.classic.as_ref().ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        match member.current.member_epoch == generation_id {
            true => Ok((member, classic)),
            false => Err(ErrorCode::ILLEGAL_GENERATION),
        }
    }

    pub(super) fn arm_classic_session(&self, member: &Member, classic: &ClassicMemberValue, cx: &mut Context<'_>) {
        cx.arm(
            &self.id,
            GroupTimer::Session(member.id.clone()),
            classic.session_timeout_ms,
        );
    }

    /// The member was told to join again: it has its rebalance timeout to do so.
    fn await_rejoin(&self, member: &Member, cx: &mut Context<'_>) {
        let timer = GroupTimer::ClassicJoin(member.id.clone());
        cx.arm_if_absent(&self.id, timer, member.said.rebalance_timeout_ms);
    }

    /// Whether nobody holds any more what the member waits for.
    fn is_all_released(&self, member: &Member) -> bool {
        let held = member.current.assigned.partitions();
        let target = self.target(&member.id).map(|target| target.iter());
        let mut missing = target
            .into_iter()
            .flatten()
            .filter(|partition| !held.contains(partition));
        missing.all(|partition| self.owners.is_free_for(&member.id, partition))
    }
}

/// An assignment in the version of the member's own subscription.
pub(in crate::coordinator) fn encode(partitions: &Partitions, classic: &ClassicMemberValue, topics: &Topics) -> Bytes {
    let subscription = classic.protocols.first();
    let subscription = subscription.and_then(|protocol| consumer_protocol::read_subscription(&protocol.metadata));
    let named: NamedPartitions = partitions
        .by_topic()
        .filter_map(|(topic_id, numbers)| Some((topics.name_by_id.get(&topic_id)?.clone(), numbers.collect())))
        .collect();
    consumer_protocol::write_assignment(subscription.map_or(0, |subscription| subscription.version), &named)
}
