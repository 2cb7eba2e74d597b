//! An external assignor: a process that is in no group, and computes for one.

use convoke::coordinator::partitions::Partitions;
use convoke::coordinator::request::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, Request, Response, Text,
};
use convoke::wire::error_code::ErrorCode;

use crate::client::{REFUSED_MS, RETRY_BACKOFF_MS, Surroundings, Wish};
use crate::computer::{Caller, Computer, Then};
use crate::plan::ExternalPlan;

/// Longer than any message takes and any heartbeat waits.
const REQUEST_TIMEOUT_MS: u64 = 30_000;
const REGISTER: i32 = 0;
const REGISTERED: i32 = 1;
const LEAVE: i32 = -1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Heartbeat,
    Computed,
    Leave,
}

#[derive(Debug)]
pub(crate) struct External {
    group_id: Text,
    name: String,
    timeout_ms: i32,
    pub(crate) computer: Computer,
    /// Ids that it has had.
    ids: u32,
    pub(crate) member_id: Text,
    is_registered: bool,
    /// It waits for its own result, and says nothing meanwhile.
    is_silent: bool,
    sent: Sent,
    not_before_ms: u64,
}

impl External {
    pub(crate) fn new(group_id: &Text, index: usize, plan: &ExternalPlan) -> Self {
        let mut external = Self {
            group_id: group_id.clone(),
            name: format!("{group_id}-x{index}"),
            timeout_ms: plan.computer.timeout_ms,
            computer: Computer::new(&plan.computer),
            ids: 0,
            member_id: "".into(),
            is_registered: false,
            is_silent: false,
            sent: Sent::Leave,
            not_before_ms: plan.start_ms,
        };
        external.take_new_id();
        external
    }

    fn take_new_id(&mut self) {
        self.ids += 1;
        self.member_id = format!("{}-{}", self.name, self.ids).into();
    }

    pub(crate) fn next(&mut self, around: &mut Surroundings<'_>) -> Wish {
        if around.now_ms < self.not_before_ms {
            return Wish::WakeAt(self.not_before_ms);
        }
        if !self.is_registered {
            return self.heartbeat(REGISTER);
        }
        if around.rng.chance(around.faults.client_crash) {
            self.crash(around);
            return Wish::WakeAt(self.not_before_ms);
        }
        if around.rng.chance(around.faults.leave) {
            self.sent = Sent::Leave;
            let request = Request::ConsumerGroupHeartbeat(self.request(LEAVE));
            return Wish::Send(Box::new(request), REQUEST_TIMEOUT_MS);
        }
        if around.rng.chance(around.faults.ask) {
            self.computer.change_mind(around);
        }
        if self.computer.must_tell() {
            return self.heartbeat(REGISTERED);
        }
        let caller = Caller {
            group_id: &self.group_id,
            member_id: &self.member_id,
            epoch: REGISTERED,
        };
        if let Some(request) = self.computer.due(caller, around.now_ms) {
            self.sent = Sent::Computed;
            return Wish::Send(Box::new(request), REQUEST_TIMEOUT_MS);
        }
        match self.computer.done_at_ms() {
            Some(at_ms) if self.is_silent => Wish::WakeAt(at_ms),
            _ => self.heartbeat(REGISTERED),
        }
    }

    fn request(&self, member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            group_id: self.group_id.clone(),
            member_id: self.member_id.clone(),
            member_epoch,
            group_instance_id: None,
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

    fn heartbeat(&mut self, epoch: i32) -> Wish {
        self.sent = Sent::Heartbeat;
        let mut request = self.request(epoch);
        if epoch == REGISTER {
            request.rebalance_timeout_ms = self.timeout_ms;
            request.subscribed_topic_names = Some(Vec::new());
            request.topic_partitions = Some(Partitions::default());
        }
        if epoch == REGISTER || self.computer.must_tell() {
            request.client_assignors = Some(self.computer.says());
        }
        Wish::Send(Box::new(Request::ConsumerGroupHeartbeat(request)), REQUEST_TIMEOUT_MS)
    }

    /// The process dies without a word; the next may have its id.
    pub(crate) fn crash(&mut self, around: &mut Surroundings<'_>) {
        let (low, high) = *around.rng.pick(&[(0, 500), (1_000, 20_000)]);
        let away_ms = around.rng.between(low, high);
        self.begin_anew(around.now_ms + away_ms);
        if around.rng.chance(500) {
            self.take_new_id();
        }
    }

    fn begin_anew(&mut self, at_ms: u64) {
        self.computer.forget();
        self.computer.told(true);
        self.is_registered = false;
        self.not_before_ms = at_ms;
    }

    pub(crate) fn on_lost(&mut self, around: &Surroundings<'_>) {
        self.not_before_ms = around.now_ms + RETRY_BACKOFF_MS;
        match self.sent {
            Sent::Heartbeat if self.is_registered => self.computer.told(false),
            Sent::Heartbeat | Sent::Computed => {}
            Sent::Leave => self.begin_anew(around.now_ms + 1_000),
        }
    }

    pub(crate) fn on_response(&mut self, response: Response, around: &mut Surroundings<'_>) -> Result<(), String> {
        let then = match (self.sent, response) {
            (_, Response::Unavailable { .. }) => {
                self.on_lost(around);
                Then::GoOn
            }
            (Sent::Leave, _) => {
                let away_ms = around.rng.between(0, 20_000);
                self.begin_anew(around.now_ms + away_ms);
                Then::GoOn
            }
            // The group is none of ours any more, or not yet.
            (_, Response::NotOwned) => {
                self.begin_anew(around.now_ms + REFUSED_MS);
                Then::GoOn
            }
            (Sent::Heartbeat, Response::ConsumerGroupHeartbeat(response)) => {
                return self.on_heartbeat(&response, around);
            }
            (Sent::Computed, Response::PrepareAssignment(response)) => {
                self.is_silent = around.rng.chance(500);
                self.computer.on_prepared(&response, around)?
            }
            (Sent::Computed, Response::InstallAssignment { error, error_message }) => {
                self.computer.on_installed(error, error_message.as_ref())?
            }
            (_, response) => return Err(format!("{}: unexpected {response:?}", self.member_id)),
        };
        match then {
            Then::GoOn => {}
            Then::Die => self.crash(around),
            Then::Heartbeat => return Err(format!("{}: its epoch is always the same", self.member_id)),
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
            // Of a full group, who is not known is taken for one more member.
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::GROUP_ID_NOT_FOUND | ErrorCode::GROUP_MAX_SIZE_REACHED
                if self.is_registered =>
            {
                self.begin_anew(around.now_ms + RETRY_BACKOFF_MS);
                return Ok(());
            }
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => {
                self.on_lost(around);
                return Ok(());
            }
            _ => return Err(format!("{}: unexpected {response:?}", self.member_id)),
        }
        if response.member_id.as_ref() != Some(&self.member_id)
            || response.member_epoch != REGISTERED
            || response.assignment.is_some()
        {
            return Err(format!("{}: unexpected {response:?}", self.member_id));
        }
        self.is_registered = true;
        self.computer.told(true);
        self.computer.hear(response.should_compute_assignment, around);
        Ok(())
    }
}
