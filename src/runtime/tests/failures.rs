use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::kit::*;
use super::log_lines::Lines;
use crate::coordinator::request::Response;
use crate::runtime::CoordinatorState;
use crate::wire::error_code::ErrorCode;

#[tokio::test(start_paused = true)]
async fn a_failed_append_answers_everything_that_waits_and_the_shard_comes_back_as_it_was() {
    let store = TestStore::new();
    let coordinator = start(&store, 1).await;
    coordinator.call("g", commit("g", 0, 1)).await;
    let first_member = joined(&coordinator, "joining").await;
    let mut parked = Box::pin(coordinator.call("joining", join("joining", "", 10_000)));
    assert_eq!(settled(&mut parked).await, None, "{first_member} has not joined again");

    store.shut();
    store.fails_next.store(true, Ordering::SeqCst);
    let mut failing = Box::pin(coordinator.call("g", commit("g", 0, 2)));
    assert_eq!(settled(&mut failing).await, None);
    let mut behind = Box::pin(coordinator.call("g", commit("g", 0, 3)));
    assert_eq!(settled(&mut behind).await, None);
    store.open();
    let refused = unavailable(ErrorCode::NOT_COORDINATOR);
    assert_eq!(failing.await, refused);
    assert_eq!(behind.await, refused);
    assert_eq!(parked.await, refused);

    assert_eq!(
        coordinator.call("g", heartbeat("g")).await,
        unavailable(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)
    );
    loaded(&coordinator).await;
    assert_eq!(
        offsets(coordinator.call("g", fetch("g")).await),
        BTreeMap::from([(0, 1)])
    );
    assert_eq!(
        coordinator.call("g", commit("g", 0, 4)).await,
        committed(ErrorCode::NONE, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_one_shard_leaves_the_others_alone() {
    let store = TestStore::new();
    let coordinator = start(&store, 2).await;
    // "a" and "b" hash to different shards of two.
    coordinator.call("a", commit("a", 0, 1)).await;
    coordinator.call("b", commit("b", 0, 1)).await;
    store.fails_next.store(true, Ordering::SeqCst);
    store.failing_loads.store(1_000, Ordering::SeqCst);
    coordinator.call("a", commit("a", 0, 2)).await;
    let mut state = coordinator.subscribe();
    state
        .wait_for(|state| state.failed == 1)
        .await
        .expect("the shards live");
    assert_eq!(
        coordinator.state(),
        CoordinatorState {
            shards: 2,
            loaded: 1,
            failed: 1
        }
    );
    assert_eq!(
        coordinator.call("b", commit("b", 0, 2)).await,
        committed(ErrorCode::NONE, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_cannot_be_loaded_says_so_and_is_tried_again() {
    let store = TestStore::new();
    store.failing_loads.store(5, Ordering::SeqCst);
    let coordinator = start_with(&store, TestInspector::new(), 1);
    let mut state = coordinator.subscribe();
    state
        .wait_for(|state| state.failed == 1)
        .await
        .expect("the shard lives");
    assert_eq!(
        coordinator.call("g", commit("g", 0, 1)).await,
        unavailable(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)
    );
    let began = tokio::time::Instant::now();
    loaded(&coordinator).await;
    // 100 + 200 + 400 + 800 + 1600 ms, all but the first begun wait.
    assert!(began.elapsed() > Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(
        coordinator.call("g", commit("g", 0, 1)).await,
        committed(ErrorCode::NONE, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_drain_makes_durable_what_is_under_way_and_turns_the_parked_away() {
    let store = TestStore::new();
    let coordinator = start(&store, 2).await;
    joined(&coordinator, "g").await;
    let mut parked = Box::pin(coordinator.call("g", join("g", "", 10_000)));
    assert_eq!(settled(&mut parked).await, None);
    store.shut();
    let mut under_way = Box::pin(coordinator.call("g", commit("h", 0, 42)));
    assert_eq!(settled(&mut under_way).await, None);
    let mut drain = Box::pin(coordinator.drain());
    assert_eq!(settled(&mut drain).await, None);
    store.open();
    drain.await;
    assert_eq!(under_way.await, committed(ErrorCode::NONE, 0));
    assert_eq!(parked.await, unavailable(ErrorCode::NOT_COORDINATOR));
    assert_eq!(
        coordinator.call("g", heartbeat("g")).await,
        unavailable(ErrorCode::NOT_COORDINATOR)
    );
    assert_eq!(coordinator.state().loaded, 0);
    coordinator.drain().await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_does_not_wait_for_a_shard_that_cannot_be_loaded() {
    let store = TestStore::new();
    store.failing_loads.store(usize::MAX, Ordering::SeqCst);
    let coordinator = start_with(&store, TestInspector::new(), 3);
    coordinator.drain().await;
    assert_eq!(
        coordinator.call("g", heartbeat("g")).await,
        unavailable(ErrorCode::NOT_COORDINATOR)
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stalls_is_told_of_once_and_again_when_it_writes() {
    let lines = Lines::default();
    let _capturing = lines.capture();
    let store = TestStore::new();
    let coordinator = start(&store, 1).await;
    coordinator.call("g", commit("g", 0, 1)).await;
    lines.taken();
    store.shut();
    let mut waiting = tokio::task::JoinSet::new();
    for partition in 0..40 {
        let coordinator = coordinator.clone();
        waiting.spawn(async move { coordinator.call("g", commit("g", partition, 1)).await });
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(lines.taken(), Vec::<String>::new());
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(
        lines.taken(),
        [
            "WARN the store has not finished a write for 10s; the clients of the shard's groups are asked to try again \
             shard=0"
        ]
    );
    store.open();
    while let Some(response) = waiting.join_next().await {
        response.expect("answered");
    }
    coordinator.call("g", commit("g", 0, 2)).await;
    let told = lines.taken();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("INFO the store writes again"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stalls_lets_nobody_wait_for_longer_than_the_commit_timeout() {
    let store = TestStore::new();
    let coordinator = start(&store, 1).await;
    coordinator.call("g", commit("g", 0, 1)).await;
    store.shut();
    // More than the store and the shard take in together: the last wait until there is room.
    let began = tokio::time::Instant::now();
    let mut waiting = tokio::task::JoinSet::new();
    for partition in 0..400 {
        let coordinator = coordinator.clone();
        waiting.spawn(async move { coordinator.call("g", commit("g", partition, 2)).await });
        if partition < 40 {
            // One at a time, so that each is a batch of its own.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let again = unavailable(ErrorCode::COORDINATOR_NOT_AVAILABLE);
    while let Some(response) = waiting.join_next().await {
        assert_eq!(response.expect("answered"), again);
        assert!(began.elapsed() >= Duration::from_secs(5), "{:?}", began.elapsed());
    }
    assert!(began.elapsed() < Duration::from_millis(5_200), "{:?}", began.elapsed());
    let fetching = coordinator.call("g", fetch("g"));
    assert_eq!(
        fetching.await,
        again,
        "never an offset that may not last, and never none"
    );

    store.open();
    let kept = async {
        loop {
            // What was under way is written, each once; then others may write again.
            if let Response::OffsetCommit(_) = coordinator.call("g", commit("g", 0, 3)).await {
                return offsets(coordinator.call("g", fetch("g")).await);
            }
        }
    };
    let kept = kept.await;
    assert_eq!(kept[&0], 3, "what was committed last");
    assert!(
        kept.iter().all(|(partition, offset)| *partition == 0 || *offset == 2),
        "{kept:?}"
    );
}

/// Only run by the test below, in a process of its own.
#[tokio::test]
#[ignore = "aborts the process"]
async fn child_whose_shard_panics() {
    let store = TestStore::new();
    let coordinator = start(&store, 1).await;
    store.panics.store(true, Ordering::SeqCst);
    let response = coordinator.call("g", commit("g", 0, 1)).await;
    println!("answered {response:?}");
}

#[test]
fn a_panic_in_a_shard_ends_the_process_before_anything_is_answered() {
    let child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "--ignored", "--nocapture"])
        .arg("runtime::tests::failures::child_whose_shard_panics")
        .output()
        .expect("the test runs itself");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(said.contains("running 1 test"), "{said}");
    assert!(!said.contains("answered"), "{said}");
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&child.status),
        Some(6),
        "SIGABRT: {said}"
    );
}
