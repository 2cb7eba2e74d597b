//! The shards at work: clock, store and upstream around the pure core.
//!
//! A request steps its shard on the task that brought it. A task of each shard loads it and looks after its timers, and one
//! for all tells them what the store has made durable and what the upstream says. A shard that is loading, or whose store
//! failed, answers every request at once with [`Response::Unavailable`].
//!
//! [`Response::Unavailable`]: crate::coordinator::request::Response::Unavailable

mod active_shard;
mod appends;
mod clock;
mod coordinator;
mod event_log;
mod inspector;
mod loading;
mod reports;
mod shard_cell;
mod shard_task;
mod topic_checker;
mod waiting;

pub use coordinator::{Coordinator, CoordinatorParts, CoordinatorState};
pub use inspector::{GroupInspector, Inspection, InspectionFuture};
pub use topic_checker::TopicChecker;
pub use waiting::{Admitted, Submitted};

use crate::store::ShardId;
use crate::wire::text::java_hash;

/// The shard of a group: Kafka's own hash.
///
/// # Panics
/// Never: `shards` is at least 1 by configuration, and 0 is taken as 1.
#[must_use]
pub fn shard_of(group_id: &str, shards: u32) -> ShardId {
    ShardId((java_hash(group_id) & 0x7fff_ffff).unsigned_abs() % shards.max(1))
}

#[cfg(test)]
mod tests;
