//! ConsumerGroupInstallAssignment (20849, our own): KIP-848's request that hands in a computed assignment.
//!
//! READ on the group, as for ConsumerGroupPrepareAssignment; the rest is the coordinator's to say.

use bytes::Bytes;

use super::ClientUpstream;
use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::convert::{optional_wire, text};
use super::prepare_assignment::NOT_OURS;
use crate::coordinator::partitions::TopicPartition;
use crate::coordinator::request::{self as core, Request, Response, Text};
use crate::wire::assignment::install::{InstallAssignmentRequest, InstallAssignmentResponse, InstalledMember};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: InstallAssignmentRequest = codec::decode_request(call.version, body)?;
    let group_id = &request.group_id;
    if let Err(error) = access.group(group_id, Operation::Read).await {
        return answer(call, error, None);
    }
    if call.is_delegated(group_id) {
        return answer(call, ErrorCode::GROUP_ID_NOT_FOUND, Some(&Text::from(NOT_OURS)));
    }
    let Some(install) = to_core(call, &request) else {
        return answer(call, ErrorCode::COORDINATOR_NOT_AVAILABLE, None);
    };
    match call
        .services
        .coordinator
        .call(group_id, Request::InstallAssignment(install))
        .await
    {
        Response::InstallAssignment { error, error_message } => answer(call, error, error_message.as_ref()),
        Response::NotOwned => answer(call, ErrorCode::GROUP_ID_NOT_FOUND, Some(&Text::from(NOT_OURS))),
        Response::Unavailable { error } => answer(call, error, None),
        _ => answer(call, ErrorCode::UNKNOWN_SERVER_ERROR, None),
    }
}

fn answer(call: &Call<'_>, error: ErrorCode, message: Option<&Text>) -> Handled {
    let response = InstallAssignmentResponse {
        throttle_time_ms: 0,
        error_code: error.0,
        error_message: optional_wire(message),
    };
    call.reply(&response, error)
}

/// `None` if groups keep too much already.
fn to_core(call: &Call<'_>, request: &InstallAssignmentRequest) -> Option<core::InstallAssignmentRequest> {
    let members = request.members.iter().map(|installed| member(call, installed));
    Some(core::InstallAssignmentRequest {
        group_id: text(&request.group_id),
        member_id: text(&request.member_id),
        member_epoch: request.member_epoch,
        group_epoch: request.group_epoch,
        error: request.error,
        members: members.collect::<Option<_>>()?,
    })
}

fn member(call: &Call<'_>, member: &InstalledMember) -> Option<core::InstalledMember> {
    let partitions = member.partitions.iter().flat_map(|topic| {
        let topic_id = topic.topic_id;
        let numbers = topic.partitions.iter();
        numbers.map(move |&partition| TopicPartition { topic_id, partition })
    });
    Some(core::InstalledMember {
        member_id: text(&member.member_id),
        partitions: partitions.collect(),
        metadata_version: member.metadata_version,
        metadata: call.services.group_memory.keep(&member.metadata)?,
    })
}
