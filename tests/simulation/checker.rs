//! What must hold at any time, whatever happens. The checker sees what becomes durable, what is asked and what is answered.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use convoke::coordinator::event::{EpochReason, Event, RebalanceReason};
use convoke::coordinator::input::Now;
use convoke::coordinator::record::{ConsumerGroupRecord, Record};
use convoke::coordinator::request::{
    JoinGroupRequest, JoinGroupResponse, OffsetCommitRequest, OffsetFetchRequest, OffsetFetchResponse, Request,
    Response, SyncGroupRequest, Text,
};
use convoke::wire::error_code::ErrorCode;

use crate::epochs::Epochs;
use crate::plan::SHORTEST_SESSION_MS;
use crate::protocol::{Partition, decode};
use crate::targets::Targets;
use crate::told::Told;
use crate::topics::index_of_name;
use crate::upstream::Upstream;

/// No offset.
const NONE: i64 = -1;

type Key = (Text, Partition);

/// What was durable when a request came: its answer may show nothing older.
#[derive(Debug, Default)]
pub(crate) struct Floor {
    /// For each partition that a fetch may show, how many values there had been.
    offsets: BTreeMap<Key, usize>,
    /// Of the group that is joined.
    generation_id: Option<i32>,
}

#[derive(Debug, Default)]
pub(crate) struct Checker {
    /// Every value that became durable, in order; each history begins with none.
    history: BTreeMap<Key, Vec<i64>>,
    /// The generation of each group's last durable record.
    generations: BTreeMap<Text, i32>,
    /// Classic groups that have members by their last durable record.
    inhabited: BTreeSet<Text>,
    marked: BTreeSet<Text>,
    /// Who was told that a partition is his, by group and generation.
    owners: BTreeMap<(Text, i32), BTreeMap<Partition, Text>>,
    /// Groups that somebody asked to delete from, and topics that went: their offsets may go.
    may_delete: BTreeSet<Text>,
    deleted_topics: BTreeSet<usize>,
    /// When a member last sent a heartbeat that was good, or asked first to join by its id; and its session.
    heard_ms: BTreeMap<Text, u64>,
    session_ms: BTreeMap<Text, u64>,
    /// Since when the coordinator has run without a pause.
    pub(crate) running_since_ms: u64,
    /// How old an offset is at least that goes by itself; `None` if its age is not known.
    pub(crate) retention_ms: Option<i64>,
    /// The latest wall clock.
    wall_ms: i64,
    /// When the newest value of each partition was committed, on the wall.
    committed_ms: BTreeMap<Key, i64>,
    pub(crate) epochs: Epochs,
    targets: Targets,
    pub(crate) told: Told,
    pub(crate) rebalances: usize,
}

impl Checker {
    pub(crate) fn running_since(&mut self, now_ms: u64) {
        self.running_since_ms = now_ms;
    }

    /// The coordinator is stepped at this time.
    pub(crate) fn steps_at(&mut self, now: Now) {
        self.wall_ms = self.wall_ms.max(now.wall_ms);
    }

    /// The generation of a classic group that is durable.
    pub(crate) fn generation(&self, group_id: &Text) -> i32 {
        self.generations.get(group_id).copied().unwrap_or(0)
    }

    pub(crate) fn topic_deleted(&mut self, topic: usize) {
        self.deleted_topics.insert(topic);
    }

