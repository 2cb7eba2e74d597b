//! `make conformance`: Apache Kafka's own tests, through Convoke.
//!
//! Maven runs the test jars that Kafka publishes, with an agent (`agent/`) that puts a Convoke in front of each cluster that they
//! start. What comes of it is judged here: every case has to run, and to pass or to be listed with a reason, and no request of an
//! owned group may have reached the brokers. `pom.xml` says how a single case is run.

mod maven;
mod requests;
mod results;
mod table;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use convoke_support::Result;

use crate::verdict::Verdict;

/// Apache Kafka's own tests, run through Convoke and judged.
#[derive(Debug, Parser)]
struct Options {
    /// The Convoke to judge.
    #[arg(long, value_name = "PROGRAM", default_value = "target/debug/convoke")]
    convoke: PathBuf,
    /// On plain Kafka, without Convoke: what the cases do by themselves.
    #[arg(long)]
    direct: bool,
    /// So many JVMs share the classes of a run.
    #[arg(long, default_value_t = 3)]
    forks: u32,
    /// Sets (wire, tools, harness, clients) or parts of the names of classes; without any, everything.
    names: Vec<String>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(verdict) => {
            println!("{verdict}");
            if verdict.is_good() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("conformance: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<Verdict> {
    let classes = table::classes(&options.names)?;
    let convoke = if options.direct {
        None
    } else {
        Some(
            options
                .convoke
                .canonicalize()
                .map_err(|error| format!("{}: {error}; cargo build --bin convoke", options.convoke.display()))?,
        )
    };
    let mut results = maven::run(convoke.as_deref(), options.forks, &classes)?;
    if options.direct {
        results.requests.clear();
        return Ok(verdict::judge(&classes, &[], &results));
    }
    Ok(verdict::judge(&classes, &table::listed()?, &results))
}
