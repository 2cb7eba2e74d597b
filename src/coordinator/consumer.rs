//! A consumer group (KIP-848; Kafka's `ConsumerGroup`): ConsumerGroupHeartbeat and what belongs to it.
//!
//! ```text
//!   inputs change: group epoch + 1      the assignor runs: assignment epoch       each member, one step a heartbeat:
//!   (members, subscriptions,      ───▶  = group epoch, a target for          ───▶  give up, wait, take; at its target
//!   topics, patterns)                   every member                              its epoch = assignment epoch
//! ```
//!
//! **What is durable.** Everything above: the records 3, 5, 6, 7, 8 and 16. [`ConsumerGroup::apply`] is the one way in which
//! they change memory, for a new record and a loaded one alike. Soft are the timers, the joins that are parked until the
//! next target, who computes that one, and since when the group has not been settled.
//!
//! **Where it goes beyond Kafka.** A target is computed by a timer, not by the next heartbeat that happens to come, and a
//! member that joins shortly before is answered with its partitions instead of with none. Topics that change are noticed at
//! once. Members that speak the classic protocol are in `classic_member` and `classic_session`. A pattern is resolved before its member is answered. A static member whose join was answered but not heard may
//! repeat it.

mod classic_member;
mod classic_session;
mod computing;
mod describe;
mod downgrade;
mod epoch;
mod fence;
mod heartbeat;
mod installing;
mod member_epoch;
mod members;
mod metadata;
mod offsets;
mod owners;
mod reconcile;
mod refusal;
mod regex;
mod said;
mod target;
mod validation;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::members::Members;
use self::owners::Owners;
use self::target::Pending;
use super::client_assignor::{Asking, ComputedOutside, Outside};
use super::context::Context;
use super::event::{EpochReason, Event};
use super::input::Ticket;
use super::partitions::Partitions;
use super::record::{
    ConsumerGroupMetadataValue, ConsumerGroupRecord, CurrentAssignmentValue, MemberState, Record, ResolvedRegexValue,
    TargetMemberValue,
};
use super::request::Text;
use super::timer::GroupTimer;

pub(super) use self::classic_member::{Joined, Successor, with_ids};
pub(super) use self::fence::left;
pub(super) use self::refusal::heartbeat_refusal;
pub(super) use self::said::asked;
pub(super) use self::validation::invalid_heartbeat;

/// The epoch that a group begins with; its first member makes it 2 (KAFKA-20268).
pub(super) const FIRST_EPOCH: i32 = 1;

/// Kafka's `ConsumerGroupState`, without Dead, which is a group that is not in the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Empty,
    Assigning,
    Reconciling,
    Stable,
}

impl State {
    /// Kafka's name for it.
    const fn label(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Assigning => "Assigning",
            Self::Reconciling => "Reconciling",
            Self::Stable => "Stable",
        }
    }
}

#[derive(Debug)]
pub(super) struct ConsumerGroup {
    id: Text,
    epoch: i32,
    metadata_hash: i64,
    target_epoch: i32,
    members: Members,
    targets: BTreeMap<Text, TargetMemberValue>,
    /// The client-side assignor that computed the last target; `None` if it was a server assignor.
    computed_by: Option<Text>,
    /// What the client-side assignor said that should have.
    assignor_error: i8,
    /// The server assignor that computed it, as far as that is known.
    computed_here_by: Option<Text>,
    owners: Owners,
    /// What patterns stand for.
    regexes: BTreeMap<Text, ResolvedRegexValue>,
    has_partition_metadata: bool,
    /// Of the subscribed topics as they are, which the record may not know yet.
    hash: i64,
    /// The topics that somebody is subscribed to may be others than those that `hash` was made of.
    is_hash_stale: bool,
    pending: Pending,
    /// Of the next target.
    outside: Outside,
    regex_refresh: regex::Refresh,
    /// Monotonic clock: since when not every member has had its part of the newest target.
    unsettled_since_ms: Option<u64>,
    /// Wall clock, of the last bump of the epoch; -1 when unknown.
    epoch_since_ms: i64,
}

impl ConsumerGroup {
    /// A group without members.
    pub(super) fn new(id: Text) -> Self {
        Self {
            id,
            epoch: FIRST_EPOCH,
            metadata_hash: 0,
            target_epoch: FIRST_EPOCH,
            members: Members::default(),
            targets: BTreeMap::new(),
            computed_by: None,
            assignor_error: 0,
            computed_here_by: None,
            owners: Owners::default(),
            regexes: BTreeMap::new(),
            has_partition_metadata: false,
            hash: 0,
            is_hash_stale: false,
            pending: Pending::default(),
            outside: Outside::default(),
            regex_refresh: regex::Refresh::default(),
            unsettled_since_ms: None,
            epoch_since_ms: -1,
        }
    }

