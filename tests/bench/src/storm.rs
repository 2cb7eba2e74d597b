//! Five hundred members that join one group at once, and then all again.
//!
//! Each member is a connection that does what a consumer does: JoinGroup (again with the member id that it is given),
//! SyncGroup, the leader with everyone's assignment, then Heartbeat, until a rebalance calls it back. The storm is over
//! when all are stable in one generation.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use convoke_support::Result;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::{
    GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::StrBytes;
use mio::{Events, Poll, Token};

use crate::caller::Caller;
use crate::group::{self, JOIN_GROUP, Member, SYNC_GROUP};
use crate::link::SCRATCH_SIZE;
use crate::messages::{self, HEARTBEAT};
use crate::results::Sample;
use crate::usage;
use crate::wire::{Client, accepted, decode, frame};
use crate::work::Figure;

pub const MEMBERS: usize = 500;

const LEAVE_GROUP: i16 = 5;

/// Consumers wait three seconds; a storm that sees to it sooner shows the coordinator and not the wait.
const HEARTBEAT_PAUSE: Duration = Duration::from_millis(100);

const LIMIT: Duration = Duration::from_secs(60);

/// Runs the storm in a new group and leaves it; `server` is the process whose CPU counts.
///
/// # Errors
/// When a member is refused or the group is not stable within a minute.
pub fn round(address: SocketAddr, server: u32, group_id: &str) -> Result<Sample> {
    let mut storm = Storm::connect(address, group_id)?;
    let mut figures = Sample::new();
    for (wall, cpu) in [
        (Figure::JoinMs, Figure::JoinCpuMs),
        (Figure::RejoinMs, Figure::RejoinCpuMs),
    ] {
        let cpu_before = usage::cpu(server)?;
        figures.insert(wall, storm.rebalance()?.as_secs_f64() * 1e3);
        let used = usage::cpu(server)?.since(cpu_before).total();
        figures.insert(cpu, used.as_secs_f64() * 1e3);
    }
    storm.leave(address)?;
    Ok(figures)
}

#[derive(Debug)]
struct Storm {
    poll: Poll,
    actors: Vec<Actor>,
    /// What members say when they join; another one each time, so that joining again is a change.
    epoch: i32,
}

#[derive(Debug)]
struct Actor {
    caller: Caller,
    member: Member,
    doing: Doing,
}

/// The request that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Join,
    Sync,
    Heartbeat,
    /// None: stable in the member's generation.
    Nothing,
}

impl Storm {
    fn connect(address: SocketAddr, group_id: &str) -> Result<Self> {
        let poll = Poll::new()?;
        let group_id = GroupId(StrBytes::from_string(group_id.to_owned()));
        let mut actors = Vec::with_capacity(MEMBERS);
        for number in 0..MEMBERS {
            actors.push(Actor {
                caller: Caller::connect(address, poll.registry(), Token(number))?,
                member: Member {
                    group_id: group_id.clone(),
                    member_id: StrBytes::default(),
                    generation: -1,
                },
                doing: Doing::Nothing,
            });
        }
        Ok(Self { poll, actors, epoch: 0 })
    }

    /// Has everyone join, and says how long it took until all were stable.
    fn rebalance(&mut self) -> Result<Duration> {
        self.epoch += 1;
        let subscription = group::subscription(self.epoch);
        let started = Instant::now();
        for actor in &mut self.actors {
            actor.join(&subscription)?;
        }
        let mut events = Events::with_capacity(MEMBERS);
        let mut scratch = vec![0; SCRATCH_SIZE];
        let mut next_heartbeats = started + HEARTBEAT_PAUSE;
        while !self.is_stable() {
            if started.elapsed() > LIMIT {
                return Err(format!("{MEMBERS} members are not stable after {LIMIT:?}").into());
            }
            let pause = next_heartbeats.saturating_duration_since(Instant::now());
            self.poll.poll(&mut events, Some(pause))?;
            for event in &events {
                let actor = &mut self.actors[event.token().0];
                if event.is_writable() {
                    actor.caller.flush()?;
                }
                if event.is_readable() {
                    actor.receive(&mut scratch, &subscription)?;
                }
            }
            if Instant::now() >= next_heartbeats {
                next_heartbeats = Instant::now() + HEARTBEAT_PAUSE;
                let mut idle = self.actors.iter_mut().filter(|actor| actor.doing == Doing::Nothing);
                idle.try_for_each(Actor::heartbeat)?;
            }
        }
        Ok(started.elapsed())
    }

