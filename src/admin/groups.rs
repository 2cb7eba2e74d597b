//! `/groups`: every group that is coordinated here, as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::assignment;
use crate::coordinator::partitions::Partitions;
use crate::coordinator::request::{GroupView, MemberView, ShardView};
use crate::coordinator::topics::Topics;

/// The protocol type of consumers, whose assignments can be read.
const CONSUMER: &str = "consumer";
const CLASSIC: &str = "classic";

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
    /// A consumer group's; null for classic ones.
    consumer: Option<Consumer>,
}

/// How far a consumer group is on the way to its target; `generation_id` is its epoch.
#[derive(Debug, Serialize)]
struct Consumer {
    assignment_epoch: i32,
    partitions_to_revoke: usize,
    partitions_to_assign: usize,
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
    /// A consumer group's; null in classic ones.
    consumer: Option<ConsumerMember>,
}

/// A member of a consumer group on the way to its target.
#[derive(Debug, Serialize)]
struct ConsumerMember {
    epoch: i32,
    state: &'static str,
    /// `classic` for one that still speaks the classic protocol.
    protocol: &'static str,
    partitions_to_revoke: usize,
    partitions_to_assign: usize,
}

/// The JSON, groups in the order of their ids.
pub(super) fn report(views: &[Option<ShardView>], topics: &Topics) -> Vec<u8> {
    let mut groups: Vec<Group<'_>> = views
        .iter()
        .flatten()
        .flat_map(|view| &view.groups)
        .map(|view| group(view, topics))
        .collect();
    groups.sort_by(|left, right| left.group_id.cmp(right.group_id));
    let report = Report {
        groups,
        shards_unavailable: views.iter().filter(|view| view.is_none()).count(),
    };
    serde_json::to_vec_pretty(&report).unwrap_or_default()
}

fn group<'a>(view: &'a GroupView, topics: &Topics) -> Group<'a> {
    let is_consumer = view.protocol_type.as_deref() == Some(CONSUMER);
    let members = view.members.iter();
    Group {
        group_id: &view.group_id,
        group_type: &view.group_type,
        state: &view.state,
        state_since_ms: view.state_since_ms,
        generation_id: view.generation_id,
        protocol_type: view.protocol_type.as_deref(),
        protocol_name: view.protocol_name.as_deref(),
        leader: view.leader.as_deref(),
        members: members.map(|view| member(view, is_consumer, topics)).collect(),
        pending_members: view.pending_members,
        committed_offsets: view.offsets,
        consumer: view.consumer.as_ref().map(|consumer| Consumer {
            assignment_epoch: consumer.assignment_epoch,
            partitions_to_revoke: consumer.partitions_to_revoke,
            partitions_to_assign: consumer.partitions_to_assign,
        }),
    }
}

fn member<'a>(view: &'a MemberView, is_consumer: bool, topics: &Topics) -> Member<'a> {
    let consumer = view.consumer.as_ref();
    Member {
        member_id: &view.member_id,
        group_instance_id: view.group_instance_id.as_deref(),
        client_id: &view.client_id,
        client_host: &view.client_host,
        session_timeout_ms: view.session_timeout_ms,
        rebalance_timeout_ms: view.rebalance_timeout_ms,
        parked: view.parked,
        assignment: match consumer {
            Some(consumer) => Some(named(&consumer.assigned, topics)),
            None => is_consumer.then(|| assignment::decode(&view.assignment)).flatten(),
        },
        assignment_bytes: view.assignment.len(),
        consumer: consumer.map(|consumer| ConsumerMember {
            epoch: consumer.member_epoch,
            state: consumer.state.label(),
            protocol: if consumer.is_classic { CLASSIC } else { CONSUMER },
            partitions_to_revoke: consumer.to_revoke,
            partitions_to_assign: consumer.to_assign,
        }),
    }
}

/// Partitions by the names of their topics; by the id of one that is gone.
fn named(partitions: &Partitions, topics: &Topics) -> BTreeMap<String, Vec<i32>> {
    let by_topic = partitions.by_topic().map(|(id, partitions)| {
        let name = topics.by_id(&id).map(|topic| topic.name.to_string());
        (name.unwrap_or_else(|| id.to_string()), partitions.collect())
    });
    by_topic.collect()
}
