//! What a classic group allows to be done with its offsets.

use super::{ClassicGroup, State, Subscription};
use crate::coordinator::consumer_protocol::CONSUMER;
use crate::coordinator::context::Context;
use crate::coordinator::offsets::{Expiry, ExpiryBase};
use crate::coordinator::request::OffsetCommitRequest;
use crate::wire::error_code::ErrorCode;

impl ClassicGroup {
    /// Members commit in their generation, also while they give up partitions in a rebalance; anybody may while nobody is in
    /// the group. A commit shows that its member lives.
    pub(in crate::coordinator) fn admit_commit(
        &self,
        request: &OffsetCommitRequest,
        cx: &mut Context<'_>,
    ) -> Result<(), ErrorCode> {
        let generation_id = request.generation_id_or_member_epoch;
        if generation_id < 0 && self.state == State::Empty {
            return Ok(());
        }
        if generation_id < 0 && request.member_id.is_empty() && request.group_instance_id.is_none() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.validate_member(&request.member_id, request.group_instance_id.as_ref())?;
        if generation_id != self.generation_id {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        if self.state == State::CompletingRebalance {
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        self.arm_session(&request.member_id, cx);
        Ok(())
    }

    /// A group of consumers may lose the offsets of topics that it is not subscribed to, any other only while it is empty.
    pub(in crate::coordinator) fn admit_offset_delete(&self) -> Result<(), ErrorCode> {
        match self.state == State::Empty || self.protocol_type.as_deref() == Some(CONSUMER) {
            true => Ok(()),
            false => Err(ErrorCode::NON_EMPTY_GROUP),
        }
    }

    pub(in crate::coordinator) fn admit_delete(&self) -> Result<(), ErrorCode> {
        match self.state {
            State::Empty => Ok(()),
            _ => Err(ErrorCode::NON_EMPTY_GROUP),
        }
    }

    /// Whether the offsets of the topic are in use.
    pub(in crate::coordinator) fn is_subscribed_to(&self, topic: &str) -> bool {
        self.subscription.contains(topic)
    }

    /// When the group's offsets expire (KIP-211), if at all now.
    pub(in crate::coordinator) fn offset_expiry(&self, retention_ms: i64) -> Option<Expiry> {
        let base = match (self.state, &self.protocol_type) {
            (State::Empty, Some(_)) if self.state_since_ms >= 0 => ExpiryBase::Moment(self.state_since_ms),
            (State::Empty, _) => ExpiryBase::Commit,
            (State::Stable, _) if matches!(self.subscription, Subscription::Topics(_)) => ExpiryBase::Commit,
            _ => return None,
        };
        Some(Expiry { base, retention_ms })
    }

    /// Whether the group may go when it has no offsets left.
    pub(in crate::coordinator) fn is_abandoned(&self) -> bool {
        self.state == State::Empty && self.pending_joins.is_empty()
    }
}
