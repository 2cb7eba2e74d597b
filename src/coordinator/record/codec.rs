//! Reading and writing the primitive types of Kafka's message formats, classic and flexible (KIP-482).
//!
//! The reader trusts no length: it compares each one with the bytes that are left before it copies anything.

use bytes::{BufMut, Bytes, BytesMut};
use uuid::Uuid;

use super::RecordError;
use crate::coordinator::request::Text;

/// Kafka's readers refuse a longer string, in every version.
pub(crate) const MAX_TEXT_BYTES: usize = i16::MAX.unsigned_abs() as usize;

/// Whether lengths are written in the classic (fixed) or the flexible (varint, one more) form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Classic,
    Flexible,
}

/// What is wrong with a record's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The bytes end before the field does.
    #[error("ends early: {needed} bytes needed, {left} left")]
    Truncated { needed: usize, left: usize },
    /// Null where Kafka's schema allows none.
    #[error("is null")]
    Null,
    /// A length below null's.
    #[error("has the negative length {0}")]
    NegativeLength(i32),
    /// A string longer than Kafka allows.
    #[error("is {0} bytes long, at most 32767 are allowed")]
    TooLong(usize),
    /// A string that is not UTF-8.
    #[error("is not UTF-8")]
    NotUtf8,
    /// A varint of more than 32 bits.
    #[error("has a length of more than 32 bits")]
    Varint,
    /// A version this build does not know.
    #[error("has the unknown version {0}")]
    Version(i16),
    /// A known tagged field of another size than its type.
    #[error("is {0} bytes long, 16 are expected")]
    TagSize(usize),
    /// Two lists of unequal length that belong together.
    #[error("has {0} elements, {1} are expected")]
    Uneven(usize, usize),
    /// Bytes after the end of the message.
    #[error("is followed by {0} bytes that belong to nothing")]
    Trailing(usize),
}

