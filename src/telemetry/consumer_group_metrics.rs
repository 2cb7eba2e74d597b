//! The metrics of consumer groups (KIP-848), beside those that count groups of every kind.

use std::collections::BTreeMap;
use std::time::Duration;

use prometheus::{Histogram, IntCounter, IntGaugeVec};

use super::metrics::Maker;
use crate::coordinator::event::{EpochReason, Event};
use crate::coordinator::record::MemberState;
use crate::coordinator::request::GroupView;

/// The states of a member, shown even while nobody is in them.
const MEMBER_STATES: [MemberState; 4] = [
    MemberState::Stable,
    MemberState::UnrevokedPartitions,
    MemberState::UnreleasedPartitions,
    MemberState::Unknown,
];

/// What consumer groups do, and how far they are.
#[derive(Debug)]
pub struct ConsumerGroupMetrics {
    epoch_bumps: BTreeMap<EpochReason, IntCounter>,
    members_removed: BTreeMap<EpochReason, IntCounter>,
    settle_seconds: Histogram,
    assignor_seconds: Histogram,
    assignor_failures: IntCounter,
    partitions_moved: IntCounter,
    converted: BTreeMap<&'static str, IntCounter>,
    members: IntGaugeVec,
    partitions_pending: IntGaugeVec,
}

impl ConsumerGroupMetrics {
    pub(super) fn new(make: &Maker<'_>) -> Self {
        let by_reason = |name, help| {
            let vec = make.counters(name, help, &["reason"]);
            let reasons = EpochReason::ALL.iter();
            reasons
                .map(|reason| (*reason, vec.with_label_values(&[reason.label()])))
                .collect()
        };
        let converted = make.counters(
            "convoke_groups_converted_total",
            "Groups that changed between the classic and the consumer protocol, by the one that they have then.",
            &["to"],
        );
        Self {
            epoch_bumps: by_reason(
                "convoke_consumer_group_epoch_bumps_total",
                "Times that a consumer group's epoch became one more, which begins a rebalance, by what caused it.",
            ),
            members_removed: by_reason(
                "convoke_consumer_group_members_removed_total",
                "Members that left their consumer groups or were taken out, by reason.",
            ),
            settle_seconds: make.histogram(
                "convoke_consumer_group_settle_seconds",
                "Time from the change of a settled consumer group until it was settled again.",
                &[0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0],
            ),
            assignor_seconds: make.histogram(
                "convoke_consumer_group_assignor_seconds",
                "Time that a shard took to compute the target assignment of a consumer group.",
                &[
                    0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
                ],
            ),
            assignor_failures: make.counter(
                "convoke_consumer_group_assignor_failures_total",
                "Times that no target assignment could be computed.",
            ),
            partitions_moved: make.counter(
                "convoke_consumer_group_partitions_moved_total",
                "Partitions that a target assignment gave to another member.",
            ),
            converted: ["classic", "consumer"]
                .map(|to| (to, converted.with_label_values(&[to])))
                .into(),
            members: make.gauges(
                "convoke_consumer_group_members",
                "Members of consumer groups, by how far they are on the way to their target.",
                &["state"],
            ),
            partitions_pending: make.gauges(
                "convoke_consumer_group_partitions_pending",
                "Partitions in movement: those that members still have to give up, and those that they are to get.",
                &["step"],
            ),
        }
    }

    pub(super) fn event(&self, event: &Event) {
        match event {
            Event::GroupEpochBumped { reason, .. } => inc(&self.epoch_bumps, reason),
            Event::ConsumerMemberRemoved { reason, .. } => inc(&self.members_removed, reason),
            Event::TargetComputed { partitions_moved, .. }
            | Event::ComputationInstalled {
                partitions_moved,
                partitions_withheld: None,
                ..
            } => self.partitions_moved.inc_by(*partitions_moved as u64),
            Event::AssignorFailed { .. } => self.assignor_failures.inc(),
            Event::ConsumerGroupSettled { took_ms, .. } => {
                let took = Duration::from_millis(*took_ms);
                self.settle_seconds.observe(took.as_secs_f64());
            }
            Event::GroupConverted { to, .. } => inc(&self.converted, to),
            _ => {}
        }
    }

    /// A step of a shard that computed a target assignment.
    pub fn target_computed(&self, took: Duration) {
        self.assignor_seconds.observe(took.as_secs_f64());
    }

    /// Sets the gauges to what these groups are.
    pub(super) fn set<'a>(&self, groups: impl Iterator<Item = &'a GroupView>) {
        let mut members = BTreeMap::from(MEMBER_STATES.map(|state| (state, 0)));
        let (mut to_revoke, mut to_assign) = (0, 0);
        for group in groups {
            if let Some(consumer) = &group.consumer {
                to_revoke += consumer.partitions_to_revoke;
                to_assign += consumer.partitions_to_assign;
            }
            for member in group.members.iter().filter_map(|member| member.consumer.as_ref()) {
                *members.entry(member.state).or_default() += 1;
            }
        }
        for (state, count) in members {
            self.members.with_label_values(&[state.label()]).set(count);
        }
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let pending = &self.partitions_pending;
        pending.with_label_values(&["revoke"]).set(gauge(to_revoke));
        pending.with_label_values(&["assign"]).set(gauge(to_assign));
    }
}

fn inc<K: Ord>(counters: &BTreeMap<K, IntCounter>, key: &K) {
    if let Some(counter) = counters.get(key) {
        counter.inc();
    }
}
