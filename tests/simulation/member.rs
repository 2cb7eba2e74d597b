//! A client that follows the consumer protocol (KIP-848) as Kafka's Java client does.

use std::collections::{BTreeMap, BTreeSet};

use convoke::coordinator::partitions::TopicPartition;
use convoke::coordinator::request::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, OffsetCommitPartition, OffsetCommitRequest,
    OffsetCommitTopic, Request, Response, Text,
};
use convoke::wire::error_code::ErrorCode;

use crate::client::{REFUSED_MS, RETRY_BACKOFF_MS, Surroundings, Wish};
use crate::computer::{Caller, Computer, Then};
use crate::plan::{MemberPlan, RACKS, TOPICS};
use crate::topics::{CHANGING, PATTERNS, Place, index_of, place_of};

/// Longer than any message takes, so that none is overtaken by a later one of the same member.
const REQUEST_TIMEOUT_MS: u64 = 30_000;
const HEARTBEAT_MS: u64 = 3_000;
const JOIN: i32 = 0;
const LEAVE: i32 = -1;
const LEAVE_FOR_A_WHILE: i32 = -2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Heartbeat,
    Commit,
    /// What it is to compute from, or what it computed.
    Computed,
    Leave,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) group_id: Text,
    name: String,
    instance_id: Option<Text>,
    rebalance_ms: i32,
    topics: BTreeSet<usize>,
    pattern: Option<usize>,
    rack: Option<&'static str>,
    assignor: Option<&'static str>,
    /// Of one that can compute assignments.
    pub(crate) computer: Option<Computer>,
    /// Processes under this name so far.
    process: u32,
    pub(crate) member_id: Text,
    pub(crate) epoch: i32,
    /// What it reads from.
    pub(crate) owned: BTreeSet<TopicPartition>,
    /// What it was assigned last, and when it will have given up and taken what that takes.
    assigned: Option<(BTreeSet<TopicPartition>, u64)>,
    must_tell_owned: bool,
    /// After an error or a lost answer it says all.
    must_tell_all: bool,
    is_away: bool,
    /// Why the group would not have it when it came last: for its protocol or for its size.
    pub(crate) refusal: Option<ErrorCode>,
    sent: Sent,
    not_before_ms: u64,
    heartbeat_ms: u64,
    commit_ms: u64,
    /// Planted: it says that it gave partitions up, and reads on.
    reads_on: bool,
    /// What it reads on like that.
    given_up: BTreeSet<TopicPartition>,
}

impl Member {
    pub(crate) fn new(group_id: &Text, index: usize, plan: &MemberPlan, reads_on: bool) -> Self {
        Self {
            group_id: group_id.clone(),
            name: format!("{group_id}-c{index}"),
            instance_id: plan.is_static.then(|| format!("{group_id}-i{index}").into()),
            rebalance_ms: plan.rebalance_ms,
            topics: BTreeSet::from([0, index % CHANGING.len()]),
            pattern: plan.pattern,
            rack: None,
            assignor: None,
            computer: plan.computer.as_ref().map(Computer::new),
            process: 0,
            member_id: "".into(),
            epoch: JOIN,
            owned: BTreeSet::new(),
            assigned: None,
            must_tell_owned: false,
            must_tell_all: false,
            is_away: true,
            refusal: None,
            sent: Sent::Leave,
            not_before_ms: plan.start_ms,
            heartbeat_ms: 0,
            commit_ms: 0,
            reads_on,
            given_up: BTreeSet::new(),
        }
    }

    /// In its group, with nothing to be done but to live.
    pub(crate) fn is_settled(&self) -> bool {
        !self.is_away && self.epoch > JOIN && self.assigned.is_none() && !self.must_tell_owned
    }

    /// It does not run, or not yet.
    pub(crate) fn is_away(&self) -> bool {
        self.is_away
    }

    /// When it comes if it is away.
    pub(crate) fn comes_at(&mut self) -> &mut u64 {
        &mut self.not_before_ms
    }

    /// The group knows all that it has to say.
    pub(crate) fn has_told_all(&self) -> bool {
        !self.must_tell_all
    }

    fn must_tell_assignors(&self) -> bool {
        self.computer.as_ref().is_some_and(Computer::must_tell)
    }

    /// What it reads from.
    pub(crate) fn reads(&self) -> BTreeSet<Place> {
        self.owned.union(&self.given_up).map(place_of).collect()
    }

