//! Metrics and logs.

pub mod api_metrics;
pub mod classic_group_metrics;
pub mod client_assignor_metrics;
pub mod close_reason;
pub mod consumer_group_metrics;
pub mod log;
pub mod log_limit;
pub mod metrics;
pub mod pattern_metrics;
pub mod process;
pub mod scrape;
