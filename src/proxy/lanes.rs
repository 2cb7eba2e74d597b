//! Threads for the connections that carry records, each with a reactor of its own, on which a connection stays to its end.
//!
//! On the runtime that all tasks share, a thread that finds several sockets ready wakes another one to share the work with. That
//! keeps a coordinator's answers prompt, but the waking costs more than to relay a small request, and a relayed request has
//! nothing to share. A group's requests, on the other hand, would have to wake the thread of their shard. So connections begin
//! on the shared runtime, and the first request that produces or fetches takes its connection over here.

use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// The lanes of the process, one for each processor, begun when first needed.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    begun: OnceLock<Begun>,
}

#[derive(Debug)]
struct Begun {
    lanes: Vec<Lane>,
    /// Ends the threads.
    _end: DropGuard,
}

/// A thread that serves connections.
#[derive(Debug, Clone)]
struct Lane {
    handle: Handle,
    connections: Arc<AtomicUsize>,
}

/// A connection's place in a lane, kept while it is served there.
#[derive(Debug)]
pub(crate) struct Seat {
    lane: Lane,
}

impl Lanes {
    /// A place in the lane that has the fewest connections; none if no thread could be had.
    pub(crate) fn seat(&self) -> Option<Seat> {
        let begun = self.begun.get_or_init(Begun::begin);
        let emptiest = begun
            .lanes
            .iter()
            .min_by_key(|lane| lane.connections.load(Ordering::Relaxed))?;
        Some(Seat::take(emptiest.clone()))
    }
}

impl Begun {
    fn begin() -> Self {
        let end = CancellationToken::new();
        let mut lanes = Vec::new();
        for number in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            match Lane::begin(number, end.clone()) {
                Ok(lane) => lanes.push(lane),
                Err(error) => {
                    tracing::error!(%error, lanes = lanes.len(), "cannot have a thread for each processor; records are relayed by fewer");
                    break;
                }
            }
        }
        Self {
            lanes,
            _end: end.drop_guard(),
        }
    }
}

impl Lane {
    fn begin(number: usize, end: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name(format!("convoke-lane-{number}"))
            .spawn(move || runtime.block_on(end.cancelled_owned()))?;
        Ok(Self {
            handle,
            connections: Arc::default(),
        })
    }
}

impl Seat {
    fn take(lane: Lane) -> Self {
        lane.connections.fetch_add(1, Ordering::Relaxed);
        Self { lane }
    }

    /// Has the lane run a task; the place is free again when that ends.
    pub(crate) fn spawn(self, tasks: &TaskTracker, task: impl Future<Output = ()> + Send + 'static) {
        let handle = self.lane.handle.clone();
        let seated = async move {
            let _seat = self;
            task.await;
        };
        tasks.spawn_on(seated, &handle);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.lane.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_spread_and_a_place_is_free_again_when_it_is_dropped() {
        let lanes = Lanes::default();
        let count = thread::available_parallelism().map_or(1, NonZero::get);
        let mut seats: Vec<Seat> = (0..2 * count).map(|_| lanes.seat().expect("a thread")).collect();
        let load = |seat: &Seat| seat.lane.connections.load(Ordering::Relaxed);
        assert!(seats.iter().all(|seat| load(seat) == 2));
        let freed = seats.swap_remove(1);
        let lane = freed.lane.clone();
        drop(freed);
        let again = lanes.seat().expect("a thread");
        assert!(Arc::ptr_eq(&again.lane.connections, &lane.connections));
    }

    #[tokio::test]
    async fn a_task_runs_on_a_thread_of_its_lane() {
        let lanes = Lanes::default();
        let seat = lanes.seat().expect("a thread");
        let (sender, name) = tokio::sync::oneshot::channel();
        seat.spawn(&TaskTracker::new(), async move {
            let _ = sender.send(thread::current().name().map(str::to_owned));
        });
        let name = name.await.expect("it runs").expect("lanes have names");
        assert!(name.starts_with("convoke-lane-"), "{name}");
    }
}
