//! Takes connections in: one accept loop a listener, within the limits, with a pause when the process is out of resources.

mod admission;

use std::io;
use std::net::{SocketAddr, TcpStream as Socket};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

pub use self::admission::Admissions;
use self::admission::Place;

use super::connection;
use super::lanes::Seat;
use super::listeners::{Bound, Target};
use super::services::Services;
use crate::telemetry::log_limit::LogLimit;

/// Pauses after an accept that failed for want of file descriptors or memory: doubled each time, up to the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_LONGEST: Duration = Duration::from_secs(1);
/// How often a listener says that it turns connections away, at most.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// Begins to accept on a bound socket; it ends when the proxy drains.
pub(crate) fn serve(bound: Bound, services: &Arc<Services>, admissions: &Arc<Admissions>) {
    let Bound { socket, target } = bound;
    let listener = match TcpListener::from_std(socket) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, node = ?target.node_id(), "cannot serve a listener");
            return;
        }
    };
    let accept = Accept {
        listener,
        target,
        services: Arc::clone(services),
        admissions: Arc::clone(admissions),
        said: LogLimit::new(SAY_EVERY),
    };
    services.stop.tasks().spawn(accept.run());
}

struct Accept {
    listener: TcpListener,
    target: Target,
    services: Arc<Services>,
    admissions: Arc<Admissions>,
    said: LogLimit,
}

impl Accept {
    async fn run(self) {
        let mut pause = PAUSE_FIRST;
        let mut draining = self.services.stop.draining().begun();
        loop {
            let accepted = tokio::select! {
                () = &mut draining => return,
                accepted = self.listener.accept() => accepted,
            };
            // The connection's thread has a reactor of its own.
            match accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer))) {
                Ok((socket, peer)) => {
                    pause = PAUSE_FIRST;
                    self.take_in(socket, peer);
                }
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    self.services.metrics.accept_failures.inc();
                    if self.said.may_say() {
                        tracing::warn!(%error, node = ?self.target.node_id(), "cannot accept connections; clients wait");
                    }
                    tokio::select! {
                        () = &mut draining => return,
                        () = tokio::time::sleep(pause) => {}
                    }
                    pause = (pause * 2).min(PAUSE_LONGEST);
                }
            }
        }
    }

    fn take_in(&self, socket: Socket, peer: SocketAddr) {
        let place = match self.admissions.admit(peer.ip()) {
            Ok(place) => place,
            Err(limit) => {
                self.services.metrics.connections_refused.inc();
                if self.said.may_say() {
                    tracing::warn!(%peer, %limit, "connection turned away");
                }
                return;
            }
        };
        let client = connection::Client {
            peer,
            target: self.target.clone(),
            services: Arc::clone(&self.services),
        };
        let seat = self.services.lanes.seat();
        let thread = seat.thread();
        let served = serve_seated(client, socket, place, seat);
        self.services.stop.tasks().spawn_on(served, &thread);
    }
}

/// The whole of a connection's task.
async fn serve_seated(client: connection::Client, socket: Socket, _place: Place, _seat: Seat) {
    client.serve(socket).await;
}

/// Errors that the connection brought along (accept(2)): the next one may be fine.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::TimedOut
            | io::ErrorKind::PermissionDenied
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn size_of_future<F: Future<Output = ()>>(_: fn(connection::Client, Socket, Place, Seat) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn what_every_connection_has_from_its_first_to_its_last_moment_is_small() {
        let size = size_of_future(serve_seated);
        assert!(size <= 5 * 1024, "{size} bytes; box what is seldom needed");
    }
}
