//! Assignments that a client-side assignor computes: how many a second pass through Prepare, the assignor and Install, how long each step
//! takes, and how many bytes it is on the wire. Beside it, what a server assignor takes for the same change of the same group.
//!
//! A group has settled, and one more member comes and goes: each time it is to have a new target. The external assignor is in this
//! process. The group's interval between assignments is 0, so that no step waits for anything but its work.

mod placing;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use convoke::wire::api;
use convoke::wire::assignment::heartbeat::{self, ClientAssignor};
use convoke::wire::assignment::install::{InstallAssignmentRequest, InstallAssignmentResponse};
use convoke::wire::assignment::prepare::{PrepareAssignmentRequest, PrepareAssignmentResponse};
use convoke_support::Result;
use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, GroupId, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::consumer::{Consumer, HEARTBEAT, REBALANCE_TIMEOUT_MS};
use crate::options::Options;
use crate::results::{Results, Row, Sample, median};
use crate::rig::{Rig, Route};
use crate::settle;
use crate::usage;
use crate::wire::{Client, LENGTH_SIZE, accepted, decode, decode_own, frame, own_frame};
use crate::work::Figure;

/// The members that stay, and the partitions of each of their topics.
pub const GROUP: settle::Case = settle::Case::LARGE[1];

const GROUP_ID: &str = "bench-client-assignor";
const ASSIGNOR: &str = "bench";
const SERVER_ASSIGNOR: &str = "uniform";

/// A broker's as well as Convoke's.
const NO_INTERVAL: (&str, &str) = ("group.consumer.assignment.interval.ms", "0");

/// Who computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Case {
    ClientAssignor,
    ServerAssignor,
}

impl Case {
    pub const ALL: [Self; 2] = [Self::ClientAssignor, Self::ServerAssignor];
}

impl Row for Case {
    fn key(self) -> String {
        let key = match self {
            Self::ClientAssignor => "client_assignor",
            Self::ServerAssignor => "server_assignor",
        };
        key.to_owned()
    }

    fn title(self) -> String {
        match self {
            Self::ClientAssignor => "an external assignor".to_owned(),
            Self::ServerAssignor => format!("the server assignor {SERVER_ASSIGNOR}"),
        }
    }
}

/// Measures both in each round, and once more before. Brokers have no client-side assignors.
///
/// # Errors
/// When something does not start, or a request is refused.
pub fn measure(options: &Options) -> Result<Results<Case>> {
    let mut results = Results::default();
    if !options.routes.contains(&Route::Convoke) {
        return Ok(results);
    }
    eprintln!("starting a broker for assignments of {GROUP}");
    let mut rig = Rig::start(&options.program, &options.set, &[Route::Convoke], &[NO_INTERVAL])?;
    let topics = settle::create_topics(&mut Client::connect(rig.address(Route::Direct)?)?, GROUP.partitions)?;
    let (address, server) = (rig.address(Route::Convoke)?, rig.process_id(Route::Convoke)?);
    let mut group = Group::settled(address, topics)?;
    for round in 0..=options.rounds {
        eprintln!("computing assignments, round {round} of {}", options.rounds);
        for case in Case::ALL {
            let sample = group
                .measure(case, server, options.stretch())
                .map_err(|error| format!("{}: {error}", case.title()))?;
            if round > 0 {
                results.record(case, Route::Convoke, sample);
            }
        }
    }
    Ok(results)
}

struct Group {
    /// The member by whose wish the assignor is the one or the other.
    chooser: (Client, Consumer),
    guest: Guest,
    external: External,
}

/// A member that comes and goes.
struct Guest {
    client: Client,
    consumer: Consumer,
    is_in: bool,
}

struct External {
    client: Client,
    group_id: StrBytes,
    member_id: StrBytes,
    /// Its heartbeat waits for something to compute.
    waits: bool,
}

