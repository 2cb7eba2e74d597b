//! What the running process shows on the admin side.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use prometheus::IntCounter;

use crate::admin::{Listening, Readiness, Shards, Subject, SubjectFuture, UpstreamHealth};
use crate::coordinator::request::{Request, Response, ShardView};
use crate::coordinator::topics::Topics;
use crate::runtime::Coordinator;
use crate::store::StoreStats;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::scrape::ShardCounts;
use crate::upstream::Upstream;

/// The parts as far as they are there; they come one after the other.
pub(super) struct Status {
    pub(super) metrics: Arc<Metrics>,
    pub(super) upstream: Upstream,
    store: OnceLock<Arc<StoreStats>>,
    coordinator: OnceLock<Coordinator>,
    /// Why the brokers' settings could not be read when that was tried last.
    settings_failure: Mutex<Option<String>>,
    listening: AtomicU8,
}

impl Status {
    pub(super) fn new(metrics: Arc<Metrics>, upstream: Upstream) -> Self {
        Self {
            metrics,
            upstream,
            store: OnceLock::new(),
            coordinator: OnceLock::new(),
            settings_failure: Mutex::default(),
            listening: AtomicU8::new(Listening::Bound as u8),
        }
    }

    /// From now on the store is shown too; the first one stays.
    pub(super) fn has_store(&self, stats: Arc<StoreStats>) {
        let _ = self.store.set(stats);
    }

    /// From now on the shards are shown too; the first coordinator stays.
    pub(super) fn has_coordinator(&self, coordinator: Coordinator) {
        let _ = self.coordinator.set(coordinator);
    }

    pub(super) fn cannot_read_settings(&self, failure: String) {
        *self.settings_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
    }

    pub(super) fn set_listening(&self, listening: Listening) {
        self.listening.store(listening as u8, Ordering::Relaxed);
    }

    fn listening(&self) -> Listening {
        let stored = self.listening.load(Ordering::Relaxed);
        let all = [Listening::Bound, Listening::Serving, Listening::Draining];
        all.into_iter()
            .find(|listening| *listening as u8 == stored)
            .unwrap_or_default()
    }

    fn shards(&self) -> Shards {
        self.coordinator.get().map_or_else(Shards::default, |coordinator| {
            let state = coordinator.state();
            Shards {
                total: state.shards,
                loaded: state.loaded,
                failed: state.failed,
            }
        })
    }

    fn store_failure(&self) -> Option<String> {
        self.store.get()?.failing().map(|error| error.to_string())
    }

    fn upstream_health(&self) -> UpstreamHealth {
        let state = self.upstream.cluster().state();
        UpstreamHealth {
            reachable: state.reachable,
            since: state.since,
            nodes: self.upstream.cluster().snapshot().nodes.len(),
            metadata_age: state.snapshot_age,
            last_error: state.last_error,
        }
    }

    /// Gauges and counters that others keep, copied when somebody looks.
    fn refresh(&self) {
        let health = self.upstream_health();
        let upstream = &self.metrics.upstream;
        upstream.up.set(i64::from(health.reachable));
        upstream.nodes.set(i64::try_from(health.nodes).unwrap_or(i64::MAX));
        upstream
            .metadata_age_seconds
            .set(health.metadata_age.unwrap_or_default().as_secs_f64());
        let state = self.upstream.cluster().state();
        raise(&upstream.failures, state.failures);
        raise(&upstream.topic_changes, state.topic_changes);
        if let Some(stats) = self.store.get() {
            let store = &self.metrics.store;
            raise(&store.batches, stats.batches());
            raise(&store.commits, stats.commits());
            raise(&store.failures, stats.failures());
            store
                .file_bytes
                .set(i64::try_from(stats.file_bytes()).unwrap_or(i64::MAX));
        }
        let Shards { total, loaded, failed } = self.shards();
        let loading = total.saturating_sub(loaded).saturating_sub(failed);
        self.metrics.set_shards(ShardCounts {
            loading: loading as usize,
            active: loaded as usize,
            failed: failed as usize,
        });
    }
}

/// Brings a counter up to what somebody else counted.
fn raise(counter: &IntCounter, to: u64) {
    counter.inc_by(to.saturating_sub(counter.get()));
}

impl Subject for Status {
    fn readiness(&self) -> Readiness {
        Readiness {
            upstream: self.upstream_health(),
            shards: self.shards(),
            settings_failure: self
                .settings_failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            store_failure: self.store_failure(),
            listening: self.listening(),
        }
    }

    fn views(&self) -> SubjectFuture<'_, Vec<Option<ShardView>>> {
        Box::pin(async {
            let Some(coordinator) = self.coordinator.get() else {
                return Vec::new();
            };
            let answers = coordinator.call_all(Request::View).await;
            answers
                .into_iter()
                .map(|(_, answer)| match answer {
                    Response::View(view) => Some(view),
                    _ => None,
                })
                .collect()
        })
    }

    fn topics(&self) -> Arc<Topics> {
        Arc::clone(&self.upstream.cluster().snapshot().topics)
    }

    fn metrics(&self, views: &[ShardView]) -> Result<String, String> {
        self.refresh();
        self.metrics.set_groups(views);
        self.metrics.render().map_err(|error| error.to_string())
    }
}
