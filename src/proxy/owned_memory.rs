//! The memory that long requests which end here may take, all connections together (`limits.owned_memory_max`).

use std::sync::Arc;

use prometheus::IntGauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One for all connections.
#[derive(Debug)]
pub(crate) struct OwnedMemory {
    free: Arc<Semaphore>,
    held: IntGauge,
}

impl OwnedMemory {
    /// `max` in bytes; `held` shows how much of it is taken.
    pub(crate) fn new(max: usize, held: IntGauge) -> Self {
        let free = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        Self { free, held }
    }

    /// Takes so many bytes, as soon as it is the caller's turn and they are free. Taken whole, so that nobody holds a part of what it
    /// needs and waits for the rest; in the order of asking, so that a large request is not passed over for ever.
    pub(crate) async fn take(&self, bytes: usize) -> Option<Taken> {
        let permits = u32::try_from(bytes).ok()?;
        let permit = Arc::clone(&self.free).acquire_many_owned(permits).await.ok()?;
        self.held.add(i64::from(permits));
        Some(Taken {
            permit,
            held: self.held.clone(),
        })
    }
}

/// A share of the memory, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    permit: OwnedSemaphorePermit,
    held: IntGauge,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.held
            .sub(i64::try_from(self.permit.num_permits()).unwrap_or(i64::MAX));
    }
}
