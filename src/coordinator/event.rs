//! What a shard tells to people: each event is one log line or one metric, never a decision.

use super::request::Text;

/// Something worth a log line or a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A rebalance of a classic group began.
    RebalanceStarted {
        group_id: Text,
        generation_id: i32,
        reason: RebalanceReason,
        /// Whose request or silence it was, where it was one member's.
        member_id: Option<Text>,
        /// The client's own words (JoinGroup v8, LeaveGroup v5).
        client_reason: Option<Text>,
    },
    /// The group reached Stable again.
    RebalanceCompleted {
        group_id: Text,
        generation_id: i32,
        members: usize,
        /// Since the first start of a rebalance after the group was last Stable (or Empty).
        took_ms: u64,
    },
    /// A classic group was assigned for here, in the step that tells it.
    ClassicAssigned {
        group_id: Text,
        generation_id: i32,
        assignor: Text,
        members: usize,
        partitions: usize,
        /// Partitions that are to have another owner than before.
        partitions_moved: usize,
        /// Of those, what nobody has until their owners have given them up.
        partitions_withheld: usize,
    },
    /// A classic group that was to be assigned for here goes on with a leader.
    AssignmentLeftToLeader {
        group_id: Text,
        generation_id: i32,
        leader: Text,
        reason: LeaderReason,
        /// The protocol, or the member whose metadata cannot be read.
        detail: Text,
    },
    /// The last member is gone.
    GroupEmpty { group_id: Text, generation_id: i32 },
    /// A member was taken out of its group.
    MemberRemoved {
        group_id: Text,
        member_id: Text,
        group_instance_id: Option<Text>,
        client_id: Text,
        client_host: Text,
        reason: RebalanceReason,
        /// The client's own words (LeaveGroup v5).
        client_reason: Option<Text>,
    },
    /// What a consumer group's target depends on changed: its epoch is one more.
    GroupEpochBumped {
        group_id: Text,
        group_epoch: i32,
        reason: EpochReason,
        /// Whose request or silence it was, where it was one member's.
        member_id: Option<Text>,
    },
    /// A target assignment was computed, in the step that tells it.
    TargetComputed {
        group_id: Text,
        group_epoch: i32,
        assignor: Text,
        members: usize,
        /// Partitions that are to have another owner than before.
        partitions_moved: usize,
    },
    /// No target assignment could be computed; the last one stays.
    AssignorFailed {
        group_id: Text,
        assignor: Text,
        reason: String,
    },
    /// A group's assignment is to be computed by a member or an external assignor.
    ComputationWanted {
        group_id: Text,
        /// A classic group's is its generation.
        group_epoch: i32,
        assignor: Text,
    },
    /// Somebody was told to compute it.
    ComputationGiven {
        group_id: Text,
        group_epoch: i32,
        assignor: Text,
        member_id: Text,
    },
    /// Who was to compute it did not, and is not asked again for this one.
    ComputationPassedOver {
        group_id: Text,
        assignor: Text,
        member_id: Text,
        reason: PassedOverReason,
    },
    /// What somebody computed is the group's assignment now.
    ComputationInstalled {
        group_id: Text,
        /// The one that it was computed for; the group may be further.
        group_epoch: i32,
        assignor: Text,
        member_id: Text,
        /// Since it was wanted.
        took_ms: u64,
        members: usize,
        /// Partitions that are to have another owner than before.
        partitions_moved: usize,
        /// Of a classic group: those of them that nobody has until their owners have given them up.
        partitions_withheld: Option<usize>,
    },
    /// What somebody computed was refused; the assignment stays.
    ComputationRefused {
        group_id: Text,
        assignor: Text,
        member_id: Text,
        reason: Text,
    },
    /// Nobody was left who could compute it: an assignor of the coordinator's own does.
    ComputationFellBack {
        group_id: Text,
        assignor: Text,
        /// The assignor that computes instead.
        to: Text,
        reason: FallBackReason,
    },
    /// A process offers to compute assignments for a group.
    ExternalAssignorRegistered {
        group_id: Text,
        member_id: Text,
        client_id: Text,
        client_host: Text,
        assignors: Vec<Text>,
    },
    /// It left, or was silent.
    ExternalAssignorGone {
        group_id: Text,
        member_id: Text,
        client_id: Text,
        client_host: Text,
        reason: EpochReason,
    },
    /// Every member of a consumer group has its part of the newest target.
    ConsumerGroupSettled {
        group_id: Text,
        group_epoch: i32,
        members: usize,
        /// Since the first change after the group was last settled.
        took_ms: u64,
    },
    /// A member left its consumer group or was taken out.
    ConsumerMemberRemoved {
        group_id: Text,
        member_id: Text,
        group_instance_id: Option<Text>,
        client_id: Text,
        client_host: Text,
        reason: EpochReason,
    },
    /// A group changed its protocol.
    GroupConverted {
        group_id: Text,
        /// `classic` or `consumer`.
        to: &'static str,
        members: usize,
    },
    /// Offsets were committed (partitions of one request).
    OffsetsCommitted { count: usize },
    /// Offsets ran out of their retention.
    OffsetsExpired { count: usize },
    /// Offsets were deleted by request or with their topic.
    OffsetsDeleted { count: usize },
    /// A group and all it had was deleted.
    GroupDeleted { group_id: Text },
    /// A group was given other settings, which are kept here.
    GroupConfigChanged { group_id: Text },
    /// Groups were given settings here that count no more, since the upstream has a place for them now.
    GroupConfigsPassedOver { groups: usize },
    /// A group was met for the first time and is ours now.
    GroupTakenOver { group_id: Text, offsets: usize },
    /// A group with members at the upstream was not taken over.
    TakeoverRefused {
        group_id: Text,
        group_type: Text,
        protocol_type: Text,
        state: Text,
    },
    /// The upstream could not be asked about a group.
    InspectFailed { group_id: Text, reason: String },
    /// The process or its store stood still; every session began anew.
    SessionsRenewed { gap_ms: u64, members: usize },
}

