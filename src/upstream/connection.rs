//! One connection of our own to a broker: requests go out as they come, answers come back in the same order.
//!
//! ```text
//! send ──▶ queue (bounded) ──▶ write ──▶ socket
//!              └── waiting, in order ──▶ read ◀── socket
//! ```
//! A broker answers one connection strictly in order, so the waiters are a queue; the correlation id only proves that
//! both sides count alike. The first error ends the connection: everybody who waits is told that error, once, and
//! everybody who comes later too. Nothing is retried here.

use std::pin::pin;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{UpstreamError, peer};
use crate::wire::codec::WireError;
use crate::wire::frame::{LENGTH_SIZE, ResponseHead, frame_len, request_head};

/// What brokers see as the client id of our own requests.
pub const CLIENT_ID: &str = "convoke";

/// Memory that a length alone can make us reserve; the rest follows the bytes that really come.
const READ_CHUNK: usize = 64 * 1024;
/// Most answers fit into this.
const READ_LEAST: usize = 4 * 1024;

/// Anything that a connection can run over.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

/// The bounds of one connection.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the moment a request is handed over to its answer.
    pub request_timeout: Duration,
    /// Bytes of the largest answer.
    pub frame_max: usize,
    /// Requests that may wait for their answers.
    pub in_flight: usize,
}

/// A handle; the socket closes when the last one is gone.
#[derive(Debug, Clone)]
pub struct Connection {
    requests: mpsc::Sender<Outgoing>,
    limits: Limits,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    address: String,
    next_correlation_id: AtomicI32,
    /// Why the connection ended; set before any waiter is let go.
    broken: OnceLock<UpstreamError>,
    /// Cancelled by `close` to end the task, and by the task when it has ended.
    closed: CancellationToken,
}

impl Shared {
    fn error(&self) -> UpstreamError {
        let address = self.address.clone();
        self.broken.get().cloned().unwrap_or(UpstreamError::Closed { address })
    }

    fn malformed(&self, reason: impl std::fmt::Display) -> UpstreamError {
        UpstreamError::Malformed {
            address: self.address.clone(),
            reason: reason.to_string(),
        }
    }

    fn closed(&self) -> UpstreamError {
        UpstreamError::Closed {
            address: self.address.clone(),
        }
    }
}

/// A request on its way to the socket.
#[derive(Debug)]
struct Outgoing {
    frame: Bytes,
    waiter: Waiter,
}

/// Who gets the next answer.
#[derive(Debug)]
struct Waiter {
    api_key: i16,
    version: i16,
    correlation_id: i32,
    deadline: Instant,
    reply: oneshot::Sender<Bytes>,
}

/// An answer that is still to come.
#[derive(Debug)]
pub struct Pending {
    reply: oneshot::Receiver<Bytes>,
    shared: Arc<Shared>,
}

impl Pending {
    /// The body after the response head.
    ///
    /// # Errors
    /// Whatever ended the connection.
    pub async fn body(self) -> Result<Bytes, UpstreamError> {
        self.reply.await.map_err(|_| self.shared.error())
    }
}

impl Connection {
    /// Runs a connection over an open stream, on a task of its own.
    #[must_use]
    pub fn over(stream: impl Stream, address: String, limits: Limits) -> Self {
        let (requests, queue) = mpsc::channel(limits.in_flight.max(1));
        let shared = Arc::new(Shared {
            address,
            next_correlation_id: AtomicI32::new(0),
            broken: OnceLock::new(),
            closed: CancellationToken::new(),
        });
        tokio::spawn(drive(stream, queue, limits, Arc::clone(&shared)));
        Self {
            requests,
            limits,
            shared,
        }
    }

    #[must_use]
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    /// Puts a request in the queue. Requests leave in the order in which these calls return.
    ///
    /// # Errors
    /// Whatever ended the connection, or `Malformed` if the request cannot be written.
    pub async fn send(&self, api_key: i16, version: i16, body: &[u8]) -> Result<Pending, UpstreamError> {
        let correlation_id = self.shared.next_correlation_id.fetch_add(1, Ordering::Relaxed);
        let frame = frame(api_key, version, correlation_id, body).map_err(|reason| self.shared.malformed(reason))?;
        let (reply, answer) = oneshot::channel();
        let waiter = Waiter {
            api_key,
            version,
            correlation_id,
            deadline: Instant::now() + self.limits.request_timeout,
            reply,
        };
        let sent = self.requests.send(Outgoing { frame, waiter }).await;
        sent.map_err(|_| self.shared.error())?;
        Ok(Pending {
            reply: answer,
            shared: Arc::clone(&self.shared),
        })
    }

    /// Sends a request and waits for the body of its answer.
    ///
    /// # Errors
    /// Whatever ended the connection.
    pub async fn call(&self, api_key: i16, version: i16, body: &[u8]) -> Result<Bytes, UpstreamError> {
        self.send(api_key, version, body).await?.body().await
    }

    /// Ends the connection; who waits is told this error.
    pub fn close(&self, error: UpstreamError) {
        // An earlier error stays: it is the cause.
        let _ = self.shared.broken.set(error);
        self.shared.closed.cancel();
    }

    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.closed.is_cancelled()
    }

    /// Resolves when the connection has ended.
    pub async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }
}

fn frame(api_key: i16, version: i16, correlation_id: i32, body: &[u8]) -> Result<Bytes, String> {
    let mut frame = BytesMut::with_capacity(64 + body.len());
    frame.put_i32(0);
    request_head(api_key, version, correlation_id, Some(CLIENT_ID), &mut frame).map_err(|error| error.to_string())?;
    frame.put_slice(body);
    let len = i32::try_from(frame.len() - LENGTH_SIZE).map_err(|_| "the request is too long".to_owned())?;
    frame[..LENGTH_SIZE].copy_from_slice(&len.to_be_bytes());
    Ok(frame.freeze())
}

