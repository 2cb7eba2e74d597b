//! A running stock client: what it was given, what it read, what it committed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use convoke_support::Result;
use convoke_support::process::Process;
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::stock::Stock;

/// How long a scenario waits for what must come; far above what anything here takes.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Sends `count` values `prefix-0…` to the topic and waits until all are acknowledged.
pub fn produce(stage: &Stage, stock: Stock, topic: &str, partitions: u32, prefix: &str, count: usize) -> Result<()> {
    produce_with(stage, stock, topic, partitions, prefix, count, &json!({}))
}

/// The same, with further keys of the line protocol.
pub fn produce_with(
    stage: &Stage,
    stock: Stock,
    topic: &str,
    partitions: u32,
    prefix: &str,
    count: usize,
    extra: &Value,
) -> Result<()> {
    let config =
        json!({"role": "producer", "topic": topic, "partitions": partitions, "prefix": prefix, "count": count});
    let mut producer = Member::start(stage, stock, merged(config, extra))?;
    producer.until("all is produced", |event, _| event["event"] == "produced")?;
    producer.process.wait(LIMIT)?;
    Ok(())
}

/// `prefix-0` to `prefix-(count-1)`.
pub fn values(prefix: &str, count: usize) -> BTreeSet<String> {
    (0..count).map(|number| format!("{prefix}-{number}")).collect()
}

fn merged(mut base: Value, extra: &Value) -> Value {
    if let (Some(base), Some(extra)) = (base.as_object_mut(), extra.as_object()) {
        base.extend(extra.clone());
    }
    base
}

/// What a member has told so far.
#[derive(Debug, Default)]
pub struct Told {
    pub assignment: BTreeSet<String>,
    /// How often it was given an assignment.
    pub assignments: usize,
    pub revocations: usize,
    /// Values in the order they came.
    pub received: Vec<String>,
    pub committed: BTreeMap<String, i64>,
    /// Records (partition and offset) that were read and then committed while the partition was owned.
    pub done: BTreeSet<(String, i64)>,
    /// Those that were read and are not committed yet.
    read: BTreeSet<(String, i64)>,
    pub errors: Vec<String>,
}

#[derive(Debug)]
pub struct Member {
    pub process: Process,
    next: usize,
    pub told: Told,
}

impl Member {
    /// A consumer of one topic; `extra` are further keys of the line protocol.
    pub fn consumer(stage: &Stage, stock: Stock, group: &str, topic: &str, extra: &Value) -> Result<Self> {
        let config = json!({"role": "consumer", "group": group, "topics": [topic]});
        let mut config = merged(config, extra);
        // Brokers of 3.8 have only the classic protocol: members that are there before Convoke speak it.
        let can_speak_it = config["direct"] != true || stage.brokers_have_consumer_groups();
        if config["protocol"].is_null() && can_speak_it {
            config["protocol"] = json!(stock.protocol());
        }
        Self::start(stage, stock, config)
    }

    /// A client in the role that `config` names.
    pub fn start(stage: &Stage, stock: Stock, config: Value) -> Result<Self> {
        let direct = config["direct"] == true;
        let bootstrap = if direct {
            stage.kafka.bootstrap()
        } else {
            stage.bootstrap()
        };
        let config = merged(
            json!({"bootstrap": bootstrap, "client_id": stock.classic().name().replace(' ', "-")}),
            &config,
        );
        let (program, arguments) = stock.program()?;
        let mut command = if direct {
            stage.kafka.network.command_inside(&program)
        } else {
            stage.command(&program)
        };
        command.args(arguments).arg(config.to_string());
        let role = config["role"].as_str().unwrap_or_default();
        let process = Process::spawn(&format!("{} {role}", stock.name()), command)?;
        Ok(Self {
            process,
            next: 0,
            told: Told::default(),
        })
    }

