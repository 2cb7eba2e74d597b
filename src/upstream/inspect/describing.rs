//! What is known of groups without the list of all: for a node that cannot list them.
//!
//! Text that is not UTF-8 grows when a broker reads it. A group id of more than 32767 bytes cannot be written any more, and a broker
//! before Kafka 4 that has met such a group answers each ListGroups with UNKNOWN_SERVER_ERROR until it is restarted. Descriptions name
//! only the groups that are asked about.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kafka_protocol::messages::{
    ApiKey, ConsumerGroupDescribeRequest, DescribeGroupsRequest, GroupId, ListGroupsRequest,
};
use kafka_protocol::protocol::StrBytes;

use super::answers::{Failure, failure_of, of_other_type, presence_of, refused};
use crate::coordinator::input::Presence;
use crate::coordinator::request::Text;
use crate::upstream::node::Node;
use crate::wire::error_code::ErrorCode;

/// The first version of ListGroups that takes types (KIP-848); no older broker has groups of other types.
const TYPES_SINCE: i16 = 5;
const OTHER_TYPES: [&str; 2] = ["share", "streams"];

/// Those of the groups that are there.
///
/// # Errors
/// Why it could not be found out.
pub(super) async fn describe(node: &Arc<Node>, wanted: &HashSet<Text>) -> Result<HashMap<Text, Presence>, Failure> {
    let mut found = classic(node, wanted).await?;
    found.extend(consumer(node, wanted).await?);
    found.extend(others(node, wanted).await?);
    Ok(found)
}

/// Share and streams groups have lists of their own, which hold no group of another type.
async fn others(node: &Arc<Node>, wanted: &HashSet<Text>) -> Result<HashMap<Text, Presence>, Failure> {
    if !node.speaks(ApiKey::ListGroups, TYPES_SINCE) {
        return Ok(HashMap::new());
    }
    let types = OTHER_TYPES.map(StrBytes::from_static_str);
    let request = ListGroupsRequest::default().with_types_filter(types.to_vec());
    let answer = node.call(TYPES_SINCE, &request).await.map_err(failure_of)?;
    let error = ErrorCode(answer.error_code);
    if !error.is_none() {
        return Err(refused(node.address(), "ListGroups of share and streams groups", error));
    }
    let listed = answer.groups.iter().filter_map(|group| {
        let id = wanted.get(group.group_id.as_str())?;
        Some((id.clone(), of_other_type(&group.group_type)))
    });
    Ok(listed.collect())
}

/// A group that is not there is Dead, or since v6 GROUP_ID_NOT_FOUND; so is one of another type.
async fn classic(node: &Arc<Node>, wanted: &HashSet<Text>) -> Result<HashMap<Text, Presence>, Failure> {
    let request = DescribeGroupsRequest::default().with_groups(ids(wanted));
    let answer = node.call(0, &request).await.map_err(failure_of)?;
    let mut found = HashMap::new();
    for group in &answer.groups {
        let error = ErrorCode(group.error_code);
        let is_absent = error == ErrorCode::GROUP_ID_NOT_FOUND || group.group_state.eq_ignore_ascii_case("Dead");
        if !error.is_none() && !is_absent {
            return Err(refused(node.address(), "DescribeGroups", error));
        }
        if let Some(id) = wanted.get(group.group_id.as_str()).filter(|_| !is_absent) {
            let presence = presence_of("classic", &group.protocol_type, &group.group_state);
            found.insert(id.clone(), presence);
        }
    }
    Ok(found)
}

/// Of a broker that knows this type. Kafka 3.8 lists the API and refuses it where the protocol is not enabled.
async fn consumer(node: &Arc<Node>, wanted: &HashSet<Text>) -> Result<HashMap<Text, Presence>, Failure> {
    if !node.speaks(ApiKey::ConsumerGroupDescribe, 0) {
        return Ok(HashMap::new());
    }
    let request = ConsumerGroupDescribeRequest::default().with_group_ids(ids(wanted));
    let answer = node.call(0, &request).await.map_err(failure_of)?;
    let mut found = HashMap::new();
    for group in &answer.groups {
        match ErrorCode(group.error_code) {
            ErrorCode::NONE => {
                if let Some(id) = wanted.get(group.group_id.as_str()) {
                    found.insert(id.clone(), presence_of("consumer", "consumer", &group.group_state));
                }
            }
            ErrorCode::GROUP_ID_NOT_FOUND | ErrorCode::UNSUPPORTED_VERSION => {}
            error => return Err(refused(node.address(), "ConsumerGroupDescribe", error)),
        }
    }
    Ok(found)
}

fn ids(wanted: &HashSet<Text>) -> Vec<GroupId> {
    let ids = wanted.iter().map(|id| GroupId(StrBytes::from_string(id.to_string())));
    ids.collect()
}
