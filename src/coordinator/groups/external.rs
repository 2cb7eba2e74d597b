//! Heartbeats of external assignors, and the assignments that they and members compute.

use super::Groups;
use crate::coordinator::client_assignor::{Asking, ComputedOutside, install_assignment, prepare_assignment};
use crate::coordinator::consumer::{asked, heartbeat_refusal, left};
use crate::coordinator::context::Context;
use crate::coordinator::event::{EpochReason, Event};
use crate::coordinator::external::{self, Externals, OF_GROUP_MAX, OF_SHARD_MAX};
use crate::coordinator::group::Group;
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{
    ClientAssignor, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, InstallAssignmentRequest,
    PrepareAssignmentRequest, PrepareAssignmentResponse, Response, Text,
};
use crate::coordinator::timer::{ExternalTimer, TimerKey};
use crate::wire::error_code::ErrorCode;

/// How long the heartbeat of one that computes waits, in milliseconds: what it sends next may be behind it in its connection,
/// and it should not send them without a pause either.
const BUSY_POLL_MS: i32 = 500;

impl Groups {
    /// Whether the heartbeat is an external assignor's. A member of the group stays one, whatever it subscribes to.
    pub(super) fn is_of_an_external(&self, request: &ConsumerGroupHeartbeatRequest, cx: &Context<'_>) -> bool {
        let may_be = request.is_of_an_external()
            || (!request.is_join() && cx.externals.contains(&request.group_id, &request.member_id));
        may_be
            && match self.groups.get(&request.group_id) {
                Some(Group::Consumer(group)) => !group.has_member(&request.member_id),
                _ => true,
            }
    }

