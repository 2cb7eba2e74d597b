//! A cursor over bytes from a peer: every read is checked against what remains, nothing panics, nothing is allocated.
//!
//! Lengths and nulls follow Kafka's rules: legacy lengths are big-endian and -1 is null; compact lengths are unsigned
//! varints of one more than the length and 0 is null.

use super::codec::WireError;

/// Why a read failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("more bytes expected than there are")]
    Truncated,
    #[error("a negative length")]
    NegativeLength,
    #[error("a varint of more than 32 bits")]
    Varint,
    #[error("null where no null may be")]
    Null,
    #[error("text of more than 32767 bytes")]
    LongText,
    #[error("text that is not UTF-8")]
    NotUtf8,
    #[error("a structure that is neither there nor null")]
    Presence,
    #[error("tags that do not ascend, or beyond 2^31")]
    TagOrder,
}

impl From<ReadError> for WireError {
    fn from(error: ReadError) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// A position in a byte slice.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// How many bytes were read so far.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// How many bytes are left.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], ReadError> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let taken = rest.get(..len).ok_or(ReadError::Truncated)?;
        self.position += len;
        Ok(taken)
    }

    /// Steps over `len` bytes.
    pub fn skip(&mut self, len: usize) -> Result<(), ReadError> {
        self.take(len).map(drop)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, ReadError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// One byte; anything but 0 is true, as in Kafka.
    pub fn bool(&mut self) -> Result<bool, ReadError> {
        self.u8().map(|byte| byte != 0)
    }

    pub fn i8(&mut self) -> Result<i8, ReadError> {
        self.array().map(i8::from_be_bytes)
    }

    pub fn i16(&mut self) -> Result<i16, ReadError> {
        self.array().map(i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, ReadError> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, ReadError> {
        self.array().map(i64::from_be_bytes)
    }

    /// The 16 bytes of a topic id or another uuid.
    pub fn uuid(&mut self) -> Result<uuid::Uuid, ReadError> {
        self.array().map(uuid::Uuid::from_bytes)
    }

    /// Whether a structure that may be null is there. Kafka writes 1 and -1, and takes any number for one of them; kafka-protocol
    /// takes 1 alone for a structure, so other numbers that are not negative are refused.
    pub fn presence(&mut self) -> Result<bool, ReadError> {
        match self.i8()? {
            1 => Ok(true),
            i8::MIN..=-1 => Ok(false),
            _ => Err(ReadError::Presence),
        }
    }

    /// An unsigned varint of at most 32 bits, in at most five bytes.
    pub fn unsigned_varint(&mut self) -> Result<u32, ReadError> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.u8()?;
            if shift == 28 && byte > 0x0f {
                return Err(ReadError::Varint);
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ReadError::Varint)
    }

    /// The length of a string or null, compact where the version is flexible. Kafka holds compact strings to the longest
    /// that a legacy length can say.
    pub fn string_len(&mut self, flexible: bool) -> Result<Option<usize>, ReadError> {
        let len = if flexible {
            self.compact_len()?
        } else {
            legacy_len(i32::from(self.i16()?))?
        };
        match len {
            Some(len) if len > i16::MAX as usize => Err(ReadError::LongText),
            len => Ok(len),
        }
    }

    /// A length of four bytes, -1 for null: of bytes or of an array.
    pub fn legacy_len(&mut self) -> Result<Option<usize>, ReadError> {
        legacy_len(self.i32()?)
    }

    /// A compact length, 0 for null: of bytes or of an array.
    pub fn compact_len(&mut self) -> Result<Option<usize>, ReadError> {
        let len = self.unsigned_varint()?;
        Ok(len.checked_sub(1).map(|len| len as usize))
    }

    /// The length of an array, compact where the version is flexible.
    pub fn array_len(&mut self, flexible: bool) -> Result<Option<usize>, ReadError> {
        if flexible {
            self.compact_len()
        } else {
            self.legacy_len()
        }
    }

    /// A string or null, compact where the version is flexible; its bytes as they are.
    pub fn nullable_string(&mut self, flexible: bool) -> Result<Option<&'a [u8]>, ReadError> {
        let len = self.string_len(flexible)?;
        len.map(|len| self.take(len)).transpose()
    }

    /// A string, compact where the version is flexible; its bytes as they are.
    pub fn string(&mut self, flexible: bool) -> Result<&'a [u8], ReadError> {
        self.nullable_string(flexible)?.ok_or(ReadError::Null)
    }

    /// Hands each tagged field to `visit`, in order, as its tag and its content. Tags must ascend (as the protocol says)
    /// and stay below 2^31: kafka-protocol keeps them as signed numbers.
    pub fn tagged_fields<E: From<ReadError>>(
        &mut self,
        mut visit: impl FnMut(u32, &'a [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let count = self.unsigned_varint()?;
        let mut lowest = 0;
        for _ in 0..count {
            let tag = self.unsigned_varint()?;
            if tag < lowest || tag > i32::MAX as u32 {
                return Err(ReadError::TagOrder.into());
            }
            lowest = tag + 1;
            let len = self.unsigned_varint()? as usize;
            visit(tag, self.take(len)?)?;
        }
        Ok(())
    }

    /// Steps over tagged fields.
    pub fn skip_tagged_fields(&mut self) -> Result<(), ReadError> {
        self.tagged_fields(|_, _| Ok(()))
    }
}