    /// Takes a record in, new or loaded. Tombstones of what is not there change nothing, and records of one member may come
    /// in any order: a compacted log keeps only the last of each key.
    pub(super) fn apply(&mut self, record: &ConsumerGroupRecord) {
        match record {
            ConsumerGroupRecord::Metadata(value) => {
                let (epoch, hash) = value
                    .as_ref()
                    .map_or((FIRST_EPOCH, 0), |value| (value.epoch, value.metadata_hash));
                self.epoch = epoch;
                self.metadata_hash = hash;
            }
            ConsumerGroupRecord::PartitionMetadata(value) => self.has_partition_metadata = value.is_some(),
            ConsumerGroupRecord::Member { member_id, value } => match value {
                Some(value) => self.is_hash_stale |= self.members.say(member_id, value.clone()),
                None => self.apply_removal(member_id),
            },
            ConsumerGroupRecord::Target(value) => {
                self.target_epoch = value.as_ref().map_or(FIRST_EPOCH, |value| value.epoch);
                self.computed_by = value.as_ref().and_then(|value| value.assignor.clone());
                self.assignor_error = value.as_ref().map_or(0, |value| value.assignor_error);
                self.members.retarget(self.target_epoch);
            }
            ConsumerGroupRecord::TargetMember { member_id, value } => match value {
                Some(target) => {
                    self.targets.insert(member_id.clone(), target.clone());
                }
                None => {
                    self.targets.remove(member_id);
                }
            },
            ConsumerGroupRecord::CurrentAssignment { member_id, value } => match value {
                Some(value) => self.apply_current(member_id, value.clone()),
                None if self.members.contains(member_id) => {
                    self.apply_current(member_id, members::nothing_held(epoch::LEAVE));
                }
                None => {}
            },
            ConsumerGroupRecord::Regex { pattern, value } => {
                match value {
                    Some(value) => {
                        self.regex_refresh.resolved_at(value.timestamp_ms);
                        self.regexes.insert(pattern.clone(), value.clone());
                    }
                    None => {
                        self.regexes.remove(pattern);
                    }
                }
                self.is_hash_stale = true;
            }
        }
    }

    fn apply_removal(&mut self, member_id: &Text) {
        if let Some((member, is_hash_stale)) = self.members.remove(member_id) {
            self.owners.release(member_id, &member.current);
            self.is_hash_stale |= is_hash_stale;
        }
    }

    fn apply_current(&mut self, member_id: &Text, current: CurrentAssignmentValue) {
        let before = self.members.hold(member_id, current.clone());
        self.owners.change(member_id, &before, &current);
    }

    /// Sessions of all members begin after a load, and so does the time to give partitions up. A target that was still to be
    /// computed is.
    pub(super) fn on_loaded(&mut self, cx: &mut Context<'_>) {
        for member in self.members.iter() {
            match &member.said.classic {
                Some(classic) => self.arm_classic_session(member, classic, cx),
                None => self.arm_session(&member.id, cx),
            }
            if member.current.state == MemberState::UnrevokedPartitions && !member.is_classic() {
                cx.arm(
                    &self.id,
                    GroupTimer::Rebalance(member.id.clone()),
                    member.said.rebalance_timeout_ms,
                );
            }
        }
        if matches!(self.state(), State::Assigning | State::Reconciling) {
            self.unsettled_since_ms = Some(cx.now.monotonic_ms);
        }
        self.plan_target(cx);
    }

    pub(super) fn on_timer(&mut self, timer: GroupTimer, cx: &mut Context<'_>) {
        match timer {
            GroupTimer::Session(member_id) => self.fence(&member_id, EpochReason::SessionExpired, cx),
            GroupTimer::Rebalance(member_id) => self.fence(&member_id, EpochReason::RebalanceTimedOut, cx),
            GroupTimer::ClassicJoin(member_id) => self.fence(&member_id, EpochReason::JoinTimedOut, cx),
            GroupTimer::ClassicSync(member_id) => self.fence(&member_id, EpochReason::SyncTimedOut, cx),
            GroupTimer::Assignment => self.compute_target(cx),
            GroupTimer::Computation => self.on_computation_due(cx),
            GroupTimer::JoinWait => self.answer_joins(|_| true, cx),
            GroupTimer::Asked => self.on_asked_due(cx),
            GroupTimer::Join | GroupTimer::Sync => {}
        }
    }

    /// The group was a classic one until now, whose leader chose who has what: it is to have a target of its own, also if
    /// whoever came changed nothing.
    pub(super) fn begin(&mut self, epoch_before: i32, cx: &mut Context<'_>) {
        if self.epoch == epoch_before {
            self.bump(EpochReason::MemberJoined, None, cx);
            self.plan_target(cx);
        }
    }

