//! The request half's side of the one upstream connection: dialled when it is first needed, and again if the upstream has closed
//! it while nothing was under way (brokers do so after `connections.max.idle.ms`, and a group member's connection carries
//! little that goes up). A connection that a user has authenticated on is not replaced behind the user's back.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::context::Context;
use super::end::End;
use super::owned::Gathered;
use super::progress::write_all;
use super::queue::Queue;
use super::slot::{Injected, Slot};
use crate::config::HostPort;
use crate::coordinator::request::Text;
use crate::handler::ClientUpstream;
use crate::proxy::listeners::Target;
use crate::proxy::stream::{self, Behind, ReadSide, WriteSide};
use crate::telemetry::close_reason::CloseReason;
use crate::upstream::UpstreamError;
use crate::wire::frame::{LENGTH_SIZE, request_head};

/// A node is tried so many times before its client is told by closing; clients come back by themselves.
const NODE_TRIES: usize = 2;
/// Under way while a question of ours is the next to be answered: it, and the client's request that it is asked for.
const ASKING: usize = 2;
const PAUSE: Duration = Duration::from_millis(100);

/// Bootstrap connections begin the list at different places.
static NEXT_BOOTSTRAP: AtomicUsize = AtomicUsize::new(0);

/// What a request that goes up does to the identity of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Needs the user that has authenticated, if one has.
    Request,
    /// Begins to authenticate, which a new connection takes as well.
    Handshake,
}

enum Writer {
    /// Not needed so far.
    None,
    Open(WriteSide),
    /// The upstream has closed the connection.
    Lost,
}

/// The way up, and the queue of what comes back.
pub(super) struct UpstreamLink<'a> {
    ctx: &'a Context,
    writer: Writer,
    queue: &'a Queue,
    /// The client's id, under which requests of ours go.
    pub(super) client_id: Option<Text>,
    /// How long requests of ours have waited for their answers, since somebody last asked.
    pub(super) waited: Duration,
    next_correlation_id: i32,
    /// A request of ours found the connection gone that the client's user had authenticated on.
    user_lost: bool,
    /// A request of ours was not answered in time: its place among the answers is still taken.
    unanswered: bool,
    /// The client's request that is worked on here, for as long as it may have to go up.
    pub(super) gathered: Option<Gathered>,
}

impl<'a> UpstreamLink<'a> {
    pub(super) const fn new(ctx: &'a Context, queue: &'a Queue) -> Self {
        Self {
            ctx,
            writer: Writer::None,
            queue,
            client_id: None,
            waited: Duration::ZERO,
            next_correlation_id: 0,
            user_lost: false,
            unanswered: false,
            gathered: None,
        }
    }

    /// Makes sure that there is an upstream connection.
    pub(super) async fn connect(&mut self, purpose: Purpose) -> Result<(), End> {
        self.let_go_if_closed();
        match self.writer {
            Writer::Open(_) => return Ok(()),
            Writer::Lost if purpose == Purpose::Request && self.ctx.sasl().is_bound_to_upstream() => {
                self.user_lost = true;
                return Err(user_lost());
            }
            Writer::None | Writer::Lost => {}
        }
        let (reader, writer) = Box::pin(self.dial()).await?;
        self.ctx.progress.set_upstream_open(true);
        self.push(Slot::Upstream(reader)).await;
        self.writer = Writer::Open(writer);
        Ok(())
    }

    /// Whether what was asked in the user's name could be asked at all. If not, it never can be again on this connection, and
    /// only closing it makes every client come back and authenticate.
    pub(super) fn check_user(&self) -> Result<(), End> {
        if self.user_lost { Err(user_lost()) } else { Ok(()) }
    }

    /// Whether what was asked was answered, in time or with an error. If not, nothing that is queued later could leave before
    /// that answer comes, so the connection ends with the answers that are there, and the client comes again.
    pub(super) fn check_answered(&self) -> Result<(), End> {
        if !self.unanswered {
            return Ok(());
        }
        self.ctx.progress.cut_off();
        let timeout = self.ctx.services.upstream.request_timeout;
        Err(End::new(
            CloseReason::UpstreamSilent,
            format!(
                "{} did not answer a question on the client's behalf within {timeout:?}",
                self.address()
            ),
        ))
    }

