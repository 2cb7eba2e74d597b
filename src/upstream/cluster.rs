//! The picture of the upstream cluster: one watcher keeps it, everybody reads it without a lock.
//!
//! | part | its one job |
//! |---|---|
//! | [`ClusterWatch`] | what the rest of the program sees |
//! | `shared` | the published picture, and who may change it |
//! | `watcher` | refreshes the picture, tells who was deleted, says when the upstream goes and comes |
//! | `keeper` | one for each node: keeps a connection, the node's versions and whether it checks ACLs |
//! | `lookup` | asks for single topics that the picture does not have |
//! | `deletions` | which vanished topics are certainly gone; no I/O |
//! | `told` | what the coordinator is told of the topics |
//! | `racks` | the racks that a topic's partitions are in |
//! | `metadata` | the requests and how their answers are read |

mod deletions;
mod keeper;
mod lookup;
mod metadata;
mod racks;
mod shared;
mod told;
mod watcher;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::UpstreamError;
use super::node::Node;
use super::pool::Pool;
use crate::config::{HostPort, UpstreamConfig};
use crate::coordinator::input::DeletedTopic;
use crate::coordinator::request::Text;
pub use crate::coordinator::topics::{Topic, Topics};

use crate::wire::api::DESCRIBE_CONFIGS;

use lookup::{Lookup, TopicKey};
pub use racks::Racks;
use shared::Shared;

/// Deletions that wait for the runtime to take them; while it is full they wait with the watcher.
const DELETED_QUEUE: usize = 16;

/// One look at the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cluster {
    pub cluster_id: Option<Text>,
    /// Nodes as the upstream advertises them on the listener that we use.
    pub nodes: BTreeMap<i32, HostPort>,
    pub topics: Arc<Topics>,
    /// The rack of every node that was seen.
    pub racks: Racks,
    /// The node that coordinates each partition of `__consumer_offsets` (-1: none now). Empty while the topic does not exist.
    pub coordinators: Vec<i32>,
    /// The api versions and features that each node was last heard to speak.
    pub versions: BTreeMap<i32, Arc<NodeVersions>>,
    /// Whether each node checks ACLs: whether its `authorizer.class.name` was set when it was last connected to. A node that
    /// has not told is not in here.
    pub authorizers: BTreeMap<i32, bool>,
}

impl Cluster {
    /// Whether the upstream may refuse somebody something at this node, or, without one, at any node. Only a node that says
    /// that it has no authorizer refuses nobody anything.
    #[must_use]
    pub fn checks_access(&self, node_id: Option<i32>) -> bool {
        let checks = |id: &i32| self.authorizers.get(id) != Some(&false);
        match node_id {
            Some(id) => checks(&id),
            None => self.nodes.is_empty() || self.nodes.keys().any(checks),
        }
    }
}

impl Cluster {
    /// Whether groups can be given settings of their own there (resource GROUP, Kafka 4.0). Brokers that know how have left the
    /// first version of DescribeConfigs behind (KIP-896). During an upgrade, once every node does.
    #[must_use]
    pub fn has_group_configs(&self) -> bool {
        let mut known = self.nodes.keys().filter_map(|id| self.versions.get(id));
        known.all(|node| node.apis.get(&DESCRIBE_CONFIGS).is_some_and(|(min, _)| *min > 0))
    }
}

/// What a node answers to ApiVersions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeVersions {
    /// Key to (min, max).
    pub apis: BTreeMap<i16, (i16, i16)>,
    /// Name, min, max.
    pub supported_features: Vec<(String, i16, i16)>,
    /// Name, max level, min level.
    pub finalized_features: Vec<(String, i16, i16)>,
    /// -1 when unknown.
    pub finalized_features_epoch: i64,
}

