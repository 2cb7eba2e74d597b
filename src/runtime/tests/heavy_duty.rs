//! Much at once, on the real store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

use super::kit::*;
use crate::coordinator::record::{OffsetKey, OffsetValue, Record};
use crate::coordinator::request::{LeaveGroupRequest, LeavingMember, Request, Response, Text};
use crate::coordinator::settings::Settings;
use crate::runtime::{Coordinator, CoordinatorParts, shard_of};
use crate::store::embedded::EmbeddedStore;
use crate::store::{ShardId, StateStore};
use crate::telemetry::metrics::Metrics;

/// Nothing here takes so long; what does is stuck.
const STUCK: Duration = Duration::from_secs(20);
const SHARDS: u32 = 50;

async fn started(store: EmbeddedStore, settings: Settings) -> Coordinator {
    let coordinator = Coordinator::start(CoordinatorParts {
        store: Arc::new(store),
        inspector: Arc::new(TestInspector::new()),
        topic_checker: Arc::new(TestTopics::default()),
        topics: watch::channel(Arc::default()).1,
        settings: Arc::new(settings),
        shards: SHARDS,
        seed: 7,
        metrics: Arc::new(Metrics::new()),
    });
    loaded(&coordinator).await;
    coordinator
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_joins_and_leaves_go_on_while_everything_expires_all_the_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = EmbeddedStore::open(&directory.path().join("state.redb"), SHARDS).expect("it opens");
    let settings = Settings {
        offsets_retention_ms: 1,
        offsets_retention_check_interval_ms: 5,
        ..settings()
    };
    let coordinator = started(store, settings).await;
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (coordinator, churning) = (coordinator.clone(), coordinator.clone());
        clients.spawn(async move {
            let group_id = format!("commits-{}", number % 3);
            for offset in 0..100 {
                let call = coordinator.call(&group_id, commit(&group_id, number, offset));
                let response = timeout(STUCK, call).await.expect("it is answered");
                assert!(matches!(response, Response::OffsetCommit(_)), "{response:?}");
            }
        });
        if number < 5 {
            let coordinator = churning;
            clients.spawn(async move {
                let group_id = format!("members-{number}");
                for _ in 0..50 {
                    let member_id = timeout(STUCK, joined(&coordinator, &group_id)).await.expect("it joins");
                    let leave = coordinator.call(&group_id, leave(&group_id, member_id));
                    let left = timeout(STUCK, leave).await.expect("it is answered");
                    assert!(matches!(left, Response::LeaveGroup(_)), "{left:?}");
                }
            });
        }
    }
    while let Some(ended) = clients.join_next().await {
        ended.expect("nobody is stuck");
    }
    coordinator.drain().await;
}

fn leave(group_id: &str, member_id: Text) -> Request {
    Request::LeaveGroup(LeaveGroupRequest {
        group_id: Text::from(group_id),
        members: vec![LeavingMember {
            member_id,
            group_instance_id: None,
            reason: None,
        }],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_thousand_groups_are_served_seconds_after_a_start() {
    const GROUPS: usize = 50_000;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state.redb");
    let mut batches: Vec<Vec<_>> = vec![Vec::new(); SHARDS as usize];
    for number in 0..GROUPS {
        let group_id = format!("group-{number}");
        let ShardId(shard) = shard_of(&group_id, SHARDS);
        let record = Record::OffsetCommit {
            key: OffsetKey {
                group_id: Text::from(group_id),
                topic: Text::from("orders"),
                partition: 0,
            },
            value: Some(OffsetValue {
                offset: i64::try_from(number).expect("small"),
                leader_epoch: -1,
                metadata: Text::from(""),
                // Nothing that expires meanwhile.
                commit_timestamp_ms: i64::MAX / 2,
                expire_timestamp_ms: None,
                topic_id: uuid::Uuid::nil(),
            }),
        };
        batches[shard as usize].push(record.to_raw());
    }
    let store = EmbeddedStore::open(&path, SHARDS).expect("it opens");
    for (shard, batch) in (0..).map(ShardId).zip(batches) {
        let (incarnation, _) = store.load(shard).await.expect("it loads");
        store
            .append_and_wait(shard, incarnation, batch)
            .await
            .expect("it is written");
    }
    drop(store);

    let began = Instant::now();
    let store = EmbeddedStore::open(&path, SHARDS).expect("it opens");
    let coordinator = timeout(STUCK, started(store, settings())).await.expect("it is served");
    let took = began.elapsed();
    for number in (0..GROUPS).step_by(997) {
        let group_id = format!("group-{number}");
        let kept = offsets(coordinator.call(&group_id, fetch(&group_id)).await);
        assert_eq!(kept[&0], i64::try_from(number).expect("small"));
    }
    println!("{GROUPS} groups were served after {took:?}");
    coordinator.drain().await;
}
