//! The members of a consumer group, by id.
//!
//! What is counted beside them (subscribed names, patterns, assignors, who has settled) changes only here, so it cannot drift
//! from the members it counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::epoch;
use crate::coordinator::client_assignor::{Ballot, Versions, Voter};
use crate::coordinator::held::HeldPartitions;
use crate::coordinator::partitions::Partitions;
use crate::coordinator::record::{ConsumerMemberValue, CurrentAssignmentValue, MemberState};
use crate::coordinator::request::{ClientAssignor, Text};
use crate::coordinator::topic_names::TopicNames;

#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: Text,
    /// What it said of itself.
    pub(super) said: Arc<ConsumerMemberValue>,
    pub(super) current: CurrentAssignmentValue,
}

impl Member {
    /// Whether it speaks the classic protocol.
    pub(super) fn is_classic(&self) -> bool {
        self.said.classic.is_some()
    }

    /// Whether it has what the target of this epoch gives it.
    pub(super) fn has_settled(&self, target_epoch: i32) -> bool {
        self.current.state == MemberState::Stable && self.current.member_epoch == target_epoch
    }

    /// What it may be reading: what it is to give up is its own until it has.
    pub(super) fn held(&self) -> Partitions {
        let held = [&self.current.assigned, &self.current.pending_revocation];
        held.iter().flat_map(|held| held.partitions().iter().copied()).collect()
    }
}

/// What a member holds that has not been given anything.
pub(super) fn nothing_held(member_epoch: i32) -> CurrentAssignmentValue {
    CurrentAssignmentValue {
        member_epoch,
        previous_member_epoch: member_epoch,
        state: MemberState::Stable,
        assigned: HeldPartitions::default(),
        pending_revocation: HeldPartitions::default(),
    }
}

/// What is known of a member that has said nothing yet.
pub(super) fn nothing_said() -> ConsumerMemberValue {
    ConsumerMemberValue {
        instance_id: None,
        rack_id: None,
        client_id: "".into(),
        client_host: "".into(),
        subscribed_topic_names: TopicNames::default(),
        subscribed_topic_regex: "".into(),
        rebalance_timeout_ms: -1,
        server_assignor: None,
        client_assignors: Vec::new(),
        classic: None,
    }
}

#[derive(Debug, Default)]
pub(super) struct Members {
    by_id: BTreeMap<Text, Member>,
    /// Instance id to member id.
    statics: BTreeMap<Text, Text>,
    /// How many members have a list of names. All that have an equal one have the very list that is here.
    lists: BTreeMap<TopicNames, usize>,
    /// How many of these lists a topic is in.
    names: BTreeMap<Text, usize>,
    /// How many members are subscribed by a pattern.
    patterns: BTreeMap<Text, usize>,
    /// How many members ask for a server assignor.
    asked_for: BTreeMap<Text, usize>,
    /// How many members ask for an assignor so, or list it among those that they can run.
    supporters: BTreeMap<Text, usize>,
    /// Of what they say for their assignors.
    metadata_versions: Versions,
    metadata_bytes: usize,
    /// How many classic members support a protocol.
    protocols: BTreeMap<Text, usize>,
    classic: usize,
    target_epoch: i32,
    settled: usize,
}

impl Members {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    pub(super) fn get(&self, id: &str) -> Option<&Member> {
        self.by_id.get(id)
    }

