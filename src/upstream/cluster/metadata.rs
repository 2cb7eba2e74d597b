//! Metadata as we ask it (never creating a topic) and as we read it.

use std::sync::Arc;

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::{MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::{Cluster, Racks, Topic, Topics};
use crate::config::HostPort;
use crate::coordinator::request::Text;
use crate::upstream::UpstreamError;
use crate::upstream::node::Node;
use crate::wire::error_code::ErrorCode;

/// Where Kafka keeps its own groups; the leader of a partition coordinates the groups that hash to it.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// The first version in which no topics means none rather than all, and in which creation can be forbidden.
const LEAST: i16 = 4;
/// The first version that takes topic ids (KIP-516).
const LEAST_BY_ID: i16 = 12;

/// What a broker says of one topic that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicAnswer {
    Found(Topic),
    /// There is no such topic, as far as this broker knows.
    Unknown,
    /// It may or may not exist: we may not see it, or the broker could not say.
    Unclear(ErrorCode),
}

/// Everything: nodes, cluster id, all topics.
pub async fn ask_all(node: &Arc<Node>) -> Result<MetadataResponse, UpstreamError> {
    ask(node, LEAST, None).await
}

/// The topics of these names, in this order as far as the broker answers.
pub async fn ask_names(node: &Arc<Node>, names: &[Text]) -> Result<MetadataResponse, UpstreamError> {
    let topic = |name: &Text| {
        let name = TopicName(StrBytes::from_string(name.to_string()));
        MetadataRequestTopic::default().with_name(Some(name))
    };
    ask(node, LEAST, Some(names.iter().map(topic).collect())).await
}

/// The topics of these ids.
pub async fn ask_ids(node: &Arc<Node>, ids: &[Uuid]) -> Result<MetadataResponse, UpstreamError> {
    let topic = |id: &Uuid| MetadataRequestTopic::default().with_topic_id(*id).with_name(None);
    ask(node, LEAST_BY_ID, Some(ids.iter().map(topic).collect())).await
}

async fn ask(
    node: &Arc<Node>,
    least: i16,
    topics: Option<Vec<MetadataRequestTopic>>,
) -> Result<MetadataResponse, UpstreamError> {
    let request = MetadataRequest::default()
        .with_topics(topics)
        .with_allow_auto_topic_creation(false);
    let answer = node.call(least, &request).await?;
    let error = ErrorCode(answer.error_code);
    if error.is_none() {
        return Ok(answer);
    }
    Err(UpstreamError::Refused {
        address: node.address().to_owned(),
        api: "Metadata",
        error,
        hint: String::new(),
    })
}

/// What an answer says of a topic, whose replicas are in these racks.
#[must_use]
pub fn topic_answer(topic: &MetadataResponseTopic, racks: &Racks) -> TopicAnswer {
    match ErrorCode(topic.error_code) {
        // LEADER_NOT_AVAILABLE: it exists, its partitions just have no leader as yet.
        ErrorCode::NONE | ErrorCode::LEADER_NOT_AVAILABLE => match &topic.name {
            Some(name) => TopicAnswer::Found(Topic {
                name: Text::from(name.as_str()),
                id: topic.topic_id,
                partitions: i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX),
                racks: racks.of(topic),
            }),
            None => TopicAnswer::Unclear(ErrorCode::UNKNOWN_SERVER_ERROR),
        },
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::UNKNOWN_TOPIC_ID | ErrorCode::INVALID_TOPIC_EXCEPTION => {
            TopicAnswer::Unknown
        }
        error => TopicAnswer::Unclear(error),
    }
}

/// The picture that an answer to `ask_all` gives. A topic that the broker stumbles over keeps what was known of it,
/// and so do the nodes' versions and authorizers, which come from elsewhere.
#[must_use]
pub fn picture(answer: &MetadataResponse, previous: &Cluster) -> Cluster {
    let mut cluster = Cluster {
        cluster_id: answer.cluster_id.as_ref().map(|id| Text::from(id.as_str())),
        nodes: answer.brokers.iter().filter_map(node_address).collect(),
        versions: previous.versions.clone(),
        racks: previous.racks.learn(&answer.brokers),
        ..Cluster::default()
    };
    let mut topics = Topics::default();
    for answer in &answer.topics {
        match topic_answer(answer, &cluster.racks) {
            TopicAnswer::Found(topic) => drop(topics.insert(topic)),
            TopicAnswer::Unknown => {}
            TopicAnswer::Unclear(_) => {
                let known = answer
                    .name
                    .as_ref()
                    .and_then(|name| previous.topics.by_name.get(name.as_str()));
                if let Some(topic) = known {
                    topics.insert(topic.clone());
                }
            }
        }
        if answer.name.as_ref().is_some_and(|name| name.as_str() == OFFSETS_TOPIC) {
            cluster.coordinators = leaders(answer);
        }
    }
    // One picture of the same topics, so that to compare them again costs nothing.
    cluster.topics = match topics == *previous.topics {
        true => Arc::clone(&previous.topics),
        false => Arc::new(topics),
    };
    if cluster.coordinators.is_empty() && cluster.topics.by_name.contains_key(OFFSETS_TOPIC) {
        cluster.coordinators.clone_from(&previous.coordinators);
    }
    cluster.versions.retain(|id, _| cluster.nodes.contains_key(id));
    // At another address there may be another broker.
    let stayed = |id: &i32| cluster.nodes.contains_key(id) && cluster.nodes.get(id) == previous.nodes.get(id);
    let known = previous.authorizers.iter().filter(|(id, _)| stayed(id));
    cluster.authorizers = known.map(|(id, checks)| (*id, *checks)).collect();
    cluster
}

fn node_address(
    broker: &kafka_protocol::messages::metadata_response::MetadataResponseBroker,
) -> Option<(i32, HostPort)> {
    let port = u16::try_from(broker.port).ok().filter(|port| *port > 0)?;
    let host = broker.host.to_string();
    (!host.is_empty()).then_some((broker.node_id.0, HostPort { host, port }))
}

/// The leader of each partition, by its index; -1 where there is none.
fn leaders(topic: &MetadataResponseTopic) -> Vec<i32> {
    let mut leaders = vec![-1; topic.partitions.len()];
    for partition in &topic.partitions {
        let index = usize::try_from(partition.partition_index).ok();
        if let Some(leader) = index.and_then(|index| leaders.get_mut(index)) {
            *leader = partition.leader_id.0;
        }
    }
    leaders
}

#[cfg(test)]
mod tests;
