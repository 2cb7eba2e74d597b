//! Frames and heads, read by hand: the first bytes stand at fixed places in every version.
//!
//! A frame is a 4-byte big-endian length and that many bytes. A request starts with api key, version, correlation id and
//! client id; flexible heads add tagged fields. Responses start with the correlation id (and tagged fields when flexible).
//! The client id is a legacy string in every version. ApiVersions answers without tagged fields in every version, so that
//! a client can read the answer to a version that the broker does not know; SaslHandshake never became flexible.
//! Offsets count from the first byte after the length.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{BufMut, BytesMut};

use super::api::{self, API_VERSIONS, PRODUCE};
use super::codec::WireError;
use super::reader::{ReadError, Reader};
use super::text;

/// The bytes of a frame's length.
pub const LENGTH_SIZE: usize = 4;

/// The most that the tagged fields of a head may take. No client sends any as yet; without a limit a head could be as
/// long as a frame, and would have to be gathered to be read.
const HEAD_TAGS_MAX: usize = 4096;

/// The length that a frame starts with.
///
/// # Errors
/// `Malformed` for a negative length, `TooLong` above `max` bytes.
pub fn frame_len(prefix: [u8; LENGTH_SIZE], max: usize) -> Result<usize, WireError> {
    let len = i32::from_be_bytes(prefix);
    let len = usize::try_from(len).map_err(|_| WireError::Malformed(format!("a frame of {len} bytes")))?;
    if len > max {
        return Err(WireError::TooLong { len, max });
    }
    Ok(len)
}

/// What a first look at the start of a frame gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed<T> {
    Complete(T),
    /// The bytes end before the thing does.
    NeedMore,
}

impl<T> Parsed<T> {
    /// The thing, where no more bytes can come.
    ///
    /// # Errors
    /// `Malformed` if it is not complete.
    pub fn complete(self) -> Result<T, WireError> {
        match self {
            Self::Complete(thing) => Ok(thing),
            Self::NeedMore => Err(ReadError::Truncated.into()),
        }
    }

    fn from_read(result: Result<T, WireError>, truncated: bool) -> Result<Self, WireError> {
        match result {
            Ok(thing) => Ok(Self::Complete(thing)),
            Err(_) if truncated => Ok(Self::NeedMore),
            Err(error) => Err(error),
        }
    }
}

/// What routing needs to know of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    pub api_key: i16,
    pub api_version: i16,
    pub correlation_id: i32,
    /// Where the client id stands, counted from the first byte after the length; none if it is null.
    pub client_id: Option<Range<usize>>,
    /// Where the body begins, counted from the first byte after the length.
    pub body_offset: usize,
}

impl RequestHead {
    /// The client id in the frame that the head was read from, as Java reads it where it is not UTF-8.
    #[must_use]
    pub fn client_id<'a>(&self, frame: &'a [u8]) -> Option<Cow<'a, str>> {
        let bytes = frame.get(self.client_id.clone()?)?;
        Some(text::as_java(bytes))
    }

    /// Reads the head from the first bytes of a frame, which may be fewer than the frame has; 37,000 are always
    /// enough. The version is not checked, except that it tells whether the head is flexible.
    ///
    /// # Errors
    /// `UnknownApi` for a key that is not in the table (the shape of its head cannot be known), `Malformed` otherwise.
    pub fn parse(frame: &[u8]) -> Result<Parsed<Self>, WireError> {
        let mut reader = Lookahead::new(frame);
        let head = Self::read(&mut reader);
        Parsed::from_read(head, reader.truncated)
    }

    fn read(reader: &mut Lookahead<'_>) -> Result<Self, WireError> {
        let api_key = reader.read(Reader::i16)?;
        let api = api::find(api_key).ok_or(WireError::UnknownApi(api_key))?;
        let api_version = reader.read(Reader::i16)?;
        let correlation_id = reader.read(Reader::i32)?;
        let client_id = reader.read(|reader| reader.nullable_string(false))?;
        let client_id = client_id.map(|bytes| reader.inner.position() - bytes.len()..reader.inner.position());
        if api.is_flexible(api_version) {
            reader.skip_tagged_fields()?;
        }
        let body_offset = reader.inner.position();
        Ok(Self {
            api_key,
            api_version,
            correlation_id,
            client_id,
            body_offset,
        })
    }
}

