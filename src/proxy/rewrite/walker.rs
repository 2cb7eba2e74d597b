//! Finds the addresses in an answer that arrives in chunks of any size, without looking at what it steps over.
//!
//! The walker runs over a table of the schema's fields. It keeps nothing of the bytes: its state is a position in the table, at most
//! a few levels deep, so memory does not grow with the answer. Only flexible versions are walked: lengths are unsigned varints
//! of the length plus one, and every struct ends in tagged fields.

use super::bytes_cursor::{Malformed, Varint};

/// One field of a struct, by how it is stepped over.
#[derive(Debug)]
pub(super) enum Field {
    /// Numbers and ids of this many bytes, not looked at.
    Fixed(usize),
    /// A string, bytes or records, maybe null.
    Blob,
    /// An array of structs.
    Array(&'static [Self]),
    Struct(&'static [Self]),
    /// An array of structs that holds the addresses.
    Addresses(&'static [Self]),
}

/// The fields of an answer.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) fields: &'static [Field],
    /// The tagged field of the outermost struct that holds the addresses, if they are in one.
    pub(super) addresses_tag: Option<u32>,
}

/// What the walker stopped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The id of the tagged field with the addresses was read; it took `width` bytes, the last one just before the position.
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
    BlobLen,
    ArrayLen(&'static [Field]),
    TagCount,
    Tag,
    TagSize { addresses: bool },
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
    schema: &'static Schema,
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
    /// At the start of a body of `len` bytes.
    pub(super) fn new(schema: &'static Schema, len: usize) -> Self {
        let mut levels = Vec::with_capacity(DEPTH);
        levels.push(Level::new(schema.fields, 1));
        Self {
            schema,
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

    pub(super) fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { what, at: self.walked }
    }

    /// Walks on in `chunk` from `at` until there is something to report (`at` is where) or the chunk is used up (None).
    pub(super) fn advance(&mut self, chunk: &[u8], at: &mut usize) -> Result<Option<Event>, Malformed> {
        if chunk.len() - *at > self.left() {
            return Err(self.malformed("more bytes than the frame has"));
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
                    match varint.push(byte).map_err(|what| self.malformed(what))? {
                        None => self.state = State::Varint { varint, of },
                        Some(value) => {
                            if let Some(event) = self.read(value, varint.width(), of)? {
                                return Ok(Some(event));
                            }
                        }
                    }
                }
                (State::Varint { .. }, None) => return Ok(None),
                (State::Fields, _) => match self.field() {
                    Some(Field::Addresses(_)) if next.is_none() => return Ok(None),
                    Some(field) => {
                        if let Some(event) = self.enter(field)? {
                            return Ok(Some(event));
                        }
                    }
                    None => self.state = VarintOf::TagCount.start(),
                },
                (State::Tags, _) => self.enter_tag(),
                (State::Done, _) if self.left() > 0 => return Err(self.malformed("bytes behind its last field")),
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

    fn field(&self) -> Option<&'static Field> {
        self.levels.last().and_then(|level| level.fields.get(level.next))
    }

    fn enter(&mut self, field: &'static Field) -> Result<Option<Event>, Malformed> {
        if let Some(level) = self.levels.last_mut() {
            level.next += 1;
        }
        match *field {
            Field::Fixed(size) => self.skip_over(size, Then::Fields)?,
            Field::Blob => self.state = VarintOf::BlobLen.start(),
            Field::Array(fields) => self.state = VarintOf::ArrayLen(fields).start(),
            Field::Struct(fields) => self.levels.push(Level::new(fields, 1)),
            Field::Addresses(fields) => {
                self.state = VarintOf::ArrayLen(fields).start();
                return Ok(Some(Event::Array));
            }
        }
        Ok(None)
    }

    /// Takes a varint that is complete. Lengths of blobs and arrays are written plus one, with 0 for null.
    fn read(&mut self, value: u32, width: u32, of: VarintOf) -> Result<Option<Event>, Malformed> {
        let len = (value as usize).saturating_sub(1);
        match of {
            VarintOf::BlobLen => self.skip_over(len, Then::Fields)?,
            VarintOf::ArrayLen(fields) => {
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
                let addresses = self.levels.len() == 1 && self.schema.addresses_tag == Some(value);
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
            return Err(self.malformed("a length runs past the end"));
        }
        Ok(())
    }
}
