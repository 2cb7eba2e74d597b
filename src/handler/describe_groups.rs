//! DescribeGroups (15).
//!
//! v3 may ask for the caller's authorized operations. v4 group instance ids. v5 flexible. v6 (KIP-1043) an unknown group is
//! an error, with a message; before, it is a group in state Dead.
//! The upstream is asked once, for the groups that it coordinates and for the operations: what a user may do with a group
//! depends on the upstream's ACLs alone, and v3 to v5 tell it for a group that does not exist there too. Groups that the caller
//! may not describe come first, as Kafka has them.

use std::collections::HashMap;

use bytes::Bytes;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse, GroupId};

use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::convert::{optional_wire, text, wire};
use super::merge::{Part, REPEATS_MAX, Theirs, ask_ours, distinct, first_error, is_whole, split};
use super::{Answer, ClientUpstream};
use crate::coordinator::request::{self as core, Request, Response, Text};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

/// The last version that kafka-protocol writes.
const VERSION_MAX: i16 = 6;
/// The last version that tells the operations of a group that does not exist.
const OPERATIONS_UP_TO: i16 = 5;
/// The first version with an error for unknown groups.
const NOT_FOUND_SINCE: i16 = 6;
/// What stands for operations that were not asked for or are not known.
const NO_OPERATIONS: i32 = i32::MIN;
/// The state of a group that does not exist.
const DEAD: &str = "Dead";

type Described = Part<DescribedGroup>;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: DescribeGroupsRequest = codec::decode_request(call.version, body)?;
    let group_ids = distinct(&request.groups);
    let is_named_once = group_ids.len() == request.groups.len();
    let (refused, granted) = split(call, access, group_ids, Operation::Describe).await;
    let requests = granted.into_iter().map(|group_id| {
        let describe = Request::DescribeGroup {
            group_id: group_id.clone(),
        };
        (group_id, describe)
    });
    let mut groups = ask_ours(call, requests.collect(), |group_id, response| {
        part(call, group_id, response)
    })
    .await;
    if refused.is_empty() && is_whole(&groups) && call.can_forward() {
        return Ok(Answer::Forward);
    }
    let wants_operations = request.include_authorized_operations;
    let asked: Vec<Text> = groups
        .iter()
        .filter(|(_, part)| wants_operations || matches!(part, Part::Upstream))
        .map(|(group_id, _)| group_id.clone())
        .collect();
    if !asked.is_empty() {
        let theirs = theirs(call, access.upstream, &asked, wants_operations).await;
        merge(call, &mut groups, theirs);
    }
    let refused = refused.iter().map(|(group_id, error)| failed(group_id, *error));
    let granted = groups.into_iter().filter_map(|(_, part)| part.answered());
    let mut described: Vec<_> = refused.chain(granted).collect();
    if !is_named_once {
        described = as_often_as_named(described, &request.groups);
    }
    let error = first_error(described.iter().map(|group| group.error_code));
    call.reply(&DescribeGroupsResponse::default().with_groups(described), error)
}

/// A group that is named several times is asked about once and answered as often, up to [`REPEATS_MAX`] of one request.
fn as_often_as_named(described: Vec<DescribedGroup>, named: &[GroupId]) -> Vec<DescribedGroup> {
    let mut times: HashMap<&str, usize> = HashMap::with_capacity(named.len());
    for group_id in named {
        *times.entry(group_id.as_str()).or_default() += 1;
    }
    let mut repeats_left = REPEATS_MAX;
    let repeated = described.into_iter().flat_map(|group| {
        let wanted = times.get(group.group_id.as_str()).map_or(0, |times| times - 1);
        let repeats = wanted.min(repeats_left);
        repeats_left -= repeats;
        std::iter::repeat_n(group, 1 + repeats)
    });
    repeated.collect()
}

