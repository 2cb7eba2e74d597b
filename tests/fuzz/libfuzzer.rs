//! One target of the list under libFuzzer, chosen by `CONVOKE_FUZZ_TARGET`; without it the names of all are printed.
//! `CONVOKE_FUZZ_CORPUS` is a folder that gets well-formed inputs to start from.

#![no_main]
// The shared modules have more than is used here.
#![allow(dead_code, unused_imports)]
// The allocator that counts, as in the bounded test.
#![allow(unsafe_code)]

mod allocation;
mod bodies;
mod targets;

use std::path::Path;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

use bodies::Random;
use targets::Target;

/// Well-formed inputs to start from.
const SEEDS: usize = 64;

static TARGET: OnceLock<Target> = OnceLock::new();

fn chosen() -> &'static Target {
    TARGET.get_or_init(|| {
        let mut all = targets::all();
        let name = std::env::var("CONVOKE_FUZZ_TARGET").unwrap_or_default();
        let Some(place) = all.iter().position(|target| target.name == name) else {
            all.iter().for_each(|target| println!("{}", target.name));
            std::process::exit(i32::from(!name.is_empty()));
        };
        let target = all.swap_remove(place);
        if let Some(folder) = std::env::var_os("CONVOKE_FUZZ_CORPUS") {
            let mut random = Random::new(1);
            for number in 0..SEEDS {
                let seed = (target.seed)(&mut random);
                let file = Path::new(&folder).join(format!("seed-{number}"));
                std::fs::write(file, seed).expect("the corpus can be written");
            }
        }
        target
    })
}

fuzz_target!(
    init: {
        chosen();
    },
    |input: &[u8]| chosen().check(input)
);
