//! Convoke: a Kafka-wire-compatible sidecar that runs the consumer-group coordinator.
//!
//! | module | its one job |
//! |---|---|
//! | [`cli`] | the command line: `run`, `check`, `health`, `assignor` |
//! | [`config`] | the YAML file, environment and flags, typed and validated, all problems at once |
//! | [`wire`] | frames, heads, the API table, the length guard, message codecs; no I/O |
//! | [`coordinator`] | the pure group coordinator: one state machine a shard; no clock, no I/O, no tokio |
//! | [`store`] | durable state: the `StateStore` trait and the embedded store |
//! | [`runtime`] | the owner task of each shard: clock, store and upstream around the pure core |
//! | [`upstream`] | our own client to the brokers: metadata, settings, the import of offsets |
//! | [`handler`] | one file for each API that ends here: decode, ask the coordinator, encode |
//! | [`proxy`] | listeners, client connections, routing, ordering, rewriting |
//! | [`telemetry`] | metrics and logs |
//! | [`server`] | the assembled process: everything in start order, and its end |
//! | [`external_assignor`] | `convoke assignor`: assignments by a command of the user's |
//! | [`admin`] | HTTP: `/metrics`, `/healthz`, `/readyz`, `/groups` |
//!
//! Dependencies point from the last row to the first; `coordinator` uses only `wire::error_code`.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod admin;
pub mod cli;
pub mod config;
pub mod coordinator;
pub mod external_assignor;
pub mod handler;
pub mod proxy;
pub mod runtime;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod upstream;
pub mod wire;
