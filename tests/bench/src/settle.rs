//! New consumer groups: how long it takes from the first join until every member has its final partitions and has said so, and how
//! many heartbeats that takes.
//!
//! All members join at once, each over a connection of its own, and go on as stock clients do ([`Consumer`]). They have a broker of
//! their own, whose ten thousand partitions would cost the other works' broker time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use convoke_support::Result;
use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, TopicName};
use mio::{Events, Poll, Token};

use crate::caller::Caller;
use crate::consumer::{self, Consumer, HEARTBEAT};
use crate::link::SCRATCH_SIZE;
use crate::messages::{self, topic_name};
use crate::options::Options;
use crate::results::{Results, Row, Sample};
use crate::rig::{Rig, Route};
use crate::usage;
use crate::wire::{Client, accepted, decode, frame};
use crate::work::Figure;

/// Topics of each group; every member is subscribed to all of them.
pub const TOPICS: usize = 10;

const LIMIT: Duration = Duration::from_secs(120);

/// A size of group, and of what it shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    pub members: usize,
    /// Of each topic.
    pub partitions: usize,
}

impl Case {
    /// Those that aims are set for.
    pub const LARGE: [Self; 2] = [Self::new(1_000, 100), Self::new(1_000, 1_000)];
    pub const ALL: [Self; 4] = [
        Self::new(100, 100),
        Self::LARGE[0],
        Self::new(100, 1_000),
        Self::LARGE[1],
    ];

    const fn new(members: usize, partitions: usize) -> Self {
        Self { members, partitions }
    }

    /// How many partitions a member has in the end.
    const fn share(self) -> RangeInclusive<usize> {
        let all = self.all_partitions();
        all / self.members..=all.div_ceil(self.members)
    }

    const fn all_partitions(self) -> usize {
        TOPICS * self.partitions
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} members, {TOPICS} topics of {} partitions",
            self.members, self.partitions
        )
    }
}

impl Row for Case {
    fn key(self) -> String {
        format!("{}_members_{}_partitions", self.members, self.all_partitions())
    }

    fn title(self) -> String {
        self.to_string()
    }
}

/// Lets a group of each size settle at each coordinator in each round, and once more before.
///
/// # Errors
/// When something does not start, or a group does not settle within two minutes.
pub fn measure(options: &Options) -> Result<Results<Case>> {
    let mut results = Results::default();
    let routes = options.coordinators();
    eprintln!("starting a broker with {} partitions", partitions_of_all_cases());
    let mut rig = Rig::start(&options.program, &options.set, &routes, &[])?;
    let mut broker = Client::connect(rig.address(Route::Direct)?)?;
    let sizes = BTreeSet::from(Case::ALL.map(|case| case.partitions));
    let topics = sizes
        .into_iter()
        .map(|size| Ok((size, create_topics(&mut broker, size)?)));
    let topics: BTreeMap<usize, Vec<TopicName>> = topics.collect::<Result<_>>()?;
    for round in 0..=options.rounds {
        eprintln!("settling groups, round {round} of {}", options.rounds);
        for case in Case::ALL {
            let mut routes = routes.clone();
            let first = round as usize % routes.len().max(1);
            routes.rotate_left(first);
            for route in routes {
                let group_id = format!("bench-settle-{}-{}-{round}", route.name(), case.key());
                let (address, server) = (rig.address(route)?, rig.process_id(route)?);
                let sample = Group::connect(address, case, &group_id, &topics[&case.partitions])
                    .and_then(|group| group.measure(address, server))
                    .map_err(|error| format!("{case}, on the route {}: {error}", route.name()))?;
                if round > 0 {
                    results.record(case, route, sample);
                }
            }
        }
    }
    Ok(results)
}

/// Topics of so many partitions each, as many as a group has.
///
/// # Errors
/// When the broker does not create them.
pub fn create_topics(client: &mut Client, partitions: usize) -> Result<Vec<TopicName>> {
    (0..TOPICS)
        .map(|number| {
            let name = format!("bench-settle-{partitions}-{number}");
            messages::create_topic(client, &name, i32::try_from(partitions)?, &[])?;
            Ok(topic_name(&name))
        })
        .collect()
}

/// The members of a group that has settled. They say nothing from then on.
///
/// # Errors
/// When it does not settle within two minutes.
pub fn settled(address: SocketAddr, case: Case, group_id: &str, topics: &[TopicName]) -> Result<Vec<Consumer>> {
    let mut group = Group::connect(address, case, group_id, topics)?;
    group.settle()?;
    group.verify(address)?;
    Ok(group.actors.into_iter().map(|actor| actor.consumer).collect())
}

fn partitions_of_all_cases() -> usize {
    let mut sizes = Case::ALL.map(Case::all_partitions).to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.iter().sum()
}

#[derive(Debug)]
struct Group {
    case: Case,
    poll: Poll,
    events: Events,
    scratch: Vec<u8>,
    actors: Vec<Actor>,
    /// When the members that rest beat again.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    heartbeats: u32,
    settled: usize,
}

#[derive(Debug)]
struct Actor {
    caller: Caller,
    consumer: Consumer,
    asked: Instant,
    is_waiting: bool,
    is_settled: bool,
    is_leaving: bool,
}

