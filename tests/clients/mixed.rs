//! Members of one group from several libraries.

use convoke_support::Result;
use serde_json::json;

use crate::Trial;
use crate::member::{Member, produce, read_all, settle, values};
use crate::stage::Stage;
use crate::stock::Stock;

const MEMBERS: [Stock; 5] = [
    Stock::Java440,
    Stock::Librdkafka,
    Stock::FranzGo,
    Stock::KafkaPython,
    Stock::Java211,
];
const PARTITIONS: u32 = 10;

pub fn all() -> Vec<Trial> {
    let trial = |(assignor, leader, group): (&'static str, &str, &'static str)| {
        Trial::new(
            format!("five libraries share a topic by {assignor}{leader}"),
            move |stage: &mut Stage| libraries_share(stage, assignor, group),
        )
    };
    let trials = [
        ("range", "", "group"),
        ("roundrobin", "", "group"),
        ("roundrobin", " with Convoke as the leader", "assigned"),
    ];
    trials.into_iter().map(trial).collect()
}

fn libraries_share(stage: &mut Stage, assignor: &str, group: &str) -> Result<()> {
    let (topic, group) = (stage.topic(PARTITIONS)?, stage.name(group));
    let extra = json!({"assignor": assignor});
    let mut members = Vec::new();
    for stock in MEMBERS {
        members.push(Member::consumer(stage, stock, &group, &topic, &extra)?);
    }
    // Each in turn is the one that has been there longest, which is who computes the assignment.
    for round in 0..MEMBERS.len() {
        settle(&mut members.iter_mut().collect::<Vec<_>>(), &topic, PARTITIONS)?;
        let prefix = format!("round{round}");
        // A producer that does not compress: kafka-python reads no codec that Python does not bring.
        produce(stage, Stock::Librdkafka, &topic, PARTITIONS, &prefix, 50)?;
        read_all(&mut members.iter_mut().collect::<Vec<_>>(), &values(&prefix, 50))?;
        members.remove(0).close()?;
    }
    Ok(())
}
