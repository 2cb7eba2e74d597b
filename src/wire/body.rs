//! How bodies of our own decoders are read and written: texts and bytes as slices, lengths compact where the version is flexible.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::codec::WireError;
use super::reader::{ReadError, Reader};

/// A reader of bodies whose texts are slices of the body. The length guard has passed it.
pub(super) struct Body<'a> {
    bytes: &'a Bytes,
    pub(super) reader: Reader<'a>,
}

impl<'a> Body<'a> {
    pub(super) fn new(bytes: &'a Bytes) -> Self {
        Self {
            bytes,
            reader: Reader::new(bytes),
        }
    }

    pub(super) fn nullable_text(&mut self, flexible: bool) -> Result<Option<StrBytes>, ReadError> {
        let Some(slice) = self.reader.nullable_string(flexible)? else {
            return Ok(None);
        };
        StrBytes::from_utf8(self.bytes.slice_ref(slice))
            .map(Some)
            .map_err(|_| ReadError::NotUtf8)
    }

    pub(super) fn text(&mut self, flexible: bool) -> Result<StrBytes, ReadError> {
        self.nullable_text(flexible)?.ok_or(ReadError::Null)
    }

    /// Bytes that may not be null.
    pub(super) fn byte_string(&mut self, flexible: bool) -> Result<Bytes, ReadError> {
        let len = self.reader.array_len(flexible)?.ok_or(ReadError::Null)?;
        Ok(self.bytes.slice_ref(self.reader.take(len)?))
    }

    /// An array or null. Room is made for as many elements as the bytes that are left can hold.
    pub(super) fn nullable_array<T>(
        &mut self,
        flexible: bool,
        mut element: impl FnMut(&mut Self) -> Result<T, ReadError>,
    ) -> Result<Option<Vec<T>>, ReadError> {
        let Some(len) = self.reader.array_len(flexible)? else {
            return Ok(None);
        };
        if len > self.reader.remaining() {
            return Err(ReadError::Truncated);
        }
        let mut elements = Vec::with_capacity(len);
        for _ in 0..len {
            elements.push(element(self)?);
        }
        Ok(Some(elements))
    }

    pub(super) fn array<T>(
        &mut self,
        flexible: bool,
        element: impl FnMut(&mut Self) -> Result<T, ReadError>,
    ) -> Result<Vec<T>, ReadError> {
        self.nullable_array(flexible, element)?.ok_or(ReadError::Null)
    }

    pub(super) fn int32s(&mut self, flexible: bool) -> Result<Vec<i32>, ReadError> {
        self.array(flexible, |body| body.reader.i32())
    }

    pub(super) fn uuids(&mut self, flexible: bool) -> Result<Vec<Uuid>, ReadError> {
        self.array(flexible, |body| body.reader.uuid())
    }

    pub(super) fn skip_tagged_fields(&mut self) -> Result<(), ReadError> {
        self.reader.skip_tagged_fields()
    }
}

/// Writes lengths and texts, compact where the version is flexible.
pub(super) struct Writer {
    pub(super) flexible: bool,
}

impl Writer {
    pub(super) fn nullable_text(&self, text: Option<&str>, out: &mut BytesMut) -> Result<(), WireError> {
        let len = text.map(str::len);
        if self.flexible {
            put_compact_len(len, out)?;
        } else {
            let len = len.map_or(Ok(-1), i16::try_from);
            out.put_i16(len.map_err(|_| WireError::Malformed("a text of more than 32767 bytes".to_owned()))?);
        }
        out.put_slice(text.unwrap_or_default().as_bytes());
        Ok(())
    }

    pub(super) fn text(&self, text: &str, out: &mut BytesMut) -> Result<(), WireError> {
        self.nullable_text(Some(text), out)
    }

    pub(super) fn byte_string(&self, bytes: &[u8], out: &mut BytesMut) -> Result<(), WireError> {
        self.array_len(bytes.len(), out)?;
        out.put_slice(bytes);
        Ok(())
    }

    pub(super) fn array_len(&self, len: usize, out: &mut BytesMut) -> Result<(), WireError> {
        if self.flexible {
            return put_compact_len(Some(len), out);
        }
        out.put_i32(i32::try_from(len).map_err(|_| too_long(len))?);
        Ok(())
    }

    pub(super) fn int32s(&self, numbers: &[i32], out: &mut BytesMut) -> Result<(), WireError> {
        self.array_len(numbers.len(), out)?;
        for number in numbers {
            out.put_i32(*number);
        }
        Ok(())
    }

    pub(super) fn no_tagged_fields(&self, out: &mut BytesMut) {
        if self.flexible {
            out.put_u8(0);
        }
    }
}

fn put_compact_len(len: Option<usize>, out: &mut BytesMut) -> Result<(), WireError> {
    let len = len.map_or(0, |len| len.saturating_add(1));
    let mut rest = u32::try_from(len).map_err(|_| too_long(len))?;
    while rest >= 0x80 {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
    Ok(())
}

fn too_long(len: usize) -> WireError {
    WireError::Malformed(format!("a length of {len} does not fit its field"))
}
