//! ConsumerGroupPrepareAssignment and ConsumerGroupInstallAssignment: the group's state to whoever computes, and what came of it.

use super::computation::Computation;
use super::outside::{Computable, ComputedOutside};
use super::snapshot::{Installed, MetadataLimits, Snapshot};
use crate::coordinator::context::Context;
use crate::coordinator::event::{Event, PassedOverReason};
use crate::coordinator::external;
use crate::coordinator::request::{
    InstallAssignmentRequest, PrepareAssignmentRequest, PrepareAssignmentResponse, PreparedMember, PreparedTopic,
    Response, Text,
};
use crate::coordinator::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

/// A group as whoever computes is told of it.
#[derive(Debug, Default)]
pub(in crate::coordinator) struct Prepared {
    pub(in crate::coordinator) members: Vec<PreparedMember>,
    pub(in crate::coordinator) topics: Vec<PreparedTopic>,
}

/// A valid assignment, and how it came about.
#[derive(Debug)]
pub(in crate::coordinator) struct Delivery {
    pub(in crate::coordinator) assignor: Text,
    pub(in crate::coordinator) member_id: Text,
    pub(in crate::coordinator) installed: Installed,
    /// What it was computed from.
    pub(in crate::coordinator) snapshot: Snapshot,
    /// Since it was wanted.
    pub(in crate::coordinator) took_ms: u64,
}

