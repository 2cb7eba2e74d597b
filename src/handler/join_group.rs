//! JoinGroup (11).
//!
//! v0 has no rebalance timeout, and later versions may leave it open: the session timeout is it. v4: a first join is told its member id and comes again.
//! v5 group instance id. v6 flexible. v7 the response names the protocol type, and its protocol name may be null.
//! v8 reason. v9 the leader may be told to skip the assignment.

use bytes::Bytes;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use kafka_protocol::protocol::StrBytes;

use super::ClientUpstream;
use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::convert::{optional_text, optional_wire, text, wire};
use crate::coordinator::consumer_protocol::read_topics;
use crate::coordinator::request::{self as core, Protocol, Request, Response, Text};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;
use crate::wire::text::as_java;

/// The first version in which the response may name no protocol.
const NULL_NAME_SINCE: i16 = 7;
/// `rebalance_timeout_ms` of a client that does not say.
const NO_TIMEOUT: i32 = -1;
/// The protocol type whose members' metadata name topics.
const CONSUMER: &str = "consumer";
/// Characters of a client's reason that are kept, as many as Java clients send at most.
const REASON_MAX: usize = 255;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: JoinGroupRequest = codec::decode_request(call.version, body)?;
    if call.is_delegated(&request.group_id) {
        return call.pass_on(|error| fail(call, text(&request.member_id), error));
    }
    match access.group(&request.group_id, Operation::Read).await {
        Ok(()) => {}
        Err(ErrorCode::GROUP_AUTHORIZATION_FAILED) => return deny(call),
        Err(error) => return fail(call, text(&request.member_id), error),
    }
    if request.group_id.is_empty() {
        return fail(call, text(&request.member_id), ErrorCode::INVALID_GROUP_ID);
    }
    look_for_topics(call, &request);
    let member_id = text(&request.member_id);
    let Some(join) = to_core(call, &request) else {
        return fail(call, member_id, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    };
    drop(request);
    let group_id = join.group_id.clone();
    match access.submit(&group_id, Request::JoinGroup(join)).await {
        Response::JoinGroup(response) => call.reply(&to_wire(call.version, &response), response.error),
        Response::NotOwned => call.pass_on(|error| fail(call, member_id, error)),
        Response::Unavailable { error } => fail(call, member_id, error),
        _ => fail(call, member_id, ErrorCode::UNKNOWN_SERVER_ERROR),
    }
}

/// A topic that is younger than the picture of the cluster is to be in it soon: the coordinator assigns its partitions when it is.
fn look_for_topics(call: &Call<'_>, request: &JoinGroupRequest) {
    if !call.services.assign.matches(&request.group_id) || &*request.protocol_type != CONSUMER {
        return;
    }
    let known = call.services.cluster.snapshot();
    let is_unknown = |name| !known.topics.by_name.contains_key(&*as_java(name));
    let protocols = request.protocols.iter();
    let mut topics = protocols.filter_map(|protocol| read_topics(&mut &*protocol.metadata));
    if topics.any(|(_, names)| names.into_iter().any(is_unknown)) {
        call.services.cluster.request_refresh();
    }
}

/// To whom may not join nothing is echoed.
fn deny(call: &Call<'_>) -> Handled {
    let error = ErrorCode::GROUP_AUTHORIZATION_FAILED;
    let response = JoinGroupResponse::default()
        .with_error_code(error.0)
        .with_generation_id(-1)
        .with_protocol_name((call.version < NULL_NAME_SINCE).then(StrBytes::new));
    call.reply(&response, error)
}

/// An error answer of the coordinator echoes the member id.
fn fail(call: &Call<'_>, member_id: Text, error: ErrorCode) -> Handled {
    let response = core::JoinGroupResponse {
        error,
        generation_id: -1,
        protocol_type: None,
        protocol_name: None,
        leader: Text::from(""),
        skip_assignment: false,
        member_id,
        members: Vec::new(),
    };
    call.reply(&to_wire(call.version, &response), error)
}

/// `None` if groups keep too much already.
fn to_core(call: &Call<'_>, request: &JoinGroupRequest) -> Option<core::JoinGroupRequest> {
    let protocols = request.protocols.iter().map(|protocol| {
        Some(Protocol {
            name: text(&protocol.name),
            metadata: call.services.group_memory.keep(&protocol.metadata)?,
        })
    });
    Some(core::JoinGroupRequest {
        group_id: text(&request.group_id),
        member_id: text(&request.member_id),
        group_instance_id: optional_text(request.group_instance_id.as_ref()),
        client_id: call.caller.client_id.clone(),
        client_host: call.caller.client_host.clone(),
        session_timeout_ms: request.session_timeout_ms,
        // As for a member that is loaded without one.
        rebalance_timeout_ms: match request.rebalance_timeout_ms {
            NO_TIMEOUT => request.session_timeout_ms,
            timeout_ms => timeout_ms,
        },
        protocol_type: text(&request.protocol_type),
        protocols: protocols.collect::<Option<_>>()?,
        require_known_member_id: call.version >= 4,
        supports_skipping_assignment: call.version >= 9,
        reason: reason(request.reason.as_ref()),
    })
}

/// The client's own words, cut to a length that a log line bears; an empty one says nothing.
pub(super) fn reason(wire: Option<&StrBytes>) -> Option<Text> {
    let words: String = wire?.chars().take(REASON_MAX).collect();
    (!words.is_empty()).then(|| Text::from(words))
}

fn to_wire(version: i16, response: &core::JoinGroupResponse) -> JoinGroupResponse {
    let protocol_name = optional_wire(response.protocol_name.as_ref());
    let members = response.members.iter().map(|member| {
        JoinGroupResponseMember::default()
            .with_member_id(wire(&member.member_id))
            .with_group_instance_id(optional_wire(member.group_instance_id.as_ref()))
            .with_metadata(member.metadata.clone())
    });
    JoinGroupResponse::default()
        .with_error_code(response.error.0)
        .with_generation_id(response.generation_id)
        .with_protocol_type(optional_wire(response.protocol_type.as_ref()))
        .with_protocol_name(if version >= NULL_NAME_SINCE {
            protocol_name
        } else {
            Some(protocol_name.unwrap_or_default())
        })
        .with_leader(wire(&response.leader))
        .with_skip_assignment(version >= 9 && response.skip_assignment)
        .with_member_id(wire(&response.member_id))
        .with_members(members.collect())
}
