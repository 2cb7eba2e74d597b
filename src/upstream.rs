//! Our own client to the brokers: connections with our own credentials, the picture of the cluster, settings, imports.
//!
//! | module | its one job |
//! |---|---|
//! | [`connection`] | one pipelined connection |
//! | [`sasl`] | PLAIN and SCRAM, without I/O |
//! | `peer` | what is there that is no broker |
//! | [`node`] | a connection that knows the broker's versions and stays authenticated |
//! | [`pool`] | one node connection for each address |
//! | [`cluster`] | the picture of the cluster and its watcher |
//! | [`settings`] | the brokers' settings, and the coordinator's made of them |
//! | `group_configs` | what single groups were given for themselves |
//! | [`inspect`] | who runs a group at the upstream, and its committed offsets |

pub(crate) mod backoff;
pub mod cluster;
pub mod connection;
mod group_configs;
pub mod inspect;
#[cfg(test)]
mod mock;
pub mod node;
pub(crate) mod peer;
pub mod pool;
pub mod sasl;
pub mod settings;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::UpstreamConfig;
use crate::coordinator::group_config::GroupConfig;
use crate::coordinator::input::{DeletedTopic, InspectFailure, UpstreamGroup};
use crate::coordinator::request::Text;
use crate::runtime::{GroupInspector, InspectionFuture, TopicChecker};
use crate::wire::error_code::ErrorCode;

use cluster::ClusterWatch;
use connection::{CLIENT_ID, Limits};
use inspect::Inspector;
use node::Dialer;
use pool::Pool;

/// Requests of ours that may be under way on one connection.
const IN_FLIGHT: usize = 256;

/// Why the upstream did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    #[error("cannot reach {address}: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("{address} closed the connection")]
    Closed { address: String },
    #[error("{address} did not answer within {timeout_ms} ms")]
    Timeout { address: String, timeout_ms: u64 },
    #[error("{address} refused our credentials: {reason}")]
    Authentication { address: String, reason: String },
    #[error("{address} answered {api} with {error}{hint}")]
    Refused {
        address: String,
        api: &'static str,
        error: ErrorCode,
        hint: String,
    },
    /// Whatever is there, it is no broker, or not for us; trying on helps only once somebody has mended it.
    #[error("{address} is no Kafka listener that Convoke can use: {reason}")]
    Unusable { address: String, reason: String },
    #[error("{address} sent what cannot be read: {reason}")]
    Malformed { address: String, reason: String },
    #[error(
        "{address} belongs to cluster {found:?}, and the groups kept here to {expected:?}; \
         correct upstream.bootstrap, and restart to change clusters"
    )]
    OtherCluster {
        address: String,
        expected: String,
        found: String,
    },
}

/// Our own client to the upstream. Clones are cheap and see the same.
#[derive(Debug, Clone)]
pub struct Upstream {
    cluster: ClusterWatch,
    inspector: Inspector,
}

impl Upstream {
    /// Starts the tasks that watch the cluster; they end with `shutdown`. Returns at once, whether the upstream is there
    /// or not. `frame_max` bounds the brokers' answers in bytes; `own` are addresses that this process listens on, where no
    /// broker can be. The receiver gets topics that are certainly gone.
    #[must_use]
    pub fn start(
        config: &UpstreamConfig,
        frame_max: usize,
        own: &[SocketAddr],
        shutdown: &CancellationToken,
    ) -> (Self, mpsc::Receiver<Vec<DeletedTopic>>) {
        let pool = Arc::new(Pool::new(Dialer {
            software_name: CLIENT_ID,
            sasl: config.sasl.clone(),
            own: own.to_vec(),
            connect_timeout: config.connect_timeout,
            limits: Limits {
                request_timeout: config.request_timeout,
                frame_max,
                in_flight: IN_FLIGHT,
            },
        }));
        let (cluster, deleted) = ClusterWatch::start(config, pool, shutdown);
        let inspector = Inspector::new(cluster.clone());
        (Self { cluster, inspector }, deleted)
    }

    #[must_use]
    pub const fn cluster(&self) -> &ClusterWatch {
        &self.cluster
    }

    /// The settings of a broker that have to do with groups, by Kafka's names.
    ///
    /// # Errors
    /// Why no broker told; a missing right is named.
    pub async fn broker_settings(&self) -> Result<BTreeMap<String, String>, UpstreamError> {
        settings::ask(&self.cluster).await
    }

    /// What single groups were given for themselves; `None` where the brokers do not tell which groups those are, so that each has to
    /// be asked about.
    ///
    /// # Errors
    /// Why no broker told; a missing right is named.
    pub async fn group_configs(&self) -> Result<Option<BTreeMap<Text, GroupConfig>>, UpstreamError> {
        group_configs::ask(&self.cluster).await
    }

    /// What these groups were given for themselves, those that were given something.
    ///
    /// # Errors
    /// As [`Self::group_configs`].
    pub async fn configs_of_groups(&self, group_ids: &[Text]) -> Result<BTreeMap<Text, GroupConfig>, UpstreamError> {
        group_configs::ask_about(&self.cluster, group_ids).await
    }

    /// Who runs the group at the upstream, and the offsets it committed there.
    ///
    /// # Errors
    /// Why it cannot be told now; always retriable for the client.
    pub async fn inspect(&self, group_id: &str) -> Result<UpstreamGroup, InspectFailure> {
        self.inspector.inspect(group_id).await
    }
}

impl TopicChecker for Upstream {
    fn check(&self, topics: BTreeMap<Uuid, Text>) {
        self.cluster.check_topics(topics);
    }
}

impl GroupInspector for Upstream {
    fn inspect(&self, group_id: &Text) -> InspectionFuture {
        let inspector = self.inspector.clone();
        let group_id = Text::clone(group_id);
        Box::pin(async move { inspector.inspect(&group_id).await })
    }
}