/// How the upstream does, for `/readyz` and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamState {
    /// Whether the last refresh of the picture succeeded.
    pub reachable: bool,
    /// For how long it has been so.
    pub since: Duration,
    /// Why the last refresh failed; `None` after one that succeeded.
    pub last_error: Option<String>,
    /// Since the picture was last confirmed; `None` before the first one.
    pub snapshot_age: Option<Duration>,
    /// Nodes with a working connection of ours.
    pub nodes_connected: usize,
    /// Requests and dials of our own that failed, since the start.
    pub failures: u64,
    /// Times that the coordinator was told of other topics than before, since the first picture.
    pub topic_changes: u64,
}

/// The picture of the cluster and how to ask for what it lacks. Clones are cheap and see the same.
#[derive(Debug, Clone)]
pub struct ClusterWatch {
    shared: Arc<Shared>,
    lookup: Lookup,
}

impl ClusterWatch {
    /// Starts the tasks that keep the picture; they end with `shutdown`. The receiver gets topics that are certainly gone.
    #[must_use]
    pub fn start(
        config: &UpstreamConfig,
        pool: Arc<Pool>,
        shutdown: &CancellationToken,
    ) -> (Self, mpsc::Receiver<Vec<DeletedTopic>>) {
        let shared = Arc::new(Shared::new(pool, config.bootstrap.clone()));
        let (deleted, receiver) = mpsc::channel(DELETED_QUEUE);
        watcher::spawn(Arc::clone(&shared), config.metadata_refresh, deleted, shutdown.clone());
        let lookup = Lookup::spawn(Arc::clone(&shared), config.request_timeout, shutdown.clone());
        (Self { shared, lookup }, receiver)
    }

