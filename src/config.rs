//! The configuration: one YAML file, environment variables for every key, flags for the common ones.

mod assign;
mod assignors;
mod checks;
mod document;
mod host_port;
pub mod keys;
mod layers;
mod load;
mod node_ports;
mod problem;
mod rules;
pub mod settings;
pub mod units;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use assign::AssignConfig;
pub use assignors::AssignorConfig;
pub(crate) use assignors::assignor_name;
pub use load::{admin_address, load, password_from};
pub use problem::{ConfigError, Place, Problem};

use crate::telemetry::log::LogFormat;

/// Where a configuration comes from. Flags win over the environment, that over the file, that over the defaults.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    pub file: Option<PathBuf>,
    /// The whole environment; only names with Convoke's prefix count.
    pub environment: Vec<(String, String)>,
    pub flags: Vec<Flag>,
}

/// One flag that sets a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// As it was written, such as `--listen`.
    pub flag: String,
    pub key: String,
    pub value: String,
}

/// A configuration that holds.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    /// What is most probably not meant, such as an environment variable that sets nothing.
    pub warnings: Vec<Problem>,
    /// Every key with the value in force, for `convoke check`.
    pub effective: Vec<Effective>,
}

/// The value in force for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    pub key: String,
    pub value: String,
    /// `Nowhere` for a default.
    pub place: Place,
}

/// Everything a run needs, typed and validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub upstream: UpstreamConfig,
    pub listen: ListenConfig,
    pub admin: AdminConfig,
    pub store: StoreConfig,
    pub groups: GroupsConfig,
    /// Client-side assignors; of several that always have a group the first holds.
    pub assignors: Vec<AssignorConfig>,
    /// Overrides of the coordinator's settings under Kafka's names, e.g. `group.initial.rebalance.delay.ms`.
    pub settings: BTreeMap<String, String>,
    pub limits: LimitsConfig,
    /// How long a SIGTERM waits for answers that are on their way.
    pub drain_timeout: Duration,
    pub log: LogConfig,
}

/// The log, on standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// A level such as `info`, or levels by module: `info,convoke::upstream=debug`.
    pub filter: String,
    pub format: LogFormat,
}

/// The real brokers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamConfig {
    pub bootstrap: Vec<HostPort>,
    /// For the connections of our own; clients authenticate themselves.
    pub sasl: Option<SaslConfig>,
    pub connect_timeout: Duration,
    pub request_timeout: Duration,
    /// How old the picture of nodes and topics may grow.
    pub metadata_refresh: Duration,
}

/// Our own credentials at the upstream.
#[derive(Clone, PartialEq, Eq)]
pub struct SaslConfig {
    pub mechanism: SaslMechanism,
    pub username: String,
    pub password: String,
}

impl std::fmt::Debug for SaslConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SaslConfig")
            .field("mechanism", &self.mechanism)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaslMechanism {
    Plain,
    ScramSha256,
    ScramSha512,
}

/// A host name or address and a port. Port 0 asks for a free one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    pub host: String,
    pub port: u16,
}

/// Where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenConfig {
    /// Bound for bootstrap connections.
    pub bootstrap: HostPort,
    /// How each node's address is bound.
    pub nodes: NodePorts,
    /// What clients are told instead of the bound address; `{node}` is the node id, `{port}` the bound port.
    pub advertise: Option<AdvertiseTemplate>,
}

/// The ports of the node listeners, on the bootstrap listener's host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodePorts {
    /// Any free port.
    Ephemeral,
    /// Node `n` gets `base + n`.
    Base(u16),
    /// The next free one of the range, lowest first, in the order in which nodes are found (by id at start).
    Range { first: u16, last: u16 },
}

/// `host:port` with `{node}` and `{port}` in either part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvertiseTemplate {
    pub host: String,
    pub port: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminConfig {
    pub listen: SocketAddr,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreConfig {
    /// The directory of the embedded store's file.
    pub data: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupsConfig {
    /// Groups that stay with the upstream's own coordinator: names, or prefixes that end in `*`.
    pub delegate: Vec<String>,
    /// Classic groups that the coordinator assigns for; the first rule that means a group holds.
    pub assign: Vec<AssignConfig>,
}

/// Every limit that protects the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Bytes of the largest frame from a client (or from the upstream).
    pub frame_max: usize,
    /// Bytes of the largest request that ends here and so is held in memory.
    pub owned_request_max: usize,
    /// Bytes of all such requests together, but for those that fit a connection's buffer.
    pub owned_memory_max: usize,
    /// Bytes that groups keep of what their members say of themselves, all groups together.
    pub group_memory_max: usize,
    pub connections_max: usize,
    pub connections_max_per_ip: usize,
    /// A client that sends nothing for so long, with nothing under way, is disconnected.
    pub idle_timeout: Duration,
    /// Bytes of the buffer each direction of a connection streams through.
    pub buffer: usize,
    /// Requests of one connection that may be under way.
    pub pipeline_max: usize,
    /// Bytes of metadata that a client-side assignor may have for one member.
    pub assignor_metadata_max: usize,
}
