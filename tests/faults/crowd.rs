//! Two thousand connections at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use convoke_support::Result;
use convoke_support::convoke::Convoke;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::{GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, SyncGroupRequest};
use kafka_protocol::protocol::StrBytes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::raw::Raw;
use crate::{CONVOKE, eventually, is_retriable, kafka};

const CONNECTIONS: usize = 2_000;
const ROUNDS: i64 = 5;
/// What a connection may take of memory, with what a group of its own takes.
const MEMORY_OF_ONE: f64 = 48.0 * 1024.0;

/// The shortest session that Kafka allows by default.
const SESSION: Duration = Duration::from_secs(6);

/// A member of a group of its own, with the shortest session there is, that heartbeats while the crowd works.
struct Member {
    client: Raw,
    member_id: StrBytes,
    generation_id: i32,
}

impl Member {
    fn join(address: &str) -> Result<Self> {
        let mut client = Raw::connect(address)?;
        let protocol = JoinGroupRequestProtocol::default().with_name(StrBytes::from_static_str("range"));
        let join = JoinGroupRequest::default()
            .with_group_id(Self::group())
            .with_session_timeout_ms(i32::try_from(SESSION.as_millis())?)
            .with_rebalance_timeout_ms(60_000)
            .with_protocol_type(StrBytes::from_static_str("consumer"))
            .with_protocols(vec![protocol]);
        let mut joined = JoinGroupResponse::default();
        eventually("a member", || {
            joined = client.ask(3, &join)?;
            Ok(joined.error_code == 0)
        })?;
        let sync = SyncGroupRequest::default()
            .with_group_id(Self::group())
            .with_generation_id(joined.generation_id)
            .with_member_id(joined.member_id.clone());
        assert_eq!(client.ask(3, &sync)?.error_code, 0);
        Ok(Self {
            client,
            member_id: joined.member_id,
            generation_id: joined.generation_id,
        })
    }

    fn group() -> GroupId {
        GroupId(StrBytes::from_static_str("small"))
    }

    /// Heartbeats until it is told to stop; the longest that it waited for an answer.
    fn beat(mut self, stop: &AtomicBool) -> Result<Duration> {
        let mut slowest = Duration::ZERO;
        while !stop.load(Ordering::SeqCst) {
            let began = Instant::now();
            let beat = HeartbeatRequest::default()
                .with_group_id(Self::group())
                .with_generation_id(self.generation_id)
                .with_member_id(self.member_id.clone());
            match self.client.ask(3, &beat)?.error_code {
                0 => slowest = slowest.max(began.elapsed()),
                error => return Err(format!("a heartbeat was answered with {error}").into()),
            }
            thread::sleep(SESSION / 12);
        }
        Ok(slowest)
    }
}

/// Each connection is a file descriptor of this process too.
fn raise_file_limit() -> Result<bool> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = CONNECTIONS as u64 + 500;
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(true);
    }
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        eprintln!("not allowed to open {wanted} files: skipped");
        return Ok(false);
    }
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(wanted),
            ..limit
        },
    )?;
    Ok(true)
}

/// Every one of them commits once, all at the same time; how long it took until the last was answered.
fn commit_together(clients: &mut [Raw], offset: i64) -> Result<Duration> {
    let began = Instant::now();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send_commit(&format!("crowd-{number}"), offset)?;
    }
    for (number, client) in clients.iter_mut().enumerate() {
        let mut error = client.receive_commit()?;
        // A thousand groups that are met for the first time at once may have to ask again.
        if is_retriable(error) {
            eventually("a commit", || {
                error = client.commit(&format!("crowd-{number}"), offset)?;
                Ok(!is_retriable(error))
            })?;
        }
        assert_eq!(error, 0, "connection {number}");
    }
    Ok(began.elapsed())
}

#[test]
fn two_thousand_connections_are_all_served_and_those_that_say_nothing_cost_little() -> Result<()> {
    if !raise_file_limit()? {
        return Ok(());
    }
    let kafka = kafka()?;
    let mut convoke = Convoke::start(CONVOKE, &kafka, &[])?;
    let address = convoke.nodes()[&1].clone();
    let mut early = Raw::connect(&address)?;
    assert_eq!(early.commit("early", 1)?, 0);
    let resident = || convoke.metric("process_resident_memory_bytes", &[]);
    let before = resident()?;
    let stop = Arc::new(AtomicBool::new(false));
    let member = Member::join(&address)?;
    let told = Arc::clone(&stop);
    let member = thread::spawn(move || member.beat(&told));

    // Whoever connects is served at once, however many are there and whether they say anything.
    let (mut senders, mut silent) = (Vec::new(), Vec::new());
    let mut slowest = Duration::ZERO;
    for number in 0..CONNECTIONS / 2 {
        silent.push(Raw::connect(&address)?);
        let mut sender = Raw::connect(&address)?;
        let began = Instant::now();
        if number % 50 == 0 {
            assert_eq!(sender.commit("newcomer", 1)?, 0);
            slowest = slowest.max(began.elapsed());
        }
        senders.push(sender);
    }
    let connections = || convoke.metric("convoke_connections", &[]);
    eventually("the last connection", || Ok(connections()? == CONNECTIONS as f64 + 2.0))?;
    let mut rounds = Vec::new();
    for offset in 1..=ROUNDS {
        rounds.push(commit_together(&mut senders, offset)?);
    }
    // Those that were silent are heard when they speak.
    let heard = commit_together(&mut silent, ROUNDS + 1)?;
    assert_eq!(early.commit("early", 2)?, 0);
    for (number, client) in senders.iter_mut().enumerate().step_by(97) {
        assert_eq!(client.committed(&format!("crowd-{number}"))?, Ok(ROUNDS + 1));
    }
    stop.store(true, Ordering::SeqCst);
    let slowest_beat = member.join().map_err(|_| "the member panicked")??;
    assert!(slowest_beat < SESSION / 2, "a heartbeat took {slowest_beat:?}");
    let of_one = (resident()? - before) / CONNECTIONS as f64;
    println!(
        "newcomers waited {slowest:?} at most; rounds of {} commits took {rounds:?}, those of the silent {heard:?}, \
         a member's heartbeats {slowest_beat:?} at most; {of_one:.0} bytes a connection",
        CONNECTIONS / 2
    );
    assert!(of_one < MEMORY_OF_ONE, "{of_one:.0} bytes a connection");
    for reason in ["client_stalled", "idle_timeout", "upstream_silent"] {
        let closed = convoke.metric("convoke_connections_closed_total", &[reason])?;
        assert_eq!(closed, 0.0, "{reason}");
    }
    convoke.stop()
}