    /// Closes our side of a connection that the upstream has closed.
    pub(super) fn let_go_if_closed(&mut self) {
        if self.is_open() && !self.ctx.progress.upstream_open() {
            self.writer = Writer::Lost;
        }
    }

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.writer, Writer::Open(_))
    }

    async fn dial(&self) -> Result<(ReadSide, WriteSide), End> {
        let bootstrap = &self.ctx.services.upstream.bootstrap;
        let tries = match self.ctx.target {
            Target::Bootstrap => bootstrap.len(),
            Target::Node(_) => NODE_TRIES,
        };
        let first = NEXT_BOOTSTRAP.fetch_add(1, Ordering::Relaxed);
        let mut failures = Vec::with_capacity(tries);
        for number in 0..tries {
            let address = match &self.ctx.target {
                Target::Bootstrap => bootstrap[first.wrapping_add(number) % bootstrap.len()].clone(),
                Target::Node(node) => (*node.upstream()).clone(),
            };
            match stream::dial(&address, self.ctx.services.upstream.connect_timeout).await {
                Ok(halves) => return Ok(halves),
                Err(error) => failures.push(self.note_failure(&address, &error)),
            }
            if number + 1 < tries {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Err(End::new(CloseReason::UpstreamUnreachable, failures.join("; ")))
    }

    fn note_failure(&self, address: &HostPort, error: &io::Error) -> String {
        // The node may have moved: the next try, or the client's next connection, should know.
        self.ctx.services.cluster.request_refresh();
        format!("cannot reach {address}: {error}")
    }

    /// Queues an answer to come; waits while too many are under way.
    pub(super) async fn push(&self, slot: Slot) {
        let counts = !matches!(slot, Slot::Upstream(_));
        if counts {
            self.ctx.progress.begun();
        }
        self.queue.push(slot).await;
    }

    /// Whether an answer can be queued without waiting.
    pub(super) fn has_room(&self) -> bool {
        self.queue.has_room()
    }

    /// Writes to the connection that [`Self::connect`] has made.
    pub(super) async fn write(&self, bytes: &[u8], behind: Behind) -> Result<(), End> {
        write_all(self.socket()?, bytes, behind, &self.ctx.progress)
            .await
            .map_err(|error| End::upstream_failed(&error))
    }

    /// The socket of the connection that [`Self::connect`] has made.
    pub(super) fn socket(&self) -> Result<&TcpStream, End> {
        match &self.writer {
            Writer::Open(writer) => Ok(writer.as_ref()),
            Writer::None | Writer::Lost => Err(not_open()),
        }
    }

    /// No more answers will be queued. The upstream connection stays open for those that are.
    pub(super) fn end(&self) {
        self.queue.end();
    }

    fn address(&self) -> String {
        match &self.ctx.target {
            Target::Bootstrap => "the upstream".to_owned(),
            Target::Node(node) => node.upstream().to_string(),
        }
    }

    fn request(&mut self, api_key: i16, version: i16, body: &[u8]) -> Result<(i32, BytesMut), UpstreamError> {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id = correlation_id.wrapping_add(1);
        let mut frame = BytesMut::with_capacity(LENGTH_SIZE + 64 + body.len());
        frame.put_i32(0);
        let malformed = |reason: String| UpstreamError::Malformed {
            address: self.address(),
            reason,
        };
        request_head(api_key, version, correlation_id, self.client_id.as_deref(), &mut frame)
            .map_err(|error| malformed(error.to_string()))?;
        frame.put_slice(body);
        let len = i32::try_from(frame.len() - LENGTH_SIZE).map_err(|error| malformed(error.to_string()))?;
        frame[..LENGTH_SIZE].copy_from_slice(&len.to_be_bytes());
        Ok((correlation_id, frame))
    }

    async fn ask(&mut self, api_key: i16, version: i16, body: &[u8]) -> Result<Bytes, UpstreamError> {
        let (correlation_id, frame) = self.request(api_key, version, body)?;
        let (reply, mut answer) = oneshot::channel();
        let sent = async {
            self.connect(Purpose::Request).await?;
            let injected = Injected {
                api_key,
                api_version: version,
                correlation_id,
                reply,
            };
            self.push(Slot::Injected(injected)).await;
            self.write(&frame, Behind::Nothing).await
        };
        if let Err(end) = sent.await {
            let reason = end.detail.into_owned();
            return Err(UpstreamError::Unreachable {
                address: self.address(),
                reason,
            });
        }
        let timeout = self.ctx.services.upstream.request_timeout;
        loop {
            match tokio::time::timeout(timeout, &mut answer).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(_)) => {
                    return Err(UpstreamError::Closed {
                        address: self.address(),
                    });
                }
                // It is not the question that keeps the upstream busy.
                Err(_) if self.ctx.progress.under_way() > ASKING => {}
                Err(_) => {
                    self.unanswered = true;
                    return Err(UpstreamError::Timeout {
                        address: self.address(),
                        timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
                    });
                }
            }
        }
    }
}

fn user_lost() -> End {
    End::upstream_closed("the upstream closed the connection that the client had authenticated on")
}

fn not_open() -> End {
    End::upstream_closed("the upstream closed the connection")
}

impl ClientUpstream for UpstreamLink<'_> {
    fn let_go_of_request(&mut self) {
        self.gathered = None;
    }

    async fn call(&mut self, api_key: i16, version: i16, body: Bytes) -> Result<Bytes, UpstreamError> {
        let asked = Instant::now();
        let answer = self.ask(api_key, version, &body).await;
        self.waited += asked.elapsed();
        answer
    }
}
