//! The driver's two clocks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::coordinator::input::Now;

/// One origin for all shards, so that their times compare. Tests pause it with tokio's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    origin: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { origin: Instant::now() }
    }

    pub(super) fn now(self) -> Now {
        self.at(Instant::now())
    }

    /// Both clocks at an instant that is now.
    pub(super) fn at(self, now: Instant) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now {
            monotonic_ms: u64::try_from((now - self.origin).as_millis()).unwrap_or(u64::MAX),
            wall_ms: i64::try_from(wall.as_millis()).unwrap_or(i64::MAX),
        }
    }

    /// The instant of a monotonic time; far future where it does not fit.
    pub(super) fn instant(self, monotonic_ms: u64) -> Instant {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        self.origin
            .checked_add(Duration::from_millis(monotonic_ms))
            .unwrap_or_else(|| Instant::now() + YEAR)
    }
}
