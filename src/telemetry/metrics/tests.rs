use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::coordinator::request::{GroupView, ShardView};
use crate::telemetry::scrape::ShardCounts;

fn text(metrics: &Metrics) -> String {
    metrics.render().expect("every metric is text")
}

/// A renamed metric breaks dashboards and alerts: the list is part of what users rely on.
#[test]
fn metric_names_are_the_ones_that_dashboards_know() {
    let metrics = Metrics::new();
    metrics.set_groups(&[]);
    metrics.set_shards(ShardCounts::default());
    metrics.api(11).error(16);
    let shown: BTreeSet<String> = text(&metrics)
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter(|line| !line.starts_with("process_"))
        .map(ToOwned::to_owned)
        .collect();
    let known: BTreeSet<String> = include_str!("names.txt").lines().map(ToOwned::to_owned).collect();
    assert_eq!(
        shown, known,
        "names.txt lists every metric with its type; change it together with the README"
    );
}

#[test]
fn groups_are_counted_by_type_and_state_and_vanish_from_the_count() {
    let metrics = Metrics::new();
    let group = |state: &str| GroupView {
        group_id: Arc::from("g"),
        group_type: Arc::from("classic"),
        state: Arc::from(state),
        protocol_type: None,
        protocol_name: None,
        generation_id: 1,
        leader: None,
        state_since_ms: 0,
        members: Vec::new(),
        pending_members: 2,
        offsets: 3,
        consumer: None,
    };
    let view = ShardView {
        groups: vec![group("Stable"), group("Empty"), group("Empty")],
        parked_joins: 4,
        parked_syncs: 0,
    };
    metrics.set_groups(&[view]);
    let shown = text(&metrics);
    assert!(
        shown.contains("convoke_groups{state=\"Empty\",type=\"classic\"} 2\n"),
        "{shown}"
    );
    assert!(shown.contains("convoke_group_offsets 9\n"));
    assert!(shown.contains("convoke_parked_requests{api=\"JoinGroup\"} 4\n"));
    metrics.set_groups(&[]);
    assert!(text(&metrics).contains("convoke_groups{state=\"Empty\",type=\"classic\"} 0\n"));
}

#[test]
fn a_client_cannot_make_series() {
    let metrics = Metrics::new();
    for key in i16::MIN..=i16::MAX {
        metrics.api(key).error(key);
    }
    let series = text(&metrics)
        .lines()
        .filter(|line| line.starts_with("convoke_requests_total"))
        .count();
    assert!(series <= api::APIS.len() + 1, "{series} series");
    let errors = text(&metrics)
        .lines()
        .filter(|line| line.starts_with("convoke_request_errors_total{api=\"unknown\""))
        .count();
    assert!(errors <= 170, "{errors} series");
}

#[test]
fn no_error_is_no_error() {
    let metrics = Metrics::new();
    metrics.api(12).error(0);
    assert!(!text(&metrics).contains("convoke_request_errors_total{"));
}

#[test]
fn events_are_counted() {
    let metrics = Metrics::new();
    metrics.event(&Event::RebalanceStarted {
        group_id: Arc::from("g"),
        generation_id: 1,
        reason: RebalanceReason::SessionExpired,
        member_id: None,
        client_reason: None,
    });
    metrics.event(&Event::RebalanceCompleted {
        group_id: Arc::from("g"),
        generation_id: 2,
        members: 2,
        took_ms: 1500,
    });
    metrics.event(&Event::GroupTakenOver {
        group_id: Arc::from("g"),
        offsets: 7,
    });
    let shown = text(&metrics);
    assert!(
        shown.contains("convoke_rebalances_started_total{reason=\"session_expired\"} 1\n"),
        "{shown}"
    );
    assert!(shown.contains("convoke_rebalance_seconds_sum 1.5\n"));
    assert!(shown.contains("convoke_offsets_imported_total 7\n"));
}
