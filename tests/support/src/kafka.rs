//! Real Apache Kafka brokers (KRaft), of any version that Maven Central serves, on one node or three.

mod sasl;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

pub use sasl::USERS;

use crate::network::Network;
use crate::process::{self, Process};
use crate::{Result, jars, ports};

const START_LIMIT: Duration = Duration::from_secs(90);

/// How clients of the brokers (Convoke among them) authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    Plaintext,
    /// SASL_PLAINTEXT with PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and unsecured OAUTHBEARER; users in [`USERS`].
    Sasl,
}

/// What to start.
#[derive(Debug, Clone)]
pub struct Options {
    pub version: String,
    pub nodes: i32,
    pub listener: Listener,
    /// Further users of the SASL listener's PLAIN: name and password.
    pub users: Vec<(String, String)>,
    /// Further broker properties; they win over ours.
    pub properties: BTreeMap<String, String>,
    /// Where a further listener of each node says that it is: at a relay, on its own port.
    pub relay: Option<IpAddr>,
    /// The broker's JVM flags; by default small and quick to start, not fast.
    pub jvm: Vec<String>,
}

impl Options {
    #[must_use]
    pub fn new(version: &str) -> Self {
        Self {
            version: version.to_owned(),
            nodes: 1,
            listener: Listener::Plaintext,
            users: Vec::new(),
            properties: BTreeMap::new(),
            relay: None,
            jvm: JAVA_BROKER.map(str::to_owned).to_vec(),
        }
    }

    #[must_use]
    pub const fn nodes(mut self, nodes: i32) -> Self {
        self.nodes = nodes;
        self
    }

    #[must_use]
    pub const fn sasl(mut self) -> Self {
        self.listener = Listener::Sasl;
        self
    }

    /// Adds a user to the SASL listener, for PLAIN.
    #[must_use]
    pub fn user(mut self, name: &str, password: &str) -> Self {
        self.users.push((name.to_owned(), password.to_owned()));
        self
    }

    /// Lets users do only what ACLs allow them; `admin` alone may do everything.
    #[must_use]
    pub fn authorizer(self) -> Self {
        let class = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
        // Controllers talk to each other on a listener without users.
        self.set("authorizer.class.name", class)
            .set("super.users", "User:admin;User:ANONYMOUS")
    }

    /// Gives each node a further listener, for clients that come through a relay at this host; see [`Kafka::relayed`].
    #[must_use]
    pub const fn relay(mut self, host: IpAddr) -> Self {
        self.relay = Some(host);
        self
    }

    /// Members of consumer groups are heard twice a second (by default, every five seconds).
    #[must_use]
    pub fn quick_heartbeats(self) -> Self {
        self.set("group.consumer.min.heartbeat.interval.ms", "500")
            .set("group.consumer.heartbeat.interval.ms", "500")
    }

    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.properties.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Other JVM flags for the brokers.
    #[must_use]
    pub fn jvm(mut self, flags: &[&str]) -> Self {
        self.jvm = flags.iter().map(|&flag| flag.to_owned()).collect();
        self
    }
}

/// A running cluster. Dropping it kills the brokers and removes their data.
#[derive(Debug)]
pub struct Kafka {
    brokers: BTreeMap<i32, Broker>,
    options: Options,
    libs: PathBuf,
    // Dropped last: the processes above live in these.
    pub network: Network,
    folder: TempDir,
}

#[derive(Debug)]
struct Broker {
    port: u16,
    controller_port: u16,
    relayed_port: u16,
    process: Option<Process>,
}

impl Kafka {
    /// Formats and starts the cluster and waits until every node serves.
    ///
    /// # Errors
    /// When jars cannot be had or a node does not come up; the message holds the end of its log.
    pub fn start(options: Options) -> Result<Self> {
        Self::start_in(Network::new(), options)
    }

    /// The same in a network of the caller's choice.
    ///
    /// # Errors
    /// As `start`.
    pub fn start_in(network: Network, options: Options) -> Result<Self> {
        let libs = jars::kafka(&options.version)?;
        let folder = tempfile::Builder::new().prefix("convoke-kafka-").tempdir()?;
        let count = u16::try_from(options.nodes)?;
        let first = ports::free(3 * count)?;
        let brokers = (1..=options.nodes)
            .zip(first..)
            .map(|(id, port)| {
                (
                    id,
                    Broker {
                        port,
                        controller_port: port + count,
                        relayed_port: port + 2 * count,
                        process: None,
                    },
                )
            })
            .collect();
        let mut kafka = Self {
            brokers,
            options,
            libs,
            network,
            folder,
        };
        let ids: Vec<i32> = kafka.brokers.keys().copied().collect();
        for id in &ids {
            kafka.format(*id)?;
        }
        for id in &ids {
            kafka.spawn(*id)?;
        }
        for id in &ids {
            kafka.wait_ready(*id)?;
        }
        Ok(kafka)
    }

