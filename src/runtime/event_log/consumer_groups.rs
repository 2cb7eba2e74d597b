//! The log lines of consumer groups (KIP-848).

use tracing::{error, info};

use crate::coordinator::event::Event;

pub(super) fn log(event: &Event) {
    match event {
        Event::GroupEpochBumped {
            group_id,
            group_epoch,
            reason,
            member_id,
        } => info!(
            group = &**group_id,
            epoch = group_epoch,
            reason = reason.label(),
            member = member_id.as_deref(),
            "group epoch bumped"
        ),
        Event::TargetComputed {
            group_id,
            group_epoch,
            assignor,
            members,
            partitions_moved,
        } => info!(
            group = &**group_id,
            epoch = group_epoch,
            assignor = &**assignor,
            members,
            partitions_moved,
            "target assignment computed"
        ),
        Event::AssignorFailed {
            group_id,
            assignor,
            reason,
        } => error!(
            group = &**group_id,
            assignor = &**assignor,
            reason = reason.as_str(),
            "no target assignment could be computed; the group keeps its last one"
        ),
        Event::ConsumerGroupSettled {
            group_id,
            group_epoch,
            members,
            took_ms,
        } => info!(
            group = &**group_id,
            epoch = group_epoch,
            members,
            took_ms,
            "group settled"
        ),
        Event::ConsumerMemberRemoved {
            group_id,
            member_id,
            group_instance_id,
            client_id,
            client_host,
            reason,
        } => info!(
            group = &**group_id,
            member = &**member_id,
            instance = group_instance_id.as_deref(),
            client_id = &**client_id,
            client_host = &**client_host,
            reason = reason.label(),
            "member removed"
        ),
        _ => {}
    }
}
