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
use tokio_util::task::TaskTracker;

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

    /// Serves a connection where there are the fewest.
    pub(crate) fn spawn(&self, tasks: &TaskTracker, connection: impl Future<Output = ()> + Send + 'static) {
        let lane = self.emptiest();
        let seat = Seat::take(&lane.connections);
        let seated = async move {
            let _seat = seat;
            connection.await;
        };
        tasks.spawn_on(seated, &lane.runtime);
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

/// Counts a connection for as long as it is served.
struct Seat(Arc<AtomicUsize>);

impl Seat {
    fn take(connections: &Arc<AtomicUsize>) -> Self {
        connections.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(connections))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::future::pending;

    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn connections_are_spread_over_threads_of_their_own() {
        let lanes = Lanes::start().expect("threads");
        let count = thread::available_parallelism().map_or(1, NonZero::get);
        let (sender, mut names) = mpsc::channel(2 * count);
        for _ in 0..2 * count {
            let sender = sender.clone();
            lanes.spawn(&TaskTracker::new(), async move {
                let name = thread::current().name().map(str::to_owned);
                sender.send(name).await.expect("the test listens");
                pending::<()>().await;
            });
        }
        let mut served = BTreeMap::<String, usize>::new();
        for _ in 0..2 * count {
            let name = names.recv().await.flatten().expect("lanes have names");
            *served.entry(name).or_default() += 1;
        }
        assert_eq!(served.len(), count);
        assert!(served.values().all(|connections| *connections == 2), "{served:?}");
    }

    #[test]
    fn a_place_is_free_again_when_its_connection_has_ended() {
        let connections = Arc::default();
        drop(Seat::take(&connections));
        assert_eq!(connections.load(Ordering::Relaxed), 0);
    }
}
