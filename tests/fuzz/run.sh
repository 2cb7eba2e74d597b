#!/bin/bash
# Builds the targets with libFuzzer's coverage and runs those whose name holds the first argument (all without one), each for the
# second argument's seconds (60). Corpora and crashes stay in target/fuzz. Stable Rust and a C++ compiler are enough.
set -euo pipefail
cd "$(dirname "$0")/../.."
wanted=${1:-} seconds=${2:-60} folder=$PWD/target/fuzz host=$(rustc -vV | sed -n 's/^host: //p')
coverage=(-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing)
# With a target named, the flags reach neither build scripts nor macros.
RUSTFLAGS="${coverage[*]}" "${CARGO:-cargo}" build --release --locked --manifest-path tests/fuzz/Cargo.toml --target "$host" \
    --target-dir "$folder/build"
program=$folder/build/$host/release/any
names=$("$program" | grep -iF -- "$wanted") || { echo "no target is called so: $wanted"; exit 1; }
while read -r name; do
    corpus="$folder/corpus/${name// /-}"
    mkdir -p "$corpus" "$folder/crashes"
    echo "== $name"
    CONVOKE_FUZZ_TARGET=$name CONVOKE_FUZZ_CORPUS=$corpus "$program" "$corpus" -max_total_time="$seconds" -max_len=8192 -timeout=10 \
        -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 -artifact_prefix="$folder/crashes/${name// /-}-" </dev/null
done <<<"$names"
