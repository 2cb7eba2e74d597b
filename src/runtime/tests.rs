//! The shards around the real core, on a store and an upstream that do as the test says, with tokio's clock paused: "it does
//! not happen" is waited for until nothing but far timers is left to run.

mod failures;
mod heavy_duty;
mod inspections;
mod kit;
pub(super) mod log_lines;
mod serving;
