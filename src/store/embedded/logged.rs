//! The database and its log together: what is written is durable with the log, and read from the database.

use std::path::Path;

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::failure::contained;
use super::file::{Attempt, StateFile, Wanted};
use super::log::{Log, LogState, Pending, log_path};
use crate::coordinator::record::RawRecord;
use crate::store::{ShardId, StoreError};

/// When the log holds so many bytes, the database takes them in.
const LOG_MAX: u64 = 4 * 1024 * 1024;

/// The open state. After any error it is to be dropped and opened again.
#[derive(Debug)]
pub(super) struct LoggedFile {
    database: StateFile,
    log: Log,
    pending: Pending,
}

impl LoggedFile {
    /// Opens the state, or makes it where there is none, with the shards that are wanted.
    pub(super) fn open(path: &Path, shards: Wanted, attempt: Attempt) -> Result<Self, StoreError> {
        Self::open_with(path, shards, attempt, |backend| backend)
    }

    /// `wrap` stands before each file.
    pub(super) fn open_with<B: StorageBackend>(
        path: &Path,
        shards: Wanted,
        attempt: Attempt,
        wrap: impl Fn(FileBackend) -> B,
    ) -> Result<Self, StoreError> {
        let (Wanted::Exactly(count) | Wanted::OrNew(count)) = shards;
        let database = StateFile::open(path, count, attempt, &wrap)?;
        let mut file = contained(path, || {
            let open = |state| Log::open(log_path(path), path, state, &wrap);
            let (log, pending) = match database.log()? {
                Some(state) if state.has_id() => open(state)?,
                state => {
                    if let Some(before_ids) = state {
                        let (_, pending) = open(before_ids)?;
                        database.take_in(&pending.into_iter().collect(), None)?;
                    }
                    (Log::create(log_path(path), &wrap)?, Pending::new())
                }
            };
            Ok(Self { database, log, pending })
        })?;
        file.checkpoint()?;
        if let Wanted::Exactly(count) = shards
            && file.shards()? != count
        {
            contained(path, || file.database.reshard(count))?;
        }
        Ok(file)
    }

    /// How many shards the records are keyed by.
    pub(super) fn shards(&self) -> Result<u32, StoreError> {
        self.database.shards()
    }

    /// Says that the state is that cluster's; another's is refused.
    pub(super) fn belong_to(&self, cluster_id: &str) -> Result<(), StoreError> {
        self.database.belong_to(cluster_id)
    }

    /// Every record of the shard.
    pub(super) fn load(&mut self, shard: ShardId) -> Result<Vec<RawRecord>, StoreError> {
        if !self.pending.is_empty() {
            self.checkpoint()?;
        }
        self.database.load(shard)
    }

    /// Makes the records durable, all or none; of two for one key the later wins. After an error either may be the case: the
    /// next opening tells.
    pub(super) fn commit<'a>(
        &mut self,
        records: impl Iterator<Item = (ShardId, &'a RawRecord)>,
    ) -> Result<(), StoreError> {
        let path = self.database.path().to_owned();
        contained(&path, || {
            self.pending.extend(self.log.append(records)?);
            self.log.expect_in_place()?;
            self.database.expect_in_place()
        })
    }

    /// Makes so many bytes durable in both files, which have room for as many then.
    pub(super) fn prove(&mut self, bytes: usize) -> Result<(), StoreError> {
        let path = self.database.path().to_owned();
        contained(&path, || self.log.prove(bytes))?;
        self.database.prove(bytes)
    }

    /// Has the database take in what the log holds, if that is much.
    pub(super) fn keep_log_short(&mut self) -> Result<(), StoreError> {
        if self.log.held() < LOG_MAX {
            return Ok(());
        }
        self.checkpoint()
    }

    fn checkpoint(&mut self) -> Result<(), StoreError> {
        let next = self.log.next();
        self.take_in(Some(next))?;
        self.log.restart(next.epoch);
        Ok(())
    }

    fn take_in(&mut self, log: Option<LogState>) -> Result<(), StoreError> {
        let writes = self.pending.drain().collect();
        self.database.take_in(&writes, log)
    }

    /// Closes the state: the database has everything, needs no repair at the next start, and no log belongs to it.
    pub(super) fn close(mut self) -> Result<(), StoreError> {
        self.take_in(None)?;
        self.database.close()?;
        self.log.remove()
    }

    /// Bytes that database and log have on disk.
    pub(super) fn length(&self) -> u64 {
        self.database.length() + self.log.length()
    }
}
