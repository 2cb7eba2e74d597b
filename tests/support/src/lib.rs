//! What the integration tests share: real Apache Kafka brokers, the Convoke process, and networks of their own, so that a
//! client that is told a broker's own address cannot reach it.
//!
//! Everything that is started here ends with the test, also when the test panics or the test process is killed.

pub mod convoke;
pub mod disk;
pub mod http;
pub mod jars;
pub mod kafka;
pub mod network;
pub mod ports;
pub mod process;
pub mod rng;
pub mod stock;

/// A failure of the harness itself or of what it runs, with what a reader needs to know.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;