    /// Records that became durable, in order.
    pub(crate) fn on_durable(&mut self, records: &[Record]) -> Result<(), String> {
        self.epochs.batch_begins();
        self.targets.batch_begins();
        let mut ended: BTreeMap<Text, i32> = BTreeMap::new();
        for record in records {
            match record {
                Record::OffsetCommit { key, value } => {
                    let topic = index_of_name(&key.topic)?;
                    let of = (key.group_id.clone(), (topic, key.partition));
                    match value {
                        Some(value) => drop(self.committed_ms.insert(of.clone(), value.commit_timestamp_ms)),
                        None if self.may_delete.contains(&key.group_id) || self.deleted_topics.contains(&topic) => {}
                        None => self.check_age(&of)?,
                    }
                    let history = self.history.entry(of);
                    let offset = value.as_ref().map_or(NONE, |value| value.offset);
                    history.or_insert_with(|| vec![NONE]).push(offset);
                }
                Record::GroupMetadata {
                    group_id,
                    value: Some(value),
                } => {
                    self.told.on_record(group_id, value)?;
                    let before = self.generations.insert(group_id.clone(), value.generation);
                    match value.members.is_empty() {
                        true => self.inhabited.remove(group_id),
                        false => self.inhabited.insert(group_id.clone()),
                    };
                    let was_consumer = self.epochs.take_ended(group_id).filter(|_| !value.members.is_empty());
                    let before = before.max(was_consumer);
                    if before.is_some_and(|before| before > value.generation) {
                        return Err(format!("{group_id}: generation {before:?} became {}", value.generation));
                    }
                }
                Record::GroupMetadata { group_id, value: None } => {
                    self.told.group_ended(group_id);
                    let ended_now = self.generations.remove_entry(group_id);
                    // Kafka begins anew where nobody is in the group.
                    ended.extend(ended_now.filter(|_| self.inhabited.contains(group_id)));
                    self.owners.retain(|(of, _), _| of != group_id);
                }
                Record::ConsumerGroup { group_id, record } => {
                    self.epochs.on_record(group_id, record)?;
                    self.targets.on_record(group_id, record);
                    let (before, now) = (ended.get(group_id), self.epochs.of(group_id));
                    let has_members = matches!(record, ConsumerGroupRecord::CurrentAssignment { .. });
                    if has_members && before.is_some_and(|before| now.is_some_and(|now| now < *before)) {
                        return Err(format!("{group_id}: generation {before:?} became epoch {now:?}"));
                    }
                    if matches!(record, ConsumerGroupRecord::Metadata(None)) {
                        self.owners.retain(|(of, _), _| of != group_id);
                    }
                }
                Record::GroupOwned {
                    group_id,
                    value: Some(_),
                } => {
                    self.marked.insert(group_id.clone());
                }
                Record::GroupOwned { group_id, value: None } => {
                    self.marked.remove(group_id);
                }
                Record::GroupConfig { .. } => {}
            }
        }
        self.epochs.check_holders()?;
        self.targets.check()
    }

    /// An offset that nobody deleted is as old as one has to be that goes by itself.
    fn check_age(&self, of: &Key) -> Result<(), String> {
        let committed_ms = self.committed_ms.get(of).copied().unwrap_or(0);
        let age_ms = self.wall_ms - committed_ms;
        match self.retention_ms {
            Some(retention_ms) if age_ms < retention_ms => Err(format!(
                "{of:?} was deleted after {age_ms} ms, and nobody had asked for it"
            )),
            _ => Ok(()),
        }
    }

