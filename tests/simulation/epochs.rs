//! What must hold of consumer groups at any time, whatever their members speak: their epochs, and one owner for each partition.

use std::collections::BTreeMap;

use convoke::coordinator::event::{EpochReason, Event};
use convoke::coordinator::partitions::TopicPartition;
use convoke::coordinator::record::{ConsumerGroupRecord, MemberState};
use convoke::coordinator::request::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, Text};

use crate::client::{Client, Speaker};
use crate::world::World;

#[derive(Debug, Default)]
struct Durable {
    epoch: i32,
    members: BTreeMap<Text, Held>,
}

#[derive(Debug)]
struct Held {
    epoch: i32,
    state: MemberState,
    partitions: Vec<TopicPartition>,
}

/// The durable epochs and holders of each consumer group, and who was taken out of one and may not know it yet.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    groups: BTreeMap<Text, Durable>,
    /// The epochs of groups that ended in the batch that is looked at.
    ended: BTreeMap<Text, i32>,
    /// By the time when it was.
    removed: BTreeMap<Text, u64>,
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
                if let Some(group) = self.groups.remove(group_id) {
                    self.ended.insert(group_id.clone(), group.epoch);
                }
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
                    state: value.state,
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

    pub(crate) fn on_event(&mut self, now_ms: u64, event: &Event) -> Result<(), String> {
        match event {
            Event::MemberRemoved { member_id, .. } => drop(self.removed.insert(member_id.clone(), now_ms)),
            Event::ConsumerMemberRemoved {
                group_id,
                member_id,
                reason,
                ..
            } => {
                self.removed.insert(member_id.clone(), now_ms);
                if *reason == EpochReason::RebalanceTimedOut {
                    return self.check_late(group_id, member_id);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Nobody is taken out for being slow but who has partitions to give up: not for what it has to compute.
    fn check_late(&self, group_id: &Text, member_id: &Text) -> Result<(), String> {
        let held = self.groups.get(group_id).and_then(|group| group.members.get(member_id));
        match held.map(|held| held.state) {
            Some(MemberState::UnrevokedPartitions) => Ok(()),
            state => Err(format!(
                "{group_id}: {member_id} is taken out as too slow, and is {state:?}"
            )),
        }
    }

    /// A member that is let in is one again, unless it asked before it was taken out and the answer had to wait.
    pub(crate) fn let_in(&mut self, member_id: &Text, asked_ms: u64) {
        if self
            .removed
            .get(member_id)
            .is_some_and(|removed_ms| *removed_ms < asked_ms)
        {
            self.removed.remove(member_id);
        }
    }

    pub(crate) fn is_removed(&self, member_id: &Text) -> bool {
        self.removed.contains_key(member_id)
    }

    /// The epoch of a group that is one of consumers.
    pub(crate) fn of(&self, group_id: &Text) -> Option<i32> {
        self.groups.get(group_id).map(|group| group.epoch)
    }

    /// The epoch of a group that ended since this was asked last.
    pub(crate) fn take_ended(&mut self, group_id: &Text) -> Option<i32> {
        self.ended.remove(group_id)
    }

    pub(crate) fn batch_begins(&mut self) {
        self.ended.clear();
    }

    /// A member that is answered is one again.
    pub(crate) fn on_heartbeat(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
        response: &ConsumerGroupHeartbeatResponse,
        asked_ms: u64,
    ) -> Result<(), String> {
        if !response.error.is_none() || request.member_epoch < 0 {
            return Ok(());
        }
        self.let_in(&request.member_id, asked_ms);
        // A group that became a classic one meanwhile has the epoch as its generation.
        let Some(durable) = self.of(&request.group_id) else {
            return Ok(());
        };
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
    /// No two members read from one partition, as they see it.
    pub(crate) fn check_readers(&self) -> Result<(), String> {
        let mut readers = BTreeMap::new();
        for speaker in self.clients.iter().filter_map(Client::speaker) {
            let (group_id, member_id) = (speaker.group_id(), speaker.member_id());
            if !self.reads_alone(speaker) {
                continue;
            }
            for place in speaker.reads() {
                // Who knows a topic by its name reads what is called so now.
                let is_of_old = self.picture.creation(place.0) != place.1;
                if is_of_old && matches!(speaker, Speaker::Classic(_)) {
                    continue;
                }
                if let Some(other) = readers.insert((group_id, place), member_id) {
                    return Err(format!("{group_id}: {place:?} has two owners: {other} and {member_id}"));
                }
            }
        }
        Ok(())
    }

    /// Whether nobody else may read what this one does: it is in the group, as far as it knows and the group. In a classic group members
    /// may also have missed a generation, and there the checker looks at each generation; but where the coordinator assigns for
    /// cooperative members, it waits a generation for whoever is silent.
    fn reads_alone(&self, speaker: Speaker<'_>) -> bool {
        let group_id = speaker.group_id();
        if self.checker.epochs.is_removed(speaker.member_id()) {
            return false;
        }
        if self.checker.epochs.of(group_id).is_some() {
            return true;
        }
        let Speaker::Classic(consumer) = speaker else {
            return false;
        };
        !self.plan.rules_change
            && self.settings.classic_assignment(group_id).is_some()
            && consumer.is_of_cooperative_group()
            && consumer.generation_id + 1 >= self.checker.generation(group_id)
    }
}
