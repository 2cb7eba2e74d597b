//! The metrics of consumer groups' patterns.

use prometheus::{Histogram, IntCounter};

use super::metrics::Maker;

/// What it takes to find the topics that consumer groups' patterns stand for.
#[derive(Debug)]
pub struct PatternMetrics {
    /// To compile a pattern and match it with every topic.
    pub seconds: Histogram,
    /// Patterns whose topics were known from before.
    pub remembered: IntCounter,
    /// Patterns that are none, or cost too much.
    pub refused: IntCounter,
}

impl PatternMetrics {
    pub(super) fn new(make: &Maker<'_>) -> Self {
        Self {
            seconds: make.histogram(
                "convoke_pattern_seconds",
                "Time to match the pattern of a consumer group with every topic.",
                &[0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0],
            ),
            remembered: make.counter(
                "convoke_patterns_remembered_total",
                "Patterns of consumer groups whose topics were known from before.",
            ),
            refused: make.counter(
                "convoke_patterns_refused_total",
                "Patterns of consumer groups that are no regular expressions, or cost too much.",
            ),
        }
    }
}
