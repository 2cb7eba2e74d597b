//! Heartbeats of external assignors, and the assignments that they and members compute.

use super::Groups;
use crate::coordinator::client_assignor::{Asking, ComputedOutside, install_assignment, prepare_assignment};
use crate::coordinator::consumer::{asked, heartbeat_refusal, left};
use crate::coordinator::context::Context;
use crate::coordinator::event::{EpochReason, Event};
use crate::coordinator::external::{self, Externals, OF_GROUP_MAX, OF_SHARD_MAX, Scope};
use crate::coordinator::group::Group;
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{
    ClientAssignor, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, InstallAssignmentRequest,
    PatternHeartbeatRequest, PrepareAssignmentRequest, PrepareAssignmentResponse, Response, Text,
};
use crate::coordinator::timer::{ExternalTimer, TimerKey};
use crate::wire::error_code::ErrorCode;

/// How long the heartbeat of one that computes waits, in milliseconds: what it sends next may be behind it in its connection,
/// and it should not send them without a pause either.
const BUSY_POLL_MS: i32 = 500;
/// Groups of one shard that one answer names; the next one names more.
const TOLD_AT_ONCE_MAX: usize = 100;

impl Groups {
    /// Whether the heartbeat is an external assignor's. A member of the group stays one, whatever it subscribes to.
    pub(super) fn is_of_an_external(&self, request: &ConsumerGroupHeartbeatRequest, cx: &Context<'_>) -> bool {
        let may_be = request.is_of_an_external()
            || (!request.is_join()
                && cx
                    .externals
                    .registered(&Scope::Group(request.group_id.clone()), &request.member_id)
                    .is_some());
        may_be
            && match self.groups.get(&request.group_id) {
                Some(Group::Consumer(group)) => !group.has_member(&request.member_id),
                _ => true,
            }
    }

    /// A heartbeat of one that has registered for all groups of a pattern, to each shard. It says everything each time, so that a
    /// shard that was loaded meanwhile takes it in.
    pub(in crate::coordinator) fn pattern_heartbeat(
        &mut self,
        ticket: Ticket,
        request: &PatternHeartbeatRequest,
        cx: &mut Context<'_>,
    ) {
        if !cx.has_topics {
            let error = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
            return cx.reply(ticket, Response::Unavailable { error });
        }
        let scope = Scope::Pattern(request.heartbeat.group_id.clone());
        self.external_heartbeat(ticket, &scope, &request.heartbeat, request.is_own_shard, cx);
    }

    pub(super) fn external_heartbeat(
        &mut self,
        ticket: Ticket,
        scope: &Scope,
        request: &ConsumerGroupHeartbeatRequest,
        is_shown: bool,
        cx: &mut Context<'_>,
    ) {
        let member_id = &request.member_id;
        let is_known = cx.externals.registered(scope, member_id).is_some();
        let is_whole = request.is_of_an_external() && request.rebalance_timeout_ms != -1;
        let is_taken_in = matches!(scope, Scope::Pattern(_)) && is_whole && request.member_epoch == external::EPOCH;
        let refusal = match request.member_epoch {
            0 if !cx.externals.have_room(scope, member_id) => Some(no_room()),
            0 => None,
            _ if !is_known && is_taken_in && cx.externals.have_room(scope, member_id) => None,
            _ if !is_known && is_taken_in => Some(no_room()),
            _ if !is_known => Some((ErrorCode::UNKNOWN_MEMBER_ID, None)),
            ..0 => {
                self.remove_external(scope, member_id, EpochReason::MemberLeft, cx);
                return cx.reply(ticket, left(request));
            }
            external::EPOCH if request.subscribes() => Some((
                ErrorCode::INVALID_REQUEST,
                Some("An external assignor is subscribed to nothing; a member joins with epoch 0.".into()),
            )),
            external::EPOCH => None,
            _ => Some((ErrorCode::FENCED_MEMBER_EPOCH, None)),
        };
        match refusal {
            Some((error, message)) => cx.reply(ticket, heartbeat_refusal(error, message)),
            None => self.external_beat(ticket, scope, request, is_shown, cx),
        }
    }