    /// The latest picture. Before the first answer of the upstream it is empty.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Cluster> {
        self.shared.snapshot()
    }

    /// The same for a moment: cheaper, since threads that only look share no count. Not to be kept while waiting.
    #[must_use]
    pub fn look(&self) -> Guard<Arc<Cluster>> {
        self.shared.look()
    }

    /// Counts the pictures that differ from the one before: 0 until the first one.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.shared.subscribe()
    }

    /// The topics for the coordinator, whenever they differ: the picture's, but a topic stays until it is certainly gone.
    #[must_use]
    pub fn topics(&self) -> watch::Receiver<Arc<Topics>> {
        self.shared.topics()
    }

    /// The topics that the coordinator was told of last.
    #[must_use]
    pub fn told_topics(&self) -> Arc<Topics> {
        Arc::clone(&self.shared.topics().borrow())
    }

    /// Waits for the first picture, and for the versions and authorizers of its nodes; a node that does not answer is waited for only
    /// briefly. Ends never while the upstream is out of reach.
    pub async fn ready(&self) -> Arc<Cluster> {
        self.shared.ready().await
    }

    /// Asks for a fresh picture soon; requests that come together make one.
    pub fn request_refresh(&self) {
        self.shared.request_refresh();
    }

    /// Somebody has changed topics: the picture is looked at soon, and once more when every broker has heard of it.
    pub fn topics_changed(&self) {
        self.shared.topics_changed();
    }

    /// Somebody has changed settings.
    pub fn change_configs(&self) {
        self.shared.change_configs();
    }

    /// Resolves when settings were changed since the last time; for one waiter.
    pub async fn configs_changed(&self) {
        self.shared.configs_changed().await;
    }

    /// Takes topics that were there once, by their ids: those that are certainly gone are told to the receiver of
    /// [`Self::start`], as if the picture had shown them.
    pub fn check_topics(&self, topics: BTreeMap<Uuid, Text>) {
        if self.shared.miss(topics) {
            self.request_refresh();
        }
    }

    #[must_use]
    pub fn state(&self) -> UpstreamState {
        self.shared.state()
    }

    /// Whether another cluster answers at the upstream's addresses than the one that the state here belongs to: then nothing
    /// may be served, since neither side's offsets mean anything to the other.
    #[must_use]
    pub fn is_other_cluster(&self) -> bool {
        self.shared.is_other_cluster()
    }

    /// The topic of this name, from the picture or else from the upstream. It is never created.
    ///
    /// # Errors
    /// When the upstream could not tell; that is not "no such topic".
    pub async fn find_topic(&self, name: &str) -> Result<Option<Topic>, UpstreamError> {
        if let Some(topic) = self.snapshot().topics.by_name.get(name) {
            return Ok(Some(topic.clone()));
        }
        if !is_legal_topic(name) {
            return Ok(None);
        }
        self.lookup.find(TopicKey::Name(Text::from(name))).await
    }

    /// The topic of this id, from the picture or else from the upstream.
    ///
    /// # Errors
    /// When the upstream could not tell; that is not "no such topic".
    pub async fn find_topic_by_id(&self, id: Uuid) -> Result<Option<Topic>, UpstreamError> {
        if let Some(topic) = self.snapshot().topics.by_id(&id) {
            return Ok(Some(topic.clone()));
        }
        if id.is_nil() {
            return Ok(None);
        }
        self.lookup.find(TopicKey::Id(id)).await
    }

    /// The topic of this name with at least this partition, asking the upstream once (a second at most) when the picture
    /// shows fewer: it may have grown.
    ///
    /// # Errors
    /// When the upstream could not tell.
    pub async fn find_partition(&self, name: &str, partition: i32) -> Result<Option<Topic>, UpstreamError> {
        let found = self.find_topic(name).await?;
        match found {
            Some(topic) if partition >= topic.partitions => self.lookup.find(TopicKey::Grown(topic.name)).await,
            found => Ok(found.filter(|_| partition >= 0)),
        }
    }

    /// Topics that a broker has just named, each with the number of its partitions: what the picture does not show of them is
    /// asked for singly, and told as soon as it is known.
    pub fn seen<'a>(&self, topics: impl Iterator<Item = (&'a str, usize)>) {
        let picture = self.snapshot();
        for (name, partitions) in topics {
            match picture.topics.by_name.get(name) {
                Some(known) if usize::try_from(known.partitions).is_ok_and(|known| known >= partitions) => {}
                Some(known) => self.lookup.want(TopicKey::Grown(known.name.clone())),
                None if is_legal_topic(name) => self.lookup.want(TopicKey::Name(Text::from(name))),
                None => {}
            }
        }
    }

    /// The working connection to a node.
    ///
    /// # Errors
    /// When the picture does not have it, or it is out of reach.
    pub(super) async fn node(&self, id: i32) -> Result<Arc<Node>, UpstreamError> {
        self.shared.node(id).await
    }

    /// A working connection to any node, live ones first.
    ///
    /// # Errors
    /// The last one's error when none is within reach.
    pub(super) async fn any_node(&self) -> Result<Arc<Node>, UpstreamError> {
        self.shared.any_node().await
    }

    /// A watch without tasks around a picture, for tests of what uses it.
    #[cfg(test)]
    #[must_use]
    pub fn fixed(cluster: Cluster) -> Self {
        let pool = Arc::new(Pool::new(super::node::Dialer {
            software_name: super::connection::CLIENT_ID,
            sasl: None,
            own: Vec::new(),
            connect_timeout: Duration::from_millis(1),
            limits: super::connection::Limits {
                request_timeout: Duration::from_millis(1),
                frame_max: 1,
                in_flight: 1,
            },
        }));
        let shared = Arc::new(Shared::new(pool, Vec::new()));
        shared.update(|picture| *picture = cluster);
        shared.tell(None);
        let lookup = Lookup::spawn(Arc::clone(&shared), Duration::from_millis(1), CancellationToken::new());
        Self { shared, lookup }
    }
}

/// Kafka's rule (`Topic.validate`); nothing else can exist upstream.
fn is_legal_topic(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && name.len() <= 249 && name != "." && name != ".." && name.bytes().all(legal)
}

#[cfg(test)]
mod tests;
