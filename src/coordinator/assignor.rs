//! The server-side assignors of consumer groups (KIP-848): pure functions from subscriptions and the present target to the next.
//!
//! | assignor | order of its aims |
//! |---|---|
//! | `uniform` | balance (sizes within one of each other, as far as subscriptions allow), then as few movements as that allows |
//! | `range` | ranges of neighbouring partitions; topics of equal size are placed alike; static members keep their places |
//!
//! They give what Kafka's `UniformAssignor` and `RangeAssignor` (4.x) promise. Kafka walks its members in the order of a hash map, so
//! the exact placement is no part of the promise; here members are walked in their given order, and the same input always gives
//! the same target. Those of [`classic`] groups are made of the same parts. As in 4.x, racks are not looked at: a change of racks re-computes a target only by the metadata hash.

pub mod classic;
mod heterogeneous;
mod homogeneous;
mod levels;
mod placement;
mod range;
mod round_robin;
mod space;
mod subscriptions;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

pub use self::classic::ClassicAssignor;
use self::space::Space;
use self::subscriptions::Subscriptions;
use super::partitions::Partitions;
use super::request::Text;

/// A member as an assignor sees it.
#[derive(Debug, Clone)]
pub struct MemberSpec {
    pub member_id: Text,
    /// Of a static member (KIP-345).
    pub instance_id: Option<Text>,
    /// Carried as in Kafka 4.x, where no assignor looks at it.
    pub rack_id: Option<Text>,
    /// The topics subscribed to, ascending, each once. Members with the same subscription had better share one slice: it is
    /// then compared by its address alone.
    pub topics: Arc<[Uuid]>,
    /// The target that is to be changed as little as possible.
    pub target: Arc<Partitions>,
}

/// A group as an assignor sees it.
#[derive(Debug, Clone, Default)]
pub struct GroupSpec {
    /// Ascending by member id.
    pub members: Vec<MemberSpec>,
    /// The number of partitions of every topic that a member subscribes to; further topics cost only time.
    pub topics: BTreeMap<Uuid, i32>,
}

/// Why there is no target. Kafka answers the heartbeat with UNKNOWN_SERVER_ERROR then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AssignorError {
    #[error("a member subscribes to topic {0}, whose number of partitions is not known")]
    UnknownTopic(Uuid),
}

/// The assignors that a group's members may vote for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assignor {
    Uniform,
    Range,
}

impl Assignor {
    /// In Kafka's order (`group.consumer.assignors`): the first is what a group gets whose members name none.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::Range];
    /// Their names, in the same order.
    pub const NAMES: [&'static str; 2] = [Self::Uniform.name(), Self::Range.name()];

    /// By the name that a heartbeat's ServerAssignor carries.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|assignor| assignor.name() == name)
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Range => "range",
        }
    }

    /// The next target of each member, in the members' order; where it does not change, it is the very same `Arc`.
    /// Every partition of a topic that somebody subscribes to has exactly one owner, and that one subscribes to it.
    ///
    /// # Errors
    /// When a topic that is subscribed to has no number of partitions in the specification.
    pub fn assign(self, group: &GroupSpec) -> Result<Vec<Arc<Partitions>>, AssignorError> {
        let mut subscriptions = Subscriptions::of(&group.members);
        let space = Space::of(&group.topics, &mut subscriptions)?;
        let placement = match self {
            Self::Uniform if subscriptions.is_homogeneous() => homogeneous::place(&group.members, &space),
            Self::Uniform => heterogeneous::place(&group.members, &subscriptions, &space),
            Self::Range => range::place(&group.members, &subscriptions, &space),
        };
        Ok(placement.targets(&group.members, &space))
    }
}
