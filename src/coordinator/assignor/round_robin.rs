//! `roundrobin` of classic groups (`RoundRobinAssignor` of Kafka's clients): all partitions, topic by topic, go to the members in turn; who
//! is not subscribed to a topic is passed by.

use super::MemberSpec;
use super::placement::Placement;
use super::range;
use super::space::Space;
use super::subscriptions::Subscriptions;

pub(super) fn place(members: &[MemberSpec], subscriptions: &Subscriptions<'_>, space: &Space) -> Placement {
    let mut placement = Placement::new(members.len(), space);
    let order = range::order(members);
    let mut subscription_of = vec![0; members.len()];
    for (index, subscription) in subscriptions.all.iter().enumerate() {
        for &member in &subscription.members {
            subscription_of[member as usize] = index;
        }
    }
    let by_topic = subscriptions.by_topic(space);
    let mut turns = order.iter().map(|&member| member as usize).cycle();
    let mut holds = vec![false; subscriptions.all.len()];
    for topic in 0..space.topics() {
        let holders = by_topic.of(topic);
        holders.iter().for_each(|&index| holds[index as usize] = true);
        for partition in space.partitions(topic) {
            // A topic that has partitions here has a subscriber.
            if let Some(member) = turns.find(|&member| holds[subscription_of[member]]) {
                placement.give(partition, member);
            }
        }
        holders.iter().for_each(|&index| holds[index as usize] = false);
    }
    for (member, spec) in members.iter().enumerate() {
        if !spec.target.is_empty() {
            placement.lose(member);
        }
    }
    placement
}
