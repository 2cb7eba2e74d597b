//! What a store counts about itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::StoreError;

/// Counters of one store; read at any time, from any thread.
#[derive(Default)]
pub struct StoreStats {
    batches: AtomicU64,
    commits: AtomicU64,
    failures: AtomicU64,
    records: AtomicU64,
    file_bytes: AtomicU64,
    failing: Mutex<Option<StoreError>>,
    on_batch: OnceLock<Box<dyn Fn(Duration) + Send + Sync>>,
}

impl StoreStats {
    /// Batches that became durable.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.batches.load(Ordering::Relaxed)
    }

    /// Transactions; each makes one or more batches durable.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Batches that did not become durable.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Why nothing can be written: from a failure on until something has become durable again.
    #[must_use]
    pub fn failing(&self) -> Option<StoreError> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records in the batches that became durable.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// The size of the store's file after the last transaction; 0 for a store without one.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Ordering::Relaxed)
    }

    /// Calls `hook` for each batch that becomes durable, with the time since it was handed over. The hook runs on the
    /// store's thread and must not wait. Only the first hook counts.
    pub fn on_batch(&self, hook: impl Fn(Duration) + Send + Sync + 'static) {
        // A second hook is dropped, as documented.
        let _ = self.on_batch.set(Box::new(hook));
    }

    pub(super) fn committed(&self, file_bytes: u64) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.set_file_bytes(file_bytes);
    }

    pub(super) fn set_failing(&self, failing: Option<StoreError>) {
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = failing;
    }

    pub(super) fn set_file_bytes(&self, file_bytes: u64) {
        self.file_bytes.store(file_bytes, Ordering::Relaxed);
    }

    pub(super) fn batch_durable(&self, records: usize, took: Duration) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.records.fetch_add(records as u64, Ordering::Relaxed);
        if let Some(hook) = self.on_batch.get() {
            hook(took);
        }
    }

    pub(super) fn batch_failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for StoreStats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreStats")
            .field("batches", &self.batches())
            .field("commits", &self.commits())
            .field("failures", &self.failures())
            .field("file_bytes", &self.file_bytes())
            .finish_non_exhaustive()
    }
}
