//! The store's thread: takes everything that waits, and makes it durable in one transaction (group commit).
//!
//! While one transaction is on its way to the disk the next fills up in the queue, so that the number of transactions
//! follows the disk's speed and not the number of batches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::file::Attempt;
use super::logged::LoggedFile;
use super::queue::{Append, Loaded, Queue, Task};
use crate::store::{Incarnation, ShardId, StoreError, StoreStats};

/// A file that could not be opened is not tried again at once: opening it reads all of it.
const REOPEN_PAUSE: Duration = Duration::from_millis(200);
const REOPEN_PAUSE_LONGEST: Duration = Duration::from_secs(10);
/// Of the time, tries take one part in so many at most: opening a large file takes seconds, and every shard asks for it.
const REOPEN_SHARE: u32 = 10;
/// After a failure at least so many bytes must be writable before the file counts as usable.
const PROOF_LEAST: usize = 64 * 1024;

/// For at most so long a transaction waits for those who were just answered: about as long as some thirty of them need to come
/// back.
const GATHER_TIME: Duration = Duration::from_micros(500);

/// Opens the file; called again after every failure.
pub(super) type Opener = Box<dyn Fn(Attempt) -> Result<LoggedFile, StoreError> + Send>;

/// What the thread owns.
pub(super) struct Writer {
    queue: Arc<Queue>,
    stats: Arc<StoreStats>,
    opener: Opener,
    shards: u32,
    /// `None` after a failure, until it could be opened again.
    file: Option<LoggedFile>,
    /// Of the last attempt to open it: until when there is no other, and why it failed.
    last_failure: Option<(Instant, StoreError)>,
    /// Bytes of the transaction that failed last, until as many could be written. Until then nothing is loaded: on a disk
    /// that is full, shards would else come and go with every write that is tried.
    unproven: Option<usize>,
    /// The incarnation of each shard that may append; none once one of its appends failed.
    incarnations: BTreeMap<ShardId, Incarnation>,
    last_incarnation: u64,
}

impl Writer {
    /// Opens the file for the first time.
    pub(super) fn open(queue: Arc<Queue>, stats: Arc<StoreStats>, opener: Opener) -> Result<Self, StoreError> {
        let file = opener(Attempt::First)?;
        let shards = file.shards()?;
        stats.set_file_bytes(file.length());
        Ok(Self {
            queue,
            stats,
            opener,
            shards,
            file: Some(file),
            last_failure: None,
            unproven: None,
            incarnations: BTreeMap::new(),
            last_incarnation: 0,
        })
    }

    /// How many shards the file was opened with.
    pub(super) const fn shards(&self) -> u32 {
        self.shards
    }

    /// Works until the queue is closed and empty, then closes the file.
    pub(super) fn run(mut self) {
        let mut answered = 0;
        while let Some(tasks) = self.queue.take(answered, GATHER_TIME) {
            answered = tasks.len();
            self.work(tasks);
        }
        if let Some(file) = self.file.take() {
            // Everything acknowledged is durable already; an error here only costs the next start a repair.
            let _ = file.close();
        }
    }

    fn work(&mut self, tasks: Vec<Task>) {
        let mut group = Vec::new();
        for task in tasks {
            match task {
                Task::Append(append) if self.is_current(append.shard, append.incarnation) => group.push(append),
                Task::Append(append) => {
                    self.stats.batch_failed();
                    append.answer(Err(StoreError::Superseded));
                }
                Task::Refuse(append, error) => self.fail(append, error),
                Task::BelongTo { cluster_id, done } => {
                    let _ = done.send(self.belong_to(&cluster_id));
                }
                Task::Load { shard, done } => {
                    self.commit(std::mem::take(&mut group));
                    // The caller may have given up waiting.
                    let _ = done.send(self.load(shard));
                }
            }
        }
        self.commit(group);
    }

    fn is_current(&self, shard: ShardId, incarnation: Incarnation) -> bool {
        self.incarnations.get(&shard) == Some(&incarnation)
    }

