//! Static members (KIP-345).

use convoke_support::Result;
use serde_json::{Value, json};

use crate::member::{Member, produce, read_all, settle, values};
use crate::scenario::generation;
use crate::stage::Stage;
use crate::stock::Stock;

pub fn restart_without_rebalance(stage: &mut Stage, stock: Stock) -> Result<()> {
    comes_back_to_what_it_had(stage, stock, &json!({"session_timeout_ms": 30000}), |member| {
        member.process.kill();
        Ok(())
    })
}

/// KIP-848 lets a static member go for a while only by a close; one that was killed holds its id for the session.
pub fn close_and_come_back(stage: &mut Stage, stock: Stock) -> Result<()> {
    comes_back_to_what_it_had(stage, stock, &json!({}), Member::close)
}

fn comes_back_to_what_it_had(
    stage: &mut Stage,
    stock: Stock,
    extra: &Value,
    stop: impl FnOnce(&mut Member) -> Result<()>,
) -> Result<()> {
    let (topic, group) = (stage.topic(4)?, stage.name("group"));
    let start = |stage: &Stage, instance: &str| {
        let mut extra = extra.clone();
        extra["instance_id"] = json!(instance);
        Member::consumer(stage, stock, &group, &topic, &extra)
    };
    let mut first = start(stage, "one")?;
    let mut second = start(stage, "two")?;
    settle(&mut [&mut first, &mut second], &topic, 4)?;
    let before = generation(stage, &group)?;
    let seen = (first.told.assignments, first.told.revocations);
    let owned = second.told.assignment.clone();

    stop(&mut second)?;
    let mut second = start(stage, "two")?;
    settle(&mut [&mut first, &mut second], &topic, 4)?;
    if second.told.assignment != owned {
        return Err(format!("it had {owned:?} and has {:?}", second.told.assignment).into());
    }
    produce(stage, stock, &topic, 4, "a", 40)?;
    read_all(&mut [&mut first, &mut second], &values("a", 40))?;
    if (first.told.assignments, first.told.revocations) != seen {
        return Err("the other member saw a rebalance".into());
    }
    if generation(stage, &group)? != before {
        return Err("the generation moved".into());
    }
    first.close()?;
    second.close()
}
