//! Batches on their way to the store.

use std::time::Duration;

use tracing::{info, warn};

use crate::store::ShardId;

/// Batches under way at a time; what comes while so many are is collected in the next one.
const UNDER_WAY_MAX: usize = 32;

/// A store that takes longer than this for a batch holds up every client of the shard, which is worth a line in the log.
const SLOW_AFTER: Duration = Duration::from_secs(10);

/// How many batches of one incarnation are not durable yet. The store makes them durable in order. Times are monotonic
/// milliseconds.
#[derive(Debug, Default)]
pub(super) struct Appends {
    under_way: usize,
    /// Since when the store has worked without making anything durable; `None` while it has nothing to do.
    waiting_since_ms: Option<u64>,
    told: bool,
}

impl Appends {
    /// One more is handed over.
    pub(super) fn begun(&mut self, now_ms: u64) {
        self.waiting_since_ms.get_or_insert(now_ms);
        self.under_way += 1;
    }

    /// The oldest is durable.
    pub(super) fn ended(&mut self, now_ms: u64) {
        self.under_way = self.under_way.saturating_sub(1);
        if std::mem::take(&mut self.told) {
            let since_ms = self.waiting_since_ms.unwrap_or(now_ms);
            info!(waited_ms = now_ms.saturating_sub(since_ms), "the store writes again");
        }
        self.waiting_since_ms = (self.under_way > 0).then_some(now_ms);
    }

    /// When it is to be told that the store is slow.
    pub(super) fn slow_at_ms(&self) -> Option<u64> {
        let since_ms = self.waiting_since_ms.filter(|_| !self.told)?;
        Some(since_ms.saturating_add(u64::try_from(SLOW_AFTER.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Tells it, once for each time that the store stalls.
    pub(super) fn tell_if_slow(&mut self, shard: ShardId, now_ms: u64) {
        if self.slow_at_ms().is_some_and(|at_ms| at_ms <= now_ms) {
            self.told = true;
            warn!(
                shard = shard.0,
                "the store has not finished a write for {SLOW_AFTER:?}; the clients of the shard's groups are asked to try again"
            );
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.under_way == 0
    }

    pub(super) const fn is_full(&self) -> bool {
        self.under_way >= UNDER_WAY_MAX
    }
}
