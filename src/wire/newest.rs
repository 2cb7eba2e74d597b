//! Versions of Kafka 4.4.0 that kafka-protocol 0.18 (made from the schemas of 4.1.0) lacks.
//!
//! The length guard has passed what is decoded here. Unknown tagged fields are dropped: nothing of this is forwarded.

pub mod api_versions;
pub mod delete_groups;
pub mod list_offsets;
pub mod offset_commit;
pub mod offset_fetch;

#[cfg(test)]
mod tests;
