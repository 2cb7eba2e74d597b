//! Transactional producers.

use convoke_support::Result;
use serde_json::{Value, json};

use crate::admin::Admin;
use crate::member::{Member, read_all, values};
use crate::stage::Stage;
use crate::stock::Stock;

/// Commits and aborts, without offsets.
pub fn commit_and_abort(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(1)?, stage.name("group"));
    let transactions = json!([
        {"prefix": "kept", "count": 20, "commit": true},
        {"prefix": "dropped", "count": 20, "commit": false},
        {"prefix": "last", "count": 20, "commit": true},
    ]);
    let mut producer = start(stage, stock, &topic, &transactions)?;
    let mut done = 0;
    producer.until("three transactions are done", |event, _| {
        done += usize::from(event["event"] == "produced");
        done == 3
    })?;
    let mut wanted = values("kept", 20);
    wanted.extend(values("last", 20));
    read_committed(stage, &group, &topic, &wanted)
}

/// Until transactional offsets end here, a producer must hear at once that they do not.
pub fn offsets_are_refused(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group, read_by) = (stage.topic(1)?, stage.name("group"), stage.name("group"));
    let transactions = json!([
        {"prefix": "kept", "count": 20, "commit": true},
        {"prefix": "refused", "count": 20, "commit": true, "group": group},
    ]);
    let mut producer = start(stage, stock, &topic, &transactions)?;
    let mut refusal = Value::Null;
    producer.until("the offsets are refused", |event, _| {
        refusal = event.clone();
        event["event"] == "refused"
    })?;
    let (after, message) = (
        refusal["after_ms"].as_i64().unwrap_or(i64::MAX),
        refusal["message"].as_str().unwrap_or_default(),
    );
    if after > 5_000 || !["support", "Unsupported"].iter().any(|word| message.contains(word)) {
        return Err(format!(
            "refused after {after} ms with {message:?}\n{}",
            producer.process.report()
        )
        .into());
    }
    let _ = producer.process.wait(crate::member::LIMIT)?;
    let mut admin = Admin::through_convoke(stage, Stock::Java440)?;
    let offsets = admin.answer("listConsumerGroupOffsets", json!({"groups": [group]}))?;
    if offsets[&group].as_object().is_some_and(|offsets| !offsets.is_empty()) {
        return Err(format!("refused offsets are committed: {offsets}").into());
    }
    read_committed(stage, &read_by, &topic, &values("kept", 20))
}

fn start(stage: &Stage, stock: Stock, topic: &str, transactions: &Value) -> Result<Member> {
    let id = stage.name("transactional");
    let config = json!({"role": "transactional", "transactional_id": id, "topic": topic, "transactions": transactions});
    Member::start(stage, stock, config)
}

/// A reader of committed records gets exactly these.
fn read_committed(stage: &Stage, group: &str, topic: &str, wanted: &std::collections::BTreeSet<String>) -> Result<()> {
    let extra = json!({"isolation_level": "read_committed"});
    let mut reader = Member::consumer(stage, Stock::Java440, group, topic, &extra)?;
    read_all(&mut [&mut reader], wanted)?;
    match reader.told.received.iter().find(|value| !wanted.contains(*value)) {
        Some(value) => Err(format!("{value} was read and is of no committed transaction").into()),
        None => reader.close(),
    }
}
