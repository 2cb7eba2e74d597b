//! Stock clients against real brokers, through Convoke.
//!
//! Each scenario is written once, against the line protocol of `PROTOCOL.md`, and runs for each client. Trials run one after
//! the other on one cluster for each upstream version; groups and topics are each trial's own. `CONVOKE_TEST_DIRECT=1` runs
//! the scenarios against the brokers themselves, which shows that the scenario is right and what the brokers answer.

mod cluster_wide;
mod member;
mod scenario;
mod stage;
mod stock;
mod tools;

use std::process::ExitCode;
use std::time::Instant;

use convoke_support::Result;
use convoke_support::kafka::Options;

use stage::Stage;
use stock::Stock;

/// What a trial does on its stage.
type Scenario = Box<dyn Fn(&mut Stage) -> Result<()>>;

/// One trial of a stage.
struct Trial {
    name: String,
    run: Scenario,
}

impl Trial {
    fn new(name: impl Into<String>, run: impl Fn(&mut Stage) -> Result<()> + 'static) -> Self {
        Self {
            name: name.into(),
            run: Box::new(run),
        }
    }
}

/// A cluster and what is tried on it.
struct Plan {
    name: &'static str,
    options: Options,
    trials: Vec<Trial>,
}

fn main() -> ExitCode {
    let filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    if std::env::args().any(|argument| argument == "--list") {
        for plan in plans() {
            plan.trials
                .iter()
                .for_each(|trial| println!("{}::{}: test", plan.name, trial.name));
        }
        return ExitCode::SUCCESS;
    }
    let (mut passed, mut failed) = (0, Vec::new());
    for plan in plans() {
        run(plan, &filters, &mut passed, &mut failed);
    }
    for (name, error) in &failed {
        println!("\n---- {name}\n{error}");
    }
    let verdict = if failed.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {passed} passed; {} failed; 0 ignored; 0 measured; 0 filtered out",
        failed.len()
    );
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run(plan: Plan, filters: &[String], passed: &mut usize, failed: &mut Vec<(String, String)>) {
    let chosen: Vec<_> = plan
        .trials
        .into_iter()
        .map(|trial| (format!("{}::{}", plan.name, trial.name), trial))
        .filter(|(name, _)| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str())))
        .collect();
    if chosen.is_empty() {
        return;
    }
    let mut stage = match Stage::start(plan.options) {
        Ok(stage) => stage,
        Err(error) => {
            failed.push((plan.name.to_owned(), error.to_string()));
            return;
        }
    };
    for (name, trial) in chosen {
        let began = Instant::now();
        let result = stage.prepare().and_then(|()| (trial.run)(&mut stage));
        let seconds = began.elapsed().as_secs_f32();
        match result {
            Ok(()) => {
                println!("test {name} ... ok ({seconds:.1} s)");
                *passed += 1;
            }
            Err(error) => {
                println!("test {name} ... FAILED ({seconds:.1} s)");
                failed.push((name, format!("{error}\n{}", stage.report())));
            }
        }
    }
}

fn plans() -> Vec<Plan> {
    let newest = Options::new("4.4.0");
    let mut plans = vec![
        Plan {
            name: "on 4.4.0",
            options: newest.clone(),
            trials: newest_trials(),
        },
        Plan {
            name: "on 3.8.1",
            options: Options::new("3.8.1"),
            trials: older_trials(),
        },
        Plan {
            name: "on 4.1.1",
            options: Options::new("4.1.1"),
            trials: older_trials(),
        },
        Plan {
            name: "with SASL on 4.4.0",
            options: newest.clone().sasl(),
            trials: cluster_wide::sasl(),
        },
        Plan {
            name: "on three nodes of 4.4.0",
            options: newest.nodes(3),
            trials: cluster_wide::three_nodes(),
        },
    ];
    if stage::direct() {
        plans
            .iter_mut()
            .for_each(|plan| plan.trials.retain(|trial| !trial.name.contains("Convoke")));
    }
    plans
}

/// Everything, for every client.
fn newest_trials() -> Vec<Trial> {
    let mut trials: Vec<_> = Stock::ALL.into_iter().flat_map(scenario::all).collect();
    trials.extend(cluster_wide::one_node());
    trials.extend(tools::all(&["4.4.0", "3.8.1"]));
    trials
}

/// What differs most between brokers: versions, features, the import.
fn older_trials() -> Vec<Trial> {
    let mut trials: Vec<_> = Stock::ALL.into_iter().flat_map(scenario::essentials).collect();
    trials.extend(tools::all(&["4.4.0"]));
    trials
}
