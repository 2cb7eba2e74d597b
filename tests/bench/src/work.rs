//! The kinds of work that are measured, and the figures that they give.

use crate::results::Row;

/// One kind of work; `--only` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Work {
    #[value(name = "produce-1k")]
    Produce1K,
    #[value(name = "produce-64k")]
    Produce64K,
    #[value(name = "consume-64k")]
    Consume64K,
    #[value(name = "consume-1m")]
    Consume1M,
    Heartbeat,
    OffsetCommit,
    OffsetFetch,
    ConsumerHeartbeat,
    JoinStorm,
    Memory,
    Settle,
    ClientAssignor,
    Assignors,
}

impl Work {
    pub const ALL: [Self; 13] = [
        Self::Produce1K,
        Self::Produce64K,
        Self::Consume64K,
        Self::Consume1M,
        Self::Heartbeat,
        Self::OffsetCommit,
        Self::OffsetFetch,
        Self::ConsumerHeartbeat,
        Self::JoinStorm,
        Self::Memory,
        Self::Settle,
        Self::ClientAssignor,
        Self::Assignors,
    ];

    /// What passes through a relay.
    pub const DATA_PATH: [Self; 4] = [Self::Produce1K, Self::Produce64K, Self::Consume64K, Self::Consume1M];

    /// What a coordinator answers in a closed loop.
    pub const COORDINATOR: [Self; 4] = [
        Self::Heartbeat,
        Self::ConsumerHeartbeat,
        Self::OffsetCommit,
        Self::OffsetFetch,
    ];

    /// Whether it is measured on the servers that the others are measured on; else it starts what it needs.
    #[must_use]
    pub fn shares_rig(self) -> bool {
        !matches!(self, Self::Settle | Self::ClientAssignor | Self::Assignors)
    }

    /// As the tables have it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Produce1K => "produce 1 KB",
            Self::Produce64K => "produce 64 KiB",
            Self::Consume64K => "consume 64 KiB",
            Self::Consume1M => "consume 1 MB",
            Self::Heartbeat => "Heartbeat",
            Self::OffsetCommit => "OffsetCommit of 10 partitions",
            Self::OffsetFetch => "OffsetFetch of 10 partitions",
            Self::ConsumerHeartbeat => "ConsumerGroupHeartbeat of a settled member",
            Self::JoinStorm => "join storm",
            Self::Memory => "memory",
            Self::Settle => "settling of consumer groups",
            Self::ClientAssignor => "client-side assignors",
            Self::Assignors => "assignors",
        }
    }
}

impl Row for Work {
    fn key(self) -> String {
        let key = match self {
            Self::Produce1K => "produce_1k",
            Self::Produce64K => "produce_64k",
            Self::Consume64K => "consume_64k",
            Self::Consume1M => "consume_1m",
            Self::Heartbeat => "heartbeat",
            Self::OffsetCommit => "offset_commit",
            Self::OffsetFetch => "offset_fetch",
            Self::ConsumerHeartbeat => "consumer_heartbeat",
            Self::JoinStorm => "join_storm",
            Self::Memory => "memory",
            Self::Settle => "settle",
            Self::ClientAssignor => "client_assignor",
            Self::Assignors => "assignors",
        };
        key.to_owned()
    }

    fn title(self) -> String {
        Self::title(self).to_owned()
    }
}

/// What one round of a work on a route gave; units are in the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Whole frames, both ways, in units of 1,000,000 bytes.
    MegabytesPerSecond,
    RequestsPerSecond,
    P50Us,
    P99Us,
    /// User and system time of the relay, or of the coordinator's process.
    CpuUsPerRequest,
    CpuMsPerGigabyte,
    /// How much of it was the kernel's.
    KernelPercent,
    /// The time of the load's own process.
    ClientCpuUsPerRequest,
    ResidentMb,
    /// From the first JoinGroup until every member is stable in one generation.
    JoinMs,
    JoinCpuMs,
    /// The same when all members of the stable group join again at once.
    RejoinMs,
    RejoinCpuMs,
    /// From the first join of a consumer group until every member has its final partitions and has said so.
    SettleMs,
    SettleCpuMs,
    /// Those of all members until then, the joins included.
    Heartbeats,
    /// Targets of a group, computed here or outside.
    TargetsPerSecond,
    /// From the request that changes the group until its target is durable.
    TargetMs,
    CpuMsPerTarget,
    /// Of it, until the external assignor hears that it is to compute; in its two requests; and in itself, with what it takes to read
    /// the answer and to write the request.
    ToldMs,
    PrepareMs,
    ComputeMs,
    InstallMs,
    /// Whole frames.
    PrepareRequestBytes,
    PrepareAnswerBytes,
    InstallRequestBytes,
    InstallAnswerBytes,
    IdleResidentMb,
    KilobytesPerConnection,
    /// CPU time of the calling thread, of one call.
    AssignMs,
    /// Partitions that a member gained.
    Gained,
    LeastLoad,
    MostLoad,
}

impl Figure {
    /// As the JSON file has it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::MegabytesPerSecond => "mb_per_s",
            Self::RequestsPerSecond => "requests_per_s",
            Self::P50Us => "p50_us",
            Self::P99Us => "p99_us",
            Self::CpuUsPerRequest => "cpu_us_per_request",
            Self::CpuMsPerGigabyte => "cpu_ms_per_gb",
            Self::KernelPercent => "kernel_percent",
            Self::ClientCpuUsPerRequest => "client_cpu_us_per_request",
            Self::ResidentMb => "resident_mb",
            Self::JoinMs => "join_ms",
            Self::JoinCpuMs => "join_cpu_ms",
            Self::RejoinMs => "rejoin_ms",
            Self::RejoinCpuMs => "rejoin_cpu_ms",
            Self::SettleMs => "settle_ms",
            Self::SettleCpuMs => "settle_cpu_ms",
            Self::Heartbeats => "heartbeats",
            Self::TargetsPerSecond => "targets_per_s",
            Self::TargetMs => "target_ms",
            Self::CpuMsPerTarget => "cpu_ms_per_target",
            Self::ToldMs => "told_ms",
            Self::PrepareMs => "prepare_ms",
            Self::ComputeMs => "compute_ms",
            Self::InstallMs => "install_ms",
            Self::PrepareRequestBytes => "prepare_request_bytes",
            Self::PrepareAnswerBytes => "prepare_answer_bytes",
            Self::InstallRequestBytes => "install_request_bytes",
            Self::InstallAnswerBytes => "install_answer_bytes",
            Self::IdleResidentMb => "idle_resident_mb",
            Self::KilobytesPerConnection => "kb_per_connection",
            Self::AssignMs => "assign_ms",
            Self::Gained => "partitions_gained",
            Self::LeastLoad => "least_partitions",
            Self::MostLoad => "most_partitions",
        }
    }
}
