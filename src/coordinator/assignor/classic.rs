//! The assignors of classic consumers (`range`, `roundrobin`, `sticky`, `cooperative-sticky`), for groups that the coordinator assigns for.
//!
//! | assignor | as in Kafka's clients |
//! |---|---|
//! | `range`, `roundrobin` | exactly, racks left aside (KIP-881): who gives its members racks to be used had better have `range` placed by a leader |
//! | `sticky`, `cooperative-sticky` | balance as far as subscriptions allow, then as few movements as that allows; both place alike |
//!
//! Classic consumers name topics where those of the new protocol have ids. [`TopicIds`] gives each name an id of its own, in the order of
//! names, so that what is placed by ids is placed in the order in which Kafka's clients walk.

use std::sync::Arc;

use uuid::Uuid;

use super::space::Space;
use super::subscriptions::Subscriptions;
use super::{Assignor, AssignorError, GroupSpec, round_robin};
use crate::coordinator::partitions::Partitions;
use crate::coordinator::request::Text;
use crate::coordinator::topic_names::TopicNames;

/// The assignors that a classic group's members know by these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClassicAssignor {
    Range,
    RoundRobin,
    Sticky,
    CooperativeSticky,
}

impl ClassicAssignor {
    pub const ALL: [Self; 4] = [Self::Range, Self::RoundRobin, Self::Sticky, Self::CooperativeSticky];
    /// Their names, in the same order.
    pub const NAMES: [&'static str; 4] = [
        Self::Range.name(),
        Self::RoundRobin.name(),
        Self::Sticky.name(),
        Self::CooperativeSticky.name(),
    ];

    /// By the name of the protocol that members offer.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|assignor| assignor.name() == name)
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::RoundRobin => "roundrobin",
            Self::Sticky => "sticky",
            Self::CooperativeSticky => "cooperative-sticky",
        }
    }

    /// Whether the members of a group with this protocol go on with what they have while they join (KIP-429).
    #[must_use]
    pub const fn is_cooperative(self) -> bool {
        matches!(self, Self::CooperativeSticky)
    }

    /// What each member is to have, in the members' order. What moves is not held back here.
    ///
    /// # Errors
    /// When a topic that is subscribed to has no number of partitions in the specification.
    pub fn assign(self, group: &GroupSpec) -> Result<Vec<Arc<Partitions>>, AssignorError> {
        match self {
            Self::Range => Assignor::Range.assign(group),
            Self::Sticky | Self::CooperativeSticky => Assignor::Uniform.assign(group),
            Self::RoundRobin => {
                let mut subscriptions = Subscriptions::of(&group.members);
                let space = Space::of(&group.topics, &mut subscriptions)?;
                let placement = round_robin::place(&group.members, &subscriptions, &space);
                Ok(placement.targets(&group.members, &space))
            }
        }
    }
}

/// Ids for topics that are known by name alone: ascending as the names are.
#[derive(Debug, Clone, Default)]
pub struct TopicIds {
    names: TopicNames,
}

impl TopicIds {
    #[must_use]
    pub fn id(&self, name: &str) -> Option<Uuid> {
        let found = self.names.binary_search_by(|other| (**other).cmp(name));
        found.ok().map(|index| self.id_of(index))
    }

    #[must_use]
    pub fn name(&self, id: &Uuid) -> Option<&Text> {
        let number = usize::try_from(id.as_u128() >> self.shift()).ok()?;
        let index = number.checked_sub(1)?;
        self.names.get(index).filter(|_| self.id_of(index) == *id)
    }

    /// Every name with its id.
    pub fn iter(&self) -> impl Iterator<Item = (&Text, Uuid)> {
        self.names
            .iter()
            .enumerate()
            .map(|(index, name)| (name, self.id_of(index)))
    }

    /// Numbers from 1 on in the leading bits, by which topics are looked up.
    fn id_of(&self, index: usize) -> Uuid {
        Uuid::from_u128((index as u128 + 1) << self.shift())
    }

    fn shift(&self) -> u32 {
        (self.names.len() as u128).leading_zeros().min(u128::BITS - 1)
    }
}

impl FromIterator<Text> for TopicIds {
    fn from_iter<I: IntoIterator<Item = Text>>(names: I) -> Self {
        Self {
            names: Vec::from_iter(names).into(),
        }
    }
}
