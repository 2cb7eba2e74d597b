//! The database: one `redb` database, opened, checked, read and written, with every way it can fail named.
//!
//! Every commit is a two-phase one and every open checks every page: without the one, a damaged newest commit would be
//! taken for a torn one and rolled back in silence; without the other, a file that was closed in peace would be trusted.
//! redb may still panic on bytes nobody foresaw, so all of it runs inside [`contained`].

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use redb::backends::FileBackend;
use redb::{
    CommitError, Durability, ReadableDatabase, ReadableTable, ReadableTableMetadata, StorageBackend, StorageError,
    TableDefinition, TableError, TransactionError, WriteTransaction,
};

use super::failure::{ContainedDatabase, contained, damaged, database_error, io_error, removed, storage_error};
use super::log::{LogState, Mark};
use crate::coordinator::record::{self, RawRecord};
use crate::runtime::shard_of;
use crate::store::{ShardId, StoreError};

/// Shard number (big-endian) and record key, to record value. The shard comes first so that one is read in one run;
/// Kafka's key order (group, topic, partition) keeps the partitions of one commit together.
const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// What the file belongs to: the id of the upstream cluster. A file that was never served has none.
const OWNER: TableDefinition<'_, &str, &str> = TableDefinition::new("owner");
/// Only there while [`StateFile::prove`] runs, or if the process was killed within it.
const PROOF: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("proof");
const OWNER_CLUSTER: &str = "cluster_id";
const META_FORMAT: &str = "format";
const META_SHARDS: &str = "shards";
/// The epoch of the log that belongs to the file; 0 or absent where none does.
const META_LOG: &str = "log";
/// The id of that log, and what its head is known to have said on disk.
const META_LOG_ID: &str = "log_id";
const META_LOG_SEEN_EPOCH: &str = "log_seen_epoch";
const META_LOG_SEEN_ENTRIES: &str = "log_seen_entries";
/// Since 2 a log may belong to the file, without which it is not whole; since 3 the log has an id.
const FORMAT: u64 = 3;
const FORMAT_BEFORE_LOGS: u64 = 1;

/// State is read once at a load and never again, so the cache only serves the tree's inner pages.
const CACHE_BYTES: usize = 64 * 1024 * 1024;
const PROOF_CHUNK: usize = 32 * 1024;
const SHARD_PREFIX: usize = size_of::<u32>();

/// What one transaction writes, in key order; `None` removes. A key is that of a record after the number of its shard.
pub(super) type Writes = BTreeMap<Bytes, Option<Bytes>>;

/// Whether the file may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The process starts: a file that is not there is made.
    First,
    /// The file was open before: if it is gone now, so is what was acknowledged, and a new one would hide that.
    Again,
}

/// How many shards an opened file is to have.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    /// So many; the records of a file with another number are moved.
    Exactly(u32),
    /// As many as it has; a new file gets so many.
    OrNew(u32),
}

/// The open file. After any error it is to be dropped and opened again: redb accepts nothing after an I/O error.
#[derive(Debug)]
pub(super) struct StateFile {
    database: ContainedDatabase,
    path: PathBuf,
    identity: Identity,
}

/// Device and inode: what a path leads to, whatever it is called.
pub(super) type Identity = (u64, u64);

/// Where the file is.
pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The key under which a shard's record is kept.
fn stored_key(shard: ShardId, key: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(SHARD_PREFIX + key.len());
    stored.extend_from_slice(&shard.0.to_be_bytes());
    stored.extend_from_slice(key);
    stored
}

impl StateFile {
    /// Opens the file as it is, or makes it where there is none, with so many shards. `wrap` stands between redb and the file.
    pub(super) fn open<B: StorageBackend>(
        path: &Path,
        shards_of_a_new_one: u32,
        attempt: Attempt,
        wrap: &impl Fn(FileBackend) -> B,
    ) -> Result<Self, StoreError> {
        contained(path, || {
            if path.try_exists().map_err(|error| io_error(path, &error))? {
                Self::open_existing(path, wrap)
            } else if attempt == Attempt::Again {
                Err(removed(path))
            } else {
                Self::create(path, shards_of_a_new_one, wrap)
            }
        })
    }

