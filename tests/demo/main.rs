//! `make demo`: a real broker, Convoke in front of it, a producer and a group of two stock consumers, told step by step.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use convoke_support::convoke::Convoke;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use convoke_support::process::Process;
use convoke_support::{Result, jars};

const VERSION: &str = "4.4.0";
const TOPIC: &str = "orders";
const GROUP: &str = "billing";
const PARTITIONS: u32 = 4;
const RECORDS: usize = 20;
const LIMIT: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    let program = std::env::args().nth(1).ok_or("usage: demo PATH-OF-CONVOKE")?;
    step("1. A real broker");
    let kafka = Kafka::start_in(Network::Loopback, Options::new(VERSION))?;
    kafka.create_topic(TOPIC, PARTITIONS)?;
    say(&format!(
        "Apache Kafka {VERSION} serves at {}, with the topic {TOPIC} of {PARTITIONS} partitions.",
        kafka.bootstrap()
    ));

    step("2. Convoke in front of it");
    let mut convoke = Convoke::start(&program, &kafka, &[])?;
    say(&format!(
        "Clients connect to {} instead; node 1 is {}.",
        convoke.bootstrap(),
        convoke.nodes()[&1]
    ));

    step("3. A group of two stock consumers (Kafka's own console consumer)");
    let mut first = Consumer::start(&convoke, "consumer-1")?;
    wait_for_members(&convoke, 1)?;
    let mut second = Consumer::start(&convoke, "consumer-2")?;
    wait_for_members(&convoke, 2)?;
    show_group(&convoke)?;

    step("4. A producer sends through Convoke, the group reads");
    produce(&convoke, "first")?;
    report(&read(&mut [&mut first, &mut second], "first")?);

    step("5. consumer-2 leaves");
    second.leave()?;
    wait_for_members(&convoke, 1)?;
    show_group(&convoke)?;
    produce(&convoke, "second")?;
    report(&read(&mut [&mut first], "second")?);

    step("6. consumer-2 comes back");
    let mut second = Consumer::start(&convoke, "consumer-2")?;
    wait_for_members(&convoke, 2)?;
    show_group(&convoke)?;
    produce(&convoke, "third")?;
    report(&read(&mut [&mut first, &mut second], "third")?);

    step("7. Convoke is killed (kill -9) and started again on its data");
    let generation = generation(&convoke)?;
    convoke.kill();
    convoke.restart(&kafka)?;
    produce(&convoke, "fourth")?;
    report(&read(&mut [&mut first, &mut second], "fourth")?);
    wait_for_members(&convoke, 2)?;
    if self::generation(&convoke)? == generation {
        say("The group went on as it was, without a rebalance.");
    }
    show_group(&convoke)?;

    step("8. What Convoke counted since it was started again");
    let (_, page) = convoke.get("/metrics")?;
    let shown = [
        "convoke_group_members",
        "convoke_offsets_committed_total",
        "convoke_connections",
        "convoke_upstream_up",
    ];
    page.lines()
        .filter(|line| line.split(['{', ' ']).next().is_some_and(|name| shown.contains(&name)))
        .for_each(say);

    first.leave()?;
    second.leave()?;
    convoke.stop()?;
    step("Done: everything that was started has ended.");
    Ok(())
}

fn step(text: &str) {
    println!("\n{text}");
}

fn say(text: &str) {
    println!("   {text}");
}

fn java(class: &str) -> Result<Command> {
    let mut command = Command::new("java");
    command.args(["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"]);
    command.arg(jars::kafka(VERSION)?.join("*")).arg(class);
    Ok(command)
}

fn produce(convoke: &Convoke, prefix: &str) -> Result<()> {
    let mut command = java("org.apache.kafka.tools.ConsoleProducer")?;
    command.args(["--bootstrap-server", &convoke.bootstrap(), "--topic", TOPIC]);
    // Each record for itself, so that the partitions get their share.
    command.args([
        "--command-property",
        "partitioner.ignore.keys=true",
        "--command-property",
        "batch.size=0",
    ]);
    let mut producer = Process::spawn("console producer", command)?;
    for number in 0..RECORDS {
        producer.send_line(&format!("{prefix}-{number}"))?;
    }
    producer.end_of_input();
    let status = producer.wait(LIMIT)?;
    if status.success() {
        Ok(())
    } else {
        Err(producer.report().into())
    }
}

