//! What goes wrong around a running Convoke: clients that send rubbish, upstreams that stand still or are none, a disk that is
//! full, a port that is taken. Each time: a clear error for who has to mend it, and nobody else notices.

mod catalogue;
mod committers;
mod crashes;
mod crowd;
mod disk;
mod hostile_clients;
mod idle_broker;
mod ports;
mod raw;
mod reauthentication;
mod standstill;
mod stop;
mod swapped_cluster;
mod wrong_upstreams;

use std::process::Command;
use std::time::{Duration, Instant};

use convoke_support::Result;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use convoke_support::process::Process;

/// Long enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
pub const CONVOKE: &str = env!("CARGO_BIN_EXE_convoke");

/// A broker with topic `t`.
pub fn kafka() -> Result<Kafka> {
    let kafka = Kafka::start_in(Network::Loopback, Options::new("4.4.0"))?;
    kafka.create_topic("t", 1)?;
    Ok(kafka)
}

/// `convoke run` in front of this upstream at free ports, with these arguments beside, whether it can be served or not.
pub fn run(data: &std::path::Path, upstream: &str, arguments: &[&str]) -> Result<Process> {
    run_at(data, upstream, "127.0.0.1:0", arguments)
}

/// The same at this address.
pub fn run_at(data: &std::path::Path, upstream: &str, listen: &str, arguments: &[&str]) -> Result<Process> {
    let mut command = Command::new(CONVOKE);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CONVOKE_") {
            command.env_remove(name);
        }
    }
    command.arg("run").arg("--data").arg(data);
    command.args(["--upstream", upstream, "--listen", listen, "--admin", "127.0.0.1:0"]);
    command.args(arguments);
    Process::spawn("convoke", command)
}

/// Waits for a line of the log that holds all of these words.
pub fn wait_for_log(process: &Process, from: usize, words: &[&str]) -> Result<(String, usize)> {
    let wanted = |line: &str| words.iter().all(|word| line.contains(word)).then(|| line.to_owned());
    process
        .stderr
        .wait(from, PATIENCE, wanted)
        .map_err(|error| format!("{error}: {words:?}\n{}", process.report()).into())
}

/// Errors that make a client try again: load in progress, not available, not coordinator.
pub fn is_retriable(error: i16) -> bool {
    [14, 15, 16].contains(&error)
}

/// Tries until it is so; for what cannot be awaited.
pub fn eventually(what: &str, mut wanted: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !wanted()? {
        if Instant::now() > deadline {
            return Err(format!("{what} did not come to be").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
