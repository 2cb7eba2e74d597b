//! From a configuration to a process that serves clients.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::status::Status;
use super::{Announce, ServerError, broker_settings, open_files};
use crate::admin::{Admin, Listening, Subject};
use crate::config::{AssignorConfig, Config, GroupsConfig};
use crate::coordinator::group_patterns::GroupPatterns;
use crate::coordinator::input::DeletedTopic;
use crate::handler::{GroupMemory, HandlerServices};
use crate::proxy;
use crate::proxy::lanes::Lanes;
use crate::proxy::listeners::Listeners;
use crate::proxy::services::Services;
use crate::proxy::stop::Stop;
use crate::runtime::{Coordinator, CoordinatorParts};
use crate::store::StoreError;
use crate::store::embedded::EmbeddedStore;
use crate::telemetry::metrics::Metrics;
use crate::upstream::cluster::Cluster;
use crate::upstream::{Upstream, settings};

/// The store's file in `store.data`.
const STORE_FILE: &str = "convoke.redb";
/// Kafka's own number of shards, for a new store while the upstream's is not known yet.
const DEFAULT_SHARDS: u32 = 50;
/// Bound and open, before the upstream was heard.
pub(super) struct Starting {
    config: Config,
    announce: Arc<dyn Announce>,
    status: Arc<Status>,
    listeners: Arc<Listeners>,
    admin: SocketAddr,
    store: Opened,
    upstream: Upstream,
    deleted: mpsc::Receiver<Vec<DeletedTopic>>,
    /// Ends the admin side and the upstream's tasks.
    background: DropGuard,
}

/// Serving.
pub(super) struct Started {
    status: Arc<Status>,
    coordinator: Coordinator,
    stop: Stop,
    _background: DropGuard,
}

/// The open store and where it is.
struct Opened {
    store: EmbeddedStore,
    path: PathBuf,
}

impl Starting {
    /// Everything that can fail for a reason on this machine, so that it fails before anybody waits.
    pub(super) async fn bind(config: &Config, announce: Arc<dyn Announce>) -> Result<Self, ServerError> {
        let store = Opened::open(config.store.data.join(STORE_FILE)).await?;
        let admin = Admin::bind(config.admin.listen).await?;
        let nodes = Arc::clone(&announce);
        let listeners = Listeners::bind(
            &config.listen,
            Box::new(move |node| nodes.node(node.node_id, &node.upstream(), node.listen)),
        )?;
        open_files::take_all(config.limits.connections_max);
        let background = CancellationToken::new();
        let own = [listeners.bootstrap(), admin.address()];
        let (upstream, deleted) = Upstream::start(&config.upstream, config.limits.frame_max, &own, &background);
        let status = Arc::new(Status::new(Arc::new(Metrics::new()), upstream.clone()));
        let admin_address = admin.address();
        tokio::spawn(admin.serve(Arc::clone(&status) as Arc<dyn Subject>, background.clone()));
        tracing::info!(
            bootstrap = %listeners.bootstrap(),
            admin = %admin_address,
            data = %config.store.data.display(),
            version = env!("CARGO_PKG_VERSION"),
            "bound; waiting for the upstream"
        );
        Ok(Self {
            config: config.clone(),
            announce,
            status,
            listeners: Arc::new(listeners),
            admin: admin_address,
            store,
            upstream,
            deleted,
            background: background.drop_guard(),
        })
    }

    /// Waits for the upstream, however long it takes, and serves.
    pub(super) async fn start(self) -> Result<Started, ServerError> {
        let Self {
            config,
            status,
            listeners,
            upstream,
            ..
        } = self;
        let cluster = upstream.cluster().ready().await;
        let broker = broker_settings::ask(&upstream, &status).await;
        let built = settings::build(&broker, &config.settings).map_err(ServerError::Settings)?;
        let built = broker_settings::with_rules(&config, built);
        let built = broker_settings::with_groups(&upstream, built).await;
        let shards = match u32::try_from(cluster.coordinators.len()) {
            Ok(count) if count > 0 => count,
            _ => settings::offsets_partitions(&broker, &config.settings),
        };
        let store = self.store.with_shards(shards).await?;
        if let Some(cluster_id) = &cluster.cluster_id {
            store.belong_to(cluster_id).await?;
        }
        store_metrics(&store, &status);
        let coordinator = Coordinator::start(CoordinatorParts {
            store: Arc::new(store),
            inspector: Arc::new(upstream.clone()),
            topic_checker: Arc::new(upstream.clone()),
            topics: upstream.cluster().topics(),
            settings: Arc::clone(&built),
            shards,
            seed: seed()?,
            metrics: Arc::clone(&status.metrics),
        });
        status.has_coordinator(coordinator.clone());
        let assignors = config.assignors.iter().map(|rule| &*rule.name);
        status.metrics.client_assignors.know(assignors);
        loaded(&coordinator).await;
        announce_nodes(&listeners, &cluster)?;
        let stop = Stop::new();
        let handlers = HandlerServices {
            coordinator: coordinator.clone(),
            cluster: upstream.cluster().clone(),
            delegate: GroupPatterns::new(&config.groups.delegate),
            assign: assigned_groups(&config.groups),
            assignors: Arc::new(assignor_groups(&config.assignors)),
            patterns: Arc::default(),
            group_memory: GroupMemory::new(config.limits.group_memory_max, status.metrics.group_memory.clone()),
            metrics: Arc::clone(&status.metrics),
        };
        let bootstrap = listeners.bootstrap();
        let lanes = Lanes::start().map_err(ServerError::Threads)?;
        lanes.spawn_on_each(|| coordinator.report_here());
        proxy::serve(&Arc::new(Services::new(
            &config,
            Arc::clone(&status.metrics),
            handlers,
            listeners,
            lanes,
            stop.clone(),
        )));
        tokio::spawn(forget_topics(self.deleted, coordinator.clone()));
        tokio::spawn(broker_settings::follow(
            upstream,
            config.settings,
            built,
            coordinator.clone(),
            stop.clone(),
        ));
        status.set_listening(Listening::Serving);
        tracing::info!(%bootstrap, shards, nodes = cluster.nodes.len(), "serving");
        self.announce.ready(bootstrap, self.admin);
        Ok(Started {
            status,
            coordinator,
            stop,
            _background: self.background,
        })
    }
}

