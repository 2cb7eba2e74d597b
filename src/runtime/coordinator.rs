//! The handle through which everybody else talks to the shards.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::clock::Clock;
use super::inspector::GroupInspector;
use super::reports::{ReportReceiver, Reports};
use super::shard_cell::ShardCell;
use super::shard_of;
use super::shard_task::{ShardTask, Shared, Stop};
use super::topic_checker::TopicChecker;
use super::waiting::Submitted;
use crate::coordinator::input::DeletedTopic;
use crate::coordinator::request::{Request, Response, Text};
use crate::coordinator::settings::Settings;
use crate::coordinator::topics::Topics;
use crate::store::{ShardId, StateStore};
use crate::telemetry::metrics::Metrics;

/// Inspections of all shards that run at a time.
const INSPECTIONS_MAX: usize = 200;

/// What the shards are made of.
pub struct CoordinatorParts {
    pub store: Arc<dyn StateStore>,
    pub inspector: Arc<dyn GroupInspector>,
    pub topic_checker: Arc<dyn TopicChecker>,
    /// The upstream's topics; every shard is told when they differ. They should be known by now.
    pub topics: watch::Receiver<Arc<Topics>>,
    pub settings: Arc<Settings>,
    /// Partitions of the upstream's `__consumer_offsets`; at least 1.
    pub shards: u32,
    /// Where member ids come from; another one for each process.
    pub seed: u64,
    pub metrics: Arc<Metrics>,
}

impl fmt::Debug for CoordinatorParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoordinatorParts")
            .field("settings", &self.settings)
            .field("shards", &self.shards)
            .finish_non_exhaustive()
    }
}

/// How the shards are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CoordinatorState {
    pub shards: u32,
    /// Loaded and answering.
    pub loaded: u32,
    /// Could not be loaded or written, and are tried again.
    pub failed: u32,
}

/// All shards. Clones are handles to the same; when the last is gone, the shards end.
#[derive(Clone)]
pub struct Coordinator {
    shards: Arc<[Arc<ShardCell>]>,
    stops: Arc<[mpsc::Sender<Stop>]>,
    settings: watch::Sender<Arc<Settings>>,
    state: watch::Receiver<CoordinatorState>,
    reports: Reports,
}

impl Coordinator {
    /// Starts the task of every shard on the current runtime; each begins to load at once.
    #[must_use]
    pub fn start(parts: CoordinatorParts) -> Self {
        let count = parts.shards.max(1);
        let (settings, settings_seen) = watch::channel(parts.settings);
        let (states, state) = watch::channel(CoordinatorState {
            shards: count,
            ..CoordinatorState::default()
        });
        let (reports, received) = Reports::new();
        let shared = Arc::new(Shared {
            store: parts.store,
            inspector: parts.inspector,
            topic_checker: parts.topic_checker,
            permits: Arc::new(Semaphore::new(INSPECTIONS_MAX)),
            metrics: parts.metrics,
            clock: Clock::start(),
            seed: parts.seed,
            reports: reports.clone(),
        });
        let cells = (0..count).map(|number| Arc::new(ShardCell::new(ShardId(number), states.clone())));
        let shards: Arc<[Arc<ShardCell>]> = cells.collect();
        let stops = shards.iter().map(|cell| {
            let (sender, stops) = mpsc::channel(1);
            let (settings, topics) = (settings_seen.clone(), parts.topics.clone());
            let task = ShardTask::new(Arc::clone(cell), Arc::clone(&shared), stops, settings, topics);
            tokio::spawn(task.run());
            sender
        });
        let stops = stops.collect();
        tokio::spawn(deliver(received, Arc::clone(&shards)));
        Self {
            shards,
            stops,
            settings,
            state,
            reports,
        }
    }

