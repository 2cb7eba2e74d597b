//! Consumers of both protocols whose partitions a program of the user's places, through `convoke assignor`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_support::Result;
use convoke_support::process::Process;
use serde_json::json;
use tempfile::TempDir;

use crate::Trial;
use crate::member::{LIMIT, Member, assert_done_once, produce, read_all, settle, values};
use crate::stage::Stage;
use crate::stock::Stock;

/// What members ask for.
const NAME: &str = "fickle";
const PARTITIONS: u32 = 6;
/// What a script that does well must not need on a busy machine, or another would place and nobody ask it again.
const TIME_LIMIT: &str = "5s";
/// Of each of them all, for classic clients some: their rebalances take longer.
const CLASSIC_FAULTS: [&str; 3] = ["hang", "declined", "refused"];
/// Classic clients that are tried, each with its own assignor.
const CLASSIC: [(Stock, &str); 2] = [(Stock::Java440, "cooperative-sticky"), (Stock::Librdkafka, "range")];
/// The script's ways to go wrong, and what the log of `convoke assignor` says of each.
const FAULTS: [(&str, &str); 6] = [
    ("crash", "the command ended with exit status: 3"),
    ("hang", "the command did not answer within 5s and was killed"),
    ("late", "the command did not answer within 5s and was killed"),
    (
        "nonsense",
        "the command's answer is of no use: it is not the JSON that was asked for",
    ),
    ("declined", "the command says: not on a Sunday"),
    ("refused", "assignment refused with INVALID_ASSIGNMENT"),
];

/// Who is in the group.
#[derive(Debug, Clone, Copy)]
struct Members {
    stock: Stock,
    /// Of classic ones.
    assignor: Option<&'static str>,
}

impl Members {
    /// Of classic groups one that a rule gives to the script.
    fn group(self, stage: &Stage) -> String {
        stage.name(if self.assignor.is_some() { "scripted" } else { "group" })
    }

    fn join(self, stage: &Stage, group: &str, topic: &str, rack: &str) -> Result<Member> {
        let extra = match self.assignor {
            Some(assignor) => json!({"assignor": assignor, "session_timeout_ms": 10_000, "rack": rack}),
            None => json!({"remote_assignor": NAME, "rack": rack}),
        };
        Member::consumer(stage, self.stock, group, topic, &extra)
    }

    fn faults(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let is_tried = move |mood: &str| self.assignor.is_none() || CLASSIC_FAULTS.contains(&mood);
        FAULTS.into_iter().filter(move |(mood, _)| is_tried(mood))
    }
}

pub fn all() -> Vec<Trial> {
    let mut trials = Vec::new();
    let consumers = [Stock::Java440Consumer, Stock::LibrdkafkaConsumer].map(|stock| (stock, None));
    let classic = CLASSIC.map(|(stock, assignor)| (stock, Some(assignor)));
    for (stock, assignor) in consumers.into_iter().chain(classic) {
        let members = Members { stock, assignor };
        let mut add = |what: &str, run: fn(&mut Stage, Members) -> Result<()>| {
            let name = match assignor {
                Some(assignor) => format!("{} by {assignor}: {what}", stock.name()),
                None => format!("{}: {what}", stock.name()),
            };
            trials.push(Trial::new(name, move |stage| run(stage, members)));
        };
        add("a script places partitions through Convoke", script_places);
        add(
            "Convoke settles the group whatever a script does wrong",
            script_goes_wrong,
        );
        add(
            "a script places a new group's first assignment through Convoke",
            first_assignment,
        );
        if assignor.is_none() {
            add(
                "Convoke settles the group when the assignor is killed",
                assignor_is_killed,
            );
        }
    }
    trials.push(Trial::of(
        Stock::Librdkafka,
        "the examples place partitions of classic groups through Convoke",
        examples_place,
    ));
    trials.push(Trial::of(
        Stock::LibrdkafkaConsumer,
        "Convoke is asked for groups of a pattern that it has no rule for",
        pattern_without_rule,
    ));
    trials
}

/// That of a cluster of several nodes.
pub fn on_several_nodes() -> Trial {
    let what = "a script places the groups of several nodes through Convoke";
    Trial::of(Stock::LibrdkafkaConsumer, what, several_nodes)
}

/// A running `convoke assignor` with the script of many moods.
struct Assignor {
    process: Process,
    mood: PathBuf,
    _directory: TempDir,
}

impl Assignor {
    fn start(stage: &Stage, groups: &str) -> Result<Self> {
        let assignor = Self::launch(stage, groups)?;
        assignor.until_said(0, "registered")?;
        Ok(assignor)
    }

