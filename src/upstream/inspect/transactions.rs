//! Offsets that only an open transaction has.
//!
//! "All topics" of OffsetFetch leaves them out without a word, however stable the answer is to be, so that a group would be
//! taken over without them. Asked for by name they are told to be unstable. So every partition there is gets asked for by
//! its name first; in a cluster that never saw a transaction that is spared.

use std::sync::Arc;

use kafka_protocol::messages::TopicName;
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopics;
use kafka_protocol::protocol::StrBytes;

use super::answers::{Failure, check_stable, failure_of};
use super::{Fetch, fetch};
use crate::coordinator::request::Text;
use crate::upstream::cluster::{ClusterWatch, Topic};
use crate::upstream::node::Node;

/// Where Kafka keeps its transactions; made when the first transactional producer asks for its coordinator.
const TRANSACTIONS_TOPIC: &str = "__transaction_state";
/// Partitions in one request: some hundred KiB, and as much in its answer.
const PARTITIONS_AT_ONCE: i32 = 10_000;

/// Succeeds when no transaction that has begun before can still give the group an offset.
///
/// # Errors
/// `Retry` while one is open.
pub(super) async fn prove_none_open(cluster: &ClusterWatch, node: &Arc<Node>, group_id: &Text) -> Result<(), Failure> {
    let kept = cluster.find_topic(TRANSACTIONS_TOPIC).await.map_err(failure_of)?;
    if kept.is_none() {
        return Ok(());
    }
    let picture = cluster.snapshot();
    let (mut named, mut partitions) = (Vec::new(), 0);
    for topic in picture.topics.by_name.values() {
        if partitions > 0 && topic.partitions > PARTITIONS_AT_ONCE - partitions {
            let some = std::mem::take(&mut named);
            check_stable(&fetch(node, group_id, Fetch::Named(some)).await?)?;
            partitions = 0;
        }
        named.push(every_partition(topic));
        partitions = topic.partitions.saturating_add(partitions);
    }
    check_stable(&fetch(node, group_id, Fetch::Named(named)).await?)
}

fn every_partition(topic: &Topic) -> OffsetFetchRequestTopics {
    OffsetFetchRequestTopics::default()
        .with_name(TopicName(StrBytes::from_string(topic.name.to_string())))
        .with_partition_indexes((0..topic.partitions).collect())
}