    /// `127.0.0.1:port` of every node, as `bootstrap.servers` has it; reachable only inside the network.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.brokers
            .values()
            .map(|broker| format!("127.0.0.1:{}", broker.port))
            .collect::<Vec<_>>()
            .join(",")
    }

    /// The address of one node.
    ///
    /// # Panics
    /// When there is no such node.
    #[must_use]
    pub fn address(&self, id: i32) -> String {
        format!("127.0.0.1:{}", self.brokers[&id].port)
    }

    /// Where a relay of [`Options::relay`] is to listen for each node, and where it is to connect to.
    #[must_use]
    pub fn relayed(&self) -> Vec<(SocketAddr, SocketAddr)> {
        let brokers = self.options.relay.into_iter().flat_map(|host| {
            let ports = self.brokers.values().map(|broker| broker.relayed_port);
            ports.map(move |port| {
                (
                    SocketAddr::new(host, port),
                    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
                )
            })
        });
        brokers.collect()
    }

    /// The process of one node while it runs: the broker itself on loopback, else what started it in its network.
    #[must_use]
    pub fn process_id(&self, id: i32) -> Option<u32> {
        Some(self.brokers.get(&id)?.process.as_ref()?.id())
    }

    #[must_use]
    pub fn version(&self) -> &str {
        &self.options.version
    }

    #[must_use]
    pub const fn listener(&self) -> Listener {
        self.options.listener
    }

    /// Kills one node at once.
    pub fn kill(&mut self, id: i32) {
        if let Some(broker) = self.brokers.get_mut(&id) {
            broker.process = None;
        }
    }

    /// Stops one node as an operator would, and waits for its end.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop(&mut self, id: i32) -> Result<()> {
        if let Some(mut process) = self.brokers.get_mut(&id).and_then(|broker| broker.process.take()) {
            process.terminate();
            process.wait(Duration::from_secs(60))?;
        }
        Ok(())
    }

    /// Starts a node that was stopped or killed, on its old port and data.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn restart(&mut self, id: i32) -> Result<()> {
        self.spawn(id)?;
        self.wait_ready(id)
    }

    /// Lets one node stand still, all of its threads.
    pub fn freeze(&self, id: i32) {
        self.process(id).into_iter().for_each(Process::freeze);
    }

    /// Lets it go on.
    pub fn thaw(&self, id: i32) {
        self.process(id).into_iter().for_each(Process::thaw);
    }

    fn process(&self, id: i32) -> Option<&Process> {
        self.brokers.get(&id)?.process.as_ref()
    }

    /// Runs one of Kafka's own tools beside the brokers, for example `org.apache.kafka.tools.TopicCommand`.
    ///
    /// # Errors
    /// When it fails; the message holds what it printed.
    pub fn tool(&self, class: &str, arguments: &[&str]) -> Result<String> {
        let mut command = self.network.command_inside("java");
        command
            .args(JAVA_TOOL)
            .args(["-cp", &self.class_path(), class])
            .args(arguments);
        process::run(class, command, Duration::from_secs(120))
    }

    /// Creates a topic with one replica (or as many as there are nodes, for a cluster).
    ///
    /// # Errors
    /// When the tool fails.
    pub fn create_topic(&self, name: &str, partitions: u32) -> Result<()> {
        let client = self.admin_properties()?;
        self.tool(
            "org.apache.kafka.tools.TopicCommand",
            &[
                "--bootstrap-server",
                &self.bootstrap(),
                "--command-config",
                &client.to_string_lossy(),
                "--create",
                "--topic",
                name,
                "--partitions",
                &partitions.to_string(),
                "--replication-factor",
                &self.options.nodes.to_string(),
            ],
        )
        .map(drop)
    }

    /// A client properties file for a super user of the listener.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn admin_properties(&self) -> Result<PathBuf> {
        let path = self.folder.path().join("admin.properties");
        let text = match self.options.listener {
            Listener::Plaintext => String::new(),
            Listener::Sasl => sasl::admin_client(),
        };
        fs::write(&path, text)?;
        Ok(path)
    }

    fn class_path(&self) -> String {
        self.libs.join("*").to_string_lossy().into_owned()
    }

    fn data(&self, id: i32) -> PathBuf {
        self.folder.path().join(format!("node-{id}"))
    }

    fn properties_path(&self, id: i32) -> PathBuf {
        self.folder.path().join(format!("node-{id}.properties"))
    }

    /// 16 bytes in base64, another for each cluster of a machine: the first controller's port is in it.
    fn cluster_id(&self) -> String {
        let port = self.brokers.values().next().map_or(0, |broker| broker.controller_port);
        format!("4L6g3nShT-{port:05}--X86sw")
    }

    fn format(&self, id: i32) -> Result<()> {
        fs::write(self.properties_path(id), self.properties(id)?)?;
        let mut command = Command::new("java");
        command
            .args(JAVA_TOOL)
            .args([
                "-cp",
                &self.class_path(),
                "kafka.tools.StorageTool",
                "format",
                "-t",
                &self.cluster_id(),
                "-c",
            ])
            .arg(self.properties_path(id));
        if self.options.listener == Listener::Sasl {
            command.args(sasl::scram_arguments());
        }
        process::run("kafka.tools.StorageTool", command, Duration::from_secs(60)).map(drop)
    }

    fn spawn(&mut self, id: i32) -> Result<()> {
        let mut command = self.network.command_inside("java");
        command
            .args(&self.options.jvm)
            .arg(self.log_configuration()?)
            .args(["-cp", &self.class_path(), "kafka.Kafka"]);
        command.arg(self.properties_path(id));
        let process = Process::spawn(&format!("Kafka {} node {id}", self.options.version), command)?;
        if let Some(broker) = self.brokers.get_mut(&id) {
            broker.process = Some(process);
        }
        Ok(())
    }

    fn wait_ready(&self, id: i32) -> Result<()> {
        let process = self
            .brokers
            .get(&id)
            .and_then(|broker| broker.process.as_ref())
            .ok_or("no such node")?;
        let started = |line: &str| line.contains("Kafka Server started").then_some(());
        process
            .stdout
            .wait(0, START_LIMIT, started)
            .map(drop)
            .map_err(|error| format!("{} did not start: {error}\n{}", process.name(), process.report()).into())
    }

    fn log_configuration(&self) -> Result<String> {
        let old = self.options.version.starts_with("3.");
        let (name, text, flag) = if old {
            ("log4j.properties", LOG4J_1, "-Dlog4j.configuration=file:")
        } else {
            ("log4j2.properties", LOG4J_2, "-Dlog4j2.configurationFile=")
        };
        let path = self.folder.path().join(name);
        fs::write(&path, text)?;
        Ok(format!("{flag}{}", path.display()))
    }

    fn properties(&self, id: i32) -> Result<String> {
        let broker = self.brokers.get(&id).ok_or("no such node")?;
        let voters: Vec<_> = self
            .brokers
            .iter()
            .map(|(id, broker)| format!("{id}@127.0.0.1:{}", broker.controller_port))
            .collect();
        let replicas = self.options.nodes.to_string();
        let protocol = match self.options.listener {
            Listener::Plaintext => "PLAINTEXT",
            Listener::Sasl => "SASL_PLAINTEXT",
        };
        let mut properties = base_properties(&self.data(id), &replicas);
        let mut set = |key: &str, value: String| properties.insert(key.to_owned(), value);
        set("node.id", id.to_string());
        let mut listeners = format!(
            "CLIENT://127.0.0.1:{},CONTROLLER://127.0.0.1:{}",
            broker.port, broker.controller_port
        );
        let mut advertised = format!("CLIENT://127.0.0.1:{}", broker.port);
        let mut protocols = format!("CLIENT:{protocol},CONTROLLER:PLAINTEXT");
        if let Some(host) = self.options.relay {
            let port = broker.relayed_port;
            let _ = write!(listeners, ",RELAYED://127.0.0.1:{port}");
            let _ = write!(advertised, ",RELAYED://{host}:{port}");
            let _ = write!(protocols, ",RELAYED:{protocol}");
        }
        set("listeners", listeners);
        set("advertised.listeners", advertised);
        set("listener.security.protocol.map", protocols);
        set("controller.quorum.voters", voters.join(","));
        if self.options.listener == Listener::Sasl {
            properties.extend(sasl::listener(&self.options.users));
        }
        properties.extend(self.options.properties.clone());
        Ok(properties.iter().fold(String::new(), |mut text, (key, value)| {
            let _ = writeln!(text, "{key}={value}");
            text
        }))
    }
}

fn base_properties(data: &Path, replicas: &str) -> BTreeMap<String, String> {
    [
        ("process.roles", "broker,controller"),
        ("controller.listener.names", "CONTROLLER"),
        ("inter.broker.listener.name", "CLIENT"),
        ("log.dirs", &data.to_string_lossy()),
        ("num.partitions", "1"),
        ("default.replication.factor", replicas),
        ("offsets.topic.replication.factor", replicas),
        ("transaction.state.log.replication.factor", replicas),
        ("transaction.state.log.min.isr", "1"),
        ("share.coordinator.state.topic.replication.factor", replicas),
        ("share.coordinator.state.topic.min.isr", "1"),
        ("share.coordinator.state.topic.num.partitions", "3"),
        ("transaction.state.log.num.partitions", "3"),
        ("offsets.topic.num.partitions", "5"),
        ("group.initial.rebalance.delay.ms", "300"),
        ("controlled.shutdown.enable", "true"),
        ("log.cleaner.dedupe.buffer.size", "20000000"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}

const JAVA_TOOL: [&str; 3] = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
const JAVA_BROKER: [&str; 3] = ["-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

const LOG4J_1: &str = "log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
";

const LOG4J_2: &str = "rootLogger.level=INFO
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m (%c)%n
";
