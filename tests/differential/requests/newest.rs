//! The versions that kafka-protocol does not write: topics by their ids.

use bytes::{BufMut, Bytes, BytesMut};
use convoke_support::Result;
use kafka_protocol::messages::{OffsetCommitRequest, OffsetFetchRequest};

/// OffsetCommit v10.
pub fn offset_commit(request: &OffsetCommitRequest) -> Result<Bytes> {
    let mut out = Body::default();
    out.text(Some(&request.group_id))?;
    out.0.put_i32(request.generation_id_or_member_epoch);
    out.text(Some(&request.member_id))?;
    out.text(request.group_instance_id.as_deref())?;
    out.count(Some(request.topics.len()))?;
    for topic in &request.topics {
        out.0.put_slice(topic.topic_id.as_bytes());
        out.count(Some(topic.partitions.len()))?;
        for partition in &topic.partitions {
            out.0.put_i32(partition.partition_index);
            out.0.put_i64(partition.committed_offset);
            out.0.put_i32(partition.committed_leader_epoch);
            out.text(partition.committed_metadata.as_deref())?;
            out.no_tags();
        }
        out.no_tags();
    }
    out.no_tags();
    Ok(out.0.freeze())
}

/// OffsetFetch v10.
pub fn offset_fetch(request: &OffsetFetchRequest) -> Result<Bytes> {
    let mut out = Body::default();
    out.count(Some(request.groups.len()))?;
    for group in &request.groups {
        out.text(Some(&group.group_id))?;
        out.text(group.member_id.as_deref())?;
        out.0.put_i32(group.member_epoch);
        out.count(group.topics.as_ref().map(Vec::len))?;
        for topic in group.topics.iter().flatten() {
            out.0.put_slice(topic.topic_id.as_bytes());
            out.count(Some(topic.partition_indexes.len()))?;
            topic.partition_indexes.iter().for_each(|index| out.0.put_i32(*index));
            out.no_tags();
        }
        out.no_tags();
    }
    out.0.put_u8(u8::from(request.require_stable));
    out.no_tags();
    Ok(out.0.freeze())
}

#[derive(Default)]
struct Body(BytesMut);

impl Body {
    fn no_tags(&mut self) {
        self.0.put_u8(0);
    }

    /// One more than the count, or 0 for null, seven bits at a time.
    fn count(&mut self, count: Option<usize>) -> Result<()> {
        let mut rest = u32::try_from(count.map_or(0, |count| count + 1))?;
        while rest >= 0x80 {
            self.0.put_u8(u8::try_from(rest & 0x7f)? | 0x80);
            rest >>= 7;
        }
        self.0.put_u8(u8::try_from(rest)?);
        Ok(())
    }

    fn text(&mut self, text: Option<&str>) -> Result<()> {
        self.count(text.map(str::len))?;
        self.0.put_slice(text.unwrap_or_default().as_bytes());
        Ok(())
    }
}
