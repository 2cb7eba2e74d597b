//! A static member (KIP-345, 814) that comes back without its member id takes its own place under a new one.

use super::{Cause, ClassicGroup, State, join_refusal, sync_refusal};
use crate::coordinator::context::Context;
use crate::coordinator::event::RebalanceReason;
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{JoinGroupRequest, JoinGroupResponse, Response, Text};
use crate::coordinator::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

impl ClassicGroup {
    /// In Stable, and if the selected protocol stays, nobody else notices.
    pub(super) fn replace_static_member(
        &mut self,
        ticket: Ticket,
        old_id: &Text,
        new_id: Text,
        request: JoinGroupRequest,
        cx: &mut Context<'_>,
    ) {
        let old_leader = self.leader.clone();
        let cause = Cause {
            client_reason: request.reason.clone(),
            ..Cause::of(RebalanceReason::StaticMemberReplaced, &new_id)
        };
        let skips_assignment = request.supports_skipping_assignment;
        let metadata_before = self.selected_metadata(old_id);
        self.fence(old_id, &new_id, cx);
        self.members.update(&new_id, request);
        self.arm_session(&new_id, cx);
        let stays =
            self.members.select_protocol() == self.protocol_name && self.suits_returning(&new_id, &metadata_before);
        if self.state == State::Stable && stays {
            self.write(self.to_value(), cx);
            let response = self.returned_response(&new_id, old_leader, skips_assignment);
            cx.reply(ticket, Response::JoinGroup(response));
            return;
        }
        self.park_join(&new_id, ticket, cx);
        self.rebalance_or_complete_join(cause, cx);
    }

    /// Moves the member to its new id; the requests of its former self end here.
    fn fence(&mut self, old_id: &Text, new_id: &Text, cx: &mut Context<'_>) {
        let (join, sync) = self.members.rename(old_id, new_id);
        if let Some(ticket) = join {
            cx.reply(ticket, join_refusal(ErrorCode::FENCED_INSTANCE_ID, old_id.clone()));
        }
        if let Some(ticket) = sync {
            cx.reply(ticket, sync_refusal(ErrorCode::FENCED_INSTANCE_ID));
        }
        if self.is_leader(old_id) {
            self.leader = Some(new_id.clone());
        }
        if self.pending_syncs.remove(old_id) {
            self.pending_syncs.insert(new_id.clone());
        }
        cx.cancel(&self.id, GroupTimer::Session(old_id.clone()));
    }

    /// A leader that cannot be told to skip its assignment is told of its former self as the leader, so that it takes itself
    /// for a follower and leaves the assignment as it is.
    pub(super) fn returned_response(
        &self,
        new_id: &Text,
        old_leader: Option<Text>,
        skips_assignment: bool,
    ) -> JoinGroupResponse {
        let current = self.join_response(new_id);
        if skips_assignment {
            return JoinGroupResponse {
                skip_assignment: self.is_leader(new_id),
                ..current
            };
        }
        JoinGroupResponse {
            leader: old_leader.unwrap_or_else(|| "".into()),
            members: Vec::new(),
            ..current
        }
    }
}
