//! LeaveGroup: members leave, or an administrator takes static ones out.

use super::{Cause, ClassicGroup, State};
use crate::coordinator::context::Context;
use crate::coordinator::event::RebalanceReason;
use crate::coordinator::request::{LeavingMember, LeftMember, Text};
use crate::wire::error_code::ErrorCode;

impl ClassicGroup {
    /// Takes out every member of the batch that is who it says, then rebalances once.
    pub(in crate::coordinator) fn on_leave(
        &mut self,
        leaving: Vec<LeavingMember>,
        cx: &mut Context<'_>,
    ) -> Vec<LeftMember> {
        let mut last_cause = None;
        let mut left = Vec::with_capacity(leaving.len());
        for member in leaving {
            let error = match self.leave(&member, cx) {
                Ok(Some(cause)) => {
                    last_cause = Some(cause);
                    ErrorCode::NONE
                }
                Ok(None) => ErrorCode::NONE,
                Err(error) => error,
            };
            left.push(LeftMember {
                member_id: member.member_id,
                group_instance_id: member.group_instance_id,
                error,
            });
        }
        match last_cause {
            Some(cause) if self.state != State::PreparingRebalance => self.prepare_rebalance(cause, cx),
            _ => self.maybe_complete_join(cx),
        }
        left
    }

    /// `Ok(None)`: an id that had only been handed out, whose going changes nothing for the members.
    fn leave(&mut self, leaving: &LeavingMember, cx: &mut Context<'_>) -> Result<Option<Cause>, ErrorCode> {
        if self.forget_pending(&leaving.member_id, cx) {
            return Ok(None);
        }
        let (member_id, reason) = self.find_leaving(leaving)?;
        let cause = Cause {
            client_reason: leaving.reason.clone(),
            ..Cause::of(reason, &member_id)
        };
        self.remove_member(&member_id, &cause, cx);
        Ok(Some(cause))
    }

    fn find_leaving(&self, leaving: &LeavingMember) -> Result<(Text, RebalanceReason), ErrorCode> {
        let instance_id = leaving.group_instance_id.as_ref();
        if !leaving.member_id.is_empty() {
            self.validate_member(&leaving.member_id, instance_id)?;
            return Ok((leaving.member_id.clone(), RebalanceReason::MemberLeft));
        }
        // An administrator names static members by their instance id alone.
        let member_id = instance_id.and_then(|instance_id| self.members.static_member(instance_id));
        match member_id {
            Some(member_id) => Ok((member_id.clone(), RebalanceReason::MemberRemovedByAdmin)),
            None => Err(ErrorCode::UNKNOWN_MEMBER_ID),
        }
    }
}
