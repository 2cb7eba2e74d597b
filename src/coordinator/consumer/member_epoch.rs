//! Whether a request's epoch is one that its member can have.

use super::epoch;
use super::members::Member;
use super::refusal::Refusal;
use crate::coordinator::partitions::Partitions;

/// A member may always begin anew. An epoch that is one behind comes from a member that did not hear the last answer: it is
/// taken if the member owns nothing that it has not been given.
pub(super) fn check(member: &Member, received: i32, owned: Option<&Partitions>) -> Result<(), Refusal> {
    let current = &member.current;
    if received == epoch::JOIN || received == current.member_epoch {
        return Ok(());
    }
    let missed_the_answer = received < current.member_epoch
        && received == current.previous_member_epoch
        && owned.is_some_and(|owned| owned.is_subset_of(current.assigned.partitions()));
    match missed_the_answer {
        true => Ok(()),
        false => Err(Refusal::wrong_epoch(received, current.member_epoch)),
    }
}
