//! The published picture, and the ways to the nodes in it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::deletions::Deletions;
use super::{Cluster, Topic, Topics, UpstreamState, told};
use crate::config::HostPort;
use crate::coordinator::request::Text;
use crate::upstream::UpstreamError;
use crate::upstream::node::Node;
use crate::upstream::pool::Pool;

/// How long the start waits for a node that does not tell its versions and whether it checks ACLs.
const VERSIONS_GRACE: Duration = Duration::from_secs(3);

/// What the watcher, the keepers, lookups and readers have in common.
#[derive(Debug)]
pub struct Shared {
    pub pool: Arc<Pool>,
    bootstrap: Vec<HostPort>,
    current: ArcSwap<Cluster>,
    /// Held while a new picture is made of the current one.
    writing: Mutex<()>,
    changes: watch::Sender<u64>,
    /// What the coordinator is told of the topics.
    told: watch::Sender<Arc<Topics>>,
    changes_told: AtomicU64,
    refresh: Notify,
    configs: Notify,
    /// Topics may have changed, and the next picture may not show it yet.
    second_look: AtomicBool,
    /// Topics that were there once and that the picture does not show, by their ids; the watcher takes them.
    missing: Mutex<BTreeMap<Uuid, Text>>,
    health: Mutex<Health>,
    /// The upstream was last found to be another cluster than the one that the state here belongs to.
    other_cluster: AtomicBool,
}

/// What the watcher found out last.
#[derive(Debug, Clone)]
struct Health {
    reachable: bool,
    since: Instant,
    last_error: Option<String>,
    refreshed: Option<Instant>,
}

/// What a report changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    None,
    /// It was out of reach (or not yet reached) for so long.
    Came(Duration),
    Went,
}

impl Shared {
    pub fn new(pool: Arc<Pool>, bootstrap: Vec<HostPort>) -> Self {
        Self {
            pool,
            bootstrap,
            current: ArcSwap::default(),
            writing: Mutex::default(),
            changes: watch::Sender::new(0),
            told: watch::Sender::new(Arc::default()),
            changes_told: AtomicU64::new(0),
            refresh: Notify::new(),
            configs: Notify::new(),
            second_look: AtomicBool::new(false),
            missing: Mutex::default(),
            other_cluster: AtomicBool::new(false),
            health: Mutex::new(Health {
                reachable: false,
                since: Instant::now(),
                last_error: None,
                refreshed: None,
            }),
        }
    }

    pub fn snapshot(&self) -> Arc<Cluster> {
        self.current.load_full()
    }

