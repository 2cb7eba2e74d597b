//! DeleteGroups (42).
//!
//! v2 flexible. v3 (Kafka 4.4) a message, which Kafka leaves empty for the groups that end here.
//! A group deleted here may have left a stale copy at the upstream, from before it was taken over; that goes too. A group
//! that is not known here is the upstream's to delete.

use bytes::Bytes;
use kafka_protocol::messages::DeleteGroupsRequest;
use tracing::debug;

use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::convert::{text, wire};
use super::merge::{Part, Theirs, ask_ours, distinct, first_error, is_whole, split};
use super::{Answer, ClientUpstream};
use crate::coordinator::request::{Request, Response, Text};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;
use crate::wire::newest::delete_groups::{DeletableGroupResult, DeleteGroupsResponse};

/// The last version that kafka-protocol writes.
const VERSION_MAX: i16 = 2;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: DeleteGroupsRequest = codec::decode_request(call.version, body)?;
    let group_ids = distinct(&request.groups_names);
    let (refused, granted) = split(call, access, group_ids, Operation::Delete).await;
    let requests = granted.into_iter().map(|group_id| {
        let delete = Request::DeleteGroup {
            group_id: group_id.clone(),
        };
        (group_id, delete)
    });
    let groups = ask_ours(call, requests.collect(), |_, response| part(response)).await;
    if refused.is_empty() && is_whole(&groups) && call.can_forward() {
        return Ok(Answer::Forward);
    }
    let asked: Vec<Text> = groups
        .iter()
        .filter(|(_, part)| !matches!(part, Part::Answered(error) if !error.is_none()))
        .map(|(group_id, _)| group_id.clone())
        .collect();
    let mut theirs = Theirs::of(theirs(call, access.upstream, &asked).await);
    let granted = groups.into_iter().map(|(group_id, part)| {
        let their = theirs.take(&group_id).unwrap_or_else(|missing| missing);
        result(&group_id, part, their)
    });
    let refused = refused
        .into_iter()
        .map(|(group_id, error)| result(&group_id, Part::Answered(error), error));
    let results: Vec<_> = granted.chain(refused).collect();
    let error = first_error(results.iter().map(|result| result.error_code));
    let response = DeleteGroupsResponse {
        throttle_time_ms: 0,
        results,
    };
    call.reply(&response, error)
}

fn part(response: Response) -> Part<ErrorCode> {
    match response {
        // The upstream may still list it.
        Response::DeleteGroup {
            error: ErrorCode::GROUP_ID_NOT_FOUND,
        }
        | Response::NotOwned => Part::Upstream,
        Response::DeleteGroup { error } | Response::Unavailable { error } => Part::Answered(error),
        _ => Part::Answered(ErrorCode::UNKNOWN_SERVER_ERROR),
    }
}

async fn theirs(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    group_ids: &[Text],
) -> Result<Vec<(Text, ErrorCode)>, ErrorCode> {
    if group_ids.is_empty() {
        return Ok(Vec::new());
    }
    let version = call.upstream_version(call.version.min(VERSION_MAX));
    let group_ids = group_ids.iter().map(|group_id| wire(group_id).into());
    let request = DeleteGroupsRequest::default().with_groups_names(group_ids.collect());
    let response: DeleteGroupsResponse = call.ask(upstream, version, &request).await?;
    let errors = response.results.iter();
    Ok(errors
        .map(|result| (text(&result.group_id), ErrorCode(result.error_code)))
        .collect())
}

fn result(group_id: &Text, part: Part<ErrorCode>, their: ErrorCode) -> DeletableGroupResult {
    let error = match part {
        Part::Upstream => their,
        Part::Answered(error) => {
            if error.is_none() && !their.is_none() && their != ErrorCode::GROUP_ID_NOT_FOUND {
                // Best effort: what is left there does not count as long as the group was taken over.
                debug!(
                    group = &**group_id,
                    error = their.0,
                    "the upstream kept its copy of a deleted group"
                );
            }
            error
        }
    };
    DeletableGroupResult {
        group_id: wire(group_id),
        error_code: error.0,
        // Kafka has words for the plug-ins of streams groups alone.
        error_message: None,
    }
}
