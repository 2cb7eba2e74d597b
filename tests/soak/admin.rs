//! A stock admin client, through Convoke as every client.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use convoke_support::Result;
use convoke_support::process::Process;
use convoke_support::stock::Stock;
use serde_json::{Value, json};

/// An answer comes within this; the client's own limit is lower.
const ANSWER: Duration = Duration::from_secs(60);
/// How long a call that fails is tried again.
const PATIENCE: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub struct Admin {
    process: Process,
    next: usize,
}

impl Admin {
    pub fn start(bootstrap: &str) -> Result<Self> {
        let (program, arguments) = Stock::Java440.program()?;
        let mut command = Command::new(program);
        let config = json!({"role": "admin", "bootstrap": bootstrap, "client_id": "admin"});
        command.args(arguments).arg(config.to_string());
        Ok(Self {
            process: Process::spawn("admin client", command)?,
            next: 0,
        })
    }

    pub fn create_topic(&mut self, topic: &str, partitions: u32) -> Result<()> {
        self.call(&json!({"call": "createTopic", "topic": topic, "partitions": partitions}))
            .map(drop)
    }

    pub fn grow_topic(&mut self, topic: &str, partitions: u32) -> Result<()> {
        self.call(&json!({"call": "createPartitions", "topic": topic, "partitions": partitions}))
            .map(drop)
    }

    /// What is committed, by group and partition.
    pub fn committed(&mut self, groups: &[&str]) -> Result<BTreeMap<String, BTreeMap<String, i64>>> {
        let answer = self.call(&json!({"call": "listConsumerGroupOffsets", "groups": groups}))?;
        let groups = answer.as_object().into_iter().flatten().map(|(group, offsets)| {
            let offsets = offsets.as_object().into_iter().flatten();
            let offsets = offsets.filter_map(|(name, said)| Some((name.clone(), offset(said.as_str()?)?)));
            (group.clone(), offsets.collect())
        });
        Ok(groups.collect())
    }

    pub fn close(&mut self) -> Result<()> {
        self.process.send_line("close")?;
        self.process.wait(ANSWER).map(drop)
    }

    /// Tries until it is answered: the first try may have been, too, and its answer lost.
    fn call(&mut self, asked: &Value) -> Result<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.process.send_line(&asked.to_string())?;
            let parse = |line: &str| serde_json::from_str::<Value>(line).ok().filter(Value::is_object);
            let waited = self.process.stdout.wait(self.next, ANSWER, parse);
            let (said, next) = waited.map_err(|error| format!("{asked}: {error}\n{}", self.process.report()))?;
            self.next = next;
            let was_done = ["TopicExistsException", "InvalidPartitionsException"].map(Value::from);
            if said["event"] == "answered" || was_done.contains(&said["error"]) {
                return Ok(said["answer"].clone());
            }
            if Instant::now() > deadline {
                return Err(format!("{asked}: {said}").into());
            }
            // A failure that came at once would come at once again.
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// `OffsetAndMetadata{offset=7, …`
fn offset(said: &str) -> Option<i64> {
    let (_, rest) = said.split_once("offset=")?;
    rest.split([',', '}']).next()?.parse().ok()
}
