//! ConsumerGroupInstallAssignment v0 (KIP-848): the member that computed hands in what it made.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;

use super::{TopicPartitions, WRITER, expect_version, put_topic_partitions, topic_partitions};
use crate::wire::body::Body;
use crate::wire::codec::{Encode, Guarded, GuardedRequest, GuardedResponse, WireError};
use crate::wire::reader::ReadError;
use crate::wire::schema::{
    CONSUMER_GROUP_INSTALL_ASSIGNMENT_REQUEST, CONSUMER_GROUP_INSTALL_ASSIGNMENT_RESPONSE, Schema,
};

/// A new target for the group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallAssignmentRequest {
    pub group_id: StrBytes,
    pub member_id: StrBytes,
    pub member_epoch: i32,
    /// The epoch that it was computed for.
    pub group_epoch: i32,
    /// Anything but 0 is the assignor's own word for why there is no assignment.
    pub error: i8,
    pub members: Vec<InstalledMember>,
}

/// The target of one member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstalledMember {
    pub member_id: StrBytes,
    pub partitions: Vec<TopicPartitions>,
    pub metadata_version: i16,
    /// For the assignor in the member.
    pub metadata: Bytes,
}

/// Whether it was installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallAssignmentResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<StrBytes>,
}

impl Guarded for InstallAssignmentRequest {
    const SCHEMA: &'static Schema = &CONSUMER_GROUP_INSTALL_ASSIGNMENT_REQUEST;

    fn decode_passed(body: Bytes, _version: i16) -> Result<Self, WireError> {
        let mut body = Body::new(&body);
        let request = Self {
            group_id: body.text(true)?,
            member_id: body.text(true)?,
            member_epoch: body.reader.i32()?,
            group_epoch: body.reader.i32()?,
            error: body.reader.i8()?,
            members: body.array(true, member)?,
        };
        body.skip_tagged_fields()?;
        Ok(request)
    }
}

impl GuardedRequest for InstallAssignmentRequest {}

fn member(body: &mut Body<'_>) -> Result<InstalledMember, ReadError> {
    let member = InstalledMember {
        member_id: body.text(true)?,
        partitions: topic_partitions(body)?,
        metadata_version: body.reader.i16()?,
        metadata: body.byte_string(true)?,
    };
    body.skip_tagged_fields()?;
    Ok(member)
}

impl Encode for InstallAssignmentRequest {
    fn encode_body(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
        expect_version(Self::SCHEMA, version)?;
        WRITER.text(&self.group_id, out)?;
        WRITER.text(&self.member_id, out)?;
        out.put_i32(self.member_epoch);
        out.put_i32(self.group_epoch);
        out.put_i8(self.error);
        WRITER.array_len(self.members.len(), out)?;
        for member in &self.members {
            WRITER.text(&member.member_id, out)?;
            put_topic_partitions(&member.partitions, out)?;
            out.put_i16(member.metadata_version);
            WRITER.byte_string(&member.metadata, out)?;
            WRITER.no_tagged_fields(out);
        }
        WRITER.no_tagged_fields(out);
        Ok(())
    }
}

impl Guarded for InstallAssignmentResponse {
    const SCHEMA: &'static Schema = &CONSUMER_GROUP_INSTALL_ASSIGNMENT_RESPONSE;

    fn decode_passed(body: Bytes, _version: i16) -> Result<Self, WireError> {
        let mut body = Body::new(&body);
        let response = Self {
            throttle_time_ms: body.reader.i32()?,
            error_code: body.reader.i16()?,
            error_message: body.nullable_text(true)?,
        };
        body.skip_tagged_fields()?;
        Ok(response)
    }
}

impl GuardedResponse for InstallAssignmentResponse {}

impl Encode for InstallAssignmentResponse {
    fn encode_body(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
        expect_version(Self::SCHEMA, version)?;
        out.put_i32(self.throttle_time_ms);
        out.put_i16(self.error_code);
        WRITER.nullable_text(self.error_message.as_deref(), out)?;
        WRITER.no_tagged_fields(out);
        Ok(())
    }
}
