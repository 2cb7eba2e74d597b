//! What an assignor may want to know of partitions beside their number: how far the group is behind, and where they are.
//!
//! Everything here is as far as it can be told in time. A computation never fails for want of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_response::MetadataResponsePartition;
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::{
    BrokerId, GroupId, ListOffsetsRequest, MetadataResponse, OffsetFetchRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::cluster::Cluster;
use crate::upstream::UpstreamError;
use crate::upstream::node::Node;
use crate::wire::assignment::prepare::TopicMetadata;
use crate::wire::error_code::ErrorCode;

/// For all questions together.
const LIMIT: Duration = Duration::from_secs(2);
/// OffsetFetch of several groups by name (KIP-709); v10 has no names.
const OFFSET_FETCH_LEAST: i16 = 8;
const LIST_OFFSETS_LEAST: i16 = 1;
/// ListOffsets: the end of the log.
const LATEST: i64 = -1;
const NO_REPLICA: BrokerId = BrokerId(-1);

/// By topic and partition.
type ByPartition<T> = HashMap<(StrBytes, i32), T>;

/// What could be told.
#[derive(Debug, Default)]
pub(super) struct Facts {
    lag: ByPartition<i64>,
    racks: ByPartition<Vec<String>>,
}

impl Facts {
    /// Of each partition how many records the group is behind.
    pub(super) fn lag(&self, topic: &TopicMetadata) -> Vec<Option<i64>> {
        let numbers = 0..topic.num_partitions;
        numbers
            .map(|number| self.lag.get(&(topic.topic_name.clone(), number)).copied())
            .collect()
    }

    /// Of each partition the racks of its replicas.
    pub(super) fn racks(&self, topic: &TopicMetadata) -> Vec<Vec<String>> {
        let racks = |number| self.racks.get(&(topic.topic_name.clone(), number));
        (0..topic.num_partitions)
            .map(|number| racks(number).cloned().unwrap_or_default())
            .collect()
    }

    /// Asks for it; `coordinator` is the connection to the group's.
    pub(super) async fn gather(
        cluster: &Arc<Cluster>,
        coordinator: &Arc<Node>,
        group: &str,
        topics: &[TopicMetadata],
    ) -> Self {
        let mut facts = Self::default();
        let told = timeout(LIMIT, facts.ask(cluster, coordinator, group, topics)).await;
        match told {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(group, "lag or racks are not known to this computation: {error}"),
            Err(_) => tracing::warn!(
                group,
                "lag or racks are not known to this computation: no answer within {LIMIT:?}"
            ),
        }
        facts
    }

    async fn ask(
        &mut self,
        cluster: &Arc<Cluster>,
        coordinator: &Arc<Node>,
        group: &str,
        topics: &[TopicMetadata],
    ) -> Result<(), UpstreamError> {
        let names: Vec<StrBytes> = topics.iter().map(|topic| topic.topic_name.clone()).collect();
        let metadata = cluster.metadata(&names).await?;
        self.racks = racks(&metadata);
        let committed = committed(coordinator, group, topics).await?;
        let mut asked = JoinSet::new();
        for (leader, partitions) in by_leader(&metadata, committed.keys()) {
            let Some(broker) = metadata.brokers.iter().find(|broker| broker.node_id == leader) else {
                continue;
            };
            let (cluster, host, port) = (Arc::clone(cluster), broker.host.clone(), broker.port);
            asked.spawn(async move {
                let node = cluster.node(&host, port).await?;
                ends(&node, &partitions).await
            });
        }
        while let Some(answered) = asked.join_next().await {
            match answered {
                Ok(Ok(ends)) => self.take_ends(&committed, ends),
                Ok(Err(error)) => tracing::warn!(group, "lag is not known to this computation: {error}"),
                // It did not panic, and nobody cancels it but the end of this future.
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn take_ends(&mut self, committed: &ByPartition<i64>, ends: ByPartition<i64>) {
        for (partition, end) in ends {
            if let Some(committed) = committed.get(&partition) {
                self.lag.insert(partition, end.saturating_sub(*committed).max(0));
            }
        }
    }
}

fn each_partition(metadata: &MetadataResponse) -> impl Iterator<Item = (StrBytes, &MetadataResponsePartition)> {
    let topics = metadata
        .topics
        .iter()
        .filter_map(|topic| Some((&topic.name.as_ref()?.0, &topic.partitions)));
    topics.flat_map(|(name, partitions)| partitions.iter().map(|partition| (name.clone(), partition)))
}

fn racks(metadata: &MetadataResponse) -> ByPartition<Vec<String>> {
    let brokers = metadata.brokers.iter();
    let racks: HashMap<BrokerId, &StrBytes> = brokers
        .filter_map(|broker| Some((broker.node_id, broker.rack.as_ref()?)))
        .collect();
    let mut by_partition = ByPartition::new();
    for (topic, partition) in each_partition(metadata) {
        let mut of_replicas: Vec<String> = Vec::new();
        for rack in partition.replica_nodes.iter().filter_map(|replica| racks.get(replica)) {
            if !of_replicas.iter().any(|known| known == rack.as_str()) {
                of_replicas.push(rack.to_string());
            }
        }
        by_partition.insert((topic, partition.partition_index), of_replicas);
    }
    by_partition
}

/// The offsets that the group has committed.
async fn committed(
    coordinator: &Arc<Node>,
    group: &str,
    topics: &[TopicMetadata],
) -> Result<ByPartition<i64>, UpstreamError> {
    let topics = topics.iter().map(|topic| {
        OffsetFetchRequestTopics::default()
            .with_name(TopicName(topic.topic_name.clone()))
            .with_topic_id(topic.topic_id)
            .with_partition_indexes((0..topic.num_partitions).collect())
    });
    let group = OffsetFetchRequestGroup::default()
        .with_group_id(GroupId(StrBytes::from_string(group.to_owned())))
        .with_member_epoch(-1)
        .with_topics(Some(topics.collect()));
    let request = OffsetFetchRequest::default().with_groups(vec![group]);
    let answer = coordinator.call(OFFSET_FETCH_LEAST, &request).await?;
    let mut committed = ByPartition::new();
    for topic in answer.groups.into_iter().flat_map(|group| group.topics) {
        for partition in topic.partitions {
            // -1 is none.
            if partition.error_code == ErrorCode::NONE.0 && partition.committed_offset >= 0 {
                committed.insert(
                    (topic.name.0.clone(), partition.partition_index),
                    partition.committed_offset,
                );
            }
        }
    }
    Ok(committed)
}

/// Which of these partitions each broker leads.
fn by_leader<'a>(
    metadata: &MetadataResponse,
    partitions: impl Iterator<Item = &'a (StrBytes, i32)>,
) -> BTreeMap<BrokerId, BTreeMap<StrBytes, Vec<i32>>> {
    let leaders: ByPartition<BrokerId> = each_partition(metadata)
        .map(|(topic, partition)| ((topic, partition.partition_index), partition.leader_id))
        .collect();
    let mut by_leader: BTreeMap<BrokerId, BTreeMap<StrBytes, Vec<i32>>> = BTreeMap::new();
    for partition in partitions {
        if let Some(leader) = leaders.get(partition).filter(|leader| **leader != NO_REPLICA) {
            let topics = by_leader.entry(*leader).or_default();
            topics.entry(partition.0.clone()).or_default().push(partition.1);
        }
    }
    by_leader
}

/// Where the logs of partitions end.
async fn ends(node: &Arc<Node>, partitions: &BTreeMap<StrBytes, Vec<i32>>) -> Result<ByPartition<i64>, UpstreamError> {
    let topics = partitions.iter().map(|(topic, numbers)| {
        let partition = |number: &i32| {
            ListOffsetsPartition::default()
                .with_partition_index(*number)
                .with_timestamp(LATEST)
        };
        ListOffsetsTopic::default()
            .with_name(TopicName(topic.clone()))
            .with_partitions(numbers.iter().map(partition).collect())
    });
    let request = ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(topics.collect());
    let answer = node.call(LIST_OFFSETS_LEAST, &request).await?;
    let mut ends = ByPartition::new();
    for topic in answer.topics {
        for partition in topic.partitions {
            if partition.error_code == ErrorCode::NONE.0 {
                ends.insert((topic.name.0.clone(), partition.partition_index), partition.offset);
            }
        }
    }
    Ok(ends)
}