/// One computation, in milliseconds and in bytes of whole frames.
#[derive(Debug, Default)]
struct Steps {
    figures: Vec<(Figure, f64)>,
}

impl Group {
    fn settled(address: SocketAddr, topics: Vec<TopicName>) -> Result<Self> {
        let mut members = settle::settled(address, GROUP, GROUP_ID, &topics)?;
        Ok(Self {
            chooser: (Client::connect(address)?, members.swap_remove(0)),
            guest: Guest {
                client: Client::connect(address)?,
                consumer: Consumer::new(GROUP_ID, GROUP.members, topics),
                is_in: false,
            },
            external: External::register(address)?,
        })
    }

    /// Counts whole turns of the guest, so that it comes as often as it goes; `server` is the process whose CPU counts.
    fn measure(&mut self, case: Case, server: u32, stretch: Duration) -> Result<Sample> {
        self.choose(case)?;
        let mut all: Vec<Steps> = Vec::new();
        let cpu_before = usage::cpu(server)?;
        let started = Instant::now();
        while started.elapsed() < stretch || self.guest.is_in {
            all.push(self.change(case)?);
        }
        let elapsed = started.elapsed().as_secs_f64();
        let used = usage::cpu(server)?.since(cpu_before).total().as_secs_f64();
        #[allow(clippy::cast_precision_loss, reason = "counts below 2^53")]
        let count = all.len() as f64;
        let mut sample = Sample::from([
            (Figure::TargetsPerSecond, count / elapsed),
            (Figure::CpuMsPerTarget, used * 1e3 / count),
        ]);
        let figures: Vec<(Figure, f64)> = all.into_iter().flat_map(|steps| steps.figures).collect();
        for &(figure, _) in &figures {
            if !sample.contains_key(&figure) {
                let values = figures.iter().filter(|(of, _)| *of == figure).map(|(_, value)| *value);
                sample.extend(median(values.collect()).map(|value| (figure, value)));
            }
        }
        Ok(sample)
    }

    /// Has one member ask for the assignor, which is enough as nobody asks for another.
    fn choose(&mut self, case: Case) -> Result<()> {
        let name = match case {
            Case::ClientAssignor => ASSIGNOR,
            Case::ServerAssignor => SERVER_ASSIGNOR,
        };
        self.external.wait_for_work()?;
        let (client, consumer) = &mut self.chooser;
        let request = consumer
            .heartbeat()
            .with_server_assignor(Some(StrBytes::from_static_str(name)));
        consumer.answered(client.call(&request, HEARTBEAT)?)?;
        if case == Case::ClientAssignor {
            self.external.told()?;
            self.external.compute(&mut Steps::default())?;
        }
        Ok(())
    }

    /// From a change until its target is durable.
    fn change(&mut self, case: Case) -> Result<Steps> {
        let mut steps = Steps::default();
        if case == Case::ClientAssignor {
            self.external.wait_for_work()?;
        }
        let started = Instant::now();
        self.guest.come_or_go()?;
        if case == Case::ClientAssignor {
            self.external.told()?;
            steps.took(Figure::ToldMs, started);
            self.external.compute(&mut steps)?;
            steps.took(Figure::TargetMs, started);
            self.guest.heard()?;
        } else {
            self.guest.heard()?;
            steps.took(Figure::TargetMs, started);
        }
        Ok(steps)
    }
}

impl Guest {
    fn come_or_go(&mut self) -> Result<()> {
        let request = match self.is_in {
            true => self.consumer.leave(),
            false => self.consumer.heartbeat(),
        };
        self.is_in = !self.is_in;
        self.client.send(&frame(&request, HEARTBEAT)?)
    }

    fn heard(&mut self) -> Result<()> {
        let response = decode::<ConsumerGroupHeartbeatRequest>(&self.client.receive()?, HEARTBEAT)?;
        accepted(response.error_code)
    }
}

