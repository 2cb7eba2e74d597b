use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::coordinator::event::EpochReason;
use crate::coordinator::record::MemberState;
use crate::coordinator::request::{ConsumerGroupView, ConsumerMemberView, GroupView, MemberView, ShardView};
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
    metrics.client_assignors.know([]);
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
        classic: None,
        consumer: None,
    };
    let view = ShardView {
        groups: vec![group("Stable"), group("Empty"), group("Empty")],
        externals: Vec::new(),
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
fn consumer_groups_are_counted_by_state_member_and_partition() {
    let metrics = Metrics::new();
    let member = MemberView {
        member_id: Arc::from("m"),
        group_instance_id: None,
        client_id: Arc::from("c"),
        client_host: Arc::from("/127.0.0.1"),
        session_timeout_ms: 45_000,
        rebalance_timeout_ms: 300_000,
        assignment: bytes::Bytes::new(),
        parked: false,
        consumer: Some(ConsumerMemberView {
            member_epoch: 3,
            state: MemberState::UnrevokedPartitions,
            is_classic: false,
            assigned: Arc::default(),
            to_revoke: 2,
            to_assign: 1,
        }),
    };
    let group = GroupView {
        group_id: Arc::from("g"),
        group_type: Arc::from("consumer"),
        state: Arc::from("Reconciling"),
        protocol_type: None,
        protocol_name: None,
        generation_id: 4,
        leader: None,
        state_since_ms: 0,
        members: vec![member],
        pending_members: 0,
        offsets: 0,
        classic: None,
        consumer: Some(ConsumerGroupView {
            assignment_epoch: 4,
            computed_by: None,
            assignor_error: 0,
            computation: None,
            partitions_to_revoke: 2,
            partitions_to_assign: 1,
        }),
    };
    let view = ShardView {
        groups: vec![group],
        externals: Vec::new(),
        parked_joins: 0,
        parked_syncs: 0,
    };
    metrics.set_groups(&[view]);
    let shown = text(&metrics);
    for line in [
        "convoke_groups{state=\"Reconciling\",type=\"consumer\"} 1\n",
        "convoke_consumer_group_members{state=\"unrevoked_partitions\"} 1\n",
        "convoke_consumer_group_members{state=\"stable\"} 0\n",
        "convoke_consumer_group_partitions_pending{step=\"revoke\"} 2\n",
        "convoke_consumer_group_partitions_pending{step=\"assign\"} 1\n",
    ] {
        assert!(shown.contains(line), "{line}{shown}");
    }
}

#[test]
fn events_of_consumer_groups_are_counted() {
    let metrics = Metrics::new();
    let group_id: Arc<str> = Arc::from("g");
    metrics.event(&Event::GroupEpochBumped {
        group_id: group_id.clone(),
        group_epoch: 2,
        reason: EpochReason::MetadataChanged,
        member_id: None,
    });
    metrics.event(&Event::TargetComputed {
        group_id: group_id.clone(),
        group_epoch: 2,
        assignor: Arc::from("uniform"),
        members: 1,
        partitions_moved: 3,
    });
    metrics.consumer_groups.target_computed(Duration::from_millis(2));
    metrics.event(&Event::ConsumerGroupSettled {
        group_id: group_id.clone(),
        group_epoch: 2,
        members: 1,
        took_ms: 1500,
    });
    metrics.event(&Event::GroupConverted {
        group_id,
        to: "consumer",
        members: 2,
    });
    let shown = text(&metrics);
    for line in [
        "convoke_consumer_group_epoch_bumps_total{reason=\"metadata_changed\"} 1\n",
        "convoke_consumer_group_partitions_moved_total 3\n",
        "convoke_consumer_group_assignor_seconds_sum 0.002\n",
        "convoke_consumer_group_settle_seconds_sum 1.5\n",
        "convoke_groups_converted_total{to=\"consumer\"} 1\n",
    ] {
        assert!(shown.contains(line), "{line}{shown}");
    }
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
