//! What callers hand to the store's thread, in order.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Condvar, LockResult, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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

    /// What its records take in memory, and less on disk.
    pub(super) fn bytes(&self) -> usize {
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
    /// How many tasks the thread waits for; 0 while it works.
    awaited: usize,
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
            if state.awaited > 0 && state.tasks.len() >= state.awaited {
                state.awaited = 0;
                self.filled.notify_one();
            }
        }
    }

    /// Waits for tasks and takes as many as make one transaction; `None` when closed and empty.
    ///
    /// `answered` is how many tasks the last transaction was for: clients that were just answered come back at once, and for
    /// so many it is worth to wait a little, `patience`, once the first is there. Else those that commit at the same time part into
    /// two halves which take turns, and each transaction costs as much for half of them.
    pub(super) fn take(&self, answered: usize, patience: Duration) -> Option<Vec<Task>> {
        let mut state = self.state();
        let expected = answered + state.tasks.len();
        let lacks = |state: &mut State, tasks: usize| {
            let lacks = state.tasks.len() < tasks && !state.closed;
            state.awaited = if lacks { tasks } else { 0 };
            lacks
        };
        state = unpoisoned(self.filled.wait_while(state, |state| lacks(state, 1)));
        let gathered = self
            .filled
            .wait_timeout_while(state, patience, |state| lacks(state, expected));
        let (mut state, _) = unpoisoned(gathered);
        state.awaited = 0;
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
        unpoisoned(self.state.lock())
    }
}

/// Nothing that can panic half-way runs while the queue is locked.
fn unpoisoned<T>(locked: LockResult<T>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn as_many_are_waited_for_as_were_just_answered_but_not_for_ever() {
        let queue = Arc::new(Queue::new(QUEUE_BYTES));
        let _first = queue.load(ShardId(0));
        let taken = |answered, patience| queue.take(answered, patience).map(|tasks| tasks.len());
        assert_eq!(taken(0, LONG), Some(1), "nobody else is expected");
        let _second = queue.load(ShardId(0));
        assert_eq!(taken(2, Duration::ZERO), Some(1), "patience has an end");

        let takes = |answered| {
            let other = Arc::clone(&queue);
            let thread = thread::spawn(move || other.take(answered, LONG).map(|tasks| tasks.len()));
            while queue.state().awaited == 0 {
                thread::yield_now();
            }
            thread
        };
        let waiting = takes(2);
        let _third = queue.load(ShardId(0));
        let _fourth = queue.load(ShardId(0));
        assert_eq!(waiting.join().unwrap(), Some(2));

        let waiting = takes(5);
        queue.close();
        assert_eq!(waiting.join().unwrap(), None, "a store that closes waits for nobody");
    }
}
