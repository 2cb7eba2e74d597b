//! The target assignment: when it is computed, and the joins that wait for it.
//!
//! Inputs that change together are computed together: a computation waits for a moment of quiet, and keeps its interval to the
//! last one (KIP-1263). With an interval of 0 every change is computed at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::ConsumerGroup;
use super::refusal::heartbeat_refusal;
use crate::coordinator::assignor::{Assignor, AssignorError, GroupSpec, MemberSpec};
use crate::coordinator::client_assignor::{Choice, Computable, ComputedOutside};
use crate::coordinator::context::Context;
use crate::coordinator::event::Event;
use crate::coordinator::group_config::GroupSetting;
use crate::coordinator::input::Ticket;
use crate::coordinator::partitions::Partitions;
use crate::coordinator::record::{ConsumerGroupRecord, TargetAssignmentValue, TargetMemberValue};
use crate::coordinator::request::Text;
use crate::coordinator::settings::Settings;
use crate::coordinator::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

/// How long nothing has to change before a target is computed, in milliseconds.
const QUIET_MS: u64 = 20;
/// How long changes may put a computation off, in milliseconds. Whoever is told of partitions that later go to others gives them
/// up with its next heartbeat, seconds later: a large group that comes within this time settles without that.
const LONGEST_WAIT_MS: u64 = 500;
/// As many intervals are the longest wait where the interval is short.
const LONGEST_WAIT_INTERVALS: u64 = 5;
/// After how long a computation that failed is tried again, in milliseconds.
const RETRY_MS: i32 = 5_000;

/// A computation that is to come, and who waits for it.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Joins by member id.
    joins: BTreeMap<Text, Ticket>,
    /// Monotonic clock: the first change that the last target does not know.
    changed_ms: Option<u64>,
    /// Monotonic clock: when the last target was computed.
    computed_ms: Option<u64>,
}

impl Pending {
    pub(super) fn tickets(&self) -> impl Iterator<Item = Ticket> {
        self.joins.values().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.joins.len()
    }

    pub(super) fn has(&self, member_id: &str) -> bool {
        self.joins.contains_key(member_id)
    }

    /// Those whose joins wait, by id.
    pub(super) fn members(&self) -> impl Iterator<Item = &Text> {
        self.joins.keys()
    }

    /// A target was computed.
    pub(super) fn computed(&mut self, now_ms: u64) {
        self.computed_ms = Some(now_ms);
    }
}

/// How a target came about.
#[derive(Debug, Clone)]
pub(super) struct Computed {
    pub(super) assignor: Text,
    /// What the client-side assignor said in whose place this one computed; 0 for nothing.
    pub(super) error: i8,
}

impl ConsumerGroup {
    /// Sees to it that a target is computed for what changed: now, or soon.
    pub(super) fn plan_target(&mut self, cx: &mut Context<'_>) {
        if self.epoch <= self.target_epoch || !cx.has_topics {
            return;
        }
        let now_ms = cx.now.monotonic_ms;
        let interval_ms = self.assignment_interval_ms(cx.settings);
        if interval_ms == 0 || self.is_empty() {
            return self.compute_target(cx);
        }
        let changed_ms = *self.pending.changed_ms.get_or_insert(now_ms);
        let quiet_ms = now_ms.saturating_add(QUIET_MS.min(interval_ms));
        let longest_ms =
            changed_ms.saturating_add(LONGEST_WAIT_MS.min(LONGEST_WAIT_INTERVALS.saturating_mul(interval_ms)));
        let next_ms = self.pending.computed_ms.map_or(0, |ms| ms.saturating_add(interval_ms));
        let due_ms = next_ms.max(quiet_ms.min(longest_ms));
        let delay_ms = i32::try_from(due_ms.saturating_sub(now_ms)).unwrap_or(i32::MAX);
        cx.arm(&self.id, GroupTimer::Assignment, delay_ms);
    }

    /// Computes a target for the group as it is, and answers the joins that waited for it.
    pub(super) fn compute_target(&mut self, cx: &mut Context<'_>) {
        cx.cancel(&self.id, GroupTimer::Assignment);
        self.pending.changed_ms = None;
        if self.epoch <= self.target_epoch {
            return;
        }
        if self.is_empty() {
            // Whoever joins next is not held up by this one.
            self.pending.computed_ms = None;
            self.end_computation(cx);
            return self.write_target(TargetAssignmentValue::of_server(self.epoch, 0), cx);
        }
        match self.choice(cx.settings) {
            Choice::Client(assignor) => self.want_computation(assignor, cx),
            Choice::Server(assignor) => {
                self.end_computation(cx);
                self.compute_target_by(Computed { assignor, error: 0 }, cx);
            }
        }
    }

    /// Computes a target with a server assignor.
    pub(super) fn compute_target_by(&mut self, computed: Computed, cx: &mut Context<'_>) {
        self.pending.computed(cx.now.monotonic_ms);
        match self.assign(&computed.assignor, cx) {
            Ok(targets) => self.take_targets(computed, targets, cx),
            Err(error) => self.try_again(computed.assignor, error, cx),
        }
    }

    /// The group goes on with its last target, and another is tried for until there is one. Kafka computes within the request of
    /// a member, which it fails for good, and writes nothing of it. One computation here is for all changes until then: what
    /// they wrote stays, and whoever joins is to ask again.
    fn try_again(&mut self, assignor: Text, error: AssignorError, cx: &mut Context<'_>) {
        let message: Text = format!("The {assignor} assignor failed: {error}").into();
        cx.event(Event::AssignorFailed {
            group_id: self.id.clone(),
            assignor,
            reason: error.to_string(),
        });
        for (_, ticket) in std::mem::take(&mut self.pending.joins) {
            let error = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
            cx.reply(ticket, heartbeat_refusal(error, Some(message.clone())));
        }
        cx.arm(&self.id, GroupTimer::Assignment, RETRY_MS);
    }

