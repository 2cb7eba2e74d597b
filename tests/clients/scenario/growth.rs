//! Topics that get partitions while a group reads them.

use convoke_support::Result;
use serde_json::json;

use crate::member::{Member, produce, read_all, settle, values};
use crate::stage::Stage;
use crate::stock::Stock;

pub fn new_partitions_are_shared(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(2)?, stage.name("group"));
    let extra = json!({"metadata_max_age_ms": 1000});
    let mut first = Member::consumer(stage, stock, &group, &topic, &extra)?;
    let mut second = Member::consumer(stage, stock, &group, &topic, &extra)?;
    settle(&mut [&mut first, &mut second], &topic, 2)?;
    stage
        .admin()
        .answer("createPartitions", json!({"topic": topic, "partitions": 6}))?;
    settle(&mut [&mut first, &mut second], &topic, 6)?;
    produce(stage, stock, &topic, 6, "a", 60)?;
    read_all(&mut [&mut first, &mut second], &values("a", 60))?;
    first.close()?;
    second.close()
}
