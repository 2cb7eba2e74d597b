//! Stock clients against real brokers, through Convoke.
//!
//! Each scenario is written once, against the line protocol of `PROTOCOL.md`, and runs for each client. A plan has a cluster of
//! its own, its trials run one after the other, and two plans run at the same time (`CONVOKE_TEST_JOBS` for more or fewer);
//! groups and topics are each trial's own. `CONVOKE_TEST_DIRECT=1` runs the scenarios against the brokers themselves, which
//! shows that the scenario is right and what the brokers answer.

mod admin;
mod admin_calls;
mod cluster_wide;
mod group_configs;
mod member;
mod mixed;
mod other_groups;
mod scenario;
mod stage;
mod tools;

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use convoke_support::Result;
use convoke_support::kafka::Options;
use convoke_support::stock;

use stage::Stage;
use stock::Stock;

/// What a trial does on its stage.
type Scenario = Box<dyn Fn(&mut Stage) -> Result<()> + Send>;

/// One trial of a stage.
struct Trial {
    name: String,
    run: Scenario,
}

impl Trial {
    fn new(name: impl Into<String>, run: impl Fn(&mut Stage) -> Result<()> + Send + 'static) -> Self {
        Self {
            name: name.into(),
            run: Box::new(run),
        }
    }

    /// One of a client.
    fn of(stock: Stock, what: &str, run: fn(&mut Stage, Stock) -> Result<()>) -> Self {
        Self::new(format!("{}: {what}", stock.name()), move |stage| run(stage, stock))
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
    let outcome = run_all(&filters);
    for name in &outcome.failed {
        println!("failed, and why is said above: {name}");
    }
    let verdict = if outcome.failed.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {} passed; {} failed; 0 ignored; 0 measured; 0 filtered out",
        outcome.passed,
        outcome.failed.len()
    );
    if outcome.failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What came of the trials so far.
#[derive(Default)]
struct Outcome {
    passed: usize,
    failed: Vec<String>,
}

impl Outcome {
    fn note(&mut self, name: &str, began: Instant, result: Result<(), String>) {
        let seconds = began.elapsed().as_secs_f32();
        match result {
            Ok(()) => {
                println!("test {name} ... ok ({seconds:.1} s)");
                self.passed += 1;
            }
            Err(error) => {
                println!("test {name} ... FAILED ({seconds:.1} s)\n{error}");
                self.failed.push(name.to_owned());
            }
        }
    }
}

fn run_all(filters: &[String]) -> Outcome {
    let jobs = std::env::var("CONVOKE_TEST_JOBS")
        .ok()
        .and_then(|jobs| jobs.parse().ok());
    let (waiting, outcome) = (Mutex::new(plans().into_iter()), Mutex::new(Outcome::default()));
    std::thread::scope(|scope| {
        for _ in 0..jobs.unwrap_or(2) {
            scope.spawn(|| {
                let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
                while let Some(plan) = next() {
                    run(plan, filters, &outcome);
                }
            });
        }
    });
    outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn run(plan: Plan, filters: &[String], outcome: &Mutex<Outcome>) {
    let chosen: Vec<_> = plan
        .trials
        .into_iter()
        .map(|trial| (format!("{}::{}", plan.name, trial.name), trial))
        .filter(|(name, _)| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str())))
        .collect();
    if chosen.is_empty() {
        return;
    }
    let note = |name: &str, began, result| {
        let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.note(name, began, result);
    };
    let began = Instant::now();
    let mut stage = match Stage::start(plan.options) {
        Ok(stage) => stage,
        Err(error) => return note(plan.name, began, Err(error.to_string())),
    };
    for (name, trial) in chosen {
        let began = Instant::now();
        let result = stage.prepare().and_then(|()| (trial.run)(&mut stage));
        note(
            &name,
            began,
            result.map_err(|error| format!("{error}\n{}", stage.report())),
        );
    }
}

