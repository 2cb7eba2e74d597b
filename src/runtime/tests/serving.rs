use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use uuid::Uuid;

use super::kit::*;
use crate::coordinator::input::DeletedTopic;
use crate::coordinator::record::Record;
use crate::coordinator::request::{Request, Response, Text};
use crate::coordinator::settings::Settings;
use crate::runtime::{Coordinator, CoordinatorParts, shard_of};
use crate::store::ShardId;
use crate::store::embedded::EmbeddedStore;
use crate::telemetry::metrics::Metrics;
use crate::wire::error_code::ErrorCode;

#[tokio::test(start_paused = true)]
async fn a_commit_is_answered_only_when_it_is_durable() {
    let store = TestStore::new();
    let coordinator = start(&store, 1).await;
    store.shut();
    let mut commit = Box::pin(coordinator.call("g", commit("g", 0, 42)));
    assert_eq!(settled(&mut commit).await, None);
    store.open();
    assert_eq!(commit.await, committed(ErrorCode::NONE, 0));
}

#[tokio::test(start_paused = true)]
async fn a_read_waits_for_the_writes_before_it() {
    let store = TestStore::new();
    let coordinator = start(&store, 1).await;
    store.shut();
    let mut commit = Box::pin(coordinator.call("g", commit("g", 0, 42)));
    assert_eq!(settled(&mut commit).await, None);
    let mut fetch = Box::pin(coordinator.call("g", fetch("g")));
    assert_eq!(settled(&mut fetch).await, None);
    store.open();
    assert_eq!(offsets(fetch.await), BTreeMap::from([(0, 42)]));
}

