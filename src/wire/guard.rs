//! The length guard: walks a body along its schema before kafka-protocol sees it.
//!
//! kafka-protocol 0.18 reserves memory for as many elements as a length on the wire claims, so a body of five bytes can
//! abort the process, and it drops bits of wrong varints and loses tags beyond 2^31. What the guard passes it decodes
//! without an error, with memory in proportion to the body: each element that it makes room for was seen. Nesting is as deep
//! as the schema. Errors of kafka-protocol carry backtraces; those of the guard are cheap.
//!
//! The guard is strict. What a broker takes all the same is made plain first, see [`super::lenient`].

use super::codec::WireError;
use super::reader::{ReadError, Reader};
use super::schema::{Field, Kind, Schema};
use super::text;

/// Unknown tagged fields are kept in a map of some 450 bytes an element, so not more of them are taken than one for each
/// so many bytes of the body, with a few for small bodies.
const BYTES_PER_UNKNOWN_TAG: usize = 16;
const UNKNOWN_TAGS_MIN: usize = 4;

/// Checks that `body` is one whole message of this version.
///
/// # Errors
/// `UnsupportedVersion` for a version that the schema does not know; `Malformed` names the field that is wrong.
pub fn check(schema: &Schema, version: i16, body: &[u8]) -> Result<(), WireError> {
    if !schema.has_version(version) {
        return Err(WireError::UnsupportedVersion {
            api: schema.name,
            version,
        });
    }
    let unknown_tags_left = UNKNOWN_TAGS_MIN + body.len() / BYTES_PER_UNKNOWN_TAG;
    let mut guard = Guard {
        version,
        flexible: schema.is_flexible(version),
        unknown_tags_left,
    };
    let mut reader = Reader::new(body);
    guard
        .fields(schema.fields, &mut reader)
        .map_err(|problem| problem.describe(schema, version))?;
    match reader.remaining() {
        0 => Ok(()),
        left => Err(WireError::Malformed(format!(
            "{} v{version}: {left} bytes after its end",
            schema.name
        ))),
    }
}

struct Guard {
    version: i16,
    flexible: bool,
    unknown_tags_left: usize,
}

/// What is wrong, and with which field; none of its own for the tags of a structure.
struct Problem {
    field: Option<&'static str>,
    kind: ProblemKind,
}

enum ProblemKind {
    Read(ReadError),
    /// The content of a tagged field is longer than the field in it.
    TagSize,
    TagNotInVersion(u32),
    TooManyUnknownTags,
}

impl Problem {
    fn describe(&self, schema: &Schema, version: i16) -> WireError {
        let field = self.field.unwrap_or("tagged fields");
        let problem = match &self.kind {
            ProblemKind::Read(error) => error.to_string(),
            ProblemKind::TagSize => "a tagged field with bytes after its end".to_owned(),
            ProblemKind::TagNotInVersion(tag) => format!("tag {tag} is not in this version"),
            ProblemKind::TooManyUnknownTags => {
                "more unknown tagged fields than bodies of this size may have".to_owned()
            }
        };
        WireError::Malformed(format!("{} v{version}, {field}: {problem}", schema.name))
    }
}

impl From<ProblemKind> for Problem {
    fn from(kind: ProblemKind) -> Self {
        Self { field: None, kind }
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        ProblemKind::Read(error).into()
    }
}

impl Guard {
    fn fields(&mut self, fields: &'static [Field], reader: &mut Reader<'_>) -> Result<(), Problem> {
        for field in fields {
            if field.tag.is_none() && field.is_in(self.version) {
                self.field(field, reader)?;
            }
        }
        if self.flexible {
            self.tagged_fields(fields, reader)
        } else {
            Ok(())
        }
    }

    fn field(&mut self, field: &'static Field, reader: &mut Reader<'_>) -> Result<(), Problem> {
        let nullable = field.is_nullable(self.version);
        self.value(field.kind, nullable, reader).map_err(|problem| Problem {
            field: problem.field.or(Some(field.name)),
            ..problem
        })
    }

    fn value(&mut self, kind: Kind, nullable: bool, reader: &mut Reader<'_>) -> Result<(), Problem> {
        if let Some(size) = kind.fixed_size() {
            return Ok(reader.skip(size)?);
        }
        if let Kind::Struct(fields) = kind {
            if nullable && !reader.presence()? {
                return Ok(());
            }
            return self.fields(fields, reader);
        }
        let len = match kind {
            Kind::String => reader.string_len(self.flexible)?,
            _ => reader.array_len(self.flexible)?,
        };
        let Some(len) = len else {
            return if nullable { Ok(()) } else { Err(ReadError::Null.into()) };
        };
        // Whatever the elements are, each takes a byte at least.
        if len > reader.remaining() {
            return Err(ReadError::Truncated.into());
        }
        match kind {
            Kind::String => match text::is_utf8(reader.take(len)?) {
                true => Ok(()),
                false => Err(ReadError::NotUtf8.into()),
            },
            Kind::Array(element) => self.array(*element, len, reader),
            Kind::Structs(fields) => (0..len).try_for_each(|_| self.fields(fields, reader)),
            _ => Ok(reader.skip(len)?),
        }
    }

    fn array(&mut self, element: Kind, len: usize, reader: &mut Reader<'_>) -> Result<(), Problem> {
        match element.fixed_size() {
            Some(size) => Ok(reader.skip(len.saturating_mul(size))?),
            None => (0..len).try_for_each(|_| self.value(element, false, reader)),
        }
    }

    fn tagged_fields(&mut self, fields: &'static [Field], reader: &mut Reader<'_>) -> Result<(), Problem> {
        reader.tagged_fields(|tag, content| {
            let Some(field) = fields.iter().find(|field| field.tag == Some(tag)) else {
                return self.unknown_tag();
            };
            if !field.is_in(self.version) {
                return Err(ProblemKind::TagNotInVersion(tag).into());
            }
            let mut reader = Reader::new(content);
            self.field(field, &mut reader)?;
            match reader.remaining() {
                0 => Ok(()),
                _ => Err(Problem {
                    field: Some(field.name),
                    kind: ProblemKind::TagSize,
                }),
            }
        })
    }

    fn unknown_tag(&mut self) -> Result<(), Problem> {
        let left = self
            .unknown_tags_left
            .checked_sub(1)
            .ok_or(ProblemKind::TooManyUnknownTags)?;
        self.unknown_tags_left = left;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
