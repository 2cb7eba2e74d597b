//! The log in front of the database: a transaction is appended to it and synced once, and reaches the database later, together
//! with many others of which only the latest value of each key is left.
//!
//! ```text
//! 0     head: magic, id, epoch, acknowledged entries of it, checksum      written after each sync, not synced itself
//! 4096  entry 0, entry 1, …: length, checksum, epoch, number, records
//! ```
//! The id is random and another one for each log. The database says which log is its own and which epoch is not in it yet. When it has taken everything in, the next epoch begins at the first entry's
//! place again, and what the file holds of the last one means nothing any more; so blocks are overwritten and not allocated.
//!
//! An entry begins only when the one before it is synced, so a torn one can only be the last, and one that was acknowledged was
//! not torn but damaged: the head tells. After a power failure it may tell of one entry less than were synced; these are
//! taken if they are whole. What the head said at a sync that has ended it says for ever, so a log that says less than the
//! database has seen is a copy of an earlier time.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use redb::StorageBackend;
use redb::backends::FileBackend;

use super::failure::{damaged, database_error, io_error};
use super::file::{Identity, directory_of, expect_in_place, identity};
use crate::coordinator::record::RawRecord;
use crate::store::{ShardId, StoreError};

const MAGIC: &[u8; 8] = b"CNVKLOG2";
/// Of a log without an id, which stands for the id 0.
const MAGIC_BEFORE_IDS: &[u8; 8] = b"CNVKLOG1";
/// Magic, id, epoch, acknowledged entries, checksum.
const HEAD_SIZE: usize = 8 + 8 + 8 + 8 + 4;
const HEAD_SIZE_BEFORE_IDS: usize = HEAD_SIZE - 8;
/// Where the entries begin: not in the head's block.
const ENTRIES_AT: u64 = 4096;
/// Length of the records, checksum, epoch, number.
const ENTRY_HEAD_SIZE: usize = 4 + 4 + 8 + 8;
const PROOF_CHUNK: usize = 32 * 1024;
/// The length that stands for no value.
const REMOVED: u32 = u32::MAX;

/// The latest of each key that the log has and the database does not: keys as the database has them; `None` removes.
pub(super) type Pending = HashMap<Bytes, Option<Bytes>>;

/// What a log's head says of its entries: of two the later is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Mark {
    pub(super) epoch: u64,
    /// That are acknowledged.
    pub(super) entries: u64,
}

/// What the database says of the log that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LogState {
    /// 0 of a log from before there were ids.
    pub(super) id: u64,
    /// The epoch that is not in the database.
    pub(super) epoch: u64,
    /// What the head says on disk, or something earlier.
    pub(super) seen: Mark,
}

impl LogState {
    /// Whether it is one of today.
    pub(super) const fn has_id(&self) -> bool {
        self.id != 0
    }
}

/// The open log.
#[derive(Debug)]
pub(super) struct Log {
    file: Box<dyn StorageBackend>,
    path: PathBuf,
    identity: Identity,
    id: u64,
    /// What the head says, and what it says on disk for certain.
    head: Mark,
    synced: Mark,
    epoch: u64,
    /// Entries of the epoch.
    entries: u64,
    /// Where the next one begins.
    end: u64,
    /// Bytes of the file.
    length: u64,
}

/// The log of the database at `path`.
pub(super) fn log_path(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push(".log");
    PathBuf::from(log)
}

