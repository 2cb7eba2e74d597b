//! Members by what they subscribe to: most groups have one subscription or a few, so topics are looked up for each of those.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::MemberSpec;
use super::space::Space;

/// The different subscriptions of a group, in the order in which members have them first.
#[derive(Debug, Default)]
pub(super) struct Subscriptions<'a> {
    pub(super) all: Vec<Subscription<'a>>,
}

/// One subscription and who has it.
#[derive(Debug)]
pub(super) struct Subscription<'a> {
    /// Ascending.
    pub(super) topics: &'a Arc<[Uuid]>,
    /// The same as indexes in the space, which notes them: with many subscriptions, looking topics up is most of the work.
    pub(super) located: Vec<u32>,
    /// Ascending.
    pub(super) members: Vec<u32>,
}

impl<'a> Subscriptions<'a> {
    pub(super) fn of(members: &'a [MemberSpec]) -> Self {
        let mut subscriptions = Self::default();
        let mut by_topics = BTreeMap::new();
        let mut last: Option<(&Arc<[Uuid]>, usize)> = None;
        for (member, spec) in (0..).zip(members) {
            let topics = &spec.topics;
            let index = match last {
                Some((of_last, index)) if Arc::ptr_eq(of_last, topics) => index,
                _ => *by_topics.entry(Key(topics)).or_insert_with(|| {
                    subscriptions.all.push(Subscription {
                        topics,
                        located: Vec::with_capacity(topics.len()),
                        members: Vec::new(),
                    });
                    subscriptions.all.len() - 1
                }),
            };
            last = Some((topics, index));
            subscriptions.all[index].members.push(member);
        }
        subscriptions
    }

    pub(super) fn is_homogeneous(&self) -> bool {
        self.all.len() <= 1
    }

    pub(super) fn by_topic(&self, space: &Space) -> ByTopic {
        let pairs = (0..).zip(&self.all).flat_map(|(index, subscription)| {
            let topics = subscription.located.iter();
            topics.map(move |&topic| (topic as usize, index))
        });
        let mut bounds = vec![0; space.topics() + 1];
        for (topic, _) in pairs.clone() {
            bounds[topic] += 1;
        }
        let mut end = 0;
        for bound in &mut bounds {
            end += *bound;
            *bound = end;
        }
        // Each topic's bound comes down from its end to its start, as what is before it is filled.
        let mut subscriptions = vec![0; end];
        for (topic, index) in pairs {
            bounds[topic] -= 1;
            subscriptions[bounds[topic]] = index;
        }
        ByTopic { bounds, subscriptions }
    }
}

/// Which subscriptions hold each topic.
#[derive(Debug)]
pub(super) struct ByTopic {
    /// Where the subscriptions of each topic begin, and the end of the last one's.
    bounds: Vec<usize>,
    subscriptions: Vec<u32>,
}

impl ByTopic {
    pub(super) fn of(&self, topic: usize) -> &[u32] {
        &self.subscriptions[self.bounds[topic]..self.bounds[topic + 1]]
    }
}

/// A subscription by its contents; one and the same slice is not read.
struct Key<'a>(&'a Arc<[Uuid]>);

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key<'_> {}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        if Arc::ptr_eq(self.0, other.0) {
            return std::cmp::Ordering::Equal;
        }
        // Lengths first: they differ more often than the beginnings do.
        (self.0.len(), &self.0[..]).cmp(&(other.0.len(), &other.0[..]))
    }
}
