//! Topics that change under a group that is assigned for here. Where a client leads, it looks after that itself.

use std::collections::{BTreeMap, BTreeSet};

use super::assign::Assigned;
use super::{Cause, ClassicGroup, Subscription};
use crate::coordinator::consumer_protocol::read_assignment;
use crate::coordinator::context::Context;
use crate::coordinator::event::RebalanceReason;
use crate::coordinator::request::Text;
use crate::coordinator::topics::Topics;

impl ClassicGroup {
    /// There is a new picture of the topics: a rebalance begins at once if the group's are others. A rule that was taken away meanwhile
    /// does not matter: nobody else looks until the next generation has a leader.
    pub(in crate::coordinator) fn on_topics(&mut self, cx: &mut Context<'_>) {
        if !self.is_assigned_for_here() {
            return;
        }
        let topics = self.subscribed(cx.topics);
        let is_as_assigned = match &self.assigned {
            Some(assigned) => assigned.topics == topics,
            None => self.is_assigned_wholly(&topics),
        };
        if is_as_assigned {
            self.assigned.get_or_insert(Assigned {
                assignor: None,
                topics,
                withheld: 0,
                returned: BTreeSet::new(),
                promise: None,
            });
            return;
        }
        self.prepare_rebalance(Cause::of_group(RebalanceReason::TopicsChanged), cx);
    }

    /// The subscribed topics that there are, with their numbers of partitions.
    pub(super) fn subscribed(&self, topics: &Topics) -> BTreeMap<Text, i32> {
        let Subscription::Topics(names) = &self.subscription else {
            return BTreeMap::new();
        };
        let known = names.iter().filter_map(|name| topics.by_name.get(name));
        known.map(|topic| (topic.name.clone(), topic.partitions)).collect()
    }

    /// Whether the members have these topics' partitions, all of them and no others.
    fn is_assigned_wholly(&self, topics: &BTreeMap<Text, i32>) -> bool {
        let mut assigned = BTreeSet::new();
        for member in self.members.iter() {
            let Some(assignment) = read_assignment(&member.assignment) else {
                return false;
            };
            for (topic, numbers) in assignment.partitions {
                assigned.extend(numbers.into_iter().map(|number| (topic.clone(), number)));
            }
        }
        let all = topics
            .iter()
            .flat_map(|(topic, count)| (0..*count).map(|number| (topic.clone(), number)));
        all.collect::<BTreeSet<_>>() == assigned
    }
}
