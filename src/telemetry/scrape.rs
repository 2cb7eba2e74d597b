//! What only a scrape needs: gauges counted from a view of the coordinator and of the process, and the text itself.

use std::collections::BTreeMap;

use prometheus::TextEncoder;

use super::metrics::Metrics;
use super::process;
use crate::coordinator::request::ShardView;

/// The states of a classic group, shown even while no group is in them.
const CLASSIC_STATES: [&str; 5] = ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"];

/// The states of a consumer group.
const CONSUMER_STATES: [&str; 5] = ["Empty", "Assigning", "Reconciling", "Stable", "Dead"];

/// How many shards are in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShardCounts {
    pub loading: usize,
    pub active: usize,
    pub failed: usize,
}

impl Metrics {
    /// Sets the gauges about groups. Scrapes come one after the other, so nothing is seen half counted.
    pub fn set_groups(&self, views: &[ShardView]) {
        let classic = CLASSIC_STATES.map(|state| (("classic", state), 0));
        let consumer = CONSUMER_STATES.map(|state| (("consumer", state), 0));
        let mut states: BTreeMap<(&str, &str), i64> = classic.into_iter().chain(consumer).collect();
        let (mut members, mut pending, mut offsets, mut joins, mut syncs) = (0, 0, 0, 0, 0);
        for view in views {
            joins += view.parked_joins;
            syncs += view.parked_syncs;
            for group in &view.groups {
                *states.entry((&group.group_type, &group.state)).or_default() += 1;
                members += group.members.len();
                pending += group.pending_members;
                offsets += group.offsets;
            }
        }
        let gauges = self.groups();
        for ((group_type, state), count) in states {
            gauges.groups.with_label_values(&[group_type, state]).set(count);
        }
        self.consumer_groups.set(views.iter().flat_map(|view| &view.groups));
        self.client_assignors.set(views);
        gauges.members.set(gauge(members));
        gauges.pending_members.set(gauge(pending));
        gauges.offsets.set(gauge(offsets));
        gauges.parked.with_label_values(&["JoinGroup"]).set(gauge(joins));
        gauges.parked.with_label_values(&["SyncGroup"]).set(gauge(syncs));
    }

    /// Sets the gauge about shards.
    pub fn set_shards(&self, counts: ShardCounts) {
        let gauges = &self.groups().shards;
        gauges.with_label_values(&["loading"]).set(gauge(counts.loading));
        gauges.with_label_values(&["active"]).set(gauge(counts.active));
        gauges.with_label_values(&["failed"]).set(gauge(counts.failed));
    }

    /// Everything as Prometheus reads it (text format 0.0.4). Takes milliseconds with many series: call it where blocking is
    /// allowed.
    ///
    /// # Errors
    /// When a metric cannot be written as text; metrics whose names passed registration can.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        let mut families = self.registry().gather();
        families.extend(process::families());
        TextEncoder::new().encode_to_string(&families)
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