    /// By id.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.by_id.values()
    }

    /// The member that has this instance id now.
    pub(super) fn static_member(&self, instance_id: &str) -> Option<&Text> {
        self.statics.get(instance_id)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Text> {
        self.names.keys()
    }

    pub(super) fn patterns(&self) -> impl Iterator<Item = &Text> {
        self.patterns.keys()
    }

    pub(super) fn has_patterns(&self) -> bool {
        !self.patterns.is_empty()
    }

    pub(super) fn are_subscribed_by_name(&self, topic: &str) -> bool {
        self.names.contains_key(topic)
    }

    /// How many members are subscribed by this pattern.
    pub(super) fn subscribers_by(&self, pattern: &str) -> usize {
        self.patterns.get(pattern).copied().unwrap_or(0)
    }

    pub(super) fn classic_members(&self) -> usize {
        self.classic
    }

    /// Whether every classic member supports the protocol; with none there, nobody objects.
    pub(super) fn all_classic_support(&self, protocol: &str) -> bool {
        self.protocols.get(protocol).copied().unwrap_or(0) == self.classic
    }

    /// Whether all of them have what the last target gives them.
    pub(super) fn have_settled(&self) -> bool {
        self.settled == self.by_id.len()
    }

    /// What they say of assignors.
    pub(super) fn ballot<'a>(&'a self, always: Option<&'a Text>, configured: &'a [Text]) -> Ballot<'a> {
        Ballot {
            always,
            members: self.by_id.len(),
            supporters: &self.supporters,
            asked_for: &self.asked_for,
            configured,
        }
    }

    pub(super) fn voters(&self) -> impl Iterator<Item = Voter<'_>> {
        self.iter().map(|member| Voter {
            assignors: &member.said.client_assignors,
            server_assignor: member.said.server_assignor.as_ref(),
        })
    }

    /// The versions of the metadata that they have for assignors.
    pub(super) const fn metadata_versions(&self) -> &Versions {
        &self.metadata_versions
    }

    /// Whether any of them asks for the assignor, or can run it.
    pub(super) fn any_supports(&self, assignor: &str) -> bool {
        self.supporters.contains_key(assignor)
    }

    /// Bytes of what they say for their assignors.
    pub(super) fn metadata_bytes(&self) -> usize {
        self.metadata_bytes
    }

    /// Takes in what a member says of itself. Says whether the topics or patterns of the whole group may be others now.
    pub(super) fn say(&mut self, id: &Text, mut said: Arc<ConsumerMemberValue>) -> bool {
        self.share_list(&mut said);
        let member = self.entry(id);
        let before = std::mem::replace(&mut member.said, said.clone());
        let added = self.count(id, &said);
        let dropped = self.discount(id, &before);
        added || dropped
    }

    /// Takes in what a member holds; answers with what it held before.
    pub(super) fn hold(&mut self, id: &Text, current: CurrentAssignmentValue) -> CurrentAssignmentValue {
        let target_epoch = self.target_epoch;
        let member = self.entry(id);
        let had_settled = member.has_settled(target_epoch);
        let before = std::mem::replace(&mut member.current, current);
        let has_settled = member.has_settled(target_epoch);
        self.settled = self.settled + usize::from(has_settled) - usize::from(had_settled);
        before
    }

    /// There is a new target for everybody.
    pub(super) fn retarget(&mut self, target_epoch: i32) {
        self.target_epoch = target_epoch;
        self.settled = self
            .by_id
            .values()
            .filter(|member| member.has_settled(target_epoch))
            .count();
    }

    /// Takes a member out. Says also whether the topics or patterns of the whole group may be others now.
    pub(super) fn remove(&mut self, id: &str) -> Option<(Member, bool)> {
        let member = self.by_id.remove(id)?;
        self.settled -= usize::from(member.has_settled(self.target_epoch));
        let dropped = self.discount(id, &member.said);
        Some((member, dropped))
    }

    /// Puts the list that others have already in the place of an equal one.
    fn share_list(&self, said: &mut Arc<ConsumerMemberValue>) {
        let known = self.lists.get_key_value(&said.subscribed_topic_names);
        if let Some((known, _)) = known.filter(|(known, _)| !known.is_same(&said.subscribed_topic_names)) {
            Arc::make_mut(said).subscribed_topic_names = known.clone();
        }
    }

    fn entry(&mut self, id: &Text) -> &mut Member {
        let Self {
            by_id,
            target_epoch,
            settled,
            ..
        } = self;
        by_id.entry(id.clone()).or_insert_with(|| {
            let member = Member {
                id: id.clone(),
                said: Arc::new(nothing_said()),
                current: nothing_held(epoch::JOIN),
            };
            *settled += usize::from(member.has_settled(*target_epoch));
            member
        })
    }

    fn count(&mut self, id: &Text, said: &ConsumerMemberValue) -> bool {
        if let Some(instance_id) = &said.instance_id {
            self.statics.insert(instance_id.clone(), id.clone());
        }
        if let Some(assignor) = &said.server_assignor {
            add(&mut self.asked_for, assignor);
        }
        for assignor in supported(said) {
            add(&mut self.supporters, assignor);
        }
        self.metadata_versions.add(&said.client_assignors);
        self.metadata_bytes += metadata_bytes(&said.client_assignors);
        if let Some(classic) = &said.classic {
            self.classic += 1;
            for protocol in &classic.protocols {
                add(&mut self.protocols, &protocol.name);
            }
        }
        let mut is_new = false;
        if add(&mut self.lists, &said.subscribed_topic_names) {
            for name in said.subscribed_topic_names.iter() {
                is_new |= add(&mut self.names, name);
            }
        }
        if !said.subscribed_topic_regex.is_empty() {
            is_new |= add(&mut self.patterns, &said.subscribed_topic_regex);
        }
        is_new
    }

    fn discount(&mut self, id: &str, said: &ConsumerMemberValue) -> bool {
        if let Some(instance_id) = &said.instance_id
            && self.statics.get(instance_id).is_some_and(|owner| &**owner == id)
            && self
                .by_id
                .get(id)
                .is_none_or(|member| member.said.instance_id != said.instance_id)
        {
            self.statics.remove(instance_id);
        }
        if let Some(assignor) = &said.server_assignor {
            subtract(&mut self.asked_for, assignor);
        }
        for assignor in supported(said) {
            subtract(&mut self.supporters, assignor);
        }
        self.metadata_versions.subtract(&said.client_assignors);
        self.metadata_bytes -= metadata_bytes(&said.client_assignors);
        if let Some(classic) = &said.classic {
            self.classic -= 1;
            for protocol in &classic.protocols {
                subtract(&mut self.protocols, &protocol.name);
            }
        }
        let mut is_last = false;
        if subtract(&mut self.lists, &said.subscribed_topic_names) {
            for name in said.subscribed_topic_names.iter() {
                is_last |= subtract(&mut self.names, name);
            }
        }
        if !said.subscribed_topic_regex.is_empty() {
            is_last |= subtract(&mut self.patterns, &said.subscribed_topic_regex);
        }
        is_last
    }
}

