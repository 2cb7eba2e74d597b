//! What must hold of what consumer groups are to have: an honest computer or a server assignor placed it, and once.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use convoke::coordinator::partitions::Partitions;
use convoke::coordinator::record::{ConsumerGroupRecord, TargetMemberValue};
use convoke::coordinator::request::{InstallAssignmentRequest, Text};
use uuid::Uuid;

use crate::placing::{HONEST, number_of};

#[derive(Debug, Default)]
struct Group {
    members: BTreeMap<Text, TargetMemberValue>,
    /// Those that the batch that is looked at has changed, with what they had before.
    changed: BTreeMap<Text, Option<TargetMemberValue>>,
    /// Whether the batch has a new target, and whether that was computed outside.
    installed: Option<bool>,
}

/// The durable targets of each group, and all that was ever computed honestly.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    /// By what the assignor says to the member.
    honest: BTreeMap<Bytes, Partitions>,
    groups: BTreeMap<Text, Group>,
}

impl Targets {
    /// Somebody is about to install what it computed.
    pub(crate) fn on_install(&mut self, request: &InstallAssignmentRequest) {
        let honest = request
            .members
            .iter()
            .filter(|member| member.metadata_version == HONEST);
        self.honest.extend(honest.map(|member| {
            let partitions = member.partitions.iter().copied().collect();
            (member.metadata.clone(), partitions)
        }));
    }

    /// What an assignor says to a member.
    pub(crate) fn check_word(&self, word: &Bytes) -> Result<(), String> {
        match word.is_empty() || self.honest.contains_key(word) {
            true => Ok(()),
            false => Err(format!("nobody honest said {word:?}")),
        }
    }

    pub(crate) fn batch_begins(&mut self) {
        for group in self.groups.values_mut() {
            group.changed.clear();
            group.installed = None;
        }
    }

    /// A record that became durable.
    pub(crate) fn on_record(&mut self, group_id: &Text, record: &ConsumerGroupRecord) {
        let group = self.groups.entry(group_id.clone()).or_default();
        match record {
            ConsumerGroupRecord::TargetMember { member_id, value } => {
                let before = match value {
                    Some(value) => group.members.insert(member_id.clone(), value.clone()),
                    None => group.members.remove(member_id),
                };
                group.changed.entry(member_id.clone()).or_insert(before);
            }
            ConsumerGroupRecord::Target(Some(value)) => group.installed = Some(value.assignor.is_some()),
            ConsumerGroupRecord::Metadata(None) => drop(self.groups.remove(group_id)),
            _ => {}
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let changed = |group: &Group| !group.changed.is_empty() || group.installed.is_some();
        for (group_id, group) in self.groups.iter().filter(|(_, group)| changed(group)) {
            self.check_group(group).map_err(|what| format!("{group_id}: {what}"))?;
        }
        Ok(())
    }

    fn check_group(&self, group: &Group) -> Result<(), String> {
        let mut owners = BTreeMap::new();
        let mut computations = BTreeSet::new();
        for (member_id, target) in &group.members {
            for partition in target.partitions.iter() {
                if let Some(other) = owners.insert(partition, member_id) {
                    return Err(format!("{partition:?} is to be {other}'s and {member_id}'s"));
                }
            }
            computations.extend(number_of(&target.metadata));
            if group.changed.contains_key(member_id) {
                self.check_target(member_id, target)?;
            }
        }
        match group.installed {
            Some(false) if !computations.is_empty() => Err(format!(
                "of a server assignor, and of {computations:?}: {:?}",
                group.members
            )),
            Some(true) => self.check_installed(group, computations.len()),
            _ => Ok(()),
        }
    }

    /// What a member is to have is what was computed for it, but for whole topics.
    fn check_target(&self, member_id: &Text, target: &TargetMemberValue) -> Result<(), String> {
        if target.metadata.is_empty() {
            return Ok(());
        }
        let Some(computed) = self.honest.get(&target.metadata) else {
            return Err(format!("nobody honest computed {member_id}'s {target:?}"));
        };
        let kept: BTreeSet<Uuid> = target.partitions.iter().map(|partition| partition.topic_id).collect();
        let due = computed.iter().filter(|partition| kept.contains(&partition.topic_id));
        match due.eq(target.partitions.iter()) {
            true => Ok(()),
            false => Err(format!("{member_id} is to have {target:?}, {computed:?} were computed")),
        }
    }

    /// All of it is of one computation; who is unknown to that one loses what others get, and gets nothing.
    fn check_installed(&self, group: &Group, computations: usize) -> Result<(), String> {
        if computations > 1 {
            return Err(format!("of {computations} computations: {:?}", group.members));
        }
        for (member_id, before) in &group.changed {
            let Some(target) = group.members.get(member_id).filter(|target| target.metadata.is_empty()) else {
                continue;
            };
            let before = before.as_ref().map(|before| &before.partitions);
            if !before.is_some_and(|before| target.partitions.is_subset_of(before)) {
                return Err(format!(
                    "{member_id} gets {target:?} that nobody computed for it, it had {before:?}"
                ));
            }
        }
        Ok(())
    }
}
