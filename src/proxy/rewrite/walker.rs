//! Finds the addresses in an answer that arrives in chunks of any size, without looking at what it steps over.
//!
//! The walker runs over a table of the schema's fields. It keeps nothing of the bytes: its state is a position in the
//! table, at most a few levels deep, so memory does not grow with the answer. Only flexible versions are walked:
//! lengths are unsigned varints of the length plus one, and every struct ends in tagged fields.

use super::Malformed;
use crate::wire::reader::ReadError;
use crate::wire::schema::{Field, Kind, Schema};

/// What the walker stopped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The id of the tagged field with the addresses was read; it took `width` bytes, the last one just before the
    /// position.
    Tag { width: u32 },
    /// The content of that field is next: the bytes of [`Walker::skip_hint`].
    TagContent,
    /// The array with the addresses is next; at least its first byte is there.
    Array,
}

/// A struct, or an array of structs, that the walker is in.
#[derive(Debug, Clone, Copy)]
struct Level {
    fields: &'static [Field],
    /// Index of the next field.
    next: usize,
    /// Elements that follow this one.
    more: usize,
    /// Tagged fields of this struct that are still to come.
    tags: u32,
}

impl Level {
    fn new(fields: &'static [Field], elements: usize) -> Self {
        Self {
            fields,
            next: 0,
            more: elements.saturating_sub(1),
            tags: 0,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// At the next field of the innermost level, or behind its last one.
    Fields,
    /// At the next tagged field of the innermost level, or behind its last one.
    Tags,
    /// In bytes that do not matter.
    Skip {
        left: usize,
        then: Then,
    },
    Varint {
        varint: Varint,
        of: VarintOf,
    },
    /// Behind the outermost struct.
    Done,
}

#[derive(Debug, Clone, Copy)]
enum Then {
    Fields,
    Tags,
}

#[derive(Debug, Clone, Copy)]
enum VarintOf {
    /// Of a string, bytes or records.
    BlobLen,
    /// Of an array of values of so many bytes.
    ValuesLen(usize),
    StructsLen(&'static [Field]),
    TagCount,
    Tag,
    TagSize {
        addresses: bool,
    },
}

impl VarintOf {
    fn start(self) -> State {
        State::Varint {
            varint: Varint::default(),
            of: self,
        }
    }
}

/// The position in an answer.
#[derive(Debug, Clone)]
pub(super) struct Walker {
    version: i16,
    /// The field of the outermost struct that holds the addresses.
    addresses: Option<&'static Field>,
    levels: Vec<Level>,
    state: State,
    /// Bytes of the body.
    len: usize,
    /// Bytes of the body that lie behind.
    walked: usize,
}

/// Levels of the deepest schema here.
const DEPTH: usize = 4;

impl Walker {
    /// At the start of a body of `len` bytes, on the way to the field of that name. The version is a flexible one.
    pub(super) fn new(schema: &'static Schema, version: i16, addresses: &str, len: usize) -> Self {
        let mut levels = Vec::with_capacity(DEPTH);
        levels.push(Level::new(schema.fields, 1));
        let mut fields = schema.fields.iter();
        Self {
            version,
            addresses: fields.find(|field| field.name == addresses && field.is_in(version)),
            levels,
            state: State::Fields,
            len,
            walked: 0,
        }
    }

    /// Bytes of the body that are still to come.
    pub(super) fn left(&self) -> usize {
        self.len - self.walked
    }

    /// Whether all fields have been walked.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// How many of the next bytes the walker does not look at.
    pub(super) fn skip_hint(&self) -> usize {
        match self.state {
            State::Skip { left, .. } => left,
            _ => 0,
        }
    }

    /// Walks on in `chunk` from `at` until there is something to report (`at` is where) or the chunk is used up (None).
    pub(super) fn advance(&mut self, chunk: &[u8], at: &mut usize) -> Result<Option<Event>, Malformed> {
        if chunk.len() - *at > self.left() {
            return Err(Malformed::TrailingBytes);
        }
        loop {
            let next = chunk.get(*at).copied();
            match (self.state, next) {
                (State::Skip { left, then }, _) => {
                    let taken = left.min(chunk.len() - *at);
                    *at += taken;
                    self.skip(taken);
                    if taken < left {
                        return Ok(None);
                    }
                    self.state = match then {
                        Then::Fields => State::Fields,
                        Then::Tags => State::Tags,
                    };
                }
                (State::Varint { mut varint, of }, Some(byte)) => {
                    *at += 1;
                    self.walked += 1;
                    match varint.push(byte)? {
                        None => self.state = State::Varint { varint, of },
                        Some(value) => {
                            if let Some(event) = self.read(value, varint.width, of)? {
                                return Ok(Some(event));
                            }
                        }
                    }
                }
                (State::Varint { .. }, None) => return Ok(None),
                (State::Fields, _) => {
                    let Some(field) = self.next_field() else {
                        self.state = VarintOf::TagCount.start();
                        continue;
                    };
                    let addresses = self.is_addresses(field);
                    if addresses && next.is_none() {
                        return Ok(None);
                    }
                    self.enter(field)?;
                    if addresses {
                        return Ok(Some(Event::Array));
                    }
                }
                (State::Tags, _) => self.enter_tag(),
                (State::Done, _) if self.left() > 0 => return Err(Malformed::TrailingBytes),
                (State::Done, _) => return Ok(None),
            }
        }
    }

    /// Steps over bytes of the part that [`Self::skip_hint`] tells.
    pub(super) fn skip(&mut self, bytes: usize) {
        if let State::Skip { left, .. } = &mut self.state {
            let bytes = bytes.min(*left);
            *left -= bytes;
            self.walked += bytes;
        }
    }

    /// The next field of the innermost level that stands in this version outside of the tagged fields.
    fn next_field(&mut self) -> Option<&'static Field> {
        let level = self.levels.last_mut()?;
        let mut rest = level.fields[level.next..].iter();
        let skipped = rest.position(|field| field.tag.is_none() && field.is_in(self.version));
        level.next = skipped.map_or(level.fields.len(), |skipped| level.next + skipped);
        level.fields.get(level.next)
    }

    fn pass_field(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.next += 1;
        }
    }

    fn is_addresses(&self, field: &Field) -> bool {
        self.levels.len() == 1 && self.addresses.is_some_and(|addresses| std::ptr::eq(addresses, field))
    }

    fn enter(&mut self, field: &'static Field) -> Result<(), Malformed> {
        self.pass_field();
        match field.kind {
            Kind::String | Kind::Bytes | Kind::Records => self.state = VarintOf::BlobLen.start(),
            // No answer with addresses has an array of texts or arrays.
            Kind::Array(value) => self.state = VarintOf::ValuesLen(value.fixed_size().unwrap_or(0)).start(),
            Kind::Structs(fields) => self.state = VarintOf::StructsLen(fields).start(),
            Kind::Struct(fields) => self.levels.push(Level::new(fields, 1)),
            fixed => {
                let mut size = fixed.fixed_size().unwrap_or(0);
                while let Some(more) = self.next_field().and_then(|field| field.kind.fixed_size()) {
                    size += more;
                    self.pass_field();
                }
                self.skip_over(size, Then::Fields)?;
            }
        }
        Ok(())
    }

    /// Takes a varint that is complete. Lengths of blobs and arrays are written plus one, with 0 for null.
    fn read(&mut self, value: u32, width: u32, of: VarintOf) -> Result<Option<Event>, Malformed> {
        let len = (value as usize).saturating_sub(1);
        match of {
            VarintOf::BlobLen => self.skip_over(len, Then::Fields)?,
            VarintOf::ValuesLen(size) => self.skip_over(len.saturating_mul(size), Then::Fields)?,
            VarintOf::StructsLen(fields) => {
                // Every element takes at least the byte that counts its tagged fields.
                self.check(len)?;
                self.state = State::Fields;
                if len > 0 {
                    self.levels.push(Level::new(fields, len));
                }
            }
            VarintOf::TagCount => {
                self.check(value as usize)?;
                if let Some(level) = self.levels.last_mut() {
                    level.tags = value;
                }
                self.state = State::Tags;
            }
            VarintOf::Tag => {
                let addresses = self.levels.len() == 1 && self.addresses.is_some_and(|field| field.tag == Some(value));
                self.state = VarintOf::TagSize { addresses }.start();
                return Ok(addresses.then_some(Event::Tag { width }));
            }
            VarintOf::TagSize { addresses } => {
                self.skip_over(value as usize, Then::Tags)?;
                return Ok(addresses.then_some(Event::TagContent));
            }
        }
        Ok(None)
    }

    fn enter_tag(&mut self) {
        let Some(level) = self.levels.last_mut() else {
            self.state = State::Done;
            return;
        };
        if level.tags > 0 {
            level.tags -= 1;
            self.state = VarintOf::Tag.start();
            return;
        }
        if level.more > 0 {
            level.more -= 1;
            level.next = 0;
        } else {
            self.levels.pop();
        }
        self.state = if self.levels.is_empty() {
            State::Done
        } else {
            State::Fields
        };
    }

    fn skip_over(&mut self, bytes: usize, then: Then) -> Result<(), Malformed> {
        self.check(bytes)?;
        self.state = State::Skip { left: bytes, then };
        Ok(())
    }

    fn check(&self, bytes: usize) -> Result<(), Malformed> {
        if bytes > self.left() {
            return Err(ReadError::Truncated.into());
        }
        Ok(())
    }
}

/// An unsigned varint that arrives byte by byte, least significant seven bits first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Varint {
    value: u32,
    width: u32,
}

impl Varint {
    /// Bytes of the longest, as in Kafka's `ByteUtils`.
    pub(super) const MAX_WIDTH: u32 = 5;

    /// Takes the next byte; the value once it is the last one.
    fn push(&mut self, byte: u8) -> Result<Option<u32>, ReadError> {
        let bits = u32::from(byte & 0x7f);
        if self.width == Self::MAX_WIDTH - 1 && byte > 0x0f {
            return Err(ReadError::Varint);
        }
        self.value |= bits << (7 * self.width);
        self.width += 1;
        Ok((byte & 0x80 == 0).then_some(self.value))
    }
}
