//! One cluster with Convoke in front of it, and names that are each trial's own.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use convoke_support::convoke::Convoke;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::process::Process;
use convoke_support::{Result, jars, process};
use serde_json::json;

use crate::admin::Admin;
use crate::stock::Stock;

/// Groups whose name begins so are assigned for by Convoke, or by a script.
const ASSIGN: &str =
    "groups.assign=[{groups: [assigned-*]}, {groups: [scripted-*], assignor: fickle, fallback: sticky}]";
const ASSIGNORS: &str = "assignors=[{name: fickle, groups: [scripted-*]}]";

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Whether the scenarios run against the brokers themselves.
pub fn direct() -> bool {
    std::env::var_os("CONVOKE_TEST_DIRECT").is_some()
}

#[derive(Debug)]
pub struct Stage {
    // Dropped first: they live in the cluster's network.
    convoke: Option<Convoke>,
    /// An admin client beside the brokers, past Convoke.
    admin: Admin,
    pub kafka: Kafka,
}

impl Stage {
    pub fn start(options: Options) -> Result<Self> {
        let kafka = Kafka::start(options)?;
        let convoke = if direct() {
            None
        } else {
            Some(Self::convoke_for(&kafka)?)
        };
        let admin = Admin::beside_brokers(&kafka, Stock::Java440)?;
        Ok(Self { convoke, admin, kafka })
    }

    fn convoke_for(kafka: &Kafka) -> Result<Convoke> {
        Convoke::start(
            env!("CARGO_BIN_EXE_convoke"),
            kafka,
            &["--set", ASSIGN, "--set", ASSIGNORS],
        )
    }

    /// Brings back what an earlier trial that failed may have left dead.
    pub fn prepare(&mut self) -> Result<()> {
        if let Some(convoke) = &mut self.convoke
            && convoke.process().map_or(true, Process::has_ended)
        {
            convoke.restart(&self.kafka)?;
        }
        Ok(())
    }

    pub fn convoke(&mut self) -> Result<&mut Convoke> {
        self.convoke.as_mut().ok_or_else(|| "this trial needs Convoke".into())
    }

    /// Kills Convoke and starts it again on the same data and ports.
    pub fn kill_and_restart_convoke(&mut self) -> Result<()> {
        if let Some(convoke) = &mut self.convoke {
            convoke.kill();
            convoke.restart(&self.kafka)?;
        }
        Ok(())
    }

    /// What clients connect to.
    pub fn bootstrap(&self) -> String {
        self.convoke
            .as_ref()
            .map_or_else(|| self.kafka.bootstrap(), Convoke::bootstrap)
    }

    /// A command for a client: out of reach of the brokers, unless the run is direct.
    pub fn command(&self, program: &str) -> Command {
        if direct() {
            self.kafka.network.command_inside(program)
        } else {
            Command::new(program)
        }
    }

    /// Whether the brokers themselves have the consumer protocol (KIP-848).
    pub fn brokers_have_consumer_groups(&self) -> bool {
        !self.kafka.version().starts_with("3.")
    }

    /// A name that no other trial has.
    pub fn name(&self, what: &str) -> String {
        format!("{what}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// A new topic with that many partitions.
    pub fn topic(&mut self, partitions: u32) -> Result<String> {
        let name = self.name("topic");
        self.admin
            .answer("createTopic", json!({"topic": name, "partitions": partitions}))?;
        Ok(name)
    }

    /// The admin client beside the brokers, past Convoke.
    pub const fn admin(&mut self) -> &mut Admin {
        &mut self.admin
    }

    /// A second Convoke in front of the same cluster, on data and ports of its own; it need not be ready.
    pub fn another_convoke(&self) -> Result<Convoke> {
        Convoke::launch(env!("CARGO_BIN_EXE_convoke"), &self.kafka, &[])
    }

    /// Runs one of Kafka's own tools of that version as a client does.
    pub fn tool(&self, version: &str, class: &str, arguments: &[&str]) -> Result<String> {
        let libs = jars::kafka(version)?.join("*");
        let mut command = self.command("java");
        command
            .args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"])
            .arg(libs)
            .arg(class);
        process::run(class, command_with(command, arguments), Duration::from_secs(90))
    }

    /// SIGTERM for Convoke, a clean end, and a start on the same data and ports.
    pub fn stop_and_restart_convoke(&mut self) -> Result<()> {
        if let Some(convoke) = &mut self.convoke {
            convoke.stop()?;
            convoke.restart(&self.kafka)?;
        }
        Ok(())
    }

    /// The end of Convoke's log, for a failure's report.
    pub fn report(&mut self) -> String {
        let Some(convoke) = &mut self.convoke else {
            return String::new();
        };
        convoke
            .process()
            .map_or_else(|error| error.to_string(), |process| process.report())
    }
}

fn command_with(mut command: Command, arguments: &[&str]) -> Command {
    command.args(arguments);
    command
}