/// Writes the head of a request of ours.
///
/// # Errors
/// `UnknownApi`; `Malformed` for a client id of more than 32,767 bytes.
pub fn request_head(
    api_key: i16,
    api_version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    out: &mut BytesMut,
) -> Result<(), WireError> {
    let api = api::find(api_key).ok_or(WireError::UnknownApi(api_key))?;
    let client_id_len = match client_id {
        None => -1,
        Some(id) => i16::try_from(id.len()).map_err(|_| {
            WireError::Malformed(format!("a client id of {} bytes, at most 32767 can be sent", id.len()))
        })?,
    };
    out.put_i16(api_key);
    out.put_i16(api_version);
    out.put_i32(correlation_id);
    out.put_i16(client_id_len);
    out.put_slice(client_id.unwrap_or_default().as_bytes());
    if api.is_flexible(api_version) {
        out.put_u8(0);
    }
    Ok(())
}

/// The head of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseHead {
    pub correlation_id: i32,
    /// Where the body begins, counted from the first byte after the length.
    pub body_offset: usize,
}

impl ResponseHead {
    /// Reads the head of the response to a request of this key and version from its first bytes.
    ///
    /// # Errors
    /// `Malformed` where the tagged fields are.
    pub fn parse(api_key: i16, api_version: i16, frame: &[u8]) -> Result<Parsed<Self>, WireError> {
        let mut reader = Lookahead::new(frame);
        let head = Self::read(api_key, api_version, &mut reader);
        Parsed::from_read(head, reader.truncated)
    }

    fn read(api_key: i16, api_version: i16, reader: &mut Lookahead<'_>) -> Result<Self, WireError> {
        let correlation_id = reader.read(Reader::i32)?;
        if has_response_tags(api_key, api_version) {
            reader.skip_tagged_fields()?;
        }
        Ok(Self {
            correlation_id,
            body_offset: reader.inner.position(),
        })
    }
}

/// Writes the head of a response to a request of this key and version.
pub fn response_head(api_key: i16, api_version: i16, correlation_id: i32, out: &mut BytesMut) {
    out.put_i32(correlation_id);
    if has_response_tags(api_key, api_version) {
        out.put_u8(0);
    }
}

fn has_response_tags(api_key: i16, api_version: i16) -> bool {
    api_key != API_VERSIONS && api::find(api_key).is_some_and(|api| api.is_flexible(api_version))
}

/// The acks of a Produce request, from the first bytes of its body: 0 means that no response follows.
///
/// # Errors
/// `Malformed` where the transactional id before it is.
pub fn produce_acks(api_version: i16, body: &[u8]) -> Result<Parsed<i16>, WireError> {
    let mut reader = Lookahead::new(body);
    let acks = read_acks(api_version, &mut reader);
    Parsed::from_read(acks, reader.truncated)
}

fn read_acks(api_version: i16, reader: &mut Lookahead<'_>) -> Result<i16, WireError> {
    const TRANSACTIONAL_ID_SINCE: i16 = 3;
    if api_version >= TRANSACTIONAL_ID_SINCE {
        let flexible = api::find(PRODUCE).is_some_and(|api| api.is_flexible(api_version));
        let len = reader.read(|reader| reader.string_len(flexible))?.unwrap_or(0);
        reader.read(|reader| reader.skip(len))?;
    }
    reader.read(Reader::i16)
}

/// A reader that remembers whether it failed for want of bytes.
struct Lookahead<'a> {
    inner: Reader<'a>,
    truncated: bool,
}

impl<'a> Lookahead<'a> {
    const fn new(bytes: &'a [u8]) -> Self {
        Self {
            inner: Reader::new(bytes),
            truncated: false,
        }
    }

