//! The topics that a group is subscribed to, and the hash by which a change of theirs is noticed (KIP-1101).

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use uuid::Uuid;

use super::ConsumerGroup;
use super::members::Member;
use crate::coordinator::record::ConsumerMemberValue;
use crate::coordinator::request::Text;
use crate::coordinator::topics::Topics;

impl ConsumerGroup {
    /// The hash of the subscribed topics as they are now. It is its own, not Kafka's: whoever reads it elsewhere sees a
    /// change, which costs one rebalance.
    pub(in crate::coordinator) fn fresh_hash(&mut self, topics: &Topics) -> i64 {
        if self.is_hash_stale {
            self.is_hash_stale = false;
            self.hash = self.hash_of_topics(topics);
        }
        self.hash
    }

    fn hash_of_topics(&self, topics: &Topics) -> i64 {
        let mut hasher = DefaultHasher::new();
        let mut is_any_known = false;
        for name in self.subscribed_topics() {
            if let Some(topic) = topics.by_name.get(name) {
                is_any_known = true;
                (&topic.name, topic.id, topic.partitions, topic.racks).hash(&mut hasher);
            }
        }
        match is_any_known {
            true => i64::from_ne_bytes(hasher.finish().to_ne_bytes()),
            false => 0,
        }
    }

    /// Everything that somebody is subscribed to, by name or by a pattern.
    fn subscribed_topics(&self) -> BTreeSet<&Text> {
        let by_pattern = self.members.patterns().filter_map(|pattern| self.regexes.get(pattern));
        let by_pattern = by_pattern.flat_map(|regex| &regex.topics);
        self.members.names().chain(by_pattern).collect()
    }

    /// Whether somebody is subscribed to the topic.
    pub(in crate::coordinator) fn is_subscribed_to(&self, topic: &str) -> bool {
        self.members.are_subscribed_by_name(topic)
            || self
                .members
                .patterns()
                .filter_map(|pattern| self.regexes.get(pattern))
                .any(|regex| is_among(&regex.topics, topic))
    }

    /// Whether the member is subscribed to the topic of this id, which a topic that is gone has no more.
    pub(super) fn is_member_subscribed_to(&self, member: &Member, topic_id: &Uuid, topics: &Topics) -> bool {
        let Some(name) = topics.name_by_id.get(topic_id) else {
            return false;
        };
        let regex = self.regexes.get(&member.said.subscribed_topic_regex);
        is_among(&member.said.subscribed_topic_names, name) || regex.is_some_and(|regex| is_among(&regex.topics, name))
    }

    /// The ids of the topics that exist of those that a member is subscribed to, in order.
    pub(super) fn topic_ids(&self, said: &ConsumerMemberValue, topics: &Topics) -> Vec<Uuid> {
        let by_pattern = self.regexes.get(&said.subscribed_topic_regex);
        let by_pattern = by_pattern.into_iter().flat_map(|regex| &regex.topics);
        let names = said.subscribed_topic_names.iter().chain(by_pattern);
        let mut ids: Vec<Uuid> = names
            .filter_map(|name| topics.by_name.get(name))
            .map(|topic| topic.id)
            .filter(|id| !id.is_nil())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// `names` are ordered.
fn is_among(names: &[Text], name: &str) -> bool {
    names.binary_search_by(|other| (**other).cmp(name)).is_ok()
}