impl Log {
    /// A new log, on disk with its name before this returns; one that is there already means nothing.
    pub(super) fn create<B: StorageBackend>(
        path: PathBuf,
        wrap: &impl Fn(FileBackend) -> B,
    ) -> Result<Self, StoreError> {
        let id = getrandom::u64().map_err(|error| io_error(&path, &error.into()))?;
        let state = LogState {
            id: id.max(1),
            epoch: 1,
            seen: Mark::default(),
        };
        let mut log = Self::opened(path, state, OpenOptions::new().create(true).truncate(true), wrap)?;
        log.write_head()?;
        log.sync()?;
        let directory = directory_of(&log.path);
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| io_error(directory, &error))?;
        Ok(log)
    }

    /// The log as it was left, and what is in it and not in the database, which says that this is its log.
    pub(super) fn open<B: StorageBackend>(
        path: PathBuf,
        database: &Path,
        state: LogState,
        wrap: &impl Fn(FileBackend) -> B,
    ) -> Result<(Self, Pending), StoreError> {
        if !path.try_exists().map_err(|error| io_error(&path, &error))? {
            return Err(damaged(
                &path,
                "it is missing, and holds what the database does not have yet".to_owned(),
            ));
        }
        let mut log = Self::opened(path, state, &mut OpenOptions::new(), wrap)?;
        let bytes = log.read()?;
        log.length = bytes.len() as u64;
        let (id, head) = read_head(&bytes).map_err(|reason| damaged(&log.path, reason.to_owned()))?;
        expect_together(id, head, state).map_err(|reason| StoreError::NotTogether {
            database: database.display().to_string(),
            log: log.path.display().to_string(),
            reason,
        })?;
        log.head = head;
        log.sync()?;
        let acknowledged = if head.epoch == state.epoch { head.entries } else { 0 };
        let mut pending = Pending::new();
        let mut rest = bytes.slice(bytes.len().min(ENTRIES_AT as usize)..);
        while let Some(records) = next_entry(&mut rest, state.epoch, log.entries) {
            log.entries += 1;
            pending.extend(Writes(records));
        }
        if log.entries < acknowledged {
            let reason = format!(
                "entry {} of {acknowledged} that were acknowledged cannot be read",
                log.entries
            );
            return Err(damaged(&log.path, reason));
        }
        Ok((log, pending))
    }

    fn opened<B: StorageBackend>(
        path: PathBuf,
        state: LogState,
        options: &mut OpenOptions,
        wrap: &impl Fn(FileBackend) -> B,
    ) -> Result<Self, StoreError> {
        options.read(true).write(true);
        std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
        let file = options.open(&path).map_err(|error| io_error(&path, &error))?;
        let identity = identity(&file.metadata().map_err(|error| io_error(&path, &error))?);
        let file = FileBackend::new(file).map_err(|error| database_error(&path, error))?;
        Ok(Self {
            file: Box::new(wrap(file)),
            path,
            identity,
            id: state.id,
            head: state.seen,
            synced: state.seen,
            epoch: state.epoch,
            entries: 0,
            end: ENTRIES_AT,
            length: ENTRIES_AT,
        })
    }

    /// Begins anew: the database has everything.
    pub(super) const fn restart(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.entries = 0;
        self.end = ENTRIES_AT;
    }

    /// What the database is to say of it once it has everything that is in it now: its next epoch begins.
    pub(super) const fn next(&self) -> LogState {
        LogState {
            id: self.id,
            epoch: self.epoch + 1,
            seen: self.synced,
        }
    }

    /// Bytes that it holds for the database.
    pub(super) const fn held(&self) -> u64 {
        self.end - ENTRIES_AT
    }

    /// Makes the records durable, all or none; hands them back as the database will have them.
    pub(super) fn append<'a>(
        &mut self,
        records: impl Iterator<Item = (ShardId, &'a RawRecord)>,
    ) -> Result<Writes, StoreError> {
        let mut entry = BytesMut::zeroed(ENTRY_HEAD_SIZE);
        for (shard, record) in records {
            put_record(&mut entry, shard, record);
        }
        let Ok(length) = u32::try_from(entry.len() - ENTRY_HEAD_SIZE) else {
            return Err(self.io_error(&io::Error::other("4 GiB or more at once")));
        };
        let checksum = checksum(self.epoch, self.entries, &entry[ENTRY_HEAD_SIZE..]);
        let mut head = &mut entry[..ENTRY_HEAD_SIZE];
        head.put_u32(length);
        head.put_u32(checksum);
        head.put_u64(self.epoch);
        head.put_u64(self.entries);
        let written = self.file.write(self.end, &entry);
        written.map_err(|error| self.io_error(&error))?;
        self.sync()?;
        self.entries += 1;
        self.end += entry.len() as u64;
        self.length = self.length.max(self.end);
        self.write_head()?;
        entry.advance(ENTRY_HEAD_SIZE);
        Ok(Writes(entry.freeze()))
    }

    /// Makes so many bytes durable that mean nothing, where the next entries will be.
    pub(super) fn prove(&mut self, bytes: usize) -> Result<(), StoreError> {
        let end = self.end + bytes as u64;
        let mut at = self.end;
        while at < end {
            let written = self.file.write(at, &[0; PROOF_CHUNK]);
            written.map_err(|error| self.io_error(&error))?;
            at += PROOF_CHUNK as u64;
        }
        self.length = self.length.max(at);
        self.sync()
    }

    /// What is written to a file that nobody can find again is not durable.
    pub(super) fn expect_in_place(&self) -> Result<(), StoreError> {
        expect_in_place(&self.path, self.identity)
    }

    /// Bytes that it takes: those of former epochs are used again.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Takes it away: the database has everything and was closed.
    pub(super) fn remove(self) -> Result<(), StoreError> {
        fs::remove_file(&self.path).map_err(|error| io_error(&self.path, &error))
    }

    fn read(&self) -> Result<Bytes, StoreError> {
        let length = self.file.len().map_err(|error| self.io_error(&error))?;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        let read = self.file.read(0, &mut bytes);
        read.map_err(|error| self.io_error(&error))?;
        Ok(bytes.into())
    }

    fn write_head(&mut self) -> Result<(), StoreError> {
        let mut head = Vec::with_capacity(HEAD_SIZE);
        head.put_slice(MAGIC);
        head.put_u64(self.id);
        head.put_u64(self.epoch);
        head.put_u64(self.entries);
        head.put_u32(crc32c::crc32c(&head));
        self.file.write(0, &head).map_err(|error| self.io_error(&error))?;
        self.head = Mark {
            epoch: self.epoch,
            entries: self.entries,
        };
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(|error| self.io_error(&error))?;
        self.synced = self.head;
        Ok(())
    }

    fn io_error(&self, error: &io::Error) -> StoreError {
        io_error(&self.path, error)
    }
}

