//! Sets of partitions, as assignments are made of.

use uuid::Uuid;

/// One partition of a topic, by the topic's id (KIP-516).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    pub topic_id: Uuid,
    pub partition: i32,
}

/// A set of partitions, ordered by topic id and number: small in memory, and two of them are compared in one walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partitions(Vec<TopicPartition>);

impl Partitions {
    /// Of partitions that are in order already, each once.
    pub(super) fn from_ascending(partitions: Vec<TopicPartition>) -> Self {
        debug_assert!(partitions.is_sorted_by(|a, b| a < b), "neither out of order nor twice");
        Self(partitions)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn contains(&self, partition: &TopicPartition) -> bool {
        self.0.binary_search(partition).is_ok()
    }

    /// The place of a partition in the set's order.
    #[must_use]
    pub fn position(&self, partition: &TopicPartition) -> Option<usize> {
        self.0.binary_search(partition).ok()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &TopicPartition> + DoubleEndedIterator {
        self.0.iter()
    }

    /// The partitions of each topic, topics by id.
    pub fn by_topic(&self) -> impl Iterator<Item = (Uuid, impl Iterator<Item = i32>)> {
        let topics = self.0.chunk_by(|a, b| a.topic_id == b.topic_id);
        topics.map(|topic| (topic[0].topic_id, topic.iter().map(|partition| partition.partition)))
    }

    #[must_use]
    pub fn is_subset_of(&self, other: &Self) -> bool {
        self.0.iter().all(|partition| other.contains(partition))
    }

    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        self.0.iter().any(|partition| other.contains(partition))
    }
}

impl FromIterator<TopicPartition> for Partitions {
    fn from_iter<I: IntoIterator<Item = TopicPartition>>(partitions: I) -> Self {
        let mut partitions = Vec::from_iter(partitions);
        partitions.sort_unstable();
        partitions.dedup();
        Self(partitions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(topic: u128, partition: i32) -> TopicPartition {
        let topic_id = Uuid::from_u128(topic);
        TopicPartition { topic_id, partition }
    }

    #[test]
    fn a_set_is_ordered_whatever_the_order_it_was_made_in() {
        let set = Partitions::from_iter([partition(2, 0), partition(1, 1), partition(2, 0), partition(1, 0)]);
        assert_eq!(set.len(), 3);
        let topics: Vec<(u128, Vec<i32>)> = set
            .by_topic()
            .map(|(id, partitions)| (id.as_u128(), partitions.collect()))
            .collect();
        assert_eq!(topics, [(1, vec![0, 1]), (2, vec![0])]);
    }

    #[test]
    fn sets_are_compared_by_their_members() {
        let whole = Partitions::from_iter([partition(1, 0), partition(1, 1)]);
        let half = Partitions::from_iter([partition(1, 1)]);
        let other = Partitions::from_iter([partition(2, 1)]);
        assert!(half.is_subset_of(&whole));
        assert!(!whole.is_subset_of(&half));
        assert!(Partitions::default().is_subset_of(&half));
        assert!(half.intersects(&whole));
        assert!(!half.intersects(&other));
    }
}
