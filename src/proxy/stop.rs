//! How the proxy stops: first nothing new begins, then what is under way gets its answers, then the rest is cut off.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;

/// The two steps of a stop, and the tasks that it waits for.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    draining: Step,
    over: Step,
    tasks: TaskTracker,
}

impl Stop {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// When nothing new is to begin: no connection is accepted, no request is read.
    #[must_use]
    pub const fn draining(&self) -> &Step {
        &self.draining
    }

    /// When the time for answers is over.
    #[must_use]
    pub const fn over(&self) -> &Step {
        &self.over
    }

    /// The tasks of listeners and connections.
    #[must_use]
    pub const fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Stops the proxy: at once where nothing is under way, after `timeout` at the latest. Returns how many connections and
    /// listeners had to be cut off.
    pub async fn drain(&self, timeout: Duration) -> usize {
        self.draining.begin();
        self.tasks.close();
        if tokio::time::timeout(timeout, self.tasks.wait()).await.is_ok() {
            return 0;
        }
        let late = self.tasks.len();
        self.over.begin();
        self.tasks.wait().await;
        late
    }
}

/// One step of a stop.
#[derive(Debug, Clone, Default)]
pub struct Step {
    token: CancellationToken,
    begun: Arc<AtomicBool>,
}

impl Step {
    /// Resolves once the step has begun. To be polled by one task only.
    #[must_use]
    pub fn begun(&self) -> Begun {
        Begun {
            step: self.clone(),
            waiting: None,
        }
    }

    fn begin(&self) {
        self.begun.store(true, Ordering::Release);
        self.token.cancel();
    }
}

/// Waits for a step. Every connection looks at it each time it moves, and the token has a lock that all of them share: it is
/// asked once, to wake the task, and from then on the flag tells.
#[derive(Debug)]
pub struct Begun {
    step: Step,
    waiting: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl Future for Begun {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.step.begun.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        if self.waiting.is_some() {
            return Poll::Pending;
        }
        let mut waiting = Box::pin(self.step.token.clone().cancelled_owned());
        let polled = waiting.as_mut().poll(cx);
        self.waiting = Some(waiting);
        polled
    }
}
