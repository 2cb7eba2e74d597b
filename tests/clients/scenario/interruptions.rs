//! Convoke goes away for a moment, or stands still, while clients work.

use std::time::Duration;

use convoke_support::Result;
use serde_json::json;

use crate::member::{Member, assert_done_once, committed_by, produce, read_all, settle, values};
use crate::scenario::generation;
use crate::stage::Stage;
use crate::stock::Stock;

pub fn stopped_under_load(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(3)?, stage.name("group"));
    let extra = json!({"session_timeout_ms": 30000});
    let mut first = Member::consumer(stage, stock, &group, &topic, &extra)?;
    let mut second = Member::consumer(stage, stock, &group, &topic, &extra)?;
    settle(&mut [&mut first, &mut second], &topic, 3)?;
    let before = generation(stage, &group)?;
    let load =
        json!({"role": "producer", "topic": topic, "partitions": 3, "prefix": "a", "count": 600, "interval_ms": 5});
    let mut producer = Member::start(stage, Stock::Java440, load)?;
    first.until("the load has begun", |_, told| told.received.len() >= 30)?;

    stage.stop_and_restart_convoke()?;
    producer.until("all is produced", |event, _| event["event"] == "produced")?;
    read_all(&mut [&mut first, &mut second], &values("a", 600))?;
    committed_by(&mut [&mut first, &mut second], 600)?;
    // Members that outlast the pause by heartbeats alone; the others may join again of their own accord.
    let outlasts = matches!(stock, Stock::Java381 | Stock::Java440 | Stock::Java440Consumer);
    if outlasts && generation(stage, &group)? != before {
        return Err("the restart led to a rebalance".into());
    }
    first.close()?;
    second.close()
}

pub fn suspended_longer_than_sessions(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(4)?, stage.name("group"));
    let extra = json!({"session_timeout_ms": 6000});
    let mut first = Member::consumer(stage, stock, &group, &topic, &extra)?;
    let mut second = Member::consumer(stage, stock, &group, &topic, &extra)?;
    settle(&mut [&mut first, &mut second], &topic, 4)?;
    let (before, seen) = (generation(stage, &group)?, first.told.assignments);
    stage.convoke()?.process()?.freeze();
    // The length of the pause is what is tried.
    std::thread::sleep(Duration::from_secs(9));
    stage.convoke()?.process()?.thaw();
    produce(stage, stock, &topic, 4, "a", 40)?;
    read_all(&mut [&mut first, &mut second], &values("a", 40))?;
    // A session that had not been renewed would be over by now, and so would one that members do not keep up.
    std::thread::sleep(Duration::from_secs(7));
    if generation(stage, &group)? != before || first.told.assignments != seen {
        return Err("members were thrown out by the pause".into());
    }
    first.close()?;
    second.close()
}

/// A consumer that stood still for longer than its session believes for a moment that it is still in the group.
pub fn suspended_member_comes_back(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(4)?, stage.name("group"));
    let extra = json!({"session_timeout_ms": 6000, "assignor": "cooperative-sticky"});
    let mut first = Member::consumer(stage, stock, &group, &topic, &extra)?;
    let mut second = Member::consumer(stage, stock, &group, &topic, &extra)?;
    settle(&mut [&mut first, &mut second], &topic, 4)?;
    second.process.freeze();
    settle(&mut [&mut first], &topic, 4)?;
    produce(stage, stock, &topic, 4, "alone", 40)?;
    read_all(&mut [&mut first], &values("alone", 40))?;
    first.until_committed(40)?;
    let seen = second.told.assignments;
    second.process.thaw();
    second.until("it is given partitions anew", |_, told| {
        told.assignments > seen && !told.assignment.is_empty()
    })?;
    settle(&mut [&mut first, &mut second], &topic, 4)?;
    produce(stage, stock, &topic, 4, "together", 40)?;
    read_all(&mut [&mut first, &mut second], &values("together", 40))?;
    assert_done_once(&[&first, &second])?;
    first.close()?;
    second.close()
}
