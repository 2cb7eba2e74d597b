//! Batches on their way to the store.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;

use crate::coordinator::input::Lsn;
use crate::store::{StoreError, StoreFuture};

/// Batches under way at a time. While so many are, a shard takes nothing in: a store that cannot keep up slows the clients
/// down instead of filling memory.
const UNDER_WAY_MAX: usize = 32;

/// The batches of one incarnation that are not durable yet, oldest first. The store makes them durable in this order.
#[derive(Default)]
pub(super) struct Appends {
    under_way: VecDeque<(Lsn, StoreFuture<()>)>,
}

impl Appends {
    /// `lsn` is the last that the batch holds.
    pub(super) fn push(&mut self, lsn: Lsn, append: StoreFuture<()>) {
        self.under_way.push_back((lsn, append));
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
        poll_fn(|context| {
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
        .await
    }
}