    pub fn look(&self) -> Guard<Arc<Cluster>> {
        self.current.load()
    }

    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Publishes a changed picture; one that turns out the same is not published. Gives the pictures before and after.
    pub fn update(&self, change: impl FnOnce(&mut Cluster)) -> (Arc<Cluster>, Arc<Cluster>) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load_full();
        let mut next = Cluster::clone(&current);
        change(&mut next);
        if next == *current {
            return (Arc::clone(&current), current);
        }
        let next = Arc::new(next);
        self.current.store(Arc::clone(&next));
        if *self.changes.borrow() == 0 {
            // Whoever waits for the first picture finds its topics told.
            self.told.send_replace(Arc::clone(&next.topics));
        }
        self.changes.send_modify(|count| *count += 1);
        (current, next)
    }

    /// Adds topics that were asked for singly. Topics that they take the place of are to be looked for.
    pub fn add_topics(&self, topics: Vec<Topic>) {
        let mut replaced = BTreeMap::new();
        self.update(|cluster| {
            for topic in topics {
                if let Some(old) = Arc::make_mut(&mut cluster.topics).insert(topic) {
                    replaced.insert(old.id, old.name);
                }
            }
        });
        self.tell(None);
        if self.miss(replaced) {
            self.request_refresh();
        }
    }

    pub fn topics(&self) -> watch::Receiver<Arc<Topics>> {
        self.told.subscribe()
    }

    /// Tells the coordinator of the topics, if there is anything new; only with `deletions` anything is taken away.
    pub fn tell(&self, deletions: Option<&Deletions>) {
        self.told.send_if_modified(|told| {
            let next = told::next(told, &self.snapshot().topics, deletions);
            let differs = !Arc::ptr_eq(told, &next);
            *told = next;
            if differs {
                self.changes_told.fetch_add(1, Ordering::Relaxed);
            }
            differs
        });
    }

    /// Takes topics that were there once, by their ids, and keeps those that the picture lacks; says whether there are any.
    /// What the picture shows, the watcher misses by itself when it goes.
    pub fn miss(&self, mut topics: BTreeMap<Uuid, Text>) -> bool {
        let shown = self.snapshot();
        topics.retain(|id, _| !id.is_nil() && !shown.topics.name_by_id.contains_key(id));
        let any = !topics.is_empty();
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.append(&mut topics);
        any
    }

    /// What was missed since the last time.
    pub fn take_missing(&self) -> BTreeMap<Uuid, Text> {
        std::mem::take(&mut self.missing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn request_refresh(&self) {
        self.refresh.notify_one();
    }

    pub fn topics_changed(&self) {
        self.second_look.store(true, Ordering::Relaxed);
        self.request_refresh();
    }

    pub fn change_configs(&self) {
        self.configs.notify_one();
    }

    pub async fn configs_changed(&self) {
        self.configs.notified().await;
    }

    /// Whether topics were said to have changed since the last time.
    pub fn take_second_look(&self) -> bool {
        self.second_look.swap(false, Ordering::Relaxed)
    }

    /// Resolves when a refresh was asked for since the last time.
    pub async fn refresh_requested(&self) {
        self.refresh.notified().await;
    }

    pub async fn ready(&self) -> Arc<Cluster> {
        let mut changes = self.changes.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = changes.wait_for(|count| *count > 0).await;
        let told =
            |cluster: &Cluster, id: &i32| cluster.versions.contains_key(id) && cluster.authorizers.contains_key(id);
        let complete = |cluster: &Cluster| cluster.nodes.keys().all(|id| told(cluster, id));
        let versions = changes.wait_for(|_| complete(&self.snapshot()));
        let _ = timeout(VERSIONS_GRACE, versions).await;
        self.snapshot()
    }

    pub fn report(&self, outcome: Result<(), &UpstreamError>) -> Transition {
        match outcome {
            Ok(()) => self.other_cluster.store(false, Ordering::Relaxed),
            Err(UpstreamError::OtherCluster { .. }) => self.other_cluster.store(true, Ordering::Relaxed),
            // Out of reach: what was found last holds.
            Err(_) => {}
        }
        let now = Instant::now();
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let was = health.reachable;
        let lasted = now - health.since;
        health.reachable = outcome.is_ok();
        health.last_error = outcome.err().map(ToString::to_string);
        if outcome.is_ok() {
            health.refreshed = Some(now);
        }
        if was != health.reachable {
            health.since = now;
        }
        match (was, health.reachable) {
            (false, true) => Transition::Came(lasted),
            (true, false) => Transition::Went,
            _ => Transition::None,
        }
    }

    pub fn is_other_cluster(&self) -> bool {
        self.other_cluster.load(Ordering::Relaxed)
    }

    pub fn state(&self) -> UpstreamState {
        let health = self.health.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let snapshot = self.snapshot();
        let now = Instant::now();
        UpstreamState {
            reachable: health.reachable,
            since: now - health.since,
            last_error: health.last_error,
            snapshot_age: health.refreshed.map(|at| now - at),
            nodes_connected: snapshot
                .nodes
                .values()
                .filter(|address| self.pool.is_live(address))
                .count(),
            failures: self.pool.failures(),
            topic_changes: self.changes_told.load(Ordering::Relaxed),
        }
    }

    pub async fn node(&self, id: i32) -> Result<Arc<Node>, UpstreamError> {
        let snapshot = self.snapshot();
        let Some(address) = snapshot.nodes.get(&id) else {
            return Err(UpstreamError::Unreachable {
                address: format!("node {id}"),
                reason: "the cluster does not list it now".to_owned(),
            });
        };
        self.pool.node(address).await
    }

    pub async fn any_node(&self) -> Result<Arc<Node>, UpstreamError> {
        let mut last = None;
        for address in self.addresses(0) {
            match self.pool.node(&address).await {
                Ok(node) => return Ok(node),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(no_address))
    }

    /// Every address that may answer: nodes that we are connected to (beginning elsewhere with each `turn`),
    /// the bootstrap addresses in their order, and nodes that we are not connected to.
    pub fn addresses(&self, turn: usize) -> Vec<HostPort> {
        let snapshot = self.snapshot();
        let (mut live, down): (Vec<_>, Vec<_>) = snapshot
            .nodes
            .values()
            .cloned()
            .partition(|address| self.pool.is_live(address));
        if !live.is_empty() {
            let first = turn % live.len();
            live.rotate_left(first);
        }
        let bootstrap = self.bootstrap.iter().filter(|address| !live.contains(address));
        let mut addresses: Vec<HostPort> = bootstrap.cloned().collect();
        addresses.splice(0..0, live);
        let down = down.into_iter().filter(|address| !self.bootstrap.contains(address));
        addresses.extend(down);
        addresses
    }

    /// Lets go of connections that no node and no bootstrap address stands for.
    pub fn forget_other_addresses(&self) {
        let snapshot = self.snapshot();
        self.pool
            .retain(|address| self.bootstrap.contains(address) || snapshot.nodes.values().any(|node| node == address));
    }
}

fn no_address() -> UpstreamError {
    UpstreamError::Unreachable {
        address: "the upstream".to_owned(),
        reason: "no address is known; set upstream.bootstrap".to_owned(),
    }
}
