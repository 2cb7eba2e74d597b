//! What does not depend on the client's library: broker restarts, node failures, SASL, other kinds of groups.

use std::time::{Duration, Instant};

use convoke_support::Result;
use convoke_support::kafka::USERS;
use serde_json::json;

use crate::Trial;
use crate::member::{LIMIT, Member, produce, produce_with, read_all, settle, values};
use crate::stage::Stage;
use crate::stock::Stock;

pub fn one_node() -> Vec<Trial> {
    vec![
        Trial::new("the broker restarts under load", broker_restarts_under_load),
        Trial::new("Convoke waits for an upstream that is not up yet", upstream_comes_later),
    ]
}

pub fn three_nodes() -> Vec<Trial> {
    vec![
        Trial::new(
            "members of both protocols go on when nodes are killed one after the other",
            nodes_die_in_turn,
        ),
        Trial::new("a group is listed by exactly one node", |stage| {
            listed_once(stage, Stock::Librdkafka)
        }),
        Trial::new(
            "a group of the consumer protocol is listed by exactly one node",
            |stage| listed_once(stage, Stock::LibrdkafkaConsumer),
        ),
    ]
}

/// Every mechanism with a client that has it.
pub fn sasl() -> Vec<Trial> {
    let tries = [
        (Stock::Java440, "PLAIN"),
        (Stock::Java440, "SCRAM-SHA-256"),
        (Stock::Java381, "SCRAM-SHA-512"),
        (Stock::Java440, "OAUTHBEARER"),
        (Stock::Librdkafka, "PLAIN"),
        (Stock::Librdkafka, "SCRAM-SHA-512"),
        (Stock::Librdkafka, "OAUTHBEARER"),
        (Stock::FranzGo, "SCRAM-SHA-256"),
        (Stock::KafkaPython, "SCRAM-SHA-512"),
        (Stock::Java440Consumer, "OAUTHBEARER"),
        (Stock::LibrdkafkaConsumer, "PLAIN"),
        (Stock::FranzGoConsumer, "SCRAM-SHA-256"),
    ];
    let trial = |(stock, mechanism): (Stock, &'static str)| {
        Trial::new(format!("{} by {mechanism}", stock.name()), move |stage: &mut Stage| {
            authenticates(stage, stock, mechanism)
        })
    };
    tries.into_iter().map(trial).collect()
}

fn authenticates(stage: &mut Stage, stock: Stock, mechanism: &str) -> Result<()> {
    let (topic, group) = (stage.topic(2)?, stage.name("group"));
    let (username, password) = USERS[0];
    let sasl = json!({"sasl": {"mechanism": mechanism, "username": username, "password": password}});
    produce_with(stage, stock, &topic, 2, "a", 20, &sasl)?;
    let mut member = Member::consumer(stage, stock, &group, &topic, &sasl)?;
    read_all(&mut [&mut member], &values("a", 20))?;
    member.until_committed(20)?;
    member.close()
}

fn broker_restarts_under_load(stage: &mut Stage) -> Result<()> {
    let (topic, group) = (stage.topic(3)?, stage.name("group"));
    let mut member = Member::consumer(
        stage,
        Stock::Java440,
        &group,
        &topic,
        &json!({"session_timeout_ms": 30000}),
    )?;
    settle(&mut [&mut member], &topic, 3)?;
    produce(stage, Stock::Librdkafka, &topic, 3, "before", 300)?;
    read_all(&mut [&mut member], &values("before", 300))?;
    stage.kafka.stop(1)?;
    stage.kafka.restart(1)?;
    produce(stage, Stock::Librdkafka, &topic, 3, "after", 300)?;
    read_all(&mut [&mut member], &values("after", 300))?;
    member.close()
}

fn upstream_comes_later(stage: &mut Stage) -> Result<()> {
    stage.kafka.stop(1)?;
    let mut late = stage.another_convoke()?;
    let address = stage.kafka.address(1);
    let deadline = Instant::now() + LIMIT;
    loop {
        let said = late.get("/readyz");
        match &said {
            Ok((503, body)) if body.contains("upstream") && body.contains(&address) => break,
            _ if Instant::now() > deadline => return Err(format!("/readyz does not say why: {said:?}").into()),
            // /readyz is asked, not told: nothing to await.
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    }
    stage.kafka.restart(1)?;
    late.wait_ready()?;
    let (status, body) = late.get("/readyz")?;
    if status != 200 {
        return Err(format!("ready, but /readyz says {status}: {body}").into());
    }
    let (topic, group) = (stage.topic(1)?, stage.name("group"));
    let through = json!({"bootstrap": late.bootstrap()});
    produce_with(stage, Stock::Librdkafka, &topic, 1, "a", 10, &through)?;
    let mut member = Member::consumer(stage, Stock::Java440, &group, &topic, &through)?;
    read_all(&mut [&mut member], &values("a", 10))?;
    member.close()?;
    late.stop()
}

/// A group of each protocol, on one topic: most of the time is spent in waiting for the cluster.
fn nodes_die_in_turn(stage: &mut Stage) -> Result<()> {
    let topic = stage.topic(6)?;
    let extra = json!({"session_timeout_ms": 30000});
    let mut groups = Vec::new();
    for stocks in [&[Stock::Java440, Stock::Java381][..], &Stock::CONSUMER] {
        let group = stage.name("group");
        let member = |&stock: &Stock| Member::consumer(stage, stock, &group, &topic, &extra);
        let mut members = stocks.iter().map(member).collect::<Result<Vec<_>>>()?;
        settle(&mut members.iter_mut().collect::<Vec<_>>(), &topic, 6)?;
        groups.push(members);
    }
    for node in 1..=3 {
        stage.kafka.kill(node);
        let prefix = format!("without{node}");
        produce(stage, Stock::Librdkafka, &topic, 6, &prefix, 60)?;
        for members in &mut groups {
            read_all(&mut members.iter_mut().collect::<Vec<_>>(), &values(&prefix, 60))?;
        }
        stage.kafka.restart(node)?;
    }
    for members in &mut groups {
        settle(&mut members.iter_mut().collect::<Vec<_>>(), &topic, 6)?;
        members.iter_mut().try_for_each(Member::close)?;
    }
    Ok(())
}

fn listed_once(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(1)?, stage.name("group"));
    let mut member = Member::consumer(stage, stock, &group, &topic, &json!({}))?;
    settle(&mut [&mut member], &topic, 1)?;
    let bootstrap = stage.bootstrap();
    let class = crate::tools::GROUPS;
    let listed = stage.tool("4.4.0", class, &["--bootstrap-server", &bootstrap, "--list"])?;
    let times = listed.lines().filter(|line| line.trim() == group).count();
    if times != 1 {
        return Err(format!("{group} is listed {times} times:\n{listed}").into());
    }
    member.close()
}
