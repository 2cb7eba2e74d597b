//! The join phase: it begins, is extended, and ends in a new generation or an empty group.

use super::{Cause, ClassicGroup, State};
use crate::coordinator::client_assignor::{Asking, ComputedOutside};
use crate::coordinator::context::Context;
use crate::coordinator::event::{Event, RebalanceReason};
use crate::coordinator::record::GroupMetadataValue;
use crate::coordinator::request::Response;
use crate::coordinator::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

/// How often at most a group that only waits for silent static members looks again, in milliseconds. Kafka looks again after
/// the rebalance timeout alone, which a client may have set to 0.
const SHORTEST_WAIT_FOR_SILENT_MEMBERS_MS: i32 = 1_000;

/// The first rebalance of an empty group waits for more members (`group.initial.rebalance.delay.ms`).
#[derive(Debug)]
pub(super) struct InitialJoin {
    /// Of the timer that runs.
    delay_ms: i32,
    /// By how much the wait may still grow.
    remaining_ms: i32,
    /// Somebody came since the timer was armed.
    pub(super) member_added: bool,
}

impl ClassicGroup {
    pub(super) fn rebalance_or_complete_join(&mut self, cause: Cause, cx: &mut Context<'_>) {
        match self.state {
            State::PreparingRebalance => self.maybe_complete_join(cx),
            State::Empty | State::CompletingRebalance | State::Stable => self.prepare_rebalance(cause, cx),
        }
    }

    pub(super) fn prepare_rebalance(&mut self, cause: Cause, cx: &mut Context<'_>) {
        if self.state == State::CompletingRebalance {
            self.abandon_syncs(cx);
        }
        cx.cancel(&self.id, GroupTimer::Sync);
        cx.cancel(&self.id, GroupTimer::Assignment);
        self.end_computation(cx);
        self.forget_asked(cx);
        self.pending_syncs.clear();
        let is_initial = self.state == State::Empty;
        self.transition(State::PreparingRebalance, cx);
        self.rebalancing_since_ms.get_or_insert(cx.now.monotonic_ms);
        // Where nobody is left to rebalance, the group becomes empty and that is all.
        if !self.members.is_empty() || !self.pending_joins.is_empty() {
            cx.event(Event::RebalanceStarted {
                group_id: self.id.clone(),
                generation_id: self.generation_id,
                reason: cause.reason,
                member_id: cause.member_id,
                client_reason: cause.client_reason,
            });
        }
        let timeout_ms = self.members.rebalance_timeout_ms();
        if is_initial {
            let delay_ms = cx.settings.group_initial_rebalance_delay_ms;
            self.await_initial_join(delay_ms, timeout_ms.saturating_sub(delay_ms).max(0), cx);
        } else if self.everybody_joined() {
            self.complete_join(cx);
        } else {
            cx.arm(&self.id, GroupTimer::Join, timeout_ms);
        }
    }

    /// Ends the join phase if everybody is there, except the first one after Empty, which always waits its delay.
    pub(super) fn maybe_complete_join(&mut self, cx: &mut Context<'_>) {
        if self.state == State::PreparingRebalance && self.initial_join.is_none() && self.everybody_joined() {
            self.complete_join(cx);
        }
    }

    pub(super) fn on_join_timeout(&mut self, cx: &mut Context<'_>) {
        if self.state != State::PreparingRebalance {
            return;
        }
        match &self.initial_join {
            Some(initial) if initial.member_added && initial.remaining_ms > 0 => {
                let delay_ms = cx.settings.group_initial_rebalance_delay_ms.min(initial.remaining_ms);
                let remaining_ms = initial.remaining_ms.saturating_sub(initial.delay_ms).max(0);
                self.await_initial_join(delay_ms, remaining_ms, cx);
            }
            _ => self.complete_join(cx),
        }
    }

