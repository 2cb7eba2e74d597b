//! The half of a connection that reads requests: it sends them up or answers them here, one after the other.
//!
//! Whatever is to be answered is queued first and sent after, so an answer cannot come before its place in the queue. Complete
//! frames that are in the buffer already are written together; what is longer than the buffer is copied through it, or moved by the
//! kernel if much is missing.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncReadExt;

use super::buffer::Buffer;
use super::context::Context;
use super::end::End;
use super::queue::Queue;
use super::slot::{Forwarded, Slot};
use super::splicing::{SPLICE_MIN, Splice, SpliceError, Towards};
use super::upstream_link::{Purpose, UpstreamLink};
use crate::handler::{self, Decisions};
use crate::proxy::sasl::{self, NextFrame, Sent};
use crate::proxy::stop::Begun;
use crate::proxy::stream::{Behind, ReadSide};
use crate::telemetry::close_reason::CloseReason;
use crate::wire::api::{self, API_VERSIONS, PRODUCE, Route, SASL_AUTHENTICATE, SASL_HANDSHAKE};
use crate::wire::codec::WireError;
use crate::wire::frame::{LENGTH_SIZE, Parsed, RequestHead, frame_len, produce_acks};

/// A TLS record begins with its type, handshake, and the version 3.x; as a frame length that is 352 MiB.
const TLS_HANDSHAKE: [u8; 2] = [0x16, 0x03];

/// A request whose head is in the buffer.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) head: RequestHead,
    /// Of the whole frame, the length field included.
    pub(super) size: usize,
    pub(super) received: Instant,
    answer: Expected,
    sasl: Option<Box<Sent>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Answer,
    /// Produce with acks=0.
    Nothing,
}

pub(super) struct Requests<'a> {
    pub(super) ctx: &'a Context,
    pub(super) upstream: UpstreamLink<'a>,
    /// What the upstream said lately that the client's user may do.
    pub(super) decisions: Decisions,
    reader: ReadSide,
    input: Buffer,
    /// Bytes at the front of the buffer that belong to the upstream and are not written yet.
    accepted: usize,
    /// A SaslHandshake of version 0 was sent: the next frames may be tokens.
    bare_sasl: bool,
    anything_read: bool,
    draining: Begun,
}

impl<'a> Requests<'a> {
    pub(super) fn new(ctx: &'a Context, reader: ReadSide, queue: &'a Queue) -> Self {
        Self {
            ctx,
            upstream: UpstreamLink::new(ctx, queue),
            decisions: Decisions::default(),
            reader,
            input: Buffer::new(ctx.services.limits.buffer),
            accepted: 0,
            bare_sasl: false,
            anything_read: false,
            draining: ctx.services.stop.draining().begun(),
        }
    }

    /// Serves requests until none can be read any more, and says why. Answers that are queued by then are still to be sent.
    pub(super) async fn run(&mut self) -> End {
        let Err(end) = self.serve().await;
        self.upstream.end();
        self.ctx.progress.requests_ended();
        end
    }

    async fn serve(&mut self) -> Result<Infallible, End> {
        loop {
            if self.bare_sasl && self.token_is_next().await? {
                Box::pin(self.forward_token()).await?;
            } else {
                let request = self.next_request().await?;
                self.route(request).await?;
            }
        }
    }

