//! Groups of the consumer protocol (KIP-848), whatever the broker's version.

use convoke_support::Result;
use serde_json::json;

use crate::Trial;
use crate::member::{Member, assert_done_once, produce, read_all, settle, values};
use crate::scenario::{self, generation, growth, interruptions, sharing, statics};
use crate::stage::Stage;
use crate::stock::Stock;
use crate::tools::{GROUPS, expect, reset_to_earliest};

/// Everything that is tried with the protocol.
pub fn all(stock: Stock) -> Vec<Trial> {
    let mut trials = essentials(stock);
    let mut add = |what, run| trials.push(Trial::of(stock, what, run));
    add("two members share", |stage, stock| {
        sharing::two_members_share(stage, stock, "range")
    });
    add("a rolling restart loses nothing", sharing::rolling_restart);
    if stock != Stock::FranzGoConsumer {
        // franz-go 1.22 comes back with its instance id only when its session is over, at brokers too.
        add(
            "a static member comes back to what it had",
            statics::close_and_come_back,
        );
    }
    add(
        "goes on when Convoke is stopped and started under load",
        interruptions::stopped_under_load,
    );
    add(
        "members go on where they were when Convoke is killed",
        members_go_on_after_kill,
    );
    trials
}

/// What is tried on every upstream version.
pub fn essentials(stock: Stock) -> Vec<Trial> {
    let mut trials = scenario::essentials(stock);
    let mut add = |what, run| trials.push(Trial::of(stock, what, run));
    add("a pattern takes in a new topic", pattern_takes_in_a_new_topic);
    add(
        "new partitions of a topic are shared out",
        growth::new_partitions_are_shared,
    );
    add(
        "a running group changes to the protocol and back",
        changes_protocol_and_back,
    );
    trials
}

fn pattern_takes_in_a_new_topic(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (family, group) = (stage.name("family"), stage.name("group"));
    let create = |stage: &mut Stage, topic: &str| {
        let arguments = json!({"topic": topic, "partitions": 2});
        stage.admin().answer("createTopic", arguments).map(drop)
    };
    let (old, new) = (format!("{family}-old"), format!("{family}-new"));
    create(stage, &old)?;
    let pattern = json!({"pattern": format!("^{family}-.*"), "metadata_max_age_ms": 2000});
    let mut member = Member::consumer(stage, stock, &group, &old, &pattern)?;
    settle(&mut [&mut member], &old, 2)?;
    create(stage, &new)?;
    member.until("it has both topics", |_, told| told.assignment.len() == 4)?;
    produce(stage, stock, &old, 2, "old", 20)?;
    produce(stage, stock, &new, 2, "new", 20)?;
    let mut wanted = values("old", 20);
    wanted.extend(values("new", 20));
    let twice = read_all(&mut [&mut member], &wanted)?;
    if !twice.is_empty() {
        return Err(format!("read twice: {twice:?}").into());
    }
    member.close()
}

fn members_go_on_after_kill(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(4)?, stage.name("group"));
    let mut first = Member::consumer(stage, stock, &group, &topic, &json!({}))?;
    let mut second = Member::consumer(stage, stock, &group, &topic, &json!({}))?;
    settle(&mut [&mut first, &mut second], &topic, 4)?;
    let before = generation(stage, &group)?;
    let had = (first.told.assignment.clone(), second.told.assignment.clone());
    for round in 0..2 {
        stage.kill_and_restart_convoke()?;
        let prefix = format!("round{round}");
        produce(stage, stock, &topic, 4, &prefix, 80)?;
        read_all(&mut [&mut first, &mut second], &values(&prefix, 80))?;
    }
    if generation(stage, &group)? != before {
        return Err("the restart led to a rebalance".into());
    }
    let has = (first.told.assignment.clone(), second.told.assignment.clone());
    if has != had {
        return Err(format!("they had {had:?} and have {has:?}").into());
    }
    assert_done_once(&[&first, &second])?;
    first.close()?;
    second.close()
}

/// Two members under load are replaced one by one, first by such of the new protocol and then by such of the old.
fn changes_protocol_and_back(stage: &mut Stage, stock: Stock) -> Result<()> {
    const COUNT: usize = 2000;
    let (topic, group) = (stage.topic(6)?, stage.name("group"));
    let start = |stage: &Stage, stock: Stock| Member::consumer(stage, stock, &group, &topic, &json!({}));
    let old = stock.classic();
    let mut members = vec![start(stage, old)?, start(stage, old)?];
    settle(&mut members.iter_mut().collect::<Vec<_>>(), &topic, 6)?;
    let load = json!({"role": "producer", "topic": topic, "partitions": 6, "prefix": "a", "count": COUNT,
                      "interval_ms": 10});
    let mut producer = Member::start(stage, Stock::Java440, load)?;
    let mut gone = Vec::new();
    for next in [stock, stock, old, old] {
        members.push(start(stage, next)?);
        settle(&mut members.iter_mut().collect::<Vec<_>>(), &topic, 6)?;
        let mut leaving = members.remove(0);
        leaving.close()?;
        gone.push(leaving);
        settle(&mut members.iter_mut().collect::<Vec<_>>(), &topic, 6)?;
    }
    producer.until("all is produced", |event, _| event["event"] == "produced")?;
    let mut all: Vec<&mut Member> = members.iter_mut().chain(gone.iter_mut()).collect();
    read_all(&mut all, &values("a", COUNT))?;
    members.iter_mut().try_for_each(Member::close)?;
    assert_done_once(&members.iter().chain(&gone).collect::<Vec<_>>())
}

/// What Kafka's own tool shows of such a group.
pub fn tool_shows_the_group(stage: &mut Stage) -> Result<()> {
    let (topic, group) = (stage.topic(2)?, stage.name("group"));
    produce(stage, Stock::Librdkafka, &topic, 2, "a", 20)?;
    let mut member = Member::consumer(stage, Stock::Java440Consumer, &group, &topic, &json!({}))?;
    settle(&mut [&mut member], &topic, 2)?;
    read_all(&mut [&mut member], &values("a", 20))?;
    member.until_committed(20)?;
    let bootstrap = stage.bootstrap();
    let shows = |stage: &Stage, arguments: &[&str], wanted: &[&str]| -> Result<()> {
        let all = [&["--bootstrap-server", bootstrap.as_str()], arguments].concat();
        expect(&stage.tool("4.4.0", GROUPS, &all)?, wanted)
    };
    shows(
        stage,
        &["--list", "--type", "consumer", "--state"],
        &[&group, "Consumer", "Stable"],
    )?;
    let describe = ["--describe", "--group", &group];
    shows(stage, &describe, &[&topic, "Java-4.4.0", "10"])?;
    shows(
        stage,
        &[&describe[..], &["--state"]].concat(),
        &["uniform", "Stable", "1"],
    )?;
    shows(
        stage,
        &[&describe[..], &["--members", "--verbose"]].concat(),
        &["Java-4.4.0", &format!("{topic}:0,1"), "CURRENT-EPOCH"],
    )?;
    member.close()?;
    shows(stage, &["--list", "--type", "consumer", "--state"], &[&group, "Empty"])?;
    shows(stage, &reset_to_earliest(&group, &topic), &[&topic])?;
    shows(stage, &["--delete", "--group", &group], &["successful"])
}
