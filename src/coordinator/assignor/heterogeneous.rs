//! `uniform` where members' subscriptions differ (Kafka's `UniformHeterogeneousAssignmentBuilder`).
//!
//! Members keep what they may. What is free goes to the least loaded subscriber, the topics first that leave the least choice. Then
//! partitions move, topic by topic, from the most loaded member that has one to the least loaded subscriber, as long as that
//! makes their loads more equal. It ends where Kafka's ends: no move of one partition would make two loads more equal.
//!
//! So that members keep most of what they have, partitions that are placed anew are moved about before those that members would
//! keep; of the latter the most loaded members give first; and what moved goes back where that leaves loads as even as they are.

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

/// So much more than another a member has at least, if a move from it to that one makes their loads more equal.
const SURPLUS_MIN: u32 = 2;

pub(super) fn place(members: &[MemberSpec], subscriptions: &Subscriptions<'_>, space: &Space) -> Placement {
    let mut placement = Placement::new(members.len(), space);
    keep(&mut placement, members, subscriptions, space);
    let mut balancer = Balancer::new(placement, subscriptions, space);
    balancer.place_free();
    balancer.balance(Movable::Anew);
    balancer.take_from_the_top();
    balancer.balance(Movable::All);
    for _ in 0..PASSES_MAX {
        if !balancer.give_back() {
            break;
        }
        balancer.balance(Movable::All);
    }
    balancer.placement
}

