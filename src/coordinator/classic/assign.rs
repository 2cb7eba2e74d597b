//! Groups of consumers that the coordinator assigns for, by a rule of the configuration: no client is their leader.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::draft::{Applicant, Draft, Plan, Unreadable};
use super::outside::Undecided;
use super::{Cause, ClassicGroup, State, Subscription};
use crate::coordinator::assignor::ClassicAssignor;
use crate::coordinator::client_assignor::{Computable, ComputedOutside};
use crate::coordinator::context::Context;
use crate::coordinator::event::{Event, LeaderReason, RebalanceReason};
use crate::coordinator::partitions::Partitions;
use crate::coordinator::request::Text;
use crate::coordinator::timer::GroupTimer;
use crate::coordinator::topics::Topics;

/// How the group was assigned for here last.
#[derive(Debug)]
pub(super) struct Assigned {
    /// `None` where a restart has forgotten it.
    pub(super) assignor: Option<Text>,
    /// The subscribed topics that there were, with their numbers of partitions.
    pub(super) topics: BTreeMap<Text, i32>,
    /// Partitions that nobody has until their owners have given them up.
    pub(super) withheld: usize,
    /// Of which static members the former selves may be such owners.
    pub(super) returned: BTreeSet<Text>,
    /// What they are withheld for, where an external assignor is asked.
    pub(super) promise: Option<Placement>,
}

/// What each member is to have in the end.
#[derive(Debug)]
pub(super) struct Placement {
    pub(super) draft: Draft,
    /// In the order of the draft's members.
    pub(super) targets: Vec<Arc<Partitions>>,
}

/// Why a leader is to assign.
struct LeftToLeader {
    reason: LeaderReason,
    detail: Text,
}

impl ClassicGroup {
    /// Assigns for a generation that begins, or has an external assignor asked to, where a rule says so and its members can be
    /// understood; else they go on with a leader.
    pub(super) fn assign_if_asked_to(&mut self, generation_before: i32, cx: &mut Context<'_>) {
        let last = self.assigned.take();
        let settings = cx.settings;
        let Some(rule) = settings.classic_assignment(&self.id).filter(|_| self.is_of_consumers()) else {
            return;
        };
        let (protocol, draft) = match self.draft(generation_before, cx.topics) {
            Ok(understood) => understood,
            Err(left) => return self.leave_to_leader(left, cx),
        };
        self.leader = None;
        let Some(external) = rule.external() else {
            let named = rule.assignor.as_deref().and_then(ClassicAssignor::by_name);
            return self.place_here(named.unwrap_or(protocol), draft, cx);
        };
        if let Some((assignor, targets)) = last.as_ref().and_then(|last| last.promised(&draft)) {
            return self.place(assignor, Placement { draft, targets }, assigned_here, cx);
        }
        self.assigned = last;
        self.undecided = Some(Undecided {
            draft,
            fallback: rule.fallback.unwrap_or(protocol),
        });
        self.want_computation(external.clone(), cx);
    }

    fn leave_to_leader(&self, left: LeftToLeader, cx: &mut Context<'_>) {
        cx.event(Event::AssignmentLeftToLeader {
            group_id: self.id.clone(),
            generation_id: self.generation_id,
            leader: self.leader.clone().unwrap_or_else(|| "".into()),
            reason: left.reason,
            detail: left.detail,
        });
    }

    /// What is to be placed, and the assignor that the members agree on.
    fn draft(&self, generation_before: i32, topics: &Topics) -> Result<(ClassicAssignor, Draft), LeftToLeader> {
        let selected = self.protocol_name.as_deref().unwrap_or_default();
        let protocol = ClassicAssignor::by_name(selected).ok_or_else(|| LeftToLeader {
            reason: LeaderReason::Protocol,
            detail: selected.into(),
        })?;
        let draft = Draft::new(protocol, self.applicants(selected), generation_before, topics);
        let draft = draft.map_err(|Unreadable(member_id)| LeftToLeader {
            reason: LeaderReason::Metadata,
            detail: member_id,
        })?;
        Ok((protocol, draft))
    }

    fn applicants(&self, protocol: &str) -> Vec<Applicant> {
        let members = self.members.iter();
        members
            .map(|member| Applicant {
                id: member.id.clone(),
                instance_id: member.instance_id.clone(),
                metadata: member.metadata(protocol),
                last: member.assignment.clone(),
                has_joined: member.is_parked_in_join(),
                has_former: member.is_unheard,
            })
            .collect()
    }

