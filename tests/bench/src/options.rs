//! The command line of the benchmark.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::rig::Route;
use crate::work::Work;

/// Convoke beside a direct connection, HAProxy in TCP mode and Kafka's own coordinator: one run, interleaved rounds, medians.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench")]
pub struct Options {
    /// The Convoke to measure: a release build.
    #[arg(default_value = "target/release/convoke")]
    pub program: String,

    /// Rounds of which the medians are taken; one more comes before them and is not counted.
    #[arg(long, env = "BENCH_ROUNDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Seconds that each work is measured on each route in each round.
    #[arg(long, env = "BENCH_SECONDS", default_value_t = 3.0, value_parser = seconds)]
    pub seconds: f64,

    /// Only these works.
    #[arg(long, env = "BENCH_ONLY", value_delimiter = ',', value_enum)]
    pub only: Vec<Work>,

    /// Only these routes.
    #[arg(long, env = "BENCH_ROUTES", value_delimiter = ',', value_enum, default_values = ["direct", "haproxy", "convoke"])]
    pub routes: Vec<Route>,

    /// Groups of one member each, and connections, of the coordinator's works.
    #[arg(long, env = "BENCH_GROUPS", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub groups: u32,

    /// A setting of the measured Convoke that is not the default, as its own --set takes it.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Where results.md and results.json are written.
    #[arg(long, env = "BENCH_OUTPUT", default_value = "target/bench")]
    pub output: PathBuf,
}

impl Options {
    #[must_use]
    pub fn includes(&self, work: Work) -> bool {
        self.only.is_empty() || self.only.contains(&work)
    }

    /// How long each work is measured in each round.
    #[must_use]
    pub fn stretch(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// The routes that end in a coordinator.
    #[must_use]
    pub fn coordinators(&self) -> Vec<Route> {
        let routes = self.routes.iter().copied();
        routes.filter(|&route| route != Route::Haproxy).collect()
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds from 0.1 to 600".to_owned()),
    }
}
