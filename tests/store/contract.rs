//! The contract of `StateStore`, run against each store.

use std::sync::Arc;

use convoke::store::embedded::EmbeddedStore;
use convoke::store::memory::MemoryStore;
use convoke::store::{ShardId, StateStore, StoreError};
use tempfile::TempDir;

use crate::samples::{by_key, offset, tombstone};

const A: ShardId = ShardId(0);
const B: ShardId = ShardId(256);

async fn a_new_shard_is_empty(store: Arc<dyn StateStore>) {
    let (_, records) = store.load(A).await.unwrap();
    assert!(records.is_empty());
}

async fn the_latest_value_of_each_key_is_loaded(store: Arc<dyn StateStore>) {
    let (incarnation, _) = store.load(A).await.unwrap();
    let first = vec![offset("g", 0, 1), offset("g", 1, 1), offset("g", 0, 2)];
    store.append_and_wait(A, incarnation, first).await.unwrap();
    store
        .append_and_wait(A, incarnation, vec![offset("g", 1, 3), offset("h", 0, 4)])
        .await
        .unwrap();
    let (_, records) = store.load(A).await.unwrap();
    assert_eq!(
        by_key(records),
        by_key(vec![offset("g", 0, 2), offset("g", 1, 3), offset("h", 0, 4)])
    );
}

async fn batches_take_effect_in_the_order_of_the_calls_whoever_is_awaited_first(store: Arc<dyn StateStore>) {
    let (incarnation, _) = store.load(A).await.unwrap();
    let appends: Vec<_> = (0..200)
        .map(|n| store.append_and_wait(A, incarnation, vec![offset("g", n % 2, i64::from(n))]))
        .collect();
    for append in appends.into_iter().rev() {
        append.await.unwrap();
    }
    let (_, records) = store.load(A).await.unwrap();
    assert_eq!(by_key(records), by_key(vec![offset("g", 0, 198), offset("g", 1, 199)]));
}

async fn a_load_sees_every_append_called_before_it(store: Arc<dyn StateStore>) {
    let (incarnation, _) = store.load(A).await.unwrap();
    let append = store.append_and_wait(A, incarnation, vec![offset("g", 0, 7)]);
    let (_, records) = store.load(A).await.unwrap();
    assert_eq!(records, [offset("g", 0, 7)]);
    append.await.unwrap();
}

async fn an_append_happens_even_if_nobody_awaits_it(store: Arc<dyn StateStore>) {
    let (incarnation, _) = store.load(A).await.unwrap();
    drop(store.append_and_wait(A, incarnation, vec![offset("g", 0, 7)]));
    let (_, records) = store.load(A).await.unwrap();
    assert_eq!(records, [offset("g", 0, 7)]);
}

async fn tombstones_remove_and_may_name_what_is_not_there(store: Arc<dyn StateStore>) {
    let (incarnation, _) = store.load(A).await.unwrap();
    let batch = vec![
        offset("g", 0, 1),
        offset("g", 1, 1),
        tombstone("g", 0),
        tombstone("g", 9),
    ];
    store.append_and_wait(A, incarnation, batch).await.unwrap();
    store
        .append_and_wait(A, incarnation, vec![tombstone("g", 1), offset("g", 2, 1)])
        .await
        .unwrap();
    let (_, records) = store.load(A).await.unwrap();
    assert_eq!(records, [offset("g", 2, 1)]);
}

async fn shards_do_not_see_each_other(store: Arc<dyn StateStore>) {
    let (a, _) = store.load(A).await.unwrap();
    let (b, _) = store.load(B).await.unwrap();
    store.append_and_wait(A, a, vec![offset("g", 0, 1)]).await.unwrap();
    store.append_and_wait(B, b, vec![offset("g", 0, 2)]).await.unwrap();
    store.append_and_wait(B, b, vec![tombstone("g", 1)]).await.unwrap();
    assert_eq!(store.load(A).await.unwrap().1, [offset("g", 0, 1)]);
    assert_eq!(store.load(B).await.unwrap().1, [offset("g", 0, 2)]);
    assert!(store.load(ShardId(1)).await.unwrap().1.is_empty());
}

async fn a_load_ends_the_incarnation_before_it_and_no_other(store: Arc<dyn StateStore>) {
    let (old, _) = store.load(A).await.unwrap();
    let (other, _) = store.load(B).await.unwrap();
    let (new, _) = store.load(A).await.unwrap();
    assert_ne!(old, new);
    let refused = store
        .append_and_wait(A, old, vec![offset("g", 0, 1)])
        .await
        .unwrap_err();
    assert!(matches!(refused, StoreError::Superseded), "{refused}");
    store.append_and_wait(A, new, vec![offset("g", 0, 2)]).await.unwrap();
    store.append_and_wait(B, other, vec![offset("g", 0, 3)]).await.unwrap();
    assert_eq!(store.load(A).await.unwrap().1, [offset("g", 0, 2)]);
}

async fn nothing_is_appended_before_the_first_load(store: Arc<dyn StateStore>) {
    let (incarnation, _) = store.load(A).await.unwrap();
    let refused = store
        .append_and_wait(B, incarnation, vec![offset("g", 0, 1)])
        .await
        .unwrap_err();
    assert!(matches!(refused, StoreError::Superseded), "{refused}");
}

async fn an_empty_batch_is_an_append_like_any_other(store: Arc<dyn StateStore>) {
    let (old, _) = store.load(A).await.unwrap();
    store.append_and_wait(A, old, Vec::new()).await.unwrap();
    store.load(A).await.unwrap();
    let refused = store.append_and_wait(A, old, Vec::new()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Superseded), "{refused}");
}

/// One test for each rule and store.
macro_rules! contract {
    ($($rule:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $rule() {
                super::$rule(std::sync::Arc::new(super::MemoryStore::new())).await;
            })+
        }

        mod embedded {
            $(#[tokio::test]
            async fn $rule() {
                let directory = super::TempDir::new().unwrap();
                let store = super::EmbeddedStore::open(&directory.path().join("state.redb"), 300).unwrap();
                super::$rule(std::sync::Arc::new(store)).await;
            })+
        }
    };
}

contract!(
    a_new_shard_is_empty,
    the_latest_value_of_each_key_is_loaded,
    batches_take_effect_in_the_order_of_the_calls_whoever_is_awaited_first,
    a_load_sees_every_append_called_before_it,
    an_append_happens_even_if_nobody_awaits_it,
    tombstones_remove_and_may_name_what_is_not_there,
    shards_do_not_see_each_other,
    a_load_ends_the_incarnation_before_it_and_no_other,
    nothing_is_appended_before_the_first_load,
    an_empty_batch_is_an_append_like_any_other,
);

#[tokio::test]
async fn a_memory_store_that_fails_refuses_the_incarnation_until_a_load() {
    let store = MemoryStore::new();
    let (incarnation, _) = store.load(A).await.unwrap();
    let failure = StoreError::Io {
        path: "memory".to_owned(),
        reason: "planted".to_owned(),
    };
    store.fail_with(Some(failure));
    assert!(matches!(
        store.append_and_wait(A, incarnation, Vec::new()).await,
        Err(StoreError::Io { .. })
    ));
    assert!(store.load(A).await.is_err());
    store.fail_with(None);
    assert!(matches!(
        store.append_and_wait(A, incarnation, Vec::new()).await,
        Err(StoreError::Superseded)
    ));
    store.load(A).await.unwrap();
}
