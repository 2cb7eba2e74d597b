//! What a consumer group allows to be done with its offsets.

use super::ConsumerGroup;
use super::members::Member;
use crate::coordinator::context::Context;
use crate::coordinator::offsets::{Expiry, ExpiryBase};
use crate::coordinator::partitions::TopicPartition;
use crate::coordinator::request::{OffsetCommitRequest, OffsetCommitTopic, OffsetFetchRequest};
use crate::wire::error_code::ErrorCode;

impl ConsumerGroup {
    /// Members commit at their epoch, or at an older one for partitions that they have had since then (KIP-1251); anybody
    /// may while nobody is in the group.
    pub(in crate::coordinator) fn admit_commit(
        &self,
        request: &OffsetCommitRequest,
        cx: &Context<'_>,
    ) -> Result<(), ErrorCode> {
        let epoch = request.generation_id_or_member_epoch;
        if epoch < 0 && self.is_empty() {
            return Ok(());
        }
        let member = self
            .members
            .get(&request.member_id)
            .ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if !member.is_classic() && !request.knows_member_epochs {
            return Err(ErrorCode::UNSUPPORTED_VERSION);
        }
        let has_had = || {
            request
                .topics
                .iter()
                .all(|topic| has_had_since(member, topic, epoch, cx))
        };
        if epoch == member.current.member_epoch || (epoch < member.current.member_epoch && has_had()) {
            return Ok(());
        }
        Err(stale_epoch(member))
    }

    /// Who says who it is must be right; an administrator says nothing.
    pub(in crate::coordinator) fn admit_fetch(&self, request: &OffsetFetchRequest) -> Result<(), ErrorCode> {
        if request.member_id.is_none() && request.member_epoch < 0 {
            return Ok(());
        }
        let member = request
            .member_id
            .as_ref()
            .and_then(|member_id| self.members.get(member_id));
        let member = member.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        match request.member_epoch == member.current.member_epoch {
            true => Ok(()),
            false => Err(stale_epoch(member)),
        }
    }

    pub(in crate::coordinator) fn admit_delete(&self) -> Result<(), ErrorCode> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(ErrorCode::NON_EMPTY_GROUP),
        }
    }

    /// Offsets expire by their commit, whether there are members or not, except those of subscribed topics.
    pub(in crate::coordinator) fn offset_expiry(retention_ms: i64) -> Expiry {
        Expiry {
            base: ExpiryBase::Commit,
            retention_ms,
        }
    }
}

fn stale_epoch(member: &Member) -> ErrorCode {
    match member.is_classic() {
        true => ErrorCode::ILLEGAL_GENERATION,
        false => ErrorCode::STALE_MEMBER_EPOCH,
    }
}

/// Whether each of these partitions is the member's since this epoch or longer.
fn has_had_since(member: &Member, topic: &OffsetCommitTopic, epoch: i32, cx: &Context<'_>) -> bool {
    let topic_id = match topic.topic_id.is_nil() {
        true => cx.topics.by_name.get(&topic.name).map(|topic| topic.id),
        false => Some(topic.topic_id),
    };
    let Some(topic_id) = topic_id else {
        return topic.partitions.is_empty();
    };
    topic.partitions.iter().all(|partition| {
        let partition = TopicPartition {
            topic_id,
            partition: partition.partition,
        };
        let current = &member.current;
        let since = current.assigned.epoch_of(&partition);
        since
            .or_else(|| current.pending_revocation.epoch_of(&partition))
            .is_some_and(|since| since <= epoch)
    })
}