fn part(call: &Call<'_>, group_id: &str, response: Response) -> Described {
    match response {
        Response::DescribeGroup(response) => Part::Answered(to_wire(call, &response)),
        Response::NotOwned => Part::Upstream,
        Response::Unavailable { error } => Part::Answered(failed(group_id, error)),
        _ => Part::Answered(failed(group_id, ErrorCode::UNKNOWN_SERVER_ERROR)),
    }
}

fn failed(group_id: &str, error: ErrorCode) -> DescribedGroup {
    DescribedGroup::default()
        .with_group_id(wire(group_id).into())
        .with_error_code(error.0)
        .with_authorized_operations(NO_OPERATIONS)
}

fn to_wire(call: &Call<'_>, group: &core::DescribeGroupResponse) -> DescribedGroup {
    let members = group.members.iter().map(|member| {
        DescribedGroupMember::default()
            .with_member_id(wire(&member.member_id))
            .with_group_instance_id(optional_wire(member.group_instance_id.as_ref()))
            .with_client_id(wire(&member.client_id))
            .with_client_host(wire(&member.client_host))
            .with_member_metadata(member.metadata.clone())
            .with_member_assignment(member.assignment.clone())
    });
    let described = DescribedGroup::default()
        .with_group_id(wire(&group.group_id).into())
        .with_error_code(group.error.0)
        .with_error_message(optional_wire(group.error_message.as_ref()))
        .with_group_state(wire(&group.state))
        .with_protocol_type(wire(&group.protocol_type))
        .with_protocol_data(wire(&group.protocol_name))
        .with_members(members.collect())
        .with_authorized_operations(NO_OPERATIONS);
    in_version(call, described)
}

/// Fits a described group to what the client's version says.
fn in_version(call: &Call<'_>, mut group: DescribedGroup) -> DescribedGroup {
    let is_absent = group.error_code == ErrorCode::NONE.0 && group.group_state.as_str() == DEAD;
    if call.version < NOT_FOUND_SINCE {
        group.error_message = None;
    } else if is_absent {
        group.error_code = ErrorCode::GROUP_ID_NOT_FOUND.0;
        let message = group.error_message.take();
        let not_found = || wire(&format!("Group {} not found.", group.group_id.as_str()));
        group.error_message = Some(message.unwrap_or_else(not_found));
        group.authorized_operations = NO_OPERATIONS;
    }
    group
}

async fn theirs(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    group_ids: &[Text],
    wants_operations: bool,
) -> Result<Vec<DescribedGroup>, ErrorCode> {
    let newest = if wants_operations {
        OPERATIONS_UP_TO
    } else {
        VERSION_MAX
    };
    let version = call.upstream_version(call.version.min(newest));
    let request = DescribeGroupsRequest::default()
        .with_groups(group_ids.iter().map(|group_id| wire(group_id).into()).collect())
        .with_include_authorized_operations(wants_operations);
    let response: DescribeGroupsResponse = call.ask(upstream, version, &request).await?;
    Ok(response.groups)
}

/// Puts the upstream's answers in: whole for its own groups, for ours only what the caller may do.
fn merge(call: &Call<'_>, groups: &mut [(Text, Described)], theirs: Result<Vec<DescribedGroup>, ErrorCode>) {
    let named = |group: DescribedGroup| (text(&group.group_id), group);
    let mut theirs = Theirs::of(theirs.map(|theirs| theirs.into_iter().map(named)));
    for (group_id, part) in groups {
        let their = theirs.take(group_id);
        match part {
            Part::Upstream => {
                let described = their.map(|group| in_version(call, group));
                *part = Part::Answered(described.unwrap_or_else(|error| failed(group_id, error)));
            }
            Part::Answered(ours) if ours.error_code == ErrorCode::NONE.0 => {
                if let Some(their) = their.ok().filter(|their| their.error_code == ErrorCode::NONE.0) {
                    ours.authorized_operations = their.authorized_operations;
                }
            }
            Part::Answered(_) => {}
        }
    }
}