    fn read<T>(&mut self, read: impl FnOnce(&mut Reader<'a>) -> Result<T, ReadError>) -> Result<T, WireError> {
        read(&mut self.inner).map_err(|error| {
            self.truncated |= error == ReadError::Truncated;
            error.into()
        })
    }

    fn skip_tagged_fields(&mut self) -> Result<(), WireError> {
        let count = self.read(Reader::unsigned_varint)? as usize;
        let start = self.inner.position();
        let too_long = || WireError::Malformed(format!("tagged fields of more than {HEAD_TAGS_MAX} bytes in a head"));
        if count > HEAD_TAGS_MAX / 2 {
            return Err(too_long());
        }
        for _ in 0..count {
            self.read(Reader::unsigned_varint)?;
            let len = self.read(Reader::unsigned_varint)? as usize;
            if self.inner.position() - start + len > HEAD_TAGS_MAX {
                return Err(too_long());
            }
            self.read(|reader| reader.skip(len))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::api::{HEARTBEAT, SASL_HANDSHAKE};
    use super::*;

    fn parse(frame: &[u8]) -> Result<RequestHead, WireError> {
        RequestHead::parse(frame)?.complete()
    }

    fn head_of(api_key: i16, api_version: i16, client_id: Option<&str>) -> BytesMut {
        let mut out = BytesMut::new();
        request_head(api_key, api_version, 7, client_id, &mut out).expect("a valid head");
        out
    }

    #[test]
    fn lengths_are_checked_against_the_limit() {
        assert!(matches!(frame_len([0, 0, 1, 0], 256), Ok(256)));
        assert!(matches!(
            frame_len([0, 0, 1, 1], 256),
            Err(WireError::TooLong { len: 257, max: 256 })
        ));
        assert!(matches!(
            frame_len([0x7f, 0xff, 0xff, 0xff], 1 << 20),
            Err(WireError::TooLong { .. })
        ));
        assert!(matches!(
            frame_len([0xff, 0xff, 0xff, 0xff], 256),
            Err(WireError::Malformed(_))
        ));
        assert!(matches!(frame_len([0, 0, 0, 0], 256), Ok(0)));
    }

    #[test]
    fn a_head_is_complete_at_its_last_byte_and_not_before() {
        for version in [3, 4] {
            let frame = head_of(HEARTBEAT, version, Some("consumer-1"));
            for len in 0..frame.len() {
                assert_eq!(
                    RequestHead::parse(&frame[..len]).expect("well formed"),
                    Parsed::NeedMore,
                    "{len}"
                );
            }
            let head = parse(&frame).expect("well formed");
            assert_eq!(
                (head.api_key, head.api_version, head.correlation_id),
                (HEARTBEAT, version, 7)
            );
            assert_eq!(head.client_id(&frame).as_deref(), Some("consumer-1"));
            assert_eq!(head.body_offset, frame.len());
        }
    }

    #[test]
    fn the_client_id_may_be_null_or_not_utf_8() {
        let frame = head_of(HEARTBEAT, 4, None);
        assert_eq!(parse(&frame).expect("well formed").client_id(&frame), None);
        let mut frame = head_of(HEARTBEAT, 3, Some("xy"));
        let at = frame.len() - 1;
        frame[at] = 0xff;
        let head = parse(&frame).expect("well formed");
        assert_eq!(head.client_id(&frame).as_deref(), Some("x\u{fffd}"));
        frame[8..10].copy_from_slice(&[0xff, 0xfe]);
        assert!(matches!(parse(&frame), Err(WireError::Malformed(_))));
    }

    #[test]
    fn a_version_that_nobody_knows_yet_is_read_as_flexible() {
        let head = parse(&head_of(API_VERSIONS, 99, Some("x"))).expect("well formed");
        assert_eq!((head.api_version, head.body_offset), (99, 12));
        let head = parse(&head_of(SASL_HANDSHAKE, 99, Some("x"))).expect("well formed");
        assert_eq!(head.body_offset, 11);
    }

    #[test]
    fn tagged_fields_of_a_head_are_skipped_and_bounded() {
        let mut frame = head_of(HEARTBEAT, 4, None);
        let at = frame.len() - 1;
        frame.truncate(at);
        let mut tagged = frame.clone();
        tagged.extend_from_slice(&[2, 0, 3, 1, 2, 3, 9, 0, 0xaa]);
        assert_eq!(parse(&tagged).expect("well formed").body_offset, at + 8);
        let mut long = frame.clone();
        long.extend_from_slice(&[1, 0, 0x80, 0x80, 0x40]);
        assert!(matches!(RequestHead::parse(&long), Err(WireError::Malformed(_))));
        frame.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert!(matches!(RequestHead::parse(&frame), Err(WireError::Malformed(_))));
    }

    #[test]
    fn a_head_never_needs_more_than_37000_bytes() {
        let mut frame = head_of(HEARTBEAT, 4, Some(&"x".repeat(32_767)));
        frame.truncate(frame.len() - 1);
        // Two tagged fields that fill what they may, and one that asks for more.
        frame.extend_from_slice(&[3, 0, 0x80, 0x10]);
        frame.extend_from_slice(&[0; 2048]);
        frame.extend_from_slice(&[1, 0xfa, 0x0f]);
        frame.extend_from_slice(&[0; 2042]);
        frame.extend_from_slice(&[2, 1, 0]);
        assert!(frame.len() <= 37_000);
        assert!(matches!(RequestHead::parse(&frame), Err(WireError::Malformed(_))));
        let at = frame.len() - 3;
        frame[32_777] = 2;
        assert_eq!(parse(&frame).expect("it fits").body_offset, at);
    }

    #[test]
    fn an_unknown_api_is_named() {
        assert!(matches!(
            RequestHead::parse(&[0x27, 0x10]),
            Err(WireError::UnknownApi(10_000))
        ));
        assert!(matches!(
            RequestHead::parse(&[0xff, 0xff, 0, 0]),
            Err(WireError::UnknownApi(-1))
        ));
    }

    #[test]
    fn response_heads_have_tags_when_flexible_except_for_api_versions() {
        for (key, version, len) in [
            (HEARTBEAT, 3, 4),
            (HEARTBEAT, 4, 5),
            (API_VERSIONS, 5, 4),
            (SASL_HANDSHAKE, 1, 4),
        ] {
            let mut out = BytesMut::new();
            response_head(key, version, -2, &mut out);
            assert_eq!(out.len(), len, "{key} {version}");
            let head = ResponseHead::parse(key, version, &out)
                .and_then(Parsed::complete)
                .expect("well formed");
            assert_eq!(
                head,
                ResponseHead {
                    correlation_id: -2,
                    body_offset: len
                }
            );
            assert_eq!(
                ResponseHead::parse(key, version, &out[..len - 1]).expect("well formed"),
                Parsed::NeedMore
            );
        }
    }

    #[test]
    fn acks_are_found_behind_the_transactional_id() {
        let acks = |version, body: &[u8]| produce_acks(version, body).and_then(Parsed::complete);
        assert!(matches!(acks(2, &[0xff, 0xff, 0]), Ok(-1)));
        assert!(matches!(acks(8, &[0xff, 0xff, 0, 0]), Ok(0)));
        assert!(matches!(acks(8, &[0, 2, b't', b'x', 0, 1]), Ok(1)));
        assert!(matches!(acks(9, &[0, 0, 0]), Ok(0)));
        assert!(matches!(acks(13, &[3, b't', b'x', 0xff, 0xff]), Ok(-1)));
        assert!(matches!(produce_acks(13, &[3, b't', b'x', 0xff]), Ok(Parsed::NeedMore)));
        assert!(matches!(
            produce_acks(13, &[0xff, 0xff, 0xff, 0x7f]),
            Err(WireError::Malformed(_))
        ));
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), key in 0_i16..95, version in -1_i16..14) {
            let _ = RequestHead::parse(&bytes);
            let mut keyed = BytesMut::new();
            keyed.put_i16(key);
            keyed.put_i16(version);
            keyed.put_slice(&bytes);
            if let Ok(Parsed::Complete(head)) = RequestHead::parse(&keyed) {
                prop_assert!(head.body_offset <= keyed.len());
            }
            let _ = ResponseHead::parse(key, version, &bytes);
            let _ = produce_acks(version, &bytes);
        }
    }
}
