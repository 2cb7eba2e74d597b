//! Every metric in one struct. Children are resolved once (at start, or when an API or error is first seen): nothing on the
//! data path looks up a label. Names are `convoke_…`; what every process shows keeps its usual name (`process_…`).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};

use super::api_metrics::{ApiMetrics, ApiVecs};
use super::classic_group_metrics::ClassicGroupMetrics;
use super::client_assignor_metrics::ClientAssignorMetrics;
use super::close_reason::CloseReason;
use super::consumer_group_metrics::ConsumerGroupMetrics;
use super::pattern_metrics::PatternMetrics;
use crate::coordinator::event::{Event, RebalanceReason};
use crate::wire::api::{self, Route};

/// Every metric of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    pub connections_open: IntGauge,
    pub connections_opened: IntCounter,
    /// Turned away because of `limits.connections_max` or `limits.connections_max_per_ip`.
    pub connections_refused: IntCounter,
    /// Times that no connection could be accepted (file descriptors, memory).
    pub accept_failures: IntCounter,
    /// Of the bytes of requests and responses, those that the kernel moved without copying them through the process.
    pub spliced_bytes: IntCounter,
    /// Of `limits.owned_memory_max`, what requests hold.
    pub owned_memory: IntGauge,
    /// Of `limits.group_memory_max`, what groups keep.
    pub group_memory: IntGauge,
    /// Nodes that got no listener, counted each time it was tried.
    pub listener_failures: IntCounter,
    connections_closed: Vec<IntCounter>,
    pub store: StoreMetrics,
    pub upstream: UpstreamMetrics,
    pub access: AccessMetrics,
    pub patterns: PatternMetrics,
    api_vecs: ApiVecs,
    apis: Vec<OnceLock<ApiMetrics>>,
    unknown_api: ApiMetrics,
    coordinator: CoordinatorMetrics,
    groups: GroupMetrics,
    pub classic_groups: ClassicGroupMetrics,
    pub consumer_groups: ConsumerGroupMetrics,
    pub client_assignors: ClientAssignorMetrics,
}

/// The store's.
#[derive(Debug)]
pub struct StoreMetrics {
    /// From handing a batch to the store until it is durable.
    pub commit_seconds: Histogram,
    /// Batches that became durable.
    pub batches: IntCounter,
    /// Transactions of the store; each makes one or more batches durable.
    pub commits: IntCounter,
    /// Batches that did not become durable.
    pub failures: IntCounter,
    pub file_bytes: IntGauge,
}

/// The upstream's, as Convoke's own client sees it.
#[derive(Debug)]
pub struct UpstreamMetrics {
    /// 1 while the upstream answers.
    pub up: IntGauge,
    pub nodes: IntGauge,
    /// Since the picture of the cluster was last fetched.
    pub metadata_age_seconds: Gauge,
    /// Requests of our own (not of clients) that failed.
    pub failures: IntCounter,
    pub topic_changes: IntCounter,
}

/// What it takes to let users do only what the upstream lets them.
#[derive(Debug)]
pub struct AccessMetrics {
    /// Questions to the upstream on clients' connections.
    pub probes: IntCounter,
    /// Groups and topics that nothing was asked for because the answer was still known.
    pub remembered: IntCounter,
}

/// What the coordinator's events count.
#[derive(Debug)]
struct CoordinatorMetrics {
    rebalances_started: BTreeMap<RebalanceReason, IntCounter>,
    rebalances_completed: IntCounter,
    rebalance_seconds: Histogram,
    members_removed: BTreeMap<RebalanceReason, IntCounter>,
    groups_emptied: IntCounter,
    groups_deleted: IntCounter,
    groups_taken_over: IntCounter,
    offsets_imported: IntCounter,
    takeovers_refused: IntCounter,
    inspections_failed: IntCounter,
    sessions_renewed: IntCounter,
    offsets_committed: IntCounter,
    offsets_expired: IntCounter,
    offsets_deleted: IntCounter,
}

