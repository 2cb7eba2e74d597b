//! ConsumerGroupHeartbeat of an external assignor that registers for all groups of a pattern at once: GroupId is a prefix with a `*`
//! at its end, as a rule of `assignors` has it for each name that it lists.
//!
//! Every shard is told, and the first that has something to compute makes the answer. To register takes READ on a group of the
//! pattern's own name, which an ACL for the prefix gives. Groups that the user may not read are not named to it.

use kafka_protocol::messages::ConsumerGroupHeartbeatRequest;

use super::ClientUpstream;
use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::consumer_group_heartbeat::{fail, to_wire};
use crate::coordinator::request::{self as core, PatternHeartbeatRequest, Request, Response, Text};
use crate::wire::assignment::heartbeat as tags;
use crate::wire::error_code::ErrorCode;

pub(super) fn is_one(
    call: &Call<'_>,
    request: &ConsumerGroupHeartbeatRequest,
    assignors: Option<&[core::ClientAssignor]>,
) -> bool {
    let rules = &call.services.assignors;
    let has_pattern = |assignor: &core::ClientAssignor| {
        let groups = rules.get(&*assignor.name);
        groups.is_some_and(|groups| groups.has_prefix(&request.group_id))
    };
    let listed = assignors.unwrap_or_default();
    !listed.is_empty() && tags::is_external_assignor(request) && listed.iter().all(has_pattern)
}

pub(super) async fn handle(
    call: &Call<'_>,
    heartbeat: core::ConsumerGroupHeartbeatRequest,
    access: &mut Access<'_, impl ClientUpstream>,
) -> Handled {
    let to_shard = |is_own_shard| {
        Request::PatternHeartbeat(PatternHeartbeatRequest {
            heartbeat: heartbeat.clone(),
            is_own_shard,
        })
    };
    let has_news = |answer: &Response| match answer {
        Response::ConsumerGroupHeartbeat(answer) => {
            !answer.error.is_none()
                || answer
                    .groups_to_compute
                    .as_ref()
                    .is_some_and(|groups| !groups.is_empty())
        }
        _ => false,
    };
    let coordinator = &call.services.coordinator;
    let answers = coordinator.call_until(&heartbeat.group_id, to_shard, has_news).await;
    match merge(answers) {
        Ok(mut answer) => {
            let mut told = answer.groups_to_compute.take().unwrap_or_default();
            let refused = access.groups(&told, Operation::Read).await;
            // Of groups that other nodes coordinate it is only known here whether they may be seen.
            told.retain(|group_id| refused.get(group_id) != Some(&ErrorCode::GROUP_AUTHORIZATION_FAILED));
            answer.groups_to_compute = Some(told);
            if answer.error.is_none() {
                let (group_id, member_id) = (heartbeat.group_id.clone(), heartbeat.member_id.clone());
                access.registrations().note(coordinator, group_id, member_id, true);
            }
            call.reply(&to_wire(call, &answer)?, answer.error)
        }
        Err(error) => fail(call, error),
    }
}

/// One answer of those of the shards: with all groups that they name, or the first error. Shards that cannot answer now are told
/// by the next heartbeat.
fn merge(answers: Vec<Response>) -> Result<core::ConsumerGroupHeartbeatResponse, ErrorCode> {
    let mut merged: Option<core::ConsumerGroupHeartbeatResponse> = None;
    let mut unavailable = ErrorCode::COORDINATOR_NOT_AVAILABLE;
    let mut groups: Vec<Text> = Vec::new();
    for answer in answers {
        match answer {
            Response::ConsumerGroupHeartbeat(mut answer) => {
                groups.extend(answer.groups_to_compute.take().unwrap_or_default());
                let is_first = merged
                    .as_ref()
                    .is_none_or(|merged| merged.error.is_none() && !answer.error.is_none());
                if is_first {
                    merged = Some(answer);
                }
            }
            Response::Unavailable { error } => unavailable = error,
            _ => {}
        }
    }
    let merged = merged.ok_or(unavailable)?;
    Ok(core::ConsumerGroupHeartbeatResponse {
        groups_to_compute: Some(groups),
        ..merged
    })
}
