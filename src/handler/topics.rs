//! The topics that offset requests speak of: by name up to v9, by id from v10 on.

use kafka_protocol::messages::TopicName;
use tracing::debug;
use uuid::Uuid;

use super::call::Call;
use super::convert::text;
use crate::coordinator::request::OffsetTopic;
use crate::upstream::UpstreamError;
use crate::upstream::cluster::Topic;
use crate::wire::error_code::ErrorCode;

/// The last version of OffsetCommit and OffsetFetch that names topics.
pub(super) const NAMES_UP_TO: i16 = 9;

/// A topic as the request names it.
pub(super) fn named(name: &TopicName, topic_id: Uuid) -> OffsetTopic {
    OffsetTopic {
        name: text(name),
        topic_id,
    }
}

/// The topic that a request of the call's version means.
///
/// # Errors
/// What each of its partitions is answered: that its name or id is unknown, or that the upstream cannot be asked now.
pub(super) async fn find(call: &Call<'_>, topic: &OffsetTopic) -> Result<Topic, ErrorCode> {
    let cluster = &call.services.cluster;
    if call.version > NAMES_UP_TO {
        found(
            cluster.find_topic_by_id(topic.topic_id).await,
            ErrorCode::UNKNOWN_TOPIC_ID,
        )
    } else {
        found(
            cluster.find_topic(&topic.name).await,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        )
    }
}

/// The topic that a request of the call's version means, with at least this partition if it has it by now: partitions may
/// have been added since the last look.
///
/// # Errors
/// As [`find`].
pub(super) async fn find_partition(call: &Call<'_>, topic: &OffsetTopic, partition: i32) -> Result<Topic, ErrorCode> {
    let known = find(call, topic).await?;
    if partition < known.partitions {
        return Ok(known);
    }
    match call.services.cluster.find_partition(&known.name, partition).await {
        Ok(grown) => Ok(grown.unwrap_or(known)),
        // The partitions that are known can be answered; the client asks again for the others.
        Err(_) => Ok(known),
    }
}

/// What a partition is answered that its topic does not have.
pub(super) fn refusal(found: &Result<Topic, ErrorCode>, partition: i32) -> Option<ErrorCode> {
    match found {
        Err(error) => Some(*error),
        Ok(topic) if (0..topic.partitions).contains(&partition) => None,
        Ok(_) => Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
    }
}

fn found(answer: Result<Option<Topic>, UpstreamError>, unknown: ErrorCode) -> Result<Topic, ErrorCode> {
    match answer {
        Ok(Some(topic)) => Ok(topic),
        Ok(None) => Err(unknown),
        Err(error) => {
            debug!("the upstream could not be asked about a topic; the client is told to retry: {error}");
            // Clients retry this one without looking for another coordinator.
            Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)
        }
    }
}