/// A reader over one key or value.
pub(super) struct Reader<'a> {
    message: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// `message` names the schema in errors.
    pub(super) const fn new(message: &'static str, bytes: &'a [u8]) -> Self {
        Self { message, rest: bytes }
    }

    pub(super) const fn message(&self) -> &'static str {
        self.message
    }

    pub(super) const fn error(&self, field: &'static str, problem: Problem) -> RecordError {
        RecordError {
            message: self.message,
            field,
            problem,
        }
    }

    fn take(&mut self, field: &'static str, needed: usize) -> Result<&'a [u8], RecordError> {
        let Some((head, rest)) = self.rest.split_at_checked(needed) else {
            let left = self.rest.len();
            return Err(self.error(field, Problem::Truncated { needed, left }));
        };
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], RecordError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(field, N)?);
        Ok(bytes)
    }

    pub(super) fn int8(&mut self, field: &'static str) -> Result<i8, RecordError> {
        self.array(field).map(i8::from_be_bytes)
    }

    pub(super) fn int16(&mut self, field: &'static str) -> Result<i16, RecordError> {
        self.array(field).map(i16::from_be_bytes)
    }

    pub(super) fn int32(&mut self, field: &'static str) -> Result<i32, RecordError> {
        self.array(field).map(i32::from_be_bytes)
    }

    pub(super) fn int64(&mut self, field: &'static str) -> Result<i64, RecordError> {
        self.array(field).map(i64::from_be_bytes)
    }

    pub(super) fn uuid(&mut self, field: &'static str) -> Result<Uuid, RecordError> {
        self.array(field).map(Uuid::from_bytes)
    }

    fn varint(&mut self, field: &'static str) -> Result<u32, RecordError> {
        let mut value = 0_u64;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array(field)?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| self.error(field, Problem::Varint));
            }
        }
        Err(self.error(field, Problem::Varint))
    }

    /// A classic length of any width: -1 is null.
    fn classic_length(&self, field: &'static str, length: i32) -> Result<Option<usize>, RecordError> {
        match length {
            -1 => Ok(None),
            _ => usize::try_from(length)
                .map(Some)
                .map_err(|_| self.error(field, Problem::NegativeLength(length))),
        }
    }

    /// A flexible length: one more than it is, 0 is null.
    fn flexible_length(&mut self, field: &'static str) -> Result<Option<usize>, RecordError> {
        Ok(self.varint(field)?.checked_sub(1).map(|length| length as usize))
    }

    pub(super) fn nullable_text(&mut self, field: &'static str, form: Form) -> Result<Option<Text>, RecordError> {
        let length = match form {
            Form::Classic => {
                let length = self.int16(field)?;
                self.classic_length(field, i32::from(length))?
            }
            Form::Flexible => self.flexible_length(field)?,
        };
        let Some(length) = length else {
            return Ok(None);
        };
        if length > MAX_TEXT_BYTES {
            return Err(self.error(field, Problem::TooLong(length)));
        }
        let bytes = self.take(field, length)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(Text::from(text))),
            Err(_) => Err(self.error(field, Problem::NotUtf8)),
        }
    }

    pub(super) fn text(&mut self, field: &'static str, form: Form) -> Result<Text, RecordError> {
        self.nullable_text(field, form)?
            .ok_or_else(|| self.error(field, Problem::Null))
    }

    /// Copied, so that what is kept does not hold the whole record.
    pub(super) fn bytes(&mut self, field: &'static str, form: Form) -> Result<Bytes, RecordError> {
        let length = self.long_length(field, form)?;
        self.take(field, length).map(Bytes::copy_from_slice)
    }

    /// A flexible array of numbers.
    pub(super) fn int32s(&mut self, field: &'static str) -> Result<Vec<i32>, RecordError> {
        let mut numbers = Vec::new();
        for _ in 0..self.array_length(field, Form::Flexible)? {
            numbers.push(self.int32(field)?);
        }
        Ok(numbers)
    }

    /// A flexible array of texts.
    pub(super) fn texts(&mut self, field: &'static str) -> Result<Vec<Text>, RecordError> {
        let mut texts = Vec::new();
        for _ in 0..self.array_length(field, Form::Flexible)? {
            texts.push(self.text(field, Form::Flexible)?);
        }
        Ok(texts)
    }

    /// The length of an array. The caller reserves nothing by it: every element is read before the next is believed in.
    pub(super) fn array_length(&mut self, field: &'static str, form: Form) -> Result<usize, RecordError> {
        self.long_length(field, form)
    }

    /// The length of a flexible array that may be null.
    pub(super) fn nullable_array_length(&mut self, field: &'static str) -> Result<Option<usize>, RecordError> {
        self.flexible_length(field)
    }

    fn long_length(&mut self, field: &'static str, form: Form) -> Result<usize, RecordError> {
        let length = match form {
            Form::Classic => {
                let length = self.int32(field)?;
                self.classic_length(field, length)?
            }
            Form::Flexible => self.flexible_length(field)?,
        };
        length.ok_or_else(|| self.error(field, Problem::Null))
    }

    /// Reads tagged fields and hands each to `known`; what it does not know is skipped, as KIP-482 says.
    pub(super) fn tagged_fields(
        &mut self,
        mut known: impl FnMut(u32, &'a [u8]) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        const FIELD: &str = "tagged fields";
        let count = self.varint(FIELD)?;
        for _ in 0..count {
            let tag = self.varint(FIELD)?;
            let size = self.varint(FIELD)? as usize;
            let bytes = self.take(FIELD, size)?;
            known(tag, bytes)?;
        }
        Ok(())
    }

    /// Everything must have been read.
    pub(super) fn end(&self) -> Result<(), RecordError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.error("end", Problem::Trailing(self.rest.len())))
        }
    }
}

/// Writes both forms.
///
/// A text of more than `MAX_TEXT_BYTES` cannot be told to Kafka; the length guard and the commit rules refuse it long
/// before, so cutting it here only keeps the bytes well-formed.
pub(super) struct Writer(BytesMut);