    fn launch(stage: &Stage, groups: &str) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let mood = directory.path().join("mood");
        fs::write(&mood, "good")?;
        let process = launch(stage, groups, "tests/clients/python/fickle_assignor.py", &[&mood])?;
        Ok(Self {
            process,
            mood,
            _directory: directory,
        })
    }

    /// Waits for words in its log after line `from`; says where to go on from.
    fn until_said(&self, from: usize, words: &str) -> Result<usize> {
        let said = |line: &str| line.contains(words).then_some(());
        let waited = self.process.stderr.wait(from, LIMIT, said);
        let ((), next) = waited.map_err(|error| format!("{words:?}: {error}\n{}", self.process.report()))?;
        Ok(next)
    }

    fn be(&self, mood: &str) -> Result<()> {
        Ok(fs::write(&self.mood, mood)?)
    }
}

/// Runs `convoke assignor` with this script.
fn launch(stage: &Stage, groups: &str, script: &str, arguments: &[&Path]) -> Result<Process> {
    let mut command = stage.command(env!("CARGO_BIN_EXE_convoke"));
    command
        .args([
            "assignor",
            "--bootstrap",
            &stage.bootstrap(),
            "--group",
            groups,
            "--name",
            NAME,
        ])
        .args(["--time-limit", TIME_LIMIT, "--", "python3"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script))
        .args(arguments);
    Process::spawn("convoke assignor", command)
}

/// Waits until they have so many partitions each, and all between them.
fn until_they_have(members: &mut [&mut Member], topic: &str, counts: &[usize]) -> Result<()> {
    for (member, count) in members.iter_mut().zip(counts) {
        if member.told.assignment.len() != *count {
            member.until(&format!("it has {count} of {topic}"), |_, told| {
                told.assignment.len() == *count
            })?;
        }
    }
    settle(members, topic, PARTITIONS)
}

fn script_places(stage: &mut Stage, members: Members) -> Result<()> {
    let (topic, group) = (stage.topic(PARTITIONS)?, members.group(stage));
    let mut assignor = Assignor::start(stage, &group)?;
    let mut rest = members.join(stage, &group, &topic, "rest")?;
    until_they_have(&mut [&mut rest], &topic, &[6])?;
    let mut one = members.join(stage, &group, &topic, "one")?;
    until_they_have(&mut [&mut rest, &mut one], &topic, &[5, 1])?;
    if one.told.assignment.first() != Some(&format!("{topic}-0")) {
        return Err(format!("the script gave it partition 0, it has {:?}", one.told.assignment).into());
    }
    produce(stage, members.stock, &topic, PARTITIONS, "a", 120)?;
    read_all(&mut [&mut rest, &mut one], &values("a", 120))?;
    let shown = stage.convoke()?.group(&group)?.ok_or("the group is not in /groups")?;
    if !shown.to_string().contains(NAME) {
        return Err(format!("/groups does not show who assigned: {shown}").into());
    }
    one.close()?;
    until_they_have(&mut [&mut rest], &topic, &[6])?;
    // Nothing of what stands depends on the assignor's being there.
    assignor.process.stop(LIMIT)?;
    produce(stage, members.stock, &topic, PARTITIONS, "b", 60)?;
    read_all(&mut [&mut rest], &values("b", 60))?;
    assert_done_once(&[&rest, &one])?;
    rest.close()
}

/// The process has registered once, for all groups of the rule's pattern, before there is any.
fn first_assignment(stage: &mut Stage, members: Members) -> Result<()> {
    let (topic, group) = (stage.topic(PARTITIONS)?, stage.name("scripted"));
    let _assignor = Assignor::start(stage, "scripted-*")?;
    let mut rest = first_of(stage, members, &group, &topic)?;
    let mut one = members.join(stage, &group, &topic, "one")?;
    until_they_have(&mut [&mut rest, &mut one], &topic, &[5, 1])?;
    one.close()?;
    rest.close()
}

/// The first member of a group, which has its partitions by the script and by nobody else before.
fn first_of(stage: &mut Stage, members: Members, group: &str, topic: &str) -> Result<Member> {
    let from = stage.convoke()?.process()?.stderr.len();
    let mut first = members.join(stage, group, topic, "rest")?;
    until_they_have(&mut [&mut first], topic, &[6])?;
    let computed = format!("target assignment computed group=\"{group}\"");
    let by_another = |line: &str| line.contains(&computed).then(|| line.to_owned());
    if let Ok((line, _)) = stage
        .convoke()?
        .process()?
        .stderr
        .wait(from, Duration::ZERO, by_another)
    {
        return Err(format!("another has assigned before: {line}").into());
    }
    let shown = stage.convoke()?.group(group)?.ok_or("the group is not in /groups")?;
    let is_first = match members.assignor {
        Some(_) => shown["generation_id"] == 1 && shown["classic"]["assignor"] == NAME,
        None => shown["consumer"]["computed_by"] == NAME,
    };
    match is_first {
        true => Ok(first),
        false => Err(format!("its first assignment was another's: {shown}").into()),
    }
}

