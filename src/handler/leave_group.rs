//! LeaveGroup (13).
//!
//! v0-2 one member, whose error stands at the top. v3 several members, each with an error of its own and perhaps named by
//! its instance id. v4 flexible. v5 reason.

use bytes::Bytes;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};

use super::ClientUpstream;
use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::convert::{optional_text, optional_wire, text, wire};
use super::join_group::reason;
use crate::coordinator::request::{self as core, LeavingMember, Request, Response};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

/// The first version with a list of members.
const MEMBERS_SINCE: i16 = 3;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: LeaveGroupRequest = codec::decode_request(call.version, body)?;
    if call.is_delegated(&request.group_id) {
        return call.pass_on(|error| fail(call, error));
    }
    if let Err(error) = access.group(&request.group_id, Operation::Read).await {
        return fail(call, error);
    }
    if request.group_id.is_empty() {
        return fail(call, ErrorCode::INVALID_GROUP_ID);
    }
    let leave = Request::LeaveGroup(to_core(call.version, &request));
    match call.services.coordinator.call(&request.group_id, leave).await {
        Response::LeaveGroup(response) => answer(call, &response),
        Response::NotOwned => call.pass_on(|error| fail(call, error)),
        Response::Unavailable { error } => fail(call, error),
        _ => fail(call, ErrorCode::UNKNOWN_SERVER_ERROR),
    }
}

fn fail(call: &Call<'_>, error: ErrorCode) -> Handled {
    call.reply(&LeaveGroupResponse::default().with_error_code(error.0), error)
}

fn to_core(version: i16, request: &LeaveGroupRequest) -> core::LeaveGroupRequest {
    let members = if version >= MEMBERS_SINCE {
        let members = request.members.iter().map(|member| LeavingMember {
            member_id: text(&member.member_id),
            group_instance_id: optional_text(member.group_instance_id.as_ref()),
            reason: reason(member.reason.as_ref()),
        });
        members.collect()
    } else {
        vec![LeavingMember {
            member_id: text(&request.member_id),
            group_instance_id: None,
            reason: None,
        }]
    };
    core::LeaveGroupRequest {
        group_id: text(&request.group_id),
        members,
    }
}

fn answer(call: &Call<'_>, response: &core::LeaveGroupResponse) -> Handled {
    let of_members = response.members.iter().map(|member| member.error);
    let first = std::iter::once(response.error)
        .chain(of_members)
        .find(|error| !error.is_none())
        .unwrap_or(ErrorCode::NONE);
    if call.version < MEMBERS_SINCE {
        return fail(call, first);
    }
    let members = response.members.iter().map(|member| {
        MemberResponse::default()
            .with_member_id(wire(&member.member_id))
            .with_group_instance_id(optional_wire(member.group_instance_id.as_ref()))
            .with_error_code(member.error.0)
    });
    let wire = LeaveGroupResponse::default()
        .with_error_code(response.error.0)
        .with_members(members.collect());
    call.reply(&wire, first)
}
