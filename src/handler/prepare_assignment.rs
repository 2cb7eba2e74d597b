//! ConsumerGroupPrepareAssignment (20848, our own): KIP-848's request of the member that is to compute an assignment.
//!
//! READ on the group is all that it takes, as in the KIP: who has it can join, and so be told to compute.
//! No upstream knows it, so a group that stays there is not found.

use bytes::Bytes;

use super::ClientUpstream;
use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::convert::{optional_wire, text, wire};
use crate::coordinator::partitions::Partitions;
use crate::coordinator::request::{self as core, Request, Response, Text};
use crate::wire::assignment::TopicPartitions;
use crate::wire::assignment::prepare::{
    MemberAssignor, PrepareAssignmentRequest, PrepareAssignmentResponse, PreparedMember, TopicMetadata,
};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: PrepareAssignmentRequest = codec::decode_request(call.version, body)?;
    let (group_id, member_id) = (&request.group_id, &request.member_id);
    if let Err(error) = access.group(group_id, Operation::Read).await {
        return fail(call, error);
    }
    if call.is_delegated(group_id) {
        return refuse(call, ErrorCode::GROUP_ID_NOT_FOUND, Some(&Text::from(NOT_OURS)));
    }
    let prepare = Request::PrepareAssignment(core::PrepareAssignmentRequest {
        group_id: text(group_id),
        member_id: text(member_id),
        member_epoch: request.member_epoch,
    });
    match call.services.coordinator.call(group_id, prepare).await {
        Response::PrepareAssignment(response) => call.reply(&to_wire(&response), response.error),
        Response::NotOwned => refuse(call, ErrorCode::GROUP_ID_NOT_FOUND, Some(&Text::from(NOT_OURS))),
        Response::Unavailable { error } => fail(call, error),
        _ => fail(call, ErrorCode::UNKNOWN_SERVER_ERROR),
    }
}

/// Why a group that the upstream coordinates has no client-side assignors.
pub(super) const NOT_OURS: &str = "Convoke coordinates no such group, and the upstream has no client-side assignors.";

fn fail(call: &Call<'_>, error: ErrorCode) -> Handled {
    refuse(call, error, None)
}

fn refuse(call: &Call<'_>, error: ErrorCode, message: Option<&Text>) -> Handled {
    let response = PrepareAssignmentResponse {
        error_code: error.0,
        error_message: optional_wire(message),
        ..PrepareAssignmentResponse::default()
    };
    call.reply(&response, error)
}

fn to_wire(response: &core::PrepareAssignmentResponse) -> PrepareAssignmentResponse {
    let topics = response.topics.iter().map(|topic| TopicMetadata {
        topic_id: topic.topic_id,
        topic_name: wire(&topic.name),
        num_partitions: topic.partitions,
    });
    PrepareAssignmentResponse {
        throttle_time_ms: 0,
        error_code: response.error.0,
        error_message: optional_wire(response.error_message.as_ref()),
        group_epoch: response.group_epoch,
        assignor_name: wire(&response.assignor_name),
        members: response.members.iter().map(member).collect(),
        topics: topics.collect(),
    }
}

fn member(member: &core::PreparedMember) -> PreparedMember {
    PreparedMember {
        member_id: wire(&member.member_id),
        member_epoch: member.member_epoch,
        instance_id: optional_wire(member.group_instance_id.as_ref()),
        rack_id: optional_wire(member.rack_id.as_ref()),
        subscribed_topic_ids: member.topic_ids.to_vec(),
        assignor: MemberAssignor {
            reason: member.reason,
            metadata_version: member.metadata_version,
            metadata: member.metadata.clone(),
        },
        topic_partitions: by_topic(&member.target),
    }
}

fn by_topic(partitions: &Partitions) -> Vec<TopicPartitions> {
    let topics = partitions.by_topic().map(|(topic_id, partitions)| TopicPartitions {
        topic_id,
        partitions: partitions.collect(),
    });
    topics.collect()
}
