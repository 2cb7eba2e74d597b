//! The metrics of classic groups that are assigned for here, beside those that count groups of every kind.

use std::collections::BTreeMap;
use std::time::Duration;

use prometheus::{Histogram, IntCounter};

use super::metrics::Maker;
use crate::coordinator::assignor::ClassicAssignor;
use crate::coordinator::event::{Event, LeaderReason};

/// How classic groups are assigned for.
#[derive(Debug)]
pub struct ClassicGroupMetrics {
    assignor_seconds: BTreeMap<&'static str, Histogram>,
    partitions_moved: IntCounter,
    partitions_withheld: IntCounter,
    left_to_leaders: BTreeMap<LeaderReason, IntCounter>,
}

impl ClassicGroupMetrics {
    pub(super) fn new(make: &Maker<'_>) -> Self {
        let seconds = make.histograms(
            "convoke_classic_group_assignor_seconds",
            "Time that a shard took to assign for a classic group, by assignor.",
            &["assignor"],
            &[
                0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
            ],
        );
        let left = make.counters(
            "convoke_classic_group_assignments_left_to_leaders_total",
            "Generations of classic groups under a rule of groups.assign that a leader had to assign for, by reason.",
            &["reason"],
        );
        Self {
            assignor_seconds: ClassicAssignor::NAMES
                .map(|name| (name, seconds.with_label_values(&[name])))
                .into(),
            partitions_moved: make.counter(
                "convoke_classic_group_partitions_moved_total",
                "Partitions that an assignment made here gave to another member.",
            ),
            partitions_withheld: make.counter(
                "convoke_classic_group_partitions_withheld_total",
                "Partitions that waited for their owners to give them up before another member got them.",
            ),
            left_to_leaders: LeaderReason::ALL
                .map(|reason| (reason, left.with_label_values(&[reason.label()])))
                .into(),
        }
    }

    pub(super) fn event(&self, event: &Event) {
        match event {
            Event::ClassicAssigned {
                partitions_moved,
                partitions_withheld,
                ..
            }
            | Event::ComputationInstalled {
                partitions_moved,
                partitions_withheld: Some(partitions_withheld),
                ..
            } => {
                self.partitions_moved.inc_by(*partitions_moved as u64);
                self.partitions_withheld.inc_by(*partitions_withheld as u64);
            }
            Event::AssignmentLeftToLeader { reason, .. } => {
                if let Some(counter) = self.left_to_leaders.get(reason) {
                    counter.inc();
                }
            }
            _ => {}
        }
    }

    /// A step of a shard that assigned for a classic group.
    pub fn assigned(&self, assignor: &str, took: Duration) {
        if let Some(histogram) = self.assignor_seconds.get(assignor) {
            histogram.observe(took.as_secs_f64());
        }
    }
}
