//! A consumer that follows the classic protocol as Kafka's Java client does.

use std::collections::BTreeSet;

use bytes::Bytes;
use convoke::coordinator::request::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeavingMember, OffsetCommitPartition,
    OffsetCommitRequest, OffsetCommitTopic, OffsetFetchRequest, OffsetTopic, Protocol, Request, Response,
    SyncGroupRequest, SyncGroupResponse, Text,
};
use convoke::wire::error_code::ErrorCode;
use uuid::Uuid;

use crate::client::{Surroundings, Wish};
use crate::plan::{ConsumerPlan, GroupPlan, TOPICS};
use crate::protocol::{Partition, assign, decode, subscription};

const REQUEST_TIMEOUT_MS: u64 = 30_000;
/// At most, so that a rebalance is noticed long before its timeout.
const HEARTBEAT_MS: u64 = 3_000;
const RETRY_BACKOFF_MS: u64 = 100;

#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) group_id: Text,
    protocol_type: Text,
    protocols: &'static [&'static str],
    name: Text,
    pub(crate) instance_id: Option<Text>,
    session_ms: i32,
    rebalance_ms: i32,
    knows_member_id_required: bool,
    skips_assignment: bool,
    pub(crate) topics: BTreeSet<usize>,
    pub(crate) member_id: Text,
    pub(crate) generation_id: i32,
    pub(crate) owned: BTreeSet<Partition>,
    phase: Phase,
    sent: Sent,
    not_before_ms: u64,
    heartbeat_ms: u64,
    commit_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// It does not run.
    Away,
    Join,
    Sync(Vec<(Text, Bytes)>),
    /// Its assignment came; where to go on reading is asked next.
    Fetch,
    Stable,
    /// It commits once more before it gives its partitions up.
    Revoke,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Join,
    Sync,
    Fetch,
    Heartbeat,
    Commit,
    Leave,
}

impl Consumer {
    pub(crate) fn new(group_id: &Text, group: &GroupPlan, index: usize, plan: &ConsumerPlan) -> Self {
        Self {
            group_id: group_id.clone(),
            protocol_type: group.protocol_type.into(),
            protocols: group.protocols,
            name: format!("{group_id}-c{index}").into(),
            instance_id: plan.is_static.then(|| format!("{group_id}-i{index}").into()),
            session_ms: plan.session_ms,
            rebalance_ms: plan.rebalance_ms,
            knows_member_id_required: plan.knows_member_id_required,
            skips_assignment: plan.skips_assignment,
            topics: BTreeSet::from([0, index % TOPICS.len()]),
            member_id: "".into(),
            generation_id: -1,
            owned: BTreeSet::new(),
            phase: Phase::Away,
            sent: Sent::Leave,
            not_before_ms: plan.start_ms,
            heartbeat_ms: 0,
            commit_ms: 0,
        }
    }

    /// In its generation, with nothing to be done but to live.
    pub(crate) fn is_stable(&self) -> bool {
        self.phase == Phase::Stable
    }

    pub(crate) fn next(&mut self, around: &mut Surroundings<'_>) -> Wish {
        if around.now_ms < self.not_before_ms {
            return Wish::WakeAt(self.not_before_ms);
        }
        match self.phase.clone() {
            Phase::Away => {
                self.phase = Phase::Join;
                self.join()
            }
            Phase::Join => self.join(),
            Phase::Sync(assignments) => self.sync(assignments),
            Phase::Fetch => self.fetch(),
            Phase::Revoke => self.commit(around),
            Phase::Stable => self.live(around),
        }
    }

