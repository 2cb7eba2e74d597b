//! JoinGroup: who may come in, and what a join of a known member means.

use std::collections::BTreeSet;

use super::members::Member;
use super::{Cause, ClassicGroup, State, max_size};
use crate::coordinator::context::Context;
use crate::coordinator::event::RebalanceReason;
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{JoinGroupMember, JoinGroupRequest, JoinGroupResponse, Protocol, Response, Text};
use crate::coordinator::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

/// How long the first join of a member may stay unanswered, in milliseconds (Kafka's `CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS`).
const NEW_MEMBER_JOIN_TIMEOUT_MS: i32 = 5 * 60 * 1_000;

/// A refused join, with the member id that the answer carries.
struct Refusal {
    error: ErrorCode,
    member_id: Text,
}

/// The answer to a join that is refused.
pub(in crate::coordinator) fn join_refusal(error: ErrorCode, member_id: Text) -> Response {
    Response::JoinGroup(JoinGroupResponse {
        error,
        generation_id: -1,
        protocol_type: None,
        protocol_name: None,
        leader: "".into(),
        skip_assignment: false,
        member_id,
        members: Vec::new(),
    })
}

impl ClassicGroup {
    /// A join whose group id and session timeout are in order.
    pub(in crate::coordinator) fn on_join(
        &mut self,
        ticket: Ticket,
        mut request: JoinGroupRequest,
        cx: &mut Context<'_>,
    ) {
        request.protocols = distinct(request.protocols);
        let outcome = if !self.has_room_for(&request, cx) {
            self.turn_away(&request.member_id, cx);
            Err(Refusal {
                error: ErrorCode::GROUP_MAX_SIZE_REACHED,
                member_id: "".into(),
            })
        } else if request.member_id.is_empty() {
            self.on_first_join(ticket, request, cx)
        } else {
            self.on_rejoin(ticket, request, cx)
        };
        if let Err(refusal) = outcome {
            cx.reply(ticket, join_refusal(refusal.error, refusal.member_id));
        }
    }

    /// While a round is prepared those count who are parked in it, so that a group above its size shrinks to the first
    /// who rejoin. Ids that were only handed out do not count, and a static member that returns has its place.
    fn has_room_for(&self, request: &JoinGroupRequest, cx: &Context<'_>) -> bool {
        let returning = || self.members.static_member(request.group_instance_id.as_ref()?);
        let member = match request.member_id.is_empty() {
            true => returning().and_then(|member_id| self.members.get(member_id)),
            false => self.members.get(&request.member_id),
        };
        match self.state {
            State::Empty => true,
            State::PreparingRebalance => {
                member.is_some_and(Member::is_parked_in_join) || self.members.parked_joins() < max_size(cx)
            }
            State::CompletingRebalance | State::Stable => member.is_some() || self.members.len() < max_size(cx),
        }
    }

    /// The refused one does not keep its place or its id. Kafka leaves a round that only waited for it to the timeout.
    fn turn_away(&mut self, member_id: &Text, cx: &mut Context<'_>) {
        self.forget_pending(member_id, cx);
        self.remove_member(member_id, &Cause::of(RebalanceReason::OverCapacity, member_id), cx);
        self.maybe_complete_join(cx);
    }

    fn on_first_join(
        &mut self,
        ticket: Ticket,
        request: JoinGroupRequest,
        cx: &mut Context<'_>,
    ) -> Result<(), Refusal> {
        self.check_protocols(&request)?;
        if let Some(instance_id) = &request.group_instance_id {
            let new_id = cx.member_ids.next(instance_id);
            match self.members.static_member(instance_id).cloned() {
                Some(old_id) => self.replace_static_member(ticket, &old_id, new_id, request, cx),
                None => self.add_member(ticket, new_id, request, cx),
            }
            return Ok(());
        }
        let new_id = cx.member_ids.next(&request.client_id);
        if request.require_known_member_id {
            self.pending_joins.insert(new_id.clone());
            cx.arm(
                &self.id,
                GroupTimer::Session(new_id.clone()),
                request.session_timeout_ms,
            );
            return Err(Refusal {
                error: ErrorCode::MEMBER_ID_REQUIRED,
                member_id: new_id,
            });
        }
        self.add_member(ticket, new_id, request, cx);
        Ok(())
    }

    fn on_rejoin(&mut self, ticket: Ticket, request: JoinGroupRequest, cx: &mut Context<'_>) -> Result<(), Refusal> {
        self.check_protocols(&request)?;
        let refuse = |error| Refusal {
            error,
            member_id: request.member_id.clone(),
        };
        if self.pending_joins.contains(&request.member_id) {
            if request.group_instance_id.is_some() {
                // Such an id was handed to a dynamic member.
                return Err(Refusal {
                    error: ErrorCode::UNKNOWN_SERVER_ERROR,
                    member_id: "".into(),
                });
            }
            self.add_member(ticket, request.member_id.clone(), request, cx);
            return Ok(());
        }
        self.validate_member(&request.member_id, request.group_instance_id.as_ref())
            .map_err(refuse)?;
        self.hear(&request.member_id);
        self.on_member_rejoined(ticket, request, cx);
        Ok(())
    }

