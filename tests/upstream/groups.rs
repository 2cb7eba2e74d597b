//! Groups at the upstream: who is in them, and what they committed.

use std::collections::BTreeMap;
use std::time::Duration;

use convoke::coordinator::input::{ImportedOffset, Presence, UpstreamGroup};
use convoke_support::Result;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use kafka_protocol::messages::add_offsets_to_txn_request::AddOffsetsToTxnRequest;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    ConsumerGroupHeartbeatRequest, EndTxnRequest, FindCoordinatorRequest, GroupId, InitProducerIdRequest,
    JoinGroupRequest, OffsetCommitRequest, ProducerId, ShareGroupHeartbeatRequest, TopicName, TransactionalId,
    TxnOffsetCommitRequest,
};
use kafka_protocol::protocol::StrBytes;

use crate::raw::Raw;
use crate::world::{World, broker_versions};

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn group(id: &str) -> GroupId {
    GroupId(text(id))
}

/// Commits as a tool does, outside any generation. A coordinator that is still loading is asked again.
pub async fn commit(raw: &Raw, id: &str, partition: i32, offset: i64) -> Result<()> {
    let partition = OffsetCommitRequestPartition::default()
        .with_partition_index(partition)
        .with_committed_offset(offset)
        .with_committed_leader_epoch(0)
        .with_committed_metadata(Some(text("from before")));
    let topic = OffsetCommitRequestTopic::default()
        .with_name(TopicName(text("orders")))
        .with_partitions(vec![partition]);
    let request = OffsetCommitRequest::default()
        .with_group_id(group(id))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic]);
    for _ in 0..100 {
        let answer = raw.call(8, &request).await?;
        match answer.topics[0].partitions[0].error_code {
            0 => return Ok(()),
            14 | 15 => tokio::time::sleep(Duration::from_millis(100)).await,
            code => return Err(format!("commit of {id}: error {code}").into()),
        }
    }
    Err("the coordinator never was ready".into())
}

/// Joins with version 3, which needs no member id first, and leaves the group waiting for its leader's assignment.
pub async fn join(raw: &Raw, id: &str) -> Result<()> {
    let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
    let request = JoinGroupRequest::default()
        .with_group_id(group(id))
        .with_session_timeout_ms(60_000)
        .with_rebalance_timeout_ms(60_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol]);
    let answer = raw.call(3, &request).await?;
    if answer.error_code == 0 {
        Ok(())
    } else {
        Err(format!("join: error {}", answer.error_code).into())
    }
}

/// A member of the new protocol; epoch 0 joins and -1 leaves.
async fn heartbeat(raw: &Raw, id: &str, epoch: i32) -> Result<()> {
    let joins = epoch == 0;
    let request = ConsumerGroupHeartbeatRequest::default()
        .with_group_id(group(id))
        .with_member_id(text("AAAAAAAAAAAAAAAAAAAAAQ"))
        .with_member_epoch(epoch)
        .with_rebalance_timeout_ms(if joins { 60_000 } else { -1 })
        .with_subscribed_topic_names(joins.then(|| vec![TopicName(text("orders"))]))
        .with_topic_partitions(joins.then(Vec::new));
    let answer = raw.call(1, &request).await?;
    if answer.error_code == 0 {
        Ok(())
    } else {
        Err(format!("heartbeat: {answer:?}").into())
    }
}

async fn share_heartbeat(raw: &Raw, id: &str, epoch: i32) -> Result<()> {
    let request = ShareGroupHeartbeatRequest::default()
        .with_group_id(group(id))
        .with_member_id(text("AAAAAAAAAAAAAAAAAAAAAg"))
        .with_member_epoch(epoch)
        .with_subscribed_topic_names((epoch == 0).then(|| vec![TopicName(text("orders"))]));
    let answer = raw.call(1, &request).await?;
    if answer.error_code == 0 {
        Ok(())
    } else {
        Err(format!("share heartbeat: {answer:?}").into())
    }
}

fn offsets_of(found: &UpstreamGroup) -> BTreeMap<i32, i64> {
    found
        .offsets
        .iter()
        .map(|offset| (offset.partition, offset.offset))
        .collect()
}

fn live(group_type: &str, state: &str) -> Presence {
    Presence::Live {
        group_type: group_type.into(),
        protocol_type: "consumer".into(),
        state: state.into(),
    }
}