/// Gauges that a scrape fills from the coordinator's view.
#[derive(Debug)]
pub(super) struct GroupMetrics {
    pub(super) groups: IntGaugeVec,
    pub(super) members: IntGauge,
    pub(super) pending_members: IntGauge,
    pub(super) offsets: IntGauge,
    pub(super) parked: IntGaugeVec,
    pub(super) shards: IntGaugeVec,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Makes and registers every metric.
    ///
    /// # Panics
    /// Never: the names are constants, and a test registers them.
    #[must_use]
    pub fn new() -> Self {
        let registry = Registry::new();
        let make = Maker(&registry);
        make.build_info();
        let closed = make.counters(
            "convoke_connections_closed_total",
            "Client connections that ended, by reason.",
            &["reason"],
        );
        let api_vecs = ApiVecs::new(&make);
        let unknown_api = ApiMetrics::new(&api_vecs, "unknown");
        let metrics = Self {
            connections_open: make.gauge("convoke_connections", "Client connections that are open."),
            owned_memory: make.gauge(
                "convoke_owned_memory_bytes",
                "Bytes of limits.owned_memory_max that requests hold.",
            ),
            group_memory: make.gauge(
                "convoke_group_memory_bytes",
                "Bytes of limits.group_memory_max that groups keep.",
            ),
            connections_opened: make.counter(
                "convoke_connections_opened_total",
                "Client connections that were accepted.",
            ),
            connections_refused: make.counter(
                "convoke_connections_refused_total",
                "Client connections turned away because of a limit.",
            ),
            accept_failures: make.counter(
                "convoke_accept_failures_total",
                "Times that connections could not be accepted for want of file descriptors or memory.",
            ),
            spliced_bytes: make.counter(
                "convoke_spliced_bytes_total",
                "Bytes of large requests and responses that the kernel moved between two sockets, both ways together.",
            ),
            listener_failures: make.counter(
                "convoke_listener_failures_total",
                "Times that an upstream node could not be given a listener.",
            ),
            connections_closed: CloseReason::ALL
                .iter()
                .map(|reason| closed.with_label_values(&[reason.label()]))
                .collect(),
            store: StoreMetrics::new(&make),
            upstream: UpstreamMetrics::new(&make),
            access: AccessMetrics::new(&make),
            patterns: PatternMetrics::new(&make),
            api_vecs,
            apis: api::APIS.iter().map(|_| OnceLock::new()).collect(),
            unknown_api,
            coordinator: CoordinatorMetrics::new(&make),
            groups: GroupMetrics::new(&make),
            classic_groups: ClassicGroupMetrics::new(&make),
            consumer_groups: ConsumerGroupMetrics::new(&make),
            client_assignors: ClientAssignorMetrics::new(&make),
            registry: registry.clone(),
        };
        metrics.resolve_owned();
        metrics
    }

    /// The APIs that end here show zeroes from the start, so that rates over a restart are right; the others appear when seen.
    fn resolve_owned(&self) {
        for row in api::APIS.iter().filter(|row| row.route == Route::Own) {
            let _ = self.api(row.key);
        }
    }

    /// The metrics of an API. Keys that are not in the API table share one child.
    #[must_use]
    pub fn api(&self, key: i16) -> &ApiMetrics {
        let slot = api::slot(key).and_then(|slot| Some((self.apis.get(slot)?, api::APIS.get(slot)?)));
        match slot {
            Some((metrics, row)) => metrics.get_or_init(|| ApiMetrics::new(&self.api_vecs, row.name)),
            None => &self.unknown_api,
        }
    }

    /// Counts the end of a client connection.
    pub fn connection_closed(&self, reason: CloseReason) {
        if let Some(counter) = self.connections_closed.get(reason as usize) {
            counter.inc();
        }
    }

    /// Counts what a shard tells.
    pub fn event(&self, event: &Event) {
        self.coordinator.event(event);
        self.classic_groups.event(event);
        self.consumer_groups.event(event);
        self.client_assignors.event(event);
    }

