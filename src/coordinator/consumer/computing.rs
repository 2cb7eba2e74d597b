//! A target that is computed outside: who computes it, and what if nobody does. The group goes on with its last target
//! meanwhile; see [`Computation`] for the states.

use super::ConsumerGroup;
use super::members::Member;
use super::target::Computed;
use crate::coordinator::client_assignor::{Choice, Computation};
use crate::coordinator::context::Context;
use crate::coordinator::event::{Event, FallBackReason, PassedOverReason};
use crate::coordinator::request::{ClientAssignor, ComputationView, Text};
use crate::coordinator::settings::Settings;
use crate::coordinator::timer::GroupTimer;

/// How much later than its heartbeat interval somebody is held to be silent, in milliseconds.
const HEARTBEAT_GRACE_MS: i32 = 1_000;
/// How long a join waits for a target that is computed outside, in milliseconds. Then it is answered without partitions.
const JOIN_WAIT_MS: i32 = 3_000;

impl ConsumerGroup {
    /// The assignor of the next target.
    pub(super) fn choice(&self, settings: &Settings) -> Choice {
        let always = settings.assignor_by_rule(&self.id);
        let ballot = self.members.ballot(always, &settings.group_consumer_assignors);
        ballot.choose(self.members.voters())
    }

    /// Begins a computation, unless it is under way: then what changed is for the next one.
    pub(super) fn want_computation(&mut self, assignor: Text, cx: &mut Context<'_>) {
        if self
            .computation
            .as_ref()
            .is_none_or(|computation| computation.assignor != assignor)
        {
            self.end_computation(cx);
            cx.event(Event::ComputationWanted {
                group_id: self.id.clone(),
                group_epoch: self.epoch,
                assignor: assignor.clone(),
            });
            self.computation = Some(Computation::wanted(assignor, cx.now.monotonic_ms));
        }
        self.proceed(cx);
    }

    /// Ends a computation that may be under way, and gives it.
    pub(super) fn end_computation(&mut self, cx: &mut Context<'_>) -> Option<Computation> {
        let ended = self.computation.take();
        if ended.is_some() {
            cx.cancel(&self.id, GroupTimer::Computation);
        }
        ended
    }

    /// Gives a computation that nobody has to somebody who waits for one, waits for others to be heard, or falls back.
    pub(super) fn proceed(&mut self, cx: &mut Context<'_>) {
        let Some(computation) = &self.computation else {
            return;
        };
        if let Some(given) = computation.given() {
            // In whatever versions: those are looked at when it asks.
            if self.listed(&given.member_id, &computation.assignor, cx).is_none() {
                self.pass_over(PassedOverReason::Unfit, cx);
            }
            return;
        }
        if self.give_to_parked(cx) {
            return;
        }
        if !self.has_candidate(cx) && !self.may_be_back(cx) {
            return self.fall_back(cx);
        }
        cx.arm_if_absent(&self.id, GroupTimer::Computation, self.heard_within_ms(cx.settings));
        self.bound_joins(cx);
    }

    /// Whether its member is to compute the next target, which a heartbeat is answered with. An eligible one that is heard while
    /// nobody has the computation gets it.
    pub(in crate::coordinator) fn offer(&mut self, member_id: &Text, cx: &mut Context<'_>) -> bool {
        let Some(computation) = &self.computation else {
            return false;
        };
        match computation.given() {
            Some(_) => computation.is_given_to(member_id) && !computation.has_snapshot(),
            None if self.is_eligible(member_id, cx) => {
                self.give(member_id.clone(), cx);
                true
            }
            None => false,
        }
    }

    /// Whoever computes is gone, or has begun anew. What follows from it `proceed` sees to.
    pub(super) fn lose(&mut self, member_id: &str, cx: &mut Context<'_>) {
        let Some(computation) = self.computation.as_mut() else {
            return;
        };
        if computation.is_given_to(member_id)
            && let Some(member_id) = computation.lose()
        {
            self.tell_passed_over(member_id, PassedOverReason::Gone, cx);
        }
    }

    /// Whoever computes does not do it: somebody else is to.
    pub(super) fn pass_over(&mut self, reason: PassedOverReason, cx: &mut Context<'_>) {
        if let Some(member_id) = self.computation.as_mut().and_then(Computation::pass_over) {
            self.tell_passed_over(member_id, reason, cx);
            self.proceed(cx);
        }
    }

    fn tell_passed_over(&self, member_id: Text, reason: PassedOverReason, cx: &mut Context<'_>) {
        cx.cancel(&self.id, GroupTimer::Computation);
        let Some(computation) = &self.computation else {
            return;
        };
        cx.event(Event::ComputationPassedOver {
            group_id: self.id.clone(),
            assignor: computation.assignor.clone(),
            member_id,
            reason,
        });
    }

    /// The time is over: of whoever computes, or of waiting for somebody who could.
    pub(super) fn on_computation_due(&mut self, cx: &mut Context<'_>) {
        let Some(computation) = &self.computation else {
            return;
        };
        match computation.given() {
            Some(_) if computation.left_ms(cx.now.monotonic_ms) > 0 => self.pass_over(PassedOverReason::Silent, cx),
            Some(_) => self.pass_over(PassedOverReason::TimedOut, cx),
            None => self.fall_back(cx),
        }
    }

    /// Joins wait no longer than this for a target that is computed outside.
    pub(super) fn bound_joins(&self, cx: &mut Context<'_>) {
        if self.computation.is_some() && self.pending.len() > 0 {
            cx.arm_if_absent(&self.id, GroupTimer::JoinWait, JOIN_WAIT_MS);
        }
    }