/// A console consumer and what it has printed.
struct Consumer {
    name: &'static str,
    process: Process,
    next: usize,
    read: BTreeSet<String>,
}

impl Consumer {
    fn start(convoke: &Convoke, name: &'static str) -> Result<Self> {
        let mut command = java("org.apache.kafka.tools.consumer.ConsoleConsumer")?;
        command.args([
            "--bootstrap-server",
            &convoke.bootstrap(),
            "--topic",
            TOPIC,
            "--group",
            GROUP,
        ]);
        for property in [
            "auto.offset.reset=earliest",
            "auto.commit.interval.ms=100",
            &format!("client.id={name}"),
        ] {
            command.args(["--command-property", property]);
        }
        let process = Process::spawn(name, command)?;
        Ok(Self {
            name,
            process,
            next: 0,
            read: BTreeSet::new(),
        })
    }

    fn take_in(&mut self) {
        let line = |line: &str| (!line.is_empty()).then(|| line.to_owned());
        while let Ok((value, next)) = self.process.stdout.wait(self.next, Duration::from_millis(20), line) {
            self.next = next;
            self.read.insert(value);
        }
    }

    /// SIGTERM makes the console consumer leave its group and end.
    fn leave(&mut self) -> Result<()> {
        self.process.terminate();
        self.process.wait(LIMIT).map(drop)
    }
}

/// Waits until the consumers have read every record of that prefix; says how many each read.
fn read(consumers: &mut [&mut Consumer], prefix: &str) -> Result<Vec<(&'static str, usize)>> {
    let deadline = std::time::Instant::now() + LIMIT;
    loop {
        consumers.iter_mut().for_each(|consumer| consumer.take_in());
        let count = |consumer: &Consumer| consumer.read.iter().filter(|value| value.starts_with(prefix)).count();
        let counts: Vec<_> = consumers
            .iter()
            .map(|consumer| (consumer.name, count(consumer)))
            .collect();
        if counts.iter().map(|(_, count)| count).sum::<usize>() >= RECORDS {
            return Ok(counts);
        }
        if std::time::Instant::now() > deadline {
            return Err(format!("only {counts:?} of {RECORDS} records were read").into());
        }
    }
}

fn report(counts: &[(&'static str, usize)]) {
    let parts: Vec<_> = counts
        .iter()
        .map(|(name, count)| format!("{name} read {count}"))
        .collect();
    say(&format!("{RECORDS} records sent; {}.", parts.join(", ")));
}

/// Waits until the group is stable with that many members.
fn wait_for_members(convoke: &Convoke, members: usize) -> Result<()> {
    let deadline = std::time::Instant::now() + LIMIT;
    loop {
        let group = convoke.group(GROUP)?;
        let settled = group.as_ref().is_some_and(|group| {
            group["state"] == "Stable" && group["members"].as_array().is_some_and(|list| list.len() == members)
        });
        if settled {
            return Ok(());
        }
        if std::time::Instant::now() > deadline {
            return Err(format!("the group does not settle: {group:?}").into());
        }
        // /groups is asked, not told: nothing to await.
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn show_group(convoke: &Convoke) -> Result<()> {
    let group = convoke.group(GROUP)?.ok_or("the group is not in /groups")?;
    say(&format!(
        "Convoke runs the group {GROUP}: {}, generation {}",
        text(&group["state"]),
        group["generation_id"]
    ));
    for member in group["members"].as_array().into_iter().flatten() {
        say(&format!(
            "   {} owns {}",
            text(&member["client_id"]),
            member["assignment"]
        ));
    }
    Ok(())
}

fn generation(convoke: &Convoke) -> Result<i64> {
    let group = convoke.group(GROUP)?.ok_or("the group is not in /groups")?;
    group["generation_id"]
        .as_i64()
        .ok_or_else(|| "the group has no generation".into())
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or("?")
}
