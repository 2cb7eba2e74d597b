//! `/groups`: every group that is coordinated here, as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::assignment;
use crate::coordinator::request::{GroupView, MemberView, ShardView};

/// The protocol type of consumers, whose assignments can be read.
const CONSUMER: &str = "consumer";

#[derive(Debug, Serialize)]
struct Report<'a> {
    groups: Vec<Group<'a>>,
    /// Shards that could not tell now; their groups are missing here.
    shards_unavailable: usize,
}

#[derive(Debug, Serialize)]
struct Group<'a> {
    group_id: &'a str,
    #[serde(rename = "type")]
    group_type: &'a str,
    state: &'a str,
    /// Milliseconds since the Unix epoch.
    state_since_ms: i64,
    generation_id: i32,
    protocol_type: Option<&'a str>,
    protocol_name: Option<&'a str>,
    leader: Option<&'a str>,
    members: Vec<Member<'a>>,
    /// Members that were given an id and have not joined with it yet.
    pending_members: usize,
    /// Partitions with a committed offset.
    committed_offsets: usize,
}

#[derive(Debug, Serialize)]
struct Member<'a> {
    member_id: &'a str,
    group_instance_id: Option<&'a str>,
    client_id: &'a str,
    client_host: &'a str,
    session_timeout_ms: i32,
    rebalance_timeout_ms: i32,
    /// Whether a join or sync of the member waits for the others.
    parked: bool,
    /// Topics and partitions of a consumer; null for other protocol types, and for bytes that are no assignment.
    assignment: Option<BTreeMap<String, Vec<i32>>>,
    assignment_bytes: usize,
}

/// The JSON, groups in the order of their ids.
pub(super) fn report(views: &[Option<ShardView>]) -> Vec<u8> {
    let mut groups: Vec<Group<'_>> = views
        .iter()
        .flatten()
        .flat_map(|view| &view.groups)
        .map(group)
        .collect();
    groups.sort_by(|left, right| left.group_id.cmp(right.group_id));
    let report = Report {
        groups,
        shards_unavailable: views.iter().filter(|view| view.is_none()).count(),
    };
    serde_json::to_vec_pretty(&report).unwrap_or_default()
}

fn group(view: &GroupView) -> Group<'_> {
    let is_consumer = view.protocol_type.as_deref() == Some(CONSUMER);
    Group {
        group_id: &view.group_id,
        group_type: &view.group_type,
        state: &view.state,
        state_since_ms: view.state_since_ms,
        generation_id: view.generation_id,
        protocol_type: view.protocol_type.as_deref(),
        protocol_name: view.protocol_name.as_deref(),
        leader: view.leader.as_deref(),
        members: view.members.iter().map(|view| member(view, is_consumer)).collect(),
        pending_members: view.pending_members,
        committed_offsets: view.offsets,
    }
}

fn member(view: &MemberView, is_consumer: bool) -> Member<'_> {
    Member {
        member_id: &view.member_id,
        group_instance_id: view.group_instance_id.as_deref(),
        client_id: &view.client_id,
        client_host: &view.client_host,
        session_timeout_ms: view.session_timeout_ms,
        rebalance_timeout_ms: view.rebalance_timeout_ms,
        parked: view.parked,
        assignment: is_consumer.then(|| assignment::decode(&view.assignment)).flatten(),
        assignment_bytes: view.assignment.len(),
    }
}
