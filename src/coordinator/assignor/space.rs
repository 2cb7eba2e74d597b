//! The partitions that are to be placed, numbered without gaps in the order of topic id and number.

use std::collections::BTreeMap;
use std::ops::Range;

use uuid::Uuid;

use super::AssignorError;
use super::subscriptions::Subscriptions;
use crate::coordinator::partitions::TopicPartition;

/// Topics and partitions as indexes. A topic that nobody subscribes to has no partitions here.
#[derive(Debug)]
pub(super) struct Space {
    /// Ascending.
    ids: Vec<Uuid>,
    /// The first partition of each topic, and the end of the last one.
    first: Vec<usize>,
    /// For each value of an id's leading bits, the first topic whose id has these or greater ones: topic ids are random, so that
    /// hardly a comparison is left to be done.
    prefixes: Vec<u32>,
    prefix_shift: u32,
}

impl Space {
    pub(super) fn of(
        topics: &BTreeMap<Uuid, i32>,
        subscriptions: &mut Subscriptions<'_>,
    ) -> Result<Self, AssignorError> {
        let ids: Vec<Uuid> = topics.keys().copied().collect();
        let prefix_bits = ids.len().next_power_of_two().ilog2().clamp(1, 16);
        let mut space = Self {
            prefixes: Vec::with_capacity((1 << prefix_bits) + 1),
            prefix_shift: u32::BITS - prefix_bits,
            first: Vec::with_capacity(ids.len() + 1),
            ids,
        };
        for prefix in 0..=1 << prefix_bits {
            let after = space.prefixes.last().map_or(0, |&after| after as usize);
            let less = space.ids[after..]
                .iter()
                .take_while(|id| space.prefix(id) < prefix)
                .count();
            space.prefixes.push(u32::try_from(after + less).unwrap_or(u32::MAX));
        }
        let subscribed = space.subscribed(subscriptions)?;
        let mut end = 0;
        space.first.push(end);
        for ((id, &size), subscribed) in topics.iter().zip(subscribed) {
            if subscribed {
                end += usize::try_from(size).map_err(|_| AssignorError::UnknownTopic(*id))?;
            }
            space.first.push(end);
        }
        Ok(space)
    }

    /// Which topics somebody subscribes to.
    fn subscribed(&self, subscriptions: &mut Subscriptions<'_>) -> Result<Vec<bool>, AssignorError> {
        let mut subscribed = vec![false; self.ids.len()];
        for subscription in &mut subscriptions.all {
            for id in subscription.topics.iter() {
                let topic = self.topic(id).ok_or(AssignorError::UnknownTopic(*id))?;
                subscribed[topic] = true;
                subscription.located.push(topic as u32);
            }
        }
        Ok(subscribed)
    }

    pub(super) fn topics(&self) -> usize {
        self.ids.len()
    }

    /// The number of all partitions.
    pub(super) fn len(&self) -> usize {
        self.first[self.ids.len()]
    }

    pub(super) fn topic(&self, id: &Uuid) -> Option<usize> {
        let prefix = self.prefix(id);
        let (start, end) = (self.prefixes[prefix] as usize, self.prefixes[prefix + 1] as usize);
        let found = match end - start {
            0 => return None,
            1 => start,
            _ => start + self.ids[start..end].binary_search(id).ok()?,
        };
        (self.ids[found] == *id).then_some(found)
    }

    pub(super) fn partitions(&self, topic: usize) -> Range<usize> {
        self.first[topic]..self.first[topic + 1]
    }

    fn partition(&self, topic: usize, partition: i32) -> Option<usize> {
        let Range { start, end } = self.partitions(topic);
        let index = start.checked_add(usize::try_from(partition).ok()?)?;
        (index < end).then_some(index)
    }

    /// Where each of these partitions is: its topic and its own index; `None` if there is no such partition to be placed.
    pub(super) fn locate<'a>(
        &'a self,
        held: impl Iterator<Item = &'a TopicPartition>,
    ) -> impl Iterator<Item = Option<(usize, usize)>> {
        // Neighbours are mostly of one topic.
        let mut last = (Uuid::nil(), self.topic(&Uuid::nil()));
        held.map(move |held| {
            if held.topic_id != last.0 {
                last = (held.topic_id, self.topic(&held.topic_id));
            }
            let topic = last.1?;
            Some((topic, self.partition(topic, held.partition)?))
        })
    }

    /// All partitions, in the order of their indexes.
    pub(super) fn iter(&self) -> impl Iterator<Item = TopicPartition> {
        let topics = self.ids.iter().zip(self.first.windows(2));
        topics.flat_map(|(&topic_id, bounds)| {
            let partitions = (0..).take(bounds[1] - bounds[0]);
            partitions.map(move |partition| TopicPartition { topic_id, partition })
        })
    }

    fn prefix(&self, id: &Uuid) -> usize {
        let [a, b, c, d, ..] = *id.as_bytes();
        (u32::from_be_bytes([a, b, c, d]) >> self.prefix_shift) as usize
    }
}
