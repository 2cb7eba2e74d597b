//! The tagged fields of ConsumerGroupHeartbeat v1 that only Convoke and its clients know.
//!
//! kafka-protocol keeps them as bytes. They stand in the tables of the length guard, so what it passed is read here.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::consumer_group_heartbeat_response::Assignment;
use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use kafka_protocol::protocol::StrBytes;

use super::WRITER;
use crate::wire::body::Body;
use crate::wire::codec::WireError;
use crate::wire::reader::{ReadError, Reader};

/// In a request: the assignors that a member or an external assignor has.
pub const CLIENT_ASSIGNORS: u32 = 20848;
/// In a response: whether whoever sent the heartbeat is to compute the group's assignment.
pub const SHOULD_COMPUTE_ASSIGNMENT: u32 = 20848;
/// In a response to who has registered for a pattern of groups: those whose assignments it is to compute.
pub const GROUPS_TO_COMPUTE: u32 = 20849;
/// In the assignment of a response: the assignor's error.
pub const ASSIGNMENT_ERROR: u32 = 20848;
/// In the assignment of a response: the version of the metadata.
pub const ASSIGNMENT_METADATA_VERSION: u32 = 20849;
/// In the assignment of a response: what the assignor that computed says to the one in the member.
pub const ASSIGNMENT_METADATA: u32 = 20850;

/// The only version that has the fields.
pub const VERSION: i16 = 1;

/// One assignor that a member or an external assignor has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientAssignor {
    pub name: StrBytes,
    /// The versions of metadata that it reads.
    pub minimum_version: i16,
    pub maximum_version: i16,
    /// Anything but 0 asks for a new assignment.
    pub reason: i8,
    /// The version in which `metadata` is written.
    pub metadata_version: i16,
    pub metadata: Bytes,
}

/// What an assignor says along with a member's assignment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssignedBy {
    /// 0, or the assignor's own word for why the assignment is not its own.
    pub error: i8,
    pub metadata_version: i16,
    pub metadata: Bytes,
}

/// The assignors of a member, the preferred one first; `None` where they are as before.
///
/// # Errors
/// `Malformed` for a request that the length guard has not seen.
pub fn client_assignors(request: &ConsumerGroupHeartbeatRequest) -> Result<Option<Vec<ClientAssignor>>, WireError> {
    let Some(field) = field(&request.unknown_tagged_fields, CLIENT_ASSIGNORS) else {
        return Ok(None);
    };
    Ok(Some(Body::new(field).array(true, client_assignor)?))
}

/// Whether an assignor registers itself that is no consumer: it names assignors, and subscribes to nothing.
#[must_use]
pub fn is_external_assignor(request: &ConsumerGroupHeartbeatRequest) -> bool {
    let names = request.subscribed_topic_names.as_ref();
    names.is_some_and(Vec::is_empty)
        && request
            .subscribed_topic_regex
            .as_ref()
            .is_none_or(|regex| regex.is_empty())
        && field(&request.unknown_tagged_fields, CLIENT_ASSIGNORS).is_some()
}

fn client_assignor(body: &mut Body<'_>) -> Result<ClientAssignor, ReadError> {
    let assignor = ClientAssignor {
        name: body.text(true)?,
        minimum_version: body.reader.i16()?,
        maximum_version: body.reader.i16()?,
        reason: body.reader.i8()?,
        metadata_version: body.reader.i16()?,
        metadata: body.byte_string(true)?,
    };
    body.skip_tagged_fields()?;
    Ok(assignor)
}

/// Puts the assignors into a request.
///
/// # Errors
/// `Malformed` where a length does not fit its field.
pub fn set_client_assignors(
    request: &mut ConsumerGroupHeartbeatRequest,
    assignors: &[ClientAssignor],
) -> Result<(), WireError> {
    let mut out = BytesMut::new();
    WRITER.array_len(assignors.len(), &mut out)?;
    for assignor in assignors {
        WRITER.text(&assignor.name, &mut out)?;
        out.put_i16(assignor.minimum_version);
        out.put_i16(assignor.maximum_version);
        out.put_i8(assignor.reason);
        out.put_i16(assignor.metadata_version);
        WRITER.byte_string(&assignor.metadata, &mut out)?;
        WRITER.no_tagged_fields(&mut out);
    }
    set(&mut request.unknown_tagged_fields, CLIENT_ASSIGNORS, out.freeze());
    Ok(())
}

