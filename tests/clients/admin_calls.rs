//! AdminClient through Convoke, held against the same calls on an equal group at the broker itself.

use convoke_support::Result;
use serde_json::{Value, json};

use crate::Trial;
use crate::admin::Admin;
use crate::member::{Member, produce, read_all, settle, values};
use crate::stage::{Stage, direct};
use crate::stock::Stock;

/// Features whose APIs Convoke does not offer yet.
const HIDDEN_FEATURES: [&str; 1] = ["transaction.version"];

pub fn all(stocks: &[Stock]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for &stock in stocks {
        trials.push(Trial::new(
            format!("AdminClient of {} hears what the broker would say", stock.name()),
            move |stage| same_answers(stage, stock),
        ));
        trials.push(Trial::new(
            format!("{} commits to a topic the moment it is there", stock.name()),
            move |stage| commits_to_new_topics(stage, stock),
        ));
    }
    trials
}

fn same_answers(stage: &mut Stage, stock: Stock) -> Result<()> {
    let mut here = Admin::through_convoke(stage, stock)?;
    only_our_addresses(stage, stock, &mut here)?;
    let here = transcript(stage, stock, here, false)?;
    let there = Admin::past_convoke(stage, stock)?;
    let there = transcript(stage, stock, there, true)?;
    let differences: Vec<_> = here
        .iter()
        .zip(&there)
        .filter(|(here, there)| here != there)
        .map(|((call, here), (_, there))| format!("{call}\n  through Convoke: {here}\n  at the broker:   {there}"))
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    Err(differences.join("\n").into())
}

/// The life of a group of two, one of them static, and of a group that only has offsets, as an administrator sees it.
fn transcript(stage: &mut Stage, stock: Stock, admin: Admin, past_convoke: bool) -> Result<Vec<(String, Value)>> {
    let topic = stage.topic(4)?;
    let (group, offsets_only, unknown) = (stage.name("group"), stage.name("offsets"), stage.name("unknown"));
    let groups = json!({"groups": [group, offsets_only, unknown]});
    let names = [
        (topic.clone(), "TOPIC"),
        (group.clone(), "GROUP"),
        (offsets_only.clone(), "OFFSETS"),
        (unknown.clone(), "UNKNOWN"),
    ];
    let mut script = Script {
        admin,
        names,
        newest: stock == Stock::Java440,
        said: Vec::new(),
    };
    script.features()?;
    script.ask("describeCluster", &json!({}))?;
    script.ask("describeMetadataQuorum", &json!({}))?;

    produce(stage, Stock::Librdkafka, &topic, 4, "a", 40)?;
    let start = |stage: &Stage, extra: Value| {
        let mut extra = extra;
        extra["direct"] = json!(past_convoke);
        Member::consumer(stage, Stock::Java440, &group, &topic, &extra)
    };
    let mut dynamic = start(stage, json!({"client_id": "dynamic"}))?;
    settle(&mut [&mut dynamic], &topic, 4)?;
    read_all(&mut [&mut dynamic], &values("a", 40))?;
    dynamic.until_committed(40)?;
    let mut fixed = start(
        stage,
        json!({"client_id": "fixed", "instance_id": "one", "session_timeout_ms": 45000}),
    )?;
    settle(&mut [&mut dynamic, &mut fixed], &topic, 4)?;

    let by_hand = |group: &str| json!({"group": group, "offsets": {format!("{topic}-0"): 3, format!("{topic}-1"): 4}});
    script.ask("alterConsumerGroupOffsets", &by_hand(&offsets_only))?;
    script.ask("alterConsumerGroupOffsets", &by_hand(&group))?;
    script.look(&groups)?;
    let partitions = json!([format!("{topic}-0")]);
    script.ask(
        "deleteConsumerGroupOffsets",
        &json!({"group": group, "partitions": partitions}),
    )?;
    script.ask(
        "deleteConsumerGroupOffsets",
        &json!({"group": offsets_only, "partitions": partitions}),
    )?;
    script.ask(
        "deleteConsumerGroupOffsets",
        &json!({"group": unknown, "partitions": partitions}),
    )?;
    script.ask("deleteConsumerGroups", &json!({"groups": [group]}))?;
    script.ask("deleteConsumerGroups", &json!({"groups": [unknown]}))?;

    script.ask("removeMember", &json!({"group": group, "instance": "nobody"}))?;
    fixed.process.kill();
    script.ask("removeMember", &json!({"group": group, "instance": "one"}))?;
    settle(&mut [&mut dynamic], &topic, 4)?;
    script.look(&groups)?;
    dynamic.close()?;
    script.ask("removeAllMembers", &json!({"group": group}))?;
    script.look(&groups)?;
    script.ask("deleteConsumerGroups", &json!({"groups": [group, offsets_only]}))?;
    script.look(&groups)?;
    Ok(script.said)
}

