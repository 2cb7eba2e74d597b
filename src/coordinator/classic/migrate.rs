//! What a classic group gives to a consumer group that takes its place, and how one begins that takes the place of a
//! consumer group.

use bytes::Bytes;

use super::members::Member;
use super::{Cause, ClassicGroup, join_refusal, sync_refusal};
use crate::coordinator::consumer::Successor;
use crate::coordinator::consumer_protocol::CONSUMER;
use crate::coordinator::context::Context;
use crate::coordinator::event::RebalanceReason;
use crate::coordinator::request::{Protocol, Response, Text};
use crate::coordinator::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

/// A member that goes over to a consumer group.
#[derive(Debug)]
pub(in crate::coordinator) struct Emigrant {
    pub(in crate::coordinator) id: Text,
    pub(in crate::coordinator) instance_id: Option<Text>,
    pub(in crate::coordinator) client_id: Text,
    pub(in crate::coordinator) client_host: Text,
    pub(in crate::coordinator) rebalance_timeout_ms: i32,
    pub(in crate::coordinator) session_timeout_ms: i32,
    pub(in crate::coordinator) protocols: Vec<Protocol>,
    /// For the selected protocol, else for the one that it likes best.
    pub(in crate::coordinator) subscription: Bytes,
    pub(in crate::coordinator) assignment: Bytes,
}

impl ClassicGroup {
    pub(in crate::coordinator) fn is_of_consumers(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    pub(in crate::coordinator) fn size(&self) -> usize {
        self.members.len()
    }

    pub(in crate::coordinator) fn generation_id(&self) -> i32 {
        self.generation_id
    }

    pub(in crate::coordinator) fn emigrants(&self) -> impl Iterator<Item = Emigrant> {
        self.members.iter().map(|member| self.emigrant(member))
    }

    fn emigrant(&self, member: &Member) -> Emigrant {
        let selected = self.protocol_name.as_deref();
        let selected = selected.or_else(|| member.protocols().first().map(|protocol| &*protocol.name));
        Emigrant {
            id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout_ms,
            protocols: member.protocols().to_vec(),
            subscription: selected.map(|name| member.metadata(name)).unwrap_or_default(),
            assignment: member.assignment.clone(),
        }
    }

    /// The group makes room for a consumer group: whoever waits is to ask that one, and only the sessions of its members
    /// go on.
    pub(in crate::coordinator) fn end(mut self, cx: &mut Context<'_>) {
        // Those that groups of both protocols have are the other group's by now.
        cx.cancel(&self.id, GroupTimer::Join);
        cx.cancel(&self.id, GroupTimer::Sync);
        for member_id in &self.pending_joins {
            cx.cancel(&self.id, GroupTimer::Session(member_id.clone()));
        }
        for member_id in self.members.ids() {
            if let Some(ticket) = self.members.take_join(&member_id) {
                cx.reply(
                    ticket,
                    join_refusal(ErrorCode::REBALANCE_IN_PROGRESS, member_id.clone()),
                );
            }
            if let Some(ticket) = self.members.take_sync(&member_id) {
                cx.reply(ticket, sync_refusal(ErrorCode::REBALANCE_IN_PROGRESS));
            }
            self.arm_session(&member_id, cx);
        }
    }

    /// The group took the place of a consumer group: sessions begin, and everybody is to join anew.
    pub(in crate::coordinator) fn begin_anew(&mut self, cx: &mut Context<'_>) {
        self.begin_sessions(cx);
        self.prepare_rebalance(Cause::of_group(RebalanceReason::MetadataChanged), cx);
    }

    /// The group took the place of a consumer group that was settled: everybody goes on with what it has, and the successor of
    /// the last consumer is answered like any static member that returns. Where the coordinator assigns, it has from now on.
    pub(in crate::coordinator) fn begin_settled(&mut self, successor: Successor, cx: &mut Context<'_>) {
        self.begin_sessions(cx);
        let Successor {
            ticket,
            request,
            settled_after,
            ..
        } = successor;
        let skips_assignment = request.supports_skipping_assignment;
        let settled_after = settled_after.filter(|_| self.leader.is_some());
        let response = self.returned_response(&request.member_id, settled_after, skips_assignment);
        cx.reply(ticket, Response::JoinGroup(response));
    }

    fn begin_sessions(&self, cx: &mut Context<'_>) {
        for member_id in self.members.ids() {
            self.arm_session(&member_id, cx);
        }
    }
}
