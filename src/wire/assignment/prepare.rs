//! ConsumerGroupPrepareAssignment v0 (KIP-848): the member that is to compute asks for the group as it is.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::{TopicPartitions, WRITER, expect_version, put_topic_partitions, topic_partitions};
use crate::wire::body::Body;
use crate::wire::codec::{Encode, Guarded, GuardedRequest, GuardedResponse, WireError};
use crate::wire::reader::ReadError;
use crate::wire::schema::{
    CONSUMER_GROUP_PREPARE_ASSIGNMENT_REQUEST, CONSUMER_GROUP_PREPARE_ASSIGNMENT_RESPONSE, Schema,
};

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrepareAssignmentRequest {
    pub group_id: StrBytes,
    pub member_id: StrBytes,
    pub member_epoch: i32,
}

/// What an assignment is computed from. Empty where there is an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrepareAssignmentResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<StrBytes>,
    /// The epoch that the assignment is to be computed for.
    pub group_epoch: i32,
    /// The assignor that the coordinator chose.
    pub assignor_name: StrBytes,
    pub members: Vec<PreparedMember>,
    /// Every topic that a member is subscribed to.
    pub topics: Vec<TopicMetadata>,
}

/// A member of the group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PreparedMember {
    pub member_id: StrBytes,
    pub member_epoch: i32,
    pub instance_id: Option<StrBytes>,
    pub rack_id: Option<StrBytes>,
    /// Patterns are resolved.
    pub subscribed_topic_ids: Vec<Uuid>,
    pub assignor: MemberAssignor,
    /// Its present target.
    pub topic_partitions: Vec<TopicPartitions>,
}

/// What a member said for the chosen assignor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberAssignor {
    pub reason: i8,
    pub metadata_version: i16,
    pub metadata: Bytes,
}

/// A topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicMetadata {
    pub topic_id: Uuid,
    pub topic_name: StrBytes,
    pub num_partitions: i32,
}

impl Guarded for PrepareAssignmentRequest {
    const SCHEMA: &'static Schema = &CONSUMER_GROUP_PREPARE_ASSIGNMENT_REQUEST;

    fn decode_passed(body: Bytes, _version: i16) -> Result<Self, WireError> {
        let mut body = Body::new(&body);
        let request = Self {
            group_id: body.text(true)?,
            member_id: body.text(true)?,
            member_epoch: body.reader.i32()?,
        };
        body.skip_tagged_fields()?;
        Ok(request)
    }
}

impl GuardedRequest for PrepareAssignmentRequest {}

impl Encode for PrepareAssignmentRequest {
    fn encode_body(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
        expect_version(Self::SCHEMA, version)?;
        WRITER.text(&self.group_id, out)?;
        WRITER.text(&self.member_id, out)?;
        out.put_i32(self.member_epoch);
        WRITER.no_tagged_fields(out);
        Ok(())
    }
}

impl Guarded for PrepareAssignmentResponse {
    const SCHEMA: &'static Schema = &CONSUMER_GROUP_PREPARE_ASSIGNMENT_RESPONSE;

    fn decode_passed(body: Bytes, _version: i16) -> Result<Self, WireError> {
        let mut body = Body::new(&body);
        let response = Self {
            throttle_time_ms: body.reader.i32()?,
            error_code: body.reader.i16()?,
            error_message: body.nullable_text(true)?,
            group_epoch: body.reader.i32()?,
            assignor_name: body.text(true)?,
            members: body.array(true, member)?,
            topics: body.array(true, topic)?,
        };
        body.skip_tagged_fields()?;
        Ok(response)
    }
}

impl GuardedResponse for PrepareAssignmentResponse {}

fn member(body: &mut Body<'_>) -> Result<PreparedMember, ReadError> {
    let member = PreparedMember {
        member_id: body.text(true)?,
        member_epoch: body.reader.i32()?,
        instance_id: body.nullable_text(true)?,
        rack_id: body.nullable_text(true)?,
        subscribed_topic_ids: body.uuids(true)?,
        assignor: assignor(body)?,
        topic_partitions: topic_partitions(body)?,
    };
    body.skip_tagged_fields()?;
    Ok(member)
}

fn assignor(body: &mut Body<'_>) -> Result<MemberAssignor, ReadError> {
    let assignor = MemberAssignor {
        reason: body.reader.i8()?,
        metadata_version: body.reader.i16()?,
        metadata: body.byte_string(true)?,
    };
    body.skip_tagged_fields()?;
    Ok(assignor)
}

fn topic(body: &mut Body<'_>) -> Result<TopicMetadata, ReadError> {
    let topic = TopicMetadata {
        topic_id: body.reader.uuid()?,
        topic_name: body.text(true)?,
        num_partitions: body.reader.i32()?,
    };
    body.skip_tagged_fields()?;
    Ok(topic)
}

impl Encode for PrepareAssignmentResponse {
    fn encode_body(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
        expect_version(Self::SCHEMA, version)?;
        out.put_i32(self.throttle_time_ms);
        out.put_i16(self.error_code);
        WRITER.nullable_text(self.error_message.as_deref(), out)?;
        out.put_i32(self.group_epoch);
        WRITER.text(&self.assignor_name, out)?;
        WRITER.array_len(self.members.len(), out)?;
        for member in &self.members {
            put_member(member, out)?;
        }
        WRITER.array_len(self.topics.len(), out)?;
        for topic in &self.topics {
            out.put_slice(topic.topic_id.as_bytes());
            WRITER.text(&topic.topic_name, out)?;
            out.put_i32(topic.num_partitions);
            WRITER.no_tagged_fields(out);
        }
        WRITER.no_tagged_fields(out);
        Ok(())
    }
}

fn put_member(member: &PreparedMember, out: &mut BytesMut) -> Result<(), WireError> {
    WRITER.text(&member.member_id, out)?;
    out.put_i32(member.member_epoch);
    WRITER.nullable_text(member.instance_id.as_deref(), out)?;
    WRITER.nullable_text(member.rack_id.as_deref(), out)?;
    WRITER.array_len(member.subscribed_topic_ids.len(), out)?;
    for topic_id in &member.subscribed_topic_ids {
        out.put_slice(topic_id.as_bytes());
    }
    out.put_i8(member.assignor.reason);
    out.put_i16(member.assignor.metadata_version);
    WRITER.byte_string(&member.assignor.metadata, out)?;
    WRITER.no_tagged_fields(out);
    put_topic_partitions(&member.topic_partitions, out)?;
    WRITER.no_tagged_fields(out);
    Ok(())
}
