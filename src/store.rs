//! Durable state: the latest value of each record key, per shard.

pub mod embedded;
pub mod memory;
mod outcome;
mod stats;

use std::future::Future;
use std::pin::Pin;

use crate::coordinator::record::RawRecord;
pub use outcome::Outcome;
pub use stats::StoreStats;

/// A shard's number: the partition of the upstream's `__consumer_offsets` its groups hash to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u32);

/// One loading of a shard. Appends of an earlier incarnation, or after one of its appends failed, are refused, so that a
/// batch never becomes durable without those it builds on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// A boxed future, so that stores can be chosen at run time.
pub type StoreFuture<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// Where a shard's records live.
pub trait StateStore: Send + Sync + 'static {
    /// Begins a new incarnation and reads every key's latest value, in any order.
    fn load(&self, shard: ShardId) -> StoreFuture<(Incarnation, Vec<RawRecord>)>;

    /// Enqueues the batch and returns at once; the outcome is told when it is durable. Batches of one incarnation become
    /// durable, and are told, in the order of the calls, each whole or not at all.
    fn append(&self, shard: ShardId, incarnation: Incarnation, batch: Vec<RawRecord>, outcome: Outcome);

    /// The same, for one who waits for the outcome. The batch is written even if nobody does.
    fn append_and_wait(&self, shard: ShardId, incarnation: Incarnation, batch: Vec<RawRecord>) -> StoreFuture<()> {
        let (outcome, told) = Outcome::awaited();
        self.append(shard, incarnation, batch, outcome);
        told
    }
}

/// Why the store did not do as asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// An earlier append of this incarnation failed, or the shard was loaded anew: load it again.
    #[error("the shard was unloaded")]
    Superseded,
    /// The store's thread is gone.
    #[error("the store has ended")]
    Ended,
    /// The file is damaged.
    #[error("{path} is damaged: {reason}; restore it from a backup, or move it away to start without group state")]
    Damaged { path: String, reason: String },
    /// The database and the log beside it are of different times or of different stores.
    #[error(
        "{log} does not belong to {database}: {reason}; put both files back from the same backup, or move both away to start \
         without group state"
    )]
    NotTogether {
        database: String,
        log: String,
        reason: &'static str,
    },
    /// Another process has the file.
    #[error("{path} is in use by another process; stop it, or give this one another data directory")]
    InUse { path: String },
    /// The file holds the groups of another cluster, whose offsets mean nothing in this one.
    #[error(
        "{path} holds the groups of cluster {kept:?}, and the upstream is cluster {found:?}; correct upstream.bootstrap, or \
         give this cluster a data directory of its own (store.data)"
    )]
    OtherCluster { path: String, kept: String, found: String },
    /// The disk said no: full, read-only, gone.
    #[error("cannot write {path}: {reason}")]
    Io { path: String, reason: String },
}
