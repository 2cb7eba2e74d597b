//! What is wrong with a heartbeat whatever the group (Kafka's `throwIfConsumerGroupHeartbeatRequestIsInvalid`).

use std::collections::BTreeSet;

use super::epoch;
use super::members::metadata_bytes;
use super::refusal::heartbeat_refusal;
use crate::coordinator::client_assignor::ASSIGNORS_MAX;
use crate::coordinator::request::{ClientAssignor, ConsumerGroupHeartbeatRequest, Response, Text};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

/// As long as a topic's may be.
const ASSIGNOR_NAME_MAX_BYTES: usize = 249;

/// The refusal of a request that cannot be one; `None` if it is in order. Whether somebody offers an assignor to a group, or
/// a member of it asks for that one already, `is_offered` says.
pub(in crate::coordinator) fn invalid_heartbeat(
    request: &ConsumerGroupHeartbeatRequest,
    settings: &Settings,
    is_offered: impl Fn(&str, &str) -> bool,
) -> Option<Response> {
    let message = invalid(request).map(Text::from);
    if let Some(message) = message.or_else(|| invalid_assignors(request, settings)) {
        return Some(heartbeat_refusal(ErrorCode::INVALID_REQUEST, Some(message)));
    }
    let assignor = request.server_assignor.as_ref()?;
    let listed = request.client_assignors.as_deref().unwrap_or_default();
    if settings.group_consumer_assignors.contains(assignor)
        || settings.names_assignor(&request.group_id, assignor)
        || ClientAssignor::find(listed, assignor).is_some()
        || is_offered(&request.group_id, assignor)
    {
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

fn invalid_assignors(request: &ConsumerGroupHeartbeatRequest, settings: &Settings) -> Option<Text> {
    let assignors = request.client_assignors.as_ref()?;
    if assignors.len() > ASSIGNORS_MAX {
        return Some(format!("ClientAssignors can't be more than {ASSIGNORS_MAX}.").into());
    }
    let mut names = BTreeSet::new();
    for assignor in assignors {
        let ClientAssignor {
            name,
            minimum_version: minimum,
            maximum_version: maximum,
            ..
        } = assignor;
        if name.trim().is_empty() || name.len() > ASSIGNOR_NAME_MAX_BYTES {
            return Some(format!("The name of an assignor must have 1 to {ASSIGNOR_NAME_MAX_BYTES} bytes.").into());
        }
        if !names.insert(name) {
            return Some(format!("Assignor {name} comes twice.").into());
        }
        if *minimum < 0 || maximum < minimum {
            return Some(format!("Assignor {name} has the versions {minimum} to {maximum}, which are none.").into());
        }
    }
    let (length, limit) = (metadata_bytes(assignors), settings.assignor_metadata_max_bytes);
    let message = || format!("The metadata of the assignors is {length} bytes long, at most {limit} are allowed.");
    (length > limit).then(|| message().into())
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
