//! Static members (KIP-345).

use convoke_support::Result;
use serde_json::json;

use crate::member::{Member, produce, read_all, settle, values};
use crate::scenario::generation;
use crate::stage::Stage;
use crate::stock::Stock;

pub fn restart_without_rebalance(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(4)?, stage.name("group"));
    let start = |stage: &Stage, instance: &str| {
        let extra = json!({"instance_id": instance, "session_timeout_ms": 30000});
        Member::consumer(stage, stock, &group, &topic, &extra)
    };
    let mut first = start(stage, "one")?;
    let mut second = start(stage, "two")?;
    settle(&mut [&mut first, &mut second], &topic, 4)?;
    let before = generation(stage, &group)?;
    let seen = (first.told.assignments, first.told.revocations);
    let owned = second.told.assignment.clone();

    second.process.kill();
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