impl Writer {
    pub(super) fn new(version: i16, capacity: usize) -> Self {
        let mut out = BytesMut::with_capacity(capacity + size_of::<i16>());
        out.put_i16(version);
        Self(out)
    }

    /// For the content of a tagged field.
    pub(super) fn headless() -> Self {
        Self(BytesMut::new())
    }

    pub(super) fn finish(self) -> Bytes {
        self.0.freeze()
    }

    pub(super) fn int8(&mut self, value: i8) {
        self.0.put_i8(value);
    }

    pub(super) fn int16(&mut self, value: i16) {
        self.0.put_i16(value);
    }

    pub(super) fn int32(&mut self, value: i32) {
        self.0.put_i32(value);
    }

    pub(super) fn int64(&mut self, value: i64) {
        self.0.put_i64(value);
    }

    fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.0.put_u8((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.put_u8(value as u8);
    }

    pub(super) fn text(&mut self, text: &str) {
        let text = bounded(text);
        self.0.put_u16(text.len() as u16);
        self.0.put_slice(text.as_bytes());
    }

    pub(super) fn nullable_text(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.text(text),
            None => self.0.put_i16(-1),
        }
    }

    pub(super) fn flexible_text(&mut self, text: &str) {
        let text = bounded(text);
        self.varint(text.len() as u32 + 1);
        self.0.put_slice(text.as_bytes());
    }

    pub(super) fn flexible_nullable_text(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.flexible_text(text),
            None => self.varint(0),
        }
    }

    pub(super) fn flexible_texts(&mut self, texts: &[Text]) {
        self.flexible_length(texts.len());
        for text in texts {
            self.flexible_text(text);
        }
    }

    pub(super) fn flexible_bytes(&mut self, bytes: &[u8]) {
        self.flexible_length(bytes.len());
        self.0.put_slice(bytes);
    }

    pub(super) fn flexible_int32s(&mut self, numbers: impl ExactSizeIterator<Item = i32>) {
        self.flexible_length(numbers.len());
        for number in numbers {
            self.0.put_i32(number);
        }
    }

    /// The flexible length of bytes or of an array. Frames are far shorter than a `u32` can say.
    pub(super) fn flexible_length(&mut self, length: usize) {
        self.varint(u32::try_from(length).unwrap_or(u32::MAX - 1) + 1);
    }

    pub(super) fn uuid(&mut self, value: Uuid) {
        self.0.put_slice(value.as_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.put_slice(bytes);
    }

    /// The classic length of bytes or of an array. Frames are far shorter than an `i32` can say.
    pub(super) fn length(&mut self, length: usize) {
        self.0.put_i32(i32::try_from(length).unwrap_or(i32::MAX));
    }

    pub(super) fn no_tagged_fields(&mut self) {
        self.varint(0);
    }

    /// One tagged field of type uuid.
    pub(super) fn tagged_uuid(&mut self, tag: u32, value: Uuid) {
        self.tagged(tag, value.as_bytes());
    }

    /// One tagged field of type int64.
    pub(super) fn tagged_int64(&mut self, tag: u32, value: i64) {
        self.tagged(tag, &value.to_be_bytes());
    }

    /// One tagged field with this content.
    pub(super) fn tagged(&mut self, tag: u32, content: &[u8]) {
        self.tagged_fields(&[(tag, content)]);
    }

    /// Tagged fields with their contents, in the order of their tags.
    pub(super) fn tagged_fields(&mut self, fields: &[(u32, &[u8])]) {
        self.varint(u32::try_from(fields.len()).unwrap_or(u32::MAX));
        for (tag, content) in fields {
            self.varint(*tag);
            self.varint(u32::try_from(content.len()).unwrap_or(u32::MAX));
            self.0.put_slice(content);
        }
    }
}

fn bounded(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or(text)
}
