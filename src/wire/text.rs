//! Text as Java reads it: what is not UTF-8 becomes U+FFFD, as a broker's own `new String(bytes, UTF_8)` has it.
//!
//! A group id that is not UTF-8 is so another id to a broker, and it is to be the same other id here: two ids fold into one
//! where Kafka folds them and nowhere else. Java and Rust agree on how many bytes one replacement stands for but for encoded
//! surrogates (`ED A0..BF ..`), which Java takes for one character; `tests/golden/java_texts.txt` is what Java made of bytes.

use std::borrow::Cow;

const CONTINUATION: std::ops::RangeInclusive<u8> = 0x80..=0xbf;
/// The second byte of an encoded surrogate, after `ED`.
const SURROGATE: std::ops::RangeInclusive<u8> = 0xa0..=0xbf;

/// Whether the bytes are UTF-8; most are ASCII, which is told sooner.
#[must_use]
pub fn is_utf8(bytes: &[u8]) -> bool {
    bytes.is_ascii() || std::str::from_utf8(bytes).is_ok()
}

/// The text that Java makes of these bytes; the bytes themselves where they are UTF-8.
#[must_use]
pub fn as_java(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(chunk) = rest.utf8_chunks().next() {
        text.push_str(chunk.valid());
        let behind = rest.get(chunk.valid().len()..).unwrap_or_default();
        let replaced = surrogate_len(behind).unwrap_or(chunk.invalid().len());
        if replaced > 0 {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        rest = behind.get(replaced..).unwrap_or_default();
    }
    Cow::Owned(text)
}

/// The hash of a text as Java has it, over UTF-16 code units.
#[must_use]
pub fn java_hash(text: &str) -> i32 {
    let units = text.encode_utf16();
    units.fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// The bytes of an encoded surrogate at the front, which may be cut short.
fn surrogate_len(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [0xed, second, third, ..] if SURROGATE.contains(second) && CONTINUATION.contains(third) => Some(3),
        [0xed, second, ..] if SURROGATE.contains(second) => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unhex(hex: &str) -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2);
        let bytes = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16));
        bytes.collect::<Result<_, _>>().expect("hex")
    }

    #[test]
    fn bytes_are_read_as_java_reads_them() {
        let lines = include_str!("../../tests/golden/java_texts.txt").lines();
        let mut count = 0;
        for line in lines {
            let (bytes, expected) = line.split_once(' ').expect("two words");
            assert_eq!(as_java(&unhex(bytes)).as_bytes(), unhex(expected), "{bytes}");
            count += 1;
        }
        assert!(count > 7_000, "{count} lines");
    }

    proptest! {
        #[test]
        fn text_stays_and_anything_else_is_no_longer_than_three_for_one(bytes in prop::collection::vec(any::<u8>(), 0..40), text in ".*") {
            prop_assert!(as_java(&bytes).len() <= 3 * bytes.len());
            prop_assert!(matches!(as_java(text.as_bytes()), Cow::Borrowed(same) if same == text));
        }
    }
}
