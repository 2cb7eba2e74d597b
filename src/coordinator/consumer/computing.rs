//! A target that is computed outside: what the group has to do with it. The group goes on with its last target meanwhile.

use super::ConsumerGroup;
use super::members::Member;
use super::target::Computed;
use crate::coordinator::client_assignor::{Choice, Computable, Outside, Participant};
use crate::coordinator::context::Context;
use crate::coordinator::event::EpochReason;
use crate::coordinator::request::{ClientAssignor, Text};
use crate::coordinator::settings::Settings;
use crate::coordinator::timer::GroupTimer;

/// How long a join waits for a target that is computed outside, in milliseconds. Then it is answered without partitions.
const JOIN_WAIT_MS: i32 = 3_000;

impl ConsumerGroup {
    /// The assignor of the next target.
    pub(super) fn choice(&self, settings: &Settings) -> Choice {
        let always = settings.assignor_by_rule(&self.id);
        let ballot = self.members.ballot(always, &settings.group_consumer_assignors);
        ballot.choose(self.members.voters())
    }
}

impl Computable for ConsumerGroup {
    fn group_id(&self) -> &Text {
        &self.id
    }

    fn next_epoch(&self) -> i32 {
        self.epoch
    }

    fn has_members(&self) -> bool {
        !self.is_empty()
    }

    fn outside(&self) -> &Outside {
        &self.outside
    }

    fn outside_mut(&mut self) -> &mut Outside {
        &mut self.outside
    }

    fn wanted_outside(&self, settings: &Settings) -> Option<Text> {
        match self.choice(settings) {
            Choice::Client(wanted) => Some(wanted),
            Choice::Server(_) => None,
        }
    }

    fn was_computed_by(&self, assignor: &str) -> bool {
        self.computed_by.as_deref() == Some(assignor)
    }

    fn fall_back_assignor(&self, settings: &Settings) -> Text {
        let ballot = self.members.ballot(None, &settings.group_consumer_assignors);
        ballot.server_assignor()
    }

    fn compute_here(&mut self, assignor: Text, error: i8, cx: &mut Context<'_>) {
        self.compute_target_by(Computed { assignor, error }, cx);
    }

    fn heed(&mut self, reason: EpochReason, member_id: &Text, cx: &mut Context<'_>) {
        self.bump(reason, Some(member_id), cx);
        self.plan_target(cx);
    }

    fn is_asked_in_vain(&self) -> bool {
        self.is_empty() || (self.epoch > self.target_epoch && !self.outside.is_under_way())
    }

    fn participant(&self, member_id: &str) -> Option<Participant<'_>> {
        self.members.get(member_id).map(participant)
    }

    fn participants(&self) -> Box<dyn Iterator<Item = Participant<'_>> + '_> {
        Box::new(self.members.iter().map(participant))
    }

    fn waiting_members(&self) -> Box<dyn Iterator<Item = &Text> + '_> {
        Box::new(self.pending.members())
    }

    fn answer_waiting(&mut self, member_id: &Text, cx: &mut Context<'_>) {
        self.answer_join(member_id, cx);
    }

    /// Joins wait no longer than this for a target that is computed outside.
    fn bound_waiting(&self, cx: &mut Context<'_>) {
        if self.outside.is_computing() && self.pending.len() > 0 {
            cx.arm_if_absent(&self.id, GroupTimer::JoinWait, JOIN_WAIT_MS);
        }
    }

    fn reads_members(&self, listed: &ClientAssignor) -> bool {
        self.members.metadata_versions().are_read_by(listed)
    }
}

fn participant(member: &Member) -> Participant<'_> {
    Participant {
        member_id: &member.id,
        member_epoch: member.current.member_epoch,
        rebalance_timeout_ms: member.said.rebalance_timeout_ms,
        assignors: &member.said.client_assignors,
    }
}