    fn external_beat(
        &mut self,
        ticket: Ticket,
        scope: &Scope,
        request: &ConsumerGroupHeartbeatRequest,
        is_shown: bool,
        cx: &mut Context<'_>,
    ) {
        let member_id = &request.member_id;
        let known = cx.externals.registered(scope, member_id);
        let is_new = known.is_none();
        let known = known.filter(|_| !request.is_join());
        let before: &[ClientAssignor] = known.map_or(&[], |known| &known.assignors);
        let news = asked(before, request.client_assignors.as_deref());
        // Whoever asks with each heartbeat is heard, and waits as others do: at once it would only ask again.
        let is_repeated = request.client_assignors.as_deref() == Some(before);
        if let Some(replaced) = cx.externals.take_in(scope, request, is_shown) {
            // It came over a connection that the client gave up.
            let error = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
            cx.reply(replaced, heartbeat_refusal(error, None));
        }
        cx.arm_external(
            scope,
            ExternalTimer::Session(member_id.clone()),
            cx.settings.consumer_session_timeout_ms(scope.text()),
        );
        if is_shown && (request.is_join() || is_new) {
            tell_registered(scope, request, cx);
        }
        let told = self.tell_groups(scope, request, news, cx);
        let interval_ms = cx.settings.consumer_heartbeat_interval_ms(scope.text());
        if request.is_join() || (news.is_some() && !is_new && !is_repeated) || !told.is_empty() {
            return cx.reply(ticket, external_response(scope, member_id, interval_ms, told));
        }
        cx.externals.park(scope, member_id, ticket);
        let wait_ms = match self.is_busy(scope, member_id) {
            true => BUSY_POLL_MS.min(interval_ms),
            false => interval_ms,
        };
        cx.arm_external(scope, ExternalTimer::Poll(member_id.clone()), wait_ms);
    }

    /// Tells the groups that it is heard, and gives those whose assignment it is to compute.
    fn tell_groups(
        &mut self,
        scope: &Scope,
        request: &ConsumerGroupHeartbeatRequest,
        news: Option<EpochReason>,
        cx: &mut Context<'_>,
    ) -> Vec<Text> {
        let member_id = &request.member_id;
        let group_ids = match scope {
            Scope::Group(group_id) => vec![group_id.clone()],
            // Others have nothing to hear.
            Scope::Pattern(_) if news.is_none() && !request.is_join() => cx.externals.wanting(scope),
            Scope::Pattern(_) => {
                let meant = self.groups.keys().filter(|group_id| scope.means(group_id));
                meant.cloned().collect()
            }
        };
        let mut told = Vec::new();
        for group_id in group_ids {
            let Some(group) = self.groups.get_mut(&group_id).map(Group::computed_outside) else {
                continue;
            };
            if request.is_join() {
                group.on_external_gone(member_id, cx);
            }
            group.on_external_news(member_id, news, cx);
            if told.len() < TOLD_AT_ONCE_MAX && group.offer(member_id, cx) {
                told.push(group_id);
            } else if !group.outside().is_computing() {
                // It was a group of the other protocol when it wanted something.
                cx.externals.unwant(&group_id);
            }
        }
        told
    }

    /// Whether it computes for a group by whose connection it is heard.
    fn is_busy(&mut self, scope: &Scope, member_id: &str) -> bool {
        match scope {
            Scope::Group(group_id) => {
                let group = self.groups.get_mut(group_id).map(Group::computed_outside);
                group.is_some_and(|group| group.is_computed_by(member_id))
            }
            Scope::Pattern(_) => false,
        }
    }

    pub(in crate::coordinator) fn on_external_timer(
        &mut self,
        scope: &Scope,
        timer: ExternalTimer,
        cx: &mut Context<'_>,
    ) {
        match timer {
            ExternalTimer::Poll(member_id) => cx.answer_registered(scope, &member_id, Vec::new()),
            ExternalTimer::Session(member_id) => {
                self.remove_external(scope, &member_id, EpochReason::SessionExpired, cx);
            }
        }
    }

    pub(in crate::coordinator) fn remove_external(
        &mut self,
        scope: &Scope,
        member_id: &Text,
        reason: EpochReason,
        cx: &mut Context<'_>,
    ) {
        if let Some(parked) = cx.externals.unpark(scope, member_id) {
            cx.reply(parked, heartbeat_refusal(ErrorCode::UNKNOWN_MEMBER_ID, None));
        }
        for timer in [
            ExternalTimer::Poll(member_id.clone()),
            ExternalTimer::Session(member_id.clone()),
        ] {
            cx.timers.cancel(&TimerKey::External(scope.clone(), timer));
        }
        let Some(external) = cx.externals.remove(scope, member_id) else {
            return;
        };
        if external.is_shown {
            cx.event(Event::ExternalAssignorGone {
                group_id: scope.text().clone(),
                member_id: member_id.clone(),
                client_id: external.client_id,
                client_host: external.client_host,
                reason,
            });
        }
        for group_id in cx.externals.wanting(scope) {
            if let Some(group) = self.groups.get_mut(&group_id) {
                group.computed_outside().on_external_gone(member_id, cx);
            }
        }
    }