    pub(super) fn view_computation(&self) -> Option<ComputationView> {
        self.computation.as_ref().map(Computation::view)
    }

    /// First an external assignor whose heartbeat is parked, which does nothing else, then a member whose join is: it has
    /// nothing to read yet, and might be the only one who can.
    fn give_to_parked(&mut self, cx: &mut Context<'_>) -> bool {
        let is_eligible = |member_id: &Text| self.is_eligible(member_id, cx);
        let external = cx
            .externals
            .next_parked(&self.id, |member_id, _| is_eligible(member_id));
        if let Some(member_id) = external.cloned() {
            self.give(member_id.clone(), cx);
            cx.answer_external(&self.id, &member_id, true);
            return true;
        }
        let member_id = self.pending.members().find(|member_id| is_eligible(member_id));
        let Some(member_id) = member_id.cloned() else {
            return false;
        };
        self.give(member_id.clone(), cx);
        self.answer_join(&member_id, cx);
        true
    }

    fn give(&mut self, member_id: Text, cx: &mut Context<'_>) {
        let said_ms = match self.members.get(&member_id) {
            Some(member) => member.said.rebalance_timeout_ms,
            None => {
                let external = cx.externals.get(&self.id, &member_id);
                external.map_or(0, |external| external.rebalance_timeout_ms)
            }
        };
        let Some(computation) = &mut self.computation else {
            return;
        };
        computation.give(member_id.clone(), cx.now.monotonic_ms, said_ms);
        let left_ms = computation.left_ms(cx.now.monotonic_ms);
        let event = Event::ComputationGiven {
            group_id: self.id.clone(),
            group_epoch: self.epoch,
            assignor: computation.assignor.clone(),
            member_id: member_id.clone(),
        };
        cx.externals.chose(&self.id, &member_id);
        // Whoever is well comes for the group's state at its next heartbeat at the latest.
        let due_ms = left_ms.min(self.heard_within_ms(cx.settings));
        cx.arm(&self.id, GroupTimer::Computation, due_ms);
        cx.event(event);
        self.bound_joins(cx);
    }

    /// A server assignor computes, so that no group waits for ever on somebody's program.
    fn fall_back(&mut self, cx: &mut Context<'_>) {
        let reason = match self.has_candidate(cx) {
            true => FallBackReason::NobodyHeard,
            false if self.computation.as_ref().is_some_and(Computation::has_passed_over) => {
                FallBackReason::AllPassedOver
            }
            false => FallBackReason::NoCandidate,
        };
        let Some(computation) = self.end_computation(cx) else {
            return;
        };
        let ballot = self.members.ballot(None, &cx.settings.group_consumer_assignors);
        let to = ballot.server_assignor();
        let error = computation.error();
        cx.event(Event::ComputationFellBack {
            group_id: self.id.clone(),
            assignor: computation.assignor,
            to: to.clone(),
            reason,
        });
        self.compute_here(Computed { assignor: to, error }, cx);
    }

    /// Whether the assignor that is wanted computed the last target, nobody has failed since, and nobody offers it now: it, or this
    /// coordinator, may only be starting anew. Members are not to be moved to and fro for that.
    fn may_be_back(&self, cx: &Context<'_>) -> bool {
        let Some(computation) = &self.computation else {
            return false;
        };
        let name = &computation.assignor;
        let lists = |member: &Member| ClientAssignor::find(&member.said.client_assignors, name).is_some();
        self.computed_by.as_ref() == Some(name)
            && !computation.has_passed_over()
            && !cx.externals.offer(&self.id, name)
            && !self.members.iter().any(lists)
    }

    fn has_candidate(&self, cx: &Context<'_>) -> bool {
        let members = self
            .members
            .iter()
            .filter(|member| !member.said.client_assignors.is_empty());
        let externals = cx.externals.of(&self.id).map(|(id, _)| id);
        let mut all = members.map(|member| &member.id).chain(externals);
        all.any(|member_id| self.is_eligible(member_id, cx))
    }

    /// Whether it may compute what is wanted: it has not had its turn, runs the assignor, and reads what the members say.
    fn is_eligible(&self, member_id: &Text, cx: &Context<'_>) -> bool {
        let Some(computation) = &self.computation else {
            return false;
        };
        computation.may_have(member_id) && self.can_run(member_id, &computation.assignor, cx)
    }

    /// Whether it runs the assignor, and reads what the members say for it.
    pub(super) fn can_run(&self, member_id: &str, assignor: &str, cx: &Context<'_>) -> bool {
        let listed = self.listed(member_id, assignor, cx);
        listed.is_some_and(|listed| self.members.metadata_versions().are_read_by(listed))
    }

    /// The assignor of this name as it is listed by a member, or by an external assignor.
    fn listed<'a>(&'a self, member_id: &str, assignor: &str, cx: &'a Context<'_>) -> Option<&'a ClientAssignor> {
        match self.members.get(member_id) {
            Some(member) => ClientAssignor::find(&member.said.client_assignors, assignor),
            None => cx.externals.get(&self.id, member_id)?.assignor(assignor),
        }
    }

    /// How soon whoever is well is heard, in milliseconds.
    fn heard_within_ms(&self, settings: &Settings) -> i32 {
        let interval_ms = settings.consumer_heartbeat_interval_ms(&self.id);
        interval_ms.saturating_add(HEARTBEAT_GRACE_MS)
    }
}
