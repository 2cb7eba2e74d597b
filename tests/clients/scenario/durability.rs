//! What was acknowledged outlives Convoke.

use convoke_support::Result;
use serde_json::json;

use crate::member::{Member, produce, read_all, settle, values};
use crate::stage::Stage;
use crate::stock::Stock;

pub fn commits_survive_kill(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(3)?, stage.name("group"));
    let mut member = Member::consumer(stage, stock, &group, &topic, &json!({}))?;
    settle(&mut [&mut member], &topic, 3)?;
    produce(stage, stock, &topic, 3, "before", 90)?;
    read_all(&mut [&mut member], &values("before", 90))?;
    member.until_committed(90)?;

    stage.kill_and_restart_convoke()?;
    produce(stage, stock, &topic, 3, "after", 90)?;
    read_all(&mut [&mut member], &values("after", 90))?;
    member.until_committed(180)?;
    member.close()?;

    stage.kill_and_restart_convoke()?;
    produce(stage, stock, &topic, 3, "later", 30)?;
    let mut next = Member::consumer(stage, stock, &group, &topic, &json!({}))?;
    read_all(&mut [&mut next], &values("later", 30))?;
    if next.told.received.len() != 30 {
        return Err(format!("30 records were not committed, {} were read", next.told.received.len()).into());
    }
    next.close()
}
