//! SyncGroup (14).
//!
//! v3 group instance id. v4 flexible. v5 protocol type and name are mandatory, and named in the response.
//! While a shard loads, clients are told to rejoin: Java's takes COORDINATOR_LOAD_IN_PROGRESS here as fatal.

use bytes::Bytes;
use kafka_protocol::messages::{SyncGroupRequest, SyncGroupResponse};

use super::ClientUpstream;
use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::convert::{optional_text, optional_wire, text};
use crate::coordinator::request::{self as core, Request, Response};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: SyncGroupRequest = codec::decode_request(call.version, body)?;
    if call.is_delegated(&request.group_id) {
        return call.pass_on(|error| fail(call, error));
    }
    if call.version >= 5 && (request.protocol_type.is_none() || request.protocol_name.is_none()) {
        return fail(call, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    }
    if let Err(error) = access.group(&request.group_id, Operation::Read).await {
        return fail(call, error);
    }
    if request.group_id.is_empty() {
        return fail(call, ErrorCode::INVALID_GROUP_ID);
    }
    let Some(sync) = to_core(call, &request) else {
        return fail(call, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    };
    drop(request);
    let group_id = sync.group_id.clone();
    match access.submit(&group_id, Request::SyncGroup(sync)).await {
        Response::SyncGroup(response) => call.reply(&to_wire(&response), response.error),
        Response::NotOwned => call.pass_on(|error| fail(call, error)),
        Response::Unavailable { error } => fail(call, survivable(error)),
        _ => fail(call, ErrorCode::UNKNOWN_SERVER_ERROR),
    }
}

fn fail(call: &Call<'_>, error: ErrorCode) -> Handled {
    call.reply(&SyncGroupResponse::default().with_error_code(error.0), error)
}

const fn survivable(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => ErrorCode::REBALANCE_IN_PROGRESS,
        other => other,
    }
}

/// `None` if groups keep too much already.
fn to_core(call: &Call<'_>, request: &SyncGroupRequest) -> Option<core::SyncGroupRequest> {
    let assignments = request.assignments.iter().map(|assignment| {
        let kept = call.services.group_memory.keep(&assignment.assignment)?;
        Some((text(&assignment.member_id), kept))
    });
    Some(core::SyncGroupRequest {
        group_id: text(&request.group_id),
        generation_id: request.generation_id,
        member_id: text(&request.member_id),
        group_instance_id: optional_text(request.group_instance_id.as_ref()),
        protocol_type: optional_text(request.protocol_type.as_ref()),
        protocol_name: optional_text(request.protocol_name.as_ref()),
        assignments: assignments.collect::<Option<_>>()?,
    })
}

fn to_wire(response: &core::SyncGroupResponse) -> SyncGroupResponse {
    SyncGroupResponse::default()
        .with_error_code(response.error.0)
        .with_protocol_type(optional_wire(response.protocol_type.as_ref()))
        .with_protocol_name(optional_wire(response.protocol_name.as_ref()))
        .with_assignment(response.assignment.clone())
}
