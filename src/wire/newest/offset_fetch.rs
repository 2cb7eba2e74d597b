//! OffsetFetch v10 (KIP-848's topic ids): v9 with a topic id in the place of each topic's name.

use bytes::Bytes;
use kafka_protocol::messages::OffsetFetchRequest;
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};

use crate::wire::body::Body;
use crate::wire::codec::WireError;
use crate::wire::reader::{ReadError, Reader};

/// Decodes a v10 body: topics have ids and empty names.
///
/// # Errors
/// `Malformed`.
pub fn decode_request(body: Bytes) -> Result<OffsetFetchRequest, WireError> {
    let mut body = Body::new(&body);
    let groups = body.array(true, group)?;
    let require_stable = body.reader.bool()?;
    body.skip_tagged_fields()?;
    // The fields of versions before 8 hold what kafka-protocol puts there for later ones.
    let request = OffsetFetchRequest::default().with_topics(Some(Vec::new()));
    Ok(request.with_groups(groups).with_require_stable(require_stable))
}

fn group(body: &mut Body<'_>) -> Result<OffsetFetchRequestGroup, ReadError> {
    let mut group = OffsetFetchRequestGroup::default()
        .with_group_id(body.text(true)?.into())
        .with_member_id(body.nullable_text(true)?)
        .with_member_epoch(body.reader.i32()?);
    group.topics = body.nullable_array(true, topic)?;
    body.skip_tagged_fields()?;
    Ok(group)
}

fn topic(body: &mut Body<'_>) -> Result<OffsetFetchRequestTopics, ReadError> {
    let topic_id = body.reader.uuid()?;
    let partition_indexes = body.array(true, |body| Reader::i32(&mut body.reader))?;
    body.skip_tagged_fields()?;
    Ok(OffsetFetchRequestTopics::default()
        .with_topic_id(topic_id)
        .with_partition_indexes(partition_indexes))
}
