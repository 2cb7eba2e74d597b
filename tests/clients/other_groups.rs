//! Groups of the kinds that stay at the brokers, and Kafka Streams applications of either protocol.

use convoke_support::Result;
use serde_json::json;

use crate::Trial;
use crate::member::{Member, produce, read_all, settle, values};
use crate::stage::Stage;
use crate::stock::Stock;

pub fn all() -> Vec<Trial> {
    vec![
        Trial::new("a share group works beside", share_group),
        Trial::new("Kafka Streams works by the classic protocol", |stage| {
            streams_application(stage, "classic")
        }),
        Trial::new("Kafka Streams works by the streams protocol", |stage| {
            streams_application(stage, "streams")
        }),
        Trial::new("groups of every kind are listed once", every_kind_is_listed_once),
    ]
}

fn share_group(stage: &mut Stage) -> Result<()> {
    let (topic, group) = (stage.topic(2)?, stage.name("share"));
    let (bootstrap, setting) = (stage.bootstrap(), "share.auto.offset.reset=earliest");
    let arguments = [
        "--bootstrap-server",
        &bootstrap,
        "--alter",
        "--group",
        &group,
        "--add-config",
        setting,
    ];
    stage.tool("4.4.0", "org.apache.kafka.tools.ConfigCommand", &arguments)?;
    let mut member = Member::consumer(stage, Stock::Java440, &group, &topic, &json!({"protocol": "share"}))?;
    produce(stage, Stock::Java440, &topic, 2, "a", 40)?;
    read_all(&mut [&mut member], &values("a", 40))?;
    member.close()
}

fn streams_application(stage: &mut Stage, protocol: &str) -> Result<()> {
    let (input, output) = (stage.topic(2)?, stage.topic(2)?);
    let (application, readers) = (stage.name("streams"), stage.name("group"));
    let mut running = start_streams(stage, &application, [&input, &output], protocol)?;
    let mut reader = Member::consumer(stage, Stock::Librdkafka, &readers, &output, &json!({}))?;
    produce(stage, Stock::Librdkafka, &input, 2, "a", 40)?;
    read_all(&mut [&mut reader], &values("a", 40))?;
    running.close()?;

    produce(stage, Stock::Librdkafka, &input, 2, "later", 20)?;
    let mut running = start_streams(stage, &application, [&input, &output], protocol)?;
    read_all(&mut [&mut reader], &values("later", 20))?;
    if reader.told.received.len() != 60 {
        return Err(format!("60 records went in, {} came out", reader.told.received.len()).into());
    }
    running.close()?;
    reader.close()
}

fn start_streams(stage: &Stage, application: &str, topics: [&str; 2], protocol: &str) -> Result<Member> {
    let config = json!({"role": "streams", "group": application, "topics": topics, "protocol": protocol});
    let mut streams = Member::start(stage, Stock::Java440, config)?;
    streams.until("it runs", |event, _| event["event"] == "assigned")?;
    Ok(streams)
}

fn every_kind_is_listed_once(stage: &mut Stage) -> Result<()> {
    let (topic, output) = (stage.topic(1)?, stage.topic(1)?);
    let (classic, share, streams) = (stage.name("classic"), stage.name("share"), stage.name("streams"));
    let mut member = Member::consumer(stage, Stock::Java440, &classic, &topic, &json!({}))?;
    let mut sharing = Member::consumer(stage, Stock::Java440, &share, &topic, &json!({"protocol": "share"}))?;
    let mut running = start_streams(stage, &streams, [&topic, &output], "streams")?;
    settle(&mut [&mut member], &topic, 1)?;
    sharing.until("it has polled", |event, _| event["event"] == "polled")?;

    let bootstrap = stage.bootstrap();
    let class = "org.apache.kafka.tools.GroupsCommand";
    let listed = stage.tool("4.4.0", class, &["--bootstrap-server", &bootstrap, "--list"])?;
    for (group, kind) in [(&classic, "Classic"), (&share, "Share"), (&streams, "Streams")] {
        let lines: Vec<_> = listed
            .lines()
            .filter(|line| line.split_whitespace().next() == Some(group))
            .collect();
        if lines.len() != 1 || !lines[0].contains(kind) {
            return Err(format!("{group} ({kind}) is not listed once:\n{listed}").into());
        }
    }
    running.close()?;
    sharing.close()?;
    member.close()
}