    pub(super) fn groups(&self) -> &GroupMetrics {
        &self.groups
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl StoreMetrics {
    fn new(make: &Maker<'_>) -> Self {
        Self {
            commit_seconds: make.histogram(
                "convoke_store_commit_seconds",
                "Time from handing a batch to the store until it was durable.",
                &[
                    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
                ],
            ),
            batches: make.counter("convoke_store_batches_total", "Batches of records that became durable."),
            commits: make.counter(
                "convoke_store_commits_total",
                "Transactions of the store; each makes one or more batches durable.",
            ),
            failures: make.counter(
                "convoke_store_failures_total",
                "Batches that the store failed to make durable.",
            ),
            file_bytes: make.gauge("convoke_store_file_bytes", "Size of the store's file."),
        }
    }
}

impl UpstreamMetrics {
    fn new(make: &Maker<'_>) -> Self {
        Self {
            up: make.gauge("convoke_upstream_up", "1 while the upstream answers, else 0."),
            nodes: make.gauge("convoke_upstream_nodes", "Nodes of the upstream cluster."),
            metadata_age_seconds: make.gauge_f64(
                "convoke_upstream_metadata_age_seconds",
                "Age of the picture of the upstream cluster.",
            ),
            failures: make.counter(
                "convoke_upstream_failures_total",
                "Requests of Convoke's own to the upstream that failed.",
            ),
            topic_changes: make.counter(
                "convoke_upstream_topic_changes_total",
                "Times that the groups were told of other topics, partitions or racks than before.",
            ),
        }
    }
}

impl AccessMetrics {
    fn new(make: &Maker<'_>) -> Self {
        Self {
            probes: make.counter(
                "convoke_access_probes_total",
                "Questions to the upstream about what a client's user may do.",
            ),
            remembered: make.counter(
                "convoke_access_remembered_total",
                "Groups and topics of requests for which the upstream's last answer still held.",
            ),
        }
    }
}

impl CoordinatorMetrics {
    fn new(make: &Maker<'_>) -> Self {
        let by_reason = |reasons: &[RebalanceReason], name, help| {
            let vec = make.counters(name, help, &["reason"]);
            let children = reasons
                .iter()
                .map(|reason| (*reason, vec.with_label_values(&[reason.label()])));
            children.collect()
        };
        Self {
            rebalances_started: by_reason(
                &RebalanceReason::ALL,
                "convoke_rebalances_started_total",
                "Rebalances of classic groups that began, by what caused them.",
            ),
            rebalances_completed: make.counter(
                "convoke_rebalances_completed_total",
                "Rebalances of classic groups that reached Stable.",
            ),
            rebalance_seconds: make.histogram(
                "convoke_rebalance_seconds",
                "Time from the start of a rebalance until its group was Stable.",
                &[0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0],
            ),
            members_removed: by_reason(
                &RebalanceReason::OF_REMOVALS,
                "convoke_members_removed_total",
                "Members taken out of their groups, by reason.",
            ),
            groups_emptied: make.counter("convoke_groups_emptied_total", "Times that a group's last member went."),
            groups_deleted: make.counter("convoke_groups_deleted_total", "Groups that were deleted."),
            groups_taken_over: make.counter(
                "convoke_groups_taken_over_total",
                "Groups met for the first time and coordinated here from then on.",
            ),
            offsets_imported: make.counter(
                "convoke_offsets_imported_total",
                "Committed offsets read from the upstream when a group was taken over.",
            ),
            takeovers_refused: make.counter(
                "convoke_takeovers_refused_total",
                "Joins refused because the group has members at the upstream.",
            ),
            inspections_failed: make.counter(
                "convoke_takeover_inspections_failed_total",
                "Times that the upstream could not be asked about a group.",
            ),
            sessions_renewed: make.counter(
                "convoke_sessions_renewed_total",
                "Times that the sessions of a shard began anew because the process had stood still.",
            ),
            offsets_committed: make.counter(
                "convoke_offsets_committed_total",
                "Partitions whose offset was committed.",
            ),
            offsets_expired: make.counter(
                "convoke_offsets_expired_total",
                "Offsets that ran out of their retention.",
            ),
            offsets_deleted: make.counter(
                "convoke_offsets_deleted_total",
                "Offsets deleted by request or with their topic.",
            ),
        }
    }

    fn event(&self, event: &Event) {
        match event {
            Event::RebalanceStarted { reason, .. } => inc_reason(&self.rebalances_started, *reason),
            Event::RebalanceCompleted { took_ms, .. } => {
                self.rebalances_completed.inc();
                self.rebalance_seconds.observe(seconds(*took_ms));
            }
            Event::GroupEmpty { .. } => self.groups_emptied.inc(),
            Event::MemberRemoved { reason, .. } => inc_reason(&self.members_removed, *reason),
            // Those of consumer groups, and of assignments, are counted on their own.
            Event::ClassicAssigned { .. }
            | Event::AssignmentLeftToLeader { .. }
            | Event::GroupEpochBumped { .. }
            | Event::TargetComputed { .. }
            | Event::AssignorFailed { .. }
            | Event::ConsumerGroupSettled { .. }
            | Event::ConsumerMemberRemoved { .. }
            | Event::ComputationWanted { .. }
            | Event::ComputationGiven { .. }
            | Event::ComputationPassedOver { .. }
            | Event::ComputationInstalled { .. }
            | Event::ComputationRefused { .. }
            | Event::ComputationFellBack { .. }
            | Event::ExternalAssignorRegistered { .. }
            | Event::ExternalAssignorGone { .. }
            | Event::GroupConverted { .. }
            // An admin's doing, which the log tells.
            | Event::GroupConfigChanged { .. }
            | Event::GroupConfigsPassedOver { .. } => {}
            Event::OffsetsCommitted { count } => self.offsets_committed.inc_by(*count as u64),
            Event::OffsetsExpired { count } => self.offsets_expired.inc_by(*count as u64),
            Event::OffsetsDeleted { count } => self.offsets_deleted.inc_by(*count as u64),
            Event::GroupDeleted { .. } => self.groups_deleted.inc(),
            Event::GroupTakenOver { offsets, .. } => {
                self.groups_taken_over.inc();
                self.offsets_imported.inc_by(*offsets as u64);
            }
            Event::TakeoverRefused { .. } => self.takeovers_refused.inc(),
            Event::InspectFailed { .. } => self.inspections_failed.inc(),
            Event::SessionsRenewed { .. } => self.sessions_renewed.inc(),
        }
    }
}

impl GroupMetrics {
    fn new(make: &Maker<'_>) -> Self {
        Self {
            groups: make.gauges(
                "convoke_groups",
                "Groups that are coordinated here, by type and state.",
                &["type", "state"],
            ),
            members: make.gauge("convoke_group_members", "Members of all groups."),
            pending_members: make.gauge(
                "convoke_group_members_pending",
                "Members that were given an id and have not joined with it yet.",
            ),
            offsets: make.gauge(
                "convoke_group_offsets",
                "Committed offsets of all groups, in partitions.",
            ),
            parked: make.gauges(
                "convoke_parked_requests",
                "Requests that wait for the other members of their group.",
                &["api"],
            ),
            shards: make.gauges("convoke_shards", "Shards of the coordinator, by state.", &["state"]),
        }
    }
}

fn inc_reason(counters: &BTreeMap<RebalanceReason, IntCounter>, reason: RebalanceReason) {
    if let Some(counter) = counters.get(&reason) {
        counter.inc();
    }
}

#[expect(clippy::cast_precision_loss, reason = "durations are far below 2^52 ms")]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

/// Makes metrics and registers them; that fails only for a name that is used twice or ill-formed, which is a defect.
pub(super) struct Maker<'a>(&'a Registry);

const UNIQUE: &str = "metric names are constants, well-formed and used once";

impl Maker<'_> {
    fn add<T: prometheus::core::Collector + Clone + 'static>(&self, metric: prometheus::Result<T>) -> T {
        let metric = metric.expect(UNIQUE);
        self.0.register(Box::new(metric.clone())).expect(UNIQUE);
        metric
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.add(IntCounter::new(name, help))
    }

    pub(super) fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.add(IntCounterVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.add(IntGauge::new(name, help))
    }

    pub(super) fn gauge_f64(&self, name: &str, help: &str) -> Gauge {
        self.add(Gauge::new(name, help))
    }

    pub(super) fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.add(IntGaugeVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        self.add(Histogram::with_opts(
            HistogramOpts::new(name, help).buckets(buckets.to_vec()),
        ))
    }

    pub(super) fn histograms(&self, name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
        let opts = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.add(HistogramVec::new(opts, labels))
    }

    fn build_info(&self) {
        let info = self.add(GaugeVec::new(
            Opts::new("convoke_build_info", "Always 1; the labels say what runs."),
            &["version"],
        ));
        info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1.0);
    }
}

#[cfg(test)]
mod tests;
