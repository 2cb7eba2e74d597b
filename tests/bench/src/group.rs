//! Members of classic groups: the requests of joining, and single members that join by a blocking client.

use std::time::{Duration, Instant};

use bytes::Bytes;
use convoke_support::Result;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{FindCoordinatorRequest, GroupId, JoinGroupRequest, SyncGroupRequest};
use kafka_protocol::protocol::StrBytes;

use crate::wire::{Client, accepted};

pub const FIND_COORDINATOR: i16 = 6;
pub const JOIN_GROUP: i16 = 9;
pub const SYNC_GROUP: i16 = 5;

const PROTOCOL_TYPE: &str = "consumer";
const PROTOCOL: &str = "range";

/// As long as a broker allows by default: members outlive the pauses between their rounds.
pub const SESSION_TIMEOUT_MS: i32 = 1_800_000;
const REBALANCE_TIMEOUT_MS: i32 = 60_000;

/// How long a coordinator may take to load or to be elected.
const READY_LIMIT: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// A member of a stable group.
#[derive(Debug, Clone)]
pub struct Member {
    pub group_id: GroupId,
    pub member_id: StrBytes,
    pub generation: i32,
}

/// Waits until the broker has a coordinator for groups, which creates `__consumer_offsets`.
///
/// # Errors
/// When it has none after a minute.
pub fn wait_for_coordinator(client: &mut Client) -> Result<()> {
    let request =
        FindCoordinatorRequest::default().with_coordinator_keys(vec![StrBytes::from_static_str("bench-coordinator")]);
    retry("FindCoordinator", || {
        let response = client.call(&request, FIND_COORDINATOR)?;
        let coordinator = response.coordinators.first().ok_or("no coordinator in the answer")?;
        Ok((coordinator.error_code, ()))
    })
}

/// Makes the client the only member of a new group, with an assignment.
///
/// # Errors
/// When it cannot join.
pub fn join_alone(client: &mut Client, group_id: &str) -> Result<Member> {
    let group_id = GroupId(StrBytes::from_string(group_id.to_owned()));
    let mut member_id = StrBytes::default();
    let generation = retry("JoinGroup", || {
        let response = client.call(&join_group(&group_id, &member_id, &subscription(0)), JOIN_GROUP)?;
        member_id = response.member_id;
        Ok((response.error_code, response.generation_id))
    })?;
    let member = Member {
        group_id,
        member_id,
        generation,
    };
    let assignments = vec![assignment(&member.member_id, 0)];
    let response = client.call(&sync_group(&member, assignments), SYNC_GROUP)?;
    accepted(response.error_code).map_err(|error| format!("SyncGroup: {error}"))?;
    Ok(member)
}

#[must_use]
pub fn join_group(group_id: &GroupId, member_id: &StrBytes, metadata: &Bytes) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(StrBytes::from_static_str(PROTOCOL))
        .with_metadata(metadata.clone());
    JoinGroupRequest::default()
        .with_group_id(group_id.clone())
        .with_member_id(member_id.clone())
        .with_session_timeout_ms(SESSION_TIMEOUT_MS)
        .with_rebalance_timeout_ms(REBALANCE_TIMEOUT_MS)
        .with_protocol_type(StrBytes::from_static_str(PROTOCOL_TYPE))
        .with_protocols(vec![protocol])
}

#[must_use]
pub fn sync_group(member: &Member, assignments: Vec<SyncGroupRequestAssignment>) -> SyncGroupRequest {
    SyncGroupRequest::default()
        .with_group_id(member.group_id.clone())
        .with_generation_id(member.generation)
        .with_member_id(member.member_id.clone())
        .with_protocol_type(Some(StrBytes::from_static_str(PROTOCOL_TYPE)))
        .with_protocol_name(Some(StrBytes::from_static_str(PROTOCOL)))
        .with_assignments(assignments)
}

/// What a consumer says when it joins (Kafka's ConsumerProtocolSubscription v0): its topic, and user data that changes
/// with `epoch`, as a sticky assignor's does, so that a member that joins again starts a rebalance.
#[must_use]
pub fn subscription(epoch: i32) -> Bytes {
    let topic = b"bench-orders";
    let mut out = vec![0, 0, 0, 0, 0, 1, 0, 12];
    out.extend_from_slice(topic);
    out.extend_from_slice(&4_i32.to_be_bytes());
    out.extend_from_slice(&epoch.to_be_bytes());
    out.into()
}

/// One partition of the topic for the member (ConsumerProtocolAssignment v0).
#[must_use]
pub fn assignment(member_id: &StrBytes, partition: i32) -> SyncGroupRequestAssignment {
    let topic = b"bench-orders";
    let mut out = vec![0, 0, 0, 0, 0, 1, 0, 12];
    out.extend_from_slice(topic);
    out.extend_from_slice(&1_i32.to_be_bytes());
    out.extend_from_slice(&partition.to_be_bytes());
    // No user data.
    out.extend_from_slice(&(-1_i32).to_be_bytes());
    SyncGroupRequestAssignment::default()
        .with_member_id(member_id.clone())
        .with_assignment(out.into())
}

/// Whether a request should be sent again: at once for a member id that was just given, else after a pause.
fn retry<T>(what: &str, mut attempt: impl FnMut() -> Result<(i16, T)>) -> Result<T> {
    let deadline = Instant::now() + READY_LIMIT;
    loop {
        let (code, outcome) = attempt()?;
        match ResponseError::try_from_code(code) {
            None => return Ok(outcome),
            Some(ResponseError::MemberIdRequired) => {}
            Some(
                ResponseError::CoordinatorNotAvailable
                | ResponseError::CoordinatorLoadInProgress
                | ResponseError::NotCoordinator,
            ) if Instant::now() < deadline => std::thread::sleep(RETRY_PAUSE),
            Some(error) => return Err(format!("{what}: {error:?}").into()),
        }
    }
}
