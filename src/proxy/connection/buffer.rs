//! The bytes that a connection holds of one direction: read once, looked at in place, written from where they stand.
//!
//! Most connections hold nothing most of the time, so an empty buffer has no memory: it is had for each look at the socket and
//! goes back to its thread if nothing is there.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// What a buffer begins with. Most connections of a group member never need more, and of a large frame, which the kernel moves,
/// no more than this is copied.
const FIRST_SIZE: usize = 4 * 1024;
const GROWTH: usize = 4;

/// What a thread keeps for the next look.
const SPARES_MAX: usize = 4;
const SPARE_SIZE_MAX: usize = 64 * 1024;

thread_local! {
    static SPARES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

fn take_spare(size: usize) -> Vec<u8> {
    let spare = SPARES.with_borrow_mut(|spares| {
        let at = spares.iter().position(|spare| spare.len() == size)?;
        Some(spares.swap_remove(at))
    });
    spare.unwrap_or_else(|| vec![0; size])
}

fn give_back(bytes: Vec<u8>) {
    SPARES.with_borrow_mut(|spares| {
        if spares.len() < SPARES_MAX && (1..=SPARE_SIZE_MAX).contains(&bytes.len()) {
            spares.push(bytes);
        }
    });
}

/// A window of bytes that grows, when reads fill it, up to its limit.
#[derive(Debug)]
pub(super) struct Buffer {
    /// Without any while the buffer is empty.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// What it is read into, at least.
    size: usize,
    max: usize,
    /// The last read took all the room there was: more is waiting.
    read_all_room: bool,
}

impl Buffer {
    /// A buffer of at most `max` bytes.
    pub(super) fn new(max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            end: 0,
            size: FIRST_SIZE.min(max),
            max,
            read_all_room: false,
        }
    }

    /// The most it can hold.
    pub(super) const fn max(&self) -> usize {
        self.max
    }

    pub(super) const fn len(&self) -> usize {
        self.end - self.start
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(super) const fn is_full(&self) -> bool {
        self.len() >= self.max
    }

    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// Gives up the first `n` bytes.
    pub(super) fn consume(&mut self, n: usize) {
        self.start += n.min(self.len());
        self.release_if_empty();
    }

    /// Begins anew with a small size: what was waiting has gone by on another way.
    pub(super) fn shrink(&mut self) {
        self.size = FIRST_SIZE.min(self.max);
        self.read_all_room = false;
    }

    /// Reads once, as much as there is room for; 0 is the end of the stream. Nothing is lost if the future is dropped.
    /// The buffer must not be full: a full one reads nothing, which looks like the end of the stream.
    pub(super) async fn fill(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        poll_fn(|cx| self.poll_fill(reader, cx)).await
    }

    /// [`Self::fill`] as a poll.
    pub(super) fn poll_fill(
        &mut self,
        reader: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        debug_assert!(!self.is_full(), "a full buffer is emptied before it is filled");
        let read = self.poll_read(Pin::new(reader), cx);
        self.release_if_empty();
        read
    }

    fn poll_read(&mut self, reader: Pin<&mut impl AsyncRead>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.make_room();
        let mut room = ReadBuf::new(&mut self.bytes[self.end..]);
        ready!(reader.poll_read(cx, &mut room))?;
        let n = room.filled().len();
        self.read_all_room = room.remaining() == 0;
        self.end += n;
        Poll::Ready(Ok(n))
    }

    fn make_room(&mut self) {
        let out_of_room = self.start == 0 && self.end > 0 && self.end == self.bytes.len();
        if self.size < self.max && (self.read_all_room || out_of_room) {
            self.read_all_room = false;
            self.size = (self.size * GROWTH).min(self.max);
        }
        if self.bytes.is_empty() {
            self.bytes = take_spare(self.size);
        } else if self.bytes.len() < self.size {
            self.bytes.resize(self.size, 0);
        }
        if self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    fn release_if_empty(&mut self) {
        if self.is_empty() {
            self.start = 0;
            self.end = 0;
            give_back(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn fill(buffer: &mut Buffer, bytes: &[u8]) -> usize {
        let mut reader = bytes;
        buffer.fill(&mut reader).await.expect("slices do not fail")
    }

    #[tokio::test]
    async fn it_grows_only_when_reads_fill_it_and_never_beyond_its_limit() {
        let stream = vec![7; 1 << 20];
        let mut buffer = Buffer::new(64 * 1024);
        assert_eq!(fill(&mut buffer, &stream[..100]).await, 100);
        assert_eq!(buffer.bytes.len(), FIRST_SIZE);
        buffer.consume(100);
        assert_eq!(buffer.bytes.capacity(), 0, "an empty buffer has memory");
        let mut reader = stream.as_slice();
        let mut total = 0;
        while total < 1_000_000 {
            total += buffer.fill(&mut reader).await.expect("slices do not fail");
            assert!(buffer.len() <= 64 * 1024);
            buffer.consume(buffer.len());
        }
        assert_eq!(buffer.size, 64 * 1024);
        buffer.shrink();
        fill(&mut buffer, &stream).await;
        assert_eq!(buffer.len(), FIRST_SIZE);
    }

    #[tokio::test]
    async fn waiting_takes_no_memory() {
        let (mut near, mut far) = tokio::io::duplex(64);
        let mut buffer = Buffer::new(64 * 1024);
        let waited = std::time::Duration::from_millis(1);
        tokio::time::timeout(waited, buffer.fill(&mut near))
            .await
            .expect_err("nothing is there");
        assert_eq!(buffer.bytes.capacity(), 0);
        tokio::io::AsyncWriteExt::write_all(&mut far, b"half a frame")
            .await
            .expect("there is room");
        assert_eq!(buffer.fill(&mut near).await.expect("bytes"), 12);
        drop(far);
        assert_eq!(buffer.fill(&mut near).await.expect("the end"), 0);
        assert_eq!(buffer.filled(), b"half a frame");
    }

    #[tokio::test]
    async fn what_is_not_consumed_stays_in_order_through_moves_and_growth() {
        let stream: Vec<u8> = (0..200_000_u32).map(|n| u8::try_from(n % 251).unwrap_or(0)).collect();
        let mut reader = stream.as_slice();
        let mut buffer = Buffer::new(20_000);
        let mut seen = Vec::new();
        loop {
            if !buffer.is_full() && buffer.fill(&mut reader).await.expect("slices do not fail") == 0 {
                break;
            }
            let take = (buffer.len() / 2).max(1);
            seen.extend_from_slice(&buffer.filled()[..take]);
            buffer.consume(take);
        }
        seen.extend_from_slice(buffer.filled());
        assert!(seen == stream);
    }
}
