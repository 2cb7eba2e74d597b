//! What single groups are given for themselves by Kafka's own tool, whether the brokers have a place for it or Convoke has.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use convoke::upstream::connection::{Connection, Limits};
use convoke::wire::api::CONSUMER_GROUP_HEARTBEAT;
use convoke_support::Result;
use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::Trial;
use crate::member::{LIMIT, Member, settle};
use crate::stage::Stage;
use crate::stock::Stock;
use crate::tools::expect;

/// Kafka's own tool for settings, as it is since 4.2.
const CONFIGS: &str = "org.apache.kafka.tools.ConfigCommand";

pub fn all() -> Vec<Trial> {
    vec![Trial::new(
        "kafka-configs of 4.4.0 gives a group settings, which Convoke follows",
        given_by_the_tool,
    )]
}

fn given_by_the_tool(stage: &mut Stage) -> Result<()> {
    let (topic, group) = (stage.topic(2)?, stage.name("group"));
    let mut member = Member::consumer(stage, Stock::Java440Consumer, &group, &topic, &json!({}))?;
    settle(&mut [&mut member], &topic, 2)?;
    let bootstrap = stage.bootstrap();
    let tool = |stage: &Stage, arguments: &[&str]| {
        let all = [
            &["--bootstrap-server", &bootstrap, "--entity-type", "groups"],
            arguments,
        ]
        .concat();
        stage.tool("4.4.0", CONFIGS, &all)
    };
    let of_group = ["--entity-name", &group];
    let describe = [&of_group[..], &["--describe"]].concat();
    let alter = |add_or_delete, what| [&of_group[..], &["--alter", add_or_delete, what]].concat();

    let all = tool(stage, &[&describe[..], &["--all"]].concat())?;
    expect(&all, &["consumer.heartbeat.interval.ms=5000", "DEFAULT_CONFIG"])?;
    until_held(stage, &group, (45_000, 5_000))?;

    let both = "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=6000";
    expect(&tool(stage, &alter("--add-config", both))?, &["Completed"])?;
    until_held(stage, &group, (50_000, 6_000))?;
    let given = [
        "consumer.session.timeout.ms=50000",
        "consumer.heartbeat.interval.ms=6000",
    ];
    until_said(|| tool(stage, &describe), &given)?;
    // Of all groups.
    expect(
        &tool(stage, &["--describe"])?,
        &[&[group.as_str()], &given[..]].concat(),
    )?;

    stage.kill_and_restart_convoke()?;
    until_held(stage, &group, (50_000, 6_000))?;
    expect(&tool(stage, &describe)?, &given)?;

    let refused = tool(stage, &alter("--add-config", "consumer.session.timeout.ms=1"));
    let said = refused.unwrap_or_else(|error| error.to_string());
    // 4.0 goes on in other words.
    expect(&said, &["consumer.session.timeout.ms must be "])?;

    let both = "consumer.session.timeout.ms,consumer.heartbeat.interval.ms";
    expect(&tool(stage, &alter("--delete-config", both))?, &["Completed"])?;
    until_held(stage, &group, (45_000, 5_000))?;
    member.close()
}

/// Waits until the group's member has this session (far less long than until settings are read anew in any case), and who joins is
/// told this heartbeat interval, in milliseconds.
fn until_held(stage: &mut Stage, group: &str, wanted: (i64, i32)) -> Result<()> {
    let began = Instant::now();
    loop {
        let page = stage.convoke()?.group(group)?;
        let session = page
            .as_ref()
            .and_then(|page| page["members"][0]["session_timeout_ms"].as_i64());
        let held = (
            session.unwrap_or_default(),
            heartbeat_interval_ms(&stage.bootstrap(), group)?,
        );
        if held == wanted {
            return Ok(());
        }
        if began.elapsed() > LIMIT {
            return Err(format!("the group has {held:?} and not {wanted:?}").into());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Asks until all of the words are there.
fn until_said(ask: impl Fn() -> Result<String>, wanted: &[&str]) -> Result<()> {
    let began = Instant::now();
    loop {
        match expect(&ask()?, wanted) {
            Err(_) if began.elapsed() < LIMIT => {}
            outcome => return outcome,
        }
    }
}

/// How often a member is to be heard: the answer to one that joins and leaves at once.
fn heartbeat_interval_ms(bootstrap: &str, group: &str) -> Result<i32> {
    let joins = heartbeat(group, 0)
        .with_rebalance_timeout_ms(60_000)
        .with_subscribed_topic_names(Some(Vec::new()))
        .with_topic_partitions(Some(Vec::new()));
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let stream = TcpStream::connect(bootstrap).await?;
        let limits = Limits {
            request_timeout: LIMIT,
            frame_max: 1 << 20,
            in_flight: 1,
        };
        let connection = Connection::over(stream, bootstrap.to_owned(), limits);
        let joined = call(&connection, &joins).await?;
        call(&connection, &heartbeat(group, -1)).await?;
        Ok(joined.heartbeat_interval_ms)
    })
}

fn heartbeat(group: &str, member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest::default()
        .with_group_id(StrBytes::from_string(group.to_owned()).into())
        .with_member_id(StrBytes::from_static_str("asks-for-the-interval"))
        .with_member_epoch(member_epoch)
}

async fn call(
    connection: &Connection,
    request: &ConsumerGroupHeartbeatRequest,
) -> Result<ConsumerGroupHeartbeatResponse> {
    const VERSION: i16 = 1;
    let mut body = BytesMut::new();
    request.encode(&mut body, VERSION)?;
    let mut answer: Bytes = connection.call(CONSUMER_GROUP_HEARTBEAT, VERSION, &body).await?;
    let answer = ConsumerGroupHeartbeatResponse::decode(&mut answer, VERSION)?;
    match answer.error_code {
        0 => Ok(answer),
        error => Err(format!("a heartbeat is answered with error {error}: {:?}", answer.error_message).into()),
    }
}
