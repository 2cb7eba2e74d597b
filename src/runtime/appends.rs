//! Batches on their way to the store.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use crate::coordinator::input::Lsn;
use crate::store::{ShardId, StoreError, StoreFuture};

/// Batches under way at a time. While so many are, a shard takes nothing in: a store that cannot keep up slows the clients
/// down instead of filling memory.
const UNDER_WAY_MAX: usize = 32;

/// A store that takes longer than this for a batch holds up every client of the shard, which is worth a line in the log.
const SLOW_AFTER: Duration = Duration::from_secs(10);

/// The batches of one incarnation that are not durable yet, oldest first. The store makes them durable in this order.
#[derive(Default)]
pub(super) struct Appends {
    under_way: VecDeque<(Lsn, StoreFuture<()>)>,
    /// Since when the store has worked without making anything durable; `None` while it has nothing to do.
    waiting_since: Option<Instant>,
    told: bool,
}

impl Appends {
    /// `lsn` is the last that the batch holds.
    pub(super) fn push(&mut self, lsn: Lsn, append: StoreFuture<()>) {
        self.waiting_since.get_or_insert_with(Instant::now);
        self.under_way.push_back((lsn, append));
    }

    /// When it is to be told that the store is slow.
    pub(super) fn slow_at(&self) -> Option<Instant> {
        let since = self.waiting_since.filter(|_| !self.told)?;
        Some(since + SLOW_AFTER)
    }

    /// Tells it, once for each time that the store stalls.
    pub(super) fn tell_if_slow(&mut self, shard: ShardId) {
        if self.slow_at().is_some_and(|at| at <= Instant::now()) {
            self.told = true;
            warn!(
                shard = shard.0,
                "the store has not finished a write for {SLOW_AFTER:?}; the clients of the shard's groups wait for it"
            );
        }
    }

    fn progressed(&mut self) {
        let waited = self.waiting_since.map(|since| since.elapsed()).unwrap_or_default();
        if std::mem::take(&mut self.told) {
            info!(waited_ms = waited.as_millis(), "the store writes again");
        }
        self.waiting_since = (!self.under_way.is_empty()).then(Instant::now);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.under_way.len() >= UNDER_WAY_MAX
    }

    /// Up to where everything is durable, as soon as that has grown; pending while nothing is under way. Dropping the future
    /// loses nothing.
    ///
    /// # Errors
    /// The store's, of the oldest batch that failed; what comes after it cannot become durable either.
    pub(super) async fn durable(&mut self) -> Result<Lsn, StoreError> {
        let durable = poll_fn(|context| {
            let mut done = None;
            while let Some((lsn, append)) = self.under_way.front_mut() {
                match append.as_mut().poll(context) {
                    Poll::Pending => break,
                    Poll::Ready(Ok(())) => {
                        done = Some(*lsn);
                        self.under_way.pop_front();
                    }
                    // What did become durable before it is told first; the failed one stays and is told the next time.
                    Poll::Ready(Err(error)) => {
                        let Some(lsn) = done else {
                            return Poll::Ready(Err(error));
                        };
                        *append = Box::pin(std::future::ready(Err(error)));
                        return Poll::Ready(Ok(lsn));
                    }
                }
            }
            done.map_or(Poll::Pending, |lsn| Poll::Ready(Ok(lsn)))
        })
        .await;
        self.progressed();
        durable
    }
}
