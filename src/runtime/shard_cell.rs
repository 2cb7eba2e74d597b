//! One shard as everybody reaches it: a lock around the core while it is loaded, and what to answer while it is not.
//!
//! A request runs on the task that brought it, so no other task has to be woken for it and none has to wake this one. A step
//! takes microseconds and waits for nothing, so the lock is never held for long, and never across an await.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};
use tracing::error;
use uuid::Uuid;

use super::active_shard::{ActiveShard, Asked};
use super::coordinator::CoordinatorState;
use super::reports::News;
use super::waiting::{Admitted, Submitted, Told, Waiting};
use crate::coordinator::input::DeletedTopic;
use crate::coordinator::request::{Request, Response, Text};
use crate::coordinator::topics::Topics;
use crate::store::{Incarnation, ShardId, StoreError};
use crate::wire::error_code::ErrorCode;

/// An answer that is there or comes.
pub(super) enum Answer {
    Here(Response),
    Later(Waiting),
    /// It comes from the request's group.
    OfTheGroup(Waiting),
}

impl Answer {
    /// Waits for it.
    pub(super) async fn received(self) -> Response {
        match self {
            Self::Here(response) => response,
            Self::Later(waiting) | Self::OfTheGroup(waiting) => waiting.answer().await,
        }
    }

    /// Waits until it is certain whether the group is coordinated here.
    pub(super) async fn submitted(self) -> Submitted {
        let told = match self {
            Self::Here(response) => Told::Answered(response),
            Self::Later(waiting) => waiting.told().await,
            Self::OfTheGroup(waiting) => Told::Admitted(waiting),
        };
        match told {
            Told::Answered(response) => Submitted::Answered(response),
            Told::Admitted(waiting) => Submitted::Admitted(Admitted(waiting)),
        }
    }
}

/// How a drain goes.
pub(super) enum Drain {
    /// The store is still writing.
    UnderWay,
    Done,
    /// Not everything could be written.
    Failed(StoreError),
}

enum State {
    /// Not loaded yet, or stopped: what every request is answered.
    Absent(ErrorCode),
    Loaded(Box<ActiveShard>),
    /// The store failed, while loading or after; the shard is loaded again.
    Failed(Option<Failure>),
}

/// A failure of the store that the shard's task has not seen yet.
struct Failure {
    error: StoreError,
    has_written: bool,
}

struct Inner {
    state: State,
    /// Told while the shard was not loaded; each topic once.
    topics_deleted: Vec<DeletedTopic>,
}

pub(super) struct ShardCell {
    id: ShardId,
    inner: Mutex<Inner>,
    /// The shard may take requests in again.
    room: Notify,
    /// The shard's task should look.
    attention: Notify,
    states: watch::Sender<CoordinatorState>,
}

impl ShardCell {
    /// A shard that is not loaded yet.
    pub(super) fn new(id: ShardId, states: watch::Sender<CoordinatorState>) -> Self {
        Self {
            id,
            inner: Mutex::new(Inner {
                state: State::Absent(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
                topics_deleted: Vec::new(),
            }),
            room: Notify::new(),
            attention: Notify::new(),
            states,
        }
    }

    pub(super) const fn id(&self) -> ShardId {
        self.id
    }

    /// Has the request worked on; waits while the store does not keep up, for as long as anybody waits for it. Requests that
    /// are asked one after the other share their patience.
    pub(super) async fn ask(&self, request: Request, gives_up: &mut Option<Instant>) -> Answer {
        let mut request = request;
        loop {
            let room = self.room.notified();
            let patience;
            (request, patience) = match self.try_ask(request) {
                Asked::Answered(response) => return Answer::Here(response),
                Asked::Waits(waiting) => return Answer::Later(waiting),
                Asked::Admitted(waiting) => return Answer::OfTheGroup(waiting),
                Asked::Refused(request, patience) => (request, patience),
            };
            let gives_up = *gives_up.get_or_insert_with(|| Instant::now() + patience);
            // Seldom needed, and everybody who asks would carry it.
            if Box::pin(timeout_at(gives_up, room)).await.is_err() {
                return Answer::Here(unavailable(ErrorCode::COORDINATOR_NOT_AVAILABLE));
            }
        }
    }

    fn try_ask(&self, request: Request) -> Asked {
        let mut inner = self.lock();
        match &mut inner.state {
            State::Loaded(active) => self.guarded(active, |active| active.ask(request)),
            State::Absent(error) => Asked::Answered(unavailable(*error)),
            State::Failed(_) => Asked::Answered(unavailable(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)),
        }
    }

    /// Takes in what was reported for an incarnation; that of an earlier one is no news any more.
    pub(super) fn report(&self, incarnation: Incarnation, news: News) {
        let mut inner = self.lock();
        let State::Loaded(active) = &mut inner.state else {
            return;
        };
        if active.incarnation() != incarnation {
            return;
        }
        match news {
            News::Inspected(group_id, result) => self.guarded(active, |active| active.inspected(group_id, result)),
            News::Appended(lsn, Ok(())) => {
                let was_full = active.is_full();
                self.guarded(active, |active| active.durable(lsn));
                if was_full {
                    self.room.notify_waiters();
                }
            }
            // A batch before it failed, whose report tells why; it may be told by another thread.
            News::Appended(_, Err(StoreError::Superseded)) => {}
            News::Appended(_, Err(error)) => {
                let has_written = active.has_written();
                self.leave(inner, State::Failed(Some(Failure { error, has_written })));
                self.attention.notify_one();
            }
        }
    }

    /// Takes note of topics that are gone, or keeps them until the shard is loaded.
    pub(super) fn topics_deleted(&self, topics: &[DeletedTopic]) {
        let mut guard = self.lock();
        let inner = &mut *guard;
        match &mut inner.state {
            State::Loaded(active) => self.guarded(active, |active| active.topics_deleted(topics)),
            State::Absent(_) | State::Failed(_) => {
                for topic in topics {
                    if !inner.topics_deleted.contains(topic) {
                        inner.topics_deleted.push(topic.clone());
                    }
                }
            }
        }
    }

    /// Begins to serve with these topics upstream; gives the topics that offsets are stored for, by their ids.
    pub(super) fn open(&self, active: ActiveShard, upstream: Arc<Topics>) -> BTreeMap<Uuid, Text> {
        let mut active = Box::new(active);
        // What goes through all of a shard is done before the lock is taken.
        let mut topics = self.guarded(&mut active, |active| {
            active.begin(upstream);
            active.topics()
        });
        let mut inner = self.lock();
        let deleted = std::mem::take(&mut inner.topics_deleted);
        self.guarded(&mut active, |active| active.topics_deleted(&deleted));
        self.set_state(&mut inner, State::Loaded(active));
        drop(inner);
        for topic in deleted {
            topics.remove(&topic.id);
        }
        topics
    }

    /// Has the core stepped, if it is loaded.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut ActiveShard) -> T) -> Option<T> {
        match &mut self.lock().state {
            State::Loaded(active) => Some(self.guarded(active, work)),
            State::Absent(_) | State::Failed(_) => None,
        }
    }

