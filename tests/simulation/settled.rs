//! What must be when nothing is wrong any more: every group is settled, and all of its partitions have an owner.

use std::collections::BTreeSet;

use convoke::coordinator::event::{Event, PassedOverReason};
use convoke::coordinator::request::{GroupView, ShardView, Text};

use crate::client::{Client, Speaker};
use crate::topics::Place;
use crate::world::World;

impl World {
    /// Why the groups are not what they should be when nothing is wrong; none if they are.
    pub(crate) fn unsettled(&mut self) -> Result<Option<String>, String> {
        let Some(view) = self.view()? else {
            return Ok(Some("the shard is not loaded".to_owned()));
        };
        let group_ids: BTreeSet<&Text> = self
            .clients
            .iter()
            .filter_map(Client::speaker)
            .map(Speaker::group_id)
            .collect();
        for group_id in group_ids {
            let Some(group) = view.groups.iter().find(|group| group.group_id == *group_id) else {
                return Ok(Some(format!("{group_id} does not exist")));
            };
            if let Some(why) = self.unsettled_group(group) {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    fn unsettled_group(&self, group: &GroupView) -> Option<String> {
        let group_id = &group.group_id;
        if &*group.state != "Stable" {
            return Some(format!("{group_id} is {}", group.state));
        }
        let (mut members, mut owned, mut wanted) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut is_led = &*group.group_type == "consumer";
        for speaker in self.clients.iter().filter_map(Client::speaker) {
            if speaker.group_id() != group_id || self.has_no_room(speaker, group) {
                continue;
            }
            if !speaker.is_settled() || speaker.epoch() != group.generation_id {
                return Some(format!("{speaker:?} is not in {}", group.generation_id));
            }
            is_led |= matches!(speaker, Speaker::Classic(consumer) if consumer.leads());
            members.insert(speaker.member_id().clone());
            wanted.extend(
                speaker
                    .wanted()
                    .into_iter()
                    .flat_map(|topic| self.picture.places(topic)),
            );
            if self.reads_by_name(speaker, group).any(|place| !owned.insert(place)) {
                return Some(format!("{group_id}: a partition has two owners"));
            }
        }
        let known: BTreeSet<Text> = group.members.iter().map(|member| member.member_id.clone()).collect();
        if known != members {
            return Some(format!("{group_id}: has {known:?}, should have {members:?}"));
        }
        let is_assigned_for_here = group
            .classic
            .as_ref()
            .is_some_and(|classic| classic.assigned_by != "leader");
        if !is_assigned_for_here && self.must_be_assigned_for(group) {
            return Some(format!("{group_id} has a leader: {group:?}"));
        }
        // A classic group whose leader was replaced, and told nothing, does not see that its topics change.
        let must_be_whole = is_led || is_assigned_for_here || self.is_of_topics_that_stay(group_id);
        (must_be_whole && owned != wanted).then(|| {
            let differ: Vec<&Place> = owned.symmetric_difference(&wanted).collect();
            format!("{group_id}: {owned:?} are owned, {wanted:?} are to be: {differ:?}")
        })
    }

    fn must_be_assigned_for(&self, group: &GroupView) -> bool {
        let has_rule = self.settings.classic_assignment(&group.group_id).is_some() && !self.plan.rules_change;
        has_rule && &*group.group_type == "classic" && group.protocol_type.as_deref() == Some("consumer")
    }

    /// What a client reads from. In a classic group topics are names: one that was created anew is read on.
    fn reads_by_name(&self, speaker: Speaker<'_>, group: &GroupView) -> impl Iterator<Item = Place> {
        let is_by_name = &*group.group_type == "classic";
        let places = speaker.reads().into_iter();
        places.map(move |(topic, creation, number)| match is_by_name {
            true => (topic, self.picture.creation(topic), number),
            false => (topic, creation, number),
        })
    }

    /// Whether a client stays outside because the group is as large as it may be.
    fn has_no_room(&self, speaker: Speaker<'_>, group: &GroupView) -> bool {
        // Whoever makes a classic group one of consumers by coming must find room in that one.
        let most = match speaker {
            Speaker::Classic(_) => self.most_members(&group.group_type),
            Speaker::Consumer(_) => self.most_members("consumer"),
        };
        speaker.found_no_room() && group.members.len() >= most
    }

    pub(crate) fn most_members(&self, group_type: &str) -> usize {
        let most = match group_type {
            "consumer" => self.settings.group_consumer_max_size,
            _ => self.settings.group_max_size,
        };
        usize::try_from(most).unwrap()
    }

    /// No group that is settled is larger than it may be. Static members that are silent in a rebalance stay in a classic group,
    /// and others have come in meanwhile.
    pub(crate) fn check_sizes(&self, view: &ShardView) -> Result<(), String> {
        let is_static = |group: &GroupView| group.members.iter().any(|member| member.group_instance_id.is_some());
        let counts = |group: &&GroupView| &*group.group_type == "consumer" || !is_static(group);
        let settled = view.groups.iter().filter(|group| &*group.state == "Stable");
        for group in settled.filter(counts) {
            let (size, most) = (group.members.len(), self.most_members(&group.group_type));
            if size > most {
                return Err(format!(
                    "{}: has {size} members, at most are to be {most}",
                    group.group_id
                ));
            }
        }
        Ok(())
    }

    /// When nothing is wrong any more, whoever computes as it should has its turn to the end.
    pub(crate) fn check_passed_over(&self, event: &Event) -> Result<(), String> {
        let Event::ComputationPassedOver { member_id, reason, .. } = event else {
            return Ok(());
        };
        let of_it = |(id, _): &(&Text, _)| *id == member_id;
        let computer = self.clients.iter().filter_map(Client::computer).find(of_it);
        let is_well = computer.is_some_and(|(_, computer)| computer.is_well());
        let is_slow = !matches!(reason, PassedOverReason::Gone | PassedOverReason::Unfit);
        match self.is_calm && is_well && is_slow {
            true => Err(format!("{member_id} is passed over by {reason:?}, and is well")),
            false => Ok(()),
        }
    }

    fn is_of_topics_that_stay(&self, group_id: &Text) -> bool {
        group_id.starts_with("group-")
    }
}
