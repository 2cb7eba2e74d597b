//! ConsumerGroupPrepareAssignment and ConsumerGroupInstallAssignment: the group's state to whoever computes, and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ConsumerGroup;
use super::heartbeat::Refusal;
use super::members::Member;
use crate::coordinator::assignor::GroupSpec;
use crate::coordinator::client_assignor::{
    Computation, Installed, MetadataLimits, Snapshot, SnapshotMember, SnapshotTopic,
};
use crate::coordinator::context::Context;
use crate::coordinator::event::{Event, PassedOverReason};
use crate::coordinator::external;
use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::coordinator::record::{TargetAssignmentValue, TargetMemberValue};
use crate::coordinator::request::{
    ClientAssignor, InstallAssignmentRequest, PrepareAssignmentRequest, PrepareAssignmentResponse, PreparedMember,
    PreparedTopic, Response, Text,
};
use crate::coordinator::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

impl ConsumerGroup {
    pub(in crate::coordinator) fn prepare_assignment(
        &mut self,
        request: &PrepareAssignmentRequest,
        cx: &mut Context<'_>,
    ) -> Response {
        Response::PrepareAssignment(match self.prepare(request, cx) {
            Ok(prepared) => prepared,
            Err(refusal) => PrepareAssignmentResponse::refusal(refusal.error, refusal.message),
        })
    }

    fn prepare(
        &mut self,
        request: &PrepareAssignmentRequest,
        cx: &mut Context<'_>,
    ) -> Result<PrepareAssignmentResponse, Refusal> {
        let assignor = self.assignor_of_caller(&request.member_id, request.member_epoch, cx)?;
        if !self.can_run(&request.member_id, &assignor, cx) {
            // Somebody came since with metadata that it cannot read.
            self.pass_over(PassedOverReason::Unfit, cx);
            return Err(not_chosen());
        }
        let spec = self.specification(cx);
        let (snapshot, topics) = self.snapshot(&spec, cx);
        let members = self.members.iter().zip(spec.members);
        let members = members.map(|(member, spec)| prepared_member(member, &assignor, spec.topics, spec.target));
        let prepared = PrepareAssignmentResponse {
            error: ErrorCode::NONE,
            error_message: None,
            group_epoch: self.epoch,
            members: members.collect(),
            topics,
            assignor_name: assignor.clone(),
        };
        let now_ms = cx.now.monotonic_ms;
        if let Some(computation) = &mut self.computation {
            computation.take_snapshot(snapshot);
            cx.arm(&self.id, GroupTimer::Computation, computation.left_ms(now_ms));
        }
        Ok(prepared)
    }

    fn snapshot(&self, spec: &GroupSpec, cx: &Context<'_>) -> (Snapshot, Vec<PreparedTopic>) {
        let members = spec.members.iter().map(|member| {
            let snapshot = SnapshotMember {
                instance_id: member.instance_id.clone(),
                topics: member.topics.clone(),
            };
            (member.member_id.clone(), snapshot)
        });
        let (mut known, mut told) = (BTreeMap::new(), Vec::with_capacity(spec.topics.len()));
        for topic_id in spec.topics.keys() {
            let Some(topic) = cx.topics.by_id(topic_id) else {
                continue;
            };
            let (name, partitions) = (topic.name.clone(), topic.partitions);
            told.push(PreparedTopic {
                topic_id: *topic_id,
                name: name.clone(),
                partitions,
            });
            known.insert(*topic_id, SnapshotTopic { name, partitions });
        }
        let snapshot = Snapshot {
            epoch: self.epoch,
            members: members.collect(),
            topics: known,
        };
        (snapshot, told)
    }

    pub(in crate::coordinator) fn install_assignment(
        &mut self,
        request: InstallAssignmentRequest,
        cx: &mut Context<'_>,
    ) -> Response {
        let (error, error_message) = match self.install(request, cx) {
            Ok(()) => (ErrorCode::NONE, None),
            Err(refusal) => (refusal.error, refusal.message),
        };
        Response::InstallAssignment { error, error_message }
    }

