//! The half of a connection that sends answers, in the order of the requests.
//!
//! Frames of the upstream that are for the client as they are stay where they were read and are written from there, many together;
//! answers that are made or changed here are collected in `out`. Only one of the two holds anything at a time, so the order
//! cannot be lost. Both are written before anything is waited for.

use std::future::poll_fn;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncWriteExt;

use super::buffer::Buffer;
use super::context::Context;
use super::end::End;
use super::progress::write_all;
use super::queue::{Front, Queue};
use super::slot::{Forwarded, Injected, Local, Slot};
use super::splicing::{SPLICE_MIN, Splice, SpliceError, Towards};
use crate::proxy::rewrite::{EndpointScrubber, Treatment, treatment};
use crate::proxy::stream::{Behind, ReadSide, WriteSide};
use crate::upstream::UpstreamError;
use crate::wire::api;
use crate::wire::frame::{LENGTH_SIZE, Parsed, ResponseHead, frame_len};

/// Answers up to here are collected, longer ones are written from where they are.
const OUT_MAX: usize = 16 * 1024;
const CLOSED_WITHIN_ANSWER: &str = "the upstream closed the connection in the middle of an answer";
/// A response begins with its length and the correlation id.
const HEAD_SIZE: usize = LENGTH_SIZE + 4;

pub(super) struct Responses<'a> {
    pub(super) ctx: &'a Context,
    writer: WriteSide,
    queue: &'a Queue,
    upstream: Option<ReadSide>,
    input: Buffer,
    /// Bytes at the front of the buffer that belong to the client and are not written yet.
    accepted: usize,
    out: BytesMut,
}

impl<'a> Responses<'a> {
    pub(super) fn new(ctx: &'a Context, writer: WriteSide, queue: &'a Queue) -> Self {
        Self {
            ctx,
            writer,
            queue,
            upstream: None,
            input: Buffer::new(ctx.services.limits.buffer),
            accepted: 0,
            out: BytesMut::new(),
        }
    }

    /// Sends answers until no more can come.
    pub(super) async fn run(&mut self) -> Result<(), End> {
        while let Some(slot) = self.next_slot().await? {
            match slot {
                Slot::Upstream(reader) => {
                    self.upstream = Some(reader);
                    continue;
                }
                Slot::Local(local) => self.local(*local).await?,
                Slot::Forwarded(forwarded) => self.forwarded(forwarded).await?,
                Slot::Token => self.token().await?,
                Slot::Injected(injected) => self.injected(injected).await?,
            }
            self.ctx.progress.answered();
        }
        self.flush().await
    }

    /// Tells the client that nothing more comes.
    pub(super) async fn close(&mut self) {
        // It may be gone already, which is as good.
        let _ = self.writer.shutdown().await;
    }

    /// The next answer to send. While there is none, the upstream is watched, so that its closing does not go unnoticed.
    async fn next_slot(&mut self) -> Result<Option<Slot>, End> {
        loop {
            match self.queue.pop() {
                Front::Slot(slot) => return Ok(Some(slot)),
                Front::Ended => return Ok(None),
                Front::Empty => self.flush().await?,
            }
            let Some(upstream) = &mut self.upstream else {
                return Ok(self.queue.next().await);
            };
            if !self.input.is_empty() {
                return Err(End::upstream_malformed("bytes that answer nothing"));
            }
            tokio::select! {
                biased;
                slot = self.queue.next() => return Ok(slot),
                read = self.input.fill(upstream) => match read {
                    Ok(n) if n > 0 => self.ctx.progress.moved(),
                    Ok(_) | Err(_) => self.upstream_gone().await?,
                },
            }
        }
    }

