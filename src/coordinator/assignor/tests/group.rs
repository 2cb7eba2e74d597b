//! Groups for tests: topics and members are numbers, partitions are pairs of topic and number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use uuid::Uuid;

use crate::coordinator::assignor::{Assignor, GroupSpec, MemberSpec};
use crate::coordinator::partitions::{Partitions, TopicPartition};

pub(super) type Partition = (usize, i32);

#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The number of partitions of each topic.
    pub(super) topics: BTreeMap<usize, i32>,
    /// By the number in the member's id.
    pub(super) members: BTreeMap<usize, Member>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) instance_id: Option<usize>,
    pub(super) topics: BTreeSet<usize>,
    pub(super) target: Vec<Partition>,
}

impl Group {
    /// A new group: the sizes of its topics and its members' subscriptions.
    pub(super) fn new(topics: &[i32], members: &[&[usize]]) -> Self {
        let member = |topics: &&[usize]| Member {
            topics: topics.iter().copied().collect(),
            ..Member::default()
        };
        Self {
            topics: topics.iter().copied().enumerate().collect(),
            members: members.iter().map(member).enumerate().collect(),
        }
    }

    /// The same group with these targets.
    pub(super) fn holding(mut self, targets: &[&[Partition]]) -> Self {
        for (member, target) in self.members.values_mut().zip(targets) {
            member.target = target.to_vec();
        }
        self
    }

    pub(super) fn spec(&self) -> GroupSpec {
        let members = self.members.iter().map(|(number, member)| MemberSpec {
            member_id: format!("member-{number:03}").into(),
            instance_id: member.instance_id.map(|number| format!("instance-{number:03}").into()),
            rack_id: None,
            topics: member.topics.iter().copied().map(topic_id).collect(),
            target: Arc::new(member.target.iter().copied().map(topic_partition).collect()),
        });
        GroupSpec {
            members: members.collect(),
            topics: self
                .topics
                .iter()
                .map(|(&topic, &size)| (topic_id(topic), size))
                .collect(),
        }
    }

    /// The next target of each member.
    pub(super) fn assign(&self, assignor: Assignor) -> Vec<Vec<Partition>> {
        let targets = assignor.assign(&self.spec()).expect("all sizes are known");
        targets.iter().map(|target| partitions(target)).collect()
    }

    /// The group after an assignment.
    pub(super) fn settled(mut self, assignor: Assignor) -> Self {
        let targets = self.assign(assignor);
        for (member, target) in self.members.values_mut().zip(targets) {
            member.target = target;
        }
        self
    }

    /// All partitions that somebody subscribes to.
    pub(super) fn subscribed(&self) -> BTreeSet<Partition> {
        let topics: BTreeSet<usize> = self.members.values().flat_map(|member| member.topics.clone()).collect();
        let sizes = topics.into_iter().map(|topic| (topic, self.topics[&topic]));
        sizes
            .flat_map(|(topic, size)| (0..size).map(move |partition| (topic, partition)))
            .collect()
    }

    /// What a member may keep of its target.
    pub(super) fn keepable(&self, member: &Member) -> BTreeSet<Partition> {
        let exists = |&(topic, partition): &Partition| self.topics.get(&topic).is_some_and(|&size| partition < size);
        let target = member.target.iter().copied();
        target
            .filter(|held| member.topics.contains(&held.0) && exists(held))
            .collect()
    }

    /// How many partitions these targets give to members that do not have them.
    pub(super) fn gained(&self, targets: &[Vec<Partition>]) -> usize {
        let all = self.members.values().zip(targets);
        all.map(|(member, target)| {
            target
                .iter()
                .filter(|partition| !member.target.contains(partition))
                .count()
        })
        .sum()
    }

    /// Checks that each partition which somebody subscribes to has one owner, and that one subscribes to it.
    pub(super) fn check(&self, targets: &[Vec<Partition>]) {
        assert_eq!(targets.len(), self.members.len());
        let mut given = BTreeSet::new();
        for (member, target) in self.members.values().zip(targets) {
            for partition in target {
                assert!(
                    member.topics.contains(&partition.0),
                    "{partition:?} went to one who does not subscribe"
                );
                assert!(given.insert(*partition), "{partition:?} has two owners");
            }
        }
        assert_eq!(given, self.subscribed());
    }
}

pub(super) fn topic_id(topic: usize) -> Uuid {
    // Ids whose leading bits are equal for some topics and differ for others.
    Uuid::from_u128((topic as u128 / 2) << 120 | (topic as u128 + 1))
}

fn topic_partition((topic, partition): Partition) -> TopicPartition {
    let topic_id = topic_id(topic);
    TopicPartition { topic_id, partition }
}

pub(super) fn partitions(target: &Partitions) -> Vec<Partition> {
    let topic = |id: Uuid| (id.as_u128() & 0xff) as usize - 1;
    target
        .iter()
        .map(|held| (topic(held.topic_id), held.partition))
        .collect()
}

/// What the members of a generated group subscribe to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subscriptions {
    Equal,
    Any,
}

/// Groups with targets of any origin: partitions that are gone, topics not subscribed to; but never two owners of one.
pub(super) fn groups(
    subscriptions: Subscriptions,
    topics: usize,
    partitions: i32,
    members: usize,
) -> BoxedStrategy<Group> {
    let sizes = prop::collection::vec(0..=partitions, 1..=topics);
    let sizes = (sizes, 1..=members);
    sizes
        .prop_flat_map(move |(sizes, members)| {
            let topics = sizes.len();
            let subscription = prop::collection::btree_set(0..topics, 0..=topics);
            let subscriptions = match subscriptions {
                Subscriptions::Equal => subscription.prop_map(move |one| vec![one; members]).boxed(),
                Subscriptions::Any => prop::collection::vec(subscription, members).boxed(),
            };
            // One topic more than there is, one partition more than a topic has at most; some have no owner.
            let held = (topics + 1) * (partitions as usize + 1);
            let owners = prop::collection::vec(prop::option::weighted(0.8, 0..members), held);
            let instances = prop::collection::vec(prop::option::of(0..50_usize), members);
            (Just(sizes), subscriptions, owners, instances)
        })
        .prop_map(move |(sizes, subscriptions, owners, instances)| {
            let subscriptions: Vec<Vec<usize>> = subscriptions.into_iter().map(Vec::from_iter).collect();
            let slices: Vec<&[usize]> = subscriptions.iter().map(Vec::as_slice).collect();
            let mut group = Group::new(&sizes, &slices);
            let held = (0..=sizes.len()).flat_map(|topic| (0..=partitions).map(move |partition| (topic, partition)));
            for (partition, owner) in held.zip(owners) {
                if let Some(member) = owner.and_then(|owner| group.members.get_mut(&owner)) {
                    member.target.push(partition);
                }
            }
            let mut seen = BTreeSet::new();
            for (member, instance_id) in group.members.values_mut().zip(instances) {
                member.instance_id = instance_id.filter(|&instance_id| seen.insert(instance_id));
            }
            group
        })
        .boxed()
}