    async fn route(&mut self, request: Request) -> Result<(), End> {
        let RequestHead {
            api_key, api_version, ..
        } = request.head;
        let metrics = self.ctx.services.metrics.api(api_key);
        metrics.requests.inc();
        metrics.request_bytes.inc_by(request.size as u64);
        if self.ctx.services.cluster.is_other_cluster() {
            let detail = "another cluster answers at the upstream's addresses than the one that the state belongs to";
            return Err(End::new(CloseReason::OtherCluster, detail));
        }
        if api_key == API_VERSIONS {
            return Box::pin(self.answer_api_versions(request)).await;
        }
        let api = api::find(api_key).ok_or_else(|| End::client_misbehaved(&WireError::UnknownApi(api_key)))?;
        if !api.has_version(api_version) {
            let error = WireError::UnsupportedVersion {
                api: api.name,
                version: api_version,
            };
            return Err(End::client_misbehaved(&error));
        }
        match api.route {
            Route::Own => self.own(request).await,
            Route::Split if self.is_looked_into(&request) => self.own(request).await,
            Route::Forward | Route::Rewrite | Route::Split => self.forward(request).await,
            Route::Refuse => Err(End::new(
                CloseReason::UnsupportedApi,
                format!("{} is not offered", api.name),
            )),
        }
    }

    /// Whether the request may name what is answered here. One that is too long to be held goes up, where that is refused.
    fn is_looked_into(&self, request: &Request) -> bool {
        let fits = request.size - LENGTH_SIZE <= self.ctx.services.limits.owned_request_max;
        fits && handler::splits(&request.head, &self.ctx.services.cluster.snapshot())
    }

    /// The next request, once enough of it is there to route it.
    async fn next_request(&mut self) -> Result<Request, End> {
        loop {
            if let Some(request) = self.peek_request()? {
                return Ok(request);
            }
            self.read_more().await?;
        }
    }

    fn peek_request(&self) -> Result<Option<Request>, End> {
        let Some((len, frame)) = self.peek_frame()? else {
            return Ok(None);
        };
        let complete = frame.len() == len;
        let head = match RequestHead::parse(frame).map_err(|error| End::client_misbehaved(&error))? {
            Parsed::Complete(head) => head,
            Parsed::NeedMore if complete => return Err(malformed("a request that ends within its head")),
            Parsed::NeedMore => return Ok(None),
        };
        let body = frame.get(head.body_offset..).unwrap_or_default();
        let mut request = Request {
            size: LENGTH_SIZE + len,
            received: Instant::now(),
            answer: Expected::Answer,
            sasl: None,
            head,
        };
        match request.head.api_key {
            PRODUCE => match produce_acks(request.head.api_version, body) {
                Ok(Parsed::Complete(0)) => request.answer = Expected::Nothing,
                Ok(Parsed::Complete(_)) => {}
                Ok(Parsed::NeedMore) if !complete => return Ok(None),
                Ok(Parsed::NeedMore) => return Err(malformed("a Produce request that ends before its acks")),
                Err(error) => return Err(End::client_misbehaved(&error)),
            },
            SASL_HANDSHAKE if !complete => return Ok(None),
            SASL_HANDSHAKE => request.sasl = Some(Box::new(handshake(&request.head, body)?)),
            SASL_AUTHENTICATE => {
                request.sasl = Some(Box::new(Sent::Authenticate {
                    version: request.head.api_version,
                }));
            }
            _ => {}
        }
        Ok(Some(request))
    }

    /// The length of the next frame and as much of the frame as is there; none if not even its length is.
    fn peek_frame(&self) -> Result<Option<(usize, &[u8])>, End> {
        let bytes = self.input.filled().get(self.accepted..).unwrap_or_default();
        if !self.anything_read && bytes.starts_with(&TLS_HANDSHAKE) {
            return Err(End::new(
                CloseReason::TlsBytes,
                "the client speaks TLS to a listener without TLS; set the client's security.protocol to PLAINTEXT or SASL_PLAINTEXT",
            ));
        }
        let Some((prefix, rest)) = bytes.split_first_chunk() else {
            return Ok(None);
        };
        let len =
            frame_len(*prefix, self.ctx.services.limits.frame_max).map_err(|error| End::client_misbehaved(&error))?;
        Ok(Some((len, rest.get(..len).unwrap_or(rest))))
    }

