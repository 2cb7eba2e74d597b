//! A generation whose assignment an external assignor computes: members wait for it in their syncs, and not for long.

use super::assign::Placement;
use super::draft::{Draft, Plan};
use super::{Cause, ClassicGroup};
use crate::coordinator::assignor::ClassicAssignor;
use crate::coordinator::client_assignor::{Asking, Computable, Deliverable, Delivery, Outside, Prepared};
use crate::coordinator::context::Context;
use crate::coordinator::event::{EpochReason, Event, RebalanceReason};
use crate::coordinator::request::Text;
use crate::coordinator::settings::Settings;

/// How long members wait for an assignment at most, in milliseconds. Java clients give a sync up after 30 seconds, librdkafka soon
/// after its session timeout, and under an eager protocol nobody reads anything meanwhile.
const WAIT_LONGEST_MS: i32 = 20_000;

/// What is to be assigned.
#[derive(Debug)]
pub(super) struct Undecided {
    pub(super) draft: Draft,
    /// Takes the place of an external assignor that does not deliver.
    pub(super) fallback: ClassicAssignor,
}

impl Computable for ClassicGroup {
    fn group_id(&self) -> &Text {
        &self.id
    }

    fn next_epoch(&self) -> i32 {
        self.generation_id
    }

    fn has_members(&self) -> bool {
        !self.members.is_empty()
    }

    fn outside(&self) -> &Outside {
        &self.outside
    }

    fn outside_mut(&mut self) -> &mut Outside {
        &mut self.outside
    }

    fn wanted_outside(&self, settings: &Settings) -> Option<Text> {
        let rule = settings.classic_assignment(&self.id).filter(|_| self.is_of_consumers());
        rule?.external().cloned()
    }

    fn was_computed_by(&self, assignor: &str) -> bool {
        self.assigned_by() == Some(assignor)
    }

    /// A restart forgets who assigned, and is no reason to move anything.
    fn was_computed_otherwise(&self, assignor: &str) -> bool {
        self.assigned_by().is_some_and(|by| by != assignor)
    }

    fn fall_back_assignor(&self, _settings: &Settings) -> Text {
        let fallback = self.undecided.as_ref().map(|undecided| undecided.fallback);
        fallback.map_or("", ClassicAssignor::name).into()
    }

    fn compute_here(&mut self, _assignor: Text, _error: i8, cx: &mut Context<'_>) {
        if let Some(Undecided { draft, fallback }) = self.undecided.take() {
            self.place_here(fallback, draft, cx);
            self.on_topics(cx);
        }
    }

    /// Less than any of them takes to give the coordinator up.
    fn patience_ms(&self) -> Option<i32> {
        let members = self.members.iter();
        let bounds = members.map(|member| member.session_timeout_ms.min(member.rebalance_timeout_ms / 2));
        bounds.chain([WAIT_LONGEST_MS]).min()
    }

    fn heed(&mut self, reason: EpochReason, member_id: &Text, cx: &mut Context<'_>) {
        if !self.is_assigned_for_here() {
            // What is under way ends first, or everybody would wait for one assignment after the other.
            return self.ask_later(reason, member_id, cx);
        }
        if let Some(assigned) = &mut self.assigned {
            assigned.promise = None;
        }
        let reason = match reason {
            EpochReason::AssignorChanged => RebalanceReason::AssignorChanged,
            _ => RebalanceReason::AssignmentAsked,
        };
        self.prepare_rebalance(Cause::of(reason, member_id), cx);
    }

    fn is_asked_in_vain(&self) -> bool {
        !self.is_assigned_for_here() && !self.outside.is_under_way()
    }
}

impl Deliverable for ClassicGroup {
    fn prepared(&self, _assignor: &str, _cx: &Context<'_>) -> Prepared {
        let draft = self.undecided.as_ref().map(|undecided| &undecided.draft);
        draft
            .map(|draft| draft.prepared(self.generation_id))
            .unwrap_or_default()
    }

    fn take_delivery(&mut self, delivery: Delivery, cx: &mut Context<'_>) {
        let Some(Undecided { draft, .. }) = self.undecided.take() else {
            return;
        };
        let Delivery {
            assignor,
            member_id,
            installed,
            snapshot,
            took_ms,
        } = delivery;
        let tell = |group: &Self, assignor, plan: &Plan| Event::ComputationInstalled {
            group_id: group.id.clone(),
            group_epoch: snapshot.epoch,
            assignor,
            member_id,
            took_ms,
            members: plan.assignments.len(),
            partitions_moved: plan.moved,
            partitions_withheld: Some(plan.withheld),
        };
        let targets = draft.targets(&installed);
        self.place(assignor, Placement { draft, targets }, tell, cx);
        self.on_topics(cx);
    }
}

impl ClassicGroup {
    /// The assignor that assigned last, as far as that is known.
    fn assigned_by(&self) -> Option<&str> {
        self.assigned.as_ref()?.assignor.as_deref()
    }
}
