//! Members that leave, are taken out, or are replaced.

use std::sync::Arc;

use super::members::Member;
use super::refusal::Refusal;
use super::{ConsumerGroup, epoch};
use crate::coordinator::client_assignor::ComputedOutside;
use crate::coordinator::context::Context;
use crate::coordinator::event::{EpochReason, Event};
use crate::coordinator::held::HeldPartitions;
use crate::coordinator::record::{ConsumerGroupRecord, ConsumerMemberValue, CurrentAssignmentValue};
use crate::coordinator::request::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, LeavingMember, LeftMember, Response, Text,
};
use crate::coordinator::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

impl ConsumerGroup {
    /// A member leaves and gives up what it has.
    pub(super) fn leave_for_good(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
        cx: &mut Context<'_>,
    ) -> Result<Response, Refusal> {
        let member_id = self.leaving_member(request)?.id.clone();
        self.take_out(&[member_id], EpochReason::MemberLeft, cx);
        Ok(left(request))
    }

    /// A static member leaves and will be back: what it has is kept for it while its session lasts.
    pub(super) fn leave_for_a_while(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
        cx: &mut Context<'_>,
    ) -> Result<Response, Refusal> {
        let member = self.leaving_member(request)?;
        let member_id = member.id.clone();
        let held = CurrentAssignmentValue {
            member_epoch: epoch::LEAVE_FOR_A_WHILE,
            assigned: member.current.assigned.at_epoch(0),
            pending_revocation: HeldPartitions::default(),
            ..member.current.clone()
        };
        cx.cancel(&self.id, GroupTimer::Rebalance(member_id.clone()));
        self.refuse_join(&member_id, cx);
        self.write_held(&member_id, held, cx);
        self.lose(&member_id, cx);
        self.proceed(cx);
        Ok(left(request))
    }

    fn leaving_member(&self, request: &ConsumerGroupHeartbeatRequest) -> Result<&Member, Refusal> {
        let member_id = &request.member_id;
        let Some(instance_id) = &request.group_instance_id else {
            let member = self.members.get(member_id);
            return member.ok_or_else(|| Refusal::no_member(member_id, &self.id));
        };
        let holder = self.members.static_member(instance_id);
        let holder = holder.and_then(|holder| self.members.get(holder));
        let holder = holder.ok_or_else(|| Refusal::no_instance(instance_id))?;
        match holder.id == *member_id {
            true => Ok(holder),
            false => Err(Refusal::fenced_instance(member_id, instance_id, &holder.id)),
        }
    }

    /// LeaveGroup: members that speak the classic protocol, or an administrator who takes members out.
    pub(in crate::coordinator) fn on_leave(
        &mut self,
        leaving: Vec<LeavingMember>,
        cx: &mut Context<'_>,
    ) -> Vec<LeftMember> {
        let mut gone = Vec::new();
        let mut reason = EpochReason::MemberLeft;
        let mut answers = Vec::with_capacity(leaving.len());
        for member in leaving {
            let error = match self.find_leaving(&member) {
                // Who is named twice leaves once, and is told so each time.
                Ok(member_id) if gone.contains(&member_id) => ErrorCode::NONE,
                Ok(member_id) => {
                    if member.member_id.is_empty() {
                        reason = EpochReason::RemovedByAdmin;
                    }
                    gone.push(member_id);
                    ErrorCode::NONE
                }
                Err(error) => error,
            };
            answers.push(LeftMember {
                member_id: member.member_id,
                group_instance_id: member.group_instance_id,
                error,
            });
        }
        self.take_out(&gone, reason, cx);
        answers
    }

    fn find_leaving(&self, leaving: &LeavingMember) -> Result<Text, ErrorCode> {
        let Some(instance_id) = &leaving.group_instance_id else {
            let member = self.members.get(&leaving.member_id);
            return member
                .map(|member| member.id.clone())
                .ok_or(ErrorCode::UNKNOWN_MEMBER_ID);
        };
        match self.members.static_member(instance_id) {
            None => Err(ErrorCode::UNKNOWN_MEMBER_ID),
            Some(holder) if !leaving.member_id.is_empty() && *holder != leaving.member_id => {
                Err(ErrorCode::FENCED_INSTANCE_ID)
            }
            Some(holder) => Ok(holder.clone()),
        }
    }