    fn is_stable(&self) -> bool {
        let generation = self.actors.first().map(|actor| actor.member.generation);
        self.actors
            .iter()
            .all(|actor| actor.doing == Doing::Nothing && Some(actor.member.generation) == generation)
    }

    fn leave(self, address: SocketAddr) -> Result<()> {
        let group_id = self.actors.first().map(|actor| actor.member.group_id.clone());
        let members = self
            .actors
            .into_iter()
            .map(|actor| MemberIdentity::default().with_member_id(actor.member.member_id));
        let request = LeaveGroupRequest::default()
            .with_group_id(group_id.unwrap_or_default())
            .with_members(members.collect());
        let response = Client::connect(address)?.call(&request, LEAVE_GROUP)?;
        accepted(response.error_code).map_err(|error| format!("LeaveGroup: {error}").into())
    }
}

impl Actor {
    fn join(&mut self, subscription: &Bytes) -> Result<()> {
        let request = group::join_group(&self.member.group_id, &self.member.member_id, subscription);
        self.start(Doing::Join, frame(&request, JOIN_GROUP)?)
    }

    fn heartbeat(&mut self) -> Result<()> {
        let request = frame(&messages::heartbeat(&self.member), HEARTBEAT)?;
        self.start(Doing::Heartbeat, request)
    }

    fn start(&mut self, doing: Doing, request: Vec<u8>) -> Result<()> {
        self.doing = doing;
        Ok(self.caller.ask(request)?)
    }

    /// Goes on after an answer as a consumer would.
    fn receive(&mut self, scratch: &mut [u8], subscription: &Bytes) -> Result<()> {
        let Some(answer) = self.caller.receive(scratch)? else {
            return Ok(());
        };
        match self.doing {
            Doing::Join => {
                let response = decode::<JoinGroupRequest>(answer, JOIN_GROUP)?;
                self.joined(response, subscription)
            }
            Doing::Sync => {
                let code = decode::<SyncGroupRequest>(answer, SYNC_GROUP)?.error_code;
                self.settled("SyncGroup", code, subscription)
            }
            Doing::Heartbeat => {
                let code = decode::<HeartbeatRequest>(answer, HEARTBEAT)?.error_code;
                self.settled("Heartbeat", code, subscription)
            }
            Doing::Nothing => Err("an answer to nothing".into()),
        }
    }

    fn joined(&mut self, response: JoinGroupResponse, subscription: &Bytes) -> Result<()> {
        match ResponseError::try_from_code(response.error_code) {
            Some(ResponseError::MemberIdRequired) => {
                self.member.member_id = response.member_id;
                return self.join(subscription);
            }
            Some(ResponseError::CoordinatorLoadInProgress | ResponseError::RebalanceInProgress) => {
                return self.join(subscription);
            }
            Some(error) => return Err(format!("JoinGroup: {error:?}").into()),
            None => {}
        }
        self.member.member_id = response.member_id;
        self.member.generation = response.generation_id;
        let assignments = if response.leader == self.member.member_id {
            let members = response.members.iter().zip(0..);
            members
                .map(|(member, partition)| group::assignment(&member.member_id, partition))
                .collect()
        } else {
            Vec::new()
        };
        let request = group::sync_group(&self.member, assignments);
        self.start(Doing::Sync, frame(&request, SYNC_GROUP)?)
    }

    fn settled(&mut self, what: &str, code: i16, subscription: &Bytes) -> Result<()> {
        match ResponseError::try_from_code(code) {
            None => {
                self.doing = Doing::Nothing;
                Ok(())
            }
            Some(ResponseError::RebalanceInProgress | ResponseError::IllegalGeneration) => self.join(subscription),
            Some(error) => Err(format!("{what}: {error:?}").into()),
        }
    }
}
