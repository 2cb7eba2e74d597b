//! The partitions that a member of a consumer group holds, each with the epoch at which it was assigned (KIP-1251).

use std::sync::Arc;

use super::partitions::{Partitions, TopicPartition};

/// Partitions, each with its assignment epoch. A clone shares both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldPartitions {
    partitions: Arc<Partitions>,
    /// In the order of the partitions.
    epochs: Arc<[i32]>,
}

impl HeldPartitions {
    /// Without the epochs.
    #[must_use]
    pub fn partitions(&self) -> &Arc<Partitions> {
        &self.partitions
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    /// The epoch at which the partition was assigned; `None` if it is not held.
    #[must_use]
    pub fn epoch_of(&self, partition: &TopicPartition) -> Option<i32> {
        self.epochs.get(self.partitions.position(partition)?).copied()
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = (TopicPartition, i32)> {
        self.partitions.iter().copied().zip(self.epochs.iter().copied())
    }

    /// The same partitions as if all had been assigned at this epoch.
    #[must_use]
    pub fn at_epoch(&self, epoch: i32) -> Self {
        Self::assigned_at(self.partitions.clone(), epoch)
    }

    /// These partitions, all assigned at this epoch.
    #[must_use]
    pub fn assigned_at(partitions: Arc<Partitions>, epoch: i32) -> Self {
        let epochs = std::iter::repeat_n(epoch, partitions.len()).collect();
        Self { partitions, epochs }
    }
}

impl FromIterator<(TopicPartition, i32)> for HeldPartitions {
    /// Of a partition that comes twice the first epoch counts.
    fn from_iter<I: IntoIterator<Item = (TopicPartition, i32)>>(held: I) -> Self {
        let mut held = Vec::from_iter(held);
        held.sort_by_key(|(partition, _)| *partition);
        held.dedup_by_key(|(partition, _)| *partition);
        Self {
            partitions: Arc::new(held.iter().map(|(partition, _)| *partition).collect()),
            epochs: held.into_iter().map(|(_, epoch)| epoch).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn each_partition_keeps_its_epoch_whatever_the_order_they_came_in() {
        let partition = |partition| TopicPartition {
            topic_id: Uuid::from_u128(1),
            partition,
        };
        let held = HeldPartitions::from_iter([(partition(2), 7), (partition(0), 9), (partition(2), 8)]);
        assert_eq!(held.iter().collect::<Vec<_>>(), [(partition(0), 9), (partition(2), 7)]);
        assert_eq!(held.epoch_of(&partition(2)), Some(7));
        assert_eq!(held.epoch_of(&partition(1)), None);
        assert_eq!(held.at_epoch(0).epoch_of(&partition(2)), Some(0));
    }
}