    fn live(&mut self, around: &mut Surroundings<'_>) -> Wish {
        if around.rng.chance(around.faults.client_crash) {
            self.crash(around);
            return Wish::WakeAt(self.not_before_ms);
        }
        if around.rng.chance(around.faults.leave) && self.instance_id.is_none() {
            return self.leave();
        }
        // A static member that restarts with another subscription keeps its assignment, as with Kafka, and nobody notices.
        if around.rng.chance(around.faults.resubscribe) && self.instance_id.is_none() {
            self.topics = BTreeSet::from([around.rng.below(TOPICS.len()), around.rng.below(TOPICS.len())]);
            self.rejoin(around.now_ms);
            return self.join();
        }
        if around.now_ms >= self.commit_ms && !self.owned.is_empty() {
            self.commit_ms = around.now_ms + around.rng.between(500, 5_000);
            return self.commit(around);
        }
        let interval_ms = u64::from(self.session_ms.unsigned_abs() / 3).min(HEARTBEAT_MS);
        if around.now_ms >= self.heartbeat_ms {
            self.heartbeat_ms = around.now_ms + interval_ms;
            return self.heartbeat();
        }
        Wish::WakeAt(self.heartbeat_ms.min(self.commit_ms.max(around.now_ms + 1)))
    }

    fn join(&mut self) -> Wish {
        self.sent = Sent::Join;
        self.owned.clear();
        let protocol = |name: &&str| Protocol {
            name: (*name).into(),
            metadata: subscription(&self.topics),
        };
        let request = JoinGroupRequest {
            group_id: self.group_id.clone(),
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            client_id: self.name.clone(),
            client_host: "/127.0.0.1".into(),
            session_timeout_ms: self.session_ms,
            rebalance_timeout_ms: self.rebalance_ms,
            protocol_type: self.protocol_type.clone(),
            protocols: self.protocols.iter().map(protocol).collect(),
            require_known_member_id: self.knows_member_id_required && self.instance_id.is_none(),
            supports_skipping_assignment: self.skips_assignment,
            reason: None,
        };
        let timeout_ms = REQUEST_TIMEOUT_MS.max(u64::from(self.rebalance_ms.unsigned_abs()) + 5_000);
        Wish::Send(Box::new(Request::JoinGroup(request)), timeout_ms)
    }

    fn sync(&mut self, assignments: Vec<(Text, Bytes)>) -> Wish {
        self.sent = Sent::Sync;
        let request = SyncGroupRequest {
            group_id: self.group_id.clone(),
            generation_id: self.generation_id,
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            protocol_type: Some(self.protocol_type.clone()),
            protocol_name: None,
            assignments,
        };
        Wish::Send(Box::new(Request::SyncGroup(request)), REQUEST_TIMEOUT_MS)
    }

    fn fetch(&mut self) -> Wish {
        self.sent = Sent::Fetch;
        let request = OffsetFetchRequest {
            group_id: self.group_id.clone(),
            member_id: None,
            member_epoch: -1,
            topics: Some(by_topic(&self.owned)),
            require_stable: true,
        };
        Wish::Send(Box::new(Request::OffsetFetch(request)), REQUEST_TIMEOUT_MS)
    }

    fn heartbeat(&mut self) -> Wish {
        self.sent = Sent::Heartbeat;
        let request = HeartbeatRequest {
            group_id: self.group_id.clone(),
            generation_id: self.generation_id,
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
        };
        // A heartbeat that takes longer than the session is of no use.
        Wish::Send(
            Box::new(Request::Heartbeat(request)),
            u64::from(self.session_ms.unsigned_abs()),
        )
    }

    fn commit(&mut self, around: &mut Surroundings<'_>) -> Wish {
        self.sent = Sent::Commit;
        let request = OffsetCommitRequest {
            group_id: self.group_id.clone(),
            generation_id_or_member_epoch: self.generation_id,
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            retention_time_ms: None,
            knows_member_epochs: true,
            topics: commit_topics(&self.owned, around),
        };
        Wish::Send(Box::new(Request::OffsetCommit(request)), REQUEST_TIMEOUT_MS)
    }

    fn leave(&mut self) -> Wish {
        self.sent = Sent::Leave;
        let request = LeaveGroupRequest {
            group_id: self.group_id.clone(),
            members: vec![LeavingMember {
                member_id: self.member_id.clone(),
                group_instance_id: None,
                reason: None,
            }],
        };
        Wish::Send(Box::new(Request::LeaveGroup(request)), REQUEST_TIMEOUT_MS)
    }

