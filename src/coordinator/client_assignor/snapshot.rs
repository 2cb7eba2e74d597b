//! What an assignment is computed from, and whether one that came back fits it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;

use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::coordinator::record::TargetMemberValue;
use crate::coordinator::request::{InstallAssignmentRequest, InstalledMember, PreparedMember, PreparedTopic, Text};

/// A group as it was when somebody asked for it.
#[derive(Debug)]
pub(in crate::coordinator) struct Snapshot {
    pub(in crate::coordinator) epoch: i32,
    pub(in crate::coordinator) members: BTreeMap<Text, SnapshotMember>,
    /// Those that somebody is subscribed to.
    pub(in crate::coordinator) topics: BTreeMap<Uuid, SnapshotTopic>,
}

#[derive(Debug)]
pub(in crate::coordinator) struct SnapshotMember {
    pub(in crate::coordinator) instance_id: Option<Text>,
    /// Ascending.
    pub(in crate::coordinator) topics: Arc<[Uuid]>,
}

#[derive(Debug)]
pub(in crate::coordinator) struct SnapshotTopic {
    pub(in crate::coordinator) name: Text,
    pub(in crate::coordinator) partitions: i32,
}

/// How much an assignor may say to members, in bytes.
#[derive(Debug, Clone, Copy)]
pub(in crate::coordinator) struct MetadataLimits {
    pub(in crate::coordinator) member: usize,
    pub(in crate::coordinator) group: usize,
}

/// An assignment that fits, by member.
pub(in crate::coordinator) type Installed = BTreeMap<Text, TargetMemberValue>;

impl Snapshot {
    /// What is kept of what was told, until the assignment is there.
    pub(super) fn of(epoch: i32, members: &[PreparedMember], topics: &[PreparedTopic]) -> Self {
        let members = members.iter().map(|member| {
            let kept = SnapshotMember {
                instance_id: member.group_instance_id.clone(),
                topics: Arc::clone(&member.topic_ids),
            };
            (member.member_id.clone(), kept)
        });
        let topics = topics.iter().map(|topic| {
            let kept = SnapshotTopic {
                name: topic.name.clone(),
                partitions: topic.partitions,
            };
            (topic.topic_id, kept)
        });
        Self {
            epoch,
            members: members.collect(),
            topics: topics.collect(),
        }
    }

    /// The assignment, if it can be one for the group as it was.
    ///
    /// # Errors
    /// What is wrong, of the first thing that is: the epoch, a member that is none or comes twice, metadata that is too long, a
    /// topic that nobody is subscribed to, a partition that there is not, that two have, that its member is not subscribed to,
    /// or that nobody has. The last is refused since a partition that nobody reads is an outage that nobody sees.
    pub(in crate::coordinator) fn check(
        &self,
        request: InstallAssignmentRequest,
        limits: MetadataLimits,
    ) -> Result<Installed, Text> {
        self.check_epoch(request.group_epoch)?;
        if request.error != 0 {
            return Err("It has an error and members; with an error there are to be none.".into());
        }
        let mut placed = Placed::of(&self.topics);
        let mut installed = BTreeMap::new();
        let mut metadata_bytes = 0;
        for member in &request.members {
            self.check_metadata(member, limits)?;
            metadata_bytes += member.metadata.len();
            for partition in &member.partitions {
                self.check_partition(member, *partition, &mut placed)?;
            }
            if installed.insert(member.member_id.clone(), target_of(member)).is_some() {
                return Err(format!("Member {} comes twice.", member.member_id).into());
            }
        }
        if metadata_bytes > limits.group {
            let limit = limits.group;
            return Err(format!("All metadata is {metadata_bytes} bytes long, at most {limit} are allowed.").into());
        }
        match placed.first_left_out() {
            Some((topic, partition)) => {
                Err(format!("Partition {partition} of topic {} is given to nobody.", topic.name).into())
            }
            None => Ok(installed),
        }
    }

    /// Whether this is what was computed from.
    pub(super) fn check_epoch(&self, group_epoch: i32) -> Result<(), Text> {
        if group_epoch == self.epoch {
            return Ok(());
        }
        let last = self.epoch;
        Err(format!("It was computed for epoch {group_epoch}, the last snapshot was of epoch {last}.").into())
    }

    fn check_metadata(&self, member: &InstalledMember, limits: MetadataLimits) -> Result<(), Text> {
        if !self.members.contains_key(&member.member_id) {
            return Err(format!("There is no member {}.", member.member_id).into());
        }
        let (length, limit) = (member.metadata.len(), limits.member);
        if length > limit {
            let id = &member.member_id;
            return Err(
                format!("The metadata of member {id} is {length} bytes long, at most {limit} are allowed.").into(),
            );
        }
        Ok(())
    }

    fn check_partition<'a>(
        &'a self,
        member: &'a InstalledMember,
        partition: TopicPartition,
        placed: &mut Placed<'a>,
    ) -> Result<(), Text> {
        let TopicPartition { topic_id, partition } = partition;
        let member_id = &member.member_id;
        let Some((topic, owners)) = placed.topics.get_mut(&topic_id) else {
            return Err(format!("There is no topic {topic_id} that a member is subscribed to.").into());
        };
        let name = &topic.name;
        let owner = usize::try_from(partition).ok().and_then(|place| owners.get_mut(place));
        let Some(owner) = owner else {
            return Err(format!("There is no partition {partition} of topic {name}.").into());
        };
        let is_subscribed = |member: &SnapshotMember| member.topics.binary_search(&topic_id).is_ok();
        if !self.members.get(member_id).is_some_and(is_subscribed) {
            return Err(format!(
                "Member {member_id} is given partition {partition} of topic {name}, to which it is not subscribed."
            )
            .into());
        }
        match owner.replace(member_id) {
            Some(other) if other == member_id => {
                Err(format!("Partition {partition} of topic {name} is given twice to member {member_id}.").into())
            }
            Some(other) => {
                Err(format!("Partition {partition} of topic {name} is given to {other} and to {member_id}.").into())
            }
            None => Ok(()),
        }
    }

    /// The partitions of a whole assignment.
    pub(in crate::coordinator) fn partitions_of(installed: &Installed) -> BTreeSet<TopicPartition> {
        let targets = installed.values().flat_map(|target| target.partitions.iter());
        targets.copied().collect()
    }
}

/// Who is given each partition.
struct Placed<'a> {
    topics: BTreeMap<Uuid, (&'a SnapshotTopic, Vec<Option<&'a Text>>)>,
}

impl<'a> Placed<'a> {
    fn of(topics: &'a BTreeMap<Uuid, SnapshotTopic>) -> Self {
        let nobody = |topic: &SnapshotTopic| vec![None; usize::try_from(topic.partitions).unwrap_or(0)];
        Self {
            topics: topics.iter().map(|(id, topic)| (*id, (topic, nobody(topic)))).collect(),
        }
    }

    fn first_left_out(&self) -> Option<(&SnapshotTopic, usize)> {
        self.topics.values().find_map(|(topic, owners)| {
            let place = owners.iter().position(Option::is_none)?;
            Some((*topic, place))
        })
    }
}

fn target_of(member: &InstalledMember) -> TargetMemberValue {
    TargetMemberValue {
        partitions: Arc::new(member.partitions.iter().copied().collect::<Partitions>()),
        metadata_version: member.metadata_version,
        metadata: member.metadata.clone(),
    }
}

#[cfg(test)]
mod tests;
