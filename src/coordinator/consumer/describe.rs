//! ConsumerGroupDescribe, DescribeGroups, ListGroups and the admin view of a consumer group.

use bytes::Bytes;

use super::members::Member;
use super::{ConsumerGroup, State};
use crate::coordinator::consumer_protocol::CONSUMER;
use crate::coordinator::context::Context;
use crate::coordinator::partitions::Partitions;
use crate::coordinator::request::{
    AssignedTopic, ConsumerGroupDescribeResponse, ConsumerGroupMember, ConsumerGroupView, ConsumerMemberView,
    GroupView, ListedGroup, MemberView, Text,
};
use crate::coordinator::settings::Settings;
use crate::coordinator::topics::Topics;
use crate::wire::error_code::ErrorCode;

/// The group type as ListGroups v5 names it.
const GROUP_TYPE: &str = "consumer";

impl ConsumerGroup {
    pub(in crate::coordinator) fn describe_consumer(&self, cx: &Context<'_>) -> ConsumerGroupDescribeResponse {
        ConsumerGroupDescribeResponse {
            error: ErrorCode::NONE,
            error_message: None,
            group_id: self.id.clone(),
            state: self.state().label().into(),
            group_epoch: self.epoch,
            assignment_epoch: self.target_epoch,
            assignor_name: self.choice(cx.settings).name().clone(),
            members: self
                .members
                .iter()
                .map(|member| self.describe_member(member, cx.topics))
                .collect(),
        }
    }

    fn describe_member(&self, member: &Member, topics: &Topics) -> ConsumerGroupMember {
        let said = &member.said;
        let target = self.target(&member.id);
        ConsumerGroupMember {
            member_id: member.id.clone(),
            group_instance_id: said.instance_id.clone(),
            rack_id: said.rack_id.clone(),
            member_epoch: member.current.member_epoch,
            client_id: said.client_id.clone(),
            client_host: said.client_host.clone(),
            subscribed_topic_names: said.subscribed_topic_names.to_vec(),
            subscribed_topic_regex: Some(said.subscribed_topic_regex.clone()),
            assignment: named(&member.held(), topics),
            target_assignment: target.map(|target| named(target, topics)).unwrap_or_default(),
            is_classic: member.is_classic(),
        }
    }

    pub(in crate::coordinator) fn list(&self) -> ListedGroup {
        ListedGroup {
            group_id: self.id.clone(),
            protocol_type: CONSUMER.into(),
            state: self.state().label().into(),
            group_type: GROUP_TYPE.into(),
        }
    }

    /// Everything but the offsets, which the group does not have itself.
    pub(in crate::coordinator) fn view(&self, settings: &Settings) -> GroupView {
        let held = |member: &Member| member.current.pending_revocation.len();
        GroupView {
            group_id: self.id.clone(),
            group_type: GROUP_TYPE.into(),
            state: self.state().label().into(),
            protocol_type: Some(CONSUMER.into()),
            protocol_name: (self.state() != State::Empty).then(|| self.choice(settings).name().clone()),
            generation_id: self.epoch,
            leader: None,
            state_since_ms: self.epoch_since_ms,
            members: self
                .members
                .iter()
                .map(|member| self.view_member(member, settings))
                .collect(),
            pending_members: 0,
            offsets: 0,
            classic: None,
            consumer: Some(ConsumerGroupView {
                assignment_epoch: self.target_epoch,
                computed_by: self.computed_by.as_ref().or(self.computed_here_by.as_ref()).cloned(),
                assignor_error: self.assignor_error,
                computation: self.outside.view(),
                partitions_to_revoke: self.members.iter().map(held).sum(),
                partitions_to_assign: self.members.iter().map(|member| self.missing(member)).sum(),
            }),
        }
    }

    fn view_member(&self, member: &Member, settings: &Settings) -> MemberView {
        let said = &member.said;
        MemberView {
            member_id: member.id.clone(),
            group_instance_id: said.instance_id.clone(),
            client_id: said.client_id.clone(),
            client_host: said.client_host.clone(),
            session_timeout_ms: match &said.classic {
                Some(classic) => classic.session_timeout_ms,
                None => settings.consumer_session_timeout_ms(&self.id),
            },
            rebalance_timeout_ms: said.rebalance_timeout_ms,
            assignment: Bytes::new(),
            parked: self.pending.has(&member.id),
            consumer: Some(ConsumerMemberView {
                member_epoch: member.current.member_epoch,
                state: member.current.state,
                is_classic: member.is_classic(),
                assigned: member.current.assigned.partitions().clone(),
                to_revoke: member.current.pending_revocation.len(),
                to_assign: self.missing(member),
            }),
        }
    }

    /// How many partitions the member is to have and has not.
    fn missing(&self, member: &Member) -> usize {
        let held = member.current.assigned.partitions();
        let target = self.target(&member.id);
        target.map_or(0, |target| {
            target.iter().filter(|partition| !held.contains(partition)).count()
        })
    }

    pub(in crate::coordinator) fn parked_joins(&self) -> usize {
        self.pending.len()
    }
}

/// Partitions by topic, under the topics' names; a topic that is gone has none and is left out.
fn named(partitions: &Partitions, topics: &Topics) -> Vec<AssignedTopic> {
    let by_topic = partitions.by_topic();
    by_topic
        .filter_map(|(topic_id, numbers)| {
            let name: &Text = topics.name_by_id.get(&topic_id)?;
            Some(AssignedTopic {
                topic_id,
                name: name.clone(),
                partitions: numbers.collect(),
            })
        })
        .collect()
}
