//! What whoever computes a target is told of the group, and what becomes of the target.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ConsumerGroup;
use super::members::Member;
use crate::coordinator::client_assignor::{Deliverable, Delivery, Prepared, Snapshot, SnapshotMember};
use crate::coordinator::context::Context;
use crate::coordinator::event::Event;
use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::coordinator::record::{TargetAssignmentValue, TargetMemberValue};
use crate::coordinator::request::{ClientAssignor, PreparedMember, PreparedTopic, Text};

impl Deliverable for ConsumerGroup {
    fn prepared(&self, assignor: &str, cx: &Context<'_>) -> Prepared {
        let spec = self.specification(cx);
        let topics = spec.topics.keys().filter_map(|topic_id| {
            let topic = cx.topics.by_id(topic_id)?;
            Some(PreparedTopic {
                topic_id: *topic_id,
                name: topic.name.clone(),
                partitions: topic.partitions,
            })
        });
        let topics = topics.collect();
        let members = self.members.iter().zip(spec.members);
        let members = members.map(|(member, spec)| prepared_member(member, assignor, spec.topics, spec.target));
        Prepared {
            members: members.collect(),
            topics,
        }
    }

    /// Makes a target of what was computed, as far as it still holds: the group may have moved on since, and is to have another
    /// then. One that waited until nothing changes would never come to a group in which something always does.
    fn take_delivery(&mut self, delivery: Delivery, cx: &mut Context<'_>) {
        let Delivery {
            assignor,
            member_id,
            mut installed,
            snapshot,
            took_ms,
        } = delivery;
        let placed = Snapshot::partitions_of(&installed);
        let mut targets = Vec::with_capacity(self.members.len());
        let mut known = BTreeSet::new();
        for (old_id, old) in &snapshot.members {
            let Some(member) = self.now(old_id, old) else {
                continue;
            };
            known.insert(member.id.clone());
            let target = installed.remove(old_id).unwrap_or_default();
            targets.push((
                member.id.clone(),
                self.still_holding(member, target, snapshot.epoch, cx),
            ));
        }
        for member in self.members.iter().filter(|member| !known.contains(&member.id)) {
            targets.extend(self.without_placed(member, &placed));
        }
        let partitions_moved = self.write_targets(targets, cx);
        let value = TargetAssignmentValue {
            assignor: Some(assignor.clone()),
            ..TargetAssignmentValue::of_server(snapshot.epoch, cx.now.wall_ms)
        };
        self.write_target(value, cx);
        self.pending.computed(cx.now.monotonic_ms);
        cx.event(Event::ComputationInstalled {
            group_id: self.id.clone(),
            group_epoch: snapshot.epoch,
            assignor,
            member_id,
            took_ms,
            members: snapshot.members.len(),
            partitions_moved,
            partitions_withheld: None,
        });
        self.answer_joins(|member_id| known.contains(member_id), cx);
        self.tell_settled(cx);
        self.plan_target(cx);
    }
}

impl ConsumerGroup {
    /// The member as it is now: a static one may have come back with another id.
    fn now(&self, old_id: &Text, old: &SnapshotMember) -> Option<&Member> {
        self.members.get(old_id).or_else(|| {
            let instance_id = old.instance_id.as_ref()?;
            self.members.get(self.members.static_member(instance_id)?)
        })
    }

    /// A target without the topics that its member is no longer subscribed to.
    fn still_holding(
        &self,
        member: &Member,
        target: TargetMemberValue,
        epoch: i32,
        cx: &Context<'_>,
    ) -> TargetMemberValue {
        if epoch == self.epoch {
            return target;
        }
        let subscribed = self.topic_ids(&member.said, cx.topics);
        let holds = |partition: &&TopicPartition| subscribed.binary_search(&partition.topic_id).is_ok();
        let partitions: Partitions = target.partitions.iter().filter(holds).copied().collect();
        match partitions.len() == target.partitions.len() {
            true => target,
            false => TargetMemberValue {
                partitions: Arc::new(partitions),
                ..target
            },
        }
    }

    /// The target of a member that the computation does not know, without what others are given.
    fn without_placed(&self, member: &Member, placed: &BTreeSet<TopicPartition>) -> Option<(Text, TargetMemberValue)> {
        let before = self.target(&member.id)?;
        if !before.iter().any(|partition| placed.contains(partition)) {
            return None;
        }
        let rest = before.iter().filter(|partition| !placed.contains(partition));
        let partitions: Partitions = rest.copied().collect();
        Some((member.id.clone(), Arc::new(partitions).into()))
    }
}

fn prepared_member(
    member: &Member,
    assignor: &str,
    topic_ids: Arc<[uuid::Uuid]>,
    target: Arc<Partitions>,
) -> PreparedMember {
    let said = &member.said;
    let listed = ClientAssignor::find(&said.client_assignors, assignor);
    PreparedMember {
        member_id: member.id.clone(),
        member_epoch: member.current.member_epoch,
        group_instance_id: said.instance_id.clone(),
        rack_id: said.rack_id.clone(),
        topic_ids,
        reason: listed.map_or(0, |listed| listed.reason),
        metadata_version: listed.map_or(0, |listed| listed.metadata_version),
        metadata: listed.map(|listed| listed.metadata.clone()).unwrap_or_default(),
        target,
    }
}
