//! The metrics of client-side assignors: what was computed outside of the coordinator, in which time, and what became of the rest.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

use prometheus::{HistogramVec, IntCounterVec, IntGauge};

use super::metrics::Maker;
use crate::coordinator::event::{Event, FallBackReason, PassedOverReason};
use crate::coordinator::request::{ShardView, Text};

/// The label of names that no rule of the config has: clients choose those, and must not make series.
const OTHER: &str = "other";

/// From an assignor on this machine to one that takes a member's whole rebalance timeout.
const BUCKETS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// What client-side assignors do, by the name of the assignor.
#[derive(Debug)]
pub struct ClientAssignorMetrics {
    /// The names of `assignors` in the config.
    known: OnceLock<BTreeSet<String>>,
    wanted: IntCounterVec,
    seconds: HistogramVec,
    passed_over: IntCounterVec,
    refused: IntCounterVec,
    fell_back: IntCounterVec,
    externals: IntGauge,
}

impl ClientAssignorMetrics {
    pub(super) fn new(make: &Maker<'_>) -> Self {
        Self {
            known: OnceLock::new(),
            wanted: make.counters(
                "convoke_client_assignor_wanted_total",
                "Times that a group's assignment was to be computed by a member or an external assignor.",
                &["assignor"],
            ),
            seconds: make.histograms(
                "convoke_client_assignor_seconds",
                "Time from wanting an assignment until one computed by a member or an external assignor was installed.",
                &["assignor"],
                BUCKETS,
            ),
            passed_over: make.counters(
                "convoke_client_assignor_passed_over_total",
                "Times that who was to compute an assignment did not, by reason.",
                &["assignor", "reason"],
            ),
            refused: make.counters(
                "convoke_client_assignor_refused_total",
                "Computed assignments that were not valid; the log says why.",
                &["assignor"],
            ),
            fell_back: make.counters(
                "convoke_client_assignor_fell_back_total",
                "Times that a server assignor had to compute in the place of a client-side one, by reason.",
                &["assignor", "reason"],
            ),
            externals: make.gauge(
                "convoke_external_assignors",
                "External assignors that are registered, counted once for each group or pattern of groups.",
            ),
        }
    }

    /// Tells the names that have labels of their own, which are shown with zeroes from now on. The first call counts.
    pub fn know<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let names = names.into_iter().map(ToOwned::to_owned);
        let known = self.known.get_or_init(|| names.collect());
        for name in known.iter().map(String::as_str).chain([OTHER]) {
            self.wanted.with_label_values(&[name]);
            self.seconds.with_label_values(&[name]);
            self.refused.with_label_values(&[name]);
            for reason in PassedOverReason::ALL {
                self.passed_over.with_label_values(&[name, reason.label()]);
            }
            for reason in FallBackReason::ALL {
                self.fell_back.with_label_values(&[name, reason.label()]);
            }
        }
    }

    fn label<'a>(&self, assignor: &'a Text) -> &'a str {
        let known = self.known.get();
        if known.is_some_and(|known| known.contains(&**assignor)) {
            assignor
        } else {
            OTHER
        }
    }

    pub(super) fn event(&self, event: &Event) {
        match event {
            Event::ComputationWanted { assignor, .. } => self.wanted.with_label_values(&[self.label(assignor)]).inc(),
            Event::ComputationInstalled { assignor, took_ms, .. } => {
                let seconds = self.seconds.with_label_values(&[self.label(assignor)]);
                seconds.observe(Duration::from_millis(*took_ms).as_secs_f64());
            }
            Event::ComputationPassedOver { assignor, reason, .. } => {
                let labels = [self.label(assignor), reason.label()];
                self.passed_over.with_label_values(&labels).inc();
            }
            Event::ComputationRefused { assignor, .. } => {
                self.refused.with_label_values(&[self.label(assignor)]).inc();
            }
            Event::ComputationFellBack { assignor, reason, .. } => {
                let labels = [self.label(assignor), reason.label()];
                self.fell_back.with_label_values(&labels).inc();
            }
            _ => {}
        }
    }

    /// Sets the gauge to what these shards have.
    pub(super) fn set(&self, views: &[ShardView]) {
        let externals: usize = views.iter().map(|view| view.externals.len()).sum();
        self.externals.set(i64::try_from(externals).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics::Metrics;

    #[test]
    fn what_is_computed_outside_is_counted_by_the_names_of_the_config() {
        let metrics = Metrics::new();
        metrics.client_assignors.know(["lag-balanced"]);
        let (group_id, member_id) = (Text::from("g"), Text::from("m"));
        for assignor in ["lag-balanced", "somebodys", "somebody-elses"].map(Text::from) {
            metrics.event(&Event::ComputationWanted {
                group_id: group_id.clone(),
                group_epoch: 1,
                assignor: assignor.clone(),
            });
            metrics.event(&Event::ComputationPassedOver {
                group_id: group_id.clone(),
                assignor: assignor.clone(),
                member_id: member_id.clone(),
                reason: PassedOverReason::TimedOut,
            });
            metrics.event(&Event::ComputationRefused {
                group_id: group_id.clone(),
                assignor: assignor.clone(),
                member_id: member_id.clone(),
                reason: Text::from("partition 1 of orders is nobody's"),
            });
            metrics.event(&Event::ComputationFellBack {
                group_id: group_id.clone(),
                assignor: assignor.clone(),
                to: Text::from("uniform"),
                reason: FallBackReason::AllPassedOver,
            });
            metrics.event(&Event::ComputationInstalled {
                group_id: group_id.clone(),
                group_epoch: 1,
                assignor,
                member_id: member_id.clone(),
                took_ms: 40,
                members: 2,
                partitions_moved: 3,
                partitions_withheld: None,
            });
        }
        let shown = metrics.render().expect("text");
        for line in [
            "convoke_client_assignor_wanted_total{assignor=\"lag-balanced\"} 1\n",
            "convoke_client_assignor_wanted_total{assignor=\"other\"} 2\n",
            "convoke_client_assignor_passed_over_total{assignor=\"lag-balanced\",reason=\"timed_out\"} 1\n",
            "convoke_client_assignor_passed_over_total{assignor=\"other\",reason=\"gone\"} 0\n",
            "convoke_client_assignor_refused_total{assignor=\"other\"} 2\n",
            "convoke_client_assignor_fell_back_total{assignor=\"other\",reason=\"all_passed_over\"} 2\n",
            "convoke_client_assignor_seconds_sum{assignor=\"lag-balanced\"} 0.04\n",
            "convoke_consumer_group_partitions_moved_total 9\n",
        ] {
            assert!(shown.contains(line), "{line}{shown}");
        }
        assert!(!shown.contains("somebody"));
    }
}
