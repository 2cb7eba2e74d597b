//! DescribeGroups, ListGroups and the admin view of a classic group.

use super::members::Member;
use super::{ClassicGroup, State};
use crate::coordinator::assignor::ClassicAssignor;
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{
    ClassicGroupView, DescribeGroupResponse, DescribedMember, GroupView, ListedGroup, MemberView, Text,
};
use crate::wire::error_code::ErrorCode;

/// The group type as ListGroups v5 names it.
const GROUP_TYPE: &str = "classic";
const COORDINATOR: &str = "coordinator";
const EXTERNAL: &str = "external";
const LEADER: &str = "leader";

impl ClassicGroup {
    /// The protocol and the members' metadata are shown only in Stable, as Kafka does.
    pub(in crate::coordinator) fn describe(&self) -> DescribeGroupResponse {
        let protocol = match self.state {
            State::Stable => self.protocol_name.as_ref(),
            _ => None,
        };
        let describe = |member: &Member| DescribedMember {
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            metadata: protocol.map(|protocol| member.metadata(protocol)).unwrap_or_default(),
            assignment: member.assignment.clone(),
        };
        DescribeGroupResponse {
            error_message: None,
            error: ErrorCode::NONE,
            group_id: self.id.clone(),
            state: self.state.label().into(),
            protocol_type: text_or_empty(self.protocol_type.as_ref()),
            protocol_name: text_or_empty(protocol),
            members: self.members.iter().map(describe).collect(),
        }
    }

    pub(in crate::coordinator) fn list(&self) -> ListedGroup {
        ListedGroup {
            group_id: self.id.clone(),
            protocol_type: text_or_empty(self.protocol_type.as_ref()),
            state: self.state.label().into(),
            group_type: GROUP_TYPE.into(),
        }
    }

    /// Everything but the offsets, which the group does not have itself.
    pub(in crate::coordinator) fn view(&self) -> GroupView {
        let view = |member: &Member| MemberView {
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            session_timeout_ms: member.session_timeout_ms,
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            assignment: member.assignment.clone(),
            parked: member.is_parked_in_join() || member.is_parked_in_sync(),
            consumer: None,
        };
        GroupView {
            group_id: self.id.clone(),
            group_type: GROUP_TYPE.into(),
            state: self.state.label().into(),
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            generation_id: self.generation_id,
            leader: self.leader.clone(),
            state_since_ms: self.state_since_ms,
            members: self.members.iter().map(view).collect(),
            pending_members: self.pending_joins.len(),
            offsets: 0,
            classic: (!self.members.is_empty()).then(|| self.view_assignment()),
            consumer: None,
        }
    }

    fn view_assignment(&self) -> ClassicGroupView {
        let assigned = self.assigned.as_ref();
        let assignor = assigned.and_then(|assigned| assigned.assignor.clone());
        let is_external = |name: &Text| ClassicAssignor::by_name(name).is_none();
        ClassicGroupView {
            assigned_by: match assigned.is_some() || self.is_assigned_for_here() {
                true if assignor.as_ref().is_some_and(is_external) => EXTERNAL,
                true => COORDINATOR,
                false => LEADER,
            },
            assignor,
            computation: self.outside.view(),
            partitions_withheld: assigned.map_or(0, |assigned| assigned.withheld),
        }
    }

    /// Every request that waits in a join or a sync.
    pub(in crate::coordinator) fn parked(&self) -> impl Iterator<Item = Ticket> {
        self.members.parked()
    }

    pub(in crate::coordinator) fn parked_joins(&self) -> usize {
        self.members.parked_joins()
    }

    pub(in crate::coordinator) fn parked_syncs(&self) -> usize {
        self.members.iter().filter(|member| member.is_parked_in_sync()).count()
    }
}

fn text_or_empty(text: Option<&Text>) -> Text {
    text.cloned().unwrap_or_else(|| "".into())
}
