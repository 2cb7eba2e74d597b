//! Questions that tell whether a side has heard of what was changed behind it. They are asked in groups of the harness's own, or
//! leave a group of the conversation alike on both sides, so that nothing of them is seen in the conversation.

use convoke::wire::{api, codec};
use convoke_support::Result;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse, OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest,
    OffsetFetchResponse,
};
use tokio::time::{Instant, sleep};

use crate::admin::{AGAIN, LIMIT};
use crate::conversation::Talker;
use crate::requests::{encode, text};
use crate::step::TopicChange;

/// Groups of the harness's own, by numbers that no conversation has.
pub const PROBES: [usize; 2] = [CONSUMERS, OFFSETS];
const CONSUMERS: usize = 1_000;
const OFFSETS: usize = 1_001;
/// The resource type of groups.
const GROUP_RESOURCE: i8 = 32;

/// Waits until a side knows of a change of the topic of this name.
pub async fn until_known(side: &mut Talker<'_>, topic: &str, change: TopicChange) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    while !knows(side, topic, change).await? {
        if Instant::now() > deadline {
            return Err(format!("{topic} is not known to be {change:?}").into());
        }
        sleep(AGAIN).await;
    }
    Ok(())
}

async fn knows(side: &mut Talker<'_>, topic: &str, change: TopicChange) -> Result<bool> {
    let is_for_offsets = match change {
        TopicChange::Created(partitions) | TopicChange::Grown(partitions) => commits(side, topic, partitions).await?,
        // Offsets of a topic go some time after it.
        TopicChange::Deleted => !has_offset(side, topic).await?,
    };
    Ok(is_for_offsets && (!side.has_consumer_groups() || assigned(side, topic).await? == change.partitions()))
}

/// How many partitions the only member of a group gets.
async fn assigned(side: &mut Talker<'_>, topic: &str) -> Result<i32> {
    let joined = come_and_go(side, CONSUMERS, topic).await?;
    let topics = joined.assignment.map(|assignment| assignment.topic_partitions);
    let partitions = topics
        .iter()
        .flatten()
        .map(|topic| topic.partitions.len())
        .sum::<usize>();
    Ok(i32::try_from(partitions)?)
}

/// What a member is told that joins and leaves.
async fn come_and_go(side: &mut Talker<'_>, group: usize, topic: &str) -> Result<ConsumerGroupHeartbeatResponse> {
    let joining = ConsumerGroupHeartbeatRequest::default()
        .with_group_id(text(&side.names.group(group)).into())
        .with_member_id(text("probe"))
        .with_rebalance_timeout_ms(60_000)
        .with_server_assignor(Some(text("range")))
        .with_subscribed_topic_names(Some(vec![text(topic).into()]))
        .with_topic_partitions(Some(Vec::new()));
    let joined = beat(side, &joining).await?;
    let leaving = ConsumerGroupHeartbeatRequest::default()
        .with_group_id(joining.group_id)
        .with_member_id(joining.member_id)
        .with_member_epoch(-1);
    beat(side, &leaving).await?;
    Ok(joined)
}

async fn beat(
    side: &mut Talker<'_>,
    request: &ConsumerGroupHeartbeatRequest,
) -> Result<ConsumerGroupHeartbeatResponse> {
    let answer = side
        .control(api::CONSUMER_GROUP_HEARTBEAT, 1, &encode(request, 1)?)
        .await?;
    Ok(codec::decode_response(1, answer)?)
}

/// Whether offsets of that many partitions are taken.
async fn commits(side: &mut Talker<'_>, topic: &str, count: i32) -> Result<bool> {
    let partitions = (0..count).map(|index| {
        OffsetCommitRequestPartition::default()
            .with_partition_index(index)
            .with_committed_offset(1)
    });
    let named = OffsetCommitRequestTopic::default()
        .with_name(text(topic).into())
        .with_partitions(partitions.collect());
    let request = OffsetCommitRequest::default()
        .with_group_id(text(&side.names.group(OFFSETS)).into())
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![named]);
    let answer = side.control(api::OFFSET_COMMIT, 7, &encode(&request, 7)?).await?;
    let answer: OffsetCommitResponse = codec::decode_response(7, answer)?;
    let mut partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
    Ok(partitions.all(|partition| partition.error_code == 0))
}

async fn has_offset(side: &mut Talker<'_>, topic: &str) -> Result<bool> {
    let named = OffsetFetchRequestTopic::default()
        .with_name(text(topic).into())
        .with_partition_indexes(vec![0]);
    let request = OffsetFetchRequest::default()
        .with_group_id(text(&side.names.group(OFFSETS)).into())
        .with_topics(Some(vec![named]));
    let answer = side.control(api::OFFSET_FETCH, 6, &encode(&request, 6)?).await?;
    let answer: OffsetFetchResponse = codec::decode_response(6, answer)?;
    let mut partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
    Ok(partitions.any(|partition| partition.committed_offset >= 0))
}

/// Gives a group settings of its own: each side has its own way to hear of them.
pub async fn configure(side: &mut Talker<'_>, group: usize, settings: &[(&str, String)]) -> Result<()> {
    let configs = settings.iter().map(|(name, value)| {
        AlterableConfig::default()
            .with_name(text(name))
            .with_value(Some(text(value)))
    });
    let resource = AlterConfigsResource::default()
        .with_resource_type(GROUP_RESOURCE)
        .with_resource_name(text(&side.names.group(group)))
        .with_configs(configs.collect());
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let answer = side
        .control(api::INCREMENTAL_ALTER_CONFIGS, 1, &encode(&request, 1)?)
        .await?;
    let answer: IncrementalAlterConfigsResponse = codec::decode_response(1, answer)?;
    match answer.responses.iter().find(|response| response.error_code != 0) {
        Some(response) => Err(format!("a group is not configured: {response:?}").into()),
        None => Ok(()),
    }
}

/// The heartbeat interval that a member of the group is told, which comes and goes.
pub async fn interval_ms(side: &mut Talker<'_>, group: usize) -> Result<i32> {
    Ok(come_and_go(side, group, "three").await?.heartbeat_interval_ms)
}
