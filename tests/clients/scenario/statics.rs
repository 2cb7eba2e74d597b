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

/// It looks after the group's topics alone, though its return made nobody join anew.
pub fn leader_that_returned_finds_new_partitions(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(2)?, stage.name("group"));
    let start = |stage: &Stage, instance: &str| {
        let extra = json!({"instance_id": instance, "session_timeout_ms": 30000, "metadata_max_age_ms": 1000});
        Member::consumer(stage, stock, &group, &topic, &extra)
    };
    let mut leader = start(stage, "one")?;
    settle(&mut [&mut leader], &topic, 2)?;
    let mut second = start(stage, "two")?;
    settle(&mut [&mut leader, &mut second], &topic, 2)?;
    let before = generation(stage, &group)?;
    leader.process.kill();
    let mut leader = start(stage, "one")?;
    settle(&mut [&mut leader, &mut second], &topic, 2)?;
    if generation(stage, &group)? != before {
        return Err("the leader's return led to a rebalance".into());
    }
    let more = json!({"topic": topic, "partitions": 6});
    stage.admin().answer("createPartitions", more)?;
    settle(&mut [&mut leader, &mut second], &topic, 6)?;
    produce(stage, stock, &topic, 6, "a", 60)?;
    read_all(&mut [&mut leader, &mut second], &values("a", 60))?;
    leader.close()?;
    second.close()
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
