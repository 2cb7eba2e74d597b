//! The log lines of client-side assignors.

use tracing::{debug, info, warn};

use crate::coordinator::event::Event;

pub(super) fn log(event: &Event) {
    match event {
        Event::ComputationWanted {
            group_id,
            group_epoch,
            assignor,
        } => debug!(
            group = &**group_id,
            epoch = group_epoch,
            assignor = &**assignor,
            "assignment wanted"
        ),
        Event::ComputationGiven {
            group_id,
            group_epoch,
            assignor,
            member_id,
        } => info!(
            group = &**group_id,
            epoch = group_epoch,
            assignor = &**assignor,
            member = &**member_id,
            "told to compute the assignment"
        ),
        Event::ComputationInstalled {
            group_id,
            group_epoch,
            assignor,
            member_id,
            took_ms,
            members,
            partitions_moved,
            partitions_withheld,
        } => info!(
            group = &**group_id,
            epoch = group_epoch,
            assignor = &**assignor,
            member = &**member_id,
            took_ms,
            members,
            partitions_moved,
            partitions_withheld,
            "assignment installed"
        ),
        Event::ExternalAssignorRegistered {
            group_id,
            member_id,
            client_id,
            client_host,
            assignors,
        } => info!(
            group = &**group_id,
            member = &**member_id,
            client_id = &**client_id,
            client_host = &**client_host,
            assignors = assignors.join(","),
            "external assignor registered"
        ),
        Event::ExternalAssignorGone {
            group_id,
            member_id,
            client_id,
            client_host,
            reason,
        } => info!(
            group = &**group_id,
            member = &**member_id,
            client_id = &**client_id,
            client_host = &**client_host,
            reason = reason.label(),
            "external assignor gone"
        ),
        other => log_trouble(other),
    }
}

fn log_trouble(event: &Event) {
    match event {
        Event::ComputationPassedOver {
            group_id,
            assignor,
            member_id,
            reason,
        } => warn!(
            group = &**group_id,
            assignor = &**assignor,
            member = &**member_id,
            reason = reason.label(),
            "passed over: it did not compute the assignment"
        ),
        Event::ComputationRefused {
            group_id,
            assignor,
            member_id,
            reason,
        } => warn!(
            group = &**group_id,
            assignor = &**assignor,
            member = &**member_id,
            reason = &**reason,
            "assignment refused"
        ),
        Event::ComputationFellBack {
            group_id,
            assignor,
            to,
            reason,
        } => warn!(
            group = &**group_id,
            assignor = &**assignor,
            to = &**to,
            reason = reason.label(),
            "nobody is left who could compute the assignment: Convoke does"
        ),
        _ => {}
    }
}