#[test]
fn every_kind_of_group_is_told_apart_and_vacant_ones_bring_their_offsets() -> Result<()> {
    for version in broker_versions() {
        let kafka = Kafka::start_in(Network::Loopback, Options::new(version))?;
        kafka.create_topic("orders", 3)?;
        let world = World::new(&kafka, None);
        world.wait("orders", |cluster| cluster.topics.by_name.contains_key("orders"))?;
        world.run(inspect_all(&world, &kafka, version))?;
    }
    Ok(())
}

async fn inspect_all(world: &World, kafka: &Kafka, version: &str) -> Result<()> {
    let inspect = async |id: &str| world.upstream.inspect(id).await.map_err(|failure| failure.reason);
    // Before there is any group: the upstream makes its offsets topic because it is asked for the coordinator.
    let unknown = inspect("unknown").await?;
    assert_eq!(
        unknown,
        UpstreamGroup {
            presence: Presence::Vacant,
            offsets: Vec::new()
        },
        "{version}"
    );

    let raw = Raw::connect(&kafka.address(1)).await?;
    commit(&raw, "simple", 0, 5).await?;
    commit(&raw, "simple", 2, 7).await?;
    let topic_id = world.cluster().snapshot().topics.by_name["orders"].id;
    let simple = inspect("simple").await?;
    assert_eq!(simple.presence, Presence::Vacant);
    assert_eq!(offsets_of(&simple), BTreeMap::from([(0, 5), (2, 7)]), "{version}");
    let expected = ImportedOffset {
        topic: "orders".into(),
        topic_id,
        partition: 0,
        offset: 5,
        leader_epoch: 0,
        metadata: "from before".into(),
    };
    assert!(simple.offsets.contains(&expected), "{:?}", simple.offsets);

    commit(&raw, "classic", 1, 3).await?;
    join(&raw, "classic").await?;
    let classic = inspect("classic").await?;
    assert_eq!(
        classic,
        UpstreamGroup {
            presence: live("classic", "CompletingRebalance"),
            offsets: Vec::new()
        }
    );

    if version != "3.8.1" {
        commit(&raw, "consumer", 1, 4).await?;
        heartbeat(&raw, "consumer", 0).await?;
        let consumer = inspect("consumer").await?;
        assert!(
            matches!(&consumer.presence, Presence::Live { group_type, .. } if &**group_type == "consumer"),
            "{consumer:?}"
        );
        heartbeat(&raw, "consumer", -1).await?;
        let left = inspect("consumer").await?;
        assert_eq!(
            (left.presence.clone(), offsets_of(&left)),
            (Presence::Vacant, BTreeMap::from([(1, 4)])),
            "{version}"
        );
    }
    if version == "4.4.0" {
        let share = Presence::OtherType {
            group_type: "share".into(),
        };
        for epoch in [0, -1] {
            share_heartbeat(&raw, "share", epoch).await?;
            assert_eq!(
                inspect("share").await?,
                UpstreamGroup {
                    presence: share.clone(),
                    offsets: Vec::new()
                }
            );
        }
    }
    Ok(())
}

/// Whatever a moving coordinator answers, a group with offsets is never seen without them.
#[test]
fn groups_are_found_whole_while_their_coordinators_move() -> Result<()> {
    const GROUPS: i64 = 40;
    let mut kafka = Kafka::start_in(Network::Loopback, Options::new("4.4.0").nodes(3))?;
    kafka.create_topic("orders", 1)?;
    let world = World::new(&kafka, None);
    world.wait("three nodes", |cluster| cluster.versions.len() == 3)?;
    world.run(async {
        world
            .upstream
            .inspect("warm-up")
            .await
            .map_err(|failure| failure.reason)?;
        let raws = [1, 2, 3].map(|id| kafka.address(id));
        for number in 0..GROUPS {
            commit_anywhere(&raws, &format!("g-{number}"), number).await?;
        }
        Ok(())
    })?;
    kafka.kill(2);
    let failed = world.run(async {
        let mut inspections = tokio::task::JoinSet::new();
        for number in 0..GROUPS {
            let upstream = world.upstream.clone();
            inspections.spawn(async move {
                let mut failed = 0;
                loop {
                    match upstream.inspect(&format!("g-{number}")).await {
                        Ok(found) => return (number, found, failed),
                        Err(failure) if failed == 12 => panic!("g-{number}: {}", failure.reason),
                        Err(_) => failed += 1,
                    }
                }
            });
        }
        let mut all_failed = 0;
        while let Some(inspected) = inspections.join_next().await {
            let (number, found, failed) = inspected?;
            assert_eq!(offsets_of(&found), BTreeMap::from([(0, number)]), "g-{number}");
            all_failed += failed;
        }
        Ok(all_failed)
    })?;
    println!("{GROUPS} groups found after a node was killed, {failed} inspections in between were refused");
    Ok(())
}

