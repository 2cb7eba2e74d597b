//! Client-side assignors (the half of KIP-848 that no broker has): two messages of our own, and tagged fields in a heartbeat.
//!
//! Apache Kafka gave the messages no keys and took the fields out of the heartbeat again, so keys, tags and codes are private
//! numbers here, far from Kafka's own. Who does not know the tagged fields skips them. The length guard has passed what is
//! decoded here.

pub mod heartbeat;
pub mod install;
pub mod prepare;

use bytes::BytesMut;
use uuid::Uuid;

use super::body::{Body, Writer};
use super::codec::WireError;
use super::reader::ReadError;
use super::schema::Schema;

/// Partitions of one topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicPartitions {
    pub topic_id: Uuid,
    pub partitions: Vec<i32>,
}

/// Every version here is flexible.
const WRITER: Writer = Writer { flexible: true };

fn topic_partitions(body: &mut Body<'_>) -> Result<Vec<TopicPartitions>, ReadError> {
    body.array(true, |body| {
        let topic = TopicPartitions {
            topic_id: body.reader.uuid()?,
            partitions: body.int32s(true)?,
        };
        body.skip_tagged_fields()?;
        Ok(topic)
    })
}

fn put_topic_partitions(topics: &[TopicPartitions], out: &mut BytesMut) -> Result<(), WireError> {
    WRITER.array_len(topics.len(), out)?;
    for topic in topics {
        out.extend_from_slice(topic.topic_id.as_bytes());
        WRITER.int32s(&topic.partitions, out)?;
        WRITER.no_tagged_fields(out);
    }
    Ok(())
}

fn expect_version(schema: &Schema, version: i16) -> Result<(), WireError> {
    if schema.has_version(version) {
        return Ok(());
    }
    Err(WireError::UnsupportedVersion {
        api: schema.name,
        version,
    })
}

#[cfg(test)]
mod tests;
