//! The assignment of a classic group of consumers, from what its members say to what each is told.
//!
//! Under a cooperative protocol members go on with what they have while they join. So a partition that is to move is given to nobody in the
//! first round; who has it gives it up and joins again, and the next round gives it to its new owner (KIP-429).

mod outside;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::claims::{self, Claim};
use crate::coordinator::assignor::classic::TopicIds;
use crate::coordinator::assignor::{ClassicAssignor, GroupSpec, MemberSpec};
use crate::coordinator::consumer_protocol::{
    self, NamedPartitions, Subscription, read_assignment, read_cooperative_user_data, read_sticky_user_data,
};
use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::coordinator::request::Text;
use crate::coordinator::topics::Topics;

/// A member as it stands when a generation begins.
#[derive(Debug)]
pub(super) struct Applicant {
    pub(super) id: Text,
    pub(super) instance_id: Option<Text>,
    /// For the selected protocol.
    pub(super) metadata: Bytes,
    /// What it was told last; empty if nothing.
    pub(super) last: Bytes,
    /// Whether it takes part in this round: a static member that is silent does not.
    pub(super) has_joined: bool,
    /// Whether its former self, which was told it, may go on meanwhile.
    pub(super) has_former: bool,
}

impl Applicant {
    /// Whether its subscription tells what it has now.
    const fn says_what_it_holds(&self, subscription: &Subscription) -> bool {
        subscription.version >= 1 && self.has_joined
    }
}

/// Of which member the metadata cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable(pub(super) Text);

/// What an assignor is to place, and what is to be made of what it places.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) group: GroupSpec,
    /// The subscribed topics that there are, with their numbers of partitions.
    pub(super) topics: BTreeMap<Text, i32>,
    topic_ids: TopicIds,
    /// The ids that topics have elsewhere, by those that they have here.
    own_ids: BTreeMap<Uuid, Uuid>,
    /// Of each member's subscription.
    versions: Vec<i16>,
    /// What each member goes on with.
    held: Vec<Partitions>,
    /// What its former self may go on with.
    former: Vec<Partitions>,
}

/// What each member is told.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) assignments: BTreeMap<Text, Bytes>,
    pub(super) partitions: usize,
    pub(super) moved: usize,
    pub(super) withheld: usize,
    /// Whose former selves something is withheld for. They do not join again for it by themselves.
    pub(super) returned: BTreeSet<Text>,
}

impl Draft {
    /// `generation` is the one in which members were told what they were told last.
    pub(super) fn new(
        protocol: ClassicAssignor,
        mut applicants: Vec<Applicant>,
        generation: i32,
        topics: &Topics,
    ) -> Result<Self, Unreadable> {
        applicants.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        let read = |applicant: &Applicant| {
            let subscription = consumer_protocol::read_subscription(&applicant.metadata);
            subscription.ok_or_else(|| Unreadable(applicant.id.clone()))
        };
        let subscriptions: Vec<Subscription> = applicants.iter().map(read).collect::<Result<_, _>>()?;
        let subscribed = subscriptions.iter().flat_map(|subscription| &subscription.topics);
        let exists = |name: &&Text| topics.by_name.contains_key(*name);
        let topic_ids: TopicIds = subscribed.filter(exists).cloned().collect();
        let claims: Vec<Claim> = applicants
            .iter()
            .zip(&subscriptions)
            .map(|(applicant, subscription)| claim(protocol, applicant, subscription, generation, &topic_ids))
            .collect();
        let held = applicants.iter().zip(&subscriptions);
        let held =
            held.map(|(applicant, subscription)| held_while_joining(protocol, applicant, subscription, &topic_ids));
        let held = held.collect();
        let former = applicants
            .iter()
            .map(|applicant| held_by_former(protocol, applicant, &topic_ids));
        let former = former.collect();
        let mut shared: BTreeMap<Vec<Uuid>, Arc<[Uuid]>> = BTreeMap::new();
        let members = applicants.iter().zip(&subscriptions).zip(claims::settle(&claims));
        let members = members.map(|((applicant, subscription), target)| {
            let mut ids: Vec<Uuid> = subscription
                .topics
                .iter()
                .filter_map(|name| topic_ids.id(name))
                .collect();
            ids.sort_unstable();
            ids.dedup();
            MemberSpec {
                member_id: applicant.id.clone(),
                instance_id: applicant.instance_id.clone(),
                rack_id: subscription.rack_id.clone(),
                topics: Arc::clone(shared.entry(ids).or_insert_with_key(|ids| Arc::from(&**ids))),
                target: Arc::new(target),
            }
        });
        let members = members.collect();
        let known = || {
            topic_ids
                .iter()
                .filter_map(|(name, id)| Some((id, topics.by_name.get(name)?)))
        };
        Ok(Self {
            group: GroupSpec {
                members,
                topics: known().map(|(id, topic)| (id, topic.partitions.max(0))).collect(),
            },
            topics: known()
                .map(|(_, topic)| (topic.name.clone(), topic.partitions))
                .collect(),
            own_ids: known().map(|(id, topic)| (id, topic.id)).collect(),
            versions: subscriptions.iter().map(|subscription| subscription.version).collect(),
            topic_ids,
            held,
            former,
        })
    }

