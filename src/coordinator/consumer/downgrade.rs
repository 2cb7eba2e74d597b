//! A consumer group whose members all speak the classic protocol becomes a classic group.

use super::ConsumerGroup;
use super::classic_session::encode;
use super::members::Member;
use crate::coordinator::consumer_protocol::CONSUMER;
use crate::coordinator::context::Context;
use crate::coordinator::record::{ClassicMemberValue, GroupMetadataValue, MemberValue};
use crate::coordinator::request::Text;
use crate::coordinator::settings::Settings;
use crate::coordinator::topics::Topics;

impl ConsumerGroup {
    /// Whether nobody is left who needs the group to be one of consumers, and it may become another.
    pub(in crate::coordinator) fn is_to_be_classic(&self, settings: &Settings) -> bool {
        !self.is_empty()
            && self.members.classic_members() == self.members.len()
            && settings.group_consumer_migration_policy.allows_downgrade()
            && self.members.len() <= usize::try_from(settings.group_max_size).unwrap_or(0)
    }

    /// The group as a classic one: its epoch is the generation, and everybody has what it holds, which is its target where the
    /// group has settled. (Kafka writes the target in any case: if the group is to be one of consumers again before everybody
    /// has joined anew, what somebody still reads looks free.) `None` if there is no protocol that all support, which the joins
    /// have seen to. Without a `leader` the first member leads; nobody does where the coordinator assigns.
    pub(in crate::coordinator) fn to_classic(
        &self,
        leader: Option<&Text>,
        cx: &Context<'_>,
    ) -> Option<GroupMetadataValue> {
        let mut members = Vec::with_capacity(self.members.len());
        let first = self.members.iter().next()?;
        let mut offered = first.said.classic.iter().flat_map(|classic| &classic.protocols);
        let protocol = offered.find(|protocol| self.members.all_classic_support(&protocol.name))?;
        for member in self.members.iter() {
            let classic = member.said.classic.as_ref()?;
            members.push(self.classic_value(member, classic, &protocol.name, cx.topics));
        }
        let leads = cx.settings.classic_assignment(&self.id).is_none();
        Some(GroupMetadataValue {
            protocol_type: CONSUMER.into(),
            generation: self.epoch,
            protocol: Some(protocol.name.clone()),
            leader: leads.then(|| leader.unwrap_or(&first.id).clone()),
            current_state_timestamp_ms: cx.now.wall_ms,
            members,
        })
    }

    fn classic_value(
        &self,
        member: &Member,
        classic: &ClassicMemberValue,
        protocol: &str,
        topics: &Topics,
    ) -> MemberValue {
        let chosen = classic.protocols.iter().find(|offered| &*offered.name == protocol);
        MemberValue {
            member_id: member.id.clone(),
            group_instance_id: member.said.instance_id.clone(),
            client_id: member.said.client_id.clone(),
            client_host: member.said.client_host.clone(),
            rebalance_timeout_ms: member.said.rebalance_timeout_ms,
            session_timeout_ms: classic.session_timeout_ms,
            subscription: chosen.map(|chosen| chosen.metadata.clone()).unwrap_or_default(),
            assignment: encode(&member.held(), classic, topics),
        }
    }
}