/// The longest first, so that the end is not one plan alone.
fn plans() -> Vec<Plan> {
    let newest = Options::new("4.4.0");
    // Many small steps, each of which a heartbeat has to tell.
    let quick = newest.clone().quick_heartbeats();
    let plan = |name, options: &Options, trials| Plan {
        name,
        options: options.clone(),
        trials,
    };
    let every_scenario = |stocks: &[Stock]| stocks.iter().copied().flat_map(scenario::all).collect();
    let mut plans = vec![
        plan("on 4.4.0", &newest, every_scenario(&[Stock::Java440, Stock::Java381])),
        plan(
            "on 4.4.0",
            &newest,
            every_scenario(&[Stock::Librdkafka, Stock::FranzGo, Stock::KafkaPython]),
        ),
        plan("on 4.4.0", &newest, consumer_group_trials()),
        plan("on 4.4.0", &quick, scenario::external_assignors::all()),
        plan("on 3.8.1", &Options::new("3.8.1"), consumer_group_trials()),
        plan("on 4.4.0", &newest, scenario::leaderless::all()),
        plan("on 4.4.0", &newest, whole_cluster_trials()),
        // These do not tell which groups have settings of their own.
        plan("on 4.0.0", &Options::new("4.0.0"), group_configs::all()),
        plan(
            "on 3.8.1",
            &Options::new("3.8.1"),
            older_trials(&[&[0, 10, 1], &[0, 9]]),
        ),
        plan("on 4.1.1", &Options::new("4.1.1"), older_trials(&[&[1, 0]])),
        plan(
            "on 4.1.1",
            &Options::new("4.1.1").quick_heartbeats(),
            consumer_group_essentials(),
        ),
        plan("with SASL on 4.4.0", &newest.clone().sasl(), cluster_wide::sasl()),
        plan("on three nodes of 4.4.0", &newest.clone().nodes(3), three_node_trials()),
    ];
    if stage::direct() {
        plans
            .iter_mut()
            .for_each(|plan| plan.trials.retain(|trial| !trial.name.contains("Convoke")));
    }
    plans
}

/// The consumer protocol, which Convoke has whatever the broker has.
fn consumer_group_trials() -> Vec<Trial> {
    let mut trials: Vec<_> = Stock::CONSUMER
        .into_iter()
        .flat_map(scenario::consumer_groups::all)
        .collect();
    trials.push(Trial::new(
        "kafka-consumer-groups of 4.4.0 shows a consumer group",
        scenario::consumer_groups::tool_shows_the_group,
    ));
    trials.extend(group_configs::all());
    trials
}

/// What of it depends on the broker: topics, takeovers, and what members are told of them. That takes the time of many heartbeats,
/// whose default interval the others keep.
fn consumer_group_essentials() -> Vec<Trial> {
    let essentials = scenario::consumer_groups::essentials;
    Stock::CONSUMER.into_iter().flat_map(essentials).collect()
}

/// What does not belong to one client's library.
fn whole_cluster_trials() -> Vec<Trial> {
    let mut trials = cluster_wide::one_node();
    trials.extend(other_groups::all());
    trials.extend(mixed::all());
    trials.extend(admin_calls::all(&[Stock::Java440, Stock::Java381]));
    trials.extend(scenario::oldest::all(&[&[1, 0], &[2, 0]]));
    trials.extend(tools::all(&["4.4.0", "3.8.1"]));
    trials
}

/// What is spread over nodes.
fn three_node_trials() -> Vec<Trial> {
    let mut trials = cluster_wide::three_nodes();
    trials.push(scenario::external_assignors::on_several_nodes());
    trials
}

/// What differs most between brokers: versions, features, the import. `pinned` are the versions that kafka-python is held to.
fn older_trials(pinned: &[&'static [i64]]) -> Vec<Trial> {
    let mut trials: Vec<_> = Stock::ALL.into_iter().flat_map(scenario::essentials).collect();
    trials.extend(scenario::oldest::all(pinned));
    trials.extend(admin_calls::all(&[Stock::Java440]));
    trials.extend(tools::all(&["4.4.0"]));
    trials
}
