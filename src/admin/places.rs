//! Places for connections: so many, and when all are taken a new one gets that of the oldest that waits for nothing.
//!
//! Whoever opens connections and says nothing, a broken scraper or a port scan, must not keep a health check out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// The open connections, oldest first.
#[derive(Debug)]
pub(super) struct Places {
    max: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    seats: BTreeMap<u64, Arc<Seat>>,
    last: u64,
}

/// What is known of one connection.
#[derive(Debug, Default)]
struct Seat {
    /// Whether it waits for an answer.
    busy: AtomicBool,
    evicted: CancellationToken,
}

/// One connection's place; free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    seat: Arc<Seat>,
}

/// A request of a place's connection that is being answered, until this is dropped.
#[derive(Debug)]
pub(super) struct Busy(Arc<Seat>);

impl Places {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            taken: Mutex::default(),
        })
    }

    /// A place, and whether another connection had to leave for it; `None` when all wait for answers.
    pub(super) fn take(self: &Arc<Self>) -> Option<(Place, Eviction)> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut eviction = Eviction::None;
        if taken.seats.len() >= self.max {
            let idle = taken
                .seats
                .iter()
                .find(|(_, seat)| !seat.busy.load(Ordering::Relaxed))
                .map(|(number, _)| *number)?;
            if let Some(seat) = taken.seats.remove(&idle) {
                seat.evicted.cancel();
            }
            eviction = Eviction::OldestIdle;
        }
        taken.last += 1;
        let (number, seat) = (taken.last, Arc::new(Seat::default()));
        taken.seats.insert(number, Arc::clone(&seat));
        let place = Place {
            places: Arc::clone(self),
            number,
            seat,
        };
        Some((place, eviction))
    }
}

/// What a new connection cost another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eviction {
    None,
    OldestIdle,
}

impl Place {
    /// Resolves when the connection has to leave.
    pub(super) async fn evicted(&self) {
        self.seat.evicted.cancelled().await;
    }

    /// What the connection says with that it waits for an answer.
    pub(super) fn occupant(&self) -> Occupant {
        Occupant(Arc::clone(&self.seat))
    }
}

/// The side of a place that its connection holds.
#[derive(Debug, Clone)]
pub(super) struct Occupant(Arc<Seat>);

impl Occupant {
    /// A request has come; HTTP/1 has one at a time.
    pub(super) fn begin(&self) -> Busy {
        self.0.busy.store(true, Ordering::Relaxed);
        Busy(Arc::clone(&self.0))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.seats.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_evicted(place: &Place) -> bool {
        place.seat.evicted.is_cancelled()
    }

    #[test]
    fn the_oldest_that_waits_for_nothing_makes_room() {
        let places = Places::new(3);
        let take = || places.take().expect("a place");
        let (first, _) = take();
        let (second, _) = take();
        let (third, eviction) = take();
        assert_eq!(eviction, Eviction::None);
        let answering = first.occupant().begin();
        let (fourth, eviction) = take();
        assert_eq!(eviction, Eviction::OldestIdle);
        assert!(is_evicted(&second) && !is_evicted(&first) && !is_evicted(&third));
        // It leaves only now; its place is another's already.
        drop(second);
        let others = [third.occupant().begin(), fourth.occupant().begin()];
        assert!(places.take().is_none(), "all wait for answers");
        drop(answering);
        assert_eq!(take().1, Eviction::OldestIdle);
        assert!(is_evicted(&first));
        drop(others);
    }

    #[test]
    fn a_connection_that_ends_gives_its_place_back() {
        let places = Places::new(1);
        drop(places.take());
        let (_place, eviction) = places.take().expect("a place");
        assert_eq!(eviction, Eviction::None);
    }
}
