//! Two thousand connections at once.

use std::time::{Duration, Instant};

use convoke_support::Result;
use convoke_support::convoke::Convoke;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::raw::Raw;
use crate::{CONVOKE, eventually, is_retriable, kafka};

const CONNECTIONS: usize = 2_000;
const ROUNDS: i64 = 5;
/// What a connection may take of memory, with what a group of its own takes.
const MEMORY_OF_ONE: f64 = 48.0 * 1024.0;

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
    eventually("the last connection", || Ok(connections()? == CONNECTIONS as f64 + 1.0))?;
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
    let of_one = (resident()? - before) / CONNECTIONS as f64;
    println!(
        "newcomers waited {slowest:?} at most; rounds of {} commits took {rounds:?}, those of the silent {heard:?}; \
         {of_one:.0} bytes a connection",
        CONNECTIONS / 2
    );
    assert!(of_one < MEMORY_OF_ONE, "{of_one:.0} bytes a connection");
    for reason in ["client_stalled", "idle_timeout", "upstream_silent"] {
        let closed = convoke.metric("convoke_connections_closed_total", &[reason])?;
        assert_eq!(closed, 0.0, "{reason}");
    }
    convoke.stop()
}