    /// No word to anybody; a new process under the same name comes some time later.
    pub(crate) fn crash(&mut self, around: &mut Surroundings<'_>) {
        let (low, high) = *around.rng.pick(&[(0, 500), (1_000, 20_000)]);
        let away_ms = around.rng.between(low, high);
        self.begin_anew(around.now_ms + away_ms);
    }

    fn begin_anew(&mut self, at_ms: u64) {
        self.member_id = "".into();
        self.generation_id = -1;
        self.owned.clear();
        self.phase = Phase::Away;
        self.not_before_ms = at_ms;
    }

    /// Asks again for what it was about to get.
    pub(crate) fn on_lost(&mut self, around: &mut Surroundings<'_>) {
        self.not_before_ms = around.now_ms + RETRY_BACKOFF_MS;
        match self.sent {
            Sent::Join | Sent::Sync => self.phase = Phase::Join,
            Sent::Leave => self.begin_anew(around.now_ms + 1_000),
            Sent::Fetch | Sent::Heartbeat => {}
            Sent::Commit => self.after_commit(around.now_ms),
        }
    }

    pub(crate) fn on_response(&mut self, response: Response, around: &mut Surroundings<'_>) -> Result<(), String> {
        let unexpected = format!("{}: unexpected {response:?} in {:?}", self.name, self.phase);
        match (self.sent, response) {
            (_, Response::Unavailable { .. }) => {
                self.on_lost(around);
                Ok(())
            }
            (Sent::Join, Response::JoinGroup(response)) => self.on_join(response, around.now_ms),
            (Sent::Sync, Response::SyncGroup(response)) => self.on_sync(&response, around.now_ms),
            (Sent::Heartbeat, Response::Heartbeat { error }) => self.on_error(error, around),
            (Sent::Leave, Response::LeaveGroup(_)) => {
                let away_ms = around.rng.between(0, 5_000);
                self.begin_anew(around.now_ms + away_ms);
                Ok(())
            }
            (Sent::Fetch, Response::OffsetFetch(response)) if response.error.is_none() => {
                self.phase = Phase::Stable;
                self.heartbeat_ms = around.now_ms;
                self.commit_ms = around.now_ms + around.rng.between(0, 3_000);
                Ok(())
            }
            (Sent::Commit, Response::OffsetCommit(response)) => {
                let error = response.topics[0].1[0].1;
                if response
                    .topics
                    .iter()
                    .flat_map(|(_, partitions)| partitions)
                    .any(|(_, e)| *e != error)
                {
                    return Err(unexpected);
                }
                self.on_error(error, around)?;
                if error.is_none() {
                    self.after_commit(around.now_ms);
                }
                Ok(())
            }
            _ => Err(unexpected),
        }
    }