    /// Reads once for a frame that nothing has been done with yet.
    async fn read_more(&mut self) -> Result<(), End> {
        self.flush().await?;
        if self.input.is_full() {
            return Err(malformed("a request whose head is longer than limits.buffer"));
        }
        let n = poll_fn(|cx| {
            if Pin::new(&mut self.draining).poll(cx).is_ready() {
                return Poll::Ready(Err(End::new(CloseReason::Drained, "the process stops")));
            }
            self.upstream.let_go_if_closed();
            let read = self.input.poll_fill(&mut self.reader, cx);
            read.map_err(|error| End::client_failed(&error))
        })
        .await?;
        if n == 0 {
            let between_frames = self.input.is_empty();
            return Err(if between_frames {
                End::client_closed()
            } else {
                End::client_closed_within_a_frame()
            });
        }
        self.ctx.progress.moved();
        Ok(())
    }

    /// Reads once for a frame that is half done.
    async fn read_on(&mut self) -> Result<(), End> {
        match self.input.fill(&mut self.reader).await {
            Ok(0) => Err(End::client_closed_within_a_frame()),
            Ok(_) => {
                self.ctx.progress.moved();
                Ok(())
            }
            Err(error) => Err(End::client_failed(&error)),
        }
    }

    /// Sends the request up, and queues its answer if it has one.
    async fn forward(&mut self, request: Request) -> Result<(), End> {
        let handshake_version = match request.sasl.as_deref() {
            Some(Sent::Handshake { version, .. }) => Some(*version),
            _ => None,
        };
        let purpose = if handshake_version.is_some() {
            // What comes after it may be another user's.
            self.decisions = Decisions::default();
            Purpose::Handshake
        } else {
            Purpose::Request
        };
        self.upstream.connect(purpose).await?;
        let (size, answer) = (request.size, request.answer);
        match answer {
            Expected::Nothing => self.ctx.progress.set_unacknowledged(true),
            Expected::Answer => self.queue_forwarded(request).await?,
        }
        self.bare_sasl |= handshake_version == Some(0);
        let sent = self.send_up(size).await;
        if sent.is_err() && answer == Expected::Answer {
            self.ctx.progress.cut_off();
        }
        sent
    }

    async fn queue_forwarded(&mut self, request: Request) -> Result<(), End> {
        if !self.upstream.has_room() {
            self.flush().await?;
        }
        if request.sasl.is_some() {
            self.ctx.sasl().sent();
        }
        self.upstream.push(Slot::Forwarded(forwarded(request))).await;
        Ok(())
    }

    /// Sends the next `size` bytes up: together with what is next if they are in the buffer, else as they come.
    async fn send_up(&mut self, size: usize) -> Result<(), End> {
        let here = size.min(self.input.len() - self.accepted);
        self.accepted += here;
        let mut missing = size - here;
        while missing > 0 {
            self.flush_accepted(Behind::More).await?;
            missing -= self.splice_up(missing).await?;
            if missing > 0 {
                self.read_on().await?;
                self.accepted = missing.min(self.input.len());
                missing -= self.accepted;
            }
        }
        self.anything_read = true;
        Ok(())
    }

    /// Has the kernel move bytes that are not read yet; how many it has moved.
    async fn splice_up(&mut self, bytes: usize) -> Result<usize, End> {
        if bytes < SPLICE_MIN {
            return Ok(0);
        }
        let splice = Splice {
            ctx: self.ctx,
            from: self.reader.as_ref(),
            to: self.upstream.socket()?,
            towards: Towards::Upstream,
            behind: Behind::Nothing,
        };
        let moved = splice.run(bytes).await.map_err(|error| match error {
            SpliceError::Ended => End::client_closed_within_a_frame(),
            SpliceError::Read(error) => End::client_failed(&error),
            SpliceError::Write(error) => End::upstream_failed(&error),
        })?;
        if moved > 0 {
            self.input.shrink();
        }
        Ok(moved)
    }

    /// Writes what belongs to the upstream, all of it whole frames.
    pub(super) async fn flush(&mut self) -> Result<(), End> {
        self.flush_accepted(Behind::Nothing).await
    }

