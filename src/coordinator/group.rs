//! A group, whatever its protocol. A new kind of group is a variant here, a module of its own, and what each request means
//! to it.

use super::classic::ClassicGroup;
use super::context::Context;
use super::input::Ticket;
use super::offsets::Expiry;
use super::record::GroupMetadataValue;
use super::request::{
    DescribeGroupResponse, GroupView, HeartbeatRequest, JoinGroupRequest, LeavingMember, LeftMember, ListedGroup,
    OffsetCommitRequest, SyncGroupRequest, Text,
};
use super::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

#[derive(Debug)]
pub(super) enum Group {
    Classic(ClassicGroup),
}

impl Group {
    /// A group that only has offsets so far.
    pub(super) fn simple(group_id: Text) -> Self {
        Self::Classic(ClassicGroup::new(group_id))
    }

    pub(super) fn apply_classic(&mut self, value: &GroupMetadataValue) {
        match self {
            Self::Classic(group) => group.apply(value),
        }
    }

    pub(super) fn on_loaded(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Classic(group) => group.on_loaded(cx),
        }
    }

    pub(super) fn on_timer(&mut self, timer: GroupTimer, cx: &mut Context<'_>) {
        match self {
            Self::Classic(group) => group.on_timer(timer, cx),
        }
    }

    pub(super) fn on_join(&mut self, ticket: Ticket, request: JoinGroupRequest, cx: &mut Context<'_>) {
        match self {
            Self::Classic(group) => group.on_join(ticket, request, cx),
        }
    }

    pub(super) fn on_sync(&mut self, ticket: Ticket, request: SyncGroupRequest, cx: &mut Context<'_>) {
        match self {
            Self::Classic(group) => group.on_sync(ticket, request, cx),
        }
    }

    pub(super) fn on_heartbeat(&mut self, request: &HeartbeatRequest, cx: &mut Context<'_>) -> ErrorCode {
        match self {
            Self::Classic(group) => group.on_heartbeat(request, cx),
        }
    }

    pub(super) fn on_leave(&mut self, leaving: Vec<LeavingMember>, cx: &mut Context<'_>) -> Vec<LeftMember> {
        match self {
            Self::Classic(group) => group.on_leave(leaving, cx),
        }
    }

    pub(super) fn admit_commit(&self, request: &OffsetCommitRequest, cx: &mut Context<'_>) -> Result<(), ErrorCode> {
        match self {
            Self::Classic(group) => group.admit_commit(request, cx),
        }
    }

    pub(super) fn admit_offset_delete(&self) -> Result<(), ErrorCode> {
        match self {
            Self::Classic(group) => group.admit_offset_delete(),
        }
    }

    pub(super) fn admit_delete(&self) -> Result<(), ErrorCode> {
        match self {
            Self::Classic(group) => group.admit_delete(),
        }
    }

    pub(super) fn is_subscribed_to(&self, topic: &str) -> bool {
        match self {
            Self::Classic(group) => group.is_subscribed_to(topic),
        }
    }

    /// When its offsets expire, if at all now.
    pub(super) fn offset_expiry(&self, retention_ms: i64) -> Option<Expiry> {
        match self {
            Self::Classic(group) => group.offset_expiry(retention_ms),
        }
    }

    /// Whether it may go when it has no offsets left.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Self::Classic(group) => group.is_abandoned(),
        }
    }

    pub(super) fn describe(&self) -> DescribeGroupResponse {
        match self {
            Self::Classic(group) => group.describe(),
        }
    }

    pub(super) fn list(&self) -> ListedGroup {
        match self {
            Self::Classic(group) => group.list(),
        }
    }

    pub(super) fn view(&self) -> GroupView {
        match self {
            Self::Classic(group) => group.view(),
        }
    }

    /// Every request that waits in the group.
    pub(super) fn parked(&self) -> Vec<Ticket> {
        match self {
            Self::Classic(group) => group.parked().collect(),
        }
    }

    pub(super) fn parked_joins(&self) -> usize {
        match self {
            Self::Classic(group) => group.parked_joins(),
        }
    }

    pub(super) fn parked_syncs(&self) -> usize {
        match self {
            Self::Classic(group) => group.parked_syncs(),
        }
    }
}
