//! Assignments that are computed outside of the coordinator (KIP-848's client-side assignors, which no broker ships): what of it
//! is the same for groups of both protocols. Which assignor a group wants, what it is computed from and what becomes of it is the
//! business of the group, as is everything that is durable.
//!
//! | part | its job |
//! |---|---|
//! | `asking` | new assignments that are asked for, and how often that is heeded |
//! | `choice` | which assignor a group of the new protocol gets |
//! | `computation` | one computation: who has it, since when, who had it before; soft |
//! | `exchange` | the group's state to whoever computes, and what comes back |
//! | `outside` | who computes, and what if nobody does |
//! | `snapshot` | what it is computed from, and whether what came of it can be installed |
//! | `versions` | who can read what the members say of themselves |

mod asking;
mod choice;
mod computation;
mod exchange;
mod outside;
mod snapshot;
mod versions;

pub(super) use self::asking::Asking;
pub(super) use self::choice::{Ballot, Choice, Voter};
pub(super) use self::exchange::{Deliverable, Delivery, Prepared, install_assignment, prepare_assignment};
pub(super) use self::outside::{Computable, ComputedOutside, Outside, Participant};
pub(super) use self::snapshot::{Installed, Snapshot, SnapshotMember};
pub(super) use self::versions::Versions;

/// Assignors that one heartbeat may list.
pub(crate) const ASSIGNORS_MAX: usize = 16;

/// The longest that anybody may take for one computation, in milliseconds, whatever rebalance timeout it said: the default of
/// Kafka's own (`max.poll.interval.ms`). Some consumers have it at weeks, which a group is not to wait.
pub(super) const COMPUTE_LONGEST_MS: i32 = 300_000;
