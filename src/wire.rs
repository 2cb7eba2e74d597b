//! The Kafka wire format: frames, heads, the API table, the length guard, message codecs. No I/O.

pub mod api;
pub mod assignment;
mod body;
pub mod codec;
pub mod error_code;
pub mod frame;
pub mod guard;
pub mod lenient;
pub mod newest;
pub mod reader;
pub mod schema;
pub mod text;
