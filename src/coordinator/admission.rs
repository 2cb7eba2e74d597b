//! What is decided about a request before its group is looked at, in the order in which Kafka's clients can see it: its own
//! form first, then whether the group is ours.

use super::classic::{join_refusal, sync_refusal};
use super::consumer::{heartbeat_refusal, invalid_heartbeat};
use super::ownership::Standing;
use super::request::{
    ConsumerGroupDescribeResponse, LeaveGroupResponse, PrepareAssignmentResponse, Request, Response, Text,
};
use super::settings::Settings;
use crate::wire::error_code::ErrorCode;

/// What to do with a request.
#[derive(Debug)]
pub(super) enum Admission {
    Run,
    /// Park it until the upstream has said who runs the group.
    AskFirst(Text),
    Refuse(Response),
}

/// `is_offered` says of a group and an assignor whether somebody offers it there.
pub(super) fn admit(
    request: &Request,
    standing: Standing,
    settings: &Settings,
    is_offered: impl Fn(&str, &str) -> bool,
) -> Admission {
    if let Some(response) = malformed(request, settings, is_offered) {
        return Admission::Refuse(response);
    }
    match (standing, request) {
        // Whoever runs the group now: they count once it is ours.
        (_, Request::AlterGroupConfig(_) | Request::DescribeGroupConfig { .. }) => Admission::Run,
        (Standing::Ours, _) => Admission::Run,
        (Standing::Live, Request::JoinGroup(join)) => Admission::Refuse(join_refusal(
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
            join.member_id.clone(),
        )),
        // Whoever is at an epoch goes on where that epoch was given.
        (Standing::Live, Request::ConsumerGroupHeartbeat(heartbeat)) if heartbeat.is_join() => {
            Admission::Refuse(heartbeat_refusal(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS, None))
        }
        (Standing::Live | Standing::OtherType, _) => Admission::Refuse(Response::NotOwned),
        // The upstream may know it.
        (
            Standing::Unknown,
            Request::DescribeGroup { .. }
            | Request::ConsumerGroupDescribe { .. }
            | Request::PrepareAssignment(_)
            | Request::InstallAssignment(_),
        ) => Admission::Refuse(Response::NotOwned),
        (Standing::Unknown, request) => match request.met_by() {
            Some(group_id) => Admission::AskFirst(group_id.clone()),
            None => Admission::Run,
        },
    }
}

/// The errors that need no state.
fn malformed(request: &Request, settings: &Settings, is_offered: impl Fn(&str, &str) -> bool) -> Option<Response> {
    let invalid = ErrorCode::INVALID_GROUP_ID;
    match request {
        Request::JoinGroup(join) => {
            let bounds = settings.group_min_session_timeout_ms..=settings.group_max_session_timeout_ms;
            let error = if join.group_id.is_empty() {
                invalid
            } else if !bounds.contains(&join.session_timeout_ms) {
                ErrorCode::INVALID_SESSION_TIMEOUT
            } else {
                return None;
            };
            Some(join_refusal(error, join.member_id.clone()))
        }
        // Off by the operator's word.
        Request::ConsumerGroupHeartbeat(_) if !settings.consumer_groups => {
            Some(heartbeat_refusal(ErrorCode::UNSUPPORTED_VERSION, None))
        }
        Request::ConsumerGroupDescribe { group_id } if !settings.consumer_groups => {
            Some(Response::ConsumerGroupDescribe(ConsumerGroupDescribeResponse::refusal(
                group_id.clone(),
                ErrorCode::UNSUPPORTED_VERSION,
                None,
            )))
        }
        Request::ConsumerGroupHeartbeat(heartbeat) => invalid_heartbeat(heartbeat, settings, is_offered),
        Request::PatternHeartbeat(request) => invalid_heartbeat(&request.heartbeat, settings, is_offered),
        Request::ConsumerGroupDescribe { group_id } if group_id.is_empty() => Some(Response::ConsumerGroupDescribe(
            ConsumerGroupDescribeResponse::refusal(group_id.clone(), invalid, None),
        )),
        Request::PrepareAssignment(prepare) => {
            let (error, message) = invalid_caller(&prepare.group_id, &prepare.member_id, prepare.member_epoch)?;
            Some(Response::PrepareAssignment(PrepareAssignmentResponse::refusal(
                error, message,
            )))
        }
        Request::InstallAssignment(install) => {
            let (error, error_message) = invalid_caller(&install.group_id, &install.member_id, install.member_epoch)?;
            Some(Response::InstallAssignment { error, error_message })
        }
        Request::SyncGroup(sync) if sync.group_id.is_empty() => Some(sync_refusal(invalid)),
        Request::Heartbeat(heartbeat) if heartbeat.group_id.is_empty() => Some(Response::Heartbeat { error: invalid }),
        Request::LeaveGroup(leave) if leave.group_id.is_empty() => Some(Response::LeaveGroup(LeaveGroupResponse {
            error: invalid,
            members: Vec::new(),
        })),
        _ => None,
    }
}