async fn drive(stream: impl Stream, mut queue: mpsc::Receiver<Outgoing>, limits: Limits, shared: Arc<Shared>) {
    let (read, write) = tokio::io::split(stream);
    let (waiting, waiters) = mpsc::channel(limits.in_flight.max(1));
    let mut writing = pin!(write_requests(write, &mut queue, waiting, &shared));
    let mut reading = pin!(read_answers(
        read,
        waiters,
        limits.frame_max,
        &shared,
        limits.request_timeout
    ));
    let error = tokio::select! {
        () = shared.closed.cancelled() => shared.closed(),
        error = &mut writing => error,
        error = &mut reading => error,
    };
    // Set while the waiters still wait: what wakes them is that the queues are dropped below.
    let _ = shared.broken.set(error);
    shared.closed.cancel();
}

async fn write_requests(
    mut socket: impl AsyncWrite + Unpin,
    queue: &mut mpsc::Receiver<Outgoing>,
    waiting: mpsc::Sender<Waiter>,
    shared: &Shared,
) -> UpstreamError {
    while let Some(Outgoing { frame, waiter }) = queue.recv().await {
        if waiting.send(waiter).await.is_err() {
            break;
        }
        if let Err(error) = socket.write_all(&frame).await {
            return unreachable(shared, &error);
        }
    }
    shared.closed()
}

async fn read_answers(
    socket: impl AsyncRead + Unpin,
    mut waiters: mpsc::Receiver<Waiter>,
    frame_max: usize,
    shared: &Shared,
    request_timeout: Duration,
) -> UpstreamError {
    let mut frames = Frames {
        socket,
        buffer: BytesMut::new(),
        frame_max,
        shared,
        any: false,
    };
    loop {
        let waiter = tokio::select! {
            biased;
            waiter = waiters.recv() => waiter,
            frame = frames.next() => return match frame {
                Ok(_) => shared.malformed("an answer that nobody asked for"),
                Err(error) => error,
            },
        };
        let Some(waiter) = waiter else {
            return shared.closed();
        };
        let answer = match timeout_at(waiter.deadline, frames.next()).await {
            Ok(Ok(frame)) => body(frame, &waiter, shared),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(UpstreamError::Timeout {
                address: shared.address.clone(),
                timeout_ms: u64::try_from(request_timeout.as_millis()).unwrap_or(u64::MAX),
            }),
        };
        match answer {
            // Nobody waits any more if the caller gave up; the order is kept all the same.
            Ok(body) => drop(waiter.reply.send(body)),
            Err(error) => {
                let _ = shared.broken.set(error.clone());
                return error;
            }
        }
    }
}

/// Checks the head of an answer and takes it off.
fn body(mut frame: Bytes, waiter: &Waiter, shared: &Shared) -> Result<Bytes, UpstreamError> {
    let head = ResponseHead::parse(waiter.api_key, waiter.version, &frame)
        .and_then(crate::wire::frame::Parsed::complete)
        .map_err(|error| shared.malformed(error))?;
    if head.correlation_id != waiter.correlation_id {
        let (got, expected) = (head.correlation_id, waiter.correlation_id);
        return Err(shared.malformed(format_args!("the answer to request {got} instead of {expected}")));
    }
    frame.advance(head.body_offset.min(frame.len()));
    Ok(frame)
}

fn unreachable(shared: &Shared, error: &std::io::Error) -> UpstreamError {
    UpstreamError::Unreachable {
        address: shared.address.clone(),
        reason: error.to_string(),
    }
}

/// Whole frames from a socket; a `next` that is dropped half-way loses nothing.
struct Frames<'a, R> {
    socket: R,
    buffer: BytesMut,
    frame_max: usize,
    shared: &'a Shared,
    /// Whether a whole one has come.
    any: bool,
}

impl<R: AsyncRead + Unpin> Frames<'_, R> {
    async fn next(&mut self) -> Result<Bytes, UpstreamError> {
        loop {
            let mut wanted = LENGTH_SIZE;
            if let Some(prefix) = self.buffer.first_chunk::<LENGTH_SIZE>() {
                let len = frame_len(*prefix, self.frame_max).map_err(|error| self.no_frame(&error))?;
                wanted = LENGTH_SIZE + len;
                if self.buffer.len() >= wanted {
                    let mut frame = self.buffer.split_to(wanted);
                    frame.advance(LENGTH_SIZE);
                    self.any = true;
                    if self.buffer.is_empty() {
                        // What is left of a large frame's memory would stay for as long as the connection.
                        self.buffer = BytesMut::new();
                    }
                    return Ok(frame.freeze());
                }
            }
            self.buffer
                .reserve((wanted - self.buffer.len()).clamp(READ_LEAST, READ_CHUNK));
            match self.socket.read_buf(&mut self.buffer).await {
                Ok(0) => return Err(self.shared.closed()),
                Ok(_) => {}
                Err(error) => return Err(unreachable(self.shared, &error)),
            }
        }
    }

    /// Where the next frame should be is none.
    fn no_frame(&self, error: &WireError) -> UpstreamError {
        if self.any {
            self.shared.malformed(error)
        } else {
            peer::no_broker(self.shared.address.clone(), &self.buffer, error)
        }
    }
}

#[cfg(test)]
mod tests;