    pub(super) fn epoch(&self) -> i32 {
        self.epoch
    }

    /// There is a new picture of the upstream's topics.
    pub(super) fn on_topics(&mut self, cx: &mut Context<'_>) {
        self.regex_refresh.topics_changed();
        self.is_hash_stale = true;
        if self.is_empty() {
            return;
        }
        let hash = self.fresh_hash(cx.topics);
        if hash != self.metadata_hash {
            self.bump(EpochReason::MetadataChanged, None, cx);
        }
        self.plan_target(cx);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn has_member(&self, member_id: &str) -> bool {
        self.members.contains(member_id)
    }

    /// Whether a member asks for the assignor, or can run it.
    pub(super) fn knows_assignor(&self, assignor: &str) -> bool {
        self.members.any_supports(assignor)
    }

    fn state(&self) -> State {
        if self.members.is_empty() {
            State::Empty
        } else if self.epoch > self.target_epoch {
            State::Assigning
        } else if !self.members.have_settled() {
            State::Reconciling
        } else {
            State::Stable
        }
    }

    /// Makes the group's epoch one more.
    fn bump(&mut self, reason: EpochReason, member_id: Option<&Text>, cx: &mut Context<'_>) {
        self.forget_asked(cx);
        let metadata_hash = match cx.has_topics {
            true => self.fresh_hash(cx.topics),
            false => self.metadata_hash,
        };
        let epoch = self.epoch.saturating_add(1);
        self.write(
            ConsumerGroupRecord::Metadata(Some(ConsumerGroupMetadataValue { epoch, metadata_hash })),
            cx,
        );
        if self.has_partition_metadata {
            self.write(ConsumerGroupRecord::PartitionMetadata(None), cx);
        }
        self.epoch_since_ms = cx.now.wall_ms;
        self.unsettled_since_ms.get_or_insert(cx.now.monotonic_ms);
        cx.event(Event::GroupEpochBumped {
            group_id: self.id.clone(),
            group_epoch: epoch,
            reason,
            member_id: member_id.cloned(),
        });
    }

    /// Tells when the group has come to rest.
    fn tell_settled(&mut self, cx: &mut Context<'_>) {
        if self.unsettled_since_ms.is_none() || self.epoch != self.target_epoch || !self.members.have_settled() {
            return;
        }
        if let Some(since_ms) = self.unsettled_since_ms.take()
            && !self.is_empty()
        {
            cx.event(Event::ConsumerGroupSettled {
                group_id: self.id.clone(),
                group_epoch: self.epoch,
                members: self.members.len(),
                took_ms: cx.now.monotonic_ms.saturating_sub(since_ms),
            });
        }
    }

    /// What ends the group: tombstones for all that it has, in Kafka's order.
    pub(super) fn tombstones(&self) -> Vec<Record> {
        let member_ids = || self.members.iter().map(|member| member.id.clone());
        let current = member_ids().map(|member_id| ConsumerGroupRecord::CurrentAssignment { member_id, value: None });
        let targets = self.targets.keys().cloned();
        let targets = targets.map(|member_id| ConsumerGroupRecord::TargetMember { member_id, value: None });
        let members = member_ids().map(|member_id| ConsumerGroupRecord::Member { member_id, value: None });
        let regexes = self.regexes.keys().cloned();
        let regexes = regexes.map(|pattern| ConsumerGroupRecord::Regex { pattern, value: None });
        let partition_metadata = self
            .has_partition_metadata
            .then_some(ConsumerGroupRecord::PartitionMetadata(None));
        current
            .chain(targets)
            .chain([ConsumerGroupRecord::Target(None)])
            .chain(members)
            .chain(regexes)
            .chain(partition_metadata)
            .chain([ConsumerGroupRecord::Metadata(None)])
            .map(|record| self.record(record))
            .collect()
    }

    /// Writes a record of the group: memory first, by the same way a load goes.
    fn write(&mut self, record: ConsumerGroupRecord, cx: &mut Context<'_>) {
        self.apply(&record);
        cx.effects.records.push(self.record(record));
    }

    fn record(&self, record: ConsumerGroupRecord) -> Record {
        Record::ConsumerGroup {
            group_id: self.id.clone(),
            record,
        }
    }

    /// What the last target gives to the member.
    fn target(&self, member_id: &str) -> Option<&Arc<Partitions>> {
        self.targets.get(member_id).map(|target| &target.partitions)
    }

    /// Every join that waits for the next target.
    pub(super) fn parked(&self) -> impl Iterator<Item = Ticket> {
        self.pending.tickets()
    }
}