/// What a group says of itself, and does with what came back.
pub(in crate::coordinator) trait Deliverable: Computable {
    fn prepared(&self, assignor: &str, cx: &Context<'_>) -> Prepared;

    /// The computation is over.
    fn take_delivery(&mut self, delivery: Delivery, cx: &mut Context<'_>);
}

struct Refusal {
    error: ErrorCode,
    message: Option<Text>,
}

impl From<ErrorCode> for Refusal {
    fn from(error: ErrorCode) -> Self {
        Self { error, message: None }
    }
}

pub(in crate::coordinator) fn prepare_assignment(
    group: &mut dyn Deliverable,
    request: &PrepareAssignmentRequest,
    cx: &mut Context<'_>,
) -> Response {
    Response::PrepareAssignment(match prepare(group, request, cx) {
        Ok(prepared) => prepared,
        Err(refusal) => PrepareAssignmentResponse::refusal(refusal.error, refusal.message),
    })
}

fn prepare(
    group: &mut dyn Deliverable,
    request: &PrepareAssignmentRequest,
    cx: &mut Context<'_>,
) -> Result<PrepareAssignmentResponse, Refusal> {
    let assignor = assignor_of_caller(group, &request.member_id, request.member_epoch, cx)?;
    if !group.can_run(&request.member_id, &assignor, cx) {
        // Somebody came since with metadata that it cannot read.
        group.pass_over(PassedOverReason::Unfit, cx);
        return Err(not_chosen());
    }
    let Prepared { members, topics } = group.prepared(&assignor, cx);
    let snapshot = Snapshot::of(group.next_epoch(), &members, &topics);
    let prepared = PrepareAssignmentResponse {
        error: ErrorCode::NONE,
        error_message: None,
        group_epoch: snapshot.epoch,
        assignor_name: assignor,
        members,
        topics,
    };
    let now_ms = cx.now.monotonic_ms;
    if let Some(computation) = &mut group.outside_mut().computation {
        computation.take_snapshot(snapshot);
        let left_ms = computation.left_ms(now_ms);
        cx.arm(group.group_id(), GroupTimer::Computation, left_ms);
    }
    Ok(prepared)
}

pub(in crate::coordinator) fn install_assignment(
    group: &mut dyn Deliverable,
    request: InstallAssignmentRequest,
    cx: &mut Context<'_>,
) -> Response {
    let (error, error_message) = match install(group, request, cx) {
        Ok(()) => (ErrorCode::NONE, None),
        Err(refusal) => (refusal.error, refusal.message),
    };
    Response::InstallAssignment { error, error_message }
}

fn install(
    group: &mut dyn Deliverable,
    request: InstallAssignmentRequest,
    cx: &mut Context<'_>,
) -> Result<(), Refusal> {
    let assignor = assignor_of_caller(group, &request.member_id, request.member_epoch, cx)?;
    let member_id = request.member_id.clone();
    let error = request.error;
    match checked(group, request, cx) {
        Ok(Some(installed)) => deliver(group, assignor, member_id, installed, cx),
        Ok(None) => {
            if let Some(computation) = &mut group.outside_mut().computation {
                computation.fail(error);
            }
            group.pass_over(PassedOverReason::Failed, cx);
        }
        Err(reason) => return Err(refuse(group, assignor, member_id, reason, cx)),
    }
    Ok(())
}

/// The assignment, or none where there is an error instead; or what is wrong with it.
fn checked(
    group: &dyn Deliverable,
    request: InstallAssignmentRequest,
    cx: &Context<'_>,
) -> Result<Option<Installed>, Text> {
    let given = group.outside().computation.as_ref().and_then(Computation::given);
    let snapshot = given
        .and_then(|given| given.snapshot.as_ref())
        .ok_or("Nobody asked what to compute it from: ConsumerGroupPrepareAssignment comes first.")?;
    if request.error != 0 && request.members.is_empty() {
        return snapshot.check_epoch(request.group_epoch).map(|()| None);
    }
    let limits = MetadataLimits {
        member: cx.settings.assignor_metadata_max_bytes,
        group: cx.settings.assignor_metadata_group_max_bytes,
    };
    snapshot.check(request, limits).map(Some)
}

fn deliver(group: &mut dyn Deliverable, assignor: Text, member_id: Text, installed: Installed, cx: &mut Context<'_>) {
    let Some(computation) = group.end_computation(cx) else {
        return;
    };
    let took_ms = cx.now.monotonic_ms.saturating_sub(computation.wanted_ms);
    let Some(snapshot) = computation.into_snapshot() else {
        return;
    };
    let delivery = Delivery {
        assignor,
        member_id,
        installed,
        snapshot,
        took_ms,
    };
    group.take_delivery(delivery, cx);
}

fn refuse(group: &mut dyn Deliverable, assignor: Text, member_id: Text, reason: Text, cx: &mut Context<'_>) -> Refusal {
    cx.event(Event::ComputationRefused {
        group_id: group.group_id().clone(),
        assignor,
        member_id,
        reason: reason.clone(),
    });
    if group
        .outside_mut()
        .computation
        .as_mut()
        .is_some_and(Computation::refuse)
    {
        group.pass_over(PassedOverReason::Refused, cx);
    }
    Refusal {
        error: ErrorCode::INVALID_ASSIGNMENT,
        message: Some(reason),
    }
}

/// What is to be computed by whoever asks; nobody else is heard.
fn assignor_of_caller(group: &dyn Deliverable, member_id: &str, epoch: i32, cx: &Context<'_>) -> Result<Text, Refusal> {
    let known_epoch = match group.participant(member_id) {
        Some(participant) => participant.member_epoch,
        None if cx.externals.contains(group.group_id(), member_id) => external::EPOCH,
        None => return Err(ErrorCode::UNKNOWN_MEMBER_ID.into()),
    };
    if epoch != known_epoch {
        return Err(ErrorCode::STALE_MEMBER_EPOCH.into());
    }
    let computation = group.outside().computation.as_ref();
    let theirs = computation.filter(|computation| computation.is_given_to(member_id));
    theirs.map_or_else(|| Err(not_chosen()), |computation| Ok(computation.assignor.clone()))
}

fn not_chosen() -> Refusal {
    Refusal {
        error: ErrorCode::UNKNOWN_MEMBER_ID,
        message: Some("The assignment is not to be computed by this member.".into()),
    }
}
