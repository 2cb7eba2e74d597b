//! Assignments that are computed outside of the coordinator (KIP-848's client-side assignors, which no broker ships): what of it
//! needs no group. Who may compute and what came of it is the business of the group, as is everything that is durable.
//!
//! | part | its job |
//! |---|---|
//! | `choice` | which assignor a group gets |
//! | `computation` | one computation: who has it, since when, who had it before; soft |
//! | `snapshot` | what it is computed from, and whether what came of it can be installed |
//! | `versions` | who can read what the members say of themselves |

mod choice;
mod computation;
mod snapshot;
mod versions;

pub(super) use self::choice::{Ballot, Choice, Voter};
pub(super) use self::computation::Computation;
pub(super) use self::snapshot::{Installed, MetadataLimits, Snapshot, SnapshotMember, SnapshotTopic};
pub(super) use self::versions::Versions;

/// Assignors that one heartbeat may list.
pub(super) const ASSIGNORS_MAX: usize = 16;

/// The longest that anybody may take for one computation, in milliseconds, whatever rebalance timeout it said: the default of
/// Kafka's own (`max.poll.interval.ms`). Some consumers have it at weeks, which a group is not to wait.
pub(super) const COMPUTE_LONGEST_MS: i32 = 300_000;
