//! One client connection and the one upstream connection behind it.
//!
//! ```text
//!            ┌──────── Requests ────────┐  frames, as they are   ┌──────────┐
//!  client ──▶│ read, route, queue, send │───────────────────────▶│ upstream │
//!            │       ▲ handler          │                        │   node   │
//!            └───────┼──────────────────┘                        └────┬─────┘
//!                    │ Slot: Local, Forwarded, Injected … (in order)  │
//!            ┌───────▼──────────────────┐                             │
//!  client ◀──│ write   ◀── Responses    │◀────────────────────────────┘
//!            └──────────────────────────┘
//! ```
//! Both halves run in one task, so neither outlives the other. Either may wait for its peers without the other's waiting: a
//! slow client holds up nobody but its own upstream connection, and the bytes held for it are bounded by the two buffers, the
//! answers in the queue by number and by size.
//!
//! A connection that turns out to carry records moves to a lane when nothing is under way; there both halves begin anew.
//!
//! A request that cannot be served ends the request half only: what was asked before is still answered, as by a broker, which
//! takes one request at a time. Then the connection closes.

mod buffer;
mod context;
mod end;
mod owned;
mod progress;
mod queue;
mod requests;
mod responses;
mod resting;
mod rewriting;
mod slot;
mod splicing;
mod upstream_link;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use self::buffer::Buffer;
use self::context::Context;
use self::end::End;
use self::queue::Queue;
use self::requests::{Home, Requests};
use self::responses::Responses;
use self::resting::Resting;
use self::upstream_link::Upstream;
use super::admission::Place;
use super::lanes::Seat;
use super::listeners::Target;
use super::services::Services;
use crate::telemetry::close_reason::CloseReason;

/// For how long answers are still waited for after a request that ended the connection.
const GRACE: Duration = Duration::from_secs(10);
/// For how long a client may go on sending after its last answer before the connection is reset under it.
const LINGER: Duration = Duration::from_millis(500);

/// A client that has connected.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) peer: SocketAddr,
    pub(super) target: Target,
    pub(super) services: Arc<Services>,
    /// Among the connections that are let in.
    pub(super) _place: Place,
}

impl Client {
    /// Serves the connection, here and perhaps later in a lane, to its end.
    pub(super) async fn serve(self, stream: TcpStream) {
        let record = Record::begin(self);
        let connection = match Connection::begin(&record.client, stream) {
            Ok(connection) => connection,
            Err(error) => return record.end(&End::client_failed(&error)),
        };
        match connection.serve(Home::Shared).await {
            Err(end) => record.end(&end),
            Ok((seat, connection)) => {
                let tasks = record.client.services.stop.tasks().clone();
                seat.spawn(&tasks, go_on(connection, record));
            }
        }
    }
}

/// Serves a connection in its lane, to its end.
async fn go_on(connection: Connection, record: Record) {
    if let Err(end) = connection.serve(Home::Lane).await {
        record.end(&end);
    }
}

/// A connection that rests.
#[derive(Debug)]
struct Connection {
    ctx: Context,
    resting: Resting,
}

impl Connection {
    fn begin(client: &Client, stream: TcpStream) -> io::Result<Self> {
        let local = stream.local_addr()?.ip();
        let ctx = Context::new(Arc::clone(&client.services), client.target.clone(), client.peer, local);
        let input = Buffer::new(client.services.limits.buffer);
        let resting = Resting {
            client: stream.into_std()?,
            upstream: Upstream::None,
            input,
        };
        Ok(Self { ctx, resting })
    }

    /// Serves it until it ends, or until it is to go on in a lane.
    async fn serve(self, home: Home) -> Result<(Seat, Self), End> {
        let Self { ctx, resting } = self;
        let failed = |error: io::Error| End::client_failed(&error);
        let queue = Queue::new(ctx.services.limits.pipeline_max.max(1));
        let (mut requests, mut responses) = resting.get_up(&ctx, &queue).map_err(failed)?;
        let end = match run(&ctx, &mut requests, &mut responses, home).await {
            Ok(seat) => {
                let resting = Resting::lie_down(requests, responses).map_err(failed)?;
                return Ok((seat, Self { ctx, resting }));
            }
            Err(end) => end,
        };
        responses.close().await;
        drop(responses);
        if end.reason != CloseReason::ClientClosed {
            // Whatever the outcome, the connection is over.
            let _ = timeout(LINGER, Box::pin(requests.discard())).await;
        }
        Err(end)
    }
}

/// Runs both halves until nothing more can be answered, or until the connection is to go on in a lane.
async fn run(
    ctx: &Context,
    requests: &mut Requests<'_>,
    responses: &mut Responses<'_>,
    home: Home,
) -> Result<Seat, End> {
    let limits = &ctx.services.limits;
    let mut over = ctx.services.stop.over().begun();
    let mut requests = pin!(requests.run(home));
    let mut responses = pin!(responses.run());
    let mut watch = pin!(ctx.progress.watch(limits.idle_timeout));
    let requests_end = tokio::select! {
        // In this order: the queue between the halves wakes nobody.
        biased;
        served = &mut requests => match served {
            Ok(seat) => return Ok(seat),
            Err(end) => end,
        },
        Err(end) = &mut responses => return Err(end),
        end = &mut watch => return Err(end),
        () = &mut over => return Err(drain_timeout()),
    };
    // A client that has closed its side, or that we stop reading from, may wait as long as its requests take.
    let grace = async {
        if requests_end.leaves_client_waiting() {
            std::future::pending().await
        } else {
            sleep(GRACE).await;
        }
    };
    Err(tokio::select! {
        biased;
        answered = &mut responses => answered.err().unwrap_or(requests_end),
        end = &mut watch => end,
        () = &mut over => drain_timeout(),
        () = ctx.progress.nothing_more_can_come() => requests_end,
        () = grace => requests_end,
    })
}

fn drain_timeout() -> End {
    End::new(
        CloseReason::DrainTimeout,
        "the process stops, and answers were not there in time",
    )
}

/// The connection's trace in metrics and log. Dropped without an end, the task has panicked.
#[derive(Debug)]
struct Record {
    client: Client,
    ended: bool,
}

impl Record {
    fn begin(client: Client) -> Self {
        let metrics = &client.services.metrics;
        metrics.connections_opened.inc();
        metrics.connections_open.inc();
        tracing::debug!(peer = %client.peer, node = client.target.node_id(), "client connected");
        Self { client, ended: false }
    }

    fn end(mut self, end: &End) {
        self.ended = true;
        let Client {
            peer, target, services, ..
        } = &self.client;
        services.metrics.connection_closed(end.reason);
        let node = target.node_id();
        let (reason, detail) = (end.reason, &*end.detail);
        if reason.needs_attention() && services.may_complain(reason) {
            tracing::warn!(%peer, node, %reason, detail, "client connection closed");
        } else {
            tracing::debug!(%peer, node, %reason, detail, "client connection closed");
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let metrics = &self.client.services.metrics;
        metrics.connections_open.dec();
        if !self.ended {
            metrics.connection_closed(CloseReason::Panicked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn size_of_future<F: Future<Output = ()>>(_: fn(Client, TcpStream) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn what_every_connection_has_from_its_first_to_its_last_moment_is_small() {
        let size = size_of_future(Client::serve);
        assert!(size <= 5 * 1024, "{size} bytes; box what is seldom needed");
    }
}
