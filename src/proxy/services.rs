//! What every connection shares.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lanes::Lanes;
use super::listeners::Listeners;
use super::owned_memory::OwnedMemory;
use super::pipes::Pipes;
use super::stop::Stop;
use crate::config::{Config, LimitsConfig, UpstreamConfig};
use crate::handler::HandlerServices;
use crate::telemetry::close_reason::CloseReason;
use crate::telemetry::log_limit::LogLimit;
use crate::telemetry::metrics::Metrics;
use crate::upstream::cluster::ClusterWatch;

/// The proxy's surroundings.
#[derive(Debug)]
pub struct Services {
    pub limits: LimitsConfig,
    pub upstream: UpstreamConfig,
    pub metrics: Arc<Metrics>,
    pub handlers: HandlerServices,
    pub cluster: ClusterWatch,
    pub listeners: Arc<Listeners>,
    pub stop: Stop,
    pub(crate) pipes: Pipes,
    pub(crate) lanes: Lanes,
    pub(crate) owned_memory: OwnedMemory,
    /// Let through one warning in a while about connections that ended for each reason.
    complaints: [LogLimit; CloseReason::ALL.len()],
    /// The same for nodes that get no listener.
    pub(crate) listener_complaints: LogLimit,
    /// The origin of the monotonic milliseconds that sessions are measured in.
    pub started: Instant,
}

/// A fault that hits every client is said so often, not once a connection.
const COMPLAIN_EVERY: Duration = Duration::from_secs(5);

impl Services {
    #[must_use]
    pub fn new(
        config: &Config,
        metrics: Arc<Metrics>,
        handlers: HandlerServices,
        listeners: Arc<Listeners>,
        lanes: Lanes,
        stop: Stop,
    ) -> Self {
        Self {
            owned_memory: OwnedMemory::new(config.limits.owned_memory_max, metrics.owned_memory.clone()),
            limits: config.limits.clone(),
            upstream: config.upstream.clone(),
            metrics,
            cluster: handlers.cluster.clone(),
            handlers,
            listeners,
            stop,
            pipes: Pipes::new(),
            lanes,
            complaints: CloseReason::ALL.map(|_| LogLimit::new(COMPLAIN_EVERY)),
            listener_complaints: LogLimit::new(COMPLAIN_EVERY),
            started: Instant::now(),
        }
    }

    /// Whether it is time to warn again of connections that end for this reason; the caller then does.
    pub(crate) fn may_complain(&self, reason: CloseReason) -> bool {
        self.complaints.get(reason as usize).is_some_and(LogLimit::may_say)
    }

    /// Monotonic milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        self.ms_at(Instant::now())
    }

    /// An instant in monotonic milliseconds.
    pub(crate) fn ms_at(&self, instant: Instant) -> u64 {
        u64::try_from((instant - self.started).as_millis()).unwrap_or(u64::MAX)
    }
}