impl Group {
    fn connect(address: SocketAddr, case: Case, group_id: &str, topics: &[TopicName]) -> Result<Self> {
        let poll = Poll::new()?;
        let mut actors = Vec::with_capacity(case.members);
        for number in 0..case.members {
            actors.push(Actor {
                caller: Caller::connect(address, poll.registry(), Token(number))?,
                consumer: Consumer::new(group_id, number, topics.to_vec()),
                asked: Instant::now(),
                is_waiting: false,
                is_settled: false,
                is_leaving: false,
            });
        }
        Ok(Self {
            case,
            poll,
            events: Events::with_capacity(case.members),
            scratch: vec![0; SCRATCH_SIZE],
            actors,
            due: BinaryHeap::new(),
            heartbeats: 0,
            settled: 0,
        })
    }

    /// Has everyone join, and leave once all is settled; `server` is the process whose CPU counts.
    fn measure(mut self, address: SocketAddr, server: u32) -> Result<Sample> {
        let cpu_before = usage::cpu(server)?;
        let took = self.settle()?;
        let used = usage::cpu(server)?.since(cpu_before).total();
        self.verify(address)?;
        let heartbeats = f64::from(self.heartbeats);
        self.leave()?;
        Ok([
            (Figure::SettleMs, took.as_secs_f64() * 1e3),
            (Figure::SettleCpuMs, used.as_secs_f64() * 1e3),
            (Figure::Heartbeats, heartbeats),
        ]
        .into())
    }

    fn settle(&mut self) -> Result<Duration> {
        let started = Instant::now();
        (0..self.actors.len()).try_for_each(|number| self.beat(number))?;
        while self.settled < self.actors.len() {
            if started.elapsed() > LIMIT {
                return Err(format!("{} members have settled after {LIMIT:?}", self.settled).into());
            }
            let due = self.due.peek().map(|&Reverse((due, _))| due);
            let pause = due.map_or(LIMIT, |due| due.saturating_duration_since(Instant::now()));
            for (number, response) in self.answers(pause)? {
                self.answered(number, response)?;
            }
            while let Some(&Reverse((due, number))) = self.due.peek()
                && due <= Instant::now()
            {
                self.due.pop();
                self.beat(number)?;
            }
        }
        Ok(started.elapsed())
    }

    fn verify(&self, address: SocketAddr) -> Result<()> {
        let members: Vec<&Consumer> = self.actors.iter().map(|actor| &actor.consumer).collect();
        consumer::verify_settled(&mut Client::connect(address)?, &members, self.case.all_partitions())
    }

    fn beat(&mut self, number: usize) -> Result<()> {
        self.heartbeats += 1;
        let actor = &mut self.actors[number];
        actor.ask(&actor.consumer.heartbeat())
    }

    fn answered(&mut self, number: usize, response: ConsumerGroupHeartbeatResponse) -> Result<()> {
        let actor = &mut self.actors[number];
        let pause = actor.consumer.answered(response)?;
        let was_settled = actor.is_settled;
        let owned = actor.consumer.acknowledged();
        actor.is_settled = owned.is_some_and(|owned| self.case.share().contains(&owned));
        self.settled = self.settled + usize::from(actor.is_settled) - usize::from(was_settled);
        if pause.is_zero() {
            return self.beat(number);
        }
        self.due.push(Reverse((actor.asked + pause, number)));
        Ok(())
    }

    /// Nobody is left behind whose session would end in another round.
    fn leave(&mut self) -> Result<()> {
        self.actors.iter_mut().try_for_each(Actor::leave_if_free)?;
        let mut staying = self.actors.len();
        while staying > 0 {
            let answers = self.answers(LIMIT)?;
            if self.events.is_empty() {
                return Err(format!("{staying} members have not left after {LIMIT:?}").into());
            }
            for (number, response) in answers {
                let actor = &mut self.actors[number];
                if actor.is_leaving {
                    accepted(response.error_code).map_err(|error| format!("leaving: {error}"))?;
                    staying -= 1;
                } else {
                    actor.leave_if_free()?;
                }
            }
        }
        Ok(())
    }

    /// What has come within the time, by the members' numbers.
    fn answers(&mut self, within: Duration) -> Result<Vec<(usize, ConsumerGroupHeartbeatResponse)>> {
        self.poll.poll(&mut self.events, Some(within))?;
        let mut answers = Vec::new();
        for event in &self.events {
            let number = event.token().0;
            let actor = &mut self.actors[number];
            if event.is_writable() {
                actor.caller.flush()?;
            }
            if event.is_readable()
                && let Some(answer) = actor.caller.receive(&mut self.scratch)?
            {
                actor.is_waiting = false;
                answers.push((number, decode::<ConsumerGroupHeartbeatRequest>(answer, HEARTBEAT)?));
            }
        }
        Ok(answers)
    }
}

impl Actor {
    fn ask(&mut self, request: &ConsumerGroupHeartbeatRequest) -> Result<()> {
        self.asked = Instant::now();
        self.is_waiting = true;
        Ok(self.caller.ask(frame(request, HEARTBEAT)?)?)
    }

    /// A member that has a heartbeat under way leaves after the answer.
    fn leave_if_free(&mut self) -> Result<()> {
        if self.is_waiting {
            return Ok(());
        }
        self.is_leaving = true;
        self.ask(&self.consumer.leave())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_can_be_shared_out_without_a_rest() {
        // Else a member could have its share before the last one has joined.
        for case in Case::ALL {
            assert_eq!(case.all_partitions() % case.members, 0, "{case}");
        }
    }
}
