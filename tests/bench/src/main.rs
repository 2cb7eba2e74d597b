//! `make bench`: what Convoke costs and gives, beside what would be used instead, in one run on one machine.
//!
//! | module | its one job |
//! |---|---|
//! | [`options`] | the command line |
//! | [`work`] | the kinds of work and the figures that they give |
//! | [`rig`], [`haproxy`] | the broker and what stands in front of it |
//! | [`wire`], [`messages`], [`group`], [`consumer`] | requests and answers, members of either protocol |
//! | [`link`], [`caller`], [`expectation`], [`closed_loop`] | a load that costs little and checks every answer |
//! | [`assignors`] | the assignors, beside Kafka's own classes |
//! | [`data_path`], [`coordinator`], [`storm`], [`settle`], [`client_assignor`], [`memory`] | the works |
//! | [`measure`], [`usage`], [`machine`] | what a stretch of work took, and where |
//! | [`results`], [`aims`], [`report`] | medians, aims, tables |
//!
//! Rounds are interleaved, each work on each route in turn, so that whatever else the machine does hits all of them alike.

mod aims;
mod assignors;
mod caller;
mod client_assignor;
mod closed_loop;
mod consumer;
mod coordinator;
mod data_path;
mod expectation;
mod group;
mod haproxy;
mod link;
mod machine;
mod measure;
mod memory;
mod messages;
mod options;
mod report;
mod results;
mod rig;
mod settle;
mod storm;
mod usage;
mod wire;
mod work;

use std::fs;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use convoke_support::Result;

use crate::coordinator::Groups;
use crate::data_path::Topics;
use crate::options::Options;
use crate::report::Report;
use crate::results::{Results, Sample};
use crate::rig::{Rig, Route};
use crate::wire::Client;
use crate::work::Work;

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<()> {
    let started = Instant::now();
    let machine = machine::describe(&options.program, &std::env::temp_dir())?;
    let mut results = Results::default();
    if Work::ALL
        .into_iter()
        .any(|work| work.shares_rig() && options.includes(work))
    {
        with_rig(&options, &mut results)?;
    }
    let settling = if options.includes(Work::Settle) {
        settle::measure(&options)?
    } else {
        Results::default()
    };
    let computing = if options.includes(Work::ClientAssignor) {
        client_assignor::measure(&options)?
    } else {
        Results::default()
    };
    let assignors = if options.includes(Work::Assignors) {
        assignors::measure(options.rounds, &options.coordinators())?
    } else {
        Results::default()
    };
    let report = Report {
        took: started.elapsed(),
        options,
        machine,
        results,
        settling,
        computing,
        assignors,
    };
    let output = &report.options.output;
    fs::create_dir_all(output)?;
    fs::write(
        output.join("results.json"),
        serde_json::to_string_pretty(&report.json())?,
    )?;
    fs::write(output.join("results.md"), report.markdown())?;
    println!("{}", report.markdown());
    eprintln!("written to {0}/results.md and {0}/results.json", output.display());
    Ok(())
}

/// Measures everything for which one set of servers does.
fn with_rig(options: &Options, results: &mut Results) -> Result<()> {
    let started = Instant::now();
    eprintln!("starting Kafka {} and what stands in front of it", rig::KAFKA_VERSION);
    let mut bench = Bench::prepare(options)?;
    // Round 0 is not counted: the broker's JVM compiles in it what the others run.
    for round in 0..=options.rounds {
        eprintln!(
            "round {round} of {} ({} s)",
            options.rounds,
            started.elapsed().as_secs()
        );
        bench.round(round, &mut |work, route, sample| {
            if round > 0 {
                results.record(work, route, sample);
            }
        })?;
    }
    Ok(())
}

/// Produced data goes before it is written back to disk.
const SHORT_LIVED: (&str, &str) = ("log.retention.check.interval.ms", "1000");

struct Bench<'a> {
    options: &'a Options,
    topics: Topics,
    groups: Groups,
    rig: Rig,
}

impl<'a> Bench<'a> {
    fn prepare(options: &'a Options) -> Result<Self> {
        let rig = Rig::start(&options.program, &options.set, &options.routes, &[SHORT_LIVED])?;
        let topics = Topics::prepare(&mut Client::connect(rig.address(Route::Direct)?)?)
            .map_err(|error| format!("cannot prepare the topics: {error}"))?;
        let groups = Groups::prepare(&rig, &options.coordinators(), options.groups)
            .map_err(|error| format!("cannot prepare the groups: {error}"))?;
        Ok(Self {
            options,
            topics,
            groups,
            rig,
        })
    }

    fn round(&mut self, round: u32, record: &mut impl FnMut(Work, Route, Sample)) -> Result<()> {
        for work in Work::ALL {
            if !work.shares_rig() || !self.options.includes(work) {
                continue;
            }
            let mut routes = match work {
                Work::JoinStorm => self.options.coordinators(),
                _ if Work::COORDINATOR.contains(&work) => self.options.coordinators(),
                _ => self.options.routes.clone(),
            };
            // Nobody is always the first after a pause.
            let first = round as usize % routes.len().max(1);
            routes.rotate_left(first);
            for route in routes {
                let sample = self
                    .sample(work, route, round)
                    .map_err(|error| format!("{} on the route {}: {error}", work.title(), route.name()))?;
                if let Some(sample) = sample {
                    record(work, route, sample);
                }
            }
        }
        Ok(())
    }

    fn sample(&mut self, work: Work, route: Route, round: u32) -> Result<Option<Sample>> {
        let address = self.rig.address(route)?;
        let server = self.rig.process_id(route)?;
        let requests = match work {
            Work::Memory => return memory::round(&self.rig, route),
            Work::JoinStorm => {
                return storm::round(address, server, &format!("bench-storm-{}-{round}", route.name())).map(Some);
            }
            _ if Work::COORDINATOR.contains(&work) => self.groups.requests(work, route)?,
            _ => self.topics.requests(work)?,
        };
        measure::closed_loop(address, server, requests, self.options.stretch()).map(Some)
    }
}