    fn assign(&self, assignor: &str, cx: &Context<'_>) -> Result<Vec<Arc<Partitions>>, AssignorError> {
        Assignor::by_name(assignor)
            .unwrap_or(Assignor::Uniform)
            .assign(&self.specification(cx))
    }

    /// The group as an assignor sees it.
    pub(super) fn specification(&self, cx: &Context<'_>) -> GroupSpec {
        // Equal lists are the same list, so that no name is compared.
        let mut known: BTreeMap<(*const Text, &str), Arc<[Uuid]>> = BTreeMap::new();
        let mut topics = BTreeMap::new();
        let mut members = Vec::with_capacity(self.members.len());
        let nothing = Arc::new(Partitions::default());
        for member in self.members.iter() {
            let said = &member.said;
            let key = (said.subscribed_topic_names.address(), &*said.subscribed_topic_regex);
            let ids = known
                .entry(key)
                .or_insert_with(|| self.topic_ids(said, cx.topics).into());
            members.push(MemberSpec {
                member_id: member.id.clone(),
                instance_id: said.instance_id.clone(),
                rack_id: said.rack_id.clone(),
                topics: ids.clone(),
                target: self.target(&member.id).unwrap_or(&nothing).clone(),
            });
        }
        for id in known.values().flat_map(|ids| ids.iter()) {
            if let Some(topic) = cx.topics.by_id(id) {
                topics.insert(*id, topic.partitions);
            }
        }
        GroupSpec { members, topics }
    }

    /// Takes the targets of all members, then answers who waited.
    fn take_targets(&mut self, computed: Computed, targets: Vec<Arc<Partitions>>, cx: &mut Context<'_>) {
        let member_ids = self.members.iter().map(|member| member.id.clone());
        let targets = member_ids
            .zip(targets.into_iter().map(TargetMemberValue::from))
            .collect();
        let partitions_moved = self.write_targets(targets, cx);
        let value = TargetAssignmentValue {
            assignor_error: computed.error,
            ..TargetAssignmentValue::of_server(self.epoch, cx.now.wall_ms)
        };
        self.write_target(value, cx);
        self.computed_here_by = Some(computed.assignor.clone());
        cx.event(Event::TargetComputed {
            group_id: self.id.clone(),
            group_epoch: self.epoch,
            assignor: computed.assignor,
            members: self.members.len(),
            partitions_moved,
        });
        self.answer_joins(|_| true, cx);
        self.tell_settled(cx);
    }

    /// Writes the targets that are others than before. Says how many partitions are to have another owner.
    pub(super) fn write_targets(&mut self, targets: Vec<(Text, TargetMemberValue)>, cx: &mut Context<'_>) -> usize {
        let mut moved = 0;
        for (member_id, target) in targets {
            let before = self.targets.get(&member_id);
            if before.is_some_and(|before| before.is_same(&target)) {
                continue;
            }
            let is_new = |partition: &&_| before.is_none_or(|before| !before.partitions.contains(partition));
            moved += target.partitions.iter().filter(is_new).count();
            let value = Some(target);
            self.write(ConsumerGroupRecord::TargetMember { member_id, value }, cx);
        }
        moved
    }

    /// Makes what was written of members the target.
    pub(super) fn write_target(&mut self, value: TargetAssignmentValue, cx: &mut Context<'_>) {
        self.write(ConsumerGroupRecord::Target(Some(value)), cx);
    }

    /// Lets a join wait for the next target. One that it takes the place of came over a connection that the client gave up.
    pub(super) fn park_join(&mut self, member_id: &Text, ticket: Ticket, cx: &mut Context<'_>) {
        if let Some(replaced) = self.pending.joins.insert(member_id.clone(), ticket) {
            cx.reply(
                replaced,
                heartbeat_refusal(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS, None),
            );
        }
        self.bound_waiting(cx);
    }

    /// Ends the wait of a member that is no more.
    pub(super) fn refuse_join(&mut self, member_id: &str, cx: &mut Context<'_>) {
        if let Some(ticket) = self.pending.joins.remove(member_id) {
            cx.reply(ticket, heartbeat_refusal(ErrorCode::UNKNOWN_MEMBER_ID, None));
        }
    }

    /// Answers the joins of these members, with what there is for them.
    pub(super) fn answer_joins(&mut self, of: impl Fn(&str) -> bool, cx: &mut Context<'_>) {
        let waiting: Vec<Text> = self.pending.members().filter(|id| of(id)).cloned().collect();
        for member_id in waiting {
            self.answer_join(&member_id, cx);
        }
        if self.pending.joins.is_empty() {
            cx.cancel(&self.id, GroupTimer::JoinWait);
        }
    }

    pub(super) fn answer_join(&mut self, member_id: &Text, cx: &mut Context<'_>) {
        let Some(ticket) = self.pending.joins.remove(member_id) else {
            return;
        };
        let response = match self.reconcile(member_id, Some(&Partitions::default()), false, cx) {
            Ok(_) => self.heartbeat_response(member_id, true, cx),
            Err(refusal) => refusal.response(),
        };
        cx.reply(ticket, response);
    }

    /// How long targets are apart at least, in milliseconds.
    fn assignment_interval_ms(&self, settings: &Settings) -> u64 {
        let interval_ms = settings.consumer_assignment_interval_ms(&self.id);
        u64::try_from(interval_ms.unwrap_or(GroupSetting::AssignmentInterval.default_value())).unwrap_or(0)
    }
}
