//! Whether clients are served, and why not.

use std::time::Duration;

use serde::Serialize;

/// How the parts are that clients need.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    pub upstream: UpstreamHealth,
    pub shards: Shards,
    /// Why it is not known yet how many shards there are, as far as anybody has tried to find out.
    pub settings_failure: Option<String>,
    /// Why the store cannot be written; `None` while it can.
    pub store_failure: Option<String>,
    pub listening: Listening,
}

/// The brokers, as Convoke's own client sees them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpstreamHealth {
    pub reachable: bool,
    /// For how long it has been so.
    pub since: Duration,
    /// Nodes that are known.
    pub nodes: usize,
    /// Since the picture of the cluster was last confirmed; `None` before the first one.
    pub metadata_age: Option<Duration>,
    pub last_error: Option<String>,
}

/// The coordinator's shards; none before the upstream told how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Shards {
    pub total: u32,
    pub loaded: u32,
    pub failed: u32,
}

/// Where the listeners are in their life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Listening {
    /// Bound, so that early clients wait and are not refused.
    #[default]
    Bound,
    Serving,
    /// Nothing new is taken in; the process is about to end.
    Draining,
}

/// What `/readyz` says.
#[derive(Debug, Serialize)]
struct Report {
    ready: bool,
    /// In plain words; empty when ready.
    reasons: Vec<String>,
    upstream: UpstreamReport,
    shards: Shards,
    store: StoreReport,
    listeners: Listening,
}

#[derive(Debug, Serialize)]
struct StoreReport {
    writable: bool,
    last_error: Option<String>,
}

#[derive(Debug, Serialize)]
struct UpstreamReport {
    reachable: bool,
    nodes: usize,
    metadata_age_seconds: Option<f64>,
    last_error: Option<String>,
}

impl Readiness {
    /// Why clients are not served; empty when they are.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if !self.upstream.reachable {
            let error = self.upstream.last_error.as_deref().unwrap_or("no answer yet");
            let seconds = self.upstream.since.as_secs();
            reasons.push(format!("upstream: {error} (for {seconds} s)"));
        }
        let Shards { total, loaded, failed } = self.shards;
        if total == 0 {
            let failure = self.settings_failure.as_ref().map(|failure| format!(": {failure}"));
            let failure = failure.unwrap_or_default();
            reasons.push(format!("shards: how many there are is not known yet{failure}"));
        } else if loaded < total {
            let failures = if failed > 0 {
                format!(", {failed} could not be loaded or written and are tried again")
            } else {
                String::new()
            };
            reasons.push(format!("shards: {loaded} of {total} are loaded{failures}"));
        }
        if let Some(failure) = &self.store_failure {
            reasons.push(format!(
                "store: {failure}; group members are asked to try again until it can be written"
            ));
        }
        match self.listening {
            Listening::Bound => reasons.push("listeners: bound, but not serving yet".to_owned()),
            Listening::Serving => {}
            Listening::Draining => reasons.push("listeners: draining, the process is about to end".to_owned()),
        }
        reasons
    }

    /// Whether clients are served, and the JSON that says so.
    pub(super) fn report(&self) -> (bool, Vec<u8>) {
        let reasons = self.reasons();
        let ready = reasons.is_empty();
        let report = Report {
            ready,
            reasons,
            upstream: UpstreamReport {
                reachable: self.upstream.reachable,
                nodes: self.upstream.nodes,
                metadata_age_seconds: self.upstream.metadata_age.map(|age| age.as_secs_f64()),
                last_error: self.upstream.last_error.clone(),
            },
            shards: self.shards,
            store: StoreReport {
                writable: self.store_failure.is_none(),
                last_error: self.store_failure.clone(),
            },
            listeners: self.listening,
        };
        (ready, serde_json::to_vec_pretty(&report).unwrap_or_default())
    }
}
