//! Groups that were at the upstream before Convoke stood in front of it.

use std::time::Duration;

use convoke_support::Result;
use serde_json::json;

use crate::member::{Member, produce, read_all, settle, values};
use crate::stage::{Stage, direct};
use crate::stock::Stock;

pub fn offsets_from_before(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(3)?, stage.name("group"));
    produce(stage, stock, &topic, 3, "before", 60)?;
    let mut upstream = Member::consumer(stage, stock, &group, &topic, &json!({"direct": true}))?;
    read_all(&mut [&mut upstream], &values("before", 60))?;
    upstream.until_committed(60)?;
    upstream.close()?;

    produce(stage, stock, &topic, 3, "after", 30)?;
    let mut member = Member::consumer(stage, stock, &group, &topic, &json!({}))?;
    read_all(&mut [&mut member], &values("after", 30))?;
    if member.told.received.len() != 30 {
        return Err(format!("30 records were left, {} were read", member.told.received.len()).into());
    }
    member.close()
}

pub fn live_members_upstream(stage: &mut Stage, stock: Stock) -> Result<()> {
    if direct() {
        return Ok(());
    }
    let (topic, group) = (stage.topic(2)?, stage.name("group"));
    let mut upstream = Member::consumer(stage, stock, &group, &topic, &json!({"direct": true}))?;
    settle(&mut [&mut upstream], &topic, 2)?;
    let refused = |stage: &mut Stage| stage.convoke()?.metric("convoke_takeovers_refused_total", &[]);
    let before = refused(stage)?;
    let mut member = Member::consumer(stage, stock, &group, &topic, &json!({}))?;
    let mut looks = 0;
    while refused(stage)? <= before {
        member.take_in(Duration::from_millis(100));
        looks += 1;
        if looks > 300 {
            return Err(format!("the join was not refused\n{}", member.process.report()).into());
        }
    }
    if !member.told.assignment.is_empty() {
        return Err("a group was taken from its members".into());
    }
    upstream.close()?;
    settle(&mut [&mut member], &topic, 2)?;
    member.close()
}
