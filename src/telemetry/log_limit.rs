//! Keeps a log line that a peer can provoke from filling the disk.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Lets one line through in each interval.
#[derive(Debug)]
pub struct LogLimit {
    origin: Instant,
    every_ms: u64,
    /// Milliseconds from the origin at which the next line may be said.
    next: AtomicU64,
}

impl LogLimit {
    #[must_use]
    pub fn new(every: Duration) -> Self {
        Self {
            origin: Instant::now(),
            every_ms: u64::try_from(every.as_millis()).unwrap_or(u64::MAX),
            next: AtomicU64::new(0),
        }
    }

    /// Whether it is time for a line; the caller then says it.
    pub fn may_say(&self) -> bool {
        let now = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let next = self.next.load(Ordering::Relaxed);
        now >= next
            && self
                .next
                .compare_exchange(
                    next,
                    now.saturating_add(self.every_ms),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_an_interval() {
        let limit = LogLimit::new(Duration::from_secs(3600));
        assert!(limit.may_say());
        assert!(!limit.may_say());
        let always = LogLimit::new(Duration::ZERO);
        assert!(always.may_say() && always.may_say());
    }
}
