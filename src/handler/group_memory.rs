//! What groups keep of their members' and assignors' own words, metadata and assignments, is bounded for all groups together
//! (`limits.group_memory_max`): a member stays for as long as its session after its connection is gone, so neither the number of
//! connections nor what requests may hold bounds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use prometheus::IntGauge;
use tracing::warn;

use crate::telemetry::log_limit::LogLimit;

const TOLD_AGAIN: Duration = Duration::from_secs(30);

/// One for all groups.
#[derive(Debug)]
pub struct GroupMemory {
    max: usize,
    held: AtomicUsize,
    gauge: IntGauge,
    complaints: LogLimit,
}

impl GroupMemory {
    /// `max` in bytes; `gauge` shows how much of it is taken.
    #[must_use]
    pub fn new(max: usize, gauge: IntGauge) -> Arc<Self> {
        Arc::new(Self {
            max,
            held: AtomicUsize::new(0),
            gauge,
            complaints: LogLimit::new(TOLD_AGAIN),
        })
    }

    /// A copy that does not keep the frame alive, and counts until the last who has a part of it lets go; none if there is no room.
    pub(super) fn keep(self: &Arc<Self>, wire: &Bytes) -> Option<Bytes> {
        if wire.is_empty() {
            return Some(Bytes::new());
        }
        let share = self.take(wire.len())?;
        Some(Bytes::from_owner(Kept {
            bytes: Box::from(&**wire),
            _share: share,
        }))
    }

    fn take(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed);
        self.gauge.add(signed(bytes));
        // Given back again if it is too much.
        let share = Share {
            memory: Arc::clone(self),
            bytes,
        };
        if self.max.saturating_sub(held) >= bytes {
            return Some(share);
        }
        if self.complaints.may_say() {
            warn!(
                max = self.max,
                "a request is refused, since groups keep too much of their members' and assignors' metadata and assignments already; \
                 raise limits.group_memory_max, or find the groups whose members say so much"
            );
        }
        None
    }
}

#[derive(Debug)]
struct Share {
    memory: Arc<GroupMemory>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.bytes, Ordering::Relaxed);
        self.memory.gauge.sub(signed(self.bytes));
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[derive(Debug)]
struct Kept {
    bytes: Box<[u8]>,
    _share: Share,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_counts_until_the_last_part_of_it_is_gone() {
        let gauge = IntGauge::new("held", "bytes").expect("a gauge");
        let memory = GroupMemory::new(100, gauge.clone());
        let wire = Bytes::from(vec![7; 60]);
        let kept = memory.keep(&wire).expect("there is room");
        assert_eq!(kept, wire);
        assert!(memory.keep(&wire).is_none());
        assert_eq!(memory.keep(&Bytes::new()), Some(Bytes::new()));
        let part = kept.slice(1..2);
        drop(kept);
        assert!(memory.keep(&wire.slice(..41)).is_none());
        assert_eq!(gauge.get(), 60);
        drop(part);
        assert_eq!(gauge.get(), 0);
        assert!(memory.keep(&Bytes::from(vec![7; 100])).is_some());
    }
}