/// Why a group's assignment is left to a leader. `label` is the metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LeaderReason {
    /// The members agree on an assignor of their own.
    Protocol,
    /// What a member says of itself cannot be read.
    Metadata,
}

impl LeaderReason {
    /// Every reason, so that metrics can be made once at start.
    pub const ALL: [Self; 2] = [Self::Protocol, Self::Metadata];

    /// The metric label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Protocol => "protocol",
            Self::Metadata => "metadata",
        }
    }
}

/// Why a rebalance began or a member left. `label` is the metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RebalanceReason {
    MemberJoined,
    LeaderRejoined,
    MetadataChanged,
    StaticMemberReplaced,
    MemberLeft,
    MemberRemovedByAdmin,
    SessionExpired,
    JoinTimedOut,
    SyncTimedOut,
    OverCapacity,
    /// Of a group that is assigned for here.
    TopicsChanged,
    /// What members were to give up was not given up for long, in a group that is assigned for here.
    PartitionsWithheld,
    /// An external assignor has a reason of its own, in a group that it assigns for.
    AssignmentAsked,
    /// An external assignor is there that should have assigned.
    AssignorChanged,
}

impl RebalanceReason {
    /// Every reason, so that metrics can be made once at start.
    pub const ALL: [Self; 14] = [
        Self::MemberJoined,
        Self::LeaderRejoined,
        Self::MetadataChanged,
        Self::StaticMemberReplaced,
        Self::MemberLeft,
        Self::MemberRemovedByAdmin,
        Self::SessionExpired,
        Self::JoinTimedOut,
        Self::SyncTimedOut,
        Self::OverCapacity,
        Self::TopicsChanged,
        Self::PartitionsWithheld,
        Self::AssignmentAsked,
        Self::AssignorChanged,
    ];

    /// Those for which members are taken out.
    pub const OF_REMOVALS: [Self; 6] = [
        Self::MemberLeft,
        Self::MemberRemovedByAdmin,
        Self::SessionExpired,
        Self::JoinTimedOut,
        Self::SyncTimedOut,
        Self::OverCapacity,
    ];

