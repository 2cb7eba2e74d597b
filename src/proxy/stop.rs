//! How the proxy stops: first nothing new begins, then what is under way gets its answers, then the rest is cut off.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The two steps of a stop, and the tasks that it waits for.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    draining: CancellationToken,
    over: CancellationToken,
    tasks: TaskTracker,
}

impl Stop {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Fires when nothing new is to begin: no connection is accepted, no request is read.
    #[must_use]
    pub const fn draining(&self) -> &CancellationToken {
        &self.draining
    }

    /// Fires when the time for answers is over.
    #[must_use]
    pub const fn over(&self) -> &CancellationToken {
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
        self.draining.cancel();
        self.tasks.close();
        if tokio::time::timeout(timeout, self.tasks.wait()).await.is_ok() {
            return 0;
        }
        let late = self.tasks.len();
        self.over.cancel();
        self.tasks.wait().await;
        late
    }
}
