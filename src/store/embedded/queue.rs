//! What callers hand to the store's thread, in order.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use crate::coordinator::record::RawRecord;
use crate::store::{Incarnation, Outcome, ShardId, StoreError};

/// More than this may not wait: memory stays bounded when the disk stands still.
pub(super) const QUEUE_BYTES: usize = 256 * 1024 * 1024;
/// One transaction takes about this much, so that those who wait for it wait for a bounded time.
const TRANSACTION_BYTES: usize = 16 * 1024 * 1024;

pub(super) type Loaded = (Incarnation, Vec<RawRecord>);

/// One thing to do.
#[derive(Debug)]
pub(super) enum Task {
    Load {
        shard: ShardId,
        done: oneshot::Sender<Result<Loaded, StoreError>>,
    },
    /// The file is to be that cluster's.
    BelongTo {
        cluster_id: String,
        done: oneshot::Sender<Result<(), StoreError>>,
    },
    Append(Append),
    /// An append that found the queue full; it fails in its turn, and with it what builds on it.
    Refuse(Append, StoreError),
}

#[derive(Debug)]
pub(super) struct Append {
    pub(super) shard: ShardId,
    pub(super) incarnation: Incarnation,
    pub(super) batch: Vec<RawRecord>,
    pub(super) since: Instant,
    outcome: Outcome,
}

impl Append {
    pub(super) fn answer(self, result: Result<(), StoreError>) {
        self.outcome.tell(result);
    }

    fn bytes(&self) -> usize {
        let record = |record: &RawRecord| record.key.len() + record.value.as_ref().map_or(0, bytes::Bytes::len);
        size_of::<Self>()
            + self
                .batch
                .iter()
                .map(|r| size_of::<RawRecord>() + record(r))
                .sum::<usize>()
    }
}

impl Task {
    fn bytes(&self) -> usize {
        match self {
            Self::Append(append) => append.bytes(),
            Self::Load { .. } | Self::BelongTo { .. } | Self::Refuse(..) => size_of::<Self>(),
        }
    }
}

/// The queue between callers and the thread.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    limit: usize,
}

#[derive(Debug, Default)]
struct State {
    tasks: VecDeque<Task>,
    bytes: usize,
    closed: bool,
    /// The thread waits for the first task.
    thread_waits: bool,
}

impl Queue {
    /// `limit` in bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::default(),
            filled: Condvar::new(),
            limit,
        }
    }

    pub(super) fn load(&self, shard: ShardId) -> oneshot::Receiver<Result<Loaded, StoreError>> {
        let (done, result) = oneshot::channel();
        self.push(&mut self.state(), Task::Load { shard, done });
        result
    }

    pub(super) fn belong_to(&self, cluster_id: String) -> oneshot::Receiver<Result<(), StoreError>> {
        let (done, result) = oneshot::channel();
        self.push(&mut self.state(), Task::BelongTo { cluster_id, done });
        result
    }

    pub(super) fn append(
        &self,
        path: &Path,
        shard: ShardId,
        incarnation: Incarnation,
        batch: Vec<RawRecord>,
        outcome: Outcome,
    ) {
        let mut append = Append {
            shard,
            incarnation,
            batch,
            since: Instant::now(),
            outcome,
        };
        let mut state = self.state();
        let task = if state.bytes.saturating_add(append.bytes()) > self.limit {
            append.batch = Vec::new();
            let error = StoreError::Io {
                path: path.display().to_string(),
                reason: format!("{} bytes wait to be written, the disk does not keep up", state.bytes),
            };
            Task::Refuse(append, error)
        } else {
            Task::Append(append)
        };
        self.push(&mut state, task);
    }

    /// A task that comes after the end is dropped, which its caller sees.
    fn push(&self, state: &mut State, task: Task) {
        if !state.closed {
            state.bytes += task.bytes();
            state.tasks.push_back(task);
            // A thread that works looks by itself when it is done.
            if std::mem::take(&mut state.thread_waits) {
                self.filled.notify_one();
            }
        }
    }

    /// Waits for tasks and takes as many as make one transaction; `None` when closed and empty.
    pub(super) fn take(&self) -> Option<Vec<Task>> {
        let nothing_to_do = |state: &mut State| {
            state.thread_waits = state.tasks.is_empty() && !state.closed;
            state.thread_waits
        };
        let state = self.filled.wait_while(self.state(), nothing_to_do);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let mut taken = Vec::new();
        let mut bytes = 0;
        while bytes < TRANSACTION_BYTES
            && let Some(task) = state.tasks.pop_front()
        {
            bytes += task.bytes();
            taken.push(task);
        }
        state.bytes -= bytes;
        (!taken.is_empty()).then_some(taken)
    }

    /// No more tasks; those that wait are still worked.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.filled.notify_one();
    }

    /// The thread is gone: whoever still waits is told so.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.closed = true;
        state.tasks.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic half-way runs while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