    /// The upstream has closed with nothing under way: the next request makes a new connection. Unless something is not known to
    /// have arrived: then the client has to be told, and closing is all it understands.
    async fn upstream_gone(&mut self) -> Result<(), End> {
        if self.ctx.progress.unacknowledged() {
            return Err(End::upstream_closed(
                "the upstream closed the connection after a Produce request with acks=0",
            ));
        }
        self.upstream = None;
        self.ctx.progress.set_upstream_open(false);
        // The half that sends up closes its side when it is polled next.
        poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::Ready(())
        })
        .await;
        Ok(())
    }

    async fn local(&mut self, local: Local) -> Result<(), End> {
        self.flush_accepted(Behind::Nothing).await?;
        if self.out.is_empty() {
            self.out = local.frame;
        } else {
            self.emit(&local.frame).await?;
        }
        let metrics = self.ctx.services.metrics.api(local.api_key);
        let ours = local.received.elapsed().saturating_sub(local.upstream);
        metrics.ours_seconds.observe(ours.as_secs_f64());
        if !local.upstream.is_zero() {
            metrics.upstream_seconds.observe(local.upstream.as_secs_f64());
        }
        Ok(())
    }

    async fn forwarded(&mut self, forwarded: Forwarded) -> Result<(), End> {
        let size = self.response_size(Some(forwarded.correlation_id)).await?;
        self.ctx.progress.set_unacknowledged(false);
        let metrics = self.ctx.services.metrics.api(forwarded.api_key);
        let first_byte = std::time::Instant::now();
        metrics
            .upstream_seconds
            .observe((first_byte - forwarded.received).as_secs_f64());
        metrics.response_bytes.inc_by(size as u64);
        let api_key = forwarded.api_key;
        match treatment(api_key, forwarded.api_version) {
            _ if forwarded.sasl.is_some() => self.sasl_answer(forwarded, size).await?,
            Treatment::Untouched => self.copy(size, None).await?,
            Treatment::GatheredOrScrubbed if size > self.held_max() => self.scrub(&forwarded, size).await?,
            Treatment::GatheredOrScrubbed => self.readdress(&forwarded, size).await?,
            Treatment::Gathered => self.rewrite(&forwarded, size).await?,
        }
        metrics.ours_seconds.observe(first_byte.elapsed().as_secs_f64());
        if api::changes_topics(api_key) {
            self.ctx.services.cluster.topics_changed();
        }
        if api::changes_configs(api_key) {
            self.ctx.services.cluster.change_configs();
        }
        Ok(())
    }

    /// Waits for the head of the next frame; answers the size of the frame with its length field.
    async fn response_size(&mut self, correlation_id: Option<i32>) -> Result<usize, End> {
        let Some(correlation_id) = correlation_id else {
            self.need(LENGTH_SIZE).await?;
            return self.next_size();
        };
        self.need(HEAD_SIZE).await?;
        let size = self.next_size()?;
        let id = self.pending().get(LENGTH_SIZE..).and_then(|rest| rest.first_chunk());
        if size < HEAD_SIZE || id != Some(&correlation_id.to_be_bytes()) {
            return Err(End::upstream_malformed(
                "an answer to another request than the next one",
            ));
        }
        Ok(size)
    }

    fn next_size(&self) -> Result<usize, End> {
        let prefix = self.pending().first_chunk().copied().unwrap_or_default();
        let len = frame_len(prefix, self.ctx.services.limits.frame_max)
            .map_err(|error| End::upstream_malformed(error.to_string()))?;
        Ok(LENGTH_SIZE + len)
    }

    /// Passes the next frame on as it is, or, with a scrubber, with its addresses taken out. The scrubber has seen nothing yet.
    pub(super) async fn copy(
        &mut self,
        size: usize,
        mut scrubber: Option<(EndpointScrubber, usize)>,
    ) -> Result<(), End> {
        self.flush_out().await?;
        let mut missing = size;
        loop {
            let here = missing.min(self.input.len() - self.accepted);
            if let Some((scrubber, head)) = &mut scrubber {
                let fresh = self
                    .input
                    .filled_mut()
                    .get_mut(self.accepted..self.accepted + here)
                    .unwrap_or_default();
                let skip = (*head).min(fresh.len());
                *head -= skip;
                let body = fresh.get_mut(skip..).unwrap_or_default();
                scrubber
                    .feed(body)
                    .map_err(|error| End::upstream_malformed(error.to_string()))?;
            }
            self.accepted += here;
            missing -= here;
            let unseen = scrubber.as_ref().map_or(missing, |(scrubber, _)| scrubber.skip_hint());
            let behind = if unseen < missing {
                Behind::More
            } else {
                Behind::Nothing
            };
            let moved = self.splice_down(unseen, behind).await?;
            missing -= moved;
            if let Some((scrubber, _)) = &mut scrubber
                && moved > 0
            {
                scrubber.pass(moved);
                // An answer that ends there is cut off.
                let fed = if missing == 0 { scrubber.feed(&mut []) } else { Ok(()) };
                fed.map_err(|error| End::upstream_malformed(error.to_string()))?;
            }
            if missing == 0 {
                return Ok(());
            }
            self.flush_accepted(Behind::More).await?;
            self.read_more().await?;
        }
    }

    /// Has the kernel move bytes that are not read yet, all that is read being the client's; how many it has moved.
    async fn splice_down(&mut self, bytes: usize, behind: Behind) -> Result<usize, End> {
        if bytes < SPLICE_MIN {
            return Ok(0);
        }
        self.flush_accepted(Behind::More).await?;
        let Some(upstream) = &self.upstream else { return Ok(0) };
        let splice = Splice {
            ctx: self.ctx,
            from: upstream.as_ref(),
            to: self.writer.as_ref(),
            towards: Towards::Client,
            behind,
        };
        let moved = splice.run(bytes).await.map_err(|error| match error {
            SpliceError::Ended => End::upstream_closed(CLOSED_WITHIN_ANSWER),
            SpliceError::Read(error) => End::upstream_failed(&error),
            SpliceError::Write(error) => End::client_failed(&error),
        })?;
        if moved > 0 {
            self.input.shrink();
        }
        Ok(moved)
    }

    /// The longest answer that is held whole to be readdressed, if it can be had otherwise.
    fn held_max(&self) -> usize {
        self.input.max().min(SPLICE_MIN)
    }

    /// Passes an answer on that is too large to be held.
    async fn scrub(&mut self, forwarded: &Forwarded, size: usize) -> Result<(), End> {
        let Forwarded {
            api_key, api_version, ..
        } = *forwarded;
        let head = self.response_head(api_key, api_version, size).await?;
        let body_at = LENGTH_SIZE + head.body_offset;
        let scrubber = EndpointScrubber::new(api_key, api_version, size - body_at);
        self.copy(size, scrubber.map(|scrubber| (scrubber, body_at))).await
    }

    async fn response_head(&mut self, api_key: i16, version: i16, size: usize) -> Result<ResponseHead, End> {
        loop {
            let frame = self.pending().get(..size).unwrap_or_else(|| self.pending());
            let complete = frame.len() == size;
            match ResponseHead::parse(api_key, version, frame.get(LENGTH_SIZE..).unwrap_or_default()) {
                Ok(Parsed::Complete(head)) => return Ok(head),
                Ok(Parsed::NeedMore) if !complete => self.read_more().await?,
                Ok(Parsed::NeedMore) => return Err(End::upstream_malformed("an answer that ends within its head")),
                Err(error) => return Err(End::upstream_malformed(error.to_string())),
            }
        }
    }

    async fn sasl_answer(&mut self, forwarded: Forwarded, size: usize) -> Result<(), End> {
        if size > self.input.max() {
            return Err(End::upstream_malformed("a SASL answer longer than limits.buffer"));
        }
        let frame = self.gather(size).await?;
        if let Some(sent) = forwarded.sasl {
            let head = parse_head(forwarded.api_key, forwarded.api_version, &frame)?;
            let body = frame.get(LENGTH_SIZE + head.body_offset..).unwrap_or_default();
            self.ctx.sasl_was_answered(*sent, body);
        }
        self.emit(&frame).await
    }

    async fn token(&mut self) -> Result<(), End> {
        let size = self.response_size(None).await?;
        if size > self.input.max() {
            return Err(End::upstream_malformed("a SASL token longer than limits.buffer"));
        }
        let frame = self.gather(size).await?;
        self.ctx.sasl_was_answered(
            crate::proxy::sasl::Sent::Token,
            frame.get(LENGTH_SIZE..).unwrap_or_default(),
        );
        self.emit(&frame).await
    }

    /// Hands the answer to a request of ours to whoever asked.
    async fn injected(&mut self, injected: Injected) -> Result<(), End> {
        let result = self.injected_body(&injected).await;
        let (answer, end) = match result {
            Ok(body) => (Ok(body), Ok(())),
            Err(end) => {
                let reason = end.detail.clone().into_owned();
                (
                    Err(UpstreamError::Malformed {
                        address: "the upstream".to_owned(),
                        reason,
                    }),
                    Err(end),
                )
            }
        };
        // Whoever asked may have given up waiting: then nobody wants the answer.
        let _ = injected.reply.send(answer);
        end
    }

    async fn injected_body(&mut self, injected: &Injected) -> Result<Bytes, End> {
        let size = self.response_size(Some(injected.correlation_id)).await?;
        self.ctx.progress.set_unacknowledged(false);
        let frame = self.gather(size).await?;
        let head = parse_head(injected.api_key, injected.api_version, &frame)?;
        Ok(frame.slice(LENGTH_SIZE + head.body_offset..))
    }

    /// Takes the next frame out of the stream, whole.
    pub(super) async fn gather(&mut self, size: usize) -> Result<Bytes, End> {
        self.flush_accepted(Behind::Nothing).await?;
        if size <= self.input.max() {
            self.need(size).await?;
            let frame = Bytes::copy_from_slice(self.input.filled().get(..size).unwrap_or_default());
            self.input.consume(size);
            return Ok(frame);
        }
        // The length is the peer's word: memory grows with the bytes that come, not with it.
        let mut frame = BytesMut::with_capacity(self.input.max());
        while frame.len() < size {
            if self.input.is_empty() {
                self.read_more().await?;
            }
            let here = self.input.len().min(size - frame.len());
            frame.extend_from_slice(self.input.filled().get(..here).unwrap_or_default());
            self.input.consume(here);
        }
        Ok(frame.freeze())
    }

    /// Sends a frame that was made or changed here.
    pub(super) async fn emit(&mut self, bytes: &[u8]) -> Result<(), End> {
        self.flush_accepted(Behind::Nothing).await?;
        if self.out.len() + bytes.len() > OUT_MAX {
            self.flush_out().await?;
        }
        if bytes.len() > OUT_MAX {
            return write_to_client(&self.writer, bytes, Behind::Nothing, self.ctx).await;
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// What was read and belongs to nobody yet.
    pub(super) fn pending(&self) -> &[u8] {
        self.input.filled().get(self.accepted..).unwrap_or_default()
    }

    /// Waits until so many bytes are there; at most what the buffer holds.
    pub(super) async fn need(&mut self, bytes: usize) -> Result<(), End> {
        while self.pending().len() < bytes {
            self.read_more().await?;
        }
        Ok(())
    }

    async fn read_more(&mut self) -> Result<(), End> {
        self.flush().await?;
        if self.input.is_full() {
            return Err(End::upstream_malformed(
                "an answer whose head is longer than limits.buffer",
            ));
        }
        let Some(upstream) = &mut self.upstream else {
            return Err(End::upstream_closed(
                "the upstream closed the connection before it answered",
            ));
        };
        match self.input.fill(upstream).await {
            Ok(0) if self.input.is_empty() => Err(End::upstream_closed(
                "the upstream closed the connection before it answered",
            )),
            Ok(0) => Err(End::upstream_closed(CLOSED_WITHIN_ANSWER)),
            Ok(_) => {
                self.ctx.progress.moved();
                Ok(())
            }
            Err(error) => Err(End::upstream_failed(&error)),
        }
    }

    async fn flush(&mut self) -> Result<(), End> {
        self.flush_accepted(Behind::Nothing).await?;
        self.flush_out().await
    }

    async fn flush_accepted(&mut self, behind: Behind) -> Result<(), End> {
        if self.accepted > 0 {
            let bytes = self.input.filled().get(..self.accepted).unwrap_or_default();
            write_to_client(&self.writer, bytes, behind, self.ctx).await?;
            self.input.consume(self.accepted);
            self.accepted = 0;
        }
        Ok(())
    }

    async fn flush_out(&mut self) -> Result<(), End> {
        if !self.out.is_empty() {
            write_to_client(&self.writer, &self.out, Behind::Nothing, self.ctx).await?;
            self.out = BytesMut::new();
        }
        Ok(())
    }
}

async fn write_to_client(writer: &WriteSide, bytes: &[u8], behind: Behind, ctx: &Context) -> Result<(), End> {
    ctx.progress.set_writing_to_client(true);
    let result = write_all(writer.as_ref(), bytes, behind, &ctx.progress).await;
    ctx.progress.set_writing_to_client(false);
    result.map_err(|error| End::client_failed(&error))
}

pub(super) fn parse_head(api_key: i16, version: i16, frame: &[u8]) -> Result<ResponseHead, End> {
    ResponseHead::parse(api_key, version, frame.get(LENGTH_SIZE..).unwrap_or_default())
        .and_then(Parsed::complete)
        .map_err(|error| End::upstream_malformed(error.to_string()))
}
