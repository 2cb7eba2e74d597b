//! Hostile bytes against everything that reads bytes from the network or from disk, for a bounded number of inputs; `make fuzz`
//! runs the same targets under libFuzzer.
//!
//! What must hold: nothing panics or aborts, nothing takes memory or time out of proportion to the input, and what each target
//! says of its decoder. Seeds are fixed: a failure prints the input, and comes again.

// The allocator that counts is the only way to see what a decoder asks for.
#![allow(unsafe_code)]

mod allocation;
mod bodies;
mod completeness;
mod hostile;
mod mutation;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use bodies::Random;
use targets::Target;

/// Inputs for each target.
const ROUNDS: usize = 2_000;
/// Far more than one input takes: a machine that does other things too must not matter.
const TIME_MAX: Duration = Duration::from_secs(5);

fn run(target: &Target, round: usize, input: &[u8]) {
    let started = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| target.check(input)));
    let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
    if let Err(panic) = outcome {
        eprintln!("target {:?}, round {round}, input {hex}", target.name);
        resume_unwind(panic);
    }
    let took = started.elapsed();
    assert!(took < TIME_MAX, "{:?}, round {round}: {took:?} for {hex}", target.name);
}

#[test]
fn nothing_that_is_read_panics_or_takes_memory_or_time_out_of_proportion() {
    for target in targets::all() {
        let mut random = Random::new(7);
        for round in 0..ROUNDS {
            let seed = (target.seed)(&mut random);
            let input = match round % 8 {
                0 => seed,
                1 => bodies::noise(&mut random),
                _ => {
                    let other = (target.seed)(&mut random);
                    mutation::mutate(seed, &other, &mut random)
                }
            };
            run(&target, round, &input);
        }
    }
}

#[test]
fn long_inputs_take_no_more_than_their_share() {
    for target in targets::all() {
        let mut random = Random::new(8);
        for byte in [0x00, 0x01, 0x02, 0x7f, 0x80, 0xff] {
            let mut input = (target.seed)(&mut random);
            input.extend(vec![byte; 30_000]);
            run(&target, usize::from(byte), &input);
        }
    }
}
