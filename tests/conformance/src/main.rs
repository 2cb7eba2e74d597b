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

use crate::table::Class;
use crate::verdict::Verdict;

/// Some of Kafka's tests count on steps that follow each other within a moment, which a busy machine does not always grant. So
/// few methods are tried again, by themselves; the table says which needed it.
const SECOND_TRIES: usize = 5;

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
    let selection: Vec<_> = classes.iter().map(Class::selection).collect();
    let mut results = maven::run(convoke.as_deref(), options.forks, &selection)?;
    let listed = if options.direct { Vec::new() } else { table::listed()? };
    let failed = verdict::failed_methods(&listed, &results);
    if (1..=SECOND_TRIES).contains(&failed.len()) {
        println!("a second try, one after the other: {}", failed.join(", "));
        results.take_second_try(maven::run(convoke.as_deref(), 1, &failed)?);
    }
    if options.direct {
        results.requests.clear();
    }
    Ok(verdict::judge(&classes, &listed, &results))
}
