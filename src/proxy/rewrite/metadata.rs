//! Metadata (API 3), versions 0 to 13: `Brokers[].{Host, Port}`; and the topics in it, which are only read.

use bytes::Bytes;

use super::splice::Splice;
use super::{Addresses, RewriteError};
use crate::wire::error_code::ErrorCode;
use crate::wire::reader::{ReadError, Reader};

const FLEXIBLE_SINCE: i16 = 9;

/// The brokers come first, and nothing behind them names a host: the topics, most of the answer, are copied unread.
pub(super) fn rewrite(version: i16, body: Bytes, addresses: &dyn Addresses) -> Result<Bytes, RewriteError> {
    let flexible = version >= FLEXIBLE_SINCE;
    let mut reader = Reader::new(&body);
    let mut splice = Splice::new(&body, addresses);
    if version >= 3 {
        reader.skip(4)?; // ThrottleTimeMs
    }
    for _ in 0..reader.array_len(flexible)?.unwrap_or(0) {
        splice.address(&mut reader, flexible)?;
        if version >= 1 {
            reader.nullable_string(flexible)?; // Rack
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
    }
    splice.finish(&body)
}

/// The topics that the answer says exist, each with the number of its partitions.
pub(super) fn topics(version: i16, body: &[u8]) -> Result<Vec<(&str, usize)>, ReadError> {
    let flexible = version >= FLEXIBLE_SINCE;
    let mut reader = Reader::new(body);
    skip_cluster(version, &mut reader)?;
    let count = reader.array_len(flexible)?.unwrap_or(0);
    let mut topics = Vec::new();
    for _ in 0..count {
        let error = ErrorCode(reader.i16()?);
        let name = reader.nullable_string(flexible)?;
        if version >= 10 {
            reader.skip(16)?; // TopicId
        }
        if version >= 1 {
            reader.skip(1)?; // IsInternal
        }
        let partitions = reader.array_len(flexible)?.unwrap_or(0);
        for _ in 0..partitions {
            skip_partition(version, &mut reader)?;
        }
        if version >= 8 {
            reader.skip(4)?; // TopicAuthorizedOperations
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        // Without a leader it exists as well.
        if matches!(error, ErrorCode::NONE | ErrorCode::LEADER_NOT_AVAILABLE)
            && let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok())
        {
            topics.push((name, partitions));
        }
    }
    Ok(topics)
}

/// What comes before the topics.
fn skip_cluster(version: i16, reader: &mut Reader<'_>) -> Result<(), ReadError> {
    let flexible = version >= FLEXIBLE_SINCE;
    if version >= 3 {
        reader.skip(4)?; // ThrottleTimeMs
    }
    for _ in 0..reader.array_len(flexible)?.unwrap_or(0) {
        reader.skip(4)?; // NodeId
        reader.string(flexible)?; // Host
        reader.skip(4)?; // Port
        if version >= 1 {
            reader.nullable_string(flexible)?; // Rack
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
    }
    if version >= 2 {
        reader.nullable_string(flexible)?; // ClusterId
    }
    if version >= 1 {
        reader.skip(4)?; // ControllerId
    }
    Ok(())
}

fn skip_partition(version: i16, reader: &mut Reader<'_>) -> Result<(), ReadError> {
    let flexible = version >= FLEXIBLE_SINCE;
    // ErrorCode, PartitionIndex, LeaderId, and LeaderEpoch.
    reader.skip(if version >= 7 { 14 } else { 10 })?;
    // ReplicaNodes, IsrNodes, and OfflineReplicas.
    for _ in 0..if version >= 5 { 3 } else { 2 } {
        let nodes = reader.array_len(flexible)?.unwrap_or(0);
        reader.skip(nodes.saturating_mul(4))?;
    }
    if flexible {
        reader.skip_tagged_fields()?;
    }
    Ok(())
}
