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
//! Both halves run in one task, on one thread, so neither outlives the other. Either may wait for its peers without the other's waiting: a
//! slow client holds up nobody but its own upstream connection, and the bytes held for it are bounded by the two buffers, the
//! answers in the queue by number and by size.
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
mod rewriting;
mod slot;
mod splicing;
mod upstream_link;

use std::net::{SocketAddr, TcpStream as Socket};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use self::context::Context;
use self::end::End;
use self::queue::Queue;
use self::requests::Requests;
use self::responses::Responses;
use super::listeners::Target;
use super::services::Services;
use super::stream;
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
}

impl Client {
    /// Serves the connection to its end.
    pub(super) async fn serve(self, socket: Socket) {
        let record = Record::begin(&self);
        let end = match serve(&self, socket).await {
            Ok(end) | Err(end) => end,
        };
        record.end(&end);
    }
}

async fn serve(client: &Client, socket: Socket) -> Result<End, End> {
    let failed = |error: std::io::Error| End::client_failed(&error);
    let stream = TcpStream::from_std(socket).map_err(failed)?;
    let local = stream.local_addr().map_err(failed)?.ip();
    let (reader, writer) = stream::split(stream).map_err(failed)?;
    let ctx = Context::new(Arc::clone(&client.services), client.target.clone(), client.peer, local);
    let queue = Queue::new(client.services.limits.pipeline_max.max(1));
    let mut requests = Requests::new(&ctx, reader, &queue);
    let mut responses = Responses::new(&ctx, writer, &queue);
    let end = run(&ctx, &mut requests, &mut responses).await;
    responses.close().await;
    drop(responses);
    if end.reason != CloseReason::ClientClosed {
        // Whatever the outcome, the connection is over.
        let _ = timeout(LINGER, Box::pin(requests.discard())).await;
    }
    Ok(end)
}

/// Runs both halves until nothing more can be answered.
async fn run(ctx: &Context, requests: &mut Requests<'_>, responses: &mut Responses<'_>) -> End {
    let limits = &ctx.services.limits;
    let mut over = ctx.services.stop.over().begun();
    let mut requests = pin!(requests.run());
    let mut responses = pin!(responses.run());
    let mut watch = pin!(ctx.progress.watch(limits.idle_timeout));
    let requests_end = tokio::select! {
        // In this order: the queue between the halves wakes nobody.
        biased;
        end = &mut requests => end,
        Err(end) = &mut responses => return end,
        end = &mut watch => return end,
        () = &mut over => return drain_timeout(),
    };
    // A client that has closed its side, or that we stop reading from, may wait as long as its requests take.
    let grace = async {
        if requests_end.leaves_client_waiting() {
            std::future::pending().await
        } else {
            sleep(GRACE).await;
        }
    };
    tokio::select! {
        biased;
        answered = &mut responses => answered.err().unwrap_or(requests_end),
        end = &mut watch => end,
        () = &mut over => drain_timeout(),
        () = ctx.progress.nothing_more_can_come() => requests_end,
        () = grace => requests_end,
    }
}

fn drain_timeout() -> End {
    End::new(
        CloseReason::DrainTimeout,
        "the process stops, and answers were not there in time",
    )
}

/// The connection's trace in metrics and log. Dropped without an end, the task has panicked.
struct Record<'a> {
    client: &'a Client,
    ended: bool,
}

impl<'a> Record<'a> {
    fn begin(client: &'a Client) -> Self {
        let metrics = &client.services.metrics;
        metrics.connections_opened.inc();
        metrics.connections_open.inc();
        tracing::debug!(peer = %client.peer, node = client.target.node_id(), "client connected");
        Self { client, ended: false }
    }

    fn end(mut self, end: &End) {
        self.ended = true;
        let Client { peer, target, services } = self.client;
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

impl Drop for Record<'_> {
    fn drop(&mut self) {
        let metrics = &self.client.services.metrics;
        metrics.connections_open.dec();
        if !self.ended {
            metrics.connection_closed(CloseReason::Panicked);
        }
    }
}
