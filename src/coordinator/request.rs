//! Requests and responses of the coordinator: our own types, without wire versions.
//!
//! What a version changes in behaviour is a field here; what it changes in bytes stays in `handler`. Everything is owned
//! (copied out of the frame), so nothing that enters state keeps a client's frame alive.

mod assignment;
mod consumer_group;
mod group_config;
mod view;

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use crate::wire::error_code::ErrorCode;

pub use assignment::{
    AssignedBy, ClientAssignor, InstallAssignmentRequest, InstalledMember, PrepareAssignmentRequest,
    PrepareAssignmentResponse, PreparedMember, PreparedTopic,
};
pub use consumer_group::{
    AssignedTopic, ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
    ConsumerGroupMember, PatternHeartbeatRequest, ResolvedRegex,
};
pub use group_config::{AlterGroupConfigRequest, AlterGroupConfigResponse, DescribeGroupConfigResponse};

pub use view::{
    ClassicGroupView, ComputationView, ConsumerGroupView, ConsumerMemberView, ExternalAssignorView, GroupView,
    MemberView, ShardView,
};

/// Ids and names: shared, immutable, never a slice of a frame.
pub type Text = Arc<str>;

/// A request to one group (or, where said, to a whole shard).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    JoinGroup(JoinGroupRequest),
    SyncGroup(SyncGroupRequest),
    Heartbeat(HeartbeatRequest),
    LeaveGroup(LeaveGroupRequest),
    ConsumerGroupHeartbeat(ConsumerGroupHeartbeatRequest),
    /// To every shard.
    PatternHeartbeat(PatternHeartbeatRequest),
    /// To the shard of a group, or for a pattern to every shard: the connection on which an external assignor was heard has ended.
    ExternalGone {
        /// Or a pattern of groups.
        group_id: Text,
        is_pattern: bool,
        member_id: Text,
        /// Who is heard on another by now is not gone.
        connection: u64,
    },
    PrepareAssignment(PrepareAssignmentRequest),
    InstallAssignment(InstallAssignmentRequest),
    OffsetCommit(OffsetCommitRequest),
    OffsetFetch(OffsetFetchRequest),
    OffsetDelete(OffsetDeleteRequest),
    /// One group of a DeleteGroups request.
    DeleteGroup {
        group_id: Text,
    },
    /// One group of a DescribeGroups request.
    DescribeGroup {
        group_id: Text,
    },
    /// One group of a ConsumerGroupDescribe request.
    ConsumerGroupDescribe {
        group_id: Text,
    },
    AlterGroupConfig(AlterGroupConfigRequest),
    /// What one group was given for itself.
    DescribeGroupConfig {
        group_id: Text,
    },
    /// All groups of the shard.
    ListGroups(ListGroupsRequest),
    /// All groups of the shard, for the admin page and gauges.
    View,
}

/// The reply to the request of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    JoinGroup(JoinGroupResponse),
    SyncGroup(SyncGroupResponse),
    Heartbeat {
        error: ErrorCode,
    },
    LeaveGroup(LeaveGroupResponse),
    ConsumerGroupHeartbeat(ConsumerGroupHeartbeatResponse),
    /// To a ConsumerGroupHeartbeat that changed nothing yet: it is to come again with what these patterns stand for.
    ResolveRegexes {
        patterns: Vec<Text>,
    },
    ExternalGone,
    PrepareAssignment(PrepareAssignmentResponse),
    InstallAssignment {
        error: ErrorCode,
        /// What is wrong, for people.
        error_message: Option<Text>,
    },
    OffsetCommit(OffsetCommitResponse),
    OffsetFetch(OffsetFetchResponse),
    OffsetDelete(OffsetDeleteResponse),
    DeleteGroup {
        error: ErrorCode,
    },
    DescribeGroup(DescribeGroupResponse),
    ConsumerGroupDescribe(ConsumerGroupDescribeResponse),
    AlterGroupConfig(AlterGroupConfigResponse),
    DescribeGroupConfig(DescribeGroupConfigResponse),
    ListGroups(ListGroupsResponse),
    View(ShardView),
    /// The group is not ours (share, streams, or live at the upstream): the request is to be forwarded there.
    /// Any request of one group may be answered so, except a join (a ConsumerGroupHeartbeat of epoch 0 is one) to a group that
    /// is live upstream.
    NotOwned,
    /// The request could not be looked at: the shard is loading, unloading, or its store failed.
    /// Handlers turn it into the error that clients of that API survive.
    Unavailable {
        error: ErrorCode,
    },
}

/// JoinGroup (KIP-62, 345, 394, 559, 814). The handler fills in what old versions lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinGroupRequest {
    pub group_id: Text,
    /// Empty for a first join.
    pub member_id: Text,
    pub group_instance_id: Option<Text>,
    pub client_id: Text,
    /// As Kafka prints it: `/1.2.3.4`.
    pub client_host: Text,
    pub session_timeout_ms: i32,
    /// The session timeout where the version (v0) has no such field.
    pub rebalance_timeout_ms: i32,
    pub protocol_type: Text,
    /// In the member's order of preference.
    pub protocols: Vec<Protocol>,
    /// v4+: a dynamic first join is answered MEMBER_ID_REQUIRED with an id.
    pub require_known_member_id: bool,
    /// v9+: a returning static leader may be told to skip the assignment.
    pub supports_skipping_assignment: bool,
    /// v8+: the client's own words for why it (re)joins.
    pub reason: Option<Text>,
}