    pub(super) fn place_here(&mut self, assignor: ClassicAssignor, draft: Draft, cx: &mut Context<'_>) {
        let targets = draft.place(assignor);
        self.place(assignor.name().into(), Placement { draft, targets }, assigned_here, cx);
    }

    /// The generation is durable with its assignment, and syncs find it. `tell` makes the event of it.
    pub(super) fn place(
        &mut self,
        assignor: Text,
        placement: Placement,
        tell: impl FnOnce(&Self, Text, &Plan) -> Event,
        cx: &mut Context<'_>,
    ) {
        let is_heard = |member_id: &Text| self.members.get(member_id).is_none_or(|member| !member.is_unheard);
        let plan = placement.draft.finish(&placement.targets, is_heard);
        cx.event(tell(self, assignor.clone(), &plan));
        if plan.withheld > 0 {
            // Who has to give something up joins again by itself. One that does not must not keep it from the others for ever.
            let timeout_ms = self.members.rebalance_timeout_ms();
            cx.arm(&self.id, GroupTimer::Assignment, timeout_ms);
        }
        self.install_assignment(plan.assignments, cx);
        let is_promise = plan.withheld > 0 && self.wanted_outside(cx.settings).is_some();
        self.assigned = Some(Assigned {
            assignor: Some(assignor),
            topics: placement.draft.topics.clone(),
            withheld: plan.withheld,
            returned: plan.returned,
            promise: is_promise.then_some(placement),
        });
    }

    /// Whether the group is assigned for here: no client is to lead.
    pub(super) fn is_assigned_for_here(&self) -> bool {
        self.state == State::Stable && self.leader.is_none()
    }

    pub(super) fn selected_metadata(&self, member_id: &str) -> Bytes {
        let protocol = self.protocol_name.as_deref().unwrap_or_default();
        let member = self.members.get(member_id);
        member.map(|member| member.metadata(protocol)).unwrap_or_default()
    }

    /// Whether the assignment can stay although this static member has begun anew. A leader would see what is to be done about it.
    pub(super) fn suits_returning(&self, member_id: &str, metadata_before: &Bytes) -> bool {
        if !self.is_assigned_for_here() {
            return true;
        }
        let topics = |metadata: &Bytes| Subscription::of(std::iter::once(metadata.clone()));
        let said = topics(&self.selected_metadata(member_id));
        let waits_for_others = self.assigned.as_ref().is_some_and(|assigned| assigned.withheld > 0);
        said != Subscription::Unknown && said == topics(metadata_before) && !waits_for_others
    }

    /// A static member was heard under its new id: nobody goes on under the one before.
    pub(super) fn hear(&mut self, member_id: &str) {
        if let Some(member) = self.members.get_mut(member_id) {
            member.is_unheard = false;
        }
    }

    /// What was withheld for a former self is given in the next round once it is known to be gone, and everybody has heard of this one.
    pub(super) fn give_what_is_free(&mut self, cx: &mut Context<'_>) {
        let Some(assigned) = self.assigned.as_ref().filter(|_| self.pending_syncs.is_empty()) else {
            return;
        };
        let is_heard = |member_id: &&Text| self.members.get(member_id).is_some_and(|member| !member.is_unheard);
        if let Some(member_id) = assigned.returned.iter().find(is_heard).cloned() {
            self.prepare_rebalance(Cause::of(RebalanceReason::PartitionsWithheld, &member_id), cx);
        }
    }

    /// Nobody has had what was withheld for as long as a rebalance may take.
    pub(super) fn on_withheld_for_long(&mut self, cx: &mut Context<'_>) {
        if !self.is_assigned_for_here() {
            return;
        }
        self.prepare_rebalance(Cause::of_group(RebalanceReason::PartitionsWithheld), cx);
    }
}

impl Assigned {
    /// What has been decided already of such a group, and by whom: the round that follows when members have given up what moves
    /// is to end in what the first one was for, and nobody is asked again.
    fn promised(&self, draft: &Draft) -> Option<(Text, Vec<Arc<Partitions>>)> {
        let promise = self
            .promise
            .as_ref()
            .filter(|promise| promise.draft.is_of_the_same(draft))?;
        Some((self.assignor.clone()?, promise.targets.clone()))
    }
}

fn assigned_here(group: &ClassicGroup, assignor: Text, plan: &Plan) -> Event {
    Event::ClassicAssigned {
        group_id: group.id.clone(),
        generation_id: group.generation_id,
        assignor,
        members: plan.assignments.len(),
        partitions: plan.partitions,
        partitions_moved: plan.moved,
        partitions_withheld: plan.withheld,
    }
}
