//! A draft as an external assignor sees it: topics have their own ids there.

use std::collections::BTreeMap;
use std::iter::zip;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::Draft;
use crate::coordinator::assignor::MemberSpec;
use crate::coordinator::client_assignor::{Installed, Prepared};
use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::coordinator::request::{PreparedMember, PreparedTopic};

impl Draft {
    /// What the assignor is told. What classic members say for their own assignors is for those, and is not passed on.
    pub(in crate::coordinator::classic) fn prepared(&self, generation_id: i32) -> Prepared {
        // Members with one subscription share it.
        let mut shared: BTreeMap<*const Uuid, Arc<[Uuid]>> = BTreeMap::new();
        let members = self.group.members.iter().map(|member| PreparedMember {
            member_id: member.member_id.clone(),
            member_epoch: generation_id,
            group_instance_id: member.instance_id.clone(),
            rack_id: member.rack_id.clone(),
            topic_ids: Arc::clone(shared.entry(member.topics.as_ptr()).or_insert_with(|| {
                let mut ids: Vec<Uuid> = member
                    .topics
                    .iter()
                    .filter_map(|id| self.own_ids.get(id))
                    .copied()
                    .collect();
                ids.sort_unstable();
                ids.into()
            })),
            reason: 0,
            metadata_version: 0,
            metadata: Bytes::new(),
            target: Arc::new(with_ids(&self.own_ids, &member.target)),
        });
        let members = members.collect();
        let topics = self.topic_ids.iter().filter_map(|(name, id)| {
            Some(PreparedTopic {
                topic_id: *self.own_ids.get(&id)?,
                name: name.clone(),
                partitions: *self.group.topics.get(&id)?,
            })
        });
        let mut topics: Vec<PreparedTopic> = topics.collect();
        topics.sort_unstable_by_key(|topic| topic.topic_id);
        Prepared { members, topics }
    }

    /// What the assignor placed, in the members' order.
    pub(in crate::coordinator::classic) fn targets(&self, installed: &Installed) -> Vec<Arc<Partitions>> {
        let ids: BTreeMap<Uuid, Uuid> = self.own_ids.iter().map(|(id, own)| (*own, *id)).collect();
        let members = self.group.members.iter();
        let targets = members.map(|member| match installed.get(&member.member_id) {
            Some(target) => Arc::new(with_ids(&ids, &target.partitions)),
            None => Arc::default(),
        });
        targets.collect()
    }

    /// Whether the same members are subscribed to the same topics, whatever they have.
    pub(in crate::coordinator::classic) fn is_of_the_same(&self, other: &Self) -> bool {
        let members = (&self.group.members, &other.group.members);
        let is_same =
            |(one, other): (&MemberSpec, &MemberSpec)| one.member_id == other.member_id && one.topics == other.topics;
        self.topics == other.topics && members.0.len() == members.1.len() && zip(members.0, members.1).all(is_same)
    }
}

/// The partitions under other ids of their topics.
fn with_ids(ids: &BTreeMap<Uuid, Uuid>, partitions: &Partitions) -> Partitions {
    let partitions = partitions.iter().filter_map(|partition| {
        Some(TopicPartition {
            topic_id: *ids.get(&partition.topic_id)?,
            partition: partition.partition,
        })
    });
    partitions.collect()
}
