//! ConsumerGroupHeartbeat (68, KIP-848).
//!
//! v1 (KIP-1082) the member makes its own id, and may subscribe to a pattern. It is the one with the tagged fields of
//! client-side assignors, which only Convoke knows.
//! A heartbeat whose patterns have to be resolved changes nothing at first: they are resolved here, as far as the user may
//! see topics, and it is asked again with what they stand for.
//! While a shard loads, COORDINATOR_LOAD_IN_PROGRESS is answered, which all clients of this API wait out.

use bytes::Bytes;
use kafka_protocol::messages::consumer_group_heartbeat_response::{Assignment, TopicPartitions};
use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use kafka_protocol::protocol::StrBytes;

use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::convert::{optional_text, optional_wire, text, wire};
use super::{ClientUpstream, pattern_heartbeat, topic_patterns};
use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::coordinator::request::{self as core, Request, ResolvedRegex, Response, Text};
use crate::wire::assignment::heartbeat as tags;
use crate::wire::codec::{self, WireError};
use crate::wire::error_code::ErrorCode;

/// The first version whose members make their ids themselves.
const OWN_ID_SINCE: i16 = 1;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: ConsumerGroupHeartbeatRequest = codec::decode_request(call.version, body)?;
    if call.is_delegated(&request.group_id) {
        return pass_on(call, &request, |error| error);
    }
    if !call.services.cluster.look().topics.have_ids() {
        return fail(call, ErrorCode::UNSUPPORTED_VERSION);
    }
    if let Err(error) = may(&request, access).await {
        return fail(call, error);
    }
    look_for_topics(call, &request);
    let Some(assignors) = client_assignors(call, &request)? else {
        return fail(call, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    };
    if pattern_heartbeat::is_one(call, &request, assignors.as_deref()) {
        return Box::pin(pattern_heartbeat::handle(
            call,
            to_core(call, &request, access.registrations().connection(), assignors, None),
            access,
        ))
        .await;
    }
    let connection = access.registrations().connection();
    let mut response = ask(call, &request, connection, assignors.clone(), None).await;
    if let Response::ResolveRegexes { patterns } = response {
        // Boxed, since few heartbeats come here and every connection has room for it.
        match Box::pin(topic_patterns::resolve(call, &patterns, access)).await {
            Ok(resolved) => response = Box::pin(ask(call, &request, connection, assignors, Some(resolved))).await,
            Err(refusal) => return refuse(call, refusal.error, refusal.message.as_ref()),
        }
    }
    match response {
        Response::ConsumerGroupHeartbeat(response) => {
            if response.error.is_none() && tags::is_external_assignor(&request) {
                let (group_id, member_id) = (text(&request.group_id), text(&request.member_id));
                let coordinator = &call.services.coordinator;
                access.registrations().note(coordinator, group_id, member_id, false);
            }
            call.reply(&to_wire(call, &response)?, response.error)
        }
        // Only members of groups that are ours are ours; the upstream knows what it has.
        Response::NotOwned => pass_on(call, &request, |_| ErrorCode::GROUP_ID_NOT_FOUND),
        Response::Unavailable { error } => fail(call, error),
        _ => fail(call, ErrorCode::UNKNOWN_SERVER_ERROR),
    }
}

/// A broker skips the fields that it does not know, and would take an external assignor for a consumer without topics.
fn pass_on(
    call: &Call<'_>,
    request: &ConsumerGroupHeartbeatRequest,
    otherwise: impl FnOnce(ErrorCode) -> ErrorCode,
) -> Handled {
    if tags::is_external_assignor(request) {
        let message = Text::from("The group is coordinated by the brokers, which have no client-side assignors.");
        return refuse(call, ErrorCode::GROUP_ID_NOT_FOUND, Some(&message));
    }
    call.pass_on(|error| fail(call, otherwise(error)))
}

/// Whether the user may join the group and describe each topic that it names.
async fn may(
    request: &ConsumerGroupHeartbeatRequest,
    access: &mut Access<'_, impl ClientUpstream>,
) -> Result<(), ErrorCode> {
    access.group(&request.group_id, Operation::Read).await?;
    let names = request.subscribed_topic_names.iter().flatten();
    let names = names.map(|name| text(name));
    let denied = access.topics(names, Operation::Describe).await?;
    if denied.is_empty() {
        Ok(())
    } else {
        Err(ErrorCode::TOPIC_AUTHORIZATION_FAILED)
    }
}

/// A topic that is younger than the picture of the cluster is to be in it soon; the group is told when it is.
fn look_for_topics(call: &Call<'_>, request: &ConsumerGroupHeartbeatRequest) {
    let cluster = &call.services.cluster;
    let known = cluster.look();
    let mut names = request.subscribed_topic_names.iter().flatten();
    if names.any(|name| !known.topics.by_name.contains_key(name.as_str())) {
        cluster.request_refresh();
    }
}

