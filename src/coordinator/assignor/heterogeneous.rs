//! `uniform` where members' subscriptions differ (Kafka's `UniformHeterogeneousAssignmentBuilder`).
//!
//! Members keep what they may. What is free goes to the least loaded subscriber, the topics first that leave the least choice. Then
//! partitions move, topic by topic, from the most loaded member that has one to the least loaded subscriber, as long as that
//! makes their loads more equal. It ends where Kafka's ends: no move of one partition would make two loads more equal.
//!
//! Partitions that are placed anew are moved about first, and only then those that members would keep, so that the latter are few.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::MemberSpec;
use super::levels::Levels;
use super::placement::{NOBODY, Placement};
use super::space::Space;
use super::subscriptions::{ByTopic, Subscriptions};

/// Kafka's limit of walks over all topics (`MAX_ITERATION_COUNT`); nearly always one or two are enough.
const PASSES_MAX: usize = 16;

pub(super) fn place(members: &[MemberSpec], subscriptions: &Subscriptions<'_>, space: &Space) -> Placement {
    let mut placement = Placement::new(members.len(), space);
    keep(&mut placement, members, subscriptions, space);
    let mut balancer = Balancer::new(placement, subscriptions, space);
    balancer.place_free();
    balancer.balance(Movable::Anew);
    balancer.balance(Movable::All);
    balancer.placement
}

/// Every member keeps what it has, as long as that exists and the member still subscribes to its topic.
fn keep(placement: &mut Placement, members: &[MemberSpec], subscriptions: &Subscriptions<'_>, space: &Space) {
    const NONE: usize = usize::MAX;
    // The last subscription met that holds each topic.
    let mut held_by = vec![NONE; space.topics()];
    for (index, subscription) in subscriptions.all.iter().enumerate() {
        for topic in subscription.topics.iter().filter_map(|id| space.topic(id)) {
            held_by[topic] = index;
        }
        for member in subscription.members.iter().map(|&member| member as usize) {
            for located in space.locate(members[member].target.iter()) {
                match located {
                    Some((topic, partition)) if held_by[topic] == index => placement.keep(partition, member),
                    _ => placement.lose(member),
                }
            }
        }
    }
}

/// What balancing may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Movable {
    /// Only what its owner did not have before.
    Anew,
    All,
}

struct Balancer<'a> {
    placement: Placement,
    space: &'a Space,
    subscribers: ByTopic,
    /// The topics that can be placed, in the order in which they are.
    order: Vec<usize>,
    /// The subscription of each member.
    subscription_of: Vec<u32>,
    /// For each subscription, its members by their load.
    levels: Vec<Levels>,
    /// The place of each member in the levels of its subscription.
    places: Vec<u32>,
    /// The partitions whose owner had them before.
    kept: Vec<bool>,
}

impl<'a> Balancer<'a> {
    fn new(placement: Placement, subscriptions: &Subscriptions<'_>, space: &'a Space) -> Self {
        let members = placement.loads.len();
        let (mut places, mut subscription_of) = (vec![0; members], vec![0; members]);
        let mut levels = Vec::with_capacity(subscriptions.all.len());
        for (index, subscription) in (0..).zip(&subscriptions.all) {
            levels.push(Levels::new(&subscription.members, &placement.loads, &mut places));
            for &member in &subscription.members {
                subscription_of[member as usize] = index;
            }
        }
        let subscribers = subscriptions.by_topic(space);
        let order = order(&subscribers, subscriptions, space);
        let kept = placement.owners.iter().map(|&owner| owner != NOBODY).collect();
        Self {
            placement,
            space,
            subscribers,
            order,
            subscription_of,
            levels,
            places,
            kept,
        }
    }

    /// Gives every partition that nobody has to a least loaded subscriber.
    fn place_free(&mut self) {
        let mut receivers = Receivers::default();
        for topic in std::mem::take(&mut self.order) {
            self.order.push(topic);
            let partitions = self.space.partitions(topic);
            if !self.placement.owners[partitions.clone()].contains(&NOBODY) {
                continue;
            }
            receivers.reset(self, topic);
            for partition in partitions {
                if self.placement.owners[partition] == NOBODY
                    && let Some((_, member)) = receivers.least_loaded(self)
                {
                    self.give(partition, member);
                }
            }
        }
    }

    /// Walks over the topics until none is left where a move helps.
    fn balance(&mut self, movable: Movable) {
        let order = std::mem::take(&mut self.order);
        let mut scratch = Scratch::default();
        let mut unchanged = 0;
        for &topic in order.iter().cycle().take(order.len() * PASSES_MAX) {
            unchanged = if self.balance_topic(topic, movable, &mut scratch) {
                0
            } else {
                unchanged + 1
            };
            if unchanged == order.len() {
                break;
            }
        }
        self.order = order;
    }

    /// Whether a partition of the topic moved.
    fn balance_topic(&mut self, topic: usize, movable: Movable, scratch: &mut Scratch) -> bool {
        let Some(least) = self.least_load(topic) else {
            return false;
        };
        let may_move = |kept: bool| movable == Movable::All || !kept;
        let partitions = self.space.partitions(topic);
        let uneven = partitions
            .clone()
            .any(|partition| self.load(self.placement.owners[partition]) > least + 1 && may_move(self.kept[partition]));
        if !uneven {
            return false;
        }
        let Scratch { givers, receivers } = scratch;
        let movable = partitions.filter(|&partition| may_move(self.kept[partition]));
        givers.reset(self, movable);
        receivers.reset(self, topic);
        let mut moved = false;
        while let Some((most, partition)) = givers.most_loaded(self)
            && let Some((least, member)) = receivers.least_loaded(self)
            && most > least + 1
        {
            self.take(partition);
            self.give(partition, member);
            moved = true;
        }
        moved
    }