/// Bytes of what is said for these assignors.
pub(super) fn metadata_bytes(assignors: &[ClientAssignor]) -> usize {
    assignors.iter().map(|assignor| assignor.metadata.len()).sum()
}

/// The assignors that a member lists or asks for, each once.
fn supported(said: &ConsumerMemberValue) -> impl Iterator<Item = &Text> {
    let is_listed = |name: &Text| ClientAssignor::find(&said.client_assignors, name).is_some();
    let asked_for = said.server_assignor.as_ref().filter(|name| !is_listed(name));
    said.client_assignors
        .iter()
        .map(|assignor| &assignor.name)
        .chain(asked_for)
}

/// Says whether it is the first.
fn add<K: Ord + Clone>(counts: &mut BTreeMap<K, usize>, key: &K) -> bool {
    let count = counts.entry(key.clone()).or_default();
    *count += 1;
    *count == 1
}

/// Says whether it was the last.
fn subtract<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) -> bool {
    let Some(count) = counts.get_mut(key) else {
        return false;
    };
    *count -= 1;
    if *count == 0 {
        counts.remove(key);
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscribed_to(names: &[&str]) -> Arc<ConsumerMemberValue> {
        let names: Vec<Text> = names.iter().map(|name| (*name).into()).collect();
        Arc::new(ConsumerMemberValue {
            subscribed_topic_names: names.into(),
            ..nothing_said()
        })
    }

    #[test]
    fn members_with_equal_subscriptions_share_one_list() {
        let mut members = Members::default();
        assert!(members.say(&"a".into(), subscribed_to(&["t", "u"])));
        assert!(!members.say(&"b".into(), subscribed_to(&["u", "t"])), "no topic is new");
        assert!(members.say(&"c".into(), subscribed_to(&["t", "v"])));
        let list = |members: &Members, id: &str| members.get(id).expect("a member").said.subscribed_topic_names.clone();
        assert!(list(&members, "a").is_same(&list(&members, "b")));
        assert!(!list(&members, "a").is_same(&list(&members, "c")));

        assert!(!members.say(&"a".into(), subscribed_to(&["t", "v"])), "b still has u");
        assert!(list(&members, "a").is_same(&list(&members, "c")));
        let (_, is_last) = members.remove("b").expect("a member");
        assert!(is_last, "nobody has u any more");
        assert_eq!(members.names().map(|name| &**name).collect::<Vec<_>>(), ["t", "v"]);
        members.remove("c");
        members.remove("a");
        assert!(members.lists.is_empty() && members.names.is_empty());
    }
}
