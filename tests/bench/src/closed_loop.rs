//! Connections that each send their request again as soon as it is answered, driven by one thread.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use convoke_support::Result;
use hdrhistogram::Histogram;
use mio::{Events, Poll, Token};

use crate::expectation::{Expectation, Verify};
use crate::link::{HEAD_MAX, Link, SCRATCH_SIZE};
use crate::wire::{CORRELATION_ID, Client, LENGTH_SIZE};

/// A server that answers nothing for so long has failed the run.
const STALL_LIMIT: Duration = Duration::from_secs(10);

/// Nanoseconds that a latency can have at most.
const LATENCY_MAX: u64 = 60_000_000_000;

/// The request that one connection repeats: encoded once, with only numbers patched from then on.
#[derive(Debug)]
pub struct Repeated {
    pub frame: Vec<u8>,
    pub verify: Verify,
    pub walk: Option<Walk>,
}

/// An offset in the request that moves forward with each one and starts over at the end.
#[derive(Debug, Clone)]
pub struct Walk {
    /// Where its eight bytes stand in the frame.
    pub at: usize,
    pub step: i64,
    /// The last offset that may be asked for.
    pub last: i64,
}

/// What a run of the loop came to.
#[derive(Debug)]
pub struct Tally {
    pub requests: u64,
    /// Of whole frames, both ways.
    pub bytes: u64,
    pub elapsed: Duration,
    /// Nanoseconds from the first byte sent to the last received.
    pub latency: Histogram<u64>,
}

impl Tally {
    fn new() -> Result<Self> {
        Ok(Self {
            requests: 0,
            bytes: 0,
            elapsed: Duration::ZERO,
            latency: Histogram::new_with_bounds(1, LATENCY_MAX, 3)?,
        })
    }

    /// Microseconds that this part of the requests took at most.
    #[must_use]
    pub fn latency_us(&self, quantile: f64) -> f64 {
        Duration::from_nanos(self.latency.value_at_quantile(quantile)).as_secs_f64() * 1e6
    }
}

#[derive(Debug)]
pub struct ClosedLoop {
    poll: Poll,
    workers: Vec<Worker>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Worker {
    link: Link,
    frame: Vec<u8>,
    walk: Option<Walk>,
    offset: i64,
    expectation: Expectation,
    correlation_id: i32,
    /// Bytes of the frame that are written.
    sent: usize,
    sent_at: Instant,
}

impl ClosedLoop {
    /// One connection for each request; each is tried once, and its answer decoded.
    ///
    /// # Errors
    /// When nobody listens there or an answer is an error.
    pub fn connect(address: SocketAddr, requests: Vec<Repeated>) -> Result<Self> {
        let poll = Poll::new()?;
        let mut workers = Vec::with_capacity(requests.len());
        for (number, request) in requests.into_iter().enumerate() {
            let answer = Client::connect(address)?.exchange(&request.frame)?;
            workers.push(Worker {
                link: Link::connect(address, HEAD_MAX, poll.registry(), Token(number))?,
                frame: request.frame,
                walk: request.walk,
                offset: 0,
                expectation: Expectation::new(&answer, request.verify)?,
                correlation_id: 0,
                sent: 0,
                sent_at: Instant::now(),
            });
        }
        Ok(Self {
            poll,
            workers,
            scratch: vec![0; SCRATCH_SIZE],
        })
    }

    /// Keeps every connection busy for the time, then waits for the answers that are under way.
    ///
    /// # Errors
    /// When a connection ends, an answer is not good, or none comes for ten seconds.
    pub fn run(&mut self, duration: Duration) -> Result<Tally> {
        let mut tally = Tally::new()?;
        let mut events = Events::with_capacity(1024);
        let started = Instant::now();
        for worker in &mut self.workers {
            worker.start(started)?;
        }
        let mut busy = self.workers.len();
        while busy > 0 {
            self.poll.poll(&mut events, Some(STALL_LIMIT))?;
            if events.is_empty() {
                return Err(format!("{busy} requests without an answer for {STALL_LIMIT:?}").into());
            }
            for event in &events {
                let worker = &mut self.workers[event.token().0];
                if event.is_writable() {
                    worker.send()?;
                }
                if event.is_readable() && worker.link.receive(&mut self.scratch)? {
                    let now = Instant::now();
                    worker.finish(now, &mut tally)?;
                    if now - started < duration {
                        worker.start(now)?;
                    } else {
                        busy -= 1;
                    }
                }
            }
        }
        tally.elapsed = started.elapsed();
        Ok(tally)
    }
}

impl Worker {
    fn start(&mut self, now: Instant) -> Result<()> {
        self.correlation_id = self.correlation_id.wrapping_add(1);
        self.frame[CORRELATION_ID].copy_from_slice(&self.correlation_id.to_be_bytes());
        if let Some(Walk { at, step, last }) = self.walk {
            self.offset += step;
            if self.offset > last {
                self.offset = 0;
            }
            self.frame[at..at + size_of::<i64>()].copy_from_slice(&self.offset.to_be_bytes());
        }
        self.sent = 0;
        self.sent_at = now;
        self.send()
    }

    fn send(&mut self) -> Result<()> {
        if self.sent < self.frame.len() {
            self.sent += self.link.send(&self.frame[self.sent..])?;
        }
        Ok(())
    }

    fn finish(&mut self, now: Instant, tally: &mut Tally) -> Result<()> {
        self.expectation
            .check(self.correlation_id, self.link.len(), self.link.head())?;
        let nanoseconds = u64::try_from((now - self.sent_at).as_nanos())?;
        tally.latency.saturating_record(nanoseconds);
        tally.requests += 1;
        tally.bytes += (self.frame.len() + LENGTH_SIZE + self.link.len()) as u64;
        Ok(())
    }
}
