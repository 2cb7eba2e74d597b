//! A group whose next assignment is computed outside of the coordinator: who computes it, and what if nobody does. See
//! [`Computation`] for the states.

use super::asking::Asked;
use super::computation::Computation;
use crate::coordinator::context::Context;
use crate::coordinator::event::{EpochReason, Event, FallBackReason, PassedOverReason};
use crate::coordinator::request::{ClientAssignor, ComputationView, Text};
use crate::coordinator::settings::Settings;
use crate::coordinator::timer::GroupTimer;

/// How much later than its heartbeat interval somebody is held to be silent, in milliseconds.
const HEARTBEAT_GRACE_MS: i32 = 1_000;

/// What a group keeps of it.
#[derive(Debug, Default)]
pub(in crate::coordinator) struct Outside {
    /// Of the next assignment.
    pub(super) computation: Option<Computation>,
    pub(super) asked: Asked,
}

impl Outside {
    /// Whether somebody computes who has been told what from.
    pub(in crate::coordinator) fn is_under_way(&self) -> bool {
        self.computation.as_ref().is_some_and(Computation::has_snapshot)
    }

    pub(in crate::coordinator) fn is_computing(&self) -> bool {
        self.computation.is_some()
    }

    pub(in crate::coordinator) fn view(&self) -> Option<ComputationView> {
        self.computation.as_ref().map(Computation::view)
    }
}

/// A member of a group that may compute the group's assignment itself.
#[derive(Debug, Clone, Copy)]
pub(in crate::coordinator) struct Participant<'a> {
    pub(in crate::coordinator) member_id: &'a Text,
    pub(in crate::coordinator) member_epoch: i32,
    pub(in crate::coordinator) rebalance_timeout_ms: i32,
    /// None, of one that computes nothing.
    pub(in crate::coordinator) assignors: &'a [ClientAssignor],
}

/// A group as it is seen by what decides who computes. Where a method has a body, it is that of a group for which only external
/// assignors compute.
pub(in crate::coordinator) trait Computable {
    fn group_id(&self) -> &Text;

    /// What the next assignment is computed for.
    fn next_epoch(&self) -> i32;

    fn has_members(&self) -> bool;

    fn outside(&self) -> &Outside;

    fn outside_mut(&mut self) -> &mut Outside;

    /// The assignor that the group is to have, if it is none of the coordinator's own.
    fn wanted_outside(&self, settings: &Settings) -> Option<Text>;

    /// Whether the present assignment is of this assignor, as far as that is known.
    fn was_computed_by(&self, assignor: &str) -> bool;

    /// Whether it certainly is another's.
    fn was_computed_otherwise(&self, assignor: &str) -> bool {
        !self.was_computed_by(assignor)
    }

    /// The assignor of the coordinator's own that takes the place of one outside.
    fn fall_back_assignor(&self, settings: &Settings) -> Text;

    /// Lets that one compute. `error` is what the one outside said, 0 for nothing.
    fn compute_here(&mut self, assignor: Text, error: i8, cx: &mut Context<'_>);

    /// How long its members can wait for the next assignment, in milliseconds; `None` where they go on meanwhile.
    fn patience_ms(&self) -> Option<i32> {
        None
    }

    /// What a wish for a new assignment begins.
    fn heed(&mut self, reason: EpochReason, member_id: &Text, cx: &mut Context<'_>);

    /// Whether a wish changes nothing, since the next assignment is still to be computed from what is said now.
    fn is_asked_in_vain(&self) -> bool;

    fn participant(&self, _member_id: &str) -> Option<Participant<'_>> {
        None
    }

    fn participants(&self) -> Box<dyn Iterator<Item = Participant<'_>> + '_> {
        Box::new(std::iter::empty())
    }

    /// Members whose joins wait for the assignment, and so would hear at once that they are to compute it.
    fn waiting_members(&self) -> Box<dyn Iterator<Item = &Text> + '_> {
        Box::new(std::iter::empty())
    }

