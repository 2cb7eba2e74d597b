//! Heartbeat (12).
//!
//! v3 group instance id. v4 flexible.
//! While a shard loads, every heartbeat is well: Java's client takes COORDINATOR_LOAD_IN_PROGRESS here as fatal.

use bytes::Bytes;
use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};

use super::ClientUpstream;
use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::convert::{optional_text, text};
use crate::coordinator::request::{self as core, Request, Response};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: HeartbeatRequest = codec::decode_request(call.version, body)?;
    if call.is_delegated(&request.group_id) {
        return call.pass_on(|error| answer(call, error));
    }
    if let Err(error) = access.group(&request.group_id, Operation::Read).await {
        return answer(call, error);
    }
    if request.group_id.is_empty() {
        return answer(call, ErrorCode::INVALID_GROUP_ID);
    }
    let heartbeat = Request::Heartbeat(core::HeartbeatRequest {
        group_id: text(&request.group_id),
        generation_id: request.generation_id,
        member_id: text(&request.member_id),
        group_instance_id: optional_text(request.group_instance_id.as_ref()),
    });
    match call.services.coordinator.call(&request.group_id, heartbeat).await {
        Response::Heartbeat { error } => answer(call, error),
        Response::NotOwned => call.pass_on(|error| answer(call, error)),
        Response::Unavailable { error } => answer(call, survivable(error)),
        _ => answer(call, ErrorCode::UNKNOWN_SERVER_ERROR),
    }
}

fn answer(call: &Call<'_>, error: ErrorCode) -> Handled {
    call.reply(&HeartbeatResponse::default().with_error_code(error.0), error)
}

const fn survivable(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => ErrorCode::NONE,
        other => other,
    }
}
