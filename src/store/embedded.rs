//! The store of a single sidecar: one database with a log in front of it, one writer.
//!
//! Callers put batches into a queue; a thread of its own makes all that wait durable in one transaction, with one write to the
//! log. After a failure the files are opened anew as soon as somebody asks for them, so a disk that has room again needs no restart.

mod failure;
mod file;
mod log;
mod logged;
mod queue;
#[cfg(test)]
mod tests;
mod writer;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{Incarnation, Outcome, ShardId, StateStore, StoreError, StoreFuture, StoreStats};
use crate::coordinator::record::RawRecord;
use failure::io_error;
use file::{Wanted, directory_of};
use logged::LoggedFile;
use queue::{QUEUE_BYTES, Queue};
use writer::{Opener, Writer};

/// A process that is just ending holds its lock a moment longer than it runs.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// State in one file of this machine. Dropping it writes what still waits and closes the file.
#[derive(Debug)]
pub struct EmbeddedStore {
    path: PathBuf,
    queue: Arc<Queue>,
    stats: Arc<StoreStats>,
    shards: u32,
    thread: Option<JoinHandle<()>>,
    /// Held while the store is open: the file's own lock would go with the file.
    _directory: File,
}

impl EmbeddedStore {
    /// Opens the file at `path` or makes it, with its directory, where there is none. If the number of shards is not the
    /// one the file was written with, every record is moved to the shard that its group belongs to now.
    /// Waits until the file was read and checked: a second for some hundred megabytes.
    ///
    /// # Errors
    /// The file is damaged, another process has it, or the disk says no.
    pub fn open(path: &Path, shards: u32) -> Result<Self, StoreError> {
        Self::open_wanted(path, Wanted::Exactly(shards))
    }

    /// Opens the file as it is, or makes it with so many shards where there is none: for a start that does not know yet how
    /// many the upstream has, and is to fail early if the file cannot be used. [`Self::shards`] tells how many it has.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_as_it_is(path: &Path, shards_of_a_new_one: u32) -> Result<Self, StoreError> {
        Self::open_wanted(path, Wanted::OrNew(shards_of_a_new_one))
    }

    fn open_wanted(path: &Path, shards: Wanted) -> Result<Self, StoreError> {
        let file = path.to_owned();
        let open = move |attempt| LoggedFile::open(&file, shards, attempt);
        Self::start(path, QUEUE_BYTES, Box::new(open))
    }

    fn start(path: &Path, queue_bytes: usize, opener: Opener) -> Result<Self, StoreError> {
        let directory = lock_directory(path)?;
        let queue = Arc::new(Queue::new(queue_bytes));
        let stats = Arc::new(StoreStats::default());
        let (opened, result) = mpsc::sync_channel(1);
        let writer = (queue.clone(), stats.clone());
        let thread = thread::Builder::new().name("store".to_owned()).spawn(move || {
            let (queue, stats) = writer;
            let _end = EndOnDrop(queue.clone());
            match Writer::open(queue, stats, opener) {
                Ok(writer) => {
                    // The opener waits for it; should it be gone, the queue is closed as well.
                    let _ = opened.send(Ok(writer.shards()));
                    writer.run();
                }
                Err(error) => {
                    let _ = opened.send(Err(error));
                }
            }
        });
        let thread = thread.map_err(|error| StoreError::Io {
            path: path.display().to_string(),
            reason: format!("no thread for it: {error}"),
        })?;
        let shards = result.recv().unwrap_or(Err(StoreError::Ended))?;
        Ok(Self {
            path: path.to_owned(),
            queue,
            stats,
            shards,
            thread: Some(thread),
            _directory: directory,
        })
    }

    /// How many shards the records are kept by.
    #[must_use]
    pub const fn shards(&self) -> u32 {
        self.shards
    }

    /// Makes this the file of that cluster, if it is no other's yet. Offsets are numbers of one cluster's records: in front
    /// of another they would be wrong, and its topics would make all of these look deleted.
    ///
    /// # Errors
    /// `OtherCluster`, or the disk says no.
    pub fn belong_to(&self, cluster_id: &str) -> StoreFuture<()> {
        answer(self.queue.belong_to(cluster_id.to_owned()))
    }

    /// Counters and sizes, for metrics.
    #[must_use]
    pub fn stats(&self) -> Arc<StoreStats> {
        self.stats.clone()
    }
}

/// What the thread answers.
fn answer<T: Send + 'static>(result: oneshot::Receiver<Result<T, StoreError>>) -> StoreFuture<T> {
    Box::pin(async move { result.await.unwrap_or(Err(StoreError::Ended)) })
}

impl StateStore for EmbeddedStore {
    fn load(&self, shard: ShardId) -> StoreFuture<(Incarnation, Vec<RawRecord>)> {
        answer(self.queue.load(shard))
    }

    fn append(&self, shard: ShardId, incarnation: Incarnation, batch: Vec<RawRecord>, outcome: Outcome) {
        self.queue.append(&self.path, shard, incarnation, batch, outcome);
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

/// Makes the file's directory where there is none, and takes it for this process.
fn lock_directory(path: &Path) -> Result<File, StoreError> {
    let directory = directory_of(path);
    let failed = |error: io::Error| io_error(directory, &error);
    fs::create_dir_all(directory).map_err(failed)?;
    let lock = File::open(directory).map_err(failed)?;
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::InUse {
                    path: path.display().to_string(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

/// Whatever ends the thread, nobody waits for it for ever.
struct EndOnDrop(Arc<Queue>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}
