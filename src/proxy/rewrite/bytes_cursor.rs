//! Reads Kafka's primitive types from bytes that are held whole. Every read is checked; nothing is allocated from a length.

/// An answer that does not read as its schema says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("answer of the upstream cannot be read: {what} at byte {at} of the body")]
pub struct Malformed {
    pub what: &'static str,
    /// Counted from the first byte after the response head.
    pub at: usize,
}

impl Malformed {
    /// For a part of the body that starts at `offset`.
    pub(super) fn behind(self, offset: usize) -> Self {
        Self {
            at: self.at + offset,
            ..self
        }
    }
}

/// How lengths of strings and arrays are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lengths {
    /// int16 before strings, int32 before arrays.
    Classic,
    /// An unsigned varint of the length plus one, as in flexible versions (KIP-482), whose structs end in tagged fields.
    Compact,
}

impl Lengths {
    pub(super) fn flexible_since(first: i16, version: i16) -> Self {
        if version >= first { Self::Compact } else { Self::Classic }
    }
}

/// A compact array without elements.
pub(super) const EMPTY_ARRAY: u8 = 1;

#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    lengths: Lengths,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], lengths: Lengths) -> Self {
        Self { bytes, at: 0, lengths }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn lengths(&self) -> Lengths {
        self.lengths
    }

    pub(super) fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { what, at: self.at }
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let taken = self.bytes[self.at..]
            .get(..len)
            .ok_or_else(|| self.malformed("the body ends early"))?;
        self.at += len;
        Ok(taken)
    }

    pub(super) fn skip(&mut self, len: usize) -> Result<(), Malformed> {
        self.take(len).map(|_| ())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn i8(&mut self) -> Result<i8, Malformed> {
        self.array().map(i8::from_be_bytes)
    }

    pub(super) fn i16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn unsigned_varint(&mut self) -> Result<u32, Malformed> {
        let mut varint = Varint::default();
        loop {
            let [byte] = self.array()?;
            if let Some(value) = varint.push(byte).map_err(|what| self.malformed(what))? {
                return Ok(value);
            }
        }
    }

    /// A string or null.
    pub(super) fn string(&mut self) -> Result<Option<&'a str>, Malformed> {
        let len = match self.lengths {
            Lengths::Classic => usize::try_from(self.i16()?).ok(),
            Lengths::Compact => (self.unsigned_varint()? as usize).checked_sub(1),
        };
        let Some(len) = len else { return Ok(None) };
        let malformed = self.malformed("a string is not UTF-8");
        std::str::from_utf8(self.take(len)?).map(Some).map_err(|_| malformed)
    }

    /// The number of elements of an array; null counts as empty.
    pub(super) fn array_len(&mut self) -> Result<usize, Malformed> {
        let len = match self.lengths {
            Lengths::Classic => usize::try_from(self.i32()?).unwrap_or(0),
            Lengths::Compact => (self.unsigned_varint()? as usize).saturating_sub(1),
        };
        if len > self.bytes.len() - self.at {
            return Err(self.malformed("an array is longer than the body"));
        }
        Ok(len)
    }

    /// Steps over the tagged fields at the end of a struct, where the version has them.
    pub(super) fn skip_tags(&mut self) -> Result<(), Malformed> {
        if self.lengths == Lengths::Classic {
            return Ok(());
        }
        for _ in 0..self.unsigned_varint()? {
            self.unsigned_varint()?;
            let size = self.unsigned_varint()? as usize;
            self.skip(size)?;
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
    /// At most five bytes, as in Kafka's `ByteUtils`.
    pub(super) const MAX_WIDTH: u32 = 5;

    /// Takes the next byte; the value once it is the last one.
    pub(super) fn push(&mut self, byte: u8) -> Result<Option<u32>, &'static str> {
        let bits = u32::from(byte & 0x7f);
        if self.width >= Self::MAX_WIDTH || (self.width == Self::MAX_WIDTH - 1 && bits > 0x0f) {
            return Err("a varint is longer than 32 bits");
        }
        self.value |= bits << (7 * self.width);
        self.width += 1;
        Ok((byte & 0x80 == 0).then_some(self.value))
    }

    /// Bytes taken so far.
    pub(super) fn width(self) -> u32 {
        self.width
    }
}