    /// Which of all topics it wants, by name or by its pattern.
    pub(crate) fn wanted(&self) -> BTreeSet<usize> {
        let changing = match self.pattern {
            Some(pattern) => PATTERNS[pattern].1.iter().copied().collect(),
            None => self.topics.clone(),
        };
        changing.iter().map(|topic| TOPICS.len() + topic).collect()
    }

    pub(crate) fn next(&mut self, around: &mut Surroundings<'_>) -> Wish {
        if around.now_ms < self.not_before_ms {
            return Wish::WakeAt(self.not_before_ms);
        }
        if self.is_away {
            self.is_away = false;
            self.process += 1;
            self.member_id = format!("{}-{}", self.name, self.process).into();
            self.rejoin();
        }
        if self.epoch == JOIN {
            return self.heartbeat(around.now_ms);
        }
        self.live(around)
    }

    fn live(&mut self, around: &mut Surroundings<'_>) -> Wish {
        if around.rng.chance(around.faults.client_crash) {
            self.crash(around);
            return Wish::WakeAt(self.not_before_ms);
        }
        if around.rng.chance(around.faults.leave) {
            return self.leave();
        }
        if around.rng.chance(around.faults.resubscribe) {
            self.change_mind(around);
            return self.heartbeat(around.now_ms);
        }
        if let Some(computer) = &mut self.computer
            && around.rng.chance(around.faults.ask)
        {
            computer.change_mind(around);
        }
        if let Some((assigned, _)) = self.assigned.take_if(|(_, at_ms)| *at_ms <= around.now_ms) {
            if self.reads_on {
                self.given_up.extend(self.owned.difference(&assigned));
            }
            self.owned = assigned;
            self.must_tell_owned = true;
        }
        let must_tell = self.must_tell_owned || self.must_tell_all || self.must_tell_assignors();
        if must_tell || around.now_ms >= self.heartbeat_ms {
            return self.heartbeat(around.now_ms);
        }
        if let Some(request) = self.computed(around.now_ms) {
            self.sent = Sent::Computed;
            return Wish::Send(Box::new(request), REQUEST_TIMEOUT_MS);
        }
        if around.now_ms >= self.commit_ms && !self.owned.is_empty() {
            self.commit_ms = around.now_ms + around.rng.between(500, 5_000);
            return self.commit(around);
        }
        let assigned_ms = self.assigned.as_ref().map_or(u64::MAX, |(_, at_ms)| *at_ms);
        let commit_ms = self.commit_ms.max(around.now_ms + 1);
        let done_ms = self
            .computer
            .as_ref()
            .and_then(Computer::done_at_ms)
            .unwrap_or(u64::MAX);
        Wish::WakeAt(self.heartbeat_ms.min(commit_ms).min(assigned_ms).min(done_ms))
    }

    fn computed(&self, now_ms: u64) -> Option<Request> {
        let caller = Caller {
            group_id: &self.group_id,
            member_id: &self.member_id,
            epoch: self.epoch,
        };
        self.computer.as_ref()?.due(caller, now_ms)
    }

    /// Other topics, by name or by a pattern, another assignor, another rack: some of it.
    fn change_mind(&mut self, around: &mut Surroundings<'_>) {
        match around.rng.below(4) {
            0 => self.topics = BTreeSet::from([around.rng.below(CHANGING.len()), around.rng.below(CHANGING.len())]),
            1 => self.pattern = around.rng.chance(500).then(|| around.rng.below(PATTERNS.len())),
            2 => self.assignor = Some(*around.rng.pick(&["range", "uniform", "lag", "zone"])),
            _ => self.rack = *around.rng.pick(&RACKS),
        }
        self.must_tell_all = true;
    }