    fn least_load(&self, topic: usize) -> Option<u32> {
        let subscriptions = self.subscribers.of(topic).iter();
        subscriptions
            .map(|&index| self.levels[index as usize].least_load(&self.placement.loads))
            .min()
    }

    fn load(&self, member: u32) -> u32 {
        self.placement.loads[member as usize]
    }

    fn give(&mut self, partition: usize, member: u32) {
        let levels = &mut self.levels[self.subscription_of[member as usize] as usize];
        levels.raise(member, self.placement.loads[member as usize], &mut self.places);
        self.placement.give(partition, member as usize);
    }

    fn take(&mut self, partition: usize) {
        let member = self.placement.owners[partition];
        let levels = &mut self.levels[self.subscription_of[member as usize] as usize];
        levels.lower(member, self.placement.loads[member as usize], &mut self.places);
        self.placement.take(partition);
        self.kept[partition] = false;
    }
}

/// Kafka's order of topics: most partitions for each subscriber first, then fewest subscribers, then id.
fn order(subscribers: &ByTopic, subscriptions: &Subscriptions<'_>, space: &Space) -> Vec<usize> {
    let members = |topic: usize| {
        let subscriptions = subscribers
            .of(topic)
            .iter()
            .map(|&index| &subscriptions.all[index as usize]);
        subscriptions
            .map(|subscription| subscription.members.len())
            .sum::<usize>()
    };
    let mut order: Vec<(usize, u128, u128)> = (0..space.topics())
        .map(|topic| (topic, space.partitions(topic).len() as u128, members(topic) as u128))
        .filter(|&(_, partitions, members)| partitions > 0 && members > 0)
        .collect();
    order.sort_unstable_by(|a, b| {
        let by_ratio = (b.1 * a.2).cmp(&(a.1 * b.2));
        by_ratio.then(a.2.cmp(&b.2)).then(a.0.cmp(&b.0))
    });
    order.into_iter().map(|(topic, ..)| topic).collect()
}

/// What is used again for each topic.
#[derive(Default)]
struct Scratch {
    givers: Givers,
    receivers: Receivers,
}

/// The subscriptions that hold a topic, by the load of their least loaded member.
///
/// A member that gives meanwhile is not looked for here: it keeps more than the least loaded one has until all are even.
#[derive(Default)]
struct Receivers(BinaryHeap<Reverse<(u32, u32)>>);

impl Receivers {
    fn reset(&mut self, balancer: &Balancer<'_>, topic: usize) {
        self.0.clear();
        let subscriptions = balancer.subscribers.of(topic).iter();
        self.0.extend(subscriptions.map(|&index| {
            let levels = &balancer.levels[index as usize];
            Reverse((levels.least_load(&balancer.placement.loads), index))
        }));
    }

    /// The least loaded subscriber and its load.
    fn least_loaded(&mut self, balancer: &Balancer<'_>) -> Option<(u32, u32)> {
        loop {
            let mut top = self.0.peek_mut()?;
            let (noted, index) = top.0;
            let levels = &balancer.levels[index as usize];
            let load = levels.least_load(&balancer.placement.loads);
            if load == noted {
                return Some((load, levels.least_loaded(&balancer.placement.loads)));
            }
            top.0.0 = load;
        }
    }
}

/// The owners of what may move of a topic, by their load.
///
/// A member that receives meanwhile is noted with too low a load, which does not matter: it has not the most until all are even.
#[derive(Default)]
struct Givers {
    /// By owner; of one owner first what it had before, so that the last is what moves at no cost.
    partitions: Vec<(u32, bool, usize)>,
    /// An owner's load when it was noted, the owner (lowest first), and the bounds of its partitions.
    owners: BinaryHeap<(u32, Reverse<u32>, usize, usize)>,
}

impl Givers {
    fn reset(&mut self, balancer: &Balancer<'_>, partitions: impl Iterator<Item = usize>) {
        self.partitions.clear();
        let owners = &balancer.placement.owners;
        self.partitions
            .extend(partitions.map(|partition| (owners[partition], !balancer.kept[partition], partition)));
        self.partitions.sort_unstable();
        self.owners.clear();
        let mut start = 0;
        for of_one in self.partitions.chunk_by(|a, b| a.0 == b.0) {
            let end = start + of_one.len();
            let owner = of_one[0].0;
            self.owners.push((balancer.load(owner), Reverse(owner), start, end));
            start = end;
        }
    }

    /// A partition of a most loaded owner, which is not offered again, and the load of that owner.
    fn most_loaded(&mut self, balancer: &Balancer<'_>) -> Option<(u32, usize)> {
        loop {
            let mut top = self.owners.peek_mut()?;
            let (noted, Reverse(owner), start, end) = *top;
            let load = balancer.load(owner);
            if start == end {
                PeekMut::pop(top);
            } else if load == noted {
                top.3 -= 1;
                return Some((load, self.partitions[end - 1].2));
            } else {
                top.0 = load;
            }
        }
    }
}
