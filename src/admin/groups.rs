//! `/groups`: every group that is coordinated here, as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::assignment;
use crate::coordinator::partitions::Partitions;
use crate::coordinator::request::{
    ComputationView, ConsumerGroupView, ExternalAssignorView, GroupView, MemberView, ShardView,
};
use crate::coordinator::topics::Topics;

/// The protocol type of consumers, whose assignments can be read.
const CONSUMER: &str = "consumer";
const CLASSIC: &str = "classic";

#[derive(Debug, Serialize)]
struct Report<'a> {
    groups: Vec<Group<'a>>,
    /// Processes that compute assignments for groups without being in them.
    external_assignors: Vec<ExternalAssignor<'a>>,
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
    /// A classic group's with members; null for others.
    classic: Option<Classic<'a>>,
    /// A consumer group's; null for classic ones.
    consumer: Option<Consumer<'a>>,
}

/// Who assigned last.
#[derive(Debug, Serialize)]
struct Classic<'a> {
    /// `leader`, `coordinator` or `external`.
    assigned_by: &'static str,
    /// The coordinator's or the external one; null where a leader assigned, and where a restart has forgotten it.
    assignor: Option<&'a str>,
    /// Of the assignment that members wait for, by an external assignor; null while there is none.
    computation: Option<Computation<'a>>,
    /// Partitions that nobody has until their owners have given them up.
    partitions_withheld: usize,
}

/// How far a consumer group is on the way to its target; `generation_id` is its epoch.
#[derive(Debug, Serialize)]
struct Consumer<'a> {
    assignment_epoch: i32,
    /// Who computed the present target; null where that is not known.
    computed_by: Option<&'a str>,
    /// Of the client-side assignor that should have computed it; 0 for none.
    assignor_error: i8,
    /// Of the next target, by a member or an external assignor; null while there is none.
    computation: Option<Computation<'a>>,
    partitions_to_revoke: usize,
    partitions_to_assign: usize,
}

#[derive(Debug, Serialize)]
struct Computation<'a> {
    assignor: &'a str,
    /// Who computes it; null while nobody has been heard who could.
    member_id: Option<&'a str>,
    /// Who had its turn and did not do it.
    passed_over: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
struct ExternalAssignor<'a> {
    group_id: &'a str,
    member_id: &'a str,
    client_id: &'a str,
    client_host: &'a str,
    /// Within which it has to compute.
    rebalance_timeout_ms: i32,
    assignors: Vec<&'a str>,
    /// Whether it waits for something to do.
    parked: bool,
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
    let externals = views.iter().flatten().flat_map(|view| &view.externals);
    let mut external_assignors: Vec<_> = externals.map(external_assignor).collect();
    external_assignors.sort_by(|left, right| (left.group_id, left.member_id).cmp(&(right.group_id, right.member_id)));
    let report = Report {
        groups,
        external_assignors,
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
        classic: view.classic.as_ref().map(|classic| Classic {
            assigned_by: classic.assigned_by,
            assignor: classic.assignor.as_deref(),
            computation: classic.computation.as_ref().map(computation),
            partitions_withheld: classic.partitions_withheld,
        }),
        consumer: view.consumer.as_ref().map(consumer),
    }
}

fn consumer(view: &ConsumerGroupView) -> Consumer<'_> {
    Consumer {
        assignment_epoch: view.assignment_epoch,
        computed_by: view.computed_by.as_deref(),
        assignor_error: view.assignor_error,
        computation: view.computation.as_ref().map(computation),
        partitions_to_revoke: view.partitions_to_revoke,
        partitions_to_assign: view.partitions_to_assign,
    }
}

fn computation(view: &ComputationView) -> Computation<'_> {
    Computation {
        assignor: &view.assignor,
        member_id: view.member_id.as_deref(),
        passed_over: view.passed_over.iter().map(|member_id| &**member_id).collect(),
    }
}

fn external_assignor(view: &ExternalAssignorView) -> ExternalAssignor<'_> {
    ExternalAssignor {
        group_id: &view.group_id,
        member_id: &view.member_id,
        client_id: &view.client_id,
        client_host: &view.client_host,
        rebalance_timeout_ms: view.rebalance_timeout_ms,
        assignors: view.assignors.iter().map(|assignor| &*assignor.name).collect(),
        parked: view.parked,
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
