//! OffsetCommit v10 (KIP-848's topic ids): v9 with a topic id in the place of each topic's name.

use bytes::Bytes;
use kafka_protocol::messages::OffsetCommitRequest;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};

use crate::wire::body::Body;
use crate::wire::codec::WireError;
use crate::wire::reader::ReadError;

/// Decodes a v10 body: topics have ids and empty names.
///
/// # Errors
/// `Malformed`.
pub fn decode_request(body: Bytes) -> Result<OffsetCommitRequest, WireError> {
    let mut body = Body::new(&body);
    let mut request = OffsetCommitRequest::default()
        .with_group_id(body.text(true)?.into())
        .with_generation_id_or_member_epoch(body.reader.i32()?)
        .with_member_id(body.text(true)?)
        .with_group_instance_id(body.nullable_text(true)?);
    request.topics = body.array(true, topic)?;
    body.skip_tagged_fields()?;
    Ok(request)
}

fn topic(body: &mut Body<'_>) -> Result<OffsetCommitRequestTopic, ReadError> {
    let topic_id = body.reader.uuid()?;
    let partitions = body.array(true, partition)?;
    body.skip_tagged_fields()?;
    Ok(OffsetCommitRequestTopic::default()
        .with_topic_id(topic_id)
        .with_partitions(partitions))
}

fn partition(body: &mut Body<'_>) -> Result<OffsetCommitRequestPartition, ReadError> {
    let partition = OffsetCommitRequestPartition::default()
        .with_partition_index(body.reader.i32()?)
        .with_committed_offset(body.reader.i64()?)
        .with_committed_leader_epoch(body.reader.i32()?)
        .with_committed_metadata(body.nullable_text(true)?);
    body.skip_tagged_fields()?;
    Ok(partition)
}
