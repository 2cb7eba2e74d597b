//! How a store tells what became of a batch.

use std::fmt;

use tokio::sync::oneshot;

use super::{StoreError, StoreFuture};

/// Whom to tell what became of a batch. Told exactly once: dropped, it tells that the store has ended.
pub struct Outcome(Option<Teller>);

type Teller = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

impl Outcome {
    /// Calls the function, on the store's thread or on that of the caller; it must not wait.
    pub fn told_to(teller: impl FnOnce(Result<(), StoreError>) + Send + 'static) -> Self {
        Self(Some(Box::new(teller)))
    }

    /// An outcome and the future that it resolves.
    pub(super) fn awaited() -> (Self, StoreFuture<()>) {
        let (told, outcome) = oneshot::channel();
        let teller = Self::told_to(move |result| {
            // Whoever waited for it may be gone.
            let _ = told.send(result);
        });
        let outcome = Box::pin(async move { outcome.await.unwrap_or(Err(StoreError::Ended)) });
        (teller, outcome)
    }

    /// Tells it.
    pub fn tell(mut self, result: Result<(), StoreError>) {
        self.tell_once(result);
    }

    fn tell_once(&mut self, result: Result<(), StoreError>) {
        if let Some(teller) = self.0.take() {
            teller(result);
        }
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        self.tell_once(Err(StoreError::Ended));
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outcome")
    }
}
