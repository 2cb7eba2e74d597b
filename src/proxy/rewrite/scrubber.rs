//! Takes the addresses out of an answer that is too large to be held, as its bytes stream by.
//!
//! The length of a frame goes out first, so nothing may grow or shrink. Where an answer carries KIP-951 endpoints,
//!
//! * the tagged field of Produce and Fetch gets another id, which no client knows, and zeros for content;
//! * the array of ShareFetch and ShareAcknowledge, the last field of the answer, becomes an empty one and a tagged
//!   field that no client knows, which fills the frame with zeros up to its end. Tagged fields that the upstream put
//!   there are lost with it; Kafka defines none.
//!
//! A client that finds no endpoints asks for Metadata, as clients did before KIP-951.

use super::splice::EMPTY_ARRAY;
use super::walker::{Event, Varint, Walker};
use super::{Malformed, RewriteError, node_endpoints};
use crate::wire::reader::ReadError;

/// The id of the tagged field that stands where the endpoints stood: the highest that takes one byte.
const UNUSED_TAG: u8 = 0x7f;

/// One answer on its way to a client.
#[derive(Debug)]
pub struct EndpointScrubber {
    walker: Walker,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Nothing found yet, or all done.
    Walking,
    /// In the content of the tagged field.
    WipingTag,
    /// Writing over the array and all that follows: this much of the filler has been written.
    Filling { filler: Filler, written: usize },
}

impl EndpointScrubber {
    /// For an answer of `len` bytes after the response head. None if this API has no endpoints in this version, so
    /// that the answer can go through as it is.
    #[must_use]
    pub fn new(api_key: i16, version: i16, len: usize) -> Option<Self> {
        let schema = node_endpoints::schema(api_key, version)?;
        Some(Self {
            walker: Walker::new(schema, version, node_endpoints::FIELD, len),
            state: State::Walking,
        })
    }

    /// Changes the next bytes of the body in place; chunks may be cut anywhere.
    ///
    /// # Errors [`RewriteError::Malformed`] if the answer cannot be read, or if the last of its bytes is here and it
    /// is not complete. Nothing of this chunk may be sent then.
    pub fn feed(&mut self, chunk: &mut [u8]) -> Result<(), RewriteError> {
        let mut at = 0;
        loop {
            match &mut self.state {
                State::Walking => {}
                State::WipingTag => {
                    let content = self.walker.skip_hint();
                    let here = content.min(chunk.len() - at);
                    chunk[at..at + here].fill(0);
                    if here == content {
                        self.state = State::Walking;
                    }
                }
                State::Filling { filler, written } => {
                    if chunk.len() - at > filler.len - *written {
                        return Err(Malformed::TrailingBytes.into());
                    }
                    filler.write(*written, &mut chunk[at..]);
                    *written += chunk.len() - at;
                    return Ok(());
                }
            }
            match self.walker.advance(chunk, &mut at)? {
                Some(Event::Tag { width }) => rename_tag(chunk, at, width),
                Some(Event::TagContent) => self.state = State::WipingTag,
                Some(Event::Array) => self.fill_from(chunk[at])?,
                None => break,
            }
        }
        if self.walker.left() == 0 && !self.walker.is_done() {
            return Err(ReadError::Truncated.into());
        }
        Ok(())
    }

    /// How many of the next bytes are certain to stay as they are (records, mostly): they may go by on another way, if
    /// [`Self::pass`] is told.
    #[must_use]
    pub fn skip_hint(&self) -> usize {
        match self.state {
            State::Walking => self.walker.skip_hint(),
            State::WipingTag | State::Filling { .. } => 0,
        }
    }

    /// Notes that the next bytes, at most [`Self::skip_hint`] of them, have gone by without [`Self::feed`].
    pub fn pass(&mut self, bytes: usize) {
        self.walker.skip(bytes.min(self.skip_hint()));
    }

    /// Decides at the first byte of the array what becomes of it.
    fn fill_from(&mut self, first: u8) -> Result<(), Malformed> {
        if first > EMPTY_ARRAY {
            let filler = Filler::new(self.walker.left()).ok_or(ReadError::Truncated)?;
            self.state = State::Filling { filler, written: 0 };
        }
        Ok(())
    }
}

/// Gives the tagged field whose id ends just before `at` an id that clients do not know, in as many bytes.
fn rename_tag(chunk: &mut [u8], at: usize, width: u32) {
    // The earlier bytes of an id that is padded may be gone already, so only the last one changes. In the longest
    // form its bits are the highest of the id, which stays below 2^31: some clients keep ids as signed numbers.
    let last = if width < Varint::MAX_WIDTH { UNUSED_TAG } else { 0x07 };
    chunk[at - 1] = last;
}

/// An empty array and one tagged field of zeros, of a given length altogether.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filler {
    head: [u8; 8],
    head_len: usize,
    len: usize,
}

impl Filler {
    /// None if it does not fit into `len`.
    pub(super) fn new(len: usize) -> Option<Self> {
        const BEFORE_SIZE: usize = 3;
        // The fewest bytes that can hold the size they leave. Just above what one byte less can hold, the size is
        // padded.
        let width = (1..=Varint::MAX_WIDTH as usize)
            .find(|width| len.saturating_sub(BEFORE_SIZE + width) < 1 << (7 * width))?;
        let mut size = len.checked_sub(BEFORE_SIZE + width)?;
        let mut head = [0; 8];
        head[..BEFORE_SIZE].copy_from_slice(&[EMPTY_ARRAY, 1, UNUSED_TAG]);
        for byte in &mut head[BEFORE_SIZE..BEFORE_SIZE + width] {
            *byte = (size & 0x7f) as u8 | 0x80;
            size >>= 7;
        }
        head[BEFORE_SIZE + width - 1] &= 0x7f;
        Some(Self {
            head,
            head_len: BEFORE_SIZE + width,
            len,
        })
    }

    /// Writes the part that starts `from` bytes behind its beginning.
    pub(super) fn write(&self, from: usize, out: &mut [u8]) {
        out.fill(0);
        if let Some(head) = self.head[..self.head_len].get(from..) {
            let here = head.len().min(out.len());
            out[..here].copy_from_slice(&head[..here]);
        }
    }
}