impl Started {
    /// Takes nothing new in, answers what is under way, and makes everything durable.
    pub(super) async fn stop(self, timeout: Duration) {
        self.status.set_listening(Listening::Draining);
        // Parked joins and syncs are answered by the coordinator's end, so that no connection waits for them in vain.
        let (cut_off, ()) = tokio::join!(self.stop.drain(timeout), self.coordinator.drain());
        if cut_off > 0 {
            tracing::warn!(connections = cut_off, "cut off after drain_timeout");
        }
        tracing::info!("stopped");
    }
}

impl Opened {
    /// Opens the store as it is, a new one with Kafka's own number of shards.
    async fn open(path: PathBuf) -> Result<Self, ServerError> {
        let opened = path.clone();
        let store = blocking(move || EmbeddedStore::open_as_it_is(&opened, DEFAULT_SHARDS)).await?;
        Ok(Self { store, path })
    }

    /// The store with so many shards; it is opened anew where they are not those that it has.
    async fn with_shards(self, shards: u32) -> Result<EmbeddedStore, ServerError> {
        if self.store.shards() == shards {
            return Ok(self.store);
        }
        tracing::info!(
            from = self.store.shards(),
            to = shards,
            "moving the store's records to the upstream's number of shards"
        );
        blocking(move || {
            drop(self.store);
            EmbeddedStore::open(&self.path, shards)
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, ServerError> {
    let done = tokio::task::spawn_blocking(work)
        .await
        .map_err(ServerError::StoreThread)?;
    Ok(done?)
}

fn store_metrics(store: &EmbeddedStore, status: &Status) {
    let stats = store.stats();
    let histogram = status.metrics.store.commit_seconds.clone();
    stats.on_batch(move |took| histogram.observe(took.as_secs_f64()));
    status.has_store(stats);
}

/// Ends with the coordinator or the upstream's tasks.
async fn forget_topics(mut deleted: mpsc::Receiver<Vec<DeletedTopic>>, coordinator: Coordinator) {
    while let Some(topics) = deleted.recv().await {
        coordinator.topics_deleted(&topics);
    }
}

/// Waits until every shard answers. The log and `/readyz` say what keeps one from it.
async fn loaded(coordinator: &Coordinator) {
    let mut states = coordinator.subscribe();
    // An error means that the shards ended, which only a stop brings about.
    let _ = states.wait_for(|state| state.loaded >= state.shards).await;
}

/// A node without a listener is not reachable for clients: the first one is reason enough not to start.
fn announce_nodes(listeners: &Listeners, cluster: &Cluster) -> Result<(), ServerError> {
    match listeners.follow(cluster).into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// The groups of each rule of `assignors`, by its name.
fn assignor_groups(assignors: &[AssignorConfig]) -> BTreeMap<String, GroupPatterns> {
    let groups = |rule: &AssignorConfig| (rule.name.clone(), GroupPatterns::new(&rule.groups));
    assignors.iter().map(groups).collect()
}

/// The groups that some rule of `groups.assign` is for.
fn assigned_groups(groups: &GroupsConfig) -> GroupPatterns {
    let patterns = groups.assign.iter().flat_map(|rule| rule.groups.iter().cloned());
    GroupPatterns::new(&patterns.collect::<Vec<_>>())
}

/// Member ids of another process must not come again.
fn seed() -> Result<u64, ServerError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(ServerError::Random)?;
    Ok(u64::from_le_bytes(bytes))
}