    fn request(&self, member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            group_id: self.group_id.clone(),
            member_id: self.member_id.clone(),
            member_epoch,
            group_instance_id: self.instance_id.clone(),
            rack_id: None,
            rebalance_timeout_ms: -1,
            subscribed_topic_names: None,
            subscribed_topic_regex: None,
            server_assignor: None,
            client_assignors: None,
            topic_partitions: None,
            client_id: self.name.as_str().into(),
            client_host: "/127.0.0.1".into(),
            connection: 0,
            needs_member_id: true,
            resolved: None,
        }
    }

    /// What it says is what changed, or all of it.
    fn heartbeat(&mut self, now_ms: u64) -> Wish {
        self.sent = Sent::Heartbeat;
        self.heartbeat_ms = now_ms + HEARTBEAT_MS;
        let mut request = self.request(self.epoch);
        if self.must_tell_all || self.epoch == JOIN {
            request.rebalance_timeout_ms = self.rebalance_ms;
            let pattern = self.pattern.map_or("", |pattern| PATTERNS[pattern].0);
            let names = self.topics.iter().filter(|_| self.pattern.is_none());
            request.subscribed_topic_regex = Some(pattern.into());
            request.subscribed_topic_names = Some(names.map(|topic| CHANGING[*topic].into()).collect());
            request.rack_id = self.rack.map(Text::from);
            request.server_assignor = self.assignor.map(Text::from);
        }
        if self.must_tell_all || self.must_tell_assignors() || self.epoch == JOIN {
            request.client_assignors = self.computer.as_ref().map(Computer::says);
        }
        if self.must_tell_all || self.must_tell_owned || self.epoch == JOIN {
            request.topic_partitions = Some(self.owned.iter().copied().collect());
        }
        let request = Request::ConsumerGroupHeartbeat(request);
        Wish::Send(Box::new(request), REQUEST_TIMEOUT_MS)
    }

    /// A static member leaves for a while.
    fn leave(&mut self) -> Wish {
        self.sent = Sent::Leave;
        self.owned.clear();
        self.given_up.clear();
        let epoch = if self.instance_id.is_some() {
            LEAVE_FOR_A_WHILE
        } else {
            LEAVE
        };
        Wish::Send(
            Box::new(Request::ConsumerGroupHeartbeat(self.request(epoch))),
            REQUEST_TIMEOUT_MS,
        )
    }

    fn commit(&mut self, around: &mut Surroundings<'_>) -> Wish {
        self.sent = Sent::Commit;
        let mut topics: BTreeMap<_, Vec<OffsetCommitPartition>> = BTreeMap::new();
        for partition in &self.owned {
            topics
                .entry(partition.topic_id)
                .or_default()
                .push(OffsetCommitPartition {
                    partition: partition.partition,
                    offset: around.fresh_number(),
                    leader_epoch: -1,
                    metadata: "".into(),
                });
        }
        let topic = |(topic_id, partitions)| OffsetCommitTopic {
            name: CHANGING[index_of(&topic_id)].into(),
            topic_id,
            partitions,
        };
        let request = OffsetCommitRequest {
            group_id: self.group_id.clone(),
            generation_id_or_member_epoch: self.epoch,
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            retention_time_ms: None,
            knows_member_epochs: true,
            topics: topics.into_iter().map(topic).collect(),
        };
        Wish::Send(Box::new(Request::OffsetCommit(request)), REQUEST_TIMEOUT_MS)
    }

    /// No word to anybody; a new process under the same name comes some time later.
    pub(crate) fn crash(&mut self, around: &mut Surroundings<'_>) {
        let (low, high) = *around.rng.pick(&[(0, 500), (1_000, 20_000)]);
        let away_ms = around.rng.between(low, high);
        self.begin_anew(around.now_ms + away_ms);
    }

    fn begin_anew(&mut self, at_ms: u64) {
        self.rejoin();
        self.is_away = true;
        self.not_before_ms = at_ms;
    }

    /// With its id, but with nothing that it had.
    fn rejoin(&mut self) {
        self.epoch = JOIN;
        self.owned.clear();
        self.given_up.clear();
        self.assigned = None;
        self.must_tell_owned = false;
        self.must_tell_all = false;
        self.computer.iter_mut().for_each(Computer::forget);
    }

    fn refused(&mut self, error: ErrorCode, around: &Surroundings<'_>) {
        self.begin_anew(around.now_ms + REFUSED_MS);
        self.refusal = Some(error);
    }

    pub(crate) fn on_lost(&mut self, around: &mut Surroundings<'_>) {
        self.not_before_ms = around.now_ms + RETRY_BACKOFF_MS;
        match self.sent {
            Sent::Heartbeat => self.must_tell_all = true,
            Sent::Commit | Sent::Computed => {}
            Sent::Leave => self.begin_anew(around.now_ms + 1_000),
        }
    }

    pub(crate) fn on_response(&mut self, response: Response, around: &mut Surroundings<'_>) -> Result<(), String> {
        match (self.sent, response) {
            (_, Response::Unavailable { .. }) => self.on_lost(around),
            (Sent::Leave, _) => {
                let away_ms = around.rng.between(0, 20_000);
                self.begin_anew(around.now_ms + away_ms);
            }
            // The group was deleted, and at the upstream others are in it by that name.
            (Sent::Heartbeat | Sent::Computed, Response::NotOwned) => {
                self.rejoin();
                self.not_before_ms = around.now_ms + RETRY_BACKOFF_MS;
            }
            (Sent::Heartbeat, Response::ConsumerGroupHeartbeat(response)) => {
                return self.on_heartbeat(&response, around);
            }
            (Sent::Commit, Response::OffsetCommit(response)) => {
                let errors = response.topics.iter().flat_map(|(_, partitions)| partitions);
                for (_, error) in errors {
                    match *error {
                        ErrorCode::NONE | ErrorCode::STALE_MEMBER_EPOCH => {}
                        ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::GROUP_ID_NOT_FOUND => self.rejoin(),
                        _ => return Err(format!("{}: unexpected {response:?}", self.member_id)),
                    }
                }
            }
            (Sent::Computed, response) => return self.on_computed(response, around),
            (_, response) => return Err(format!("{}: unexpected {response:?}", self.member_id)),
        }
        Ok(())
    }

    fn on_computed(&mut self, response: Response, around: &mut Surroundings<'_>) -> Result<(), String> {
        let then = match (&mut self.computer, response) {
            (Some(computer), Response::PrepareAssignment(response)) => computer.on_prepared(&response, around)?,
            (Some(computer), Response::InstallAssignment { error, error_message }) => {
                computer.on_installed(error, error_message.as_ref())?
            }
            (_, response) => return Err(format!("{}: unexpected {response:?}", self.member_id)),
        };
        match then {
            Then::GoOn => {}
            Then::Heartbeat => self.heartbeat_ms = around.now_ms,
            Then::Die if around.rng.chance(500) => self.crash(around),
            // It comes back with the id that it had.
            Then::Die => {
                self.rejoin();
                self.not_before_ms = around.now_ms + around.rng.between(0, 20_000);
            }
        }
        Ok(())
    }

    fn on_heartbeat(
        &mut self,
        response: &ConsumerGroupHeartbeatResponse,
        around: &mut Surroundings<'_>,
    ) -> Result<(), String> {
        match response.error {
            ErrorCode::NONE => {}
            ErrorCode::GROUP_ID_NOT_FOUND if self.epoch == JOIN => {
                self.refused(response.error, around);
                return Ok(());
            }
            ErrorCode::GROUP_MAX_SIZE_REACHED => {
                self.refused(response.error, around);
                return Ok(());
            }
            // Nobody offers what it asks for.
            ErrorCode::UNSUPPORTED_ASSIGNOR if self.assignor.take().is_some() => {
                self.begin_anew(around.now_ms + REFUSED_MS);
                return Ok(());
            }
            ErrorCode::FENCED_MEMBER_EPOCH | ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::GROUP_ID_NOT_FOUND => {
                self.rejoin();
                self.not_before_ms = around.now_ms + RETRY_BACKOFF_MS;
                return Ok(());
            }
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => {
                self.on_lost(around);
                return Ok(());
            }
            ErrorCode::UNRELEASED_INSTANCE_ID | ErrorCode::FENCED_INSTANCE_ID if self.instance_id.is_some() => {
                self.begin_anew(around.now_ms + 1_000);
                return Ok(());
            }
            _ => return Err(format!("{}: unexpected {response:?}", self.member_id)),
        }
        if response.member_id.as_ref() != Some(&self.member_id) || response.member_epoch < self.epoch.max(1) {
            return Err(format!("{} at {}: unexpected {response:?}", self.member_id, self.epoch));
        }
        self.refusal = None;
        self.epoch = response.member_epoch;
        self.must_tell_owned = false;
        self.must_tell_all = false;
        if let Some(computer) = &mut self.computer {
            computer.told(true);
            computer.hear(response.should_compute_assignment, around);
        } else if response.should_compute_assignment {
            return Err(format!(
                "{} can compute nothing: unexpected {response:?}",
                self.member_id
            ));
        }
        if let Some(assigned) = &response.assignment {
            let assigned: BTreeSet<TopicPartition> = assigned.iter().copied().collect();
            let takes_ms = match around.rng.chance(around.faults.slow) {
                true => around.rng.between(1_000, 40_000),
                false => around.rng.between(0, 20),
            };
            if assigned == self.owned {
                self.assigned = None;
            } else {
                self.assigned = Some((assigned, around.now_ms + takes_ms));
            }
        }
        Ok(())
    }
}