    fn install(&mut self, request: InstallAssignmentRequest, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let assignor = self.assignor_of_caller(&request.member_id, request.member_epoch, cx)?;
        let member_id = request.member_id.clone();
        if request.error != 0 && request.members.is_empty() {
            if let Some(computation) = &mut self.computation {
                computation.fail(request.error);
            }
            self.pass_over(PassedOverReason::Failed, cx);
            return Ok(());
        }
        let limits = MetadataLimits {
            member: cx.settings.assignor_metadata_max_bytes,
            group: cx.settings.assignor_metadata_group_max_bytes,
        };
        let given = self.computation.as_ref().and_then(Computation::given);
        let checked = match given.and_then(|given| given.snapshot.as_ref()) {
            Some(snapshot) => snapshot.check(request, limits),
            None => Err("Nobody asked what to compute it from: ConsumerGroupPrepareAssignment comes first.".into()),
        };
        match checked {
            Ok(installed) => {
                self.take_installed(assignor, member_id, installed, cx);
                Ok(())
            }
            Err(reason) => Err(self.refuse_assignment(assignor, member_id, reason, cx)),
        }
    }

    fn refuse_assignment(&mut self, assignor: Text, member_id: Text, reason: Text, cx: &mut Context<'_>) -> Refusal {
        cx.event(Event::ComputationRefused {
            group_id: self.id.clone(),
            assignor,
            member_id,
            reason: reason.clone(),
        });
        if self.computation.as_mut().is_some_and(Computation::refuse) {
            self.pass_over(PassedOverReason::Refused, cx);
        }
        Refusal {
            error: ErrorCode::INVALID_ASSIGNMENT,
            message: Some(reason),
        }
    }

    /// What is to be computed by whoever asks; nobody else is heard.
    fn assignor_of_caller(&self, member_id: &str, epoch: i32, cx: &Context<'_>) -> Result<Text, Refusal> {
        let known_epoch = match self.members.get(member_id) {
            Some(member) => member.current.member_epoch,
            None if cx.externals.contains(&self.id, member_id) => external::EPOCH,
            None => return Err(ErrorCode::UNKNOWN_MEMBER_ID.into()),
        };
        if epoch != known_epoch {
            return Err(ErrorCode::STALE_MEMBER_EPOCH.into());
        }
        let computation = self.computation.as_ref();
        let theirs = computation.filter(|computation| computation.is_given_to(member_id));
        theirs.map_or_else(|| Err(not_chosen()), |computation| Ok(computation.assignor.clone()))
    }

    /// Makes a target of what was computed, as far as it still holds: the group may have moved on since, and is to have another
    /// then. One that waited until nothing changes would never come to a group in which something always does.
    fn take_installed(&mut self, assignor: Text, member_id: Text, mut installed: Installed, cx: &mut Context<'_>) {
        let now_ms = cx.now.monotonic_ms;
        let Some(computation) = self.end_computation(cx) else {
            return;
        };
        let took_ms = now_ms.saturating_sub(computation.wanted_ms);
        let Some(snapshot) = computation.into_snapshot() else {
            return;
        };
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
        self.pending.computed(now_ms);
        cx.event(Event::ComputationInstalled {
            group_id: self.id.clone(),
            group_epoch: snapshot.epoch,
            assignor,
            member_id,
            took_ms,
            members: snapshot.members.len(),
            partitions_moved,
        });
        self.answer_joins(|member_id| known.contains(member_id), cx);
        self.tell_settled(cx);
        self.plan_target(cx);
    }

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

fn not_chosen() -> Refusal {
    Refusal {
        error: ErrorCode::UNKNOWN_MEMBER_ID,
        message: Some("The assignment is not to be computed by this member.".into()),
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
