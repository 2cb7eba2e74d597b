//! Who holds which partition: the one place that keeps a partition from having two owners.

use std::collections::BTreeMap;

use crate::coordinator::partitions::TopicPartition;
use crate::coordinator::record::CurrentAssignmentValue;
use crate::coordinator::request::Text;

/// The holder of each partition that somebody has, or still has to give up.
#[derive(Debug, Default)]
pub(super) struct Owners(BTreeMap<TopicPartition, Text>);

impl Owners {
    /// Whether nobody but this member holds the partition.
    pub(super) fn is_free_for(&self, member_id: &str, partition: &TopicPartition) -> bool {
        self.0.get(partition).is_none_or(|owner| &**owner == member_id)
    }

    /// What a member holds becomes something else.
    pub(super) fn change(&mut self, member_id: &Text, before: &CurrentAssignmentValue, after: &CurrentAssignmentValue) {
        self.release(member_id, before);
        for held in [&after.assigned, &after.pending_revocation] {
            for partition in held.partitions().iter() {
                self.0.insert(*partition, member_id.clone());
            }
        }
    }

    /// A member holds nothing any more. What a later record gave to another stays there: records of one key may be missing
    /// when a compacted log is read.
    pub(super) fn release(&mut self, member_id: &Text, before: &CurrentAssignmentValue) {
        for held in [&before.assigned, &before.pending_revocation] {
            for partition in held.partitions().iter() {
                if self.0.get(partition) == Some(member_id) {
                    self.0.remove(partition);
                }
            }
        }
    }
}