/// The id and what else the head says, or what is wrong with it.
fn read_head(bytes: &[u8]) -> Result<(u64, Mark), &'static str> {
    let size = if bytes.starts_with(MAGIC_BEFORE_IDS) {
        HEAD_SIZE_BEFORE_IDS
    } else {
        HEAD_SIZE
    };
    let head = bytes.get(..size).and_then(|head| head.split_last_chunk());
    let Some((head, sum)) = head.filter(|(head, _)| head.starts_with(MAGIC) || head.starts_with(MAGIC_BEFORE_IDS))
    else {
        return Err("it does not begin as a log does");
    };
    if crc32c::crc32c(head).to_be_bytes() != *sum {
        return Err("the checksum of its head is wrong");
    }
    let mut fields = &head[MAGIC.len()..];
    let id = if size == HEAD_SIZE { fields.get_u64() } else { 0 };
    let (epoch, entries) = (fields.get_u64(), fields.get_u64());
    Ok((id, Mark { epoch, entries }))
}

/// Files of two lives that lie side by side would mix what was never true at one time.
fn expect_together(id: u64, head: Mark, database: LogState) -> Result<(), &'static str> {
    if id != database.id {
        Err("it was made for another database, or for this one at another time")
    } else if head.epoch > database.epoch {
        Err("it is newer than the database")
    } else if head < database.seen {
        Err("it is older than the database")
    } else {
        Ok(())
    }
}

fn checksum(epoch: u64, number: u64, records: &[u8]) -> u32 {
    let sum = crc32c::crc32c(&epoch.to_be_bytes());
    let sum = crc32c::crc32c_append(sum, &number.to_be_bytes());
    crc32c::crc32c_append(sum, records)
}

/// Takes the entry of that number, if it is there whole.
fn next_entry(rest: &mut Bytes, epoch: u64, number: u64) -> Option<Bytes> {
    let mut head = rest.get(..ENTRY_HEAD_SIZE)?;
    let length = usize::try_from(head.get_u32()).ok()?;
    let sum = head.get_u32();
    if (head.get_u64(), head.get_u64()) != (epoch, number) || rest.len() - ENTRY_HEAD_SIZE < length {
        return None;
    }
    let records = rest.slice(ENTRY_HEAD_SIZE..ENTRY_HEAD_SIZE + length);
    if checksum(epoch, number, &records) != sum {
        return None;
    }
    rest.advance(ENTRY_HEAD_SIZE + length);
    Some(records)
}

/// The shard stands before the key, as in the database. Neither is as long as a length can say: a batch fits a queue of less.
fn put_record(out: &mut BytesMut, shard: ShardId, record: &RawRecord) {
    let length = |bytes: &Bytes| u32::try_from(bytes.len()).unwrap_or(REMOVED - 1);
    out.put_u32(length(&record.key));
    out.put_u32(record.value.as_ref().map_or(REMOVED, length));
    out.put_u32(shard.0);
    out.put_slice(&record.key);
    out.put_slice(record.value.as_deref().unwrap_or_default());
}

/// What the records of an entry write, in order: keys as the database has them, and values; `None` removes.
#[derive(Debug)]
pub(super) struct Writes(Bytes);

impl Iterator for Writes {
    type Item = (Bytes, Option<Bytes>);

    /// Ends early rather than panics, though a checksum vouches for the lengths.
    fn next(&mut self) -> Option<Self::Item> {
        const LENGTHS: usize = 8;
        let Self(records) = self;
        let mut lengths = records.get(..LENGTHS)?;
        let key = size_of::<u32>() + lengths.get_u32() as usize;
        let length = lengths.get_u32();
        let value = if length == REMOVED { 0 } else { length as usize };
        if records.len() - LENGTHS < key + value {
            return None;
        }
        records.advance(LENGTHS);
        let (key, value) = (records.split_to(key), records.split_to(value));
        Some((key, (length != REMOVED).then_some(value)))
    }
}
