//! SyncGroup: the leader's assignment arrives and is handed out.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Cause, ClassicGroup, State};
use crate::coordinator::context::Context;
use crate::coordinator::event::{Event, RebalanceReason};
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{Response, SyncGroupRequest, SyncGroupResponse, Text};
use crate::coordinator::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

/// The answer to a sync that is refused.
pub(in crate::coordinator) fn sync_refusal(error: ErrorCode) -> Response {
    Response::SyncGroup(SyncGroupResponse {
        error,
        protocol_type: None,
        protocol_name: None,
        assignment: Bytes::new(),
    })
}

impl ClassicGroup {
    pub(in crate::coordinator) fn on_sync(&mut self, ticket: Ticket, request: SyncGroupRequest, cx: &mut Context<'_>) {
        if let Err(error) = self.validate_sync(&request) {
            cx.reply(ticket, sync_refusal(error));
            return;
        }
        self.hear(&request.member_id);
        match self.state {
            State::CompletingRebalance => {
                self.note_synced(&request.member_id, cx);
                if let Some(replaced) = self.members.park_sync(&request.member_id, ticket) {
                    // The client gave up the connection of the first.
                    cx.reply(replaced, sync_refusal(ErrorCode::REBALANCE_IN_PROGRESS));
                }
                if self.is_leader(&request.member_id) {
                    self.install_assignment(request.assignments.into_iter().collect(), cx);
                }
            }
            State::Stable => {
                self.note_synced(&request.member_id, cx);
                let response = self.sync_response(&request.member_id);
                cx.reply(ticket, response);
                self.give_what_is_free(cx);
            }
            // Validated: nobody is in an empty group.
            State::Empty | State::PreparingRebalance => {
                cx.reply(ticket, sync_refusal(ErrorCode::REBALANCE_IN_PROGRESS));
            }
        }
    }

    /// Whoever has not synced within the rebalance timeout is taken out.
    pub(super) fn on_sync_timeout(&mut self, cx: &mut Context<'_>) {
        let late = std::mem::take(&mut self.pending_syncs);
        if late.is_empty() || !matches!(self.state, State::CompletingRebalance | State::Stable) {
            return;
        }
        for member_id in &late {
            self.remove_member(member_id, &Cause::of(RebalanceReason::SyncTimedOut, member_id), cx);
        }
        let cause = Cause {
            reason: RebalanceReason::SyncTimedOut,
            member_id: late.into_iter().next(),
            client_reason: None,
        };
        self.prepare_rebalance(cause, cx);
    }

    /// Answers every parked sync, each of which shows that its member lives.
    pub(super) fn complete_syncs(&mut self, error: ErrorCode, cx: &mut Context<'_>) {
        for member_id in self.members.ids() {
            let Some(ticket) = self.members.take_sync(&member_id) else {
                continue;
            };
            let response = match error {
                ErrorCode::NONE => self.sync_response(&member_id),
                error => sync_refusal(error),
            };
            cx.reply(ticket, response);
            self.arm_session(&member_id, cx);
        }
    }

    fn validate_sync(&self, request: &SyncGroupRequest) -> Result<(), ErrorCode> {
        self.validate_member(&request.member_id, request.group_instance_id.as_ref())?;
        if request.generation_id != self.generation_id {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        let differs = |given: &Option<Text>, ours: &Option<Text>| given.is_some() && given != ours;
        if differs(&request.protocol_type, &self.protocol_type) || differs(&request.protocol_name, &self.protocol_name)
        {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        Ok(())
    }

    fn note_synced(&mut self, member_id: &Text, cx: &mut Context<'_>) {
        self.pending_syncs.remove(member_id);
        if self.pending_syncs.is_empty() {
            cx.cancel(&self.id, GroupTimer::Sync);
        }
    }

    /// Writes the assignment; a member that it leaves out gets none, and strangers are ignored.
    pub(super) fn install_assignment(&mut self, mut assignments: BTreeMap<Text, Bytes>, cx: &mut Context<'_>) {
        let mut value = self.to_value();
        value.current_state_timestamp_ms = cx.now.wall_ms;
        for member in &mut value.members {
            member.assignment = assignments.remove(&member.member_id).unwrap_or_default();
        }
        self.write(value, cx);
        let began_ms = self.rebalancing_since_ms.take().unwrap_or(cx.now.monotonic_ms);
        cx.event(Event::RebalanceCompleted {
            group_id: self.id.clone(),
            generation_id: self.generation_id,
            members: self.members.len(),
            took_ms: cx.now.monotonic_ms.saturating_sub(began_ms),
        });
        self.complete_syncs(ErrorCode::NONE, cx);
    }

    fn sync_response(&self, member_id: &Text) -> Response {
        let member = self.members.get(member_id);
        Response::SyncGroup(SyncGroupResponse {
            error: ErrorCode::NONE,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            assignment: member.map(|member| member.assignment.clone()).unwrap_or_default(),
        })
    }
}
