//! What a heartbeat changes of what a member said of itself.

use std::sync::Arc;

use super::members::{Member, nothing_said};
use crate::coordinator::event::EpochReason;
use crate::coordinator::record::ConsumerMemberValue;
use crate::coordinator::request::{ClientAssignor, ConsumerGroupHeartbeatRequest, Text};
use crate::coordinator::topic_names::TopicNames;

/// What a member says with this request, and what of it is new.
pub(super) struct Said {
    pub(super) value: Arc<ConsumerMemberValue>,
    /// Anything at all.
    pub(super) is_new: bool,
    pub(super) names_changed: bool,
    pub(super) regex_changed: bool,
    /// Why the member's assignors ask for a new assignment, if they do.
    pub(super) asked: Option<EpochReason>,
}

impl Said {
    /// What is given replaces what was known; what is not stays. Nothing is copied if nothing changes.
    pub(super) fn with(before: Option<&Arc<ConsumerMemberValue>>, request: &ConsumerGroupHeartbeatRequest) -> Self {
        let Some(before) = before else {
            return Self::first(request);
        };
        let names_changed = differs(
            request.subscribed_topic_names.as_deref(),
            &*before.subscribed_topic_names,
        );
        let regex_changed = differs(request.subscribed_topic_regex.as_ref(), &before.subscribed_topic_regex);
        let is_new = names_changed
            || regex_changed
            || differs_or_none(request.group_instance_id.as_ref(), before.instance_id.as_ref())
            || differs_or_none(request.rack_id.as_ref(), before.rack_id.as_ref())
            || differs_or_none(request.server_assignor.as_ref(), before.server_assignor.as_ref())
            || differs(request.client_assignors.as_ref(), &before.client_assignors)
            || differs(rebalance_timeout_ms(request).as_ref(), &before.rebalance_timeout_ms)
            || request.client_id != before.client_id
            || request.client_host != before.client_host
            || before.classic.is_some();
        let value = match is_new {
            true => Arc::new(merged(before, request)),
            false => before.clone(),
        };
        Self {
            value,
            is_new,
            names_changed,
            regex_changed,
            asked: asked(&before.client_assignors, request.client_assignors.as_deref()),
        }
    }

    fn first(request: &ConsumerGroupHeartbeatRequest) -> Self {
        Self::all_new(merged(&nothing_said(), request))
    }

    /// All that a member says, in the place of all that was known of it.
    pub(super) fn instead_of(before: Option<&Arc<ConsumerMemberValue>>, value: ConsumerMemberValue) -> Self {
        let Some(before) = before else {
            return Self::all_new(value);
        };
        let names_changed = before.subscribed_topic_names != value.subscribed_topic_names;
        let regex_changed = before.subscribed_topic_regex != value.subscribed_topic_regex;
        let is_new = **before != value;
        Self {
            value: Arc::new(value),
            is_new,
            names_changed,
            regex_changed,
            asked: None,
        }
    }

    fn all_new(value: ConsumerMemberValue) -> Self {
        Self {
            is_new: true,
            names_changed: !value.subscribed_topic_names.is_empty(),
            regex_changed: !value.subscribed_topic_regex.is_empty(),
            value: Arc::new(value),
            asked: None,
        }
    }

    pub(super) fn subscription_changed(&self) -> bool {
        self.names_changed || self.regex_changed
    }
}

/// The pattern that a member is subscribed by; empty for none.
pub(super) fn regex_of(member: Option<&Member>) -> Text {
    member.map_or_else(|| "".into(), |member| member.said.subscribed_topic_regex.clone())
}

fn merged(before: &ConsumerMemberValue, request: &ConsumerGroupHeartbeatRequest) -> ConsumerMemberValue {
    let or = |given: &Option<Text>, known: &Option<Text>| given.clone().or_else(|| known.clone());
    ConsumerMemberValue {
        instance_id: or(&request.group_instance_id, &before.instance_id),
        rack_id: or(&request.rack_id, &before.rack_id),
        client_id: request.client_id.clone(),
        client_host: request.client_host.clone(),
        subscribed_topic_names: request
            .subscribed_topic_names
            .clone()
            .map_or_else(|| before.subscribed_topic_names.clone(), TopicNames::from),
        subscribed_topic_regex: request
            .subscribed_topic_regex
            .clone()
            .unwrap_or_else(|| before.subscribed_topic_regex.clone()),
        rebalance_timeout_ms: rebalance_timeout_ms(request).unwrap_or(before.rebalance_timeout_ms),
        server_assignor: or(&request.server_assignor, &before.server_assignor),
        client_assignors: request
            .client_assignors
            .clone()
            .unwrap_or_else(|| before.client_assignors.clone()),
        classic: None,
    }
}

/// Why assignors that are said now ask for a new assignment: a reason of their own, other metadata, or that they are others.
pub(in crate::coordinator) fn asked(before: &[ClientAssignor], now: Option<&[ClientAssignor]>) -> Option<EpochReason> {
    let now = now?;
    let runs = |assignor: &ClientAssignor| {
        let name = assignor.name.clone();
        (name, assignor.minimum_version, assignor.maximum_version)
    };
    if !before.iter().map(runs).eq(now.iter().map(runs)) {
        return Some(EpochReason::AssignorChanged);
    }
    let says = |assignor: &ClientAssignor| (assignor.metadata_version, assignor.metadata.clone());
    let has_reason = now.iter().any(|assignor| assignor.reason != 0);
    (has_reason || !before.iter().map(says).eq(now.iter().map(says))).then_some(EpochReason::AssignmentAsked)
}

fn rebalance_timeout_ms(request: &ConsumerGroupHeartbeatRequest) -> Option<i32> {
    (request.rebalance_timeout_ms != -1).then_some(request.rebalance_timeout_ms)
}

fn differs<T: PartialEq + ?Sized>(given: Option<&T>, known: &T) -> bool {
    given.is_some_and(|given| given != known)
}

fn differs_or_none<T: PartialEq>(given: Option<&T>, known: Option<&T>) -> bool {
    given.is_some() && given != known
}
