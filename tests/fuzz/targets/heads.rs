//! Frames and their heads, as they come in pieces.

use bytes::BytesMut;
use convoke::wire::api::APIS;
use convoke::wire::codec::WireError;
use convoke::wire::frame::{
    LENGTH_SIZE, Parsed, RequestHead, ResponseHead, frame_len, produce_acks, request_head, response_head,
};

use super::{Target, number};
use crate::bodies::Random;

/// Prefixes that are tried one by one; of longer inputs the last ones are, too.
const PREFIXES: usize = 48;

pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "request head".to_owned(),
            reads: &["wire/frame.rs", "wire/reader.rs", "wire/text.rs"],
            seed: Box::new(request),
            run: Box::new(|input| {
                if let Some(head) = in_pieces(input, RequestHead::parse) {
                    assert!(head.body_offset <= input.len());
                    assert!(head.client_id(input).is_none_or(|id| id.len() <= 3 * input.len()));
                }
            }),
            // The client's id: three bytes for one that is not UTF-8, in a buffer that doubles.
            held_per_byte: 8,
        },
        Target {
            name: "response head".to_owned(),
            reads: &["wire/frame.rs"],
            seed: Box::new(response),
            run: Box::new(|mut input| {
                let (key, version) = choose(&mut input);
                if let Some(head) = in_pieces(input, |frame| ResponseHead::parse(key, version, frame)) {
                    assert!(head.body_offset <= input.len());
                }
            }),
            held_per_byte: 1,
        },
        Target {
            name: "frame length and acks".to_owned(),
            reads: &[
                "wire/frame.rs",
                "proxy/connection/requests.rs",
                "proxy/connection/responses.rs",
                "upstream/connection.rs",
            ],
            seed: Box::new(|random| (0..12).map(|_| random.byte() % 4).collect()),
            run: Box::new(|mut input| {
                if let Some(prefix) = input.first_chunk::<LENGTH_SIZE>()
                    && let Ok(len) = frame_len(*prefix, 1 << 20)
                {
                    assert!(len <= 1 << 20);
                }
                let version = i16::try_from(number(&mut input) % 16).expect("small") - 1;
                in_pieces(input, |body| produce_acks(version, body));
            }),
            held_per_byte: 1,
        },
    ]
}

/// Parses longer and longer pieces. More bytes must never change what fewer have told.
fn in_pieces<T: PartialEq + std::fmt::Debug>(
    input: &[u8],
    parse: impl Fn(&[u8]) -> Result<Parsed<T>, WireError>,
) -> Option<T> {
    let last = input.len().saturating_sub(PREFIXES).max(PREFIXES)..=input.len();
    let mut known: Option<Option<T>> = None;
    for len in (0..=input.len().min(PREFIXES)).chain(last) {
        let told = match parse(&input[..len]) {
            Ok(Parsed::NeedMore) => None,
            Ok(Parsed::Complete(head)) => Some(Some(head)),
            Err(_) => Some(None),
        };
        if known.is_some() {
            assert_eq!(told, known, "after {len} bytes");
        }
        known = told;
    }
    known.flatten()
}

fn choose(input: &mut &[u8]) -> (i16, i16) {
    let api = &APIS[number(input) % APIS.len()];
    let version = i16::try_from(number(input)).expect("a byte") % (api.max + 2);
    (api.key, version)
}

fn request(random: &mut Random) -> Vec<u8> {
    let api = &APIS[random.below(APIS.len())];
    let version = i16::try_from(random.below(usize::try_from(api.max + 2).expect("small"))).expect("small");
    let client_id = [None, Some(""), Some("consumer-1"), Some("é")][random.below(4)];
    let mut out = BytesMut::new();
    request_head(api.key, version, i32::from(random.byte()), client_id, &mut out).expect("a valid head");
    tagged(random, &mut out);
    out.to_vec()
}

fn response(random: &mut Random) -> Vec<u8> {
    let choice = [random.byte(), random.byte()];
    let (key, version) = choose(&mut &choice[..]);
    let mut out = BytesMut::from(&choice[..]);
    response_head(key, version, i32::from(random.byte()), &mut out);
    tagged(random, &mut out);
    out.to_vec()
}

/// Now and then a head that counts tagged fields has some; a body follows.
fn tagged(random: &mut Random, out: &mut BytesMut) {
    if random.below(2) == 0 && out.last() == Some(&0) {
        let at = out.len() - 1;
        out[at] = 2;
        out.extend_from_slice(&[0, 1, 7, 5, 2, 8, 9]);
    }
    out.extend_from_slice(b"body");
}
