//! The Convoke process, started as a user would start it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::kafka::{Kafka, Listener, USERS};
use crate::process::Process;
use crate::{Result, http, ports};

const START_LIMIT: Duration = Duration::from_secs(60);

/// A running (or stopped, or killed) Convoke in front of a cluster. Its data and its ports outlive a restart.
#[derive(Debug)]
pub struct Convoke {
    program: PathBuf,
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
    process: Option<Process>,
    address: SocketAddr,
    admin: SocketAddr,
    nodes: BTreeMap<i32, String>,
    data: TempDir,
}

impl Convoke {
    /// Starts `program` (`env!("CARGO_BIN_EXE_convoke")`) in front of the cluster and waits until it is ready. `extra` are
    /// further arguments, such as `--set`, `key=value`.
    ///
    /// # Errors
    /// When it does not become ready; the message holds what it printed.
    pub fn start(program: &str, kafka: &Kafka, extra: &[&str]) -> Result<Self> {
        let mut convoke = Self::launch(program, kafka, extra)?;
        convoke.wait_ready()?;
        Ok(convoke)
    }

    /// Starts it and does not wait: the upstream may be down.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn launch(program: &str, kafka: &Kafka, extra: &[&str]) -> Result<Self> {
        let host = kafka.network.convoke_address();
        // The bootstrap port, the admin port, and one for each node id after them.
        let first = ports::free(16)?;
        let (address, admin) = (SocketAddr::new(host, first), SocketAddr::new(host, first + 1));
        let data = tempfile::Builder::new().prefix("convoke-data-").tempdir()?;
        let mut arguments = vec!["run".to_owned()];
        let mut flag = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
        flag("--upstream", kafka.bootstrap());
        flag("--listen", address.to_string());
        flag("--admin", admin.to_string());
        flag("--data", data.path().to_string_lossy().into_owned());
        arguments.extend(extra.iter().map(|&argument| argument.to_owned()));
        let mut environment: BTreeMap<String, String> =
            [("CONVOKE_LISTEN_NODES".to_owned(), format!("{}+{{node}}", first + 2))]
                .into_iter()
                .collect();
        if kafka.listener() == Listener::Sasl {
            let (user, password) = USERS[1];
            for (key, value) in [
                ("MECHANISM", "SCRAM-SHA-256"),
                ("USERNAME", user),
                ("PASSWORD", password),
            ] {
                environment.insert(format!("CONVOKE_UPSTREAM_SASL_{key}"), value.to_owned());
            }
        }
        let mut convoke = Self {
            program: PathBuf::from(program),
            arguments,
            environment,
            process: None,
            address,
            admin,
            nodes: BTreeMap::new(),
            data,
        };
        convoke.spawn(kafka)?;
        Ok(convoke)
    }

    /// Starts it again on the same data and ports.
    ///
    /// # Errors
    /// When it does not become ready.
    pub fn restart(&mut self, kafka: &Kafka) -> Result<()> {
        self.spawn(kafka)?;
        self.wait_ready()
    }

    fn spawn(&mut self, kafka: &Kafka) -> Result<()> {
        let mut command = kafka.network.command_inside(&self.program.to_string_lossy());
        // Settings of the test run are none of Convoke's.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CONVOKE_") {
                command.env_remove(name);
            }
        }
        command.args(&self.arguments).envs(&self.environment);
        self.process = Some(Process::spawn("convoke", command)?);
        Ok(())
    }

    /// Waits until it says that it is ready.
    ///
    /// # Errors
    /// When it does not become ready; the message holds what it printed.
    pub fn wait_ready(&mut self) -> Result<()> {
        let process = self.process()?;
        let ready = |line: &str| line.starts_with("ready ").then_some(());
        process
            .stdout
            .wait(0, START_LIMIT, ready)
            .map_err(|error| format!("convoke is not ready: {error}\n{}", process.report()))?;
        let nodes = process.stdout.tail(100).lines().filter_map(node_line).collect();
        self.nodes = nodes;
        Ok(())
    }

    /// What clients have as `bootstrap.servers`.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.address.to_string()
    }

    /// The address of each node, as the ready lines said.
    #[must_use]
    pub const fn nodes(&self) -> &BTreeMap<i32, String> {
        &self.nodes
    }

    #[must_use]
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// The running process.
    ///
    /// # Errors
    /// When it was stopped or killed.
    pub fn process(&mut self) -> Result<&mut Process> {
        self.process.as_mut().ok_or_else(|| "convoke does not run".into())
    }

    /// SIGKILL: nothing is flushed, nothing is said.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// SIGTERM, and waits for a clean end.
    ///
    /// # Errors
    /// When it does not end, or not with success.
    pub fn stop(&mut self) -> Result<()> {
        match self.process.take() {
            Some(mut process) => process.stop(Duration::from_secs(40)),
            None => Ok(()),
        }
    }

    /// One page of the admin address.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn get(&self, path: &str) -> Result<(u16, String)> {
        http::get(self.admin, path)
    }

    /// The value of one metric, summed over its series whose labels contain all of `labels`.
    ///
    /// # Errors
    /// When the page does not answer or knows no such metric.
    pub fn metric(&self, name: &str, labels: &[&str]) -> Result<f64> {
        let (_, page) = self.get("/metrics")?;
        if !page.contains(&format!("# TYPE {name} ")) {
            return Err(format!("/metrics has no {name}").into());
        }
        let series = page.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        });
        Ok(series
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
            .sum())
    }

    /// The group as `/groups` shows it.
    ///
    /// # Errors
    /// When the page does not answer or is not JSON.
    pub fn group(&self, group_id: &str) -> Result<Option<serde_json::Value>> {
        let (_, page) = self.get("/groups")?;
        let page: serde_json::Value = serde_json::from_str(&page)?;
        let groups = page["groups"]
            .as_array()
            .or_else(|| page.as_array())
            .ok_or("no groups in /groups")?;
        Ok(groups.iter().find(|group| group["group_id"] == group_id).cloned())
    }
}

/// `node id=1 upstream=HOST:PORT listen=HOST:PORT`
fn node_line(line: &str) -> Option<(i32, String)> {
    let mut fields = line
        .strip_prefix("node ")?
        .split(' ')
        .filter_map(|field| field.split_once('='));
    let (_, id) = fields.find(|(key, _)| *key == "id")?;
    let (_, listen) = fields.find(|(key, _)| *key == "listen")?;
    Some((id.parse().ok()?, listen.to_owned()))
}
