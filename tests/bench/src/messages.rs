//! The requests that are measured and those that prepare them, in the newest versions that kafka-protocol writes: what stock
//! clients of Kafka 4.x send, so that Convoke does all that it does for them (Produce 10+ and Fetch 16+ are scrubbed).

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use convoke_support::Result;
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    CreateTopicsRequest, FetchRequest, HeartbeatRequest, MetadataRequest, OffsetCommitRequest, OffsetFetchRequest,
    ProduceRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType};
use uuid::Uuid;

use crate::group::Member;
use crate::wire::{Client, accepted, decode};

pub const CREATE_TOPICS: i16 = 7;
pub const METADATA: i16 = 12;
pub const PRODUCE: i16 = 13;
pub const FETCH: i16 = 18;
pub const HEARTBEAT: i16 = 4;
pub const OFFSET_COMMIT: i16 = 9;
pub const OFFSET_FETCH: i16 = 9;

/// Milliseconds that a broker may take.
const TIMEOUT_MS: i32 = 30_000;

/// How long the partitions of a new topic may be without leaders, and how long to wait before looking again.
const LEADERS_LIMIT: Duration = Duration::from_secs(30);
const LEADERS_PAUSE: Duration = Duration::from_millis(50);

/// What a commit says of each partition, and so what a fetch of it has to say.
const COMMITTED_OFFSET: i64 = 1_234_567;

/// Creates a topic of one replica and returns its id.
///
/// # Errors
/// When it cannot be created.
pub fn create_topic(client: &mut Client, name: &str, partitions: i32, configs: &[(&str, &str)]) -> Result<Uuid> {
    let configs = configs
        .iter()
        .map(|&(key, value)| {
            CreatableTopicConfig::default()
                .with_name(StrBytes::from_string(key.to_owned()))
                .with_value(Some(StrBytes::from_string(value.to_owned())))
        })
        .collect();
    let topic = CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(partitions)
        .with_replication_factor(1)
        .with_configs(configs);
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(TIMEOUT_MS);
    let response = client.call(&request, CREATE_TOPICS)?;
    let created = response.topics.first().ok_or("no topic in the answer")?;
    accepted(created.error_code).map_err(|error| format!("cannot create the topic {name}: {error}"))?;
    wait_for_leaders(client, name, partitions)?;
    Ok(created.topic_id)
}

/// A broker answers the creation of a topic before it leads its partitions.
fn wait_for_leaders(client: &mut Client, name: &str, partitions: i32) -> Result<()> {
    let topic = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
    let request = MetadataRequest::default()
        .with_topics(Some(vec![topic]))
        .with_allow_auto_topic_creation(false);
    let deadline = Instant::now() + LEADERS_LIMIT;
    while Instant::now() < deadline {
        let response = client.call(&request, METADATA)?;
        let led = response.topics.iter().flat_map(|topic| &topic.partitions);
        let led = led.filter(|partition| partition.error_code == 0).count();
        if i32::try_from(led)? == partitions {
            return Ok(());
        }
        std::thread::sleep(LEADERS_PAUSE);
    }
    Err(format!("the topic {name} has no leaders after {LEADERS_LIMIT:?}").into())
}

/// One batch of `records` records whose values have `value_size` bytes that do not compress.
///
/// # Errors
/// When it cannot be encoded.
pub fn batch(records: usize, value_size: usize) -> Result<Bytes> {
    // A fixed linear congruential generator: the same bytes in every run.
    let value: Bytes = (0..value_size)
        .scan(0x2545_f491_u32, |state, _| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some(state.to_be_bytes()[0])
        })
        .collect();
    let records: Vec<Record> = (0..)
        .zip(-1..)
        .take(records)
        .map(|(offset, sequence)| record(offset, sequence, value.clone()))
        .collect();
    let options = RecordEncodeOptions {
        version: 2,
        compression: Compression::None,
    };
    let mut out = BytesMut::new();
    RecordBatchEncoder::encode(&mut out, &records, &options)?;
    Ok(out.freeze())
}

/// A record of no producer. Sequences have to count up with the offsets, or the encoder starts another batch; the first is
/// the batch's, and -1 says that it has none.
fn record(offset: i64, sequence: i32, value: Bytes) -> Record {
    Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset,
        sequence,
        timestamp: 0,
        key: None,
        value: Some(value),
        headers: IndexMap::new(),
    }
}

/// A batch to each of the partitions, with acks=all.
#[must_use]
pub fn produce(topic_id: Uuid, partitions: impl IntoIterator<Item = i32>, batch: &Bytes) -> ProduceRequest {
    let partitions = partitions
        .into_iter()
        .map(|partition| {
            PartitionProduceData::default()
                .with_index(partition)
                .with_records(Some(batch.clone()))
        })
        .collect();
    let topic = TopicProduceData::default()
        .with_topic_id(topic_id)
        .with_partition_data(partitions);
    ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(TIMEOUT_MS)
        .with_topic_data(vec![topic])
}

