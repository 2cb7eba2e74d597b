//! Inputs made of well-formed ones: bytes flipped, taken out, put in, lengths that claim too much, two inputs spliced.

use crate::bodies::Random;

/// Lengths that are huge, negative, or longer than a varint may be.
const CLAIMS: [&[u8]; 9] = [
    &[0xff, 0xff],
    &[0x7f, 0xff],
    &[0xff, 0xff, 0xff, 0xff],
    &[0x7f, 0xff, 0xff, 0xfe],
    &[0xff, 0xff, 0xff, 0xff, 0x07],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
    &[0x80, 0x00],
    &[0x00, 0x00, 0x00, 0x00],
];

/// Changes an input in up to four places. `other` is one to splice with.
pub fn mutate(mut input: Vec<u8>, other: &[u8], random: &mut Random) -> Vec<u8> {
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        let end = (at + 1 + random.below(8)).min(input.len());
        match random.below(9) {
            0 => input.truncate(at),
            1 => input.insert(at, random.byte()),
            2 => drop(input.drain(at..end)),
            3 => {
                let part = input[at..end].to_vec();
                input.splice(at..at, part);
            }
            4 => {
                let claim = CLAIMS[random.below(CLAIMS.len())];
                let end = (at + claim.len()).min(input.len());
                input.splice(at..end, claim.iter().copied());
            }
            5 => {
                input.truncate(at);
                input.extend_from_slice(&other[random.below(other.len() + 1)..]);
            }
            6 if at < input.len() => input[at] = random.byte(),
            _ if at < input.len() => input[at] ^= 1 << random.below(8),
            _ => input.push(random.byte()),
        }
    }
    input
}
