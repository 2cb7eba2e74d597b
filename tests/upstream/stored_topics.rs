//! Offsets of topics that were deleted while Convoke was away: a topic of the same name is another one.

use std::collections::BTreeMap;
use std::future::Future;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use convoke::wire::codec::decode_response;
use convoke_support::Result;
use convoke_support::convoke::Convoke;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use convoke_support::process::Process;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::{
    GroupId, MetadataRequest, OffsetCommitRequest, OffsetFetchRequest, OffsetFetchResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::raw::Raw;
use crate::topics::topics;
use crate::world::PATIENCE;

const GROUP: &str = "g";
const OFFSET_FETCH: i16 = 9;
const TOPICS: [&str; 3] = ["anew", "gone", "stays"];

fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Runtime::new()?.block_on(work)
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

async fn client(convoke: &Convoke) -> Result<Raw> {
    Raw::connect(&convoke.nodes()[&1]).await
}

async fn commit(client: &Raw, topic: &str, offset: i64) -> Result<()> {
    let partition = OffsetCommitRequestPartition::default().with_committed_offset(offset);
    let topic = OffsetCommitRequestTopic::default()
        .with_name(TopicName(text(topic)))
        .with_partitions(vec![partition]);
    let request = OffsetCommitRequest::default()
        .with_group_id(GroupId(text(GROUP)))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic]);
    for _ in 0..100 {
        match client.call(8, &request).await?.topics[0].partitions[0].error_code {
            0 => return Ok(()),
            14 => tokio::time::sleep(Duration::from_millis(100)).await,
            code => return Err(format!("error {code}").into()),
        }
    }
    Err("the group never was ours".into())
}

/// Offsets of partition 0 of each topic by name; of all topics that have one with `None`.
async fn by_name(client: &Raw, names: Option<&[&str]>) -> Result<BTreeMap<String, i64>> {
    let topic = |name: &&str| {
        OffsetFetchRequestTopics::default()
            .with_name(TopicName(text(name)))
            .with_partition_indexes(vec![0])
    };
    let group = OffsetFetchRequestGroup::default()
        .with_group_id(GroupId(text(GROUP)))
        .with_topics(names.map(|names| names.iter().map(topic).collect()));
    let request = OffsetFetchRequest::default().with_groups(vec![group]);
    let answer = client.call(8, &request).await?;
    let topics = answer.groups[0].topics.iter();
    Ok(topics
        .map(|topic| (topic.name.to_string(), topic.partitions[0].committed_offset))
        .collect())
}

/// The offset and error of partition 0 of the topic with this id, which v10 asks for.
async fn by_id(client: &Raw, id: Uuid) -> Result<(i64, i16)> {
    let mut body = BytesMut::new();
    // One group: its id, no member, epoch -1, one topic with one partition; no tagged fields, and not only stable offsets.
    body.put_slice(&[2, 2]);
    body.put_slice(GROUP.as_bytes());
    body.put_u8(0);
    body.put_i32(-1);
    body.put_u8(2);
    body.put_slice(id.as_bytes());
    body.put_u8(2);
    body.put_i32(0);
    body.put_slice(&[0, 0, 0, 0]);
    let answer: Bytes = client.send(OFFSET_FETCH, 10, &body).await?;
    let answer: OffsetFetchResponse = decode_response(10, answer)?;
    let partition = &answer.groups[0].topics[0].partitions[0];
    Ok((partition.committed_offset, partition.error_code))
}

async fn topic_id(client: &Raw, name: &str) -> Result<Uuid> {
    let topic = MetadataRequestTopic::default().with_name(Some(TopicName(text(name))));
    let request = MetadataRequest::default().with_topics(Some(vec![topic]));
    Ok(client.call(12, &request).await?.topics[0].topic_id)
}

fn offsets(expected: &[(&str, i64)]) -> BTreeMap<String, i64> {
    expected
        .iter()
        .map(|(name, offset)| ((*name).to_owned(), *offset))
        .collect()
}

#[test]
fn offsets_of_topics_that_were_deleted_meanwhile_are_gone_after_a_start() -> Result<()> {
    let kafka = Kafka::start_in(Network::Loopback, Options::new("4.4.0"))?;
    for name in TOPICS {
        kafka.create_topic(name, 1)?;
    }
    let mut convoke = Convoke::start(env!("CARGO_BIN_EXE_convoke"), &kafka, &[])?;
    let (old, stays) = run(async {
        let client = client(&convoke).await?;
        for name in TOPICS {
            commit(&client, name, 42).await?;
        }
        let stays = topic_id(&client, "stays").await?;
        Ok((topic_id(&client, "anew").await?, stays))
    })?;

    convoke.stop()?;
    topics(&kafka, &["--delete", "--topic", "anew"])?;
    topics(&kafka, &["--delete", "--topic", "gone"])?;
    kafka.create_topic("anew", 1)?;
    convoke.restart(&kafka)?;

    run(async {
        let client = client(&convoke).await?;
        let anew = topic_id(&client, "anew").await?;
        assert_ne!(anew, old);
        // At once: nothing was confirmed yet.
        let found = by_name(&client, Some(&["anew", "stays"])).await?;
        assert_eq!(found, offsets(&[("anew", -1), ("stays", 42)]));
        assert_eq!(by_id(&client, anew).await?, (-1, 0));
        assert_eq!(by_id(&client, stays).await?, (42, 0));
        let until = Instant::now() + PATIENCE;
        // Nothing tells it; the page is read until it says so.
        while convoke.metric("convoke_offsets_deleted_total", &[])? < 2.0 {
            assert!(Instant::now() < until, "the deletions were never confirmed");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(by_name(&client, None).await?, offsets(&[("stays", 42)]));
        let found = by_name(&client, Some(&TOPICS)).await?;
        assert_eq!(found, offsets(&[("anew", -1), ("gone", -1), ("stays", 42)]));
        commit(&client, "anew", 7).await?;
        assert_eq!(by_id(&client, anew).await?, (7, 0));
        Ok(())
    })?;
    convoke.stop()
}

#[test]
fn a_store_is_not_used_in_front_of_another_cluster() -> Result<()> {
    let kafka = Kafka::start_in(Network::Loopback, Options::new("4.4.0"))?;
    kafka.create_topic("stays", 1)?;
    let mut convoke = Convoke::start(env!("CARGO_BIN_EXE_convoke"), &kafka, &[])?;
    run(async { commit(&client(&convoke).await?, "stays", 42).await })?;
    convoke.stop()?;

    let other = Kafka::start_in(Network::Loopback, Options::new("4.4.0"))?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_convoke"));
    command
        .args(["run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data"])
        .arg(convoke.data())
        .args(["--upstream", &other.bootstrap()]);
    let mut wrong = Process::spawn("convoke", command)?;
    let status = wrong.wait(PATIENCE)?;
    let said = wrong.report();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("holds the groups of cluster"), "{said}");

    convoke.restart(&kafka)?;
    let found = run(async { by_name(&client(&convoke).await?, Some(&["stays"])).await })?;
    assert_eq!(found, offsets(&[("stays", 42)]));
    convoke.stop()
}
