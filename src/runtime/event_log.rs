//! Events of a shard, as log lines and counts.

mod classic_assignments;
mod client_assignors;
mod consumer_groups;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use crate::coordinator::event::Event;
use crate::coordinator::request::Text;
use crate::telemetry::metrics::Metrics;

/// How often it is logged that the upstream cannot be asked about a group, whose clients retry all the time.
const REPEAT_AFTER: Duration = Duration::from_secs(30);

/// Groups of one shard about which that is logged in this time; when the upstream is gone, it is so for all of them.
const TOLD_MAX: usize = 5;

/// Tells the events of one shard: every one is counted, those that matter to a person on call are logged.
pub(super) struct EventLog {
    metrics: Arc<Metrics>,
    told: BTreeSet<Text>,
    told_since: Instant,
}

impl EventLog {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            told: BTreeSet::new(),
            told_since: Instant::now(),
        }
    }

    /// `took` is the time of the step that told the event.
    pub(super) fn tell(&mut self, event: &Event, took: Duration) {
        self.metrics.event(event);
        let is_news = match event {
            Event::InspectFailed { group_id, .. } => self.is_news(group_id),
            _ => true,
        };
        if is_news {
            log(event, took);
        }
    }

    /// Whether nothing was told of the group's trouble lately, nor of too many others'.
    fn is_news(&mut self, group_id: &Text) -> bool {
        if self.told_since.elapsed() >= REPEAT_AFTER {
            self.told.clear();
            self.told_since = Instant::now();
        }
        self.told.len() < TOLD_MAX && self.told.insert(Arc::clone(group_id))
    }
}

/// Ids and words of clients are logged as strings, so that nothing in them can break a line.
fn log(event: &Event, took: Duration) {
    match event {
        Event::RebalanceStarted { .. }
        | Event::RebalanceCompleted { .. }
        | Event::GroupEmpty { .. }
        | Event::MemberRemoved { .. } => log_rebalance(event),
        Event::ClassicAssigned { .. } | Event::AssignmentLeftToLeader { .. } => {
            classic_assignments::log(event, took);
        }
        Event::GroupEpochBumped { .. }
        | Event::TargetComputed { .. }
        | Event::AssignorFailed { .. }
        | Event::ConsumerGroupSettled { .. }
        | Event::ConsumerMemberRemoved { .. } => consumer_groups::log(event),
        Event::ComputationWanted { .. }
        | Event::ComputationGiven { .. }
        | Event::ComputationPassedOver { .. }
        | Event::ComputationInstalled { .. }
        | Event::ComputationRefused { .. }
        | Event::ComputationFellBack { .. }
        | Event::ExternalAssignorRegistered { .. }
        | Event::ExternalAssignorGone { .. } => {
            client_assignors::log(event);
        }
        Event::GroupConverted { group_id, to, members } => {
            info!(group = &**group_id, to, members, "group changed its protocol")
        }
        // One for each commit: counted, not logged.
        Event::OffsetsCommitted { .. } => {}
        Event::OffsetsExpired { count } => info!(offsets = count, "offsets expired"),
        Event::OffsetsDeleted { count } => info!(offsets = count, "offsets deleted"),
        Event::GroupDeleted { group_id } => info!(group = &**group_id, "group deleted"),
        Event::GroupConfigsPassedOver { groups } => warn!(
            groups,
            "groups were given settings here while the brokers were too old for that; they count no more, so give them anew \
             with kafka-configs"
        ),
        Event::GroupConfigChanged { group_id } => info!(group = &**group_id, "group was given other settings"),
        Event::GroupTakenOver { group_id, offsets } => info!(
            group = &**group_id,
            offsets, "group taken over: it is coordinated here from now on"
        ),
        Event::TakeoverRefused {
            group_id,
            group_type,
            protocol_type,
            state,
        } => warn!(
            group = &**group_id,
            group_type = &**group_type,
            protocol_type = &**protocol_type,
            state = &**state,
            "group not taken over: it has members that go round Convoke; point them here or stop them, or list the group \
             under groups.delegate"
        ),
        Event::InspectFailed { group_id, reason } => warn!(
            group = &**group_id,
            reason = reason.as_str(),
            "the upstream could not be asked about the group; its clients retry meanwhile"
        ),
        Event::SessionsRenewed { gap_ms, members } => warn!(
            gap_ms,
            members, "the process or its disk stood still; the session of every member began anew"
        ),
    }
}

fn log_rebalance(event: &Event) {
    match event {
        Event::RebalanceStarted {
            group_id,
            generation_id,
            reason,
            member_id,
            client_reason,
        } => info!(
            group = &**group_id,
            generation = generation_id,
            reason = reason.label(),
            member = member_id.as_deref(),
            client_reason = client_reason.as_deref(),
            "rebalance started"
        ),
        Event::RebalanceCompleted {
            group_id,
            generation_id,
            members,
            took_ms,
        } => info!(
            group = &**group_id,
            generation = generation_id,
            members,
            took_ms,
            "rebalance completed"
        ),
        Event::GroupEmpty {
            group_id,
            generation_id,
        } => info!(group = &**group_id, generation = generation_id, "group is empty"),
        Event::MemberRemoved {
            group_id,
            member_id,
            group_instance_id,
            client_id,
            client_host,
            reason,
            client_reason,
        } => info!(
            group = &**group_id,
            member = &**member_id,
            instance = group_instance_id.as_deref(),
            client_id = &**client_id,
            client_host = &**client_host,
            reason = reason.label(),
            client_reason = client_reason.as_deref(),
            "member removed"
        ),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