    fn on_join(&mut self, response: JoinGroupResponse, now_ms: u64) -> Result<(), String> {
        let unexpected = format!("{}: unexpected {response:?}", self.name);
        match response.error {
            ErrorCode::NONE => {}
            ErrorCode::MEMBER_ID_REQUIRED if self.member_id.is_empty() && !response.member_id.is_empty() => {
                self.member_id = response.member_id;
                return Ok(());
            }
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS | ErrorCode::REBALANCE_IN_PROGRESS => {
                self.not_before_ms = now_ms + RETRY_BACKOFF_MS;
                return Ok(());
            }
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.member_id = "".into();
                self.not_before_ms = now_ms + RETRY_BACKOFF_MS;
                return Ok(());
            }
            ErrorCode::FENCED_INSTANCE_ID if self.instance_id.is_some() => {
                self.begin_anew(now_ms + 1_000);
                return Ok(());
            }
            _ => return Err(unexpected),
        }
        let is_leader = response.leader == response.member_id;
        let is_named = response
            .protocol_name
            .as_deref()
            .is_some_and(|name| self.protocols.contains(&name));
        let is_told = response
            .members
            .iter()
            .any(|member| member.member_id == response.member_id);
        if response.member_id.is_empty()
            || (!self.member_id.is_empty() && self.member_id != response.member_id)
            || response.protocol_type.as_ref() != Some(&self.protocol_type)
            || !is_named
            || response.generation_id <= 0
            || is_told != is_leader
        {
            return Err(unexpected);
        }
        self.member_id = response.member_id;
        self.generation_id = response.generation_id;
        let assigns = is_leader && !response.skip_assignment;
        let assignments = if assigns { assign(&response.members) } else { Vec::new() };
        self.phase = Phase::Sync(assignments);
        Ok(())
    }

    fn on_sync(&mut self, response: &SyncGroupResponse, now_ms: u64) -> Result<(), String> {
        match response.error {
            ErrorCode::NONE => {
                if response.protocol_type.as_ref() != Some(&self.protocol_type) {
                    return Err(format!("{}: unexpected {response:?}", self.name));
                }
                self.owned = decode(&response.assignment);
                self.phase = Phase::Fetch;
            }
            ErrorCode::REBALANCE_IN_PROGRESS | ErrorCode::ILLEGAL_GENERATION => self.rejoin(now_ms + RETRY_BACKOFF_MS),
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.member_id = "".into();
                self.rejoin(now_ms + RETRY_BACKOFF_MS);
            }
            ErrorCode::FENCED_INSTANCE_ID if self.instance_id.is_some() => self.begin_anew(now_ms + 1_000),
            _ => return Err(format!("{}: unexpected {response:?}", self.name)),
        }
        Ok(())
    }

    /// Of a heartbeat or a commit.
    fn on_error(&mut self, error: ErrorCode, around: &mut Surroundings<'_>) -> Result<(), String> {
        match error {
            ErrorCode::NONE => {}
            ErrorCode::REBALANCE_IN_PROGRESS => {
                let commits_first = self.sent == Sent::Heartbeat && !self.owned.is_empty() && around.rng.chance(500);
                if commits_first {
                    self.phase = Phase::Revoke;
                } else {
                    self.rejoin(around.now_ms);
                }
            }
            ErrorCode::ILLEGAL_GENERATION => self.rejoin(around.now_ms),
            // A group that was deleted is not known at all.
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::GROUP_ID_NOT_FOUND => {
                self.member_id = "".into();
                self.rejoin(around.now_ms);
            }
            ErrorCode::FENCED_INSTANCE_ID if self.instance_id.is_some() => self.begin_anew(around.now_ms + 1_000),
            _ => return Err(format!("{}: unexpected {error:?} to {:?}", self.name, self.sent)),
        }
        Ok(())
    }

    fn after_commit(&mut self, now_ms: u64) {
        if self.phase == Phase::Revoke {
            self.rejoin(now_ms);
        }
    }

    fn rejoin(&mut self, at_ms: u64) {
        self.owned.clear();
        self.phase = Phase::Join;
        self.not_before_ms = at_ms;
    }
}

pub(crate) fn by_topic(partitions: &BTreeSet<Partition>) -> Vec<(OffsetTopic, Vec<i32>)> {
    let topics: BTreeSet<usize> = partitions.iter().map(|(topic, _)| *topic).collect();
    let of = |topic: usize| {
        partitions
            .iter()
            .filter(move |(of, _)| *of == topic)
            .map(|(_, partition)| *partition)
    };
    let named = |topic: usize| OffsetTopic {
        name: TOPICS[topic].0.into(),
        topic_id: Uuid::nil(),
    };
    topics
        .into_iter()
        .map(|topic| (named(topic), of(topic).collect()))
        .collect()
}

/// An offset of its own for each partition.
pub(crate) fn commit_topics(partitions: &BTreeSet<Partition>, around: &mut Surroundings<'_>) -> Vec<OffsetCommitTopic> {
    let mut topics = Vec::new();
    for (topic, partitions) in by_topic(partitions) {
        let commit = |partition| OffsetCommitPartition {
            partition,
            offset: around.fresh_offset(),
            leader_epoch: -1,
            metadata: "".into(),
        };
        topics.push(OffsetCommitTopic {
            name: topic.name,
            topic_id: topic.topic_id,
            partitions: partitions.into_iter().map(commit).collect(),
        });
    }
    topics
}