    fn await_initial_join(&mut self, delay_ms: i32, remaining_ms: i32, cx: &mut Context<'_>) {
        self.initial_join = Some(InitialJoin {
            delay_ms,
            remaining_ms,
            member_added: false,
        });
        cx.arm(&self.id, GroupTimer::Join, delay_ms);
    }

    fn everybody_joined(&self) -> bool {
        self.members.len() == self.members.parked_joins() && self.pending_joins.is_empty()
    }

    fn complete_join(&mut self, cx: &mut Context<'_>) {
        cx.cancel(&self.id, GroupTimer::Join);
        self.drop_silent_members(cx);
        if self.members.is_empty() {
            self.become_empty(cx);
        } else if self.elect_leader() {
            self.begin_generation(cx);
        } else {
            let timeout_ms = self.members.rebalance_timeout_ms();
            cx.arm(
                &self.id,
                GroupTimer::Join,
                timeout_ms.max(SHORTEST_WAIT_FOR_SILENT_MEMBERS_MS),
            );
        }
    }

    /// Static members stay until their session ends, whether they rejoined or not.
    fn drop_silent_members(&mut self, cx: &mut Context<'_>) {
        let silent = self
            .members
            .iter()
            .filter(|member| !member.is_parked_in_join() && !member.is_static());
        let silent: Vec<_> = silent.map(|member| member.id.clone()).collect();
        for member_id in silent {
            self.remove_member(&member_id, &Cause::of(RebalanceReason::JoinTimedOut, &member_id), cx);
        }
    }

    /// The leader stays if it rejoined, else the first who did leads. Says whether there is one.
    fn elect_leader(&mut self) -> bool {
        let leader = self.leader.as_ref().and_then(|leader| self.members.get(leader));
        if leader.is_some_and(|leader| leader.is_parked_in_join()) {
            return true;
        }
        match self.members.iter().find(|member| member.is_parked_in_join()) {
            Some(first) => {
                self.leader = Some(first.id.clone());
                true
            }
            None => false,
        }
    }

    fn become_empty(&mut self, cx: &mut Context<'_>) {
        let value = GroupMetadataValue {
            generation: next_generation(self.generation_id),
            protocol: None,
            leader: None,
            current_state_timestamp_ms: cx.now.wall_ms,
            ..self.to_value()
        };
        self.write(value, cx);
        self.rebalancing_since_ms = None;
        self.assigned = None;
        cx.event(Event::GroupEmpty {
            group_id: self.id.clone(),
            generation_id: self.generation_id,
        });
    }

    /// Tells everybody of the new generation, which becomes durable with the leader's assignment, or is with the coordinator's.
    fn begin_generation(&mut self, cx: &mut Context<'_>) {
        let before = self.generation_id;
        self.generation_id = next_generation(self.generation_id);
        self.protocol_name = self.members.select_protocol();
        self.subscription = self.current_subscription();
        self.initial_join = None;
        self.transition(State::CompletingRebalance, cx);
        self.assign_if_asked_to(before, cx);
        for member_id in self.members.ids() {
            if let Some(ticket) = self.members.take_join(&member_id) {
                let response = self.join_response(&member_id);
                cx.reply(ticket, Response::JoinGroup(response));
            }
            if let Some(member) = self.members.get_mut(&member_id) {
                member.is_new = false;
            }
            self.arm_session(&member_id, cx);
            self.pending_syncs.insert(member_id);
        }
        cx.arm(&self.id, GroupTimer::Sync, self.members.rebalance_timeout_ms());
    }

    /// A round that begins before the assignment came takes the parked syncs along. Where it was to come from outside, what members
    /// had before is what the next one begins from.
    fn abandon_syncs(&mut self, cx: &mut Context<'_>) {
        if self.undecided.take().is_none() {
            for member in self.members.iter_mut() {
                member.assignment.clear();
            }
        }
        self.complete_syncs(ErrorCode::REBALANCE_IN_PROGRESS, cx);
    }
}

fn next_generation(generation_id: i32) -> i32 {
    generation_id.checked_add(1).unwrap_or(1)
}
