//! A classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (KIP-62, 345, 394, 559, 814; Kafka's `ClassicGroup`).
//!
//! ```text
//!               a join              every member has joined, or the timeout passed
//!     Empty ────────────▶ PreparingRebalance ────────────────────▶ CompletingRebalance
//!       ▲                   │     ▲      ▲   changed metadata, a member    │
//!       └───────────────────┘     │      └───── lost or left, no sync ─────┤
//!        nobody is left: record   │                                        │ the leader's sync: record
//!                                 └───────── the same ──────── Stable ◀────┘
//! ```
//!
//! A group that a rule gives to the coordinator (`assign`) has no leader: its assignment is part of the record with which its generation
//! begins, so that it goes from PreparingRebalance to Stable in one step, and syncs find it there. Where an external assignor is to
//! compute it (`outside`), that one takes the leader's place in CompletingRebalance.
//!
//! Kafka's Dead is a group that is not in the map.
//!
//! **What is durable.** A `GroupMetadata` record holds the whole group; it is written when the group is created, with the
//! leader's assignment, when a static member is replaced in Stable, and when the last member is gone. [`ClassicGroup::apply`]
//! is the one way into Empty and Stable and the one place that sets assignments, for a new record and a loaded one alike.
//! What happens between two records is soft: a restart falls back to the last one, and the members find their way by the
//! errors they get. `apply` keeps the soft state of members that the record names.
//!
//! **Where it goes beyond Kafka**, which leaves these to time out: a parked request that a second one of the same member
//! replaces is answered REBALANCE_IN_PROGRESS, the parked sync of a member that is taken out UNKNOWN_MEMBER_ID; a round that
//! only waited for a member turned away by `group.max.size` ends; an id given back before it was used starts no rebalance,
//! and a group is not expired while somebody holds one; a static member that returns before it synced must still sync, and
//! has its place in a full group.

mod assign;
mod claims;
mod describe;
mod draft;
mod join;
mod leave;
mod members;
mod migrate;
mod offsets;
mod outside;
mod rebalance;
mod session;
mod static_member;
mod subscription;
mod sync;
mod watch;

use std::collections::BTreeSet;

use self::assign::Assigned;
use self::members::Members;
use self::outside::Undecided;
use self::rebalance::InitialJoin;
use self::subscription::Subscription;
use super::client_assignor::{Asking, ComputedOutside, Outside};
use super::consumer_protocol::CONSUMER;
use super::context::Context;
use super::event::{Event, RebalanceReason};
use super::record::{GroupMetadataValue, Record};
use super::request::Text;
use super::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

pub(super) use self::join::join_refusal;
pub(super) use self::migrate::Emigrant;
pub(super) use self::sync::sync_refusal;

/// See the diagram of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
}

impl State {
    /// Kafka's name for it.
    const fn label(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }

    /// The transitions that no record makes.
    const fn may_become(self, to: Self) -> bool {
        match to {
            Self::PreparingRebalance => !matches!(self, Self::PreparingRebalance),
            Self::CompletingRebalance => matches!(self, Self::PreparingRebalance),
            Self::Empty | Self::Stable => false,
        }
    }
}

/// One classic group, or a "simple" one that only has offsets (no protocol type, always Empty, no record).
#[derive(Debug)]
pub(super) struct ClassicGroup {
    id: Text,
    state: State,
    /// Wall clock, of the last change of state; -1 when unknown.
    state_since_ms: i64,
    generation_id: i32,
    protocol_type: Option<Text>,
    protocol_name: Option<Text>,
    leader: Option<Text>,
    members: Members,
    /// Ids handed out by MEMBER_ID_REQUIRED that no join has brought back yet.
    pending_joins: BTreeSet<Text>,
    /// Members of this generation that have not synced.
    pending_syncs: BTreeSet<Text>,
    subscription: Subscription,
    /// While the group prepares its first rebalance after Empty.
    initial_join: Option<InitialJoin>,
    /// Monotonic clock: since when the group has not been Stable or Empty.
    rebalancing_since_ms: Option<u64>,
    /// How it was assigned for here, if it was; not known after a load.
    assigned: Option<Assigned>,
    /// While an external assignor is to assign for the generation.
    undecided: Option<Undecided>,
    outside: Outside,
}

