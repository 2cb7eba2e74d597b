//! The log lines of classic groups that are assigned for here.

use std::time::Duration;

use tracing::{info, warn};

use crate::coordinator::event::Event;

pub(super) fn log(event: &Event, took: Duration) {
    match event {
        Event::ClassicAssigned {
            group_id,
            generation_id,
            assignor,
            members,
            partitions,
            partitions_moved,
            partitions_withheld,
        } => info!(
            group = &**group_id,
            generation = generation_id,
            assignor = &**assignor,
            members,
            partitions,
            partitions_moved,
            partitions_withheld,
            took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            "assigned by the coordinator"
        ),
        Event::AssignmentLeftToLeader {
            group_id,
            generation_id,
            leader,
            reason,
            detail,
        } => warn!(
            group = &**group_id,
            generation = generation_id,
            leader = &**leader,
            reason = reason.label(),
            detail = &**detail,
            "a rule of groups.assign is for this group, but its members' protocol or metadata is not one that can be assigned for \
             here; a member leads it"
        ),
        _ => {}
    }
}