    /// Answers the join of such a member.
    fn answer_waiting(&mut self, _member_id: &Text, _cx: &mut Context<'_>) {}

    /// Sees to it that no join waits for long.
    fn bound_waiting(&self, _cx: &mut Context<'_>) {}

    /// Whether this one reads all that members say for an assignor of its name.
    fn reads_members(&self, _listed: &ClientAssignor) -> bool {
        true
    }
}

/// What follows from it, for groups of every kind.
pub(in crate::coordinator) trait ComputedOutside: Computable {
    /// Begins a computation, unless it is under way: then what changed is for the next one.
    fn want_computation(&mut self, assignor: Text, cx: &mut Context<'_>) {
        let wanted = self.outside().computation.as_ref();
        if wanted.is_none_or(|computation| computation.assignor != assignor) {
            self.end_computation(cx);
            cx.event(Event::ComputationWanted {
                group_id: self.group_id().clone(),
                group_epoch: self.next_epoch(),
                assignor: assignor.clone(),
            });
            let computation = Computation::wanted(assignor, cx.now.monotonic_ms, self.patience_ms());
            self.outside_mut().computation = Some(computation);
            cx.externals.want(self.group_id());
        }
        self.proceed(cx);
    }

    /// Ends a computation that may be under way, and gives it.
    fn end_computation(&mut self, cx: &mut Context<'_>) -> Option<Computation> {
        let ended = self.outside_mut().computation.take();
        if ended.is_some() {
            cx.cancel(self.group_id(), GroupTimer::Computation);
            cx.externals.unwant(self.group_id());
        }
        ended
    }

    /// Gives a computation that nobody has to somebody who waits for one, waits for others to be heard, or falls back.
    fn proceed(&mut self, cx: &mut Context<'_>) {
        let Some(computation) = &self.outside().computation else {
            return;
        };
        if let Some(given) = computation.given() {
            // In whatever versions: those are looked at when it asks.
            if self.listed(&given.member_id, &computation.assignor, cx).is_none() {
                self.pass_over(PassedOverReason::Unfit, cx);
            }
            return;
        }
        let patience_ms = computation.patience_ms(cx.now.monotonic_ms);
        if patience_ms == 0 {
            return self.fall_back(cx);
        }
        if self.give_to_waiting(cx) {
            return;
        }
        if !self.has_candidate(cx) && !self.may_be_back(cx) {
            return self.fall_back(cx);
        }
        let wait_ms = self.heard_within_ms(cx.settings).min(patience_ms);
        cx.arm_if_absent(self.group_id(), GroupTimer::Computation, wait_ms);
        self.bound_waiting(cx);
    }

    /// Whether its member is to compute the next assignment, which a heartbeat is answered with. An eligible one that is heard
    /// while nobody has the computation gets it.
    fn offer(&mut self, member_id: &Text, cx: &mut Context<'_>) -> bool {
        let Some(computation) = &self.outside().computation else {
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
    fn lose(&mut self, member_id: &str, cx: &mut Context<'_>) {
        let Some(computation) = self.outside_mut().computation.as_mut() else {
            return;
        };
        if computation.is_given_to(member_id)
            && let Some(member_id) = computation.lose()
        {
            self.tell_passed_over(member_id, PassedOverReason::Gone, cx);
        }
    }

    /// Whoever computes does not do it: somebody else is to.
    fn pass_over(&mut self, reason: PassedOverReason, cx: &mut Context<'_>) {
        let computation = self.outside_mut().computation.as_mut();
        if let Some(member_id) = computation.and_then(Computation::pass_over) {
            self.tell_passed_over(member_id, reason, cx);
            self.proceed(cx);
        }
    }

    fn tell_passed_over(&self, member_id: Text, reason: PassedOverReason, cx: &mut Context<'_>) {
        cx.cancel(self.group_id(), GroupTimer::Computation);
        let Some(computation) = &self.outside().computation else {
            return;
        };
        cx.event(Event::ComputationPassedOver {
            group_id: self.group_id().clone(),
            assignor: computation.assignor.clone(),
            member_id,
            reason,
        });
    }

    /// The time is over: of whoever computes, or of waiting for somebody who could.
    fn on_computation_due(&mut self, cx: &mut Context<'_>) {
        let Some(computation) = &self.outside().computation else {
            return;
        };
        match computation.given() {
            Some(_) if computation.left_ms(cx.now.monotonic_ms) > 0 => self.pass_over(PassedOverReason::Silent, cx),
            Some(_) => self.pass_over(PassedOverReason::TimedOut, cx),
            None => self.fall_back(cx),
        }
    }

    /// Whether it is at computing the next assignment.
    fn is_computed_by(&self, member_id: &str) -> bool {
        let computation = self.outside().computation.as_ref();
        computation.is_some_and(|computation| computation.is_given_to(member_id))
    }

    /// First an external assignor whose heartbeat is parked, which does nothing else, then a member whose join is: it has
    /// nothing to read yet, and might be the only one who can.
    fn give_to_waiting(&mut self, cx: &mut Context<'_>) -> bool {
        let is_eligible = |member_id: &Text| self.is_eligible(member_id, cx);
        let external = cx
            .externals
            .next_parked(self.group_id(), |member_id, _| is_eligible(member_id));
        if let Some(member_id) = external.cloned() {
            self.give(member_id.clone(), cx);
            cx.tell_external(self.group_id(), &member_id);
            return true;
        }
        let member_id = self.waiting_members().find(|member_id| is_eligible(member_id)).cloned();
        let Some(member_id) = member_id else {
            return false;
        };
        self.give(member_id.clone(), cx);
        self.answer_waiting(&member_id, cx);
        true
    }

    fn give(&mut self, member_id: Text, cx: &mut Context<'_>) {
        let said_ms = match self.participant(&member_id) {
            Some(participant) => participant.rebalance_timeout_ms,
            None => {
                let external = cx.externals.get(self.group_id(), &member_id);
                external.map_or(0, |external| external.rebalance_timeout_ms)
            }
        };
        let Some(computation) = &mut self.outside_mut().computation else {
            return;
        };
        computation.give(member_id.clone(), cx.now.monotonic_ms, said_ms);
        let left_ms = computation.left_ms(cx.now.monotonic_ms);
        let assignor = computation.assignor.clone();
        cx.externals.chose(self.group_id(), &member_id);
        // Whoever is well comes for the group's state at its next heartbeat at the latest.
        let due_ms = left_ms.min(self.heard_within_ms(cx.settings));
        cx.arm(self.group_id(), GroupTimer::Computation, due_ms);
        cx.event(Event::ComputationGiven {
            group_id: self.group_id().clone(),
            group_epoch: self.next_epoch(),
            assignor,
            member_id,
        });
        self.bound_waiting(cx);
    }

    /// An assignor of the coordinator's own computes, so that no group waits for ever on somebody's program.
    fn fall_back(&mut self, cx: &mut Context<'_>) {
        let has_candidate = self.has_candidate(cx);
        let Some(computation) = self.end_computation(cx) else {
            return;
        };
        let reason = match has_candidate {
            true if computation.patience_ms(cx.now.monotonic_ms) == 0 => FallBackReason::TimeOver,
            true => FallBackReason::NobodyHeard,
            false if computation.has_passed_over() => FallBackReason::AllPassedOver,
            false => FallBackReason::NoCandidate,
        };
        let to = self.fall_back_assignor(cx.settings);
        let error = computation.error();
        cx.event(Event::ComputationFellBack {
            group_id: self.group_id().clone(),
            assignor: computation.assignor,
            to: to.clone(),
            reason,
        });
        self.compute_here(to, error, cx);
    }

    /// Whether the assignor that is wanted computed the last assignment, nobody has failed since, and nobody offers it now: it, or
    /// this coordinator, may only be starting anew. Members are not to be moved to and fro for that.
    fn may_be_back(&self, cx: &Context<'_>) -> bool {
        let Some(computation) = &self.outside().computation else {
            return false;
        };
        let name = &computation.assignor;
        let lists = |participant: Participant<'_>| ClientAssignor::find(participant.assignors, name).is_some();
        self.was_computed_by(name)
            && !computation.has_passed_over()
            && !cx.externals.offer(self.group_id(), name)
            && !self.participants().any(lists)
    }

    fn has_candidate(&self, cx: &Context<'_>) -> bool {
        let members = self.participants();
        let members = members.filter(|participant| !participant.assignors.is_empty());
        let externals = cx.externals.of(self.group_id()).map(|(id, _)| id);
        let mut all = members.map(|participant| participant.member_id).chain(externals);
        all.any(|member_id| self.is_eligible(member_id, cx))
    }

    /// Whether it may compute what is wanted: it has not had its turn, runs the assignor, and reads what the members say.
    fn is_eligible(&self, member_id: &Text, cx: &Context<'_>) -> bool {
        let Some(computation) = &self.outside().computation else {
            return false;
        };
        computation.may_have(member_id) && self.can_run(member_id, &computation.assignor, cx)
    }

    /// Whether it runs the assignor, and reads what the members say for it.
    fn can_run(&self, member_id: &str, assignor: &str, cx: &Context<'_>) -> bool {
        let listed = self.listed(member_id, assignor, cx);
        listed.is_some_and(|listed| self.reads_members(listed))
    }

    /// The assignor of this name as it is listed by a member, or by an external assignor.
    fn listed<'a>(&'a self, member_id: &str, assignor: &str, cx: &'a Context<'_>) -> Option<&'a ClientAssignor> {
        match self.participant(member_id) {
            Some(participant) => ClientAssignor::find(participant.assignors, assignor),
            None => cx.externals.get(self.group_id(), member_id)?.assignor(assignor),
        }
    }

    /// How soon whoever is well is heard, in milliseconds.
    fn heard_within_ms(&self, settings: &Settings) -> i32 {
        let interval_ms = settings.consumer_heartbeat_interval_ms(self.group_id());
        interval_ms.saturating_add(HEARTBEAT_GRACE_MS)
    }
}

impl<G: Computable + ?Sized> ComputedOutside for G {}
