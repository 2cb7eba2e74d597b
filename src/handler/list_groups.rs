//! ListGroups (16).
//!
//! v3 flexible. v4 filter by state, and states in the response. v5 filter by type, and types in the response.
//! Clients ask every node and add up, so each of our groups is listed by one node: its coordinator, as the upstream has it.
//! The node's own list comes with it, without what is ours. Who may describe the cluster sees every group, others those that
//! they may describe.

use std::collections::HashSet;

use bytes::Bytes;
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{ListGroupsRequest, ListGroupsResponse};
use kafka_protocol::protocol::StrBytes;

use super::ClientUpstream;
use super::access::Access;
use super::call::{Call, Handled};
use super::convert::{text, wire};
use crate::coordinator::request::{self as core, Request, Response, Text};
use crate::store::ShardId;
use crate::upstream::cluster::Cluster;
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

/// The last version that kafka-protocol writes.
const VERSION_MAX: i16 = 5;
/// The first versions with each filter, and with what it filters by.
const STATES_SINCE: i16 = 4;
const TYPES_SINCE: i16 = 5;
/// The only type that coordinators list without saying so.
const CLASSIC: &str = "classic";

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: ListGroupsRequest = codec::decode_request(call.version, body)?;
    let (mut groups, owned) = match ours(call, &request).await {
        Ok(ours) => ours,
        Err(error) => return fail(call, error),
    };
    let listed: Vec<Text> = groups.iter().map(|group| text(&group.group_id)).collect();
    match access.unlisted(&listed).await {
        Ok(unlisted) => groups.retain(|group| !unlisted.contains(group.group_id.as_str())),
        Err(error) => return fail(call, error),
    }
    match theirs(call, access.upstream, request).await {
        Ok(theirs) => groups.extend(
            theirs
                .into_iter()
                .filter(|group| !owned.contains(group.group_id.as_str())),
        ),
        // Half a list would look like a whole one.
        Err(error) => return fail(call, error),
    }
    call.reply(&ListGroupsResponse::default().with_groups(groups), ErrorCode::NONE)
}

fn fail(call: &Call<'_>, error: ErrorCode) -> Handled {
    call.reply(&ListGroupsResponse::default().with_error_code(error.0), error)
}

/// Our groups that this node lists, and the ids of all that are ours.
async fn ours(call: &Call<'_>, request: &ListGroupsRequest) -> Result<(Vec<ListedGroup>, HashSet<Text>), ErrorCode> {
    let filters = Request::ListGroups(core::ListGroupsRequest {
        states: request.states_filter.iter().map(text).collect(),
        types: request.types_filter.iter().map(text).collect(),
    });
    let cluster = call.services.cluster.snapshot();
    let (mut groups, mut owned) = (Vec::new(), HashSet::new());
    for (shard, response) in call.services.coordinator.call_all(filters).await {
        match response {
            Response::ListGroups(response) => {
                owned.extend(response.owned);
                // What was never written has no mark yet.
                owned.extend(response.groups.iter().map(|group| group.group_id.clone()));
                if is_listed_by(&cluster, shard, call.caller.node_id) {
                    groups.extend(response.groups.iter().map(to_wire));
                }
            }
            Response::Unavailable { error } => return Err(error),
            _ => return Err(ErrorCode::UNKNOWN_SERVER_ERROR),
        }
    }
    Ok((groups, owned))
}

/// Whether the node lists the shard's groups. While a shard has no coordinator upstream, the node with the lowest id does. A
/// bootstrap connection belongs to no node; who lists groups on it has not asked for nodes, and gets everything.
fn is_listed_by(cluster: &Cluster, shard: ShardId, node_id: Option<i32>) -> bool {
    let Some(node_id) = node_id else { return true };
    let coordinator = usize::try_from(shard.0)
        .ok()
        .and_then(|partition| cluster.coordinators.get(partition));
    let known = coordinator.copied().filter(|id| cluster.nodes.contains_key(id));
    let lister = known.or_else(|| cluster.nodes.keys().next().copied());
    lister.is_none_or(|lister| lister == node_id)
}

fn to_wire(group: &core::ListedGroup) -> ListedGroup {
    ListedGroup::default()
        .with_group_id(wire(&group.group_id).into())
        .with_protocol_type(wire(&group.protocol_type))
        .with_group_state(wire(&group.state))
        .with_group_type(wire(&group.group_type))
}

/// The node's own list. What it is too old to filter is filtered here: without types every group is a classic one, without
/// states none is known to be in one that is asked for.
async fn theirs(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    mut request: ListGroupsRequest,
) -> Result<Vec<ListedGroup>, ErrorCode> {
    let version = call.upstream_version(call.version.min(VERSION_MAX));
    if version < TYPES_SINCE {
        let types = std::mem::take(&mut request.types_filter);
        if !passes(&types, CLASSIC) {
            return Ok(Vec::new());
        }
    }
    if version < STATES_SINCE && !std::mem::take(&mut request.states_filter).is_empty() {
        return Ok(Vec::new());
    }
    let mut response: ListGroupsResponse = call.ask(upstream, version, &request).await?;
    if response.error_code != ErrorCode::NONE.0 {
        return Err(ErrorCode(response.error_code));
    }
    if version < TYPES_SINCE && call.version >= TYPES_SINCE {
        for group in &mut response.groups {
            group.group_type = StrBytes::from_static_str(CLASSIC);
        }
    }
    Ok(response.groups)
}

/// An empty filter lets everything through.
fn passes(filter: &[StrBytes], value: &str) -> bool {
    filter.is_empty() || filter.iter().any(|allowed| allowed.trim().eq_ignore_ascii_case(value))
}
