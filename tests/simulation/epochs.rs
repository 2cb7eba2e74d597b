//! What must hold of consumer groups at any time: their epochs, and one owner for each partition.

use std::collections::{BTreeMap, BTreeSet};

use convoke::coordinator::event::Event;
use convoke::coordinator::partitions::TopicPartition;
use convoke::coordinator::record::ConsumerGroupRecord;
use convoke::coordinator::request::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, ShardView, Text};

use crate::client::Role;
use crate::world::World;

#[derive(Debug, Default)]
struct Durable {
    epoch: i32,
    members: BTreeMap<Text, Held>,
}

#[derive(Debug)]
struct Held {
    epoch: i32,
    partitions: Vec<TopicPartition>,
}

/// The durable epochs and holders of each consumer group, and who was taken out of one and may not know it yet.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    groups: BTreeMap<Text, Durable>,
    removed: BTreeSet<Text>,
}

impl Epochs {
    /// A record that became durable.
    pub(crate) fn on_record(&mut self, group_id: &Text, record: &ConsumerGroupRecord) -> Result<(), String> {
        let group = self.groups.entry(group_id.clone()).or_default();
        match record {
            ConsumerGroupRecord::Metadata(Some(value)) => {
                if value.epoch < group.epoch {
                    return Err(format!("{group_id}: epoch {} became {}", group.epoch, value.epoch));
                }
                group.epoch = value.epoch;
            }
            ConsumerGroupRecord::Metadata(None) => {
                self.groups.remove(group_id);
            }
            ConsumerGroupRecord::Target(Some(value)) if value.epoch > group.epoch => {
                return Err(format!("{group_id}: a target of {} in {}", value.epoch, group.epoch));
            }
            ConsumerGroupRecord::CurrentAssignment { member_id, value: None } => {
                group.members.remove(member_id);
            }
            ConsumerGroupRecord::CurrentAssignment {
                member_id,
                value: Some(value),
            } => {
                if value.member_epoch > group.epoch {
                    let (epoch, passed) = (group.epoch, value.member_epoch);
                    return Err(format!(
                        "{group_id}: {member_id}'s epoch {passed} passes the group's {epoch}"
                    ));
                }
                let held = [&value.assigned, &value.pending_revocation];
                let held = Held {
                    epoch: value.member_epoch,
                    partitions: held.iter().flat_map(|held| held.partitions().iter().copied()).collect(),
                };
                let before = group.members.insert(member_id.clone(), held);
                // A static member that is away has -2.
                if before.is_some_and(|before| value.member_epoch >= 0 && before.epoch > value.member_epoch) {
                    return Err(format!(
                        "{group_id}: {member_id}'s epoch goes back to {}",
                        value.member_epoch
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What is durable together gives each partition to one member.
    pub(crate) fn check_holders(&self) -> Result<(), String> {
        for (group_id, group) in &self.groups {
            let mut holders = BTreeMap::new();
            for (member_id, held) in &group.members {
                for partition in &held.partitions {
                    if let Some(other) = holders.insert(partition, member_id) {
                        return Err(format!("{group_id}: {partition:?} is held by {other} and {member_id}"));
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn on_event(&mut self, event: &Event) {
        if let Event::ConsumerMemberRemoved { member_id, .. } = event {
            self.removed.insert(member_id.clone());
        }
    }

    /// A member that is answered is one again.
    pub(crate) fn on_heartbeat(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
        response: &ConsumerGroupHeartbeatResponse,
    ) -> Result<(), String> {
        if !response.error.is_none() || request.member_epoch < 0 {
            return Ok(());
        }
        self.removed.remove(&request.member_id);
        let durable = self.groups.get(&request.group_id).map_or(0, |group| group.epoch);
        if response.member_epoch > durable {
            let (member_id, told) = (&request.member_id, response.member_epoch);
            return Err(format!(
                "{member_id}: epoch {told} told before it is durable, {durable} is durable"
            ));
        }
        Ok(())
    }
}

impl World {
    /// No two members read from one partition, as they see it, except one that was taken out and does not know it yet.
    pub(crate) fn check_readers(&self) -> Result<(), String> {
        let mut readers = BTreeMap::new();
        for client in &self.clients {
            let Role::Member(member) = &client.role else { continue };
            if self.checker.epochs.removed.contains(&member.member_id) {
                continue;
            }
            for partition in member.reads() {
                if let Some(other) = readers.insert((&member.group_id, partition), &member.member_id) {
                    let group_id = &member.group_id;
                    return Err(format!(
                        "{group_id}: {partition:?} has two owners: {other} and {}",
                        member.member_id
                    ));
                }
            }
        }
        Ok(())
    }

    /// As `unsettled`, of the consumer groups.
    pub(crate) fn unsettled_consumer_groups(&self, view: &ShardView) -> Option<String> {
        for index in 0..self.plan.consumer_groups.len() {
            let group_id: Text = format!("consumers-{index}").into();
            let Some(group) = view.groups.iter().find(|group| group.group_id == group_id) else {
                return Some(format!("{group_id} does not exist"));
            };
            if &*group.state != "Stable" {
                return Some(format!("{group_id} is {}", group.state));
            }
            let known = group.members.iter().map(|member| member.member_id.clone()).collect();
            if let Some(why) = self.unsettled_consumer_group(&group_id, group.generation_id, &known) {
                return Some(why);
            }
        }
        None
    }

    /// Why a consumer group is not what it should be when nothing is wrong; none if it is.
    fn unsettled_consumer_group(&self, group_id: &Text, epoch: i32, known: &BTreeSet<Text>) -> Option<String> {
        let (mut members, mut owned, mut wanted) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for client in &self.clients {
            let Role::Member(member) = &client.role else { continue };
            if member.group_id != *group_id {
                continue;
            }
            if !member.is_settled() || member.epoch != epoch {
                return Some(format!("{member:?} is not in {epoch}"));
            }
            members.insert(member.member_id.clone());
            for topic in member.wanted() {
                wanted.extend(self.picture.partitions(topic));
            }
            if member.owned.iter().any(|partition| !owned.insert(*partition)) {
                return Some(format!("{group_id}: a partition has two owners"));
            }
        }
        if *known != members {
            return Some(format!("{group_id}: has {known:?}, should have {members:?}"));
        }
        (owned != wanted).then(|| format!("{group_id}: {owned:?} are owned, {wanted:?} are to be"))
    }
}