    async fn flush_accepted(&mut self, behind: Behind) -> Result<(), End> {
        if self.accepted > 0 {
            let bytes = self.input.filled().get(..self.accepted).unwrap_or_default();
            self.upstream.write(bytes, behind).await?;
            self.input.consume(self.accepted);
            self.accepted = 0;
        }
        Ok(())
    }

    /// Takes the next `size` bytes out of the stream, whole. The caller has checked `size` against a limit.
    pub(super) async fn gather(&mut self, size: usize) -> Result<Bytes, End> {
        self.flush().await?;
        self.anything_read = true;
        if let Some(frame) = self.input.filled().get(..size) {
            let frame = Bytes::copy_from_slice(frame);
            self.input.consume(size);
            return Ok(frame);
        }
        // The length is the client's word: memory grows with the bytes that come, not with it.
        let mut frame = BytesMut::with_capacity(self.input.max().min(size));
        while frame.len() < size {
            if self.input.is_empty() {
                self.read_on().await?;
            }
            let here = self.input.len().min(size - frame.len());
            frame.extend_from_slice(self.input.filled().get(..here).unwrap_or_default());
            self.input.consume(here);
        }
        Ok(frame.freeze())
    }

    /// Sends a request up that was gathered.
    pub(super) async fn forward_gathered(&mut self, request: Request, frame: &[u8]) -> Result<(), End> {
        self.upstream.connect(Purpose::Request).await?;
        self.queue_forwarded(request).await?;
        self.upstream.write(frame, Behind::Nothing).await
    }

    /// Whether the next frame is a bare SASL token; waits for the answers that tell.
    async fn token_is_next(&mut self) -> Result<bool, End> {
        self.flush().await?;
        loop {
            let next = self.ctx.sasl().next_frame();
            match next {
                NextFrame::Token => return Ok(true),
                NextFrame::Request => {
                    self.bare_sasl = false;
                    return Ok(false);
                }
                NextFrame::Wait => self.ctx.sasl_answered.notified().await,
            }
        }
    }

    async fn forward_token(&mut self) -> Result<(), End> {
        let len = loop {
            if let Some((len, _)) = self.peek_frame()? {
                break len;
            }
            self.read_more().await?;
        };
        self.upstream.connect(Purpose::Request).await?;
        self.ctx.sasl().sent();
        self.upstream.push(Slot::Token).await;
        self.send_up(LENGTH_SIZE + len).await
    }

    /// Leaves the upstream, and reads and drops what the client still sends: closing with bytes unread would reset the
    /// connection under its last answers.
    pub(super) async fn discard(self) {
        let Self {
            upstream, mut reader, ..
        } = self;
        drop(upstream);
        let mut sink = [0; 4096];
        while matches!(reader.read(&mut sink).await, Ok(n) if n > 0) {}
    }
}

fn forwarded(request: Request) -> Forwarded {
    Forwarded {
        api_key: request.head.api_key,
        api_version: request.head.api_version,
        correlation_id: request.head.correlation_id,
        received: request.received,
        sasl: request.sasl,
    }
}

fn malformed(detail: &'static str) -> End {
    End::new(CloseReason::Malformed, detail)
}

/// What a SaslHandshake begins. Version 0 leaves the tokens bare; how many a GSSAPI exchange has cannot be seen then.
fn handshake(head: &RequestHead, body: &[u8]) -> Result<Sent, End> {
    let mechanism = sasl::handshake_mechanism(body).ok_or_else(|| malformed("a SaslHandshake without a mechanism"))?;
    if head.api_version == 0 && mechanism == "GSSAPI" {
        let detail = "SaslHandshake version 0 with GSSAPI is not supported; use a client that speaks version 1 (Kafka 1.0 or later)";
        return Err(End::new(CloseReason::UnsupportedApi, detail));
    }
    Ok(Sent::Handshake {
        version: head.api_version,
        mechanism,
    })
}
