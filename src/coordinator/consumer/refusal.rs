//! Why a member's request is refused, in the words that brokers use: clients show them to people.

use crate::coordinator::request::{ConsumerGroupHeartbeatResponse, Response, Text};
use crate::wire::error_code::ErrorCode;

/// A request that is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) error: ErrorCode,
    pub(super) message: Option<Text>,
}

impl From<ErrorCode> for Refusal {
    fn from(error: ErrorCode) -> Self {
        Self { error, message: None }
    }
}

impl Refusal {
    pub(super) fn new(error: ErrorCode, message: String) -> Self {
        let message = Some(message.into());
        Self { error, message }
    }

    pub(super) fn no_member(member_id: &str, group_id: &str) -> Self {
        let message = format!("Member {member_id} is not a member of group {group_id}.");
        Self::new(ErrorCode::UNKNOWN_MEMBER_ID, message)
    }

    pub(super) fn no_instance(instance_id: &str) -> Self {
        Self::new(
            ErrorCode::UNKNOWN_MEMBER_ID,
            format!("Instance id {instance_id} is unknown."),
        )
    }

    /// `holder` has the instance id that the member came with.
    pub(super) fn fenced_instance(member_id: &str, instance_id: &str, holder: &str) -> Self {
        let message =
            format!("Static member {member_id} with instance id {instance_id} was fenced by member {holder}.");
        Self::new(ErrorCode::FENCED_INSTANCE_ID, message)
    }

    /// `holder` has the instance id that the member wants to join with, and has not left.
    pub(super) fn unreleased_instance(member_id: &str, instance_id: &str, holder: &str) -> Self {
        let message = format!(
            "Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is \
             owned by {holder} member."
        );
        Self::new(ErrorCode::UNRELEASED_INSTANCE_ID, message)
    }

    pub(super) fn wrong_epoch(received: i32, current: i32) -> Self {
        let comparison = if received > current { "greater" } else { "smaller" };
        let message = format!(
            "The consumer group member has a {comparison} member epoch ({received}) than the one known by the group \
             coordinator ({current}). The member must abandon all its partitions and rejoin."
        );
        Self::new(ErrorCode::FENCED_MEMBER_EPOCH, message)
    }

    pub(super) fn unknown_state() -> Self {
        let message = "The consumer group member is in a unknown state. The member must abandon all its partitions and \
                       rejoin.";
        Self::new(ErrorCode::FENCED_MEMBER_EPOCH, message.to_owned())
    }

    pub(super) fn response(self) -> Response {
        heartbeat_refusal(self.error, self.message)
    }
}

/// The answer to a heartbeat that is refused.
pub(in crate::coordinator) fn heartbeat_refusal(error: ErrorCode, error_message: Option<Text>) -> Response {
    Response::ConsumerGroupHeartbeat(ConsumerGroupHeartbeatResponse {
        error,
        error_message,
        ..ConsumerGroupHeartbeatResponse::bare(None, 0)
    })
}