async fn ask(
    call: &Call<'_>,
    request: &ConsumerGroupHeartbeatRequest,
    connection: u64,
    assignors: Option<Vec<core::ClientAssignor>>,
    resolved: Option<Vec<ResolvedRegex>>,
) -> Response {
    let heartbeat = Request::ConsumerGroupHeartbeat(to_core(call, request, connection, assignors, resolved));
    call.services.coordinator.call(&request.group_id, heartbeat).await
}

pub(super) fn fail(call: &Call<'_>, error: ErrorCode) -> Handled {
    refuse(call, error, None)
}

fn refuse(call: &Call<'_>, error: ErrorCode, message: Option<&Text>) -> Handled {
    let response = ConsumerGroupHeartbeatResponse::default()
        .with_error_code(error.0)
        .with_error_message(optional_wire(message));
    call.reply(&response, error)
}

fn to_core(
    call: &Call<'_>,
    request: &ConsumerGroupHeartbeatRequest,
    connection: u64,
    client_assignors: Option<Vec<core::ClientAssignor>>,
    resolved: Option<Vec<ResolvedRegex>>,
) -> core::ConsumerGroupHeartbeatRequest {
    let names = request.subscribed_topic_names.as_ref();
    core::ConsumerGroupHeartbeatRequest {
        group_id: text(&request.group_id),
        member_id: text(&request.member_id),
        member_epoch: request.member_epoch,
        group_instance_id: optional_text(request.instance_id.as_ref()),
        rack_id: optional_text(request.rack_id.as_ref()),
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        subscribed_topic_names: names.map(|names| names.iter().map(|name| text(name)).collect()),
        subscribed_topic_regex: optional_text(request.subscribed_topic_regex.as_ref()),
        server_assignor: optional_text(request.server_assignor.as_ref()),
        client_assignors,
        topic_partitions: owned(request),
        client_id: call.caller.client_id.clone(),
        client_host: call.caller.client_host.clone(),
        connection,
        needs_member_id: call.version >= OWN_ID_SINCE,
        resolved,
    }
}

/// The assignors that the member has, where nothing is as before; `None` if groups keep too much already. The length guard keeps them
/// from other versions than ours.
fn client_assignors(
    call: &Call<'_>,
    request: &ConsumerGroupHeartbeatRequest,
) -> Result<Option<Option<Vec<core::ClientAssignor>>>, WireError> {
    let Some(assignors) = tags::client_assignors(request)? else {
        return Ok(Some(None));
    };
    let to_core = |assignor: &tags::ClientAssignor| {
        Some(core::ClientAssignor {
            name: text(&assignor.name),
            minimum_version: assignor.minimum_version,
            maximum_version: assignor.maximum_version,
            reason: assignor.reason,
            metadata_version: assignor.metadata_version,
            metadata: call.services.group_memory.keep(&assignor.metadata)?,
        })
    };
    let kept: Option<Vec<_>> = assignors.iter().map(to_core).collect();
    Ok(kept.map(Some))
}

/// What the member says it has; `None` is as before.
fn owned(request: &ConsumerGroupHeartbeatRequest) -> Option<Partitions> {
    let topics = request.topic_partitions.as_ref()?;
    let partitions = topics.iter().flat_map(|topic| {
        let topic_id = topic.topic_id;
        let numbers = topic.partitions.iter();
        numbers.map(move |&partition| TopicPartition { topic_id, partition })
    });
    Some(partitions.collect())
}

pub(super) fn to_wire(
    call: &Call<'_>,
    response: &core::ConsumerGroupHeartbeatResponse,
) -> Result<ConsumerGroupHeartbeatResponse, WireError> {
    let mut assignment = response.assignment.as_deref().map(assignment);
    if let Some(assignment) = assignment.as_mut().filter(|_| call.version == tags::VERSION) {
        tags::set_assigned_by(assignment, &assigned_by(&response.assigned_by))?;
    }
    let mut answer = ConsumerGroupHeartbeatResponse::default()
        .with_error_code(response.error.0)
        .with_error_message(optional_wire(response.error_message.as_ref()))
        .with_member_id(optional_wire(response.member_id.as_ref()))
        .with_member_epoch(response.member_epoch)
        .with_heartbeat_interval_ms(response.heartbeat_interval_ms)
        .with_assignment(assignment);
    if response.should_compute_assignment && call.version == tags::VERSION {
        tags::set_should_compute_assignment(&mut answer);
    }
    if let Some(groups) = &response.groups_to_compute {
        let groups: Vec<StrBytes> = groups.iter().map(|group| wire(group)).collect();
        tags::set_groups_to_compute(&mut answer, &groups)?;
    }
    Ok(answer)
}

fn assigned_by(assigned: &core::AssignedBy) -> tags::AssignedBy {
    tags::AssignedBy {
        error: assigned.error,
        metadata_version: assigned.metadata_version,
        metadata: assigned.metadata.clone(),
    }
}

fn assignment(partitions: &Partitions) -> Assignment {
    let topics = partitions.by_topic().map(|(topic_id, partitions)| {
        TopicPartitions::default()
            .with_topic_id(topic_id)
            .with_partitions(partitions.collect())
    });
    Assignment::default().with_topic_partitions(topics.collect())
}
