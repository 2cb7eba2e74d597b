//! Heartbeats of consumer groups, and groups that change their protocol by whoever comes or goes.

use super::Groups;
use crate::coordinator::classic::ClassicGroup;
use crate::coordinator::consumer::{ConsumerGroup, Successor, heartbeat_refusal};
use crate::coordinator::context::Context;
use crate::coordinator::event::Event;
use crate::coordinator::external::Scope;
use crate::coordinator::group::Group;
use crate::coordinator::input::Ticket;
use crate::coordinator::migration;
use crate::coordinator::record::Record;
use crate::coordinator::request::{ConsumerGroupHeartbeatRequest, Response, Text};
use crate::wire::error_code::ErrorCode;

const CONSUMER: &str = "consumer";
const CLASSIC: &str = "classic";

impl Groups {
    pub(in crate::coordinator) fn consumer_heartbeat(
        &mut self,
        ticket: Ticket,
        request: ConsumerGroupHeartbeatRequest,
        cx: &mut Context<'_>,
    ) {
        if !cx.has_topics {
            let error = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
            return cx.reply(ticket, Response::Unavailable { error });
        }
        if self.is_of_an_external(&request, cx) {
            let scope = Scope::Group(request.group_id.clone());
            return self.external_heartbeat(ticket, &scope, &request, true, cx);
        }
        if let Some(Group::Consumer(group)) = self.groups.get_mut(&request.group_id) {
            let may_be_last = request.member_epoch < 0;
            let group_id = request.group_id.clone();
            group.on_consumer_heartbeat(ticket, request, cx);
            if may_be_last {
                self.downgrade_if_due(&group_id, cx);
            }
            return;
        }
        match self.consumer_group_for(&request, cx) {
            Ok((group, records)) => self.join_first(ticket, request, group, records, cx),
            Err(message) => cx.reply(ticket, heartbeat_refusal(ErrorCode::GROUP_ID_NOT_FOUND, Some(message))),
        }
    }

    /// The consumer group that a join makes, or makes of a classic one, and the records that do; or why there is none.
    fn consumer_group_for(
        &self,
        request: &ConsumerGroupHeartbeatRequest,
        cx: &Context<'_>,
    ) -> Result<(ConsumerGroup, Vec<Record>), Text> {
        let group_id = &request.group_id;
        if !request.is_join() {
            return Err(match self.groups.get(group_id) {
                Some(_) => format!("Group {group_id} is not a consumer group."),
                None if request.member_epoch < 0 => format!("Group {group_id} not found."),
                None => format!("Consumer group {group_id} not found."),
            }
            .into());
        }
        match self.groups.get(group_id) {
            Some(Group::Classic(classic)) if classic.size() > 0 => {
                migration::upgrade(group_id, classic, cx).map_err(|obstacle| obstacle.message(group_id))
            }
            _ => Ok((ConsumerGroup::new(group_id.clone()), Vec::new())),
        }
    }

    /// The first consumer of a group. If it does not come in, nothing was.
    fn join_first(
        &mut self,
        ticket: Ticket,
        request: ConsumerGroupHeartbeatRequest,
        mut group: ConsumerGroup,
        mut records: Vec<Record>,
        cx: &mut Context<'_>,
    ) {
        let group_id = request.group_id.clone();
        let records_before = cx.effects.records.len();
        let epoch_before = group.epoch();
        group.on_consumer_heartbeat(ticket, request, cx);
        if cx.effects.records.len() == records_before {
            return;
        }
        if !records.is_empty() {
            group.begin(epoch_before, cx);
        }
        if let Some(Group::Classic(classic)) = self.groups.insert(group_id.clone(), Group::Consumer(group.into())) {
            let members = classic.size();
            classic.end(cx);
            records.insert(0, ClassicGroup::tombstone(&group_id));
            // Before what came of the join.
            cx.effects.records.splice(records_before..records_before, records);
            tell_converted(&group_id, CONSUMER, members, cx);
        }
    }

    /// Makes a classic group of a consumer group that nobody is in.
    pub(super) fn convert_empty(&mut self, group_id: &Text, cx: &mut Context<'_>) {
        self.end_group(group_id, cx);
        self.write(ClassicGroup::creation(group_id, cx.now.wall_ms), cx);
        tell_converted(group_id, CLASSIC, 0, cx);
    }

    /// Makes a classic group of a consumer group whose members all speak the classic protocol, if the policy allows it.
    pub(super) fn downgrade_if_due(&mut self, group_id: &str, cx: &mut Context<'_>) {
        if let Some(group) = self.downgrade(group_id, None, cx) {
            group.begin_anew(cx);
        }
    }

    /// The same for a group whose last consumer was replaced by a classic member, which is then answered. It leads: of all
    /// members it is the only one that can be told so without a rebalance.
    pub(super) fn downgrade_by(&mut self, successor: Box<Successor>, cx: &mut Context<'_>) {
        let request = &successor.request;
        let group = self.downgrade(&request.group_id, Some(&request.member_id), cx);
        match (group, &successor.settled_after) {
            (Some(group), Some(_)) => group.begin_settled(*successor, cx),
            (Some(group), None) => {
                group.begin_anew(cx);
                cx.reply(successor.ticket, successor.answer);
            }
            (None, _) => self.join_classic(successor.ticket, successor.request, cx),
        }
    }

    fn downgrade(&mut self, group_id: &str, leader: Option<&Text>, cx: &mut Context<'_>) -> Option<&mut ClassicGroup> {
        let (group_id, group) = self.groups.get_key_value(group_id)?;
        let value = match group {
            Group::Consumer(group) if group.is_to_be_classic(cx.settings) => group.to_classic(leader, cx)?,
            _ => return None,
        };
        let group_id = group_id.clone();
        let members = value.members.len();
        self.end_group(&group_id, cx);
        let value = Some(value);
        self.write(
            Record::GroupMetadata {
                group_id: group_id.clone(),
                value,
            },
            cx,
        );
        tell_converted(&group_id, CLASSIC, members, cx);
        match self.groups.get_mut(&group_id) {
            Some(Group::Classic(group)) => Some(group),
            _ => None,
        }
    }

    /// Ends a group, without its offsets.
    pub(super) fn end_group(&mut self, group_id: &Text, cx: &mut Context<'_>) {
        let group = self.groups.get(group_id);
        let tombstones = group.map(|group| group.tombstones(group_id)).unwrap_or_default();
        self.write_all(tombstones, cx);
        cx.timers.cancel_group(group_id);
        cx.externals.unwant(group_id);
    }
}

fn tell_converted(group_id: &Text, to: &'static str, members: usize, cx: &mut Context<'_>) {
    cx.event(Event::GroupConverted {
        group_id: group_id.clone(),
        to,
        members,
    });
}
