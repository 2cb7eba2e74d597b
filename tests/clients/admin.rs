//! A Java AdminClient that stays up and does what it is asked, line by line: through Convoke as a client does, or beside the
//! brokers, where it also makes the topics of the trials.

use std::process::Command;

use convoke_support::Result;
use convoke_support::kafka::{Kafka, Listener, USERS};
use convoke_support::process::Process;
use serde_json::{Value, json};

use crate::member::LIMIT;
use crate::stage::Stage;
use crate::stock::Stock;

#[derive(Debug)]
pub struct Admin {
    process: Process,
    next: usize,
}

impl Admin {
    /// Through Convoke, unless the run is direct.
    pub fn through_convoke(stage: &Stage, stock: Stock) -> Result<Self> {
        let (program, arguments) = stock.program()?;
        Self::start(
            stage.command(&program),
            &arguments,
            &stage.bootstrap(),
            stage.kafka.listener(),
        )
    }

    /// At the brokers' own addresses, where no client of Convoke is.
    pub fn past_convoke(stage: &Stage, stock: Stock) -> Result<Self> {
        Self::beside_brokers(&stage.kafka, stock)
    }

    /// As `past_convoke`, for a cluster that has no stage yet.
    pub fn beside_brokers(kafka: &Kafka, stock: Stock) -> Result<Self> {
        let (program, arguments) = stock.program()?;
        Self::start(
            kafka.network.command_inside(&program),
            &arguments,
            &kafka.bootstrap(),
            kafka.listener(),
        )
    }

    fn start(mut command: Command, arguments: &[String], bootstrap: &str, listener: Listener) -> Result<Self> {
        let mut config = json!({"role": "admin", "bootstrap": bootstrap, "client_id": "admin"});
        if listener == Listener::Sasl {
            let (username, password) = USERS[0];
            config["sasl"] = json!({"mechanism": "PLAIN", "username": username, "password": password});
        }
        command.args(arguments).arg(config.to_string());
        Ok(Self {
            process: Process::spawn("admin client", command)?,
            next: 0,
        })
    }

    /// One call and what came of it: `{"answer": …}` or `{"error": class, "message": …}`.
    ///
    /// # Errors
    /// When the client itself does not answer.
    pub fn call(&mut self, name: &str, arguments: Value) -> Result<Value> {
        let mut asked = arguments;
        asked["call"] = json!(name);
        self.process.send_line(&asked.to_string())?;
        let parse = |line: &str| serde_json::from_str::<Value>(line).ok().filter(Value::is_object);
        let (mut event, next) = self
            .process
            .stdout
            .wait(self.next, LIMIT, parse)
            .map_err(|error| format!("{name}: {error}\n{}", self.process.report()))?;
        self.next = next;
        if let Some(event) = event.as_object_mut() {
            event.remove("event");
            event.remove("call");
            event.remove("at");
        }
        Ok(event)
    }

    /// The answer of a call that must succeed.
    pub fn answer(&mut self, name: &str, arguments: Value) -> Result<Value> {
        let said = self.call(name, arguments)?;
        match said.get("answer") {
            Some(answer) => Ok(answer.clone()),
            None => Err(format!("{name} failed: {said}").into()),
        }
    }
}