    pub(super) fn external_heartbeat(
        &mut self,
        ticket: Ticket,
        request: &ConsumerGroupHeartbeatRequest,
        cx: &mut Context<'_>,
    ) {
        let (group_id, member_id) = (&request.group_id, &request.member_id);
        let is_known = cx.externals.contains(group_id, member_id);
        let refusal = match request.member_epoch {
            0 if cx.externals.have_room(group_id, member_id) => None,
            0 => {
                let message = format!(
                    "A group has at most {OF_GROUP_MAX} external assignors, and a shard of groups at most {OF_SHARD_MAX}."
                );
                Some((ErrorCode::GROUP_MAX_SIZE_REACHED, Some(message.into())))
            }
            _ if !is_known => Some((ErrorCode::UNKNOWN_MEMBER_ID, None)),
            ..0 => {
                self.remove_external(group_id, member_id, EpochReason::MemberLeft, cx);
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
            None => self.external_beat(ticket, request, cx),
        }
    }

    fn external_beat(&mut self, ticket: Ticket, request: &ConsumerGroupHeartbeatRequest, cx: &mut Context<'_>) {
        let (group_id, member_id) = (&request.group_id, &request.member_id);
        let known = cx.externals.get(group_id, member_id).filter(|_| !request.is_join());
        let before: &[ClientAssignor] = known.map_or(&[], |known| &known.assignors);
        let news = asked(before, request.client_assignors.as_deref());
        if let Some(replaced) = cx.externals.take_in(request) {
            // It came over a connection that the client gave up.
            let error = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
            cx.reply(replaced, heartbeat_refusal(error, None));
        }
        cx.arm_external(
            group_id,
            ExternalTimer::Session(member_id.clone()),
            cx.settings.consumer_session_timeout_ms(group_id),
        );
        if request.is_join() {
            tell_registered(request, cx);
        }
        let (mut should_compute, mut is_busy) = (false, false);
        if let Some(group) = self.groups.get_mut(group_id).map(Group::computed_outside) {
            if request.is_join() {
                group.on_external_gone(member_id, cx);
            }
            group.on_external_news(member_id, news, cx);
            should_compute = group.offer(member_id, cx);
            is_busy = group.is_computed_by(member_id);
        }
        let interval_ms = cx.settings.consumer_heartbeat_interval_ms(group_id);
        if request.is_join() || news.is_some() || should_compute {
            return cx.reply(ticket, external_response(member_id, interval_ms, should_compute));
        }
        cx.externals.park(group_id, member_id, ticket);
        let wait_ms = match is_busy {
            true => BUSY_POLL_MS.min(interval_ms),
            false => interval_ms,
        };
        cx.arm_external(group_id, ExternalTimer::Poll(member_id.clone()), wait_ms);
    }

    pub(in crate::coordinator) fn on_external_timer(
        &mut self,
        group_id: &Text,
        timer: ExternalTimer,
        cx: &mut Context<'_>,
    ) {
        match timer {
            ExternalTimer::Poll(member_id) => cx.answer_external(group_id, &member_id, false),
            ExternalTimer::Session(member_id) => {
                self.remove_external(group_id, &member_id, EpochReason::SessionExpired, cx);
            }
        }
    }

    fn remove_external(&mut self, group_id: &Text, member_id: &Text, reason: EpochReason, cx: &mut Context<'_>) {
        if let Some(parked) = cx.externals.unpark(group_id, member_id) {
            cx.reply(parked, heartbeat_refusal(ErrorCode::UNKNOWN_MEMBER_ID, None));
        }
        for timer in [
            ExternalTimer::Poll(member_id.clone()),
            ExternalTimer::Session(member_id.clone()),
        ] {
            cx.timers.cancel(&TimerKey::External(group_id.clone(), timer));
        }
        let Some(external) = cx.externals.remove(group_id, member_id) else {
            return;
        };
        cx.event(Event::ExternalAssignorGone {
            group_id: group_id.clone(),
            member_id: member_id.clone(),
            client_id: external.client_id,
            client_host: external.client_host,
            reason,
        });
        if let Some(group) = self.groups.get_mut(group_id) {
            group.computed_outside().on_external_gone(member_id, cx);
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
        externals.offer(group_id, assignor)
            || match self.groups.get(group_id) {
                Some(Group::Consumer(group)) => group.knows_assignor(assignor),
                _ => false,
            }
    }
}

impl Context<'_> {
    fn arm_external(&mut self, group_id: &Text, timer: ExternalTimer, delay_ms: i32) {
        let delay_ms = u64::try_from(delay_ms).unwrap_or(0);
        let key = TimerKey::External(group_id.clone(), timer);
        self.timers.arm(self.now.monotonic_ms, key, delay_ms);
    }

    /// Answers the parked heartbeat of an external assignor, if there is one.
    pub(in crate::coordinator) fn answer_external(&mut self, group_id: &Text, member_id: &Text, should_compute: bool) {
        let key = TimerKey::External(group_id.clone(), ExternalTimer::Poll(member_id.clone()));
        self.timers.cancel(&key);
        let Some(ticket) = self.externals.unpark(group_id, member_id) else {
            return;
        };
        let interval_ms = self.settings.consumer_heartbeat_interval_ms(group_id);
        self.reply(ticket, external_response(member_id, interval_ms, should_compute));
    }
}

/// The answer to an external assignor's heartbeat.
fn external_response(member_id: &Text, interval_ms: i32, should_compute: bool) -> Response {
    Response::ConsumerGroupHeartbeat(ConsumerGroupHeartbeatResponse {
        heartbeat_interval_ms: interval_ms,
        should_compute_assignment: should_compute,
        ..ConsumerGroupHeartbeatResponse::bare(Some(member_id.clone()), external::EPOCH)
    })
}

fn not_found(group_id: &str) -> Text {
    format!("Group {group_id} not found.").into()
}

fn tell_registered(request: &ConsumerGroupHeartbeatRequest, cx: &mut Context<'_>) {
    let listed = request.client_assignors.iter().flatten();
    cx.event(Event::ExternalAssignorRegistered {
        group_id: request.group_id.clone(),
        member_id: request.member_id.clone(),
        client_id: request.client_id.clone(),
        client_host: request.client_host.clone(),
        assignors: listed.map(|assignor| assignor.name.clone()).collect(),
    });
}