    fn belong_to(&mut self, cluster_id: &str) -> Result<(), StoreError> {
        let told = self.file().and_then(|file| file.belong_to(cluster_id));
        told.inspect_err(|error| {
            if !matches!(error, StoreError::OtherCluster { .. }) {
                self.abandon();
            }
        })
    }

    fn load(&mut self, shard: ShardId) -> Result<Loaded, StoreError> {
        // Whatever comes of it, what was loaded before may no longer append.
        self.incarnations.remove(&shard);
        let loaded = self.file().and_then(|file| file.load(shard));
        let records = loaded.inspect_err(|_| self.abandon())?;
        self.last_incarnation += 1;
        let incarnation = Incarnation(self.last_incarnation);
        self.incarnations.insert(shard, incarnation);
        Ok((incarnation, records))
    }

    /// One transaction for the whole group. Two batches that touch one key are in it in their order, the later wins.
    fn commit(&mut self, group: Vec<Append>) {
        if group.iter().all(|append| append.batch.is_empty()) {
            for append in group {
                self.succeed(append);
            }
            return;
        }
        let committed = self.file().and_then(|file| {
            let batches = group.iter().map(|append| (append.shard, &append.batch));
            file.commit(batches.flat_map(|(shard, batch)| batch.iter().map(move |record| (shard, record))))?;
            Ok(file.length())
        });
        match committed {
            Ok(length) => {
                self.stats.committed(length);
                self.stats.set_failing(None);
                for append in group {
                    self.succeed(append);
                }
                self.keep_log_short();
            }
            Err(error) => {
                let bytes: usize = group.iter().map(Append::bytes).sum();
                self.unproven = self.unproven.max(Some(bytes.max(PROOF_LEAST)));
                self.stats.set_failing(Some(error.clone()));
                self.abandon();
                for append in group {
                    self.fail(append, error.clone());
                }
            }
        }
    }

    /// Everything is durable without it; if it fails, the next who writes is told why, or finds it mended.
    fn keep_log_short(&mut self) {
        if let Some(Err(error)) = self.file.as_mut().map(LoggedFile::keep_log_short) {
            self.stats.set_failing(Some(error));
            self.abandon();
        }
    }

    fn succeed(&self, append: Append) {
        self.stats.batch_durable(append.batch.len(), append.since.elapsed());
        append.answer(Ok(()));
    }

    fn fail(&mut self, append: Append, error: StoreError) {
        if self.is_current(append.shard, append.incarnation) {
            self.incarnations.remove(&append.shard);
        }
        self.stats.batch_failed();
        append.answer(Err(error));
    }

    /// The open file; opens it again if it failed before.
    fn file(&mut self) -> Result<&mut LoggedFile, StoreError> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.reopen()?,
        };
        Ok(self.file.insert(file))
    }

    fn reopen(&mut self) -> Result<LoggedFile, StoreError> {
        if let Some((until, error)) = &self.last_failure
            && Instant::now() < *until
        {
            return Err(error.clone());
        }
        let began = Instant::now();
        let file = self.open_proven().inspect_err(|error| {
            let pause = began.elapsed().saturating_mul(REOPEN_SHARE);
            let pause = pause.clamp(REOPEN_PAUSE, REOPEN_PAUSE_LONGEST);
            self.last_failure = Some((Instant::now() + pause, error.clone()));
            self.stats.set_failing(Some(error.clone()));
        })?;
        self.stats.set_failing(None);
        Ok(file)
    }

    fn open_proven(&mut self) -> Result<LoggedFile, StoreError> {
        let mut file = (self.opener)(Attempt::Again)?;
        if let Some(bytes) = self.unproven {
            file.prove(bytes)?;
            self.unproven = None;
        }
        Ok(file)
    }

    /// redb refuses everything after an I/O error, and what it has in memory may not be what the disk has.
    fn abandon(&mut self) {
        self.file = None;
    }
}