    /// A new file is made under another name and renamed when it is whole, so that under its own name an empty or
    /// half-made file is always damage, never a fresh start.
    fn create<B: StorageBackend>(
        path: &Path,
        shards: u32,
        wrap: &impl Fn(FileBackend) -> B,
    ) -> Result<Self, StoreError> {
        let directory = directory_of(path);
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".new");
        let unfinished = PathBuf::from(unfinished);
        let file = match Self::create_unfinished(&unfinished, shards, wrap) {
            // Left behind by a start that did not come to its end.
            Err(StoreError::Damaged { .. }) => {
                fs::remove_file(&unfinished).map_err(|error| io_error(&unfinished, &error))?;
                Self::create_unfinished(&unfinished, shards, wrap)?
            }
            made => made?,
        };
        fs::rename(&unfinished, path).map_err(|error| io_error(path, &error))?;
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| io_error(directory, &error))?;
        Ok(Self {
            path: path.to_owned(),
            ..file
        })
    }

    fn create_unfinished<B: StorageBackend>(
        path: &Path,
        shards: u32,
        wrap: &impl Fn(FileBackend) -> B,
    ) -> Result<Self, StoreError> {
        contained(path, || {
            let file = Self::database(path, wrap)?;
            let transaction = file.begin()?;
            {
                let records = transaction.open_table(RECORDS).map_err(|e| file.table_error(e))?;
                let mut meta = transaction.open_table(META).map_err(|e| file.table_error(e))?;
                if !records.is_empty().map_err(|e| file.storage_error(e))? {
                    return Err(file.damaged("an unfinished file has records".to_owned()));
                }
                for (name, value) in [(META_FORMAT, FORMAT), (META_SHARDS, u64::from(shards))] {
                    meta.insert(name, value).map_err(|e| file.storage_error(e))?;
                }
            }
            file.finish(transaction)?;
            Ok(file)
        })
    }

    fn open_existing<B: StorageBackend>(path: &Path, wrap: &impl Fn(FileBackend) -> B) -> Result<Self, StoreError> {
        let length = fs::metadata(path).map_err(|error| io_error(path, &error))?.len();
        if length == 0 {
            return Err(damaged(path, "it is empty".to_owned()));
        }
        let file = Self::database(path, wrap)?;
        file.shards()?;
        Ok(file)
    }

    fn database<B: StorageBackend>(path: &Path, wrap: &impl Fn(FileBackend) -> B) -> Result<Self, StoreError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // Names of groups, members and hosts are nobody else's business.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(|error| io_error(path, &error))?;
        let identity = identity(&file.metadata().map_err(|error| io_error(path, &error))?);
        let backend = FileBackend::new(file).map_err(|error| database_error(path, error))?;
        let database = redb::Builder::new()
            .set_cache_size(CACHE_BYTES)
            .set_check_integrity_on_open(true)
            .create_with_backend(wrap(backend))
            .map_err(|error| database_error(path, error))?;
        Ok(Self {
            database: ContainedDatabase::new(database),
            path: path.to_owned(),
            identity,
        })
    }

    /// How many shards the file's records are keyed by.
    pub(super) fn shards(&self) -> Result<u32, StoreError> {
        let format = self.told(META_FORMAT)?;
        if !(FORMAT_BEFORE_LOGS..=FORMAT).contains(&format) {
            let reason = format!("its format is {format}, this version of Convoke reads up to {FORMAT}");
            return Err(self.damaged(reason));
        }
        let shards = self.told(META_SHARDS)?;
        u32::try_from(shards).map_err(|_| self.damaged(format!("it says that it has {shards} shards")))
    }

    fn told(&self, name: &str) -> Result<u64, StoreError> {
        let value = self.meta(name)?;
        value.ok_or_else(|| self.damaged(format!("it does not say its {name}")))
    }

    fn meta(&self, name: &str) -> Result<Option<u64>, StoreError> {
        let transaction = self.database.begin_read().map_err(|e| self.transaction_error(e))?;
        let meta = transaction.open_table(META).map_err(|e| self.table_error(e))?;
        let value = meta.get(name).map_err(|e| self.storage_error(e))?;
        Ok(value.map(|value| value.value()))
    }

    /// The log that belongs to the file, if one does.
    pub(super) fn log(&self) -> Result<Option<LogState>, StoreError> {
        let meta = |name| Ok(self.meta(name)?.unwrap_or(0));
        let state = LogState {
            id: meta(META_LOG_ID)?,
            epoch: meta(META_LOG)?,
            seen: Mark {
                epoch: meta(META_LOG_SEEN_EPOCH)?,
                entries: meta(META_LOG_SEEN_ENTRIES)?,
            },
        };
        Ok((state.epoch > 0).then_some(state))
    }

    /// Keys every record by the shard that its group belongs to now, all in one transaction.
    pub(super) fn reshard(&self, shards: u32) -> Result<(), StoreError> {
        let transaction = self.begin()?;
        {
            let mut records = transaction.open_table(RECORDS).map_err(|e| self.table_error(e))?;
            let mut moved = Vec::new();
            for entry in records.iter().map_err(|e| self.storage_error(e))? {
                let (stored, value) = entry.map_err(|e| self.storage_error(e))?;
                let stored = stored.value();
                let key = self.record_key(stored)?;
                let group_id = record::key_group_id(key)
                    .map_err(|error| self.damaged(format!("a record's key is not readable: {error}")))?;
                let renamed = stored_key(shard_of(&group_id, shards), key);
                if renamed != stored {
                    moved.push((stored.to_vec(), renamed, value.value().to_vec()));
                }
            }
            for (stored, _, _) in &moved {
                records.remove(stored.as_slice()).map_err(|e| self.storage_error(e))?;
            }
            for (_, renamed, value) in &moved {
                let inserted = records.insert(renamed.as_slice(), value.as_slice());
                inserted.map_err(|e| self.storage_error(e))?;
            }
            let mut meta = transaction.open_table(META).map_err(|e| self.table_error(e))?;
            let inserted = meta.insert(META_SHARDS, u64::from(shards));
            inserted.map_err(|e| self.storage_error(e))?;
        }
        self.finish(transaction)
    }

    /// Says that the file is that cluster's; another's is refused.
    pub(super) fn belong_to(&self, cluster_id: &str) -> Result<(), StoreError> {
        contained(&self.path, || {
            let transaction = self.begin()?;
            {
                let mut owner = transaction.open_table(OWNER).map_err(|e| self.table_error(e))?;
                let kept = owner.get(OWNER_CLUSTER).map_err(|e| self.storage_error(e))?;
                match kept.map(|kept| kept.value().to_owned()) {
                    Some(kept) if kept == cluster_id => return Ok(()),
                    Some(kept) => {
                        return Err(StoreError::OtherCluster {
                            path: self.path.display().to_string(),
                            kept,
                            found: cluster_id.to_owned(),
                        });
                    }
                    None => {}
                }
                let inserted = owner.insert(OWNER_CLUSTER, cluster_id);
                inserted.map_err(|e| self.storage_error(e))?;
            }
            self.finish(transaction)
        })
    }

    /// Every record of the shard.
    pub(super) fn load(&self, shard: ShardId) -> Result<Vec<RawRecord>, StoreError> {
        contained(&self.path, || {
            let transaction = self.database.begin_read().map_err(|e| self.transaction_error(e))?;
            let records = transaction.open_table(RECORDS).map_err(|e| self.table_error(e))?;
            let from = shard.0.to_be_bytes();
            let mut loaded = Vec::new();
            let range = records.range(from.as_slice()..).map_err(|e| self.storage_error(e))?;
            for entry in range {
                let (stored, value) = entry.map_err(|e| self.storage_error(e))?;
                let stored = stored.value();
                if !stored.starts_with(&from) {
                    break;
                }
                loaded.push(RawRecord {
                    key: Bytes::copy_from_slice(self.record_key(stored)?),
                    value: Some(Bytes::copy_from_slice(value.value())),
                });
            }
            Ok(loaded)
        })
    }

    /// Takes in what the log holds, all or none; from then on this log belongs to the file, if any does. After an error either may
    /// be the case: the next opening tells.
    pub(super) fn take_in(&self, writes: &Writes, log: Option<LogState>) -> Result<(), StoreError> {
        contained(&self.path, || {
            let transaction = self.begin()?;
            {
                let mut records = transaction.open_table(RECORDS).map_err(|e| self.table_error(e))?;
                for (key, value) in writes {
                    match value {
                        Some(value) => records.insert(key.as_ref(), value.as_ref()).map(drop),
                        None => records.remove(key.as_ref()).map(drop),
                    }
                    .map_err(|e| self.storage_error(e))?;
                }
                let mut meta = transaction.open_table(META).map_err(|e| self.table_error(e))?;
                let LogState { id, epoch, seen } = log.unwrap_or_default();
                for (name, value) in [
                    (META_FORMAT, FORMAT),
                    (META_LOG, epoch),
                    (META_LOG_ID, id),
                    (META_LOG_SEEN_EPOCH, seen.epoch),
                    (META_LOG_SEEN_ENTRIES, seen.entries),
                ] {
                    meta.insert(name, value).map_err(|e| self.storage_error(e))?;
                }
            }
            self.finish(transaction)?;
            self.expect_in_place()
        })
    }

    /// Makes so many bytes durable and removes them again: the file has room for as many then.
    pub(super) fn prove(&self, bytes: usize) -> Result<(), StoreError> {
        contained(&self.path, || {
            let transaction = self.begin()?;
            {
                let mut proof = transaction.open_table(PROOF).map_err(|e| self.table_error(e))?;
                let chunk = [0; PROOF_CHUNK];
                for number in 0..bytes.div_ceil(PROOF_CHUNK) as u64 {
                    let inserted = proof.insert(number, chunk.as_slice());
                    inserted.map_err(|e| self.storage_error(e))?;
                }
            }
            self.finish(transaction)?;
            let transaction = self.begin()?;
            transaction.delete_table(PROOF).map_err(|e| self.table_error(e))?;
            self.finish(transaction)?;
            self.expect_in_place()
        })
    }

    /// What is written to a file that nobody can find again is not durable.
    pub(super) fn expect_in_place(&self) -> Result<(), StoreError> {
        expect_in_place(&self.path, self.identity)
    }

    /// Closes the file, so that the next start need not repair it.
    pub(super) fn close(self) -> Result<(), StoreError> {
        let Self { database, path, .. } = self;
        database.close(&path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn length(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    fn begin(&self) -> Result<WriteTransaction, StoreError> {
        let mut transaction = self.database.begin_write().map_err(|e| self.transaction_error(e))?;
        transaction.set_two_phase_commit(true);
        let durable = transaction.set_durability(Durability::Immediate);
        durable.map_err(|error| self.damaged(error.to_string()))?;
        Ok(transaction)
    }

    fn finish(&self, transaction: WriteTransaction) -> Result<(), StoreError> {
        transaction.commit().map_err(|error| match error {
            CommitError::Storage(error) => self.storage_error(error),
            error => self.damaged(error.to_string()),
        })
    }

    fn record_key<'a>(&self, stored: &'a [u8]) -> Result<&'a [u8], StoreError> {
        stored
            .get(SHARD_PREFIX..)
            .ok_or_else(|| self.damaged(format!("a key is {} bytes long", stored.len())))
    }

    fn damaged(&self, reason: String) -> StoreError {
        damaged(&self.path, reason)
    }

    fn storage_error(&self, error: StorageError) -> StoreError {
        storage_error(&self.path, error)
    }

    fn transaction_error(&self, error: TransactionError) -> StoreError {
        match error {
            TransactionError::Storage(error) => self.storage_error(error),
            error => self.damaged(error.to_string()),
        }
    }

    fn table_error(&self, error: TableError) -> StoreError {
        match error {
            TableError::Storage(error) => self.storage_error(error),
            error => self.damaged(error.to_string()),
        }
    }
}

pub(super) fn identity(metadata: &fs::Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// Whether the path still leads to this file.
pub(super) fn expect_in_place(path: &Path, expected: Identity) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Ok(metadata) if identity(&metadata) == expected => Ok(()),
        _ => Err(removed(path)),
    }
}
