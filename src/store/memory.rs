//! A store that forgets everything with the process; for tests and for trying things out.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::{Incarnation, Outcome, ShardId, StateStore, StoreError, StoreFuture};
use crate::coordinator::record::RawRecord;

/// Keeps records in a map. Batches are durable as soon as they are handed over.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    shards: BTreeMap<ShardId, Shard>,
    incarnations: u64,
    failure: Option<StoreError>,
}

#[derive(Debug, Default)]
struct Shard {
    records: BTreeMap<Bytes, Bytes>,
    /// `None` once an append failed, until the next load.
    incarnation: Option<Incarnation>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes every load and append fail like a broken disk, until told `None`.
    pub fn fail_with(&self, failure: Option<StoreError>) {
        self.state().failure = failure;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere cannot leave the map half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn load(&mut self, shard: ShardId) -> Result<(Incarnation, Vec<RawRecord>), StoreError> {
        self.healthy()?;
        self.incarnations += 1;
        let incarnation = Incarnation(self.incarnations);
        let shard = self.shards.entry(shard).or_default();
        shard.incarnation = Some(incarnation);
        let record = |(key, value): (&Bytes, &Bytes)| RawRecord {
            key: key.clone(),
            value: Some(value.clone()),
        };
        Ok((incarnation, shard.records.iter().map(record).collect()))
    }

    fn append(&mut self, shard: ShardId, incarnation: Incarnation, batch: Vec<RawRecord>) -> Result<(), StoreError> {
        let healthy = self.healthy();
        let shard = self.shards.entry(shard).or_default();
        if shard.incarnation != Some(incarnation) {
            return Err(StoreError::Superseded);
        }
        if healthy.is_err() {
            shard.incarnation = None;
            return healthy;
        }
        for RawRecord { key, value } in batch {
            match value {
                Some(value) => shard.records.insert(key, value),
                None => shard.records.remove(&key),
            };
        }
        Ok(())
    }

    fn healthy(&self) -> Result<(), StoreError> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}

impl StateStore for MemoryStore {
    fn load(&self, shard: ShardId) -> StoreFuture<(Incarnation, Vec<RawRecord>)> {
        let result = self.state().load(shard);
        Box::pin(std::future::ready(result))
    }

    fn append(&self, shard: ShardId, incarnation: Incarnation, batch: Vec<RawRecord>, outcome: Outcome) {
        // Told while it is locked: in the order of the calls.
        let mut state = self.state();
        outcome.tell(state.append(shard, incarnation, batch));
    }
}
