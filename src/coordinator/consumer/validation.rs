//! What is wrong with a heartbeat whatever the group (Kafka's `throwIfConsumerGroupHeartbeatRequestIsInvalid`).

use super::epoch;
use super::heartbeat::heartbeat_refusal;
use crate::coordinator::request::{ConsumerGroupHeartbeatRequest, Response, Text};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

/// The refusal of a request that cannot be one; `None` if it is in order.
pub(in crate::coordinator) fn invalid_heartbeat(
    request: &ConsumerGroupHeartbeatRequest,
    settings: &Settings,
) -> Option<Response> {
    if let Some(message) = invalid(request) {
        return Some(heartbeat_refusal(ErrorCode::INVALID_REQUEST, Some(message.into())));
    }
    let assignor = request.server_assignor.as_ref()?;
    if settings.group_consumer_assignors.contains(assignor) {
        return None;
    }
    let supported = settings.group_consumer_assignors.join(", ");
    let message = format!("ServerAssignor {assignor} is not supported. Supported assignors: {supported}.");
    Some(heartbeat_refusal(ErrorCode::UNSUPPORTED_ASSIGNOR, Some(message.into())))
}

fn invalid(request: &ConsumerGroupHeartbeatRequest) -> Option<&'static str> {
    let epoch = request.member_epoch;
    let is_blank = |text: &Text| text.trim().is_empty();
    if is_blank(&request.member_id) && (request.needs_member_id || epoch > epoch::JOIN || epoch == epoch::LEAVE) {
        return Some("MemberId can't be empty.");
    }
    if is_blank(&request.group_id) {
        return Some("GroupId can't be empty.");
    }
    if request.group_instance_id.as_ref().is_some_and(is_blank) {
        return Some("InstanceId can't be empty.");
    }
    if request.rack_id.as_ref().is_some_and(is_blank) {
        return Some("RackId can't be empty.");
    }
    match epoch {
        epoch::JOIN => invalid_join(request),
        epoch::LEAVE_FOR_A_WHILE if request.group_instance_id.is_none() => Some("InstanceId can't be null."),
        ..epoch::LEAVE_FOR_A_WHILE => Some("MemberEpoch is invalid."),
        _ => None,
    }
}

fn invalid_join(request: &ConsumerGroupHeartbeatRequest) -> Option<&'static str> {
    if request.rebalance_timeout_ms == -1 {
        return Some("RebalanceTimeoutMs must be provided in first request.");
    }
    if !request.topic_partitions.as_ref().is_some_and(|owned| owned.is_empty()) {
        return Some("TopicPartitions must be empty when (re-)joining.");
    }
    if request.subscribed_topic_names.is_none() && request.subscribed_topic_regex.is_none() {
        return Some("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.");
    }
    None
}