    /// What each member is to have by an assignor of the coordinator's own, in the members' order.
    pub(super) fn place(&self, assignor: ClassicAssignor) -> Vec<Arc<Partitions>> {
        // Only topics of a known size are here, so that there is always a placement.
        let placed = assignor.assign(&self.group);
        placed.unwrap_or_else(|_| vec![Arc::default(); self.group.members.len()])
    }

    /// What is told of these targets, which are in the members' order. `is_heard` says of whom something was heard under the id that it
    /// has: nobody goes on under the one before.
    pub(super) fn finish(&self, targets: &[Arc<Partitions>], is_heard: impl Fn(&Text) -> bool) -> Plan {
        let held_by_somebody: BTreeSet<&TopicPartition> = self.held.iter().flat_map(Partitions::iter).collect();
        let returned = self.group.members.iter().zip(&self.former);
        let returned = returned.filter(|(spec, _)| !is_heard(&spec.member_id));
        let formerly: BTreeMap<&TopicPartition, &Text> = returned
            .flat_map(|(spec, former)| former.iter().map(|partition| (partition, &spec.member_id)))
            .collect();
        let had: BTreeSet<&TopicPartition> = self
            .group
            .members
            .iter()
            .flat_map(|member| member.target.iter())
            .collect();
        let mut plan = Plan::default();
        for (member, target) in targets.iter().enumerate() {
            let (spec, held) = (&self.group.members[member], &self.held[member]);
            let is_moved = |partition: &&TopicPartition| had.contains(partition) && !spec.target.contains(partition);
            plan.moved += target.iter().filter(is_moved).count();
            let returned = |partition: &TopicPartition| {
                let returned = formerly.get(partition).copied();
                returned.filter(|returned| **returned != spec.member_id)
            };
            let is_free = |partition: &&TopicPartition| {
                held.contains(partition) || (!held_by_somebody.contains(partition) && returned(partition).is_none())
            };
            let given: Vec<TopicPartition> = target.iter().filter(is_free).copied().collect();
            let kept_from_it = target.iter().filter(|partition| !is_free(partition));
            plan.returned.extend(kept_from_it.filter_map(returned).cloned());
            plan.withheld += target.len() - given.len();
            plan.partitions += given.len();
            let named = self.named(&Partitions::from_ascending(given));
            let bytes = consumer_protocol::write_assignment(self.versions[member], &named);
            plan.assignments.insert(spec.member_id.clone(), bytes);
        }
        plan
    }

    fn named(&self, partitions: &Partitions) -> NamedPartitions {
        let topics = partitions.by_topic();
        topics
            .filter_map(|(id, numbers)| Some((self.topic_ids.name(&id)?.clone(), numbers.collect())))
            .collect()
    }
}

/// What the member had before. Under an eager protocol the coordinator knows that best, and of one that has begun anew; a member that is
/// new here may still remember it.
fn claim(
    protocol: ClassicAssignor,
    applicant: &Applicant,
    subscription: &Subscription,
    generation: i32,
    topic_ids: &TopicIds,
) -> Claim {
    if protocol.is_cooperative() && applicant.says_what_it_holds(subscription) && !applicant.has_former {
        let told = subscription.generation;
        let told = told.or_else(|| read_cooperative_user_data(&subscription.user_data));
        return Claim {
            generation: told.unwrap_or(-1),
            partitions: known(&subscription.owned, topic_ids),
        };
    }
    let (partitions, told) = match read_assignment(&applicant.last) {
        Some(last) if !last.partitions.is_empty() => (last.partitions, Some(generation)),
        _ if protocol == ClassicAssignor::Sticky => read_sticky_user_data(&subscription.user_data).unwrap_or_default(),
        _ => Default::default(),
    };
    Claim {
        generation: told.unwrap_or(-1),
        partitions: known(&partitions, topic_ids),
    }
}

/// Nothing under an eager protocol, where members give up everything before they join. Of who does not say what it holds, whatever it was
/// given counts.
fn held_while_joining(
    protocol: ClassicAssignor,
    applicant: &Applicant,
    subscription: &Subscription,
    topic_ids: &TopicIds,
) -> Partitions {
    if !protocol.is_cooperative() {
        return Partitions::default();
    }
    let mut held = known(&subscription.owned, topic_ids);
    if !applicant.says_what_it_holds(subscription) {
        let last = read_assignment(&applicant.last).map(|last| last.partitions);
        held.extend(known(&last.unwrap_or_default(), topic_ids));
    }
    held.into_iter().collect()
}

/// Nothing under an eager protocol, where what is withheld would take one more round in which nobody reads.
fn held_by_former(protocol: ClassicAssignor, applicant: &Applicant, topic_ids: &TopicIds) -> Partitions {
    if !protocol.is_cooperative() || !applicant.has_former {
        return Partitions::default();
    }
    let last = read_assignment(&applicant.last).map(|last| last.partitions);
    known(&last.unwrap_or_default(), topic_ids).into_iter().collect()
}

fn known(named: &NamedPartitions, topic_ids: &TopicIds) -> Vec<TopicPartition> {
    let topics = named
        .iter()
        .filter_map(|(name, numbers)| Some((topic_ids.id(name)?, numbers)));
    topics
        .flat_map(|(topic_id, numbers)| {
            let partitions = numbers.iter().filter(|partition| **partition >= 0);
            partitions.map(move |&partition| TopicPartition { topic_id, partition })
        })
        .collect()
}

#[cfg(test)]
mod tests;