/// Why a rebalance begins.
#[derive(Debug)]
struct Cause {
    reason: RebalanceReason,
    member_id: Option<Text>,
    client_reason: Option<Text>,
}

impl ClassicGroup {
    /// A group without members, as a committed offset alone makes it.
    pub(super) fn new(id: Text) -> Self {
        Self {
            id,
            state: State::Empty,
            state_since_ms: -1,
            generation_id: 0,
            protocol_type: None,
            protocol_name: None,
            leader: None,
            members: Members::default(),
            pending_joins: BTreeSet::new(),
            pending_syncs: BTreeSet::new(),
            subscription: Subscription::NotConsumer,
            initial_join: None,
            rebalancing_since_ms: None,
            assigned: None,
            undecided: None,
            outside: Outside::default(),
        }
    }

    /// Makes the group what a record says, for a new record and for a loaded one alike.
    pub(super) fn apply(&mut self, value: &GroupMetadataValue) {
        self.protocol_type = (!value.protocol_type.is_empty()).then(|| value.protocol_type.clone());
        self.protocol_name = value.protocol.clone();
        self.generation_id = value.generation;
        self.leader = value.leader.clone();
        self.members.apply(value);
        self.subscription = self.current_subscription();
        self.state_since_ms = value.current_state_timestamp_ms;
        self.state = match self.members.is_empty() {
            true => State::Empty,
            false => State::Stable,
        };
        self.initial_join = None;
    }

    /// The record that creates a group before anybody is in it.
    pub(super) fn creation(group_id: &Text, now_ms: i64) -> Record {
        let value = GroupMetadataValue {
            protocol_type: "".into(),
            generation: 0,
            protocol: None,
            leader: None,
            current_state_timestamp_ms: now_ms,
            members: Vec::new(),
        };
        Record::GroupMetadata {
            group_id: group_id.clone(),
            value: Some(value),
        }
    }

    /// The record that ends a group.
    pub(super) fn tombstone(group_id: &Text) -> Record {
        Record::GroupMetadata {
            group_id: group_id.clone(),
            value: None,
        }
    }

    /// Sessions of all members begin after a load; a group above `group.max.size` shrinks by a rebalance.
    pub(super) fn on_loaded(&mut self, cx: &mut Context<'_>) {
        for member in self.members.iter() {
            cx.arm(
                &self.id,
                GroupTimer::Session(member.id.clone()),
                member.session_timeout_ms,
            );
        }
        if self.members.len() > max_size(cx) {
            self.prepare_rebalance(Cause::of_group(RebalanceReason::OverCapacity), cx);
        }
    }

    pub(super) fn on_timer(&mut self, timer: GroupTimer, cx: &mut Context<'_>) {
        match timer {
            GroupTimer::Join => self.on_join_timeout(cx),
            GroupTimer::Sync => self.on_sync_timeout(cx),
            GroupTimer::Session(member_id) => self.on_session_timeout(&member_id, cx),
            GroupTimer::Assignment => self.on_withheld_for_long(cx),
            GroupTimer::Computation => self.on_computation_due(cx),
            GroupTimer::Asked => self.on_asked_due(cx),
            // Of consumer groups.
            GroupTimer::JoinWait
            | GroupTimer::Rebalance(_)
            | GroupTimer::ClassicJoin(_)
            | GroupTimer::ClassicSync(_) => {}
        }
    }

    /// Writes a record of the group: memory first, by the same way a load goes.
    fn write(&mut self, value: GroupMetadataValue, cx: &mut Context<'_>) {
        self.apply(&value);
        cx.effects.records.push(Record::GroupMetadata {
            group_id: self.id.clone(),
            value: Some(value),
        });
    }

