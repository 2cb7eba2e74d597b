//! A group, whatever its protocol. A new kind of group is a variant here, a module of its own, and what each request means
//! to it.

use super::classic::ClassicGroup;
use super::client_assignor::Deliverable;
use super::consumer::ConsumerGroup;
use super::context::Context;
use super::input::Ticket;
use super::offsets::Expiry;
use super::record::{ConsumerGroupRecord, GroupMetadataValue, Record};
use super::request::{
    DescribeGroupResponse, GroupView, HeartbeatRequest, LeavingMember, LeftMember, ListedGroup, OffsetCommitRequest,
    OffsetFetchRequest, SyncGroupRequest, Text,
};
use super::settings::Settings;
use super::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

#[derive(Debug)]
pub(super) enum Group {
    Classic(Box<ClassicGroup>),
    Consumer(Box<ConsumerGroup>),
}

impl Group {
    /// A group that only has offsets so far.
    pub(super) fn simple(group_id: Text) -> Self {
        Self::Classic(ClassicGroup::new(group_id).into())
    }

    /// Takes in a record of a classic group. One of another kind was ended before; its records may be gone.
    pub(super) fn apply_classic(&mut self, group_id: &Text, value: &GroupMetadataValue) {
        if let Self::Consumer(_) = self {
            *self = Self::simple(group_id.clone());
        }
        if let Self::Classic(group) = self {
            group.apply(value);
        }
    }

    /// Takes in a record of a consumer group, likewise.
    pub(super) fn apply_consumer(&mut self, group_id: &Text, record: &ConsumerGroupRecord) {
        if let Self::Classic(_) = self {
            *self = Self::Consumer(ConsumerGroup::new(group_id.clone()).into());
        }
        if let Self::Consumer(group) = self {
            group.apply(record);
        }
    }

    pub(super) fn on_loaded(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Classic(group) => group.on_loaded(cx),
            Self::Consumer(group) => group.on_loaded(cx),
        }
    }

    pub(super) fn on_timer(&mut self, timer: GroupTimer, cx: &mut Context<'_>) {
        match self {
            Self::Classic(group) => group.on_timer(timer, cx),
            Self::Consumer(group) => group.on_timer(timer, cx),
        }
    }

    /// There is a new picture of the upstream's topics.
    pub(super) fn on_topics(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Classic(group) => group.on_topics(cx),
            Self::Consumer(group) => group.on_topics(cx),
        }
    }

    pub(super) fn on_sync(&mut self, ticket: Ticket, request: SyncGroupRequest, cx: &mut Context<'_>) {
        match self {
            Self::Classic(group) => group.on_sync(ticket, request, cx),
            Self::Consumer(group) => {
                let response = group.on_classic_sync(&request, cx);
                cx.reply(ticket, response);
            }
        }
    }

    pub(super) fn on_heartbeat(&mut self, request: &HeartbeatRequest, cx: &mut Context<'_>) -> ErrorCode {
        match self {
            Self::Classic(group) => group.on_heartbeat(request, cx),
            Self::Consumer(group) => group.on_classic_heartbeat(request, cx),
        }
    }

    pub(super) fn on_leave(&mut self, leaving: Vec<LeavingMember>, cx: &mut Context<'_>) -> Vec<LeftMember> {
        match self {
            Self::Classic(group) => group.on_leave(leaving, cx),
            Self::Consumer(group) => group.on_leave(leaving, cx),
        }
    }

    pub(super) fn admit_commit(&self, request: &OffsetCommitRequest, cx: &mut Context<'_>) -> Result<(), ErrorCode> {
        match self {
            Self::Classic(group) => group.admit_commit(request, cx),
            Self::Consumer(group) => group.admit_commit(request, cx),
        }
    }

    /// Classic groups check no member.
    pub(super) fn admit_fetch(&self, request: &OffsetFetchRequest) -> Result<(), ErrorCode> {
        match self {
            Self::Classic(_) => Ok(()),
            Self::Consumer(group) => group.admit_fetch(request),
        }
    }

    pub(super) fn admit_offset_delete(&self) -> Result<(), ErrorCode> {
        match self {
            Self::Classic(group) => group.admit_offset_delete(),
            Self::Consumer(_) => Ok(()),
        }
    }

    pub(super) fn admit_delete(&self) -> Result<(), ErrorCode> {
        match self {
            Self::Classic(group) => group.admit_delete(),
            Self::Consumer(group) => group.admit_delete(),
        }
    }

    pub(super) fn is_subscribed_to(&self, topic: &str) -> bool {
        match self {
            Self::Classic(group) => group.is_subscribed_to(topic),
            Self::Consumer(group) => group.is_subscribed_to(topic),
        }
    }

    /// When its offsets expire, if at all now.
    pub(super) fn offset_expiry(&self, retention_ms: i64) -> Option<Expiry> {
        match self {
            Self::Classic(group) => group.offset_expiry(retention_ms),
            Self::Consumer(_) => Some(ConsumerGroup::offset_expiry(retention_ms)),
        }
    }

    /// Whether it may go when it has no offsets left.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Self::Classic(group) => group.is_abandoned(),
            Self::Consumer(group) => group.is_empty(),
        }
    }

    /// The records that end the group.
    pub(super) fn tombstones(&self, group_id: &Text) -> Vec<Record> {
        match self {
            Self::Classic(_) => vec![ClassicGroup::tombstone(group_id)],
            Self::Consumer(group) => group.tombstones(),
        }
    }

    /// `None` for a group that DescribeGroups does not show.
    pub(super) fn describe(&self) -> Option<DescribeGroupResponse> {
        match self {
            Self::Classic(group) => Some(group.describe()),
            Self::Consumer(_) => None,
        }
    }

    pub(super) fn list(&self) -> ListedGroup {
        match self {
            Self::Classic(group) => group.list(),
            Self::Consumer(group) => group.list(),
        }
    }

    pub(super) fn view(&self, settings: &Settings) -> GroupView {
        match self {
            Self::Classic(group) => group.view(),
            Self::Consumer(group) => group.view(settings),
        }
    }

    /// The group as it is seen by whoever computes its assignment outside.
    pub(super) fn computed_outside(&mut self) -> &mut dyn Deliverable {
        match self {
            Self::Classic(group) => &mut **group,
            Self::Consumer(group) => &mut **group,
        }
    }

    /// Every request that waits in the group.
    pub(super) fn parked(&self) -> Vec<Ticket> {
        match self {
            Self::Classic(group) => group.parked().collect(),
            Self::Consumer(group) => group.parked().collect(),
        }
    }

    pub(super) fn parked_joins(&self) -> usize {
        match self {
            Self::Classic(group) => group.parked_joins(),
            Self::Consumer(group) => group.parked_joins(),
        }
    }

    pub(super) fn parked_syncs(&self) -> usize {
        match self {
            Self::Classic(group) => group.parked_syncs(),
            Self::Consumer(_) => 0,
        }
    }
}
