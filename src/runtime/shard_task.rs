//! The life of one shard: load, serve, and after a failure of the store load again.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tracing::{debug, error};

use super::active_shard::ActiveShard;
use super::clock::Clock;
use super::coordinator::CoordinatorState;
use super::inspector::GroupInspector;
use super::loading::{LoadError, load};
use super::topic_checker::TopicChecker;
use crate::coordinator::input::DeletedTopic;
use crate::coordinator::request::{Request, Response};
use crate::coordinator::settings::Settings;
use crate::store::{ShardId, StateStore, StoreError};
use crate::telemetry::metrics::Metrics;
use crate::wire::error_code::ErrorCode;

/// The wait after the first failure; it doubles with each further one.
const BACK_OFF_MIN: Duration = Duration::from_millis(100);
const BACK_OFF_MAX: Duration = Duration::from_secs(10);

/// What a shard's queue carries.
pub(super) enum Command {
    Request {
        request: Request,
        reply: oneshot::Sender<Response>,
    },
    TopicsDeleted(Arc<[DeletedTopic]>),
    /// Stop; answered when stopped.
    Drain(oneshot::Sender<()>),
}

/// What all shards use.
pub(super) struct Shared {
    pub(super) store: Arc<dyn StateStore>,
    pub(super) inspector: Arc<dyn GroupInspector>,
    pub(super) topics: Arc<dyn TopicChecker>,
    pub(super) permits: Arc<Semaphore>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: Clock,
    pub(super) seed: u64,
    pub(super) state: watch::Sender<CoordinatorState>,
}

/// Why a shard stopped loading or serving.
pub(super) enum Ended {
    /// Nobody holds a handle any more.
    Closed,
    Drained(oneshot::Sender<()>),
    NotLoaded(LoadError),
    NotWritten(StoreError),
}

/// The owner of one shard.
pub(super) struct ShardTask {
    shard: ShardId,
    shared: Arc<Shared>,
    commands: mpsc::Receiver<Command>,
    settings: watch::Receiver<Arc<Settings>>,
    health: Health,
    /// Failures since the store last made something durable.
    failures: u32,
    /// Told while the shard was loading; each topic once.
    topics_deleted: Vec<DeletedTopic>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    /// Loading for the first time, or stopped.
    Absent,
    Loaded,
    Failed,
}

impl ShardTask {
    pub(super) fn new(
        shard: ShardId,
        shared: Arc<Shared>,
        commands: mpsc::Receiver<Command>,
        settings: watch::Receiver<Arc<Settings>>,
    ) -> Self {
        Self {
            shard,
            shared,
            commands,
            settings,
            health: Health::Absent,
            failures: 0,
            topics_deleted: Vec::new(),
        }
    }

    pub(super) async fn run(self) {
        abort_on_panic(self.shard, self.live()).await;
    }

    async fn live(mut self) {
        loop {
            let ended = match self.load().await {
                Ok(active) => self.serve(active).await,
                Err(ended) => ended,
            };
            let reason = match ended {
                Ended::Closed => return,
                Ended::Drained(done) => return self.refuse(done).await,
                Ended::NotLoaded(reason) => reason.to_string(),
                Ended::NotWritten(reason) => reason.to_string(),
            };
            self.failures = self.failures.saturating_add(1);
            self.set_health(Health::Failed);
            error!(
                shard = self.shard.0,
                retry_in_ms = self.back_off().as_millis(),
                "the groups of the shard are not served: {reason}; the shard is loaded again, its clients retry meanwhile"
            );
        }
    }

    /// Loads, and answers meanwhile that it does.
    async fn load(&mut self) -> Result<ActiveShard, Ended> {
        let settings = Arc::clone(&self.settings.borrow_and_update());
        let loading = load(Arc::clone(&self.shared), self.shard, settings, self.back_off());
        tokio::pin!(loading);
        loop {
            tokio::select! {
                biased;
                loaded = &mut loading => return loaded.map_err(Ended::NotLoaded),
                command = self.commands.recv() => match command {
                    None => return Err(Ended::Closed),
                    Some(Command::Drain(done)) => return Err(Ended::Drained(done)),
                    Some(Command::TopicsDeleted(topics)) => {
                        for topic in topics.iter() {
                            if !self.topics_deleted.contains(topic) {
                                self.topics_deleted.push(topic.clone());
                            }
                        }
                    }
                    Some(Command::Request { reply, .. }) => {
                        answer(reply, unavailable(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS));
                    }
                },
            }
        }
    }

    async fn serve(&mut self, mut active: ActiveShard) -> Ended {
        debug!(shard = self.shard.0, "shard loaded");
        self.set_health(Health::Loaded);
        active.topics_deleted(std::mem::take(&mut self.topics_deleted));
        let topics = active.topics();
        if !topics.is_empty() {
            self.shared.topics.check(topics);
        }
        let ended = active.run(&mut self.commands, &mut self.settings).await;
        if active.has_written() {
            self.failures = 0;
        }
        active.unload(ErrorCode::NOT_COORDINATOR);
        ended
    }

    /// After a drain: nothing is looked at any more.
    async fn refuse(mut self, done: oneshot::Sender<()>) {
        self.set_health(Health::Absent);
        let _ = done.send(());
        while let Some(command) = self.commands.recv().await {
            match command {
                Command::Request { reply, .. } => answer(reply, unavailable(ErrorCode::NOT_COORDINATOR)),
                Command::Drain(done) => {
                    let _ = done.send(());
                }
                Command::TopicsDeleted(_) => {}
            }
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

    fn set_health(&mut self, health: Health) {
        let before = std::mem::replace(&mut self.health, health);
        if before == health {
            return;
        }
        self.shared.state.send_modify(|state| {
            match before {
                Health::Loaded => state.loaded -= 1,
                Health::Failed => state.failed -= 1,
                Health::Absent => {}
            }
            match health {
                Health::Loaded => state.loaded += 1,
                Health::Failed => state.failed += 1,
                Health::Absent => {}
            }
        });
    }
}

/// Sends a reply; whoever went away does not need it.
pub(super) fn answer(reply: oneshot::Sender<Response>, response: Response) {
    let _ = reply.send(response);
}

pub(super) const fn unavailable(error: ErrorCode) -> Response {
    Response::Unavailable { error }
}

/// Polls a shard's task so that a panic in it ends the process: it leaves state half changed, so nothing may be answered
/// from it, and the next start loads what is durable. A task that is merely dropped, whatever for, does not count.
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

struct AbortOnDrop(ShardId);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        error!(
            shard = self.0.0,
            "the coordinator met a defect; the process ends so that no answer is given from half-changed state. Please \
             report the panic message above; a restart continues with everything that was acknowledged"
        );
        std::process::abort();
    }
}