    pub(in crate::coordinator) fn prepare_assignment(
        &mut self,
        request: &PrepareAssignmentRequest,
        cx: &mut Context<'_>,
    ) -> Response {
        match self.groups.get_mut(&request.group_id) {
            Some(group) => prepare_assignment(group.computed_outside(), request, cx),
            None => Response::PrepareAssignment(PrepareAssignmentResponse::refusal(
                ErrorCode::GROUP_ID_NOT_FOUND,
                Some(not_found(&request.group_id)),
            )),
        }
    }

    pub(in crate::coordinator) fn install_assignment(
        &mut self,
        request: InstallAssignmentRequest,
        cx: &mut Context<'_>,
    ) -> Response {
        match self.groups.get_mut(&request.group_id) {
            Some(group) => install_assignment(group.computed_outside(), request, cx),
            None => Response::InstallAssignment {
                error: ErrorCode::GROUP_ID_NOT_FOUND,
                error_message: Some(not_found(&request.group_id)),
            },
        }
    }

    /// Whether somebody offers the assignor to the group, or a member of it asks for that one already.
    pub(in crate::coordinator) fn is_offered(&self, group_id: &str, assignor: &str, externals: &Externals) -> bool {
        externals.offer(&group_id.into(), assignor)
            || match self.groups.get(group_id) {
                Some(Group::Consumer(group)) => group.knows_assignor(assignor),
                _ => false,
            }
    }
}

impl Context<'_> {
    fn arm_external(&mut self, scope: &Scope, timer: ExternalTimer, delay_ms: i32) {
        let delay_ms = u64::try_from(delay_ms).unwrap_or(0);
        let key = TimerKey::External(scope.clone(), timer);
        self.timers.arm(self.now.monotonic_ms, key, delay_ms);
    }

    /// Tells an external assignor whose heartbeat waits that it is to compute for the group.
    pub(in crate::coordinator) fn tell_external(&mut self, group_id: &Text, member_id: &Text) {
        if let Some(scope) = self.externals.scope(group_id, member_id) {
            self.answer_registered(&scope, member_id, vec![group_id.clone()]);
        }
    }

    /// Answers the parked heartbeat of an external assignor, if there is one.
    fn answer_registered(&mut self, scope: &Scope, member_id: &Text, told: Vec<Text>) {
        let key = TimerKey::External(scope.clone(), ExternalTimer::Poll(member_id.clone()));
        self.timers.cancel(&key);
        let Some(ticket) = self.externals.unpark(scope, member_id) else {
            return;
        };
        let interval_ms = self.settings.consumer_heartbeat_interval_ms(scope.text());
        self.reply(ticket, external_response(scope, member_id, interval_ms, told));
    }
}

/// The answer to an external assignor's heartbeat; `told` are the groups for which it is to compute.
fn external_response(scope: &Scope, member_id: &Text, interval_ms: i32, told: Vec<Text>) -> Response {
    let is_pattern = matches!(scope, Scope::Pattern(_));
    Response::ConsumerGroupHeartbeat(ConsumerGroupHeartbeatResponse {
        heartbeat_interval_ms: interval_ms,
        should_compute_assignment: !is_pattern && !told.is_empty(),
        groups_to_compute: is_pattern.then_some(told),
        ..ConsumerGroupHeartbeatResponse::bare(Some(member_id.clone()), external::EPOCH)
    })
}

fn no_room() -> (ErrorCode, Option<Text>) {
    let message =
        format!("A group has at most {OF_GROUP_MAX} external assignors, and a shard of groups at most {OF_SHARD_MAX}.");
    (ErrorCode::GROUP_MAX_SIZE_REACHED, Some(message.into()))
}

fn not_found(group_id: &str) -> Text {
    format!("Group {group_id} not found.").into()
}

fn tell_registered(scope: &Scope, request: &ConsumerGroupHeartbeatRequest, cx: &mut Context<'_>) {
    let listed = request.client_assignors.iter().flatten();
    cx.event(Event::ExternalAssignorRegistered {
        group_id: scope.text().clone(),
        member_id: request.member_id.clone(),
        client_id: request.client_id.clone(),
        client_host: request.client_host.clone(),
        assignors: listed.map(|assignor| assignor.name.clone()).collect(),
    });
}