    /// Reads events until `done` says so.
    ///
    /// # Errors
    /// When the client ends or the time is over first; the message holds what it printed.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&Value, &Told) -> bool) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = self.next_event(left).map_err(|error| {
                format!(
                    "waited until {what}: {error}; so far {:?}\n{}",
                    self.summary(),
                    self.process.report()
                )
            })?;
            if done(&event, &self.told) {
                return Ok(());
            }
        }
    }

    /// Takes in what has come within the time; true when something came.
    pub fn take_in(&mut self, within: Duration) -> bool {
        let mut any = false;
        let mut wait = within;
        while self.next_event(wait).is_ok() {
            any = true;
            wait = Duration::ZERO;
        }
        any
    }

    fn next_event(&mut self, within: Duration) -> Result<Value> {
        let parse = |line: &str| serde_json::from_str::<Value>(line).ok().filter(Value::is_object);
        let (event, next) = self.process.stdout.wait(self.next, within, parse)?;
        self.next = next;
        self.note(&event);
        Ok(event)
    }

    fn note(&mut self, event: &Value) {
        let names = || {
            let names = event["partitions"].as_array().into_iter().flatten();
            names
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect::<BTreeSet<_>>()
        };
        match event["event"].as_str() {
            Some("assigned") => {
                self.told.assignment = names();
                self.told.assignments += 1;
            }
            Some("revoked") => {
                for name in names() {
                    self.told.assignment.remove(&name);
                    self.told.read.retain(|(partition, _)| *partition != name);
                }
                self.told.revocations += 1;
            }
            Some("message") => {
                self.told.received.extend(event["value"].as_str().map(str::to_owned));
                let partition = event["partition"].as_str().map(str::to_owned);
                self.told.read.extend(partition.zip(event["offset"].as_i64()));
            }
            Some("committed") => {
                for (partition, offset) in event["offsets"].as_object().into_iter().flatten() {
                    self.told
                        .committed
                        .insert(partition.clone(), offset.as_i64().unwrap_or_default());
                }
                let (done, read) = std::mem::take(&mut self.told.read)
                    .into_iter()
                    .partition(|(partition, offset)| {
                        let committed = event["offsets"][partition].as_i64();
                        committed.is_some_and(|committed| *offset < committed)
                    });
                self.told.read = read;
                self.told.done.extend::<BTreeSet<_>>(done);
            }
            Some("error") => self.told.errors.extend(event["message"].as_str().map(str::to_owned)),
            _ => {}
        }
    }

    fn summary(&self) -> String {
        let told = &self.told;
        format!(
            "assignment {:?}, {} received, committed {:?}, errors {:?}",
            told.assignment,
            told.received.len(),
            told.committed,
            told.errors
        )
    }

    /// Leaves the group (a static member only closes) and waits for the end.
    pub fn close(&mut self) -> Result<()> {
        self.process
            .send_line("close")
            .map_err(|error| format!("it has ended early: {error}\n{}", self.process.report()))?;
        self.until("it is closed", |event, _| event["event"] == "closed")?;
        self.process.wait(LIMIT).map(drop)
    }

    /// Waits until as many records as `count` are committed over all partitions.
    pub fn until_committed(&mut self, count: i64) -> Result<()> {
        if self.told.committed.values().sum::<i64>() >= count {
            return Ok(());
        }
        self.until(&format!("{count} records are committed"), |_, told| {
            told.committed.values().sum::<i64>() >= count
        })
    }
}

/// Waits until the members own all `partitions` of the topic between them, each some, none two.
pub fn settle(members: &mut [&mut Member], topic: &str, partitions: u32) -> Result<()> {
    let all: BTreeSet<String> = (0..partitions)
        .map(|partition| format!("{topic}-{partition}"))
        .collect();
    let deadline = Instant::now() + LIMIT;
    loop {
        for member in members.iter_mut() {
            member.take_in(Duration::from_millis(20));
        }
        let owned: Vec<&String> = members.iter().flat_map(|member| &member.told.assignment).collect();
        let shared = owned.len() == all.len() && owned.iter().all(|name| all.contains(*name));
        if shared && members.iter().all(|member| !member.told.assignment.is_empty()) {
            return Ok(());
        }
        if Instant::now() > deadline {
            let states: Vec<_> = members.iter().map(|member| member.summary()).collect();
            let report: String = members.iter().map(|member| member.process.report()).collect();
            return Err(format!("the members do not share {topic}: {states:#?}\n{report}").into());
        }
    }
}

/// Waits until the members have read all of `wanted` between them, then says what came more than once.
pub fn read_all(members: &mut [&mut Member], wanted: &BTreeSet<String>) -> Result<Vec<String>> {
    let deadline = Instant::now() + LIMIT;
    loop {
        for member in members.iter_mut() {
            member.take_in(Duration::from_millis(20));
        }
        let got: Vec<&String> = members.iter().flat_map(|member| &member.told.received).collect();
        let distinct: BTreeSet<&String> = got.iter().copied().collect();
        if wanted.iter().all(|value| distinct.contains(value)) {
            let mut once = BTreeSet::new();
            return Ok(got.into_iter().filter(|value| !once.insert(*value)).cloned().collect());
        }
        if Instant::now() > deadline {
            let missing: Vec<_> = wanted
                .iter()
                .filter(|value| !distinct.contains(value))
                .take(5)
                .collect();
            let report: String = members.iter().map(|member| member.process.report()).collect();
            return Err(format!("records are missing, among them {missing:?}\n{report}").into());
        }
    }
}

/// Waits until the members have committed `count` records between them; whoever committed a partition last counts.
pub fn committed_by(members: &mut [&mut Member], count: i64) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    loop {
        for member in members.iter_mut() {
            member.take_in(Duration::from_millis(20));
        }
        let mut newest = BTreeMap::new();
        for (partition, offset) in members.iter().flat_map(|member| &member.told.committed) {
            let known: &mut i64 = newest.entry(partition).or_default();
            *known = (*known).max(*offset);
        }
        if newest.values().sum::<i64>() >= count {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("{count} records were read, committed are {newest:?}").into());
        }
    }
}

/// Each record may be read by several members, where one lost its partition before it had committed; but only one of them
/// commits it: else two owned its partition, or one began before where the other had come to.
pub fn assert_done_once(members: &[&Member]) -> Result<()> {
    let mut done = BTreeSet::new();
    let twice: Vec<_> = members
        .iter()
        .flat_map(|member| &member.told.done)
        .filter(|record| !done.insert(*record))
        .collect();
    if twice.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} records were committed by two members, among them {:?}",
        twice.len(),
        twice.first()
    )
    .into())
}
