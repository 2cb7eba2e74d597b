//! Kafka's assignors, in a JVM of their own that is asked line by line.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use convoke_support::process::{self, Process};
use convoke_support::{Result, jars};
use tempfile::TempDir;

use super::{Case, MEMBERS, PARTITIONS_OF_TOPIC, TOPICS};
use crate::results::Sample;
use crate::rig::{JVM, KAFKA_VERSION};
use crate::work::Figure;

const BUILD_LIMIT: Duration = Duration::from_secs(120);
/// For what is measured, and for what comes before: a group of this size is made and settled.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(super) struct Kafka {
    process: Process,
    lines: usize,
    // Dropped last: the process has its classes from here.
    _classes: TempDir,
}

impl Kafka {
    pub(super) fn start() -> Result<Self> {
        let libs = jars::kafka(KAFKA_VERSION)?.join("*").to_string_lossy().into_owned();
        let classes = tempfile::Builder::new().prefix("convoke-assignors-").tempdir()?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("java/Assignors.java");
        let mut build = Command::new("javac");
        build
            .args(["-nowarn", "-cp", &libs, "-d"])
            .arg(classes.path())
            .arg(source);
        process::run("javac", build, BUILD_LIMIT)?;
        let class_path = format!("{}:{libs}", classes.path().display());
        let mut command = Command::new("java");
        command.args(JVM).args(["-cp", &class_path, "Assignors"]);
        Ok(Self {
            process: Process::spawn("Kafka's assignors", command)?,
            lines: 0,
            _classes: classes,
        })
    }

    pub(super) fn round(&mut self, case: Case, seconds: f64) -> Result<Sample> {
        let spans = |spans: Vec<(usize, usize)>| {
            let spans: Vec<String> = spans.iter().map(|(start, end)| format!("{start}-{end}")).collect();
            spans.join(",")
        };
        let subscriptions: Vec<String> = case.subscriptions.spans().into_iter().map(spans).collect();
        self.process.send_line(&format!(
            "{seconds} {} {MEMBERS} {TOPICS} {PARTITIONS_OF_TOPIC} {} {}",
            case.assignor.name(),
            subscriptions.join(";"),
            case.change,
        ))?;
        let answer = |line: &str| line.strip_prefix("answer ").map(str::to_owned);
        let (answer, lines) = self
            .process
            .stdout
            .wait(self.lines, ANSWER_LIMIT, answer)
            .map_err(|error| format!("{error}\n{}", self.process.report()))?;
        self.lines = lines;
        let values: Vec<f64> = answer.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let figures = [Figure::AssignMs, Figure::Gained, Figure::LeastLoad, Figure::MostLoad];
        Ok(figures.into_iter().zip(values).collect())
    }
}
