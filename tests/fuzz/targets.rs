//! Everything that reads bytes from the network or from disk, as one list: the bounded test (`main.rs`) and the one that runs
//! under libFuzzer (`libfuzzer.rs`) take their targets from it, so nothing is in one and not in the other.

mod heads;
mod messages;
mod records;
mod rewriting;
mod sasl;
mod small;

pub use messages::{MESSAGES, Message};

use crate::allocation;
use crate::bodies::Random;

/// Whatever a target is given, it may hold so many bytes.
const HELD_MIN: usize = 64 * 1024;

type Seed = Box<dyn Fn(&mut Random) -> Vec<u8> + Send + Sync>;
type Run = Box<dyn Fn(&[u8]) + Send + Sync>;

/// One decoder, or a few that read the same bytes.
pub struct Target {
    pub name: String,
    /// The files under `src/` whose reading of bytes it covers.
    pub reads: &'static [&'static str],
    /// An input that is well-formed; the start of those that are not.
    pub seed: Seed,
    /// Takes any bytes. Panics if something is wrong with what the decoder made of them.
    pub run: Run,
    /// The most that it may hold at once for each byte of the input.
    pub held_per_byte: usize,
}

impl Target {
    /// Runs it.
    ///
    /// # Panics
    /// If the target finds something wrong, or takes memory out of proportion to the input.
    pub fn check(&self, input: &[u8]) {
        let held = allocation::most_held(|| (self.run)(input));
        let bound = HELD_MIN + self.held_per_byte * input.len();
        assert!(held <= bound, "{held} bytes held for an input of {}", input.len());
    }
}

/// Every target.
pub fn all() -> Vec<Target> {
    let mut targets = messages::targets();
    targets.extend(heads::targets());
    targets.extend(rewriting::targets());
    targets.extend(sasl::targets());
    targets.extend(records::targets());
    targets.extend(small::targets());
    targets
}

/// Takes a number off the front; 0 where there is none.
fn number(input: &mut &[u8]) -> usize {
    match input.split_first() {
        Some((first, rest)) => {
            *input = rest;
            usize::from(*first)
        }
        None => 0,
    }
}

/// Takes a part off the front that its first byte tells the length of.
fn part<'a>(input: &mut &'a [u8]) -> &'a [u8] {
    let len = number(input).min(input.len());
    let (part, rest) = input.split_at(len);
    *input = rest;
    part
}

/// Puts a part before what follows, as [`part`] takes it off; what is longer than a length can say is cut.
fn put_part(part: &[u8], out: &mut Vec<u8>) {
    let part = &part[..part.len().min(usize::from(u8::MAX))];
    out.push(u8::try_from(part.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(part);
}

fn unhex(hex: &str) -> Vec<u8> {
    let digit = |digit: u8| {
        char::from(digit)
            .to_digit(16)
            .and_then(|value| u8::try_from(value).ok())
    };
    let pairs = hex.as_bytes().chunks_exact(2);
    let bytes = pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?));
    bytes.collect::<Option<_>>().expect("hex")
}
