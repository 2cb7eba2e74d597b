//! Requests and responses of consumer groups (KIP-848).

use std::sync::Arc;

use super::Text;
use super::assignment::{AssignedBy, ClientAssignor};
use crate::coordinator::partitions::Partitions;
use crate::wire::error_code::ErrorCode;

/// ConsumerGroupHeartbeat. `None`, and a timeout of -1, mean "as before".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerGroupHeartbeatRequest {
    pub group_id: Text,
    /// Empty only in v0, where the coordinator makes the id.
    pub member_id: Text,
    /// 0 to join, -1 to leave, -2 to leave for a while (static members).
    pub member_epoch: i32,
    pub group_instance_id: Option<Text>,
    pub rack_id: Option<Text>,
    pub rebalance_timeout_ms: i32,
    pub subscribed_topic_names: Option<Vec<Text>>,
    /// v1+. Empty for none.
    pub subscribed_topic_regex: Option<Text>,
    pub server_assignor: Option<Text>,
    /// v1+, of our own: the assignors that the member can run, in its order of preference; empty for none any more.
    pub client_assignors: Option<Vec<ClientAssignor>>,
    /// What the member owns.
    pub topic_partitions: Option<Partitions>,
    pub client_id: Text,
    /// As Kafka prints it: `/1.2.3.4`.
    pub client_host: Text,
    /// A number of the client's connection that no other has: an external assignor goes with the one on which it said last what it can run.
    pub connection: u64,
    /// v1+ (KIP-1082): the member makes its own id.
    pub needs_member_id: bool,
    /// What the patterns stand for that the coordinator asked to be resolved, as far as they could be. `None` before it asked:
    /// a heartbeat that carries a list, even an empty one, is never asked again.
    pub resolved: Option<Vec<ResolvedRegex>>,
}

impl ConsumerGroupHeartbeatRequest {
    /// Whether the member joins, or begins anew.
    #[must_use]
    pub const fn is_join(&self) -> bool {
        self.member_epoch == 0
    }
}

/// The heartbeat of an external assignor that has registered for all groups of a pattern, as each shard gets it. Its group id is
/// the pattern, a prefix with a `*` at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternHeartbeatRequest {
    pub heartbeat: ConsumerGroupHeartbeatRequest,
    /// Whether this is the shard of the pattern itself, which is the one that tells people of the registration.
    pub is_own_shard: bool,
}

/// The topics that a pattern stands for, as far as the member's user may see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedRegex {
    pub pattern: Text,
    /// By name, ordered.
    pub topics: Vec<Text>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerGroupHeartbeatResponse {
    pub error: ErrorCode,
    /// What is wrong, for people.
    pub error_message: Option<Text>,
    /// `None` with an error.
    pub member_id: Option<Text>,
    /// 0 with an error.
    pub member_epoch: i32,
    /// 0 with an error.
    pub heartbeat_interval_ms: i32,
    /// `None` while nothing changed.
    pub assignment: Option<Arc<Partitions>>,
    /// Beside `assignment`: what its assignor says to the member.
    pub assigned_by: AssignedBy,
    /// Whether the member is to compute the group's next assignment.
    pub should_compute_assignment: bool,
    /// To an external assignor that has registered for a pattern: the groups whose next assignment it is to compute.
    pub groups_to_compute: Option<Vec<Text>>,
}

impl ConsumerGroupHeartbeatResponse {
    /// Without an error, an assignment, or anything to compute.
    #[must_use]
    pub fn bare(member_id: Option<Text>, member_epoch: i32) -> Self {
        Self {
            error: ErrorCode::NONE,
            error_message: None,
            member_id,
            member_epoch,
            heartbeat_interval_ms: 0,
            assignment: None,
            assigned_by: AssignedBy::default(),
            should_compute_assignment: false,
            groups_to_compute: None,
        }
    }
}

/// One group of a ConsumerGroupDescribe request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerGroupDescribeResponse {
    pub error: ErrorCode,
    pub error_message: Option<Text>,
    pub group_id: Text,
    pub state: Text,
    pub group_epoch: i32,
    pub assignment_epoch: i32,
    pub assignor_name: Text,
    pub members: Vec<ConsumerGroupMember>,
}

impl ConsumerGroupDescribeResponse {
    /// The answer for a group that is not described.
    #[must_use]
    pub fn refusal(group_id: Text, error: ErrorCode, error_message: Option<Text>) -> Self {
        Self {
            error,
            error_message,
            group_id,
            state: "".into(),
            group_epoch: 0,
            assignment_epoch: 0,
            assignor_name: "".into(),
            members: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerGroupMember {
    pub member_id: Text,
    pub group_instance_id: Option<Text>,
    pub rack_id: Option<Text>,
    pub member_epoch: i32,
    pub client_id: Text,
    pub client_host: Text,
    pub subscribed_topic_names: Vec<Text>,
    pub subscribed_topic_regex: Option<Text>,
    pub assignment: Vec<AssignedTopic>,
    pub target_assignment: Vec<AssignedTopic>,
    /// v1 (KIP-1099): whether the member speaks the classic protocol.
    pub is_classic: bool,
}

/// A topic of an assignment, as far as it is known: a topic that is gone is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedTopic {
    pub topic_id: uuid::Uuid,
    pub name: Text,
    pub partitions: Vec<i32>,
}
