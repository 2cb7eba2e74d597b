//! The group coordinator as a pure state machine: no clock, no I/O, no randomness of its own.
//!
//! `Shard::step(now, input)` answers with records to append, replies to send and events to tell. Requests make records,
//! records change memory, and loading a shard applies the same records, so memory and disk cannot disagree.
//! A reply leaves only when everything it could have seen is durable.
//!
//! | part | its job |
//! |---|---|
//! | `shard` | one step: timers, input, records and held replies out |
//! | `admission`, `ownership` | what is decided before a group is looked at; whether the group is ours |
//! | `groups` | the group map and the offsets: what concerns both |
//! | `group` | the kinds of group; `classic` is one, a new one is a module beside it |
//! | `group_config` | the settings of single groups |
//! | `client_assignor`, `external` | assignments that are computed outside; the processes that do nothing else |
//! | `assignor` | the server-side assignors of consumer groups |
//! | `offsets`, `record` | committed offsets and their rules; Kafka's record formats |

mod admission;
pub mod assignor;
mod classic;
mod client_assignor;
mod consumer;
pub mod consumer_protocol;
mod context;
pub mod event;
mod external;
mod group;
pub mod group_config;
pub mod group_patterns;
mod groups;
pub mod held;
pub mod input;
mod member_id;
mod migration;
pub mod offsets;
mod ownership;
pub mod partitions;
pub mod record;
pub mod request;
pub mod settings;
pub mod shard;
mod timer;
pub mod topic_names;
pub mod topics;

pub(crate) use client_assignor::ASSIGNORS_MAX;

#[cfg(test)]
mod tests;