    /// Offsets that nobody deleted, of records that are to be written.
    pub(crate) fn expired<'a>(&'a self, records: &'a [Record]) -> impl Iterator<Item = (&'a Text, usize)> {
        records.iter().filter_map(|record| match record {
            Record::OffsetCommit { key, value: None } if !self.may_delete.contains(&key.group_id) => {
                let topic = index_of_name(&key.topic).ok()?;
                (!self.deleted_topics.contains(&topic)).then_some((&key.group_id, topic))
            }
            _ => None,
        })
    }

    pub(crate) fn on_request(&mut self, request: &Request, now_ms: u64) -> Floor {
        let mut floor = Floor::default();
        match request {
            Request::DeleteGroup { group_id } => {
                self.may_delete.insert(group_id.clone());
            }
            Request::OffsetDelete(request) => {
                self.may_delete.insert(request.group_id.clone());
            }
            Request::OffsetFetch(request) => {
                let of_group = self
                    .history
                    .iter()
                    .filter(|((group_id, _), _)| *group_id == request.group_id);
                floor.offsets = of_group.map(|(key, values)| (key.clone(), values.len() - 1)).collect();
            }
            Request::InstallAssignment(request) => {
                self.targets.on_install(request);
                self.told.on_install(request);
            }
            Request::JoinGroup(request) => {
                floor.generation_id = self.generations.get(&request.group_id).copied();
                // It may be taken in by this one and never hear of it; then the next is answered what it missed, which is no
                // heartbeat.
                if !request.member_id.is_empty() {
                    self.heard_ms.entry(request.member_id.clone()).or_insert(now_ms);
                }
            }
            _ => {}
        }
        floor
    }

    /// `asked_ms` is when the coordinator worked on the request.
    pub(crate) fn on_reply(
        &mut self,
        request: &Request,
        floor: &Floor,
        asked_ms: u64,
        response: &Response,
        upstream: &Upstream,
    ) -> Result<(), String> {
        match (request, response) {
            (_, Response::Unavailable { .. } | Response::NotOwned) => Ok(()),
            (Request::JoinGroup(request), Response::JoinGroup(response)) => {
                self.on_join(request, floor, response, asked_ms)
            }
            (Request::SyncGroup(request), Response::SyncGroup(response)) if response.error.is_none() => {
                self.on_sync(request, &response.assignment)
            }
            (Request::Heartbeat(request), Response::Heartbeat { error }) => {
                if matches!(*error, ErrorCode::NONE | ErrorCode::REBALANCE_IN_PROGRESS) {
                    self.hear(&request.member_id, asked_ms);
                }
                Ok(())
            }
            (Request::ConsumerGroupHeartbeat(request), Response::ConsumerGroupHeartbeat(response)) => {
                if response.error.is_none() && request.member_epoch >= 0 {
                    self.hear(&request.member_id, asked_ms);
                    self.session_ms.insert(request.member_id.clone(), SHORTEST_SESSION_MS);
                }
                self.targets.check_word(&response.assigned_by.metadata)?;
                self.epochs.on_heartbeat(request, response, asked_ms)
            }
            (Request::OffsetCommit(request), Response::OffsetCommit(response)) => {
                let errors = response.topics.iter().flat_map(|(_, partitions)| partitions);
                if errors.map(|(_, error)| *error).all(ErrorCode::is_none) {
                    self.on_commit(request)?;
                }
                Ok(())
            }
            (Request::OffsetFetch(request), Response::OffsetFetch(response)) if response.error.is_none() => {
                self.on_fetch(request, floor, response, upstream)
            }
            _ => Ok(()),
        }
    }

    fn hear(&mut self, member_id: &Text, asked_ms: u64) {
        let heard_ms = self.heard_ms.entry(member_id.clone()).or_default();
        *heard_ms = asked_ms.max(*heard_ms);
    }

    fn on_join(
        &mut self,
        request: &JoinGroupRequest,
        floor: &Floor,
        response: &JoinGroupResponse,
        asked_ms: u64,
    ) -> Result<(), String> {
        if !matches!(response.error, ErrorCode::NONE | ErrorCode::MEMBER_ID_REQUIRED) {
            return Ok(());
        }
        if !self.marked.contains(&request.group_id) {
            return Err(format!("{}: joined before the group is durably ours", request.group_id));
        }
        if response.error.is_none() {
            self.epochs.let_in(&response.member_id, asked_ms);
            // One without an id has a session from now on.
            self.heard_ms.entry(response.member_id.clone()).or_insert(asked_ms);
            let session_ms = u64::from(request.session_timeout_ms.unsigned_abs());
            self.session_ms.insert(response.member_id.clone(), session_ms);
            let durable = self
                .generations
                .get(&request.group_id)
                .copied()
                .max(self.epochs.of(&request.group_id));
            // Members of a classic group wait for what an external assignor computes in their syncs.
            let waits = self.epochs.of(&request.group_id).is_none()
                && self.told.is_computed_outside(&request.group_id, response.generation_id);
            let is_durable = durable.is_some_and(|durable| durable >= response.generation_id);
            if response.leader.is_empty() && !waits && !is_durable {
                return Err(format!(
                    "{}: assigned for in {}, which is not durable",
                    request.group_id, response.generation_id
                ));
            }
            // An empty classic group that a consumer makes its own meanwhile begins anew, as at brokers.
            let is_classic = self.generations.contains_key(&request.group_id);
            if is_classic
                && floor
                    .generation_id
                    .is_some_and(|durable| response.generation_id < durable)
            {
                let (group_id, generation_id) = (&request.group_id, response.generation_id);
                return Err(format!(
                    "{group_id}: generation {generation_id} after {:?}",
                    floor.generation_id
                ));
            }
        }
        Ok(())
    }

    fn on_sync(&mut self, request: &SyncGroupRequest, assignment: &Bytes) -> Result<(), String> {
        let group_id = &request.group_id;
        let durable = self.generations.get(group_id).copied().max(self.epochs.of(group_id));
        if durable.is_none_or(|durable| durable < request.generation_id) {
            let generation_id = request.generation_id;
            return Err(format!(
                "{group_id}: assignment of generation {generation_id} told, {durable:?} is durable"
            ));
        }
        if self.epochs.of(group_id).is_none() {
            self.told.check_sync(request, assignment)?;
        }
        // A static member that comes back under another id is the same owner.
        let owner = request.group_instance_id.as_ref().unwrap_or(&request.member_id);
        let owners = self
            .owners
            .entry((group_id.clone(), request.generation_id))
            .or_default();
        for partition in decode(assignment) {
            let before = owners.insert(partition, owner.clone());
            if before.as_ref().is_some_and(|before| before != owner) {
                let generation_id = request.generation_id;
                return Err(format!(
                    "{group_id}: {partition:?} is {before:?}'s and {owner}'s in {generation_id}"
                ));
            }
        }
        Ok(())
    }

    fn on_commit(&self, request: &OffsetCommitRequest) -> Result<(), String> {
        for topic in &request.topics {
            for partition in &topic.partitions {
                let key = (
                    request.group_id.clone(),
                    (index_of_name(&topic.name)?, partition.partition),
                );
                let durable = self
                    .history
                    .get(&key)
                    .is_some_and(|values| values.contains(&partition.offset));
                if !durable {
                    return Err(format!(
                        "{key:?}: commit of {} answered before it is durable",
                        partition.offset
                    ));
                }
            }
        }
        Ok(())
    }

    /// A fetch shows a value that was the newest durable one at some time between the request and the answer.
    fn on_fetch(
        &self,
        request: &OffsetFetchRequest,
        floor: &Floor,
        response: &OffsetFetchResponse,
        upstream: &Upstream,
    ) -> Result<(), String> {
        let mut shown = BTreeMap::new();
        for (topic, partitions) in &response.topics {
            for fetched in partitions {
                let key = (
                    request.group_id.clone(),
                    (index_of_name(&topic.name)?, fetched.partition),
                );
                shown.insert(key, fetched.offset);
            }
        }
        if request.topics.is_none() {
            for key in floor.offsets.keys() {
                shown.entry(key.clone()).or_insert(NONE);
            }
        }
        for (key, offset) in shown {
            let history = self.history.get(&key).map_or(&[NONE][..], Vec::as_slice);
            let from = floor.offsets.get(&key).copied().unwrap_or(0);
            if !history[from..].contains(&offset) {
                let possible = &history[from..];
                return Err(format!(
                    "{key:?}: fetched {offset}, possible were {possible:?} of {history:?}"
                ));
            }
            let (group_id, partition) = &key;
            if history.len() == 1 && upstream.offset(group_id, *partition).is_some() {
                return Err(format!("{key:?}: the upstream's offset was not taken over"));
            }
        }
        Ok(())
    }

    pub(crate) fn on_event(&mut self, now_ms: u64, event: &Event) -> Result<(), String> {
        self.epochs.on_event(now_ms, event)?;
        self.told.on_event(now_ms, event);
        match event {
            // What an external assignor that comes anew asks for has its reason there. Static members that do not join again stay
            // beside those who do, so that a group can be above the limit, as at brokers; the next load sees to that.
            Event::GroupEpochBumped {
                reason: EpochReason::AssignorChanged,
                ..
            }
            | Event::RebalanceStarted {
                reason: RebalanceReason::OverCapacity | RebalanceReason::AssignorChanged,
                ..
            } => Ok(()),
            Event::RebalanceStarted { .. } | Event::GroupEpochBumped { .. } => {
                self.rebalances += 1;
                Ok(())
            }
            Event::MemberRemoved {
                member_id,
                reason: RebalanceReason::SessionExpired,
                ..
            }
            | Event::ConsumerMemberRemoved {
                member_id,
                reason: EpochReason::SessionExpired,
                ..
            }
            | Event::ExternalAssignorGone {
                member_id,
                reason: EpochReason::SessionExpired,
                ..
            } => self.check_silence(member_id, now_ms),
            // All that members say here can be read, and all that they offer is known.
            Event::AssignmentLeftToLeader { .. } => Err(format!("not assigned for: {event:?}")),
            _ => Ok(()),
        }
    }

    /// Whoever is taken out for its silence was silent.
    fn check_silence(&self, member_id: &Text, now_ms: u64) -> Result<(), String> {
        let session_ms = self.session_ms.get(member_id).copied().unwrap_or(0);
        let heard_ms = self.heard_ms.get(member_id).copied().unwrap_or(0);
        let since_ms = heard_ms.max(self.running_since_ms);
        match now_ms.saturating_sub(since_ms) < session_ms {
            true => Err(format!(
                "{member_id} expired at {now_ms}, its session of {session_ms} began at {since_ms}"
            )),
            false => Ok(()),
        }
    }

    /// The newest durable offset of each partition of the group.
    pub(crate) fn durable_offsets(&self, group_id: &Text) -> BTreeMap<Partition, i64> {
        let of_group = self.history.iter().filter(|((of, _), _)| of == group_id);
        let newest = of_group.map(|((_, partition), values)| (*partition, *values.last().unwrap_or(&NONE)));
        newest.filter(|(_, offset)| *offset != NONE).collect()
    }
}