/// One protocol (assignor) a member can use, with its subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    pub name: Text,
    pub metadata: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinGroupResponse {
    pub error: ErrorCode,
    /// -1 with an error.
    pub generation_id: i32,
    pub protocol_type: Option<Text>,
    /// `None` with an error; the handler writes "" below v7.
    pub protocol_name: Option<Text>,
    pub leader: Text,
    pub skip_assignment: bool,
    pub member_id: Text,
    /// Filled only for the leader.
    pub members: Vec<JoinGroupMember>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinGroupMember {
    pub member_id: Text,
    pub group_instance_id: Option<Text>,
    pub metadata: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncGroupRequest {
    pub group_id: Text,
    pub generation_id: i32,
    pub member_id: Text,
    pub group_instance_id: Option<Text>,
    /// v5+; the handler has refused a null one before.
    pub protocol_type: Option<Text>,
    pub protocol_name: Option<Text>,
    pub assignments: Vec<(Text, Bytes)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncGroupResponse {
    pub error: ErrorCode,
    pub protocol_type: Option<Text>,
    pub protocol_name: Option<Text>,
    pub assignment: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatRequest {
    pub group_id: Text,
    pub generation_id: i32,
    pub member_id: Text,
    pub group_instance_id: Option<Text>,
}

/// LeaveGroup; below v3 one member without instance id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveGroupRequest {
    pub group_id: Text,
    pub members: Vec<LeavingMember>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeavingMember {
    pub member_id: Text,
    pub group_instance_id: Option<Text>,
    pub reason: Option<Text>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveGroupResponse {
    /// Top level; below v3 the handler hoists the one member's error.
    pub error: ErrorCode,
    pub members: Vec<LeftMember>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftMember {
    pub member_id: Text,
    pub group_instance_id: Option<Text>,
    pub error: ErrorCode,
}

/// OffsetCommit; topics that the upstream does not have were refused by the handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetCommitRequest {
    pub group_id: Text,
    /// -1 outside a generation.
    pub generation_id_or_member_epoch: i32,
    pub member_id: Text,
    pub group_instance_id: Option<Text>,
    /// v2-4; `None` for -1 and for later versions.
    pub retention_time_ms: Option<i64>,
    /// v9+: GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH may be answered.
    pub knows_member_epochs: bool,
    pub topics: Vec<OffsetCommitTopic>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetCommitTopic {
    pub name: Text,
    /// Nil when unknown.
    pub topic_id: Uuid,
    pub partitions: Vec<OffsetCommitPartition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetCommitPartition {
    pub partition: i32,
    pub offset: i64,
    /// -1 when unknown.
    pub leader_epoch: i32,
    /// Null on the wire is "".
    pub metadata: Text,
}

/// One error for each partition, in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetCommitResponse {
    pub topics: Vec<(OffsetTopic, Vec<(i32, ErrorCode)>)>,
}

/// A topic as a request named it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OffsetTopic {
    pub name: Text,
    /// Nil when unknown.
    pub topic_id: Uuid,
}

/// OffsetFetch of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetFetchRequest {
    pub group_id: Text,
    /// v9+.
    pub member_id: Option<Text>,
    /// -1 when not given.
    pub member_epoch: i32,
    /// `None` asks for every committed partition.
    pub topics: Option<Vec<(OffsetTopic, Vec<i32>)>>,
    pub require_stable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetFetchResponse {
    pub error: ErrorCode,
    pub topics: Vec<(OffsetTopic, Vec<FetchedOffset>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedOffset {
    pub partition: i32,
    /// -1 when none is committed.
    pub offset: i64,
    pub leader_epoch: i32,
    pub metadata: Text,
    pub error: ErrorCode,
}

/// OffsetDelete (KIP-496).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetDeleteRequest {
    pub group_id: Text,
    pub topics: Vec<(Text, Vec<i32>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetDeleteResponse {
    pub error: ErrorCode,
    pub topics: Vec<(Text, Vec<(i32, ErrorCode)>)>,
}

/// One described group. One that is absent, or no classic group, has state "Dead"; the handler makes v6's GROUP_ID_NOT_FOUND of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeGroupResponse {
    pub error: ErrorCode,
    /// Which of the two it is.
    pub error_message: Option<Text>,
    pub group_id: Text,
    pub state: Text,
    pub protocol_type: Text,
    /// Filled only when Stable.
    pub protocol_name: Text,
    pub members: Vec<DescribedMember>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedMember {
    pub member_id: Text,
    pub group_instance_id: Option<Text>,
    pub client_id: Text,
    pub client_host: Text,
    /// Filled only when Stable.
    pub metadata: Bytes,
    pub assignment: Bytes,
}

/// ListGroups; empty filters let everything through. States and types are compared without case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListGroupsRequest {
    pub states: Vec<Text>,
    pub types: Vec<Text>,
}

/// The groups that pass the filters, and every group id that is ours whatever the filters say (groups that only hold the
/// mark of having been taken over included), so that the upstream's stale copy of it can be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListGroupsResponse {
    pub groups: Vec<ListedGroup>,
    pub owned: Vec<Text>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGroup {
    pub group_id: Text,
    pub protocol_type: Text,
    pub state: Text,
    /// `classic` or `consumer`.
    pub group_type: Text,
}
