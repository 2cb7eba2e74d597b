//! A consumer that follows the classic protocol as Kafka's Java client does.

use std::collections::BTreeSet;

use bytes::Bytes;
use convoke::coordinator::request::{
    HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, LeavingMember, OffsetCommitRequest, OffsetFetchRequest,
    Protocol, Request, SyncGroupRequest, Text,
};
use convoke::wire::error_code::ErrorCode;

use crate::client::{RETRY_BACKOFF_MS, Surroundings, Wish};
use crate::commits::{by_topic, commit_topics};
use crate::plan::{ConsumerPlan, GroupPlan, RACKS, TOPICS};
use crate::protocol::{COOPERATIVE, Partition, subscription};
use crate::topics::{CHANGING, Place};

const REQUEST_TIMEOUT_MS: u64 = 30_000;
/// At most, so that a rebalance is noticed long before its timeout.
const HEARTBEAT_MS: u64 = 3_000;

#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) group_id: Text,
    pub(crate) protocol_type: Text,
    pub(crate) protocols: &'static [&'static str],
    pub(crate) name: Text,
    pub(crate) instance_id: Option<Text>,
    session_ms: i32,
    rebalance_ms: i32,
    knows_member_id_required: bool,
    skips_assignment: bool,
    /// Those that it may be subscribed to.
    all_topics: [usize; 3],
    pub(crate) topics: BTreeSet<usize>,
    rack: Option<&'static str>,
    pub(crate) member_id: Text,
    pub(crate) generation_id: i32,
    /// What it reads from, of the topics that there were when it asked for it.
    pub(crate) owned: BTreeSet<Partition>,
    pub(crate) creations: [u32; TOPICS.len() + CHANGING.len()],
    /// The topics that there were when it synced last, or is syncing.
    pub(crate) asked_creations: [u32; TOPICS.len() + CHANGING.len()],
    /// What it looks after as the leader: the topics of the group, each with its partitions.
    pub(crate) led: Option<Vec<(usize, i32)>>,
    /// It assigned them itself. One that comes back does not know whether they have changed since somebody did.
    pub(crate) has_assigned: bool,
    /// Why the group would not have it when it came last: for its protocol or for its size.
    pub(crate) refusal: Option<ErrorCode>,
    /// Planted: it says that it gave all up before it joins, and reads on.
    reads_on: bool,
    /// What it reads on like that.
    pub(crate) given_up: BTreeSet<Place>,
    pub(crate) phase: Phase,
    pub(crate) sent: Sent,
    pub(crate) not_before_ms: u64,
    pub(crate) heartbeat_ms: u64,
    pub(crate) commit_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
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
pub(crate) enum Sent {
    Join,
    Sync,
    Fetch,
    Heartbeat,
    Commit,
    Leave,
}

impl Consumer {
    pub(crate) fn new(group_id: &Text, group: &GroupPlan, index: usize, plan: &ConsumerPlan) -> Self {
        let all_topics = [0, 1, 2].map(|topic| topic + if group.of_changing_topics { TOPICS.len() } else { 0 });
        Self {
            group_id: group_id.clone(),
            protocol_type: group.protocol_type.into(),
            protocols: plan.protocols,
            name: format!("{group_id}-c{index}").into(),
            instance_id: plan.is_static.then(|| format!("{group_id}-i{index}").into()),
            session_ms: plan.session_ms,
            rebalance_ms: plan.rebalance_ms,
            knows_member_id_required: plan.knows_member_id_required,
            skips_assignment: plan.skips_assignment,
            all_topics,
            topics: BTreeSet::from([all_topics[0], all_topics[index % 3]]),
            rack: None,
            member_id: "".into(),
            generation_id: -1,
            owned: BTreeSet::new(),
            creations: [0; TOPICS.len() + CHANGING.len()],
            asked_creations: [0; TOPICS.len() + CHANGING.len()],
            led: None,
            has_assigned: false,
            refusal: None,
            reads_on: plan.reads_on,
            given_up: BTreeSet::new(),
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

    /// It does not run, or not yet.
    pub(crate) fn is_away(&self) -> bool {
        self.phase == Phase::Away
    }

    /// It sees whatever of its group's topics changes.
    pub(crate) fn leads(&self) -> bool {
        self.led.is_some() && self.has_assigned
    }

    /// When it comes if it is away.
    pub(crate) fn comes_at(&mut self) -> &mut u64 {
        &mut self.not_before_ms
    }

    /// What it reads from.
    pub(crate) fn reads(&self) -> BTreeSet<Place> {
        let owned = self
            .owned
            .iter()
            .map(|(topic, number)| (*topic, self.creations[*topic], *number));
        owned.chain(self.given_up.iter().copied()).collect()
    }

    /// Whether in its group everybody's partitions are left to it until it gives them up.
    pub(crate) fn is_of_cooperative_group(&self) -> bool {
        self.protocols[0] == COOPERATIVE
    }

    /// Whether it keeps what it has while it joins.
    fn is_cooperative(&self) -> bool {
        self.protocols == [COOPERATIVE]
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
            Phase::Sync(assignments) => {
                self.asked_creations = std::array::from_fn(|topic| around.picture.creation(topic));
                self.sync(assignments)
            }
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
            self.topics = BTreeSet::from([*around.rng.pick(&self.all_topics), *around.rng.pick(&self.all_topics)]);
            self.rack = *around.rng.pick(&RACKS);
            self.rejoin(around.now_ms);
            return self.join();
        }
        let has_changed = |(topic, count): &(usize, i32)| around.picture.count(*topic) != *count;
        if self.led.as_ref().is_some_and(|led| led.iter().any(has_changed)) {
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
        if !self.is_cooperative() {
            self.give_all_up();
        }
        let protocol = |name: &&str| Protocol {
            name: (*name).into(),
            metadata: subscription(&self.topics, &self.owned, self.generation_id, self.rack),
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

    pub(crate) fn begin_anew(&mut self, at_ms: u64) {
        self.generation_id = -1;
        self.forget();
        self.given_up.clear();
        self.led = None;
        self.phase = Phase::Away;
        self.not_before_ms = at_ms;
    }

    /// It is no member any more: what it had others may have.
    pub(crate) fn forget(&mut self) {
        self.member_id = "".into();
        self.owned.clear();
    }

    fn give_all_up(&mut self) {
        if self.reads_on {
            self.given_up = self.reads();
        }
        self.owned.clear();
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

    pub(crate) fn after_commit(&mut self, now_ms: u64) {
        if self.phase == Phase::Revoke {
            self.rejoin(now_ms);
        }
    }

    pub(crate) fn rejoin(&mut self, at_ms: u64) {
        if !self.is_cooperative() {
            self.give_all_up();
        }
        self.phase = Phase::Join;
        self.not_before_ms = at_ms;
    }
}
