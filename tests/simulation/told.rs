//! What must hold of the assignments of classic groups: they are told as they are durable, those of an external assignor are what it
//! computed, and nobody waits for one longer than members can.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use convoke::coordinator::event::Event;
use convoke::coordinator::partitions::TopicPartition;
use convoke::coordinator::record::GroupMetadataValue;
use convoke::coordinator::request::{GroupView, InstallAssignmentRequest, SyncGroupRequest, Text};

use crate::placing::NO_TOPIC;
use crate::plan::TOPICS;
use crate::protocol::{COOPERATIVE, Partition, decode};
use crate::topics::place_of;
use crate::world::World;

/// The longest that members wait for an assignment, whatever their timeouts.
const LONGEST_WAIT_MS: u64 = 20_000;
/// The coordinator may be stepped so much later than it is due.
const GRACE_MS: u64 = 1_000;
/// A store that takes longer holds members' answers back, so that nothing is held against them.
const SLOW_STORE_MS: u64 = 2_000;

type Shares = BTreeMap<Text, BTreeSet<Partition>>;

#[derive(Debug, Default)]
pub(crate) struct Told {
    /// By group and generation, what each member has by a durable record.
    durable: BTreeMap<(Text, i32), BTreeMap<Text, Bytes>>,
    /// What was asked to be installed last.
    asked: BTreeMap<Text, Shares>,
    /// What was installed, by group and generation, until that is durable.
    installed: BTreeMap<(Text, i32), Shares>,
    /// The generation that each group had computed outside last.
    wanted: BTreeMap<Text, i32>,
    /// Since when a group waits for it.
    waiting_since_ms: BTreeMap<Text, u64>,
    /// When the coordinator last had reason to let all waits begin anew.
    renewed_ms: u64,
}

impl Told {
    pub(crate) fn on_install(&mut self, request: &InstallAssignmentRequest) {
        let share = |partitions: &[TopicPartition]| partitions.iter().filter_map(place).collect();
        let members = request.members.iter();
        let shares = members.map(|member| (member.member_id.clone(), share(&member.partitions)));
        self.asked.insert(request.group_id.clone(), shares.collect());
    }

    pub(crate) fn on_event(&mut self, now_ms: u64, event: &Event) {
        match event {
            Event::ComputationWanted {
                group_id, group_epoch, ..
            } => {
                self.wanted.insert(group_id.clone(), *group_epoch);
                self.waiting_since_ms.insert(group_id.clone(), now_ms);
            }
            Event::ComputationInstalled {
                group_id,
                group_epoch,
                // Of a classic group.
                partitions_withheld: Some(_),
                ..
            } => {
                if let Some(shares) = self.asked.remove(group_id) {
                    self.installed.insert((group_id.clone(), *group_epoch), shares);
                }
            }
            Event::SessionsRenewed { .. } => self.renewed_ms = now_ms,
            _ => {}
        }
    }

    /// The generation's assignment became durable.
    pub(crate) fn on_record(&mut self, group_id: &Text, value: &GroupMetadataValue) -> Result<(), String> {
        let of = (group_id.clone(), value.generation);
        if let Some(shares) = self.installed.remove(&of) {
            let nothing = BTreeSet::new();
            let is_cooperative = value.protocol.as_deref() == Some(COOPERATIVE);
            for member in &value.members {
                let share = shares.get(&member.member_id).unwrap_or(&nothing);
                let given = decode(&member.assignment);
                // What moves between cooperative members is withheld at first.
                if !given.is_subset(share) || (!is_cooperative && given != *share) {
                    return Err(format!("{of:?}: {member:?} has {given:?}, {share:?} were computed"));
                }
            }
        }
        let durable = self.durable.entry(of).or_default();
        let members = value.members.iter();
        durable.extend(members.map(|member| (member.member_id.clone(), member.assignment.clone())));
        Ok(())
    }

    /// What was not durable is forgotten.
    pub(crate) fn loaded(&mut self) {
        self.installed.clear();
        self.wanted.clear();
    }

    pub(crate) fn group_ended(&mut self, group_id: &Text) {
        self.durable.retain(|(of, _), _| of != group_id);
    }

    /// Whether members may be told of the generation before it is durable, as they are where one of them leads.
    pub(crate) fn is_computed_outside(&self, group_id: &Text, generation_id: i32) -> bool {
        self.wanted.get(group_id) == Some(&generation_id)
    }

    pub(crate) fn check_sync(&self, request: &SyncGroupRequest, assignment: &Bytes) -> Result<(), String> {
        let (group_id, generation_id) = (&request.group_id, request.generation_id);
        let durable = self.durable.get(&(group_id.clone(), generation_id));
        let durable = durable.and_then(|members| members.get(&request.member_id));
        match durable {
            Some(durable) if durable == assignment => Ok(()),
            durable => Err(format!(
                "{group_id}: {} is told {assignment:?} of {generation_id}, {durable:?} is durable",
                request.member_id
            )),
        }
    }
}

/// The partition by its topic's index, if there was such a topic.
fn place(partition: &TopicPartition) -> Option<Partition> {
    if partition.topic_id == NO_TOPIC {
        return None;
    }
    let number = usize::try_from(partition.topic_id.as_u128()).ok();
    let staying = number.and_then(|number| number.checked_sub(1));
    let staying = staying.filter(|index| *index < TOPICS.len());
    Some((staying.unwrap_or_else(|| place_of(partition).0), partition.partition))
}

impl World {
    /// No group waits for somebody's program longer than its members can.
    pub(crate) fn check_waits(&mut self) -> Result<(), String> {
        if self.store_took_ms() > SLOW_STORE_MS {
            self.checker.told.renewed_ms = self.now_ms;
        }
        if self.checker.told.waiting_since_ms.is_empty() {
            return Ok(());
        }
        let Some(view) = self.view()? else {
            return Ok(());
        };
        let waits = |group: &&GroupView| {
            let classic = group.classic.as_ref();
            classic.is_some_and(|classic| classic.computation.is_some())
        };
        let waiting: BTreeMap<&Text, &GroupView> = view
            .groups
            .iter()
            .filter(waits)
            .map(|group| (&group.group_id, group))
            .collect();
        let told = &mut self.checker.told;
        told.waiting_since_ms
            .retain(|group_id, _| waiting.contains_key(group_id));
        for (group_id, since_ms) in &told.waiting_since_ms {
            let members = waiting[group_id].members.iter();
            let bounds = members.map(|member| member.session_timeout_ms.min(member.rebalance_timeout_ms / 2));
            let bound_ms = bounds.min().map_or(0, |bound_ms| u64::from(bound_ms.unsigned_abs()));
            let since_ms = self.checker.running_since_ms.max(told.renewed_ms).max(*since_ms);
            if self.now_ms.saturating_sub(since_ms) > bound_ms.min(LONGEST_WAIT_MS) + GRACE_MS {
                return Err(format!(
                    "{group_id} waits for its assignment since {since_ms}, {bound_ms} ms are what its members can"
                ));
            }
        }
        Ok(())
    }
}
