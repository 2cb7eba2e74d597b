//! What a step lends to the group it works on, and what it takes away.

use super::event::Event;
use super::external::Externals;
use super::group_config::GroupConfigs;
use super::input::{Now, Ticket};
use super::member_id::MemberIds;
use super::record::Record;
use super::request::{AlterGroupConfigRequest, Response, Text};
use super::settings::Settings;
use super::timer::{GroupTimer, TimerKey, Timers};
use super::topics::Topics;

/// What came of a step so far. Records are here only after they have been applied to memory.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) records: Vec<Record>,
    /// Joins and syncs that will be answered by their groups.
    pub(super) admitted: Vec<Ticket>,
    pub(super) replies: Vec<(Ticket, Response)>,
    pub(super) events: Vec<Event>,
    /// Groups to ask the upstream about.
    pub(super) inspections: Vec<Text>,
}

/// The clock, the settings and the shard's tools, for the length of one step.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) now: Now,
    pub(super) settings: &'a Settings,
    /// The upstream's topics; nothing before `has_topics`.
    pub(super) topics: &'a Topics,
    /// Whether anybody told of topics.
    pub(super) has_topics: bool,
    pub(super) group_configs: &'a mut GroupConfigs,
    pub(super) timers: &'a mut Timers,
    pub(super) externals: &'a mut Externals,
    pub(super) member_ids: &'a mut MemberIds,
    pub(super) effects: &'a mut Effects,
}

impl Context<'_> {
    pub(super) fn reply(&mut self, ticket: Ticket, response: Response) {
        self.effects.replies.push((ticket, response));
    }

    pub(super) fn event(&mut self, event: Event) {
        self.effects.events.push(event);
    }

    /// Changes what a group was given for itself; it counts from the next step on.
    pub(super) fn alter_group_config(&mut self, request: &AlterGroupConfigRequest) -> Response {
        let (record, response) = self.group_configs.alter(request, self.settings);
        if let Some(record) = record {
            self.group_configs.apply(&record);
            self.effects.records.push(record);
            self.event(Event::GroupConfigChanged {
                group_id: request.group_id.clone(),
            });
        }
        Response::AlterGroupConfig(response)
    }

    /// Arms a timer of a group; a negative delay from the wire counts as none.
    pub(super) fn arm(&mut self, group_id: &Text, timer: GroupTimer, delay_ms: i32) {
        let delay_ms = u64::try_from(delay_ms).unwrap_or(0);
        self.timers.arm(
            self.now.monotonic_ms,
            TimerKey::Group(group_id.clone(), timer),
            delay_ms,
        );
    }

    /// Arms a timer of a group, unless it runs.
    pub(super) fn arm_if_absent(&mut self, group_id: &Text, timer: GroupTimer, delay_ms: i32) {
        if !self.timers.is_armed(&TimerKey::Group(group_id.clone(), timer.clone())) {
            self.arm(group_id, timer, delay_ms);
        }
    }

    pub(super) fn cancel(&mut self, group_id: &Text, timer: GroupTimer) {
        self.timers.cancel(&TimerKey::Group(group_id.clone(), timer));
    }
}