fn legacy_len(len: i32) -> Result<Option<usize>, ReadError> {
    match len {
        -1 => Ok(None),
        len => usize::try_from(len).map(Some).map_err(|_| ReadError::NegativeLength),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn varints_take_one_to_five_bytes_and_no_more_than_32_bits() {
        let cases: [(&[u8], Result<u32, ReadError>); 7] = [
            (&[0x00], Ok(0)),
            (&[0x7f], Ok(127)),
            (&[0x80, 0x01], Ok(128)),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], Ok(u32::MAX)),
            (&[0xff, 0xff, 0xff, 0xff, 0x1f], Err(ReadError::Varint)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff], Err(ReadError::Varint)),
            (&[0xff, 0xff], Err(ReadError::Truncated)),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Reader::new(bytes).unsigned_varint(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn lengths_know_null_and_refuse_other_negatives() {
        assert_eq!(Reader::new(&[0xff, 0xff]).nullable_string(false), Ok(None));
        assert_eq!(Reader::new(&[0xff, 0xff]).string(false), Err(ReadError::Null));
        assert_eq!(
            Reader::new(&[0xff, 0xfe]).nullable_string(false),
            Err(ReadError::NegativeLength)
        );
        assert_eq!(Reader::new(&[0x00, 0x02, b'h', b'i']).string(false), Ok(&b"hi"[..]));
        assert_eq!(Reader::new(&[0x00]).nullable_string(true), Ok(None));
        assert_eq!(Reader::new(&[0x03, b'h', b'i']).string(true), Ok(&b"hi"[..]));
        assert_eq!(Reader::new(&[0x04, b'h', b'i']).string(true), Err(ReadError::Truncated));
        assert_eq!(
            Reader::new(&[0x80, 0, 0, 0]).legacy_len(),
            Err(ReadError::NegativeLength)
        );
    }

    #[test]
    fn tags_must_ascend_and_stay_below_two_to_the_31() {
        assert_eq!(Reader::new(&[2, 0, 1, 9, 5, 0]).skip_tagged_fields(), Ok(()));
        assert_eq!(
            Reader::new(&[2, 5, 0, 5, 0]).skip_tagged_fields(),
            Err(ReadError::TagOrder)
        );
        assert_eq!(
            Reader::new(&[1, 0xff, 0xff, 0xff, 0xff, 0x07, 0]).skip_tagged_fields(),
            Ok(())
        );
        assert_eq!(
            Reader::new(&[1, 0x80, 0x80, 0x80, 0x80, 0x08, 0]).skip_tagged_fields(),
            Err(ReadError::TagOrder)
        );
        assert_eq!(
            Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f]).skip_tagged_fields(),
            Err(ReadError::Truncated)
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_read_panic_or_pass_the_end(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader::new(&bytes);
            let _ = reader.unsigned_varint();
            let _ = reader.nullable_string(true);
            let _ = reader.array_len(false);
            let _ = reader.skip_tagged_fields();
            let _ = reader.take(usize::MAX);
            let _ = reader.uuid();
            prop_assert!(reader.position() <= bytes.len());
            prop_assert_eq!(reader.position() + reader.remaining(), bytes.len());
        }
    }
}
