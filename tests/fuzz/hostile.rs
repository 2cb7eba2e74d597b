//! The length guard and the decoders behind it, along the tables of every message that is decoded.
//!
//! What must hold: nothing panics or aborts; no valid body is refused; what the guard passes is decoded without an error;
//! and no body makes a decoder take memory out of proportion to its size.

use convoke::wire::guard;

use crate::allocation;
use crate::bodies::{self, Random};
use crate::targets::{MESSAGES, Message};

/// The most that a decoder may hold at once for each byte of a body. The worst is 51: a group of a ListGroups v3 response
/// takes 152 bytes for three; where each element has an unknown tag, its map takes 450 bytes for 16 of the body.
const HELD_PER_BYTE_MAX: usize = 56;
/// What it may hold for the smallest body.
const HELD_MIN: usize = 4096;

/// Checks one body, which may be anything, and tells whether it passed.
fn survives(message: &Message, version: i16, body: &[u8]) -> bool {
    let mut decoded = Ok(());
    let held = allocation::most_held(|| decoded = message.decode(version, body));
    let bound = HELD_MIN + HELD_PER_BYTE_MAX * body.len();
    assert!(
        held <= bound,
        "{message:?} v{version}: {held} bytes held for {body:02x?}"
    );
    if guard::check(message.schema, version, body).is_ok() {
        assert_eq!(decoded, Ok(()), "{message:?} v{version} after the guard: {body:02x?}");
    }
    message.check(version, body)
}

/// Versions that are decoded and never written: requests of clients, and answers that have the form of the version before.
const NOT_WRITTEN: [(&str, i16); 5] = [
    ("ApiVersions response", 5),
    ("DeleteGroups request", 3),
    ("ListOffsets response", 11),
    ("OffsetCommit request", 10),
    ("OffsetFetch request", 10),
];

#[test]
fn valid_bodies_pass_and_come_out_as_they_went_in() {
    let mut random = Random::new(1);
    for message in MESSAGES {
        for version in message.schema.min..=message.schema.max {
            for _ in 0..100 {
                let body = bodies::valid(message.schema, version, 0, &mut random);
                assert!(survives(message, version, &body), "{message:?} v{version}: {body:02x?}");
                let encoded = message.encoded_again(version, &body);
                let expected = if NOT_WRITTEN.contains(&(message.schema.name, version)) {
                    None
                } else {
                    Some(body)
                };
                assert_eq!(encoded, expected, "{message:?} v{version}");
            }
        }
    }
}

#[test]
fn unknown_tagged_fields_are_taken() {
    let mut random = Random::new(3);
    for message in MESSAGES {
        for version in message.schema.min..=message.schema.max {
            for _ in 0..50 {
                let body = bodies::valid(message.schema, version, 4, &mut random);
                assert!(survives(message, version, &body), "{message:?} v{version}: {body:02x?}");
            }
        }
    }
}

#[test]
fn random_and_mutated_bodies_neither_panic_nor_take_much_memory() {
    const ROUNDS: usize = 2000;
    let mut random = Random::new(2);
    let mut passed = 0;
    let mut tried = 0;
    for message in MESSAGES {
        for version in message.schema.min..=message.schema.max {
            for round in 0..ROUNDS {
                let body = match round % 3 {
                    0 => bodies::noise(&mut random),
                    _ => bodies::mutated(message.schema, version, &mut random),
                };
                passed += usize::from(survives(message, version, &body));
                tried += 1;
            }
        }
    }
    assert!(tried >= 300_000, "{tried} bodies");
    // If no mutation passed, only the first check would be tested.
    assert!(passed > tried / 20, "{passed} of {tried} passed");
}

#[test]
fn bodies_of_the_smallest_elements_take_memory_in_proportion() {
    for message in MESSAGES {
        for version in message.schema.min..=message.schema.max {
            for (unknown_tags, depth) in [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (0, 2)] {
                let body = bodies::dense(message.schema, version, unknown_tags, depth, 30_000);
                let passed = survives(message, version, &body);
                assert!(passed || unknown_tags > 0, "{message:?} v{version}");
            }
        }
    }
}

#[test]
fn versions_out_of_range_are_refused() {
    for message in MESSAGES {
        for version in [i16::MIN, message.schema.min - 1, message.schema.max + 1, i16::MAX] {
            assert!(!survives(message, version, &[0; 64]), "{message:?} v{version}");
        }
    }
}