    /// For a thread that serves clients, on which it is to be spawned: tells the shards what became of the batches that come of
    /// requests that are asked there, so that who waits for an answer is woken on the same thread. A thread does so for one
    /// coordinator.
    pub fn report_here(&self) -> impl Future<Output = ()> + Send + 'static {
        let (reports, shards) = (self.reports.clone(), Arc::clone(&self.shards));
        async move { deliver(reports.of_this_thread(), shards).await }
    }

    /// Asks the shard of the group. A parked join or sync is answered when its group says so, however long that takes.
    pub async fn call(&self, group_id: &str, request: Request) -> Response {
        self.shard_of(group_id).ask(request, &mut None).await.received().await
    }

    /// Asks like [`Self::call`], for a join or a sync: the caller can let go of the request before the answer comes.
    pub async fn submit(&self, group_id: &str, request: Request) -> Submitted {
        self.shard_of(group_id).ask(request, &mut None).await.submitted().await
    }

    /// Asks the shards of several groups at once and gives the answers in the order of the requests.
    pub async fn call_many(&self, requests: Vec<(Text, Request)>) -> Vec<Response> {
        let mut answers = Vec::with_capacity(requests.len());
        let mut gives_up = None;
        for (group_id, request) in requests {
            answers.push(self.shard_of(&group_id).ask(request, &mut gives_up).await);
        }
        let mut responses = Vec::with_capacity(answers.len());
        for answer in answers {
            responses.push(answer.received().await);
        }
        responses
    }

    /// Asks every shard, for requests that concern all groups.
    pub async fn call_all(&self, request: Request) -> Vec<(ShardId, Response)> {
        let mut answers = Vec::with_capacity(self.shards.len());
        let mut gives_up = None;
        for shard in self.shards.iter() {
            answers.push((shard.id(), shard.ask(request.clone(), &mut gives_up).await));
        }
        let mut responses = Vec::with_capacity(answers.len());
        for (shard, answer) in answers {
            responses.push((shard, answer.received().await));
        }
        responses
    }

    /// Asks every shard until one has answered what is enough, and gives what has been answered by then. `request` is told
    /// whether it is for the shard of the group.
    pub async fn call_until(
        &self,
        group_id: &str,
        request: impl Fn(bool) -> Request,
        is_enough: impl Fn(&Response) -> bool,
    ) -> Vec<Response> {
        let own = shard_of(group_id, self.shards());
        let mut asked = JoinSet::new();
        for shard in self.shards.iter() {
            let (shard, request) = (Arc::clone(shard), request(shard.id() == own));
            asked.spawn(async move { shard.ask(request, &mut None).await.received().await });
        }
        let mut responses = Vec::new();
        while let Some(answered) = asked.join_next().await {
            responses.extend(answered.ok());
            if responses.last().is_some_and(&is_enough) {
                break;
            }
        }
        while let Some(answered) = asked.try_join_next() {
            responses.extend(answered.ok());
        }
        responses
    }

    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> u32 {
        u32::try_from(self.shards.len()).unwrap_or(u32::MAX)
    }

    /// How they are now.
    #[must_use]
    pub fn state(&self) -> CoordinatorState {
        *self.state.borrow()
    }

    /// Follows how they are.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<CoordinatorState> {
        self.state.clone()
    }

    /// Gives every shard other settings.
    pub fn set_settings(&self, settings: Arc<Settings>) {
        self.settings.send_replace(settings);
    }

    /// Tells every shard of topics that are certainly gone: their offsets go too. One that is not loaded keeps it in mind.
    pub fn topics_deleted(&self, topics: &[DeletedTopic]) {
        for shard in self.shards.iter() {
            shard.topics_deleted(topics);
        }
    }

    /// Stops all shards in order: what is under way is made durable and answered, what is parked gets `NOT_COORDINATOR`, as
    /// does everything from then on. Returns when the last has stopped.
    pub async fn drain(&self) {
        let mut stopped = Vec::with_capacity(self.stops.len());
        for shard in self.stops.iter() {
            let (done, wait) = oneshot::channel();
            if shard.send(done).await.is_ok() {
                stopped.push(wait);
            }
        }
        for wait in stopped {
            // An error means that the task is gone, and so stopped.
            let _ = wait.await;
        }
    }

    fn shard_of(&self, group_id: &str) -> &ShardCell {
        let ShardId(number) = shard_of(group_id, self.shards());
        // Less than the number of shards, which are at most as many as a u32 counts.
        &self.shards[number as usize]
    }
}

impl fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordinator")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// Tells the shards what is reported for them, until nobody can report any more.
async fn deliver(mut reports: ReportReceiver, shards: Arc<[Arc<ShardCell>]>) {
    while let Some((to, news)) = reports.next().await {
        if let Some(shard) = shards.get(to.shard.0 as usize) {
            shard.report(to.incarnation, news);
        }
    }
}
