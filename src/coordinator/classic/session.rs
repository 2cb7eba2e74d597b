//! Heartbeats, and what happens when they stop.

use super::{Cause, ClassicGroup, State};
use crate::coordinator::context::Context;
use crate::coordinator::event::RebalanceReason;
use crate::coordinator::request::{HeartbeatRequest, Text};
use crate::wire::error_code::ErrorCode;

impl ClassicGroup {
    /// The leader may still be assigning while the rebalance completes, so that state is no error.
    pub(in crate::coordinator) fn on_heartbeat(&self, request: &HeartbeatRequest, cx: &mut Context<'_>) -> ErrorCode {
        if let Err(error) = self.validate_member(&request.member_id, request.group_instance_id.as_ref()) {
            return error;
        }
        if request.generation_id != self.generation_id {
            return ErrorCode::ILLEGAL_GENERATION;
        }
        self.arm_session(&request.member_id, cx);
        match self.state {
            State::PreparingRebalance => ErrorCode::REBALANCE_IN_PROGRESS,
            State::Empty | State::CompletingRebalance | State::Stable => ErrorCode::NONE,
        }
    }

    /// Nothing was heard of a member for its session timeout, or an id that was handed out never came back. A member that is
    /// parked is not silent, unless its first join has been parked for so long that it must be given up.
    pub(super) fn on_session_timeout(&mut self, member_id: &Text, cx: &mut Context<'_>) {
        if self.forget_pending(member_id, cx) {
            self.maybe_complete_join(cx);
            return;
        }
        let Some(member) = self.members.get(member_id) else {
            return;
        };
        if !member.is_new && (member.is_parked_in_join() || member.is_parked_in_sync()) {
            return;
        }
        let reason = match member.is_new {
            true => RebalanceReason::JoinTimedOut,
            false => RebalanceReason::SessionExpired,
        };
        let cause = Cause::of(reason, member_id);
        self.remove_member(member_id, &cause, cx);
        self.rebalance_or_complete_join(cause, cx);
    }
}