/// Commits at whichever node coordinates the group.
async fn commit_anywhere(addresses: &[String], id: &str, offset: i64) -> Result<()> {
    let mut last = None;
    for address in addresses {
        match commit(&Raw::connect(address).await?, id, 0, offset).await {
            Ok(()) => return Ok(()),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| "no address".into()))
}

#[test]
fn offsets_of_an_open_transaction_are_waited_for() -> Result<()> {
    let kafka = Kafka::start_in(Network::Loopback, Options::new("4.4.0"))?;
    kafka.create_topic("orders", 1)?;
    let world = World::new(&kafka, None);
    world.wait("orders", |cluster| cluster.topics.by_name.contains_key("orders"))?;
    world.run(async {
        world
            .upstream
            .inspect("warm-up")
            .await
            .map_err(|failure| failure.reason)?;
        let raw = Raw::connect(&kafka.address(1)).await?;
        commit(&raw, "exactly-once", 0, 5).await?;
        let producer = begin(&raw, "exactly-once", 10).await?;
        let failure = world
            .upstream
            .inspect("exactly-once")
            .await
            .expect_err("it did not wait");
        assert_eq!(failure.reason, "a transaction with an offset of orders-0 is open");
        let inspecting = world.upstream.clone();
        let inspection = tokio::spawn(async move { inspecting.inspect("exactly-once").await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        end(&raw, producer).await?;
        let found = inspection.await?.map_err(|failure| failure.reason)?;
        assert_eq!(offsets_of(&found), BTreeMap::from([(0, 10)]));

        // A group that has nothing but the transaction's offset, which "all topics" does not show.
        let producer = begin(&raw, "new", 11).await?;
        let failure = world.upstream.inspect("new").await.expect_err("it did not wait");
        assert_eq!(failure.reason, "a transaction with an offset of orders-0 is open");
        end(&raw, producer).await?;
        let found = world.upstream.inspect("new").await.map_err(|failure| failure.reason)?;
        assert_eq!(offsets_of(&found), BTreeMap::from([(0, 11)]));
        Ok(())
    })
}

/// A producer's id and epoch.
type Producer = (ProducerId, i16);

/// Opens a transaction that commits this offset.
async fn begin(raw: &Raw, id: &str, offset: i64) -> Result<Producer> {
    let transaction = TransactionalId(text("tx"));
    let init = InitProducerIdRequest::default()
        .with_transactional_id(Some(transaction.clone()))
        .with_transaction_timeout_ms(60_000);
    // Who asks for its coordinator makes the broker create the topic that transactions are kept in.
    let find = FindCoordinatorRequest::default()
        .with_key_type(1)
        .with_coordinator_keys(vec![text("tx")]);
    let mut answer = raw.call(4, &init).await?;
    for _ in 0..100 {
        if answer.error_code == 0 {
            break;
        }
        raw.call(4, &find).await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
        answer = raw.call(4, &init).await?;
    }
    let producer = (answer.producer_id, answer.producer_epoch);
    let add = AddOffsetsToTxnRequest::default()
        .with_transactional_id(transaction.clone())
        .with_producer_id(producer.0)
        .with_producer_epoch(producer.1)
        .with_group_id(group(id));
    let added = raw.call(3, &add).await?;
    assert_eq!(added.error_code, 0);
    let partition = TxnOffsetCommitRequestPartition::default().with_committed_offset(offset);
    let topic = TxnOffsetCommitRequestTopic::default()
        .with_name(TopicName(text("orders")))
        .with_partitions(vec![partition]);
    let commit = TxnOffsetCommitRequest::default()
        .with_transactional_id(transaction)
        .with_group_id(group(id))
        .with_producer_id(producer.0)
        .with_producer_epoch(producer.1)
        .with_generation_id(-1)
        .with_topics(vec![topic]);
    let committed = raw.call(3, &commit).await?;
    assert_eq!(committed.topics[0].partitions[0].error_code, 0);
    Ok(producer)
}

async fn end(raw: &Raw, producer: Producer) -> Result<()> {
    let request = EndTxnRequest::default()
        .with_transactional_id(TransactionalId(text("tx")))
        .with_producer_id(producer.0)
        .with_producer_epoch(producer.1)
        .with_committed(true);
    assert_eq!(raw.call(3, &request).await?.error_code, 0);
    Ok(())
}
