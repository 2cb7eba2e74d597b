//! Classic groups that Convoke assigns for: members come and go, and a topic that grows, beside the same at the broker.

use std::time::{Duration, Instant};

use convoke_support::Result;
use serde_json::{Value, json};

use crate::Trial;
use crate::member::{Member, assert_done_once, produce, produce_with, read_all, settle, values};
use crate::stage::{Stage, direct};
use crate::stock::Stock;

/// The clients and the protocols that they are tried with.
const KINDS: [(Stock, &str); 6] = [
    (Stock::Java440, "range"),
    (Stock::Java440, "cooperative-sticky"),
    (Stock::Java381, "sticky"),
    (Stock::Librdkafka, "range"),
    (Stock::Librdkafka, "cooperative-sticky"),
    (Stock::FranzGo, "cooperative-sticky"),
];

/// Of the two that are compared: long enough to be told from what Convoke takes, short enough for a test.
const METADATA_MAX_AGE_MS: u32 = 20_000;
/// What clients have where nobody sets it.
const METADATA_MAX_AGE_DEFAULT_MS: u32 = 300_000;
const PARTITIONS: u32 = 6;

pub fn all() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (stock, assignor) in KINDS {
        let name = |what: &str| format!("{} by {assignor} with Convoke as the leader: {what}", stock.name());
        trials.push(Trial::new(name("members come and go"), move |stage| {
            members_come_and_go(stage, stock, assignor)
        }));
        trials.push(Trial::new(name("a topic grows"), move |stage| {
            topic_grows(stage, stock, assignor)
        }));
    }
    trials
}

/// A group that the rule of every stage means.
fn group(stage: &Stage) -> String {
    stage.name("assigned")
}

fn members_come_and_go(stage: &mut Stage, stock: Stock, assignor: &str) -> Result<()> {
    let (topic, group) = (stage.topic(PARTITIONS)?, group(stage));
    let extra = json!({"assignor": assignor, "session_timeout_ms": 6000});
    let mut first = Member::consumer(stage, stock, &group, &topic, &extra)?;
    settle(&mut [&mut first], &topic, PARTITIONS)?;
    assert_leaderless(stage, &group, assignor)?;
    produce(stage, stock, &topic, PARTITIONS, "a", 120)?;
    let mut second = Member::consumer(stage, stock, &group, &topic, &extra)?;
    let mut third = Member::consumer(stage, stock, &group, &topic, &extra)?;
    settle(&mut [&mut first, &mut second, &mut third], &topic, PARTITIONS)?;
    produce(stage, stock, &topic, PARTITIONS, "b", 120)?;
    let mut wanted = values("a", 120);
    wanted.extend(values("b", 120));
    read_all(&mut [&mut first, &mut second, &mut third], &wanted)?;
    third.close()?;
    settle(&mut [&mut first, &mut second], &topic, PARTITIONS)?;
    assert_leaderless(stage, &group, assignor)?;
    first.process.kill();
    settle(&mut [&mut second], &topic, PARTITIONS)?;
    produce(stage, stock, &topic, PARTITIONS, "c", 60)?;
    read_all(&mut [&mut second], &values("c", 60))?;
    assert_done_once(&[&first, &second, &third])?;
    second.close()
}

fn topic_grows(stage: &mut Stage, stock: Stock, assignor: &str) -> Result<()> {
    let here = growth(stage, stock, assignor, METADATA_MAX_AGE_MS, false)?;
    // franz-go is assigned added partitions at once, and reads them when its own metadata has them.
    let by_default = match stock {
        Stock::FranzGo => None,
        _ => Some(growth(stage, stock, assignor, METADATA_MAX_AGE_DEFAULT_MS, false)?),
    };
    let at_broker = growth(stage, stock, assignor, METADATA_MAX_AGE_MS, true)?;
    println!(
        "figure: {} by {assignor}: added partitions were assigned and read after (s): Convoke {}, Convoke with the default \
         metadata.max.age {}, broker {}",
        stock.name(),
        here.shown(),
        by_default.as_ref().map_or_else(|| "-".to_owned(), Growth::shown),
        at_broker.shown()
    );
    // The brokers' topics are read every five seconds, and members are heard every three.
    let limit = Duration::from_secs(20);
    match by_default.iter().chain([&here]).find(|growth| growth.assigned >= limit) {
        None => Ok(()),
        Some(slow) => Err(format!("it took {}", slow.shown()).into()),
    }
}

/// How long after the partitions were added.
struct Growth {
    assigned: Duration,
    read: Duration,
}

impl Growth {
    fn shown(&self) -> String {
        format!("{:.1}/{:.1}", self.assigned.as_secs_f64(), self.read.as_secs_f64())
    }
}

/// Adds partitions past Convoke while two members read, and produces to them at once.
fn growth(stage: &mut Stage, stock: Stock, assignor: &str, max_age_ms: u32, at_broker: bool) -> Result<Growth> {
    let topic = stage.topic(2)?;
    let group = if at_broker { stage.name("group") } else { group(stage) };
    let place = json!({"direct": at_broker});
    let extra = json!({
        "assignor": assignor, "metadata_max_age_ms": max_age_ms, "direct": at_broker, "protocol": "classic",
    });
    let mut first = Member::consumer(stage, stock, &group, &topic, &extra)?;
    let mut second = Member::consumer(stage, stock, &group, &topic, &extra)?;
    settle(&mut [&mut first, &mut second], &topic, 2)?;
    stage
        .admin()
        .answer("createPartitions", json!({"topic": topic, "partitions": PARTITIONS}))?;
    let began = Instant::now();
    produce_with(stage, Stock::FranzGo, &topic, PARTITIONS, "a", 60, &place)?;
    settle(&mut [&mut first, &mut second], &topic, PARTITIONS)?;
    let assigned = began.elapsed();
    read_all(&mut [&mut first, &mut second], &values("a", 60))?;
    let read = began.elapsed();
    first.close()?;
    second.close()?;
    Ok(Growth { assigned, read })
}

fn assert_leaderless(stage: &mut Stage, group: &str, assignor: &str) -> Result<()> {
    if direct() {
        return Ok(());
    }
    let shown = stage.convoke()?.group(group)?.ok_or("the group is not in /groups")?;
    let expected = json!({
        "assigned_by": "coordinator",
        "assignor": assignor,
        "computation": null,
        "partitions_withheld": 0,
    });
    match shown["leader"] == Value::Null && shown["classic"] == expected {
        true => Ok(()),
        false => Err(format!("it is not assigned for: {shown}").into()),
    }
}