/// A fetch of exactly `bytes` bytes where so many are there.
#[must_use]
pub fn fetch(topic_id: Uuid, partition: i32, offset: i64, bytes: i32) -> FetchRequest {
    let partition = FetchPartition::default()
        .with_partition(partition)
        .with_fetch_offset(offset)
        .with_partition_max_bytes(bytes);
    let topic = FetchTopic::default()
        .with_topic_id(topic_id)
        .with_partitions(vec![partition]);
    FetchRequest::default()
        .with_max_wait_ms(500)
        .with_min_bytes(1)
        .with_max_bytes(bytes)
        .with_topics(vec![topic])
}

#[must_use]
pub fn heartbeat(member: &Member) -> HeartbeatRequest {
    HeartbeatRequest::default()
        .with_group_id(member.group_id.clone())
        .with_generation_id(member.generation)
        .with_member_id(member.member_id.clone())
}

#[must_use]
pub fn offset_commit(member: &Member, topic: &str, partitions: i32) -> OffsetCommitRequest {
    let partitions = (0..partitions)
        .map(|partition| {
            OffsetCommitRequestPartition::default()
                .with_partition_index(partition)
                .with_committed_offset(COMMITTED_OFFSET)
                .with_committed_leader_epoch(0)
                .with_committed_metadata(Some(StrBytes::default()))
        })
        .collect();
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(partitions);
    OffsetCommitRequest::default()
        .with_group_id(member.group_id.clone())
        .with_generation_id_or_member_epoch(member.generation)
        .with_member_id(member.member_id.clone())
        .with_topics(vec![topic])
}

#[must_use]
pub fn offset_fetch(member: &Member, topic: &str, partitions: i32) -> OffsetFetchRequest {
    let topic = OffsetFetchRequestTopics::default()
        .with_name(topic_name(topic))
        .with_partition_indexes((0..partitions).collect());
    let group = OffsetFetchRequestGroup::default()
        .with_group_id(member.group_id.clone())
        .with_topics(Some(vec![topic]));
    OffsetFetchRequest::default()
        .with_groups(vec![group])
        .with_require_stable(true)
}

/// # Errors
/// Unless the answer to a Produce says that the batch is stored.
pub fn verify_produce(answer: &[u8]) -> Result<()> {
    let response = decode::<ProduceRequest>(answer, PRODUCE)?;
    let partitions = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    all_accepted(partitions.map(|partition| partition.error_code))
}

/// # Errors
/// Unless the answer to a Fetch holds records.
pub fn verify_fetch(answer: &[u8]) -> Result<()> {
    let response = decode::<FetchRequest>(answer, FETCH)?;
    accepted(response.error_code)?;
    let partitions: Vec<_> = response.responses.iter().flat_map(|topic| &topic.partitions).collect();
    all_accepted(partitions.iter().map(|partition| partition.error_code))?;
    if partitions
        .iter()
        .any(|partition| partition.records.as_ref().is_none_or(Bytes::is_empty))
    {
        return Err("a fetch without records".into());
    }
    Ok(())
}

/// # Errors
/// Unless the answer to a Heartbeat is NONE.
pub fn verify_heartbeat(answer: &[u8]) -> Result<()> {
    accepted(decode::<HeartbeatRequest>(answer, HEARTBEAT)?.error_code)
}

/// # Errors
/// Unless every offset was committed.
pub fn verify_offset_commit(answer: &[u8]) -> Result<()> {
    let response = decode::<OffsetCommitRequest>(answer, OFFSET_COMMIT)?;
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    all_accepted(partitions.map(|partition| partition.error_code))
}

/// # Errors
/// Unless every offset is the one that was committed.
pub fn verify_offset_fetch(answer: &[u8]) -> Result<()> {
    let response = decode::<OffsetFetchRequest>(answer, OFFSET_FETCH)?;
    all_accepted(response.groups.iter().map(|group| group.error_code))?;
    let topics = response.groups.iter().flat_map(|group| &group.topics);
    let partitions: Vec<_> = topics.flat_map(|topic| &topic.partitions).collect();
    if let Some(other) = partitions
        .iter()
        .find(|partition| partition.committed_offset != COMMITTED_OFFSET)
    {
        return Err(format!(
            "{COMMITTED_OFFSET} was committed, {} is fetched",
            other.committed_offset
        )
        .into());
    }
    all_accepted(partitions.iter().map(|partition| partition.error_code))
}

fn all_accepted(codes: impl Iterator<Item = i16>) -> Result<()> {
    let mut count = 0;
    for code in codes {
        accepted(code)?;
        count += 1;
    }
    if count == 0 {
        return Err("an answer without partitions".into());
    }
    Ok(())
}

#[must_use]
pub fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}