    /// The metric label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::MemberJoined => "member_joined",
            Self::LeaderRejoined => "leader_rejoined",
            Self::MetadataChanged => "metadata_changed",
            Self::StaticMemberReplaced => "static_member_replaced",
            Self::MemberLeft => "member_left",
            Self::MemberRemovedByAdmin => "member_removed_by_admin",
            Self::SessionExpired => "session_expired",
            Self::JoinTimedOut => "join_timed_out",
            Self::SyncTimedOut => "sync_timed_out",
            Self::OverCapacity => "over_capacity",
            Self::TopicsChanged => "topics_changed",
            Self::PartitionsWithheld => "partitions_withheld",
            Self::AssignmentAsked => "assignment_asked",
            Self::AssignorChanged => "assignor_changed",
        }
    }
}

/// Why the epoch of a consumer group became one more, or a member left it. `label` is the metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EpochReason {
    MemberJoined,
    MemberLeft,
    RemovedByAdmin,
    SubscriptionChanged,
    RegexResolved,
    AssignorChanged,
    /// A client-side assignor asked for it, or has other metadata.
    AssignmentAsked,
    MetadataChanged,
    SessionExpired,
    RebalanceTimedOut,
    /// A classic member did not join again when it was told to.
    JoinTimedOut,
    /// A classic member did not sync after its join.
    SyncTimedOut,
    /// The connection of an external assignor ended.
    Disconnected,
}

impl EpochReason {
    /// Every reason, so that metrics can be made once at start.
    pub const ALL: [Self; 13] = [
        Self::MemberJoined,
        Self::MemberLeft,
        Self::RemovedByAdmin,
        Self::SubscriptionChanged,
        Self::RegexResolved,
        Self::AssignorChanged,
        Self::AssignmentAsked,
        Self::MetadataChanged,
        Self::SessionExpired,
        Self::RebalanceTimedOut,
        Self::JoinTimedOut,
        Self::SyncTimedOut,
        Self::Disconnected,
    ];

    /// The metric label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Disconnected => "disconnected",
            Self::MemberJoined => "member_joined",
            Self::MemberLeft => "member_left",
            Self::RemovedByAdmin => "removed_by_admin",
            Self::SubscriptionChanged => "subscription_changed",
            Self::RegexResolved => "regex_resolved",
            Self::AssignorChanged => "assignor_changed",
            Self::AssignmentAsked => "assignment_asked",
            Self::MetadataChanged => "metadata_changed",
            Self::SessionExpired => "session_expired",
            Self::RebalanceTimedOut => "rebalance_timed_out",
            Self::JoinTimedOut => "join_timed_out",
            Self::SyncTimedOut => "sync_timed_out",
        }
    }
}

/// Why somebody who was to compute an assignment is passed over. `label` is the metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PassedOverReason {
    /// It took longer than its rebalance timeout.
    TimedOut,
    /// It did not come for the group's state after it was told.
    Silent,
    /// It left, began anew, or was taken out.
    Gone,
    /// Its assignor failed.
    Failed,
    /// What it installed was refused too often.
    Refused,
    /// It no longer offers the assignor, or no longer reads the members' metadata.
    Unfit,
}

impl PassedOverReason {
    /// Every reason, so that metrics can be made once at start.
    pub const ALL: [Self; 6] = [
        Self::TimedOut,
        Self::Silent,
        Self::Gone,
        Self::Failed,
        Self::Refused,
        Self::Unfit,
    ];

    /// The metric label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::Silent => "silent",
            Self::Gone => "gone",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Unfit => "unfit",
        }
    }
}

/// Why an assignor of the coordinator's own computes in the place of a client-side one. `label` is the metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FallBackReason {
    /// Nobody offers the assignor in versions that fit.
    NoCandidate,
    /// Of those who do nobody was heard in time.
    NobodyHeard,
    /// All of them were passed over.
    AllPassedOver,
    /// The members of a classic group could wait no longer.
    TimeOver,
}

impl FallBackReason {
    /// Every reason, so that metrics can be made once at start.
    pub const ALL: [Self; 4] = [
        Self::NoCandidate,
        Self::NobodyHeard,
        Self::AllPassedOver,
        Self::TimeOver,
    ];

    /// The metric label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NoCandidate => "no_candidate",
            Self::NobodyHeard => "nobody_heard",
            Self::AllPassedOver => "all_passed_over",
            Self::TimeOver => "time_over",
        }
    }
}
