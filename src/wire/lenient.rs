//! Requests that are odd in a way that a broker does not mind, in the form that the length guard passes.
//!
//! Kafka's generated readers take text that is not UTF-8 (see [`text::as_java`]), ignore bytes after the end of a body, and skip
//! unknown tagged fields whatever their order and number. Nothing of that reaches a decoder: such a body is copied along its
//! schema, text replaced, unknown tagged fields and the bytes after the end left out. What Kafka refuses (null, a length that
//! is negative or beyond the end, a varint that is too long) is refused here. The copy has at most three bytes for each of the
//! body.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

use super::codec::WireError;
use super::reader::{ReadError, Reader};
use super::schema::{Field, Kind, Schema};
use super::text;

/// The body as it would have been written by a client without oddities.
///
/// # Errors
/// `UnsupportedVersion` for a version that the schema does not know; `Malformed` for what a broker does not read either.
pub fn plain(schema: &Schema, version: i16, body: &[u8]) -> Result<Bytes, WireError> {
    if !schema.has_version(version) {
        return Err(WireError::UnsupportedVersion {
            api: schema.name,
            version,
        });
    }
    let mut copier = Copier {
        version,
        flexible: schema.is_flexible(version),
        out: BytesMut::with_capacity(body.len()),
    };
    copier
        .fields(schema.fields, &mut Reader::new(body))
        .map_err(|Problem { field, error }| {
            WireError::Malformed(format!("{} v{version}, {field}: {error}", schema.name))
        })?;
    Ok(copier.out.freeze())
}

/// What is wrong, and with which field.
struct Problem {
    field: &'static str,
    error: ReadError,
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        Self {
            field: "tagged fields",
            error,
        }
    }
}

struct Copier {
    version: i16,
    flexible: bool,
    out: BytesMut,
}

impl Copier {
    fn fields(&mut self, fields: &'static [Field], reader: &mut Reader<'_>) -> Result<(), Problem> {
        let version = self.version;
        for field in fields
            .iter()
            .filter(|field| field.tag.is_none() && field.is_in(version))
        {
            self.field(field, reader)?;
        }
        if self.flexible {
            self.tagged_fields(fields, reader)?;
        }
        Ok(())
    }

    fn field(&mut self, field: &'static Field, reader: &mut Reader<'_>) -> Result<(), Problem> {
        let nullable = field.is_nullable(self.version);
        self.value(field.kind, nullable, reader)
            .map_err(|problem| match field.kind {
                Kind::Structs(_) | Kind::Struct(_) => problem,
                _ => Problem {
                    field: field.name,
                    ..problem
                },
            })
    }

    fn value(&mut self, kind: Kind, nullable: bool, reader: &mut Reader<'_>) -> Result<(), Problem> {
        if let Some(size) = kind.fixed_size() {
            self.out.extend_from_slice(reader.take(size)?);
            return Ok(());
        }
        if let Kind::Struct(fields) = kind {
            if nullable {
                let present = reader.i8()? >= 0;
                self.out.extend_from_slice(&[if present { 1 } else { 0xff }]);
                if !present {
                    return Ok(());
                }
            }
            return self.fields(fields, reader);
        }
        let is_text = matches!(kind, Kind::String);
        let len = if is_text {
            reader.string_len(self.flexible)?
        } else {
            reader.array_len(self.flexible)?
        };
        let Some(len) = len else {
            self.put_len(None, is_text)?;
            return if nullable { Ok(()) } else { Err(ReadError::Null.into()) };
        };
        // Whatever the elements are, each takes a byte at least.
        if len > reader.remaining() {
            return Err(ReadError::Truncated.into());
        }
        if is_text {
            let text = text::as_java(reader.take(len)?);
            self.put_len(Some(text.len()), true)?;
            self.out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        self.put_len(Some(len), false)?;
        match kind {
            Kind::Array(element) => (0..len).try_for_each(|_| self.value(*element, false, reader)),
            Kind::Structs(fields) => (0..len).try_for_each(|_| self.fields(fields, reader)),
            _ => {
                self.out.extend_from_slice(reader.take(len)?);
                Ok(())
            }
        }
    }

    /// Copies the tagged fields that are known, in order. Of several with one tag the last counts, as in Kafka.
    fn tagged_fields(&mut self, fields: &'static [Field], reader: &mut Reader<'_>) -> Result<(), Problem> {
        let mut known = BTreeMap::new();
        for _ in 0..reader.unsigned_varint()? {
            let tag = reader.unsigned_varint()?;
            let len = reader.unsigned_varint()? as usize;
            let content = reader.take(len)?;
            let field = fields.iter().find(|field| field.tag == Some(tag));
            if let Some(field) = field.filter(|field| field.is_in(self.version)) {
                known.insert(tag, self.tagged_field(field, content)?);
            }
        }
        self.put_varint(known.len())?;
        for (tag, content) in known {
            self.put_varint(tag as usize)?;
            self.put_varint(content.len())?;
            self.out.extend_from_slice(&content);
        }
        Ok(())
    }

    fn tagged_field(&self, field: &'static Field, content: &[u8]) -> Result<BytesMut, Problem> {
        let mut part = Self {
            out: BytesMut::with_capacity(content.len()),
            ..*self
        };
        part.field(field, &mut Reader::new(content))?;
        Ok(part.out)
    }

    /// A length or null, of a text or else of bytes or an array.
    fn put_len(&mut self, len: Option<usize>, is_text: bool) -> Result<(), Problem> {
        if is_text && len.is_some_and(|len| len > i16::MAX as usize) {
            return Err(ReadError::LongText.into());
        }
        if self.flexible {
            return self.put_varint(len.map_or(0, |len| len + 1));
        }
        let len = len.map_or(Ok(-1), i32::try_from).map_err(|_| ReadError::Truncated)?;
        let size = if is_text { size_of::<i16>() } else { size_of::<i32>() };
        self.out
            .extend_from_slice(&len.to_be_bytes()[size_of::<i32>() - size..]);
        Ok(())
    }

    /// A number that is not above what was read.
    fn put_varint(&mut self, value: usize) -> Result<(), Problem> {
        let mut rest = u32::try_from(value).map_err(|_| ReadError::Varint)?;
        while rest >= 0x80 {
            self.out.extend_from_slice(&[rest as u8 | 0x80]);
            rest >>= 7;
        }
        self.out.extend_from_slice(&[rest as u8]);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
