//! Events of a shard, as log lines and counts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use crate::coordinator::event::Event;
use crate::coordinator::request::Text;
use crate::telemetry::metrics::Metrics;

/// How often the same trouble of the same group is logged; clients that retry would repeat it every few milliseconds.
const REPEAT_AFTER: Duration = Duration::from_secs(30);

/// Tells the events of one shard: every one is counted, those that matter to a person on call are logged.
pub(super) struct EventLog {
    metrics: Arc<Metrics>,
    told: HashMap<Text, Instant>,
}

impl EventLog {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            told: HashMap::new(),
        }
    }

    pub(super) fn tell(&mut self, event: &Event) {
        self.metrics.event(event);
        let trouble = match event {
            Event::TakeoverRefused { group_id, .. } | Event::InspectFailed { group_id, .. } => Some(group_id),
            _ => None,
        };
        if trouble.is_none_or(|group_id| self.is_news(group_id)) {
            log(event);
        }
    }

    /// Whether nothing was told of the group's trouble lately.
    fn is_news(&mut self, group_id: &Text) -> bool {
        let now = Instant::now();
        self.told.retain(|_, told| now.duration_since(*told) < REPEAT_AFTER);
        if self.told.contains_key(group_id) {
            return false;
        }
        self.told.insert(Arc::clone(group_id), now);
        true
    }
}

fn log(event: &Event) {
    match event {
        Event::RebalanceStarted {
            group_id,
            generation_id,
            reason,
            detail,
        } => info!(
            group = %group_id,
            generation = generation_id,
            reason = reason.label(),
            detail = %detail,
            "rebalance started"
        ),
        Event::RebalanceCompleted {
            group_id,
            generation_id,
            members,
            took_ms,
        } => info!(
            group = %group_id,
            generation = generation_id,
            members,
            took_ms,
            "rebalance completed"
        ),
        Event::GroupEmpty {
            group_id,
            generation_id,
        } => info!(group = %group_id, generation = generation_id, "group is empty"),
        Event::MemberRemoved {
            group_id,
            member_id,
            reason,
        } => info!(group = %group_id, member = %member_id, reason = reason.label(), "member removed"),
        Event::OffsetsExpired { count } => info!(offsets = count, "offsets expired"),
        Event::OffsetsDeleted { count } => info!(offsets = count, "offsets deleted"),
        Event::GroupDeleted { group_id } => info!(group = %group_id, "group deleted"),
        Event::GroupTakenOver { group_id, offsets } => info!(
            group = %group_id,
            offsets,
            "group taken over: its offsets come from here from now on"
        ),
        Event::SessionsRenewed { gap_ms, members } => warn!(
            gap_ms,
            members,
            "the process stood still; every member's session began anew"
        ),
        Event::OffsetsCommitted { .. } => {}
        Event::TakeoverRefused {
            group_id,
            group_type,
            protocol_type,
            state,
        } => warn!(
            group = %group_id,
            group_type = %group_type,
            protocol_type = %protocol_type,
            state = %state,
            "group not taken over: it has members that go round Convoke; point them here or stop them, or add the group to \
             groups.delegate"
        ),
        Event::InspectFailed { group_id, reason } => warn!(
            group = %group_id,
            reason = %reason,
            "the upstream could not be asked about the group; its clients retry meanwhile"
        ),
    }
}