    /// Resolves when the shard's task should look earlier than it would by itself.
    pub(super) async fn attention(&self) {
        self.attention.notified().await;
    }

    /// The failure that ended an incarnation, once, and whether anything had become durable before it.
    pub(super) fn failure(&self) -> Option<(StoreError, bool)> {
        match &mut self.lock().state {
            State::Failed(failure) => failure.take().map(|failure| (failure.error, failure.has_written)),
            State::Absent(_) | State::Loaded(_) => None,
        }
    }

    /// The shard could not be loaded.
    pub(super) fn not_loaded(&self) {
        self.set_state(&mut self.lock(), State::Failed(None));
    }

    /// Takes no more in, and stops as soon as everything is durable.
    pub(super) fn drain(&self) -> Drain {
        let mut inner = self.lock();
        let outcome = match &mut inner.state {
            State::Loaded(active) => {
                let is_drained = self.guarded(active, |active| {
                    active.drain();
                    active.is_drained()
                });
                if !is_drained {
                    return Drain::UnderWay;
                }
                Drain::Done
            }
            State::Failed(Some(failure)) => Drain::Failed(failure.error.clone()),
            State::Failed(None) | State::Absent(_) => Drain::Done,
        };
        self.leave(inner, State::Absent(ErrorCode::NOT_COORDINATOR));
        outcome
    }

    /// Lets go of the core: nobody asks any more.
    pub(super) fn close(&self) {
        self.leave(self.lock(), State::Absent(ErrorCode::NOT_COORDINATOR));
    }

    /// Leaves the state for another; who waits in it is told to look for the coordinator again.
    fn leave(&self, mut inner: MutexGuard<'_, Inner>, next: State) {
        let left = self.set_state(&mut inner, next);
        // All of a shard takes long to go through, and nobody else sees it any more.
        drop(inner);
        if let State::Loaded(active) = left {
            let armed = AbortOnDrop(self.id);
            active.unload(ErrorCode::NOT_COORDINATOR);
            std::mem::forget(armed);
        }
        self.room.notify_waiters();
    }

    fn set_state(&self, inner: &mut Inner, next: State) -> State {
        let counted = |state: &State| match state {
            State::Absent(_) => (0, 0),
            State::Loaded(_) => (1, 0),
            State::Failed(_) => (0, 1),
        };
        let (is, was) = (counted(&next), counted(&inner.state));
        if is != was {
            self.states.send_modify(|states| {
                states.loaded = states.loaded + is.0 - was.0;
                states.failed = states.failed + is.1 - was.1;
            });
        }
        std::mem::replace(&mut inner.state, next)
    }

    /// Works on the core, hands over what came of it, and calls the shard's task if it should look. A panic ends the
    /// process: it leaves state half changed, so nothing may be answered from it, and the next start loads what is durable.
    fn guarded<T>(&self, active: &mut ActiveShard, work: impl FnOnce(&mut ActiveShard) -> T) -> T {
        let armed = AbortOnDrop(self.id);
        let result = work(active);
        active.hand_over();
        if active.needs_a_look() {
            self.attention.notify_one();
        }
        std::mem::forget(armed);
        result
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic in it ends the process.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) const fn unavailable(error: ErrorCode) -> Response {
    Response::Unavailable { error }
}

/// Ends the process unless it is forgotten.
pub(super) struct AbortOnDrop(pub(super) ShardId);

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
