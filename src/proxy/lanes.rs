//! The threads that serve connections: one for each processor, each with a reactor of its own. A connection stays on its thread.
//!
//! On a runtime that shares all tasks out, a thread that finds several sockets ready wakes another one to share the work with. The
//! waking costs more than to relay a small request or to answer a heartbeat, and most of the time both threads had work.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The lanes of the process. Dropping this ends the threads.
#[derive(Debug)]
pub struct Lanes {
    first: Lane,
    others: Vec<Lane>,
    _end: DropGuard,
}

#[derive(Debug)]
struct Lane {
    runtime: Handle,
    /// That are served here now.
    connections: Arc<AtomicUsize>,
}

impl Lanes {
    /// Begins a thread for each processor.
    ///
    /// # Errors
    /// When the system has no more threads or file descriptors.
    pub fn start() -> io::Result<Self> {
        let end = CancellationToken::new();
        let count = thread::available_parallelism().map_or(1, NonZero::get);
        let others = (1..count).map(|number| Lane::start(number, end.clone()));
        Ok(Self {
            others: others.collect::<io::Result<_>>()?,
            first: Lane::start(0, end.clone())?,
            _end: end.drop_guard(),
        })
    }

    /// A seat for a connection where there are the fewest. The connection is to be spawned on the seat's thread and to keep the seat;
    /// wrapping its future here would double what every connection holds, since a future that awaits another one moves it.
    pub(crate) fn seat(&self) -> Seat {
        let lane = self.emptiest();
        lane.connections.fetch_add(1, Ordering::Relaxed);
        Seat {
            thread: lane.runtime.clone(),
            connections: Arc::clone(&lane.connections),
        }
    }

    /// Begins a task on each thread, which ends with the thread at the latest.
    pub fn spawn_on_each<F: Future<Output = ()> + Send + 'static>(&self, task: impl Fn() -> F) {
        for lane in self.others.iter().chain([&self.first]) {
            lane.runtime.spawn(task());
        }
    }

    fn emptiest(&self) -> &Lane {
        let load = |lane: &Lane| lane.connections.load(Ordering::Relaxed);
        let fewer = |best, lane| if load(lane) < load(best) { lane } else { best };
        self.others.iter().fold(&self.first, fewer)
    }
}

impl Lane {
    fn start(number: usize, end: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name(format!("convoke-lane-{number}"))
            .spawn(move || runtime.block_on(end.cancelled_owned()))?;
        Ok(Self {
            runtime: handle,
            connections: Arc::default(),
        })
    }
}

/// A connection's place in a lane: counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    thread: Handle,
    connections: Arc<AtomicUsize>,
}

impl Seat {
    /// Where the connection is to run.
    pub(crate) fn thread(&self) -> Handle {
        self.thread.clone()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn connections_are_spread_over_threads_of_their_own() {
        let lanes = Lanes::start().expect("threads");
        let count = thread::available_parallelism().map_or(1, NonZero::get);
        let (sender, mut names) = mpsc::channel(2 * count);
        for _ in 0..2 * count {
            let sender = sender.clone();
            let seat = lanes.seat();
            seat.thread().spawn(async move {
                let name = thread::current().name().map(str::to_owned);
                sender.send((name, seat)).await.expect("the test listens");
            });
        }
        let mut served = BTreeMap::<String, Vec<Seat>>::new();
        for _ in 0..2 * count {
            let (name, seat) = names.recv().await.expect("every task sends");
            served.entry(name.expect("lanes have names")).or_default().push(seat);
        }
        assert_eq!(served.len(), count);
        assert!(served.values().all(|connections| connections.len() == 2), "{served:?}");
    }

    #[test]
    fn a_seat_is_free_again_when_its_connection_has_ended() {
        let lanes = Lanes::start().expect("threads");
        let taken = || {
            let lanes = lanes.others.iter().chain([&lanes.first]);
            lanes
                .map(|lane| lane.connections.load(Ordering::Relaxed))
                .sum::<usize>()
        };
        let seat = lanes.seat();
        assert_eq!(taken(), 1);
        drop(seat);
        assert_eq!(taken(), 0);
    }
}