/// What is wrong with whoever asks to compute an assignment, before anything is looked up.
fn invalid_caller(group_id: &str, member_id: &str, member_epoch: i32) -> Option<(ErrorCode, Option<Text>)> {
    if group_id.is_empty() {
        return Some((ErrorCode::INVALID_GROUP_ID, None));
    }
    let message = match member_id.trim().is_empty() {
        true => "MemberId can't be empty.",
        false if member_epoch < 0 => "MemberEpoch is invalid.",
        false => return None,
    };
    Some((ErrorCode::INVALID_REQUEST, Some(message.into())))
}

impl Request {
    /// Whether somebody wants to come into a group.
    pub(super) fn is_join(&self) -> bool {
        match self {
            Self::JoinGroup(_) => true,
            Self::ConsumerGroupHeartbeat(heartbeat) => heartbeat.is_join(),
            _ => false,
        }
    }

    /// The group that the request is to; `None` for one to the whole shard.
    pub(super) fn group_id(&self) -> Option<&Text> {
        match self {
            Self::JoinGroup(request) => Some(&request.group_id),
            Self::SyncGroup(request) => Some(&request.group_id),
            Self::Heartbeat(request) => Some(&request.group_id),
            Self::ConsumerGroupHeartbeat(request) => Some(&request.group_id),
            Self::PrepareAssignment(request) => Some(&request.group_id),
            Self::InstallAssignment(request) => Some(&request.group_id),
            Self::LeaveGroup(request) => Some(&request.group_id),
            Self::OffsetCommit(request) => Some(&request.group_id),
            Self::OffsetFetch(request) => Some(&request.group_id),
            Self::OffsetDelete(request) => Some(&request.group_id),
            Self::DeleteGroup { group_id }
            | Self::DescribeGroup { group_id }
            | Self::ConsumerGroupDescribe { group_id }
            | Self::DescribeGroupConfig { group_id } => Some(group_id),
            Self::AlterGroupConfig(request) => Some(&request.group_id),
            Self::PatternHeartbeat(_) | Self::ExternalGone { .. } | Self::ListGroups(_) | Self::View => None,
        }
    }

    /// The group, if the answer depends on what the upstream knows of it. A classic member's requests do not: a member of ours
    /// would have made the group known. A consumer group's member that is told of an unknown group drops its partitions, so
    /// that must not happen to one of the upstream's.
    fn met_by(&self) -> Option<&Text> {
        match self {
            Self::JoinGroup(_)
            | Self::ConsumerGroupHeartbeat(_)
            | Self::OffsetCommit(_)
            | Self::OffsetFetch(_)
            | Self::OffsetDelete(_)
            | Self::DeleteGroup { .. } => self.group_id(),
            Self::SyncGroup(_)
            | Self::Heartbeat(_)
            | Self::LeaveGroup(_)
            | Self::PrepareAssignment(_)
            | Self::InstallAssignment(_)
            | Self::DescribeGroup { .. }
            | Self::ConsumerGroupDescribe { .. }
            | Self::AlterGroupConfig(_)
            | Self::DescribeGroupConfig { .. }
            | Self::PatternHeartbeat(_)
            | Self::ExternalGone { .. }
            | Self::ListGroups(_)
            | Self::View => None,
        }
    }
}
