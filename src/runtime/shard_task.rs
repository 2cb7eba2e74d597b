//! The life of one shard: load, look after it while it serves, and after a failure of the store load again.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, Sleep};
use tracing::{debug, error, info};

use super::active_shard::ActiveShard;
use super::clock::Clock;
use super::inspector::GroupInspector;
use super::loading::{LoadError, load};
use super::reports::Reports;
use super::shard_cell::{AbortOnDrop, Drain, ShardCell};
use super::topic_checker::TopicChecker;
use crate::coordinator::settings::Settings;
use crate::coordinator::topics::Topics;
use crate::store::{ShardId, StateStore, StoreError};
use crate::telemetry::metrics::Metrics;

/// The wait after the first failure; it doubles with each further one.
const BACK_OFF_MIN: Duration = Duration::from_millis(100);
const BACK_OFF_MAX: Duration = Duration::from_secs(10);

/// Asks a shard to stop; answered when it has.
pub(super) type Stop = oneshot::Sender<()>;

/// What all shards use.
pub(super) struct Shared {
    pub(super) store: Arc<dyn StateStore>,
    pub(super) inspector: Arc<dyn GroupInspector>,
    pub(super) topic_checker: Arc<dyn TopicChecker>,
    pub(super) permits: Arc<Semaphore>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: Clock,
    pub(super) seed: u64,
    pub(super) reports: Reports,
}

/// Why a shard stopped loading or serving.
enum Ended {
    /// Nobody holds a handle any more.
    Closed,
    Stopped(Stop),
    NotLoaded(LoadError),
    NotWritten(StoreError),
}

/// The task of one shard.
pub(super) struct ShardTask {
    cell: Arc<ShardCell>,
    shared: Arc<Shared>,
    stops: mpsc::Receiver<Stop>,
    settings: watch::Receiver<Arc<Settings>>,
    topics: watch::Receiver<Arc<Topics>>,
    /// Failures since the store last made something durable.
    failures: u32,
}

impl ShardTask {
    pub(super) fn new(
        cell: Arc<ShardCell>,
        shared: Arc<Shared>,
        stops: mpsc::Receiver<Stop>,
        settings: watch::Receiver<Arc<Settings>>,
        topics: watch::Receiver<Arc<Topics>>,
    ) -> Self {
        Self {
            cell,
            shared,
            stops,
            settings,
            topics,
            failures: 0,
        }
    }

    pub(super) async fn run(self) {
        abort_on_panic(self.cell.id(), self.live()).await;
    }

    async fn live(mut self) {
        loop {
            let ended = match self.load().await {
                Ok(active) => self.serve(active).await,
                Err(ended) => ended,
            };
            let reason = match ended {
                Ended::Closed => return self.cell.close(),
                Ended::Stopped(stop) => return self.stop(stop).await,
                Ended::NotLoaded(reason) => reason.to_string(),
                Ended::NotWritten(reason) => reason.to_string(),
            };
            self.failures = self.failures.saturating_add(1);
            // While it lasts: each time at first, then at ever longer intervals.
            if self.failures.is_power_of_two() {
                error!(
                    shard = self.cell.id().0,
                    retry_in_ms = self.back_off().as_millis(),
                    "the groups of the shard are not served: {reason}; the shard is loaded again, its clients retry meanwhile"
                );
            }
        }
    }

    async fn load(&mut self) -> Result<ActiveShard, Ended> {
        let settings = Arc::clone(&self.settings.borrow_and_update());
        let loading = load(Arc::clone(&self.shared), self.cell.id(), settings, self.back_off());
        tokio::select! {
            biased;
            loaded = loading => loaded.map_err(|error| {
                self.cell.not_loaded();
                Ended::NotLoaded(error)
            }),
            stop = self.stops.recv() => Err(stop.map_or(Ended::Closed, Ended::Stopped)),
        }
    }

    /// Looks after the shard: its timers, its settings, the topics, and a store that fails or stalls.
    async fn serve(&mut self, active: ActiveShard) -> Ended {
        if self.failures > 0 {
            info!(shard = self.cell.id().0, "the groups of the shard are served again");
        } else {
            debug!(shard = self.cell.id().0, "shard loaded");
        }
        let topics = self.cell.open(active, Arc::clone(&self.topics.borrow_and_update()));
        if !topics.is_empty() {
            self.shared.topic_checker.check(topics);
        }
        let mut alarm = Alarm::new();
        loop {
            if let Some((error, has_written)) = self.cell.failure() {
                if has_written {
                    self.failures = 0;
                }
                return Ended::NotWritten(error);
            }
            if let Some(look_at_ms) = self.cell.with(ActiveShard::look) {
                alarm.set(self.shared.clock.instant(look_at_ms));
            }
            tokio::select! {
                () = self.cell.attention() => {}
                () = alarm.rang() => {}
                Ok(()) = self.settings.changed() => {
                    let settings = Arc::clone(&self.settings.borrow_and_update());
                    self.cell.with(|active| active.set_settings(settings));
                }
                Ok(()) = self.topics.changed() => {
                    let topics = Arc::clone(&self.topics.borrow_and_update());
                    self.cell.with(|active| active.set_topics(topics));
                }
                stop = self.stops.recv() => return stop.map_or(Ended::Closed, Ended::Stopped),
            }
        }
    }

    /// Makes what is under way durable, so that those who wait for it get their true answer. From then on nothing is looked
    /// at any more.
    async fn stop(mut self, stop: Stop) {
        loop {
            match self.cell.drain() {
                Drain::UnderWay => self.cell.attention().await,
                Drain::Done => break,
                Drain::Failed(error) => {
                    error!(
                        shard = self.cell.id().0,
                        "not everything could be written before the stop: {error}"
                    );
                    break;
                }
            }
        }
        let mut next = Some(stop);
        while let Some(stop) = next {
            // Whoever asked may have gone away.
            let _ = stop.send(());
            next = self.stops.recv().await;
        }
    }

    fn back_off(&self) -> Duration {
        match self.failures {
            0 => Duration::ZERO,
            failures => BACK_OFF_MIN
                .saturating_mul(1 << (failures - 1).min(10))
                .min(BACK_OFF_MAX),
        }
    }
}

/// A timer that is only moved when it has to ring earlier: deadlines move with every heartbeat, and one needless ring costs
/// less than moving it each time.
struct Alarm {
    sleep: Pin<Box<Sleep>>,
    set_for: Option<Instant>,
}

impl Alarm {
    fn new() -> Self {
        Self {
            sleep: Box::pin(tokio::time::sleep_until(Instant::now())),
            set_for: None,
        }
    }

    fn set(&mut self, wake_at: Instant) {
        if self.set_for.is_none_or(|set_for| wake_at < set_for) {
            self.sleep.as_mut().reset(wake_at);
            self.set_for = Some(wake_at);
        }
    }

    async fn rang(&mut self) {
        self.sleep.as_mut().await;
        self.set_for = None;
    }
}

/// Polls a shard's task so that a panic in it ends the process, as one in a step does. A task that is merely dropped,
/// whatever for, does not count.
async fn abort_on_panic(shard: ShardId, task: impl Future<Output = ()>) {
    tokio::pin!(task);
    poll_fn(|context| {
        let armed = AbortOnDrop(shard);
        let polled = task.as_mut().poll(context);
        std::mem::forget(armed);
        polled
    })
    .await;
}