    /// The group as a record would have it.
    fn to_value(&self) -> GroupMetadataValue {
        let protocol = self.protocol_name.as_deref().unwrap_or_default();
        GroupMetadataValue {
            protocol_type: self.protocol_type.clone().unwrap_or_else(|| "".into()),
            generation: self.generation_id,
            protocol: self.protocol_name.clone(),
            leader: self.leader.clone(),
            current_state_timestamp_ms: self.state_since_ms,
            members: self.members.iter().map(|member| member.to_value(protocol)).collect(),
        }
    }

    fn transition(&mut self, to: State, cx: &Context<'_>) {
        assert!(
            self.state.may_become(to),
            "{:?} cannot become {to:?} without a record",
            self.state
        );
        self.state = to;
        self.state_since_ms = cx.now.wall_ms;
    }

    fn current_subscription(&self) -> Subscription {
        if self.protocol_type.as_deref() != Some(CONSUMER) {
            return Subscription::NotConsumer;
        }
        match &self.protocol_name {
            Some(protocol) => Subscription::of(self.members.iter().map(|member| member.metadata(protocol))),
            None if self.members.is_empty() => Subscription::Topics(BTreeSet::new()),
            None => Subscription::Unknown,
        }
    }

    /// Whether this is the member it says it is; an instance id that another member holds fences it.
    fn validate_member(&self, member_id: &str, instance_id: Option<&Text>) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.members.static_member(instance_id) {
                None => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
                Some(owner) if &**owner != member_id => return Err(ErrorCode::FENCED_INSTANCE_ID),
                Some(_) => {}
            }
        }
        match self.members.contains(member_id) {
            true => Ok(()),
            false => Err(ErrorCode::UNKNOWN_MEMBER_ID),
        }
    }

    fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    fn arm_session(&self, member_id: &Text, cx: &mut Context<'_>) {
        if let Some(member) = self.members.get(member_id) {
            cx.arm(
                &self.id,
                GroupTimer::Session(member_id.clone()),
                member.session_timeout_ms,
            );
        }
    }

    /// Takes a member out and answers what it had parked with UNKNOWN_MEMBER_ID. The next member in line leads.
    fn remove_member(&mut self, member_id: &str, cause: &Cause, cx: &mut Context<'_>) {
        let Some(removed) = self.members.remove(member_id) else {
            return;
        };
        cx.cancel(&self.id, GroupTimer::Session(removed.member.id.clone()));
        if let Some(ticket) = removed.join {
            cx.reply(ticket, join_refusal(ErrorCode::UNKNOWN_MEMBER_ID, "".into()));
        }
        if let Some(ticket) = removed.sync {
            cx.reply(ticket, sync_refusal(ErrorCode::UNKNOWN_MEMBER_ID));
        }
        if self.is_leader(member_id) {
            self.leader = self.members.iter().next().map(|member| member.id.clone());
        }
        cx.event(Event::MemberRemoved {
            group_id: self.id.clone(),
            member_id: removed.member.id,
            group_instance_id: removed.member.instance_id,
            client_id: removed.member.client_id,
            client_host: removed.member.client_host,
            reason: cause.reason,
            client_reason: cause.client_reason.clone(),
        });
    }

    /// Takes back an id that MEMBER_ID_REQUIRED had handed out; says whether there was one.
    fn forget_pending(&mut self, member_id: &Text, cx: &mut Context<'_>) -> bool {
        let known = self.pending_joins.remove(member_id);
        if known {
            cx.cancel(&self.id, GroupTimer::Session(member_id.clone()));
        }
        known
    }
}

/// `group.max.size` as a count.
fn max_size(cx: &Context<'_>) -> usize {
    usize::try_from(cx.settings.group_max_size).unwrap_or(0)
}