    fn on_member_rejoined(&mut self, ticket: Ticket, request: JoinGroupRequest, cx: &mut Context<'_>) {
        let member_id = request.member_id.clone();
        let is_leader = self.is_leader(&member_id);
        let member = self.members.get(&member_id);
        let unchanged = member.is_some_and(|member| member.has_protocols(&request.protocols));
        let reason = match self.state {
            State::CompletingRebalance if unchanged => None,
            // A leader rejoins because it wants to assign anew.
            State::Stable if is_leader => Some(RebalanceReason::LeaderRejoined),
            State::Stable if unchanged => None,
            _ => Some(RebalanceReason::MetadataChanged),
        };
        let Some(reason) = reason else {
            // It missed the answer to its last join.
            let response = self.join_response(&member_id);
            cx.reply(ticket, Response::JoinGroup(response));
            return;
        };
        let cause = Cause {
            client_reason: request.reason.clone(),
            ..Cause::of(reason, &member_id)
        };
        self.members.update(&member_id, request);
        self.park_join(&member_id, ticket, cx);
        self.rebalance_or_complete_join(cause, cx);
    }

    fn add_member(&mut self, ticket: Ticket, member_id: Text, request: JoinGroupRequest, cx: &mut Context<'_>) {
        let cause = Cause {
            client_reason: request.reason.clone(),
            ..Cause::of(RebalanceReason::MemberJoined, &member_id)
        };
        self.pending_joins.remove(&member_id);
        let is_first = self.members.is_empty();
        if is_first {
            self.protocol_type = Some(request.protocol_type.clone());
        }
        if self.leader.is_none() {
            self.leader = Some(member_id.clone());
        }
        if let Some(initial_join) = &mut self.initial_join {
            initial_join.member_added = true;
        }
        self.members.insert(Member::joining(member_id.clone(), request));
        if is_first {
            self.subscription = self.current_subscription();
        }
        self.park_join(&member_id, ticket, cx);
        cx.arm(&self.id, GroupTimer::Session(member_id), NEW_MEMBER_JOIN_TIMEOUT_MS);
        self.rebalance_or_complete_join(cause, cx);
    }

    /// Parks a join. One that it takes the place of came over a connection that the client gave up.
    pub(super) fn park_join(&mut self, member_id: &Text, ticket: Ticket, cx: &mut Context<'_>) {
        if let Some(replaced) = self.members.park_join(member_id, ticket) {
            cx.reply(
                replaced,
                join_refusal(ErrorCode::REBALANCE_IN_PROGRESS, member_id.clone()),
            );
        }
    }

    /// The current generation, as this member is told of it.
    pub(super) fn join_response(&self, member_id: &Text) -> JoinGroupResponse {
        let members = match self.is_leader(member_id) {
            true => self.members_for_leader(),
            false => Vec::new(),
        };
        JoinGroupResponse {
            error: ErrorCode::NONE,
            generation_id: self.generation_id,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone().unwrap_or_else(|| "".into()),
            skip_assignment: false,
            member_id: member_id.clone(),
            members,
        }
    }

    pub(super) fn members_for_leader(&self) -> Vec<JoinGroupMember> {
        let protocol = self.protocol_name.as_deref().unwrap_or_default();
        let tell = |member: &Member| JoinGroupMember {
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.clone(),
            metadata: member.metadata(protocol),
        };
        self.members.iter().map(tell).collect()
    }

    /// The type must be the group's, and one of the protocols must be supported by everybody in it.
    fn check_protocols(&self, request: &JoinGroupRequest) -> Result<(), Refusal> {
        let fits = if self.state == State::Empty {
            !request.protocol_type.is_empty() && !request.protocols.is_empty()
        } else {
            self.protocol_type.as_ref() == Some(&request.protocol_type)
                && request
                    .protocols
                    .iter()
                    .any(|protocol| self.members.all_support(&protocol.name))
        };
        match fits {
            true => Ok(()),
            false => Err(Refusal {
                error: ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
                member_id: request.member_id.clone(),
            }),
        }
    }
}

impl Cause {
    pub(super) fn of(reason: RebalanceReason, member_id: &Text) -> Self {
        Self {
            reason,
            member_id: Some(member_id.clone()),
            client_reason: None,
        }
    }

    /// What no member has caused.
    pub(super) const fn of_group(reason: RebalanceReason) -> Self {
        Self {
            reason,
            member_id: None,
            client_reason: None,
        }
    }
}

/// The first of each name: a list with doubles must not count twice.
fn distinct(mut protocols: Vec<Protocol>) -> Vec<Protocol> {
    let mut seen = BTreeSet::new();
    protocols.retain(|protocol| seen.insert(protocol.name.clone()));
    protocols
}
