//! Requests and answers as bytes.

use bytes::{BufMut, BytesMut};
use convoke::wire::frame::{LENGTH_SIZE, request_head, response_head};

/// The id under which test clients speak; the upstream tells them from Convoke's own connections by it.
pub const CLIENT_ID: &str = "tester";

pub const PRODUCE: i16 = 0;
pub const FETCH: i16 = 1;
/// Forwarded, and answered untouched.
pub const LIST_OFFSETS: i16 = 2;
pub const JOIN_GROUP: i16 = 11;
/// Answered here.
pub const HEARTBEAT: i16 = 12;
/// Answered here.
pub const OFFSET_COMMIT: i16 = 8;
/// Answered here, after the upstream was asked on the client's own connection.
pub const LIST_GROUPS: i16 = 16;
pub const SASL_HANDSHAKE: i16 = 17;
pub const API_VERSIONS: i16 = 18;
pub const SASL_AUTHENTICATE: i16 = 36;

/// A frame around a head and a body.
fn frame(head: &BytesMut, body: &[u8]) -> Vec<u8> {
    let len = i32::try_from(head.len() + body.len()).expect("test frames are small");
    let mut out = Vec::with_capacity(LENGTH_SIZE + head.len() + body.len());
    out.put_i32(len);
    out.extend_from_slice(head);
    out.extend_from_slice(body);
    out
}

pub fn request(api_key: i16, version: i16, correlation_id: i32, body: &[u8]) -> Vec<u8> {
    let mut head = BytesMut::new();
    request_head(api_key, version, correlation_id, Some(CLIENT_ID), &mut head).expect("a known api");
    frame(&head, body)
}

pub fn response(api_key: i16, version: i16, correlation_id: i32, body: &[u8]) -> Vec<u8> {
    let mut head = BytesMut::new();
    response_head(api_key, version, correlation_id, &mut head);
    frame(&head, body)
}

/// A bare token, or anything else without a head.
pub fn token(bytes: &[u8]) -> Vec<u8> {
    frame(&BytesMut::new(), bytes)
}

/// ListOffsets with some body; nobody on the way looks at it.
pub fn list_offsets(correlation_id: i32) -> Vec<u8> {
    request(LIST_OFFSETS, 1, correlation_id, b"which offsets")
}

/// The answer to [`list_offsets`].
pub fn offsets(correlation_id: i32) -> Vec<u8> {
    response(LIST_OFFSETS, 1, correlation_id, b"these offsets")
}

/// A Heartbeat of a member that no group has.
pub fn heartbeat(correlation_id: i32) -> Vec<u8> {
    let mut body = Vec::new();
    put_string(&mut body, "group");
    body.put_i32(1);
    put_string(&mut body, "member");
    request(HEARTBEAT, 0, correlation_id, &body)
}

/// A JoinGroup (v2) of a new member.
pub fn join_group(correlation_id: i32, group: &str, padding: usize) -> Vec<u8> {
    let mut body = Vec::new();
    put_string(&mut body, group);
    body.put_i32(10_000);
    body.put_i32(60_000);
    put_string(&mut body, "");
    put_string(&mut body, "consumer");
    body.put_i32(1);
    put_string(&mut body, "range");
    body.put_i32(i32::try_from(padding).expect("small"));
    body.resize(body.len() + padding, 0);
    request(JOIN_GROUP, 2, correlation_id, &body)
}

/// An OffsetCommit (v2) from outside a generation, of so many partitions of what cannot be a topic.
pub fn offset_commit(correlation_id: i32, group: &str, partitions: i32) -> Vec<u8> {
    let mut body = Vec::new();
    put_string(&mut body, group);
    body.put_i32(-1);
    put_string(&mut body, "");
    body.put_i64(-1);
    body.put_i32(1);
    put_string(&mut body, "no/topic");
    body.put_i32(partitions);
    for partition in 0..partitions {
        body.put_i32(partition);
        body.put_i64(42);
        put_string(&mut body, "");
    }
    request(OFFSET_COMMIT, 2, correlation_id, &body)
}

/// Produce in any version, with these acks and nothing else that makes sense.
pub fn produce(version: i16, correlation_id: i32, acks: i16, padding: usize) -> Vec<u8> {
    let mut body = Vec::new();
    if version >= 9 {
        body.put_slice(&[3, b't', b'x']);
    } else if version >= 3 {
        put_string(&mut body, "tx");
    }
    body.put_i16(acks);
    body.resize(body.len() + padding, 0x5a);
    request(PRODUCE, version, correlation_id, &body)
}

pub fn put_string(out: &mut Vec<u8>, text: &str) {
    out.put_i16(i16::try_from(text.len()).expect("short"));
    out.put_slice(text.as_bytes());
}

/// Api key, version and correlation id of a request frame.
pub fn head(frame: &[u8]) -> (i16, i16, i32) {
    let number = |at: usize| i16::from_be_bytes([frame[at], frame[at + 1]]);
    (number(4), number(6), correlation_id(&frame[4..]))
}

/// The correlation id of a response frame.
pub fn correlation_id(frame: &[u8]) -> i32 {
    i32::from_be_bytes(frame[4..8].try_into().expect("four bytes"))
}

/// The error code at the start of a response body without tagged fields in its head.
pub fn error(frame: &[u8]) -> i16 {
    i16::from_be_bytes([frame[8], frame[9]])
}
