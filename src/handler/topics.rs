//! The topics that offset requests speak of: by name up to v9, by id from v10 on.

use kafka_protocol::messages::TopicName;
use tracing::debug;
use uuid::Uuid;

use super::call::Call;
use super::convert::text;
use crate::coordinator::request::{OffsetTopic, Text};
use crate::upstream::UpstreamError;
use crate::upstream::cluster::{ClusterWatch, Topic};
use crate::wire::error_code::ErrorCode;

/// The last version of OffsetCommit and OffsetFetch that names topics.
pub(super) const NAMES_UP_TO: i16 = 9;

/// What is answered for a topic that the upstream could not be asked about: clients retry this one without looking for
/// another coordinator.
const UNANSWERED: ErrorCode = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;

/// A topic as the request names it.
pub(super) fn named(name: &TopicName, topic_id: Uuid) -> OffsetTopic {
    OffsetTopic {
        name: text(name),
        topic_id,
    }
}

/// The lookups of one request. After one that failed, what the picture of the cluster lacks is not asked for any more, so
/// that a request about many topics does not wait for an upstream that is out of reach once for each.
pub(super) struct Lookups<'a> {
    call: &'a Call<'a>,
    failed: bool,
}

impl<'a> Lookups<'a> {
    pub(super) const fn new(call: &'a Call<'a>) -> Self {
        Self { call, failed: false }
    }

    /// The topic that a request of the call's version means.
    ///
    /// # Errors
    /// What each of its partitions is answered: that its name or id is unknown, or that the upstream cannot be asked now.
    pub(super) async fn find(&mut self, topic: &OffsetTopic) -> Result<Topic, ErrorCode> {
        if self.call.version > NAMES_UP_TO {
            self.by_id(topic.topic_id).await
        } else {
            self.by_name(&topic.name).await
        }
    }

    /// The name by which the upstream knows the topic. By name, every topic may be asked for, whether it exists or not.
    ///
    /// # Errors
    /// As [`Self::find`], for ids.
    pub(super) async fn name(&mut self, topic: &OffsetTopic) -> Result<Text, ErrorCode> {
        if self.call.version > NAMES_UP_TO {
            Ok(self.by_id(topic.topic_id).await?.name)
        } else {
            Ok(topic.name.clone())
        }
    }

    /// The topic with at least this partition, if it has it by now: partitions may have been added since the last look.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(super) async fn find_partition(&mut self, topic: &OffsetTopic, partition: i32) -> Result<Topic, ErrorCode> {
        let known = self.find(topic).await?;
        if partition < known.partitions || self.failed {
            return Ok(known);
        }
        let grown = self.cluster().find_partition(&known.name, partition).await;
        // If that failed, the partitions that are known can be answered; the client asks again for the others.
        Ok(self
            .outcome(grown, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
            .unwrap_or(known))
    }

    /// The topic of this name.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(super) async fn by_name(&mut self, name: &str) -> Result<Topic, ErrorCode> {
        if self.failed {
            let known = self.cluster().snapshot().topics.by_name.get(name).cloned();
            return known.ok_or(UNANSWERED);
        }
        let answer = self.cluster().find_topic(name).await;
        self.outcome(answer, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    }

    async fn by_id(&mut self, id: Uuid) -> Result<Topic, ErrorCode> {
        if self.failed {
            let known = self.cluster().snapshot().topics.by_id(&id).cloned();
            return known.ok_or(UNANSWERED);
        }
        let answer = self.cluster().find_topic_by_id(id).await;
        self.outcome(answer, ErrorCode::UNKNOWN_TOPIC_ID)
    }

    const fn cluster(&self) -> &'a ClusterWatch {
        &self.call.services.cluster
    }

    fn outcome(
        &mut self,
        answer: Result<Option<Topic>, UpstreamError>,
        unknown: ErrorCode,
    ) -> Result<Topic, ErrorCode> {
        match answer {
            Ok(found) => found.ok_or(unknown),
            Err(error) => {
                debug!("the upstream could not be asked about a topic; the client is told to retry: {error}");
                self.failed = true;
                Err(UNANSWERED)
            }
        }
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
