//! Bodies that Kafka 4.4.0 wrote, from `tests/golden/wire_messages.txt`; those of client-side assignors from
//! `tests/golden/assignment_messages.txt`.

use bytes::{Bytes, BytesMut};

use super::{Encode, encode};

const KAFKAS: &str = include_str!("../../../tests/golden/wire_messages.txt");
const ASSIGNMENT: &str = include_str!("../../../tests/golden/assignment_messages.txt");

/// The bodies of one kind, key and version, in the order of the file.
fn bodies(file: &str, kind: &str, api_key: i16, version: i16) -> Vec<Bytes> {
    let prefix = format!("{kind} {api_key} {version} ");
    file.lines()
        .filter_map(|line| line.strip_prefix(&prefix))
        .map(bytes_of)
        .collect()
}

fn bytes_of(hex: &str) -> Bytes {
    let digit = |digit: u8| {
        char::from(digit)
            .to_digit(16)
            .and_then(|value| u8::try_from(value).ok())
            .expect("hex")
    };
    hex.as_bytes()
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

fn only(mut bodies: Vec<Bytes>) -> Bytes {
    assert_eq!(bodies.len(), 1, "one body of this kind, key and version");
    bodies.remove(0)
}

/// The request of this key and version.
pub fn request(api_key: i16, version: i16) -> Bytes {
    only(requests(api_key, version))
}

/// All requests of this key and version.
pub fn requests(api_key: i16, version: i16) -> Vec<Bytes> {
    bodies(KAFKAS, "request", api_key, version)
}

/// The response of this key and version.
pub fn response(api_key: i16, version: i16) -> Bytes {
    only(bodies(KAFKAS, "response", api_key, version))
}

/// All requests of this key and version that have to do with client-side assignors.
pub fn assignment_requests(api_key: i16, version: i16) -> Vec<Bytes> {
    bodies(ASSIGNMENT, "request", api_key, version)
}

/// All responses of this key and version that have to do with client-side assignors.
pub fn assignment_responses(api_key: i16, version: i16) -> Vec<Bytes> {
    bodies(ASSIGNMENT, "response", api_key, version)
}

/// What is written here.
pub fn encoded<T: Encode>(message: &T, version: i16) -> Bytes {
    let mut out = BytesMut::new();
    encode(message, version, &mut out).expect("it can be written");
    out.freeze()
}