/// Whether whoever sent the heartbeat is to compute the group's assignment.
///
/// # Errors
/// `Malformed` for a response that the length guard has not seen.
pub fn should_compute_assignment(response: &ConsumerGroupHeartbeatResponse) -> Result<bool, WireError> {
    match field(&response.unknown_tagged_fields, SHOULD_COMPUTE_ASSIGNMENT) {
        Some(field) => Ok(Reader::new(field).bool()?),
        None => Ok(false),
    }
}

/// Tells whoever sent the heartbeat to compute.
pub fn set_should_compute_assignment(response: &mut ConsumerGroupHeartbeatResponse) {
    let tags = &mut response.unknown_tagged_fields;
    set(tags, SHOULD_COMPUTE_ASSIGNMENT, Bytes::from_static(&[1]));
}

/// The groups whose assignments are to be computed; `None` from whoever takes no registrations for patterns of groups.
///
/// # Errors
/// `Malformed` for a response that the length guard has not seen.
pub fn groups_to_compute(response: &ConsumerGroupHeartbeatResponse) -> Result<Option<Vec<StrBytes>>, WireError> {
    let Some(field) = field(&response.unknown_tagged_fields, GROUPS_TO_COMPUTE) else {
        return Ok(None);
    };
    Ok(Some(Body::new(field).array(true, |body| body.text(true))?))
}

/// Names the groups whose assignments are to be computed, of which there may be none now.
///
/// # Errors
/// `Malformed` where a length does not fit its field.
pub fn set_groups_to_compute(
    response: &mut ConsumerGroupHeartbeatResponse,
    groups: &[StrBytes],
) -> Result<(), WireError> {
    let mut out = BytesMut::new();
    WRITER.array_len(groups.len(), &mut out)?;
    for group in groups {
        WRITER.text(group, &mut out)?;
    }
    set(&mut response.unknown_tagged_fields, GROUPS_TO_COMPUTE, out.freeze());
    Ok(())
}

/// What the assignor says along with an assignment.
///
/// # Errors
/// `Malformed` for a response that the length guard has not seen, which cannot be of one that it passed.
pub fn assigned_by(assignment: &Assignment) -> Result<AssignedBy, WireError> {
    let tags = &assignment.unknown_tagged_fields;
    let mut assigned = AssignedBy::default();
    if let Some(field) = field(tags, ASSIGNMENT_ERROR) {
        assigned.error = Reader::new(field).i8()?;
    }
    if let Some(field) = field(tags, ASSIGNMENT_METADATA_VERSION) {
        assigned.metadata_version = Reader::new(field).i16()?;
    }
    if let Some(field) = field(tags, ASSIGNMENT_METADATA) {
        assigned.metadata = Body::new(field).byte_string(true)?;
    }
    Ok(assigned)
}

/// Puts what the assignor says beside an assignment; what is 0 or empty is not sent.
///
/// # Errors
/// `Malformed` where a length does not fit its field.
pub fn set_assigned_by(assignment: &mut Assignment, assigned: &AssignedBy) -> Result<(), WireError> {
    let tags = &mut assignment.unknown_tagged_fields;
    if assigned.error != 0 {
        let error = Bytes::copy_from_slice(&assigned.error.to_be_bytes());
        set(tags, ASSIGNMENT_ERROR, error);
    }
    if assigned.metadata_version != 0 {
        let version = Bytes::copy_from_slice(&assigned.metadata_version.to_be_bytes());
        set(tags, ASSIGNMENT_METADATA_VERSION, version);
    }
    if !assigned.metadata.is_empty() {
        let mut metadata = BytesMut::new();
        WRITER.byte_string(&assigned.metadata, &mut metadata)?;
        set(tags, ASSIGNMENT_METADATA, metadata.freeze());
    }
    Ok(())
}

/// kafka-protocol keeps tags as signed numbers; ours are far below where that matters.
fn field(tags: &BTreeMap<i32, Bytes>, tag: u32) -> Option<&Bytes> {
    tags.get(&i32::try_from(tag).ok()?)
}

fn set(tags: &mut BTreeMap<i32, Bytes>, tag: u32, content: Bytes) {
    tags.insert(tag.cast_signed(), content);
}
