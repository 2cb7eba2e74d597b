//! Kafka's own command-line tools through Convoke.

use convoke_support::Result;
use serde_json::json;

use crate::Trial;
use crate::member::{Member, produce, read_all, settle, values};
use crate::stage::Stage;
use crate::stock::Stock;

/// Kafka's own tool for groups.
pub const GROUPS: &str = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand";

/// The trials with the tools of each version.
pub fn all(versions: &[&'static str]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for &version in versions {
        trials.push(Trial::new(
            format!("kafka-consumer-groups of {version}"),
            move |stage| groups(stage, version),
        ));
        trials.push(Trial::new(
            format!("kafka-broker-api-versions of {version}"),
            move |stage| api_versions(stage, version),
        ));
    }
    trials.push(Trial::new(
        "admin tools show only Convoke's addresses",
        only_our_addresses,
    ));
    trials
}

fn groups(stage: &mut Stage, version: &'static str) -> Result<()> {
    let (topic, group) = (stage.topic(2)?, stage.name("group"));
    let bootstrap = stage.bootstrap();
    let tool = |stage: &Stage, arguments: &[&str]| {
        let mut all = vec!["--bootstrap-server", &bootstrap];
        all.extend(arguments);
        stage.tool(version, GROUPS, &all)
    };
    produce(stage, Stock::Librdkafka, &topic, 2, "a", 20)?;
    let mut member = Member::consumer(stage, Stock::Java440, &group, &topic, &json!({}))?;
    settle(&mut [&mut member], &topic, 2)?;
    read_all(&mut [&mut member], &values("a", 20))?;
    member.until_committed(20)?;

    expect(&tool(stage, &["--list", "--state"])?, &[&group, "Stable"])?;
    expect(
        &tool(stage, &["--describe", "--group", &group])?,
        &[&topic, "Java-4.4.0", "10"],
    )?;
    expect(
        &tool(stage, &["--describe", "--group", &group, "--members"])?,
        &["Java-4.4.0", "2"],
    )?;
    expect(
        &tool(stage, &["--describe", "--group", &group, "--state"])?,
        &["range", "Stable"],
    )?;
    let refused = tool(stage, &["--delete", "--group", &group]);
    let said = refused.unwrap_or_else(|error| error.to_string());
    expect(&said, &["GroupNotEmptyException"])?;
    member.close()?;

    expect(&tool(stage, &["--list", "--state"])?, &[&group, "Empty"])?;
    let reset = reset_to_earliest(&group, &topic);
    expect(&tool(stage, &reset)?, &[&topic, "0"])?;
    let mut again = Member::consumer(stage, Stock::Librdkafka, &group, &topic, &json!({}))?;
    read_all(&mut [&mut again], &values("a", 20))?;
    again.until_committed(20)?;
    again.close()?;
    expect(
        &tool(stage, &["--delete-offsets", "--group", &group, "--topic", &topic])?,
        &["Successful"],
    )?;
    // 3.8.1 deletes a group with its last offset, later brokers keep it; either way there is one to delete after this.
    expect(&tool(stage, &reset)?, &[&topic, "0"])?;
    expect(&tool(stage, &["--delete", "--group", &group])?, &["successful"])?;
    let listed = tool(stage, &["--list"])?;
    if listed.lines().any(|line| line.trim() == group) {
        return Err(format!("{group} is still listed:\n{listed}").into());
    }
    Ok(())
}

fn api_versions(stage: &mut Stage, version: &'static str) -> Result<()> {
    let bootstrap = stage.bootstrap();
    let said = stage.tool(
        version,
        "kafka.admin.BrokerApiVersionsCommand",
        &["--bootstrap-server", &bootstrap],
    );
    let said = said.or_else(|_| {
        stage.tool(
            version,
            "org.apache.kafka.tools.BrokerApiVersionsCommand",
            &["--bootstrap-server", &bootstrap],
        )
    })?;
    expect(&said, &["JoinGroup(11)", "Produce(0)", "Fetch(1)"])
}

fn only_our_addresses(stage: &mut Stage) -> Result<()> {
    let bootstrap = stage.bootstrap();
    let port = stage
        .kafka
        .address(1)
        .rsplit(':')
        .next()
        .map(str::to_owned)
        .ok_or("no port")?;
    let cluster = "org.apache.kafka.tools.ClusterTool";
    let quorum = "org.apache.kafka.tools.MetadataQuorumCommand";
    for (class, arguments) in [
        (cluster, vec!["list-endpoints", "--bootstrap-server", &bootstrap]),
        (cluster, vec!["cluster-id", "--bootstrap-server", &bootstrap]),
        (quorum, vec!["--bootstrap-server", &bootstrap, "describe", "--status"]),
    ] {
        let said = stage.tool("4.4.0", class, &arguments)?;
        if !crate::stage::direct() && said.contains(&port) {
            return Err(format!("{class} {arguments:?} shows the broker's own port {port}:\n{said}").into());
        }
    }
    Ok(())
}

/// What the tool is to be told for a group to begin the topic again.
pub fn reset_to_earliest<'a>(group: &'a str, topic: &'a str) -> [&'a str; 7] {
    [
        "--reset-offsets",
        "--to-earliest",
        "--group",
        group,
        "--topic",
        topic,
        "--execute",
    ]
}

/// All of the words are there.
pub fn expect(said: &str, wanted: &[&str]) -> Result<()> {
    match wanted.iter().find(|word| !said.contains(**word)) {
        None => Ok(()),
        Some(word) => Err(format!("{word:?} is not in\n{said}").into()),
    }
}
