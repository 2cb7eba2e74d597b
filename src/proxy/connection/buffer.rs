//! The bytes that a connection holds of one direction: read once, looked at in place, written from where they stand.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// What a connection starts with. Most connections of a group member never need more.
const FIRST_SIZE: usize = 8 * 1024;
const GROWTH: usize = 4;

/// A window of bytes that grows, when reads fill it, up to its limit.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    max: usize,
    /// The last read took all the room there was: more is waiting.
    read_all_room: bool,
}

impl Buffer {
    /// A buffer of at most `max` bytes.
    pub(super) fn new(max: usize) -> Self {
        Self {
            bytes: vec![0; FIRST_SIZE.min(max)],
            start: 0,
            end: 0,
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
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Reads once, as much as there is room for; 0 is the end of the stream. Nothing is lost if the future is dropped.
    /// The buffer must not be full: a full one reads nothing, which looks like the end of the stream.
    pub(super) async fn fill(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        debug_assert!(!self.is_full(), "a full buffer is emptied before it is filled");
        self.make_room();
        let room = self.bytes.len() - self.end;
        let n = reader.read(&mut self.bytes[self.end..]).await?;
        self.end += n;
        self.read_all_room = n == room;
        Ok(n)
    }

    fn make_room(&mut self) {
        let out_of_room = self.end == self.bytes.len();
        if self.bytes.len() < self.max && (self.read_all_room || (out_of_room && self.start == 0)) {
            self.read_all_room = false;
            let size = (self.bytes.len() * GROWTH).min(self.max);
            self.bytes.resize(size, 0);
        }
        if self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
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
        let mut reader = stream.as_slice();
        let mut total = 0;
        while total < 1_000_000 {
            total += buffer.fill(&mut reader).await.expect("slices do not fail");
            assert!(buffer.len() <= 64 * 1024);
            buffer.consume(buffer.len());
        }
        assert_eq!(buffer.bytes.len(), 64 * 1024);
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
