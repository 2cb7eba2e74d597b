//! The memory that long requests which end here may take, all connections together (`limits.owned_memory_max`).

use std::sync::Arc;

use prometheus::IntGauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One for all connections.
#[derive(Debug)]
pub(crate) struct OwnedMemory {
    free: Arc<Semaphore>,
    max: usize,
    held: IntGauge,
}

impl OwnedMemory {
    /// `max` in bytes; `held` shows how much of it is taken.
    pub(crate) fn new(max: usize, held: IntGauge) -> Self {
        let max = max.min(Semaphore::MAX_PERMITS);
        let free = Arc::new(Semaphore::new(max));
        Self { free, max, held }
    }

    /// Takes so many bytes, as soon as it is the caller's turn and they are free. Taken whole, so that nobody holds a part of what it
    /// needs and waits for the rest; in the order of asking, so that a large request is not passed over for ever. Whoever needs more
    /// than there is at all, as the longest request does with its length field, takes everything: waiting for the rest would
    /// never end, for all that come after as well.
    pub(crate) async fn take(&self, bytes: usize) -> Option<Taken> {
        let permits = u32::try_from(bytes.min(self.max)).ok()?;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_that_needs_more_than_there_is_holds_up_nobody_for_ever() {
        let held = IntGauge::new("held", "bytes").expect("a gauge");
        let memory = OwnedMemory::new(1024, held.clone());
        let taken = |bytes| timeout(Duration::from_secs(60), memory.take(bytes));
        let small = taken(1).await.expect("there is room").expect("it is open");
        taken(1028).await.expect_err("something is taken already");
        drop(small);
        let all = taken(1028).await.expect("everything is free").expect("it is open");
        assert_eq!(held.get(), 1024);
        taken(1).await.expect_err("nothing is left");
        drop(all);
        assert_eq!(held.get(), 0);
        taken(1).await.expect("there is room again").expect("it is open");
    }
}