/// Every member keeps what it has, as long as that exists and the member still subscribes to its topic.
fn keep(placement: &mut Placement, members: &[MemberSpec], subscriptions: &Subscriptions<'_>, space: &Space) {
    const NONE: usize = usize::MAX;
    // The last subscription met that holds each topic.
    let mut held_by = vec![NONE; space.topics()];
    for (index, subscription) in subscriptions.all.iter().enumerate() {
        for &topic in &subscription.located {
            held_by[topic as usize] = index;
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
    /// For each subscription, the load of its least loaded member.
    least_loads: Vec<u32>,
    /// The place of each member in the levels of its subscription.
    places: Vec<u32>,
    /// Who could have kept each partition.
    before: Vec<u32>,
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
        let least_loads = levels
            .iter()
            .map(|levels| levels.least_load(&placement.loads))
            .collect();
        let subscribers = subscriptions.by_topic(space);
        let order = order(&subscribers, subscriptions, space);
        let before = placement.owners.clone();
        Self {
            placement,
            space,
            subscribers,
            order,
            subscription_of,
            levels,
            least_loads,
            places,
            before,
        }
    }

    /// Gives every partition that nobody has to a least loaded subscriber.
    fn place_free(&mut self) {
        let order = std::mem::take(&mut self.order);
        let mut receivers = Receivers::default();
        for &topic in &order {
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
        self.order = order;
    }

    /// Walks over the topics until none is left where a move helps.
    fn balance(&mut self, movable: Movable) {
        let order = std::mem::take(&mut self.order);
        let mut scratch = Scratch::default();
        let mut unchanged = 0;
        for &topic in order.iter().cycle().take(order.len() * PASSES_MAX) {
            let moved = self.balance_topic(topic, movable, 0, &mut scratch);
            unchanged = if moved { 0 } else { unchanged + 1 };
            if unchanged == order.len() {
                break;
            }
        }
        self.order = order;
    }

    /// Walks over the topics with an ever lower bound to the load of those who give. Else the first topic's owners would give what is
    /// asked for, whatever their load, and would have to be given to from those that more is to be taken from anyway.
    fn take_from_the_top(&mut self) {
        let order = std::mem::take(&mut self.order);
        let most = order
            .iter()
            .filter_map(|&topic| self.most_loaded_giver(topic, Movable::All))
            .max();
        let mut scratch = Scratch::default();
        // Small steps at the top, where most loads are, and few in all, however great the greatest load is.
        let steps = (0..u32::BITS).map(|step| (1 << step) - 1);
        let bounds = steps
            .map_while(|step| most?.checked_sub(step))
            .take_while(|&bound| bound >= SURPLUS_MIN);
        for bound in bounds {
            for &topic in &order {
                self.balance_topic(topic, Movable::All, bound, &mut scratch);
            }
        }
        self.order = order;
    }

    /// Moves partitions back to who could have kept them, where that leaves loads as even as they are. Whether any moved.
    fn give_back(&mut self) -> bool {
        let mut moved = false;
        for partition in 0..self.before.len() {
            let (before, now) = (self.before[partition], self.placement.owners[partition]);
            if before != NOBODY && before != now && self.load(before) < self.load(now) {
                self.take(partition);
                self.give(partition, before);
                moved = true;
            }
        }
        moved
    }

    /// Evens the loads of a topic's subscribers, taking from those with at least `bound` partitions. Whether a partition moved.
    fn balance_topic(&mut self, topic: usize, movable: Movable, bound: u32, scratch: &mut Scratch) -> bool {
        let most = self.most_loaded_giver(topic, movable);
        if most.is_none_or(|most| most < bound) {
            return false;
        }
        let Scratch { givers, receivers } = scratch;
        givers.reset(self, topic, movable);
        receivers.reset(self, topic);
        let mut moved = false;
        while let Some((most, partition)) = givers.most_loaded(self)
            && let Some((least, member)) = receivers.least_loaded(self)
            && most >= bound.max(least + SURPLUS_MIN)
        {
            self.take(partition);
            self.give(partition, member);
            moved = true;
        }
        moved
    }

    /// The load of the most loaded owner of the topic that can give to a subscriber.
    fn most_loaded_giver(&self, topic: usize, movable: Movable) -> Option<u32> {
        let least = self.least_load(topic)?;
        let loads = self
            .movable(topic, movable)
            .map(|partition| self.load(self.placement.owners[partition]));
        loads.max().filter(|&most| most >= least + SURPLUS_MIN)
    }

    fn movable(&self, topic: usize, movable: Movable) -> impl Iterator<Item = usize> {
        let partitions = self.space.partitions(topic);
        partitions.filter(move |&partition| movable == Movable::All || !self.is_kept(partition))
    }

    fn is_kept(&self, partition: usize) -> bool {
        self.before[partition] == self.placement.owners[partition]
    }

    fn least_load(&self, topic: usize) -> Option<u32> {
        let subscriptions = self.subscribers.of(topic).iter();
        subscriptions.map(|&index| self.least_loads[index as usize]).min()
    }

    fn load(&self, member: u32) -> u32 {
        self.placement.loads[member as usize]
    }

    fn give(&mut self, partition: usize, member: u32) {
        let subscription = self.subscription_of[member as usize] as usize;
        let levels = &mut self.levels[subscription];
        levels.raise(member, self.placement.loads[member as usize], &mut self.places);
        self.placement.give(partition, member as usize);
        self.least_loads[subscription] = levels.least_load(&self.placement.loads);
    }

    fn take(&mut self, partition: usize) {
        let member = self.placement.owners[partition];
        let subscription = self.subscription_of[member as usize] as usize;
        let levels = &mut self.levels[subscription];
        levels.lower(member, self.placement.loads[member as usize], &mut self.places);
        self.placement.take(partition);
        self.least_loads[subscription] = levels.least_load(&self.placement.loads);
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
        let loads = &balancer.least_loads;
        self.0
            .extend(subscriptions.map(|&index| Reverse((loads[index as usize], index))));
    }

    /// The least loaded subscriber and its load.
    fn least_loaded(&mut self, balancer: &Balancer<'_>) -> Option<(u32, u32)> {
        loop {
            let mut top = self.0.peek_mut()?;
            let (noted, index) = top.0;
            let load = balancer.least_loads[index as usize];
            if load == noted {
                let levels = &balancer.levels[index as usize];
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
    fn reset(&mut self, balancer: &Balancer<'_>, topic: usize, movable: Movable) {
        self.partitions.clear();
        let partitions = balancer.movable(topic, movable);
        self.partitions.extend(partitions.map(|partition| {
            (
                balancer.placement.owners[partition],
                !balancer.is_kept(partition),
                partition,
            )
        }));
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