#[tokio::test(start_paused = true)]
async fn what_waits_together_is_written_together_and_in_order() {
    let store = TestStore::new();
    let coordinator = start(&store, 1).await;
    coordinator.call("g", commit("g", 0, 0)).await;
    store.shut();
    let mut waiting = tokio::task::JoinSet::new();
    for offset in 1..=500 {
        let coordinator = coordinator.clone();
        waiting.spawn(async move { coordinator.call("g", commit("g", 0, offset)).await });
    }
    let mut next = Box::pin(waiting.join_next());
    assert!(settled(&mut next).await.is_none());
    drop(next);
    let batches = store.batches.lock().expect("no panic").len();
    assert!(batches < 100, "{batches} batches for 500 commits");
    store.open();
    while let Some(response) = waiting.join_next().await {
        assert_eq!(response.expect("no panic"), committed(ErrorCode::NONE, 0));
    }
    let records = store.records();
    let written = records.iter().filter_map(|record| match record {
        Record::OffsetCommit { value: Some(value), .. } => Some(value.offset),
        _ => None,
    });
    let written: Vec<_> = written.collect();
    assert_eq!(written, (0..=500).collect::<Vec<_>>());
    assert_eq!(
        offsets(coordinator.call("g", fetch("g")).await),
        BTreeMap::from([(0, 500)])
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_keep_up_holds_requests_back_and_loses_none() {
    let store = TestStore::new();
    let coordinator = start(&store, 1).await;
    coordinator.call("g", commit("g", 0, 0)).await;
    store.shut();
    let mut waiting = tokio::task::JoinSet::new();
    for partition in 0..200 {
        let sender = coordinator.clone();
        waiting.spawn(async move { sender.call("g", commit("g", partition, 1)).await });
        // One at a time, so that each would be a batch of its own.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let under_way = store.batches.lock().expect("no panic").len();
    assert!(under_way <= 33, "{under_way} batches under way");
    store.open();
    while let Some(response) = waiting.join_next().await {
        assert!(matches!(response.expect("no panic"), Response::OffsetCommit(_)));
    }
    assert_eq!(offsets(coordinator.call("g", fetch("g")).await).len(), 200);
}

#[tokio::test(start_paused = true)]
async fn groups_live_in_the_shard_that_their_id_hashes_to() {
    let store = TestStore::new();
    let coordinator = start(&store, 50).await;
    let groups: Vec<String> = (0..300).map(|number| format!("group-{number}")).collect();
    let requests = groups
        .iter()
        .map(|group_id| (Text::from(group_id.as_str()), commit(group_id, 1, 5)));
    for response in coordinator.call_many(requests.collect()).await {
        assert_eq!(response, committed(ErrorCode::NONE, 1));
    }
    let views = coordinator.call_all(Request::View).await;
    let shards: Vec<ShardId> = views.iter().map(|(shard, _)| *shard).collect();
    assert_eq!(shards, (0..50).map(ShardId).collect::<Vec<_>>());
    let mut seen = BTreeSet::new();
    for (shard, response) in views {
        let Response::View(view) = response else {
            panic!("{response:?}")
        };
        for group in view.groups {
            assert_eq!(shard_of(&group.group_id, 50), shard);
            assert!(seen.insert(group.group_id));
        }
    }
    assert_eq!(seen.len(), groups.len());
}

#[tokio::test(start_paused = true)]
async fn a_restart_finds_what_was_acknowledged() {
    let store = TestStore::new();
    let first = start(&store, 3).await;
    first.call("g", commit("g", 0, 42)).await;
    first.call("h", commit("h", 2, 7)).await;
    first.drain().await;
    let second = start(&store, 3).await;
    assert_eq!(offsets(second.call("g", fetch("g")).await), BTreeMap::from([(0, 42)]));
    assert_eq!(offsets(second.call("h", fetch("h")).await), BTreeMap::from([(2, 7)]));
}

#[tokio::test(start_paused = true)]
async fn a_silent_member_loses_its_session_without_any_request() {
    let store = TestStore::new();
    let coordinator = start(&store, 1).await;
    let member_id = joined(&coordinator, "g").await;
    let members = async |coordinator: &Coordinator| {
        let Response::View(view) = coordinator.call("g", Request::View).await else {
            panic!("no view");
        };
        view.groups.iter().map(|group| group.members.len()).sum::<usize>()
    };
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(members(&coordinator).await, 1, "{member_id} is within its session");
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(members(&coordinator).await, 0);
}

#[tokio::test(start_paused = true)]
async fn settings_reach_every_shard() {
    let coordinator = start(&TestStore::new(), 4).await;
    let groups = ["a", "b", "c", "d"];
    let session_too_short = async |coordinator: &Coordinator, group_id: &str| {
        let Response::JoinGroup(response) = coordinator.call(group_id, join(group_id, "", 7_000)).await else {
            panic!("no join response");
        };
        response.error == ErrorCode::INVALID_SESSION_TIMEOUT
    };
    for group_id in groups {
        assert!(!session_too_short(&coordinator, group_id).await);
    }
    coordinator.set_settings(Arc::new(Settings {
        group_min_session_timeout_ms: 8_000,
        ..settings()
    }));
    tokio::time::sleep(Duration::from_millis(1)).await;
    for group_id in groups {
        assert!(session_too_short(&coordinator, group_id).await);
    }
}

#[tokio::test(start_paused = true)]
async fn offsets_of_deleted_topics_go_also_when_the_shard_was_loading() {
    let store = TestStore::new();
    let coordinator = start(&store, 2).await;
    let orders = DeletedTopic {
        name: Text::from("orders"),
        id: Uuid::from_u128(1),
    };
    for group_id in ["a", "b", "c"] {
        coordinator.call(group_id, commit(group_id, 0, 42)).await;
    }
    coordinator.topics_deleted(std::slice::from_ref(&orders));
    for group_id in ["a", "b", "c"] {
        assert!(offsets(coordinator.call(group_id, fetch(group_id)).await).is_empty());
        coordinator.call(group_id, commit(group_id, 0, 43)).await;
    }
    coordinator.drain().await;

    store.failing_loads.store(2, std::sync::atomic::Ordering::SeqCst);
    let coordinator = start_with(&store, TestInspector::new(), 2);
    coordinator.topics_deleted(&[orders.clone(), orders]);
    assert_eq!(
        coordinator.call("a", fetch("a")).await,
        unavailable(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)
    );
    loaded(&coordinator).await;
    for group_id in ["a", "b", "c"] {
        assert!(offsets(coordinator.call(group_id, fetch(group_id)).await).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn every_load_has_the_topics_looked_for_that_offsets_are_stored_for() {
    let store = TestStore::new();
    let orders = DeletedTopic {
        name: Text::from("orders"),
        id: Uuid::from_u128(1),
    };
    let both = BTreeMap::from([
        (orders.id, orders.name.clone()),
        (Uuid::from_u128(2), Text::from("orders")),
    ]);
    let looked_for = Arc::new(TestTopics::default());
    let start = || start_checked(&store, TestInspector::new(), 1, Arc::clone(&looked_for));
    let loads = || std::mem::take(&mut *looked_for.0.lock().expect("no panic"));
    let coordinator = start();
    loaded(&coordinator).await;
    assert!(loads().is_empty(), "there was nothing to look for");
    for (number, group_id) in [(0, "a"), (1, "b"), (2, "c")] {
        let request = commit_to(Uuid::from_u128(number), group_id, 0, 42);
        coordinator.call(group_id, request).await;
    }
    coordinator.drain().await;

    // Deleted while nobody listened.
    let coordinator = start();
    loaded(&coordinator).await;
    assert_eq!(loads(), std::slice::from_ref(&both));

    // Told, and the store fails before it is written: it is looked for anew, and told again.
    store.fails_next.store(true, std::sync::atomic::Ordering::SeqCst);
    let mut states = coordinator.subscribe();
    coordinator.topics_deleted(std::slice::from_ref(&orders));
    states
        .wait_for(|state| state.failed == 1)
        .await
        .expect("the shard lives");
    loaded(&coordinator).await;
    assert_eq!(loads(), [both]);
    let found = offsets(coordinator.call("b", fetch("b")).await);
    assert_eq!(found, BTreeMap::from([(0, 42)]));
    coordinator.topics_deleted(&[orders]);
    let left = [("a", false), ("b", false), ("c", true)];
    for (group_id, is_left) in left {
        let found = offsets(coordinator.call(group_id, fetch(group_id)).await);
        assert_eq!(!found.is_empty(), is_left, "{group_id}");
    }
}

/// The real store and several threads: what clients were told survives, whoever wrote beside whom.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_commit_side_by_side_and_a_restart_finds_it_all() {
    const CLIENTS: i32 = 16;
    const COMMITS: i64 = 50;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state.redb");
    let open = || {
        let store = EmbeddedStore::open(&path, 8).expect("it opens");
        Coordinator::start(CoordinatorParts {
            store: Arc::new(store),
            inspector: Arc::new(TestInspector::new()),
            topic_checker: Arc::new(TestTopics::default()),
            topics: watch::channel(Arc::default()).1,
            settings: Arc::new(settings()),
            shards: 8,
            seed: 7,
            metrics: Arc::new(Metrics::new()),
        })
    };
    let coordinator = open();
    loaded(&coordinator).await;
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let coordinator = coordinator.clone();
        clients.spawn(async move {
            let group_id = format!("group-{}", client % 5);
            for offset in 1..=COMMITS {
                let response = coordinator.call(&group_id, commit(&group_id, client, offset)).await;
                assert_eq!(response, committed(ErrorCode::NONE, client));
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.expect("every commit is answered");
    }
    coordinator.drain().await;
    let mut state = coordinator.subscribe();
    drop(coordinator);
    // The last task lets go of the store before it lets go of this.
    while state.changed().await.is_ok() {}

    let coordinator = open();
    loaded(&coordinator).await;
    for group in 0..5 {
        let group_id = format!("group-{group}");
        let expected = (0..CLIENTS)
            .filter(|client| client % 5 == group)
            .map(|client| (client, COMMITS));
        let found = offsets(coordinator.call(&group_id, fetch(&group_id)).await);
        assert_eq!(found, expected.collect());
    }
    coordinator.drain().await;
}