    /// Takes a member out that was silent, or did not give up what it had to.
    pub(super) fn fence(&mut self, member_id: &Text, reason: EpochReason, cx: &mut Context<'_>) {
        self.take_out(std::slice::from_ref(member_id), reason, cx);
    }

    /// Takes members out, all with one bump of the group's epoch.
    pub(super) fn take_out(&mut self, member_ids: &[Text], reason: EpochReason, cx: &mut Context<'_>) {
        let mut last = None;
        for member_id in member_ids {
            if let Some(member) = self.members.get(member_id) {
                tell_removed(&self.id, member, reason, cx);
                let regex = member.said.subscribed_topic_regex.clone();
                self.erase(member_id, cx);
                self.refuse_join(member_id, cx);
                self.drop_regex(&regex, cx);
                last = Some(member_id);
            }
        }
        if last.is_some() {
            self.bump(reason, last, cx);
            self.plan_target(cx);
            self.proceed(cx);
            self.tell_settled(cx);
        }
    }

    /// Gives the place of a static member, with all it has, to another id.
    pub(super) fn replace(
        &mut self,
        old_id: &Text,
        new_id: &Text,
        said: &Arc<ConsumerMemberValue>,
        cx: &mut Context<'_>,
    ) {
        let Some(member) = self.members.get(old_id) else {
            return;
        };
        let held = CurrentAssignmentValue {
            member_epoch: epoch::JOIN,
            previous_member_epoch: epoch::JOIN,
            ..member.current.clone()
        };
        let target = self.targets.get(old_id).cloned();
        self.erase(old_id, cx);
        self.refuse_join(old_id, cx);
        self.write_member(new_id, said, cx);
        if let Some(target) = target {
            let member_id = new_id.clone();
            self.write(
                ConsumerGroupRecord::TargetMember {
                    member_id,
                    value: Some(target),
                },
                cx,
            );
        }
        self.write_held(new_id, held, cx);
    }

    /// Removes every trace of a member, in Kafka's order.
    fn erase(&mut self, member_id: &Text, cx: &mut Context<'_>) {
        let id = || member_id.clone();
        let timers = [
            GroupTimer::Session(id()),
            GroupTimer::Rebalance(id()),
            GroupTimer::ClassicJoin(id()),
            GroupTimer::ClassicSync(id()),
        ];
        for timer in timers {
            cx.cancel(&self.id, timer);
        }
        self.lose(member_id, cx);
        self.write(
            ConsumerGroupRecord::CurrentAssignment {
                member_id: id(),
                value: None,
            },
            cx,
        );
        if self.targets.contains_key(member_id) {
            self.write(
                ConsumerGroupRecord::TargetMember {
                    member_id: id(),
                    value: None,
                },
                cx,
            );
        }
        self.write(
            ConsumerGroupRecord::Member {
                member_id: id(),
                value: None,
            },
            cx,
        );
    }

    pub(super) fn write_held(&mut self, member_id: &Text, held: CurrentAssignmentValue, cx: &mut Context<'_>) {
        self.write(
            ConsumerGroupRecord::CurrentAssignment {
                member_id: member_id.clone(),
                value: Some(held),
            },
            cx,
        );
    }
}

fn tell_removed(group_id: &Text, member: &Member, reason: EpochReason, cx: &mut Context<'_>) {
    cx.event(Event::ConsumerMemberRemoved {
        group_id: group_id.clone(),
        member_id: member.id.clone(),
        group_instance_id: member.said.instance_id.clone(),
        client_id: member.said.client_id.clone(),
        client_host: member.said.client_host.clone(),
        reason,
    });
}

/// The answer to whoever leaves.
pub(in crate::coordinator) fn left(request: &ConsumerGroupHeartbeatRequest) -> Response {
    Response::ConsumerGroupHeartbeat(ConsumerGroupHeartbeatResponse::bare(
        Some(request.member_id.clone()),
        request.member_epoch,
    ))
}
