//! The same conversations with Kafka's own coordinator and with Convoke, and every field of the answers.
//!
//! A world is a real broker and Convoke in front of it. Scripted conversations and random ones, made from a seed, are held with
//! both; ids, addresses and the order of hash maps apart, the answers have to be the same, or stand in [`accepted`] with a
//! reason. One that differs is made as short as it gets and printed.
//!
//! One node is enough. Which node coordinates a group, and what the others say of it (NOT_COORDINATOR), is the cluster's affair on
//! the broker's side; behind Convoke every node's address is answered by the one coordinator that there is, which FindCoordinator
//! names whichever node is asked. A client that goes where it was told to hears the same on one node and on three, and one that
//! does not is refused by a broker and answered by Convoke: nothing that could be compared. That stock clients find Convoke's
//! groups at three nodes is tried with them, in `tests/clients`.
//!
//! Without arguments a fixed set of seeds is run. `--forever` goes on from `--seed` (default: the clock) until something differs;
//! `--count N` stops after so many; `--broker VERSION` and `--kind NAME` pick some; `--times N` holds each of them so often.

mod accepted;
mod actor;
mod admin;
mod answers;
mod assignment;
mod change;
mod clean_up;
mod connection;
mod conversation;
mod generate;
mod names;
mod probe;
mod requests;
mod run;
mod scripts;
mod seen;
mod shrink;
mod step;
mod transcript;
mod world;

use std::process::ExitCode;

use run::Plan;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        println!("conversations: test");
        return ExitCode::SUCCESS;
    }
    let result = match Plan::from_arguments(&arguments) {
        Ok(plan) => run::run(&plan).await,
        Err(error) => Err(error),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
