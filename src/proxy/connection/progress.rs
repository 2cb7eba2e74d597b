//! What moves on a connection, and the watch that ends it when nothing has moved for too long.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::Instant;

use super::end::End;
use crate::proxy::stream::{Behind, try_write};
use crate::telemetry::close_reason::CloseReason;

/// The watch looks so many times in an idle timeout: a connection ends at most a quarter late.
const LOOKS: u32 = 4;
const LOOK_SHORTEST: Duration = Duration::from_millis(10);

/// Written by the two halves of a connection, read by its watch. All in one task: the atomics are for `Send`, not for races, and
/// plain loads and stores are enough.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Reads and writes that moved at least a byte.
    moved: AtomicU64,
    /// Requests that were read and are not answered.
    under_way: AtomicUsize,
    writing_to_client: AtomicBool,
    /// No request will be read any more.
    requests_ended: AtomicBool,
    upstream_open: AtomicBool,
    /// Something went upstream that has no answer (Produce with acks=0), and no answer to anything later has come.
    unacknowledged: AtomicBool,
    /// The last request that waits for its answer did not go up whole.
    cut_off: AtomicBool,
}

impl Progress {
    pub(super) fn moved(&self) {
        let moved = self.moved.load(Ordering::Relaxed);
        self.moved.store(moved.wrapping_add(1), Ordering::Relaxed);
    }

    pub(super) fn begun(&self) {
        self.under_way.store(self.under_way() + 1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self) {
        self.under_way
            .store(self.under_way().saturating_sub(1), Ordering::Relaxed);
    }

    pub(super) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    pub(super) fn requests_ended(&self) {
        self.requests_ended.store(true, Ordering::Relaxed);
    }

    pub(super) fn set_writing_to_client(&self, writing: bool) {
        self.writing_to_client.store(writing, Ordering::Relaxed);
    }

    pub(super) fn set_upstream_open(&self, open: bool) {
        self.upstream_open.store(open, Ordering::Relaxed);
    }

    pub(super) fn upstream_open(&self) -> bool {
        self.upstream_open.load(Ordering::Relaxed)
    }

    pub(super) fn set_unacknowledged(&self, unacknowledged: bool) {
        self.unacknowledged.store(unacknowledged, Ordering::Relaxed);
    }

    pub(super) fn unacknowledged(&self) -> bool {
        self.unacknowledged.load(Ordering::Relaxed)
    }

    /// The request that was queued last will have no answer, and none is queued after it.
    pub(super) fn cut_off(&self) {
        self.cut_off.store(true, Ordering::Relaxed);
    }

    /// Resolves when the client has all the answers that can come. Nobody is woken for it: whoever waits is to be polled after
    /// the half that answers, in the same task.
    pub(super) async fn nothing_more_can_come(&self) {
        poll_fn(|_| {
            let over = self.cut_off.load(Ordering::Relaxed)
                && self.under_way.load(Ordering::Relaxed) == 1
                && !self.writing_to_client.load(Ordering::Relaxed);
            if over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Nothing moving is as it should be while a request waits for its answer, a parked JoinGroup for minutes. It is not when
    /// the client does not take what it asked for, or is gone.
    fn may_rest(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0
            && !self.writing_to_client.load(Ordering::Relaxed)
            && !self.requests_ended.load(Ordering::Relaxed)
    }

    /// Resolves when nothing has moved for `idle_timeout` that should have.
    pub(super) async fn watch(&self, idle_timeout: Duration) -> End {
        let look = (idle_timeout / LOOKS).max(LOOK_SHORTEST);
        let mut moved = self.moved.load(Ordering::Relaxed);
        let mut since = Instant::now();
        loop {
            tokio::time::sleep(look).await;
            let now = self.moved.load(Ordering::Relaxed);
            if now != moved || self.may_rest() {
                moved = now;
                since = Instant::now();
            } else if since.elapsed() >= idle_timeout {
                return self.stood_still(idle_timeout);
            }
        }
    }

    fn stood_still(&self, idle_timeout: Duration) -> End {
        if self.writing_to_client.load(Ordering::Relaxed) {
            let detail = format!("the client did not take its answers for {idle_timeout:?}");
            End::new(CloseReason::ClientStalled, detail)
        } else {
            End::new(CloseReason::IdleTimeout, format!("nothing came for {idle_timeout:?}"))
        }
    }
}

/// Writes all, noting each step, so that a slow peer is not taken for one that stands still.
pub(super) async fn write_all(to: &TcpStream, mut bytes: &[u8], behind: Behind, progress: &Progress) -> io::Result<()> {
    while !bytes.is_empty() {
        poll_fn(|cx| to.poll_write_ready(cx)).await?;
        match try_write(to, bytes, behind) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                progress.moved();
                bytes = bytes.get(n..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(40);

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_rests_is_ended_and_one_that_waits_is_not() {
        let progress = Progress::default();
        let start = Instant::now();
        let end = progress.watch(IDLE).await;
        assert_eq!(end.reason, CloseReason::IdleTimeout);
        assert!(
            start.elapsed() >= IDLE && start.elapsed() <= IDLE * 5 / 4,
            "{:?}",
            start.elapsed()
        );

        progress.begun();
        tokio::time::timeout(IDLE * 100, progress.watch(IDLE))
            .await
            .expect_err("a parked request may wait");

        progress.set_writing_to_client(true);
        assert_eq!(progress.watch(IDLE).await.reason, CloseReason::ClientStalled);
        progress.set_writing_to_client(false);

        progress.requests_ended();
        assert_eq!(
            progress.watch(IDLE).await.reason,
            CloseReason::IdleTimeout,
            "a client that is gone does not wait"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn every_step_of_a_slow_client_counts() {
        let progress = Progress::default();
        let slow = async {
            for _ in 0..100 {
                tokio::time::sleep(IDLE / 2).await;
                progress.moved();
            }
        };
        tokio::select! {
            end = progress.watch(IDLE) => panic!("{end:?}"),
            () = slow => {}
        }
    }
}
