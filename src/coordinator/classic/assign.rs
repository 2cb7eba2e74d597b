//! Groups of consumers that the coordinator assigns for, by a rule of the configuration: no client is their leader.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::draft::{Applicant, Draft, Plan, Unreadable};
use super::{Cause, ClassicGroup, State, Subscription};
use crate::coordinator::assignor::ClassicAssignor;
use crate::coordinator::consumer_protocol::CONSUMER;
use crate::coordinator::context::Context;
use crate::coordinator::event::{Event, LeaderReason, RebalanceReason};
use crate::coordinator::request::Text;
use crate::coordinator::settings::ClassicAssignmentRule;
use crate::coordinator::timer::GroupTimer;

/// How the group was assigned for here last.
#[derive(Debug)]
pub(super) struct Assigned {
    /// `None` where a restart has forgotten it.
    pub(super) assignor: Option<Text>,
    /// The subscribed topics that there were, with their numbers of partitions.
    pub(super) topics: BTreeMap<Text, i32>,
    /// Partitions that nobody has until their owners have given them up.
    pub(super) withheld: usize,
}

/// Why a leader is to assign.
struct LeftToLeader {
    reason: LeaderReason,
    detail: Text,
}

impl ClassicGroup {
    /// Assigns for a generation that begins, where a rule says so and its members can be understood; else they go on with a leader.
    pub(super) fn assign_if_asked_to(&mut self, generation_before: i32, cx: &mut Context<'_>) {
        self.assigned = None;
        if self.protocol_type.as_deref() != Some(CONSUMER) {
            return;
        }
        let Some(rule) = cx.settings.classic_assignment(&self.id) else {
            return;
        };
        match self.plan(rule, generation_before, cx) {
            Ok((assignor, plan)) => self.install_plan(assignor, plan, cx),
            Err(LeftToLeader { reason, detail }) => cx.event(Event::AssignmentLeftToLeader {
                group_id: self.id.clone(),
                generation_id: self.generation_id,
                leader: self.leader.clone().unwrap_or_else(|| "".into()),
                reason,
                detail,
            }),
        }
    }

    fn plan(
        &self,
        rule: &ClassicAssignmentRule,
        generation_before: i32,
        cx: &Context<'_>,
    ) -> Result<(ClassicAssignor, Plan), LeftToLeader> {
        let selected = self.protocol_name.as_deref().unwrap_or_default();
        let not_ours = || LeftToLeader {
            reason: LeaderReason::Protocol,
            detail: selected.into(),
        };
        let protocol = ClassicAssignor::by_name(selected).ok_or_else(not_ours)?;
        let asked_for = rule.assignor.as_deref().and_then(ClassicAssignor::by_name);
        let assignor = asked_for.unwrap_or(protocol);
        let draft = Draft::new(protocol, self.applicants(selected), generation_before, cx.topics);
        let draft = draft.map_err(|Unreadable(member_id)| LeftToLeader {
            reason: LeaderReason::Metadata,
            detail: member_id,
        })?;
        // Only topics of a known size are in the draft.
        let targets = assignor.assign(&draft.group).map_err(|_| not_ours())?;
        Ok((assignor, draft.finish(&targets)))
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
            })
            .collect()
    }

    /// The generation is durable with its assignment, and syncs find it.
    fn install_plan(&mut self, assignor: ClassicAssignor, plan: Plan, cx: &mut Context<'_>) {
        let assignor = Text::from(assignor.name());
        self.leader = None;
        cx.event(Event::ClassicAssigned {
            group_id: self.id.clone(),
            generation_id: self.generation_id,
            assignor: assignor.clone(),
            members: plan.assignments.len(),
            partitions: plan.partitions,
            partitions_moved: plan.moved,
            partitions_withheld: plan.withheld,
        });
        if plan.withheld > 0 {
            // Who has to give something up joins again by itself. One that does not must not keep it from the others for ever.
            let timeout_ms = self.members.rebalance_timeout_ms();
            cx.arm(&self.id, GroupTimer::Assignment, timeout_ms);
        }
        self.install_assignment(plan.assignments, cx);
        self.assigned = Some(Assigned {
            assignor: Some(assignor),
            topics: self.subscribed(cx.topics),
            withheld: plan.withheld,
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

    /// Nobody has had what was withheld for as long as a rebalance may take.
    pub(super) fn on_withheld_for_long(&mut self, cx: &mut Context<'_>) {
        if !self.is_assigned_for_here() {
            return;
        }
        self.prepare_rebalance(Cause::of_group(RebalanceReason::PartitionsWithheld), cx);
    }
}