/// The groups are at other nodes than the pattern.
fn several_nodes(stage: &mut Stage, stock: Stock) -> Result<()> {
    let members = Members { stock, assignor: None };
    let topic = stage.topic(PARTITIONS)?;
    let _assignor = Assignor::start(stage, "scripted-*")?;
    for _ in 0..5 {
        let group = stage.name("scripted");
        first_of(stage, members, &group, &topic)?.close()?;
    }
    Ok(())
}

fn examples_place(stage: &mut Stage, stock: Stock) -> Result<()> {
    let members = Members {
        stock,
        assignor: Some("range"),
    };
    for example in ["lag_balanced", "capacity_weighted", "zone_affine"] {
        let (topic, group) = (stage.topic(PARTITIONS)?, members.group(stage));
        let script = format!("config/assignors/{example}.py");
        let mut assignor = launch(stage, &group, &script, &[])?;
        let registered = |line: &str| line.contains("registered").then_some(());
        assignor.stderr.wait(0, LIMIT, registered)?;
        let mut one = members.join(stage, &group, &topic, "a")?;
        let mut two = members.join(stage, &group, &topic, "b")?;
        until_they_have(&mut [&mut one, &mut two], &topic, &[3, 3])?;
        let shown = stage.convoke()?.group(&group)?.ok_or("the group is not in /groups")?;
        if shown["classic"]["assigned_by"] != "external" {
            return Err(format!("{example} has not placed: {shown}\n{}", assignor.report()).into());
        }
        one.close()?;
        two.close()?;
        assignor.stop(LIMIT)?;
    }
    Ok(())
}

fn pattern_without_rule(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(PARTITIONS)?, stage.name("found"));
    let assignor = Assignor::launch(stage, "found-*")?;
    assignor.until_said(0, "are looked for")?;
    let mut member = Member::consumer(stage, stock, &group, &topic, &json!({}))?;
    settle(&mut [&mut member], &topic, PARTITIONS)?;
    assignor.until_said(0, &format!("registered group=\"{group}\""))?;
    member.close()
}

fn script_goes_wrong(stage: &mut Stage, members: Members) -> Result<()> {
    let (topic, group) = (stage.topic(PARTITIONS)?, members.group(stage));
    let assignor = Assignor::start(stage, &group)?;
    let mut rest = members.join(stage, &group, &topic, "rest")?;
    let mut one = members.join(stage, &group, &topic, "one")?;
    until_they_have(&mut [&mut rest, &mut one], &topic, &[5, 1])?;
    for (mood, said) in members.faults() {
        assignor.be(mood)?;
        let from = assignor.process.stderr.len();
        let mut third = members.join(stage, &group, &topic, "more")?;
        until_they_have(&mut [&mut third, &mut rest, &mut one], &topic, &[2, 2, 2])?;
        assignor.until_said(from, said)?;
        assignor.be("good")?;
        third.close()?;
        until_they_have(&mut [&mut rest, &mut one], &topic, &[5, 1])?;
    }
    rest.close()?;
    one.close()
}

fn assignor_is_killed(stage: &mut Stage, members: Members) -> Result<()> {
    let (topic, group) = (stage.topic(PARTITIONS)?, members.group(stage));
    let assignor = Assignor::start(stage, &group)?;
    let mut rest = members.join(stage, &group, &topic, "rest")?;
    let mut one = members.join(stage, &group, &topic, "one")?;
    until_they_have(&mut [&mut rest, &mut one], &topic, &[5, 1])?;
    let from = stage.convoke()?.process()?.stderr.len();
    drop(assignor);
    // It has not said that it goes, but its connection has ended.
    let gone = |line: &str| (line.contains("external assignor gone") && line.contains("disconnected")).then_some(());
    stage.convoke()?.process()?.stderr.wait(from, LIMIT, gone)?;
    let mut third = members.join(stage, &group, &topic, "more")?;
    until_they_have(&mut [&mut third, &mut rest, &mut one], &topic, &[2, 2, 2])?;
    let _again = Assignor::start(stage, &group)?;
    third.close()?;
    until_they_have(&mut [&mut rest, &mut one], &topic, &[5, 1])?;
    rest.close()?;
    one.close()
}
