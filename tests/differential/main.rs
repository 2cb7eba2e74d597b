//! The same conversations with Kafka's own coordinator and with Convoke, and every field of the answers.
//!
//! A world is a real broker and Convoke in front of it. Scripted conversations and random ones, made from a seed, are held with
//! both; ids, addresses and the order of hash maps apart, the answers have to be the same, or stand in [`accepted`] with a
//! reason. One that differs is made as short as it gets and printed.
//!
//! Without arguments a fixed set of seeds is run. `--forever` goes on from `--seed` (default: the clock) until something differs;
//! `--count N` stops after so many; `--broker VERSION` and `--kind NAME` pick some.

mod accepted;
mod actor;
mod answers;
mod assignment;
mod clean_up;
mod connection;
mod conversation;
mod generate;
mod names;
mod requests;
mod run;
mod scripts;
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