impl External {
    fn register(address: SocketAddr) -> Result<Self> {
        let mut external = Self {
            client: Client::connect(address)?,
            group_id: StrBytes::from_static_str(GROUP_ID),
            member_id: StrBytes::from_static_str("bench-assignor"),
            waits: false,
        };
        let assignor = ClientAssignor {
            name: StrBytes::from_static_str(ASSIGNOR),
            ..ClientAssignor::default()
        };
        let mut request = external
            .heartbeat(0)
            .with_rebalance_timeout_ms(REBALANCE_TIMEOUT_MS)
            .with_subscribed_topic_names(Some(Vec::new()))
            .with_topic_partitions(Some(Vec::new()));
        heartbeat::set_client_assignors(&mut request, &[assignor])?;
        accepted(external.client.call(&request, heartbeat::VERSION)?.error_code)?;
        Ok(external)
    }

    fn heartbeat(&self, epoch: i32) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest::default()
            .with_group_id(GroupId(self.group_id.clone()))
            .with_member_id(self.member_id.clone())
            .with_member_epoch(epoch)
    }

    fn wait_for_work(&mut self) -> Result<()> {
        if !self.waits {
            self.client.send(&frame(&self.heartbeat(1), heartbeat::VERSION)?)?;
            self.waits = true;
        }
        Ok(())
    }

    /// Returns when it is to compute.
    fn told(&mut self) -> Result<()> {
        loop {
            self.wait_for_work()?;
            let response = decode::<ConsumerGroupHeartbeatRequest>(&self.client.receive()?, heartbeat::VERSION)?;
            self.waits = false;
            accepted(response.error_code)?;
            if heartbeat::should_compute_assignment(&response)? {
                return Ok(());
            }
        }
    }

    fn compute(&mut self, steps: &mut Steps) -> Result<()> {
        let prepare = PrepareAssignmentRequest {
            group_id: self.group_id.clone(),
            member_id: self.member_id.clone(),
            member_epoch: 1,
        };
        let request = own_frame(api::CONSUMER_GROUP_PREPARE_ASSIGNMENT, &prepare)?;
        let (started, answer) = (Instant::now(), self.client.exchange(&request)?);
        steps.took(Figure::PrepareMs, started);
        steps.passed(
            [Figure::PrepareRequestBytes, Figure::PrepareAnswerBytes],
            &request,
            &answer,
        );

        let started = Instant::now();
        let prepared: PrepareAssignmentResponse = decode_own(answer)?;
        accepted(prepared.error_code)?;
        let install = InstallAssignmentRequest {
            group_id: self.group_id.clone(),
            member_id: self.member_id.clone(),
            member_epoch: 1,
            group_epoch: prepared.group_epoch,
            error: 0,
            members: placing::share(&prepared),
        };
        let request = own_frame(api::CONSUMER_GROUP_INSTALL_ASSIGNMENT, &install)?;
        steps.took(Figure::ComputeMs, started);

        let (started, answer) = (Instant::now(), self.client.exchange(&request)?);
        steps.took(Figure::InstallMs, started);
        steps.passed(
            [Figure::InstallRequestBytes, Figure::InstallAnswerBytes],
            &request,
            &answer,
        );
        let installed: InstallAssignmentResponse = decode_own(answer)?;
        accepted(installed.error_code).map_err(|error| format!("{error}: {:?}", installed.error_message).into())
    }
}

impl Steps {
    fn took(&mut self, figure: Figure, since: Instant) {
        self.figures.push((figure, since.elapsed().as_secs_f64() * 1e3));
    }

    /// An answer comes without the bytes of its length.
    fn passed(&mut self, [asked, answered]: [Figure; 2], request: &[u8], answer: &[u8]) {
        #[allow(clippy::cast_precision_loss, reason = "counts below 2^53")]
        let figures = [
            (asked, request.len() as f64),
            (answered, (answer.len() + LENGTH_SIZE) as f64),
        ];
        self.figures.extend(figures);
    }
}