/// What an administrator asked and heard, with the trial's own names made equal.
struct Script {
    admin: Admin,
    names: [(String, &'static str); 4],
    /// Whether the client has the calls that came with 4.0.
    newest: bool,
    said: Vec<(String, Value)>,
}

impl Script {
    fn ask(&mut self, call: &str, arguments: &Value) -> Result<()> {
        let mut said = self.admin.call(call, arguments.clone())?;
        // Messages are the client's own and quote ids.
        if let Some(said) = said.as_object_mut() {
            said.remove("message");
        }
        let renamed = |text: String| {
            self.names
                .iter()
                .fold(text, |text, (name, role)| text.replace(name.as_str(), role))
        };
        let said = serde_json::from_str(&renamed(said.to_string()))?;
        self.said.push((renamed(format!("{call} {arguments}")), said));
        Ok(())
    }

    /// Everything that shows groups.
    fn look(&mut self, groups: &Value) -> Result<()> {
        self.ask("listConsumerGroups", groups)?;
        self.ask("listConsumerGroupOffsets", groups)?;
        let calls: &[&str] = if self.newest {
            self.ask("listGroups", groups)?;
            &["describeConsumerGroups", "describeClassicGroups"]
        } else {
            &["describeConsumerGroups"]
        };
        for call in calls {
            // One by one: a group that is not there fails the whole call.
            for group in groups["groups"].as_array().into_iter().flatten() {
                self.ask(call, &json!({"groups": [group]}))?;
            }
        }
        Ok(())
    }

    fn features(&mut self) -> Result<()> {
        let mut features = self.admin.answer("describeFeatures", json!({}))?;
        for view in ["finalized", "supported"] {
            if let Some(view) = features[view].as_object_mut() {
                HIDDEN_FEATURES.iter().for_each(|hidden| drop(view.remove(*hidden)));
            }
        }
        self.said.push(("describeFeatures".to_owned(), features));
        Ok(())
    }
}

fn only_our_addresses(stage: &mut Stage, stock: Stock, admin: &mut Admin) -> Result<()> {
    if direct() {
        return Ok(());
    }
    let mut said = admin.answer("addresses", json!({}))?.to_string();
    if stock == Stock::Java440 {
        said += &admin.answer("quorumAddresses", json!({}))?.to_string();
    }
    let shown = stage.convoke()?.nodes()[&1]
        .rsplit_once(':')
        .map(|(_, port)| port.to_owned());
    let (ours, theirs) = (shown.ok_or("no port")?, stage.kafka.address(1));
    let theirs = theirs.rsplit_once(':').map(|(_, port)| port).ok_or("no port")?;
    if said.contains(theirs) || !said.contains(&ours) {
        return Err(format!("the broker's port is {theirs}, ours {ours}, and the client hears {said}").into());
    }
    Ok(())
}

fn commits_to_new_topics(stage: &mut Stage, stock: Stock) -> Result<()> {
    let mut admin = Admin::through_convoke(stage, stock)?;
    let group = stage.name("group");
    for _ in 0..5 {
        let topic = stage.name("new");
        let committed = admin.answer("commitToNewTopic", json!({"topic": topic, "group": group}))?;
        if committed != 5 {
            return Err(format!("5 was committed for {topic}, {committed} came back").into());
        }
    }
    Ok(())
}
