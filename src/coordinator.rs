//! The group coordinator as a pure state machine: no clock, no I/O, no randomness of its own.
//!
//! `Shard::step(now, input)` answers with records to append, replies to send and events to tell. Requests make records,
//! records change memory, and loading a shard applies the same records, so memory and disk cannot disagree.
//! A reply leaves only when everything it could have seen is durable.

pub mod event;
pub mod input;
pub mod offsets;
pub mod record;
pub mod request;
pub mod settings;
pub mod shard;
