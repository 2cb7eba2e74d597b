//! What the admin page and the gauges see of a shard.

use std::sync::Arc;

use bytes::Bytes;

use super::{ClientAssignor, Text};
use crate::coordinator::partitions::Partitions;
use crate::coordinator::record::MemberState;

/// What the admin page and the gauges know of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShardView {
    pub groups: Vec<GroupView>,
    /// By group and id, whether their group exists or not; then those of patterns.
    pub externals: Vec<ExternalAssignorView>,
    /// Requests parked in a join or a sync.
    pub parked_joins: usize,
    pub parked_syncs: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupView {
    pub group_id: Text,
    pub group_type: Text,
    pub state: Text,
    pub protocol_type: Option<Text>,
    /// A consumer group's is its assignor.
    pub protocol_name: Option<Text>,
    /// A consumer group's is its epoch.
    pub generation_id: i32,
    pub leader: Option<Text>,
    /// Wall clock, of the last change of state, or of a consumer group's epoch; -1 when unknown.
    pub state_since_ms: i64,
    pub members: Vec<MemberView>,
    /// Members that hold an id by MEMBER_ID_REQUIRED and have not joined with it.
    pub pending_members: usize,
    /// Committed partitions.
    pub offsets: usize,
    /// Of a classic group with members.
    pub classic: Option<ClassicGroupView>,
    /// Of a consumer group.
    pub consumer: Option<ConsumerGroupView>,
}

/// Who assigned for a classic group last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassicGroupView {
    /// `leader`, `coordinator` or `external`.
    pub assigned_by: &'static str,
    /// The coordinator's or the external one; `None` where a leader assigned, and where a restart has forgotten it.
    pub assignor: Option<Text>,
    /// Of the assignment that members wait for, by an external assignor.
    pub computation: Option<ComputationView>,
    /// Partitions that nobody has until their owners have given them up.
    pub partitions_withheld: usize,
}

/// How far a consumer group is on its way to its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerGroupView {
    pub assignment_epoch: i32,
    /// The assignor that computed the present target; `None` where that is not known.
    pub computed_by: Option<Text>,
    /// The error of the assignor that should have computed it; 0 for none.
    pub assignor_error: i8,
    /// Of the next target, outside of the coordinator.
    pub computation: Option<ComputationView>,
    /// Partitions that members still have to give up.
    pub partitions_to_revoke: usize,
    /// Partitions that members are to have and have not.
    pub partitions_to_assign: usize,
}

/// A target assignment that a member or an external assignor is to compute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputationView {
    pub assignor: Text,
    /// Who computes it; `None` while nobody has been heard who could.
    pub member_id: Option<Text>,
    /// Who had its turn and did not do it.
    pub passed_over: Vec<Text>,
}

/// An external assignor (a process that computes assignments for a group without being in it).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalAssignorView {
    /// Or a pattern of groups.
    pub group_id: Text,
    pub member_id: Text,
    pub client_id: Text,
    pub client_host: Text,
    pub rebalance_timeout_ms: i32,
    /// What it can run, in its order; without metadata.
    pub assignors: Vec<ClientAssignor>,
    /// Whether its heartbeat waits for something to do.
    pub parked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberView {
    pub member_id: Text,
    pub group_instance_id: Option<Text>,
    pub client_id: Text,
    pub client_host: Text,
    pub session_timeout_ms: i32,
    pub rebalance_timeout_ms: i32,
    /// The raw assignment; of protocol type `consumer` it decodes as ConsumerProtocolAssignment. Empty in a consumer group.
    pub assignment: Bytes,
    pub parked: bool,
    /// Of a consumer group's member.
    pub consumer: Option<ConsumerMemberView>,
}

/// A member of a consumer group on its way to its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerMemberView {
    pub member_epoch: i32,
    pub state: MemberState,
    /// Whether it speaks the classic protocol.
    pub is_classic: bool,
    pub assigned: Arc<Partitions>,
    /// How many partitions it still has to give up.
    pub to_revoke: usize,
    /// How many partitions it is to have and has not.
    pub to_assign: usize,
}
