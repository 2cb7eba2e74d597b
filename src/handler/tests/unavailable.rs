//! What each API answers while nothing can be looked at: errors that stock clients survive.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use kafka_protocol::messages::{
    DescribeGroupsRequest, DescribeGroupsResponse, HeartbeatRequest, HeartbeatResponse, JoinGroupRequest,
    JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse, ListGroupsRequest, ListGroupsResponse,
    OffsetCommitResponse, OffsetDeleteResponse, OffsetFetchRequest, OffsetFetchResponse, SyncGroupRequest,
    SyncGroupResponse,
};

use super::groups::{delete, deleted, describe, offset_delete_of};
use super::kit::*;
use super::membership::{heartbeat, join, joined, leave, sync};
use super::offset_commit::{commit, commit_by_id, errors};
use super::offset_fetch::{fetch_by_id, group, single};
use crate::coordinator::record::RawRecord;
use crate::handler::Answer;
use crate::store::memory::MemoryStore;
use crate::store::{Incarnation, Outcome, ShardId, StateStore, StoreFuture};
use crate::wire::api::*;

fn loading() -> Setup {
    Setup::with(Options {
        store: broken_store(),
        ..Options::default()
    })
}

async fn drained() -> Setup {
    let setup = Setup::new().await;
    setup.services.coordinator.drain().await;
    setup
}

/// The setups, and the error that the coordinator gives in each.
pub(super) async fn setups() -> [(Setup, i16); 2] {
    [(loading(), 14), (drained().await, 16)]
}

#[tokio::test]
async fn members_get_what_java_clients_survive() {
    for (setup, error) in setups().await {
        for version in versions::<JoinGroupRequest>() {
            let response: JoinGroupResponse = setup.ask(JOIN_GROUP, version, &join("g", "m")).await;
            assert_eq!(response.error_code, error, "JoinGroup v{version}");
            assert_eq!(response.member_id.as_str(), "m");
        }
        for version in versions::<SyncGroupRequest>() {
            let response: SyncGroupResponse = setup.ask(SYNC_GROUP, version, &sync("g", "m", 1, version)).await;
            let expected = if error == 14 { 27 } else { error };
            assert_eq!(response.error_code, expected, "SyncGroup v{version}");
        }
        for version in versions::<HeartbeatRequest>() {
            let response: HeartbeatResponse = setup.ask(HEARTBEAT, version, &heartbeat("g", "m", 1)).await;
            let expected = if error == 14 { 0 } else { error };
            assert_eq!(response.error_code, expected, "Heartbeat v{version}");
        }
        for version in versions::<LeaveGroupRequest>() {
            let response: LeaveGroupResponse = setup.ask(LEAVE_GROUP, version, &leave("g", "m", version)).await;
            assert_eq!(response.error_code, error, "LeaveGroup v{version}");
        }
    }
}

#[tokio::test]
async fn offsets_get_a_retriable_error_where_the_version_has_it() {
    for (setup, error) in setups().await {
        for version in 2..=10 {
            let body = match version {
                10 => commit_by_id("g", &[(ORDERS, &[0, 1])]),
                _ => encode(&commit("g", &[("orders", &[0, 1])]), version),
            };
            let (response, counted) = setup
                .exchange::<OffsetCommitResponse>(OFFSET_COMMIT, version, body, &mut Upstream::unused())
                .await;
            let codes: Vec<_> = errors(&response).into_iter().map(|(_, _, error)| error).collect();
            assert_eq!(codes, [error, error], "OffsetCommit v{version}");
            assert_eq!(counted.0, error);
        }
        for version in 1..=7 {
            let request = single("g", Some(&[("orders", &[0, 1])]));
            let response: OffsetFetchResponse = setup.ask(OFFSET_FETCH, version, &request).await;
            if version == 1 {
                let partitions = &response.topics[0].partitions;
                assert!(partitions.iter().all(|partition| partition.error_code == error), "v1");
                assert!(partitions.iter().all(|partition| partition.committed_offset == -1));
            } else {
                assert_eq!(response.error_code, error, "OffsetFetch v{version}");
                assert!(response.topics.is_empty());
            }
        }
        for version in 8..=10 {
            let body = match version {
                10 => fetch_by_id(&[("g", None)]),
                _ => encode(
                    &OffsetFetchRequest::default().with_groups(vec![group("g", None)]),
                    version,
                ),
            };
            let (response, _) = setup
                .exchange::<OffsetFetchResponse>(OFFSET_FETCH, version, body, &mut Upstream::unused())
                .await;
            assert_eq!(response.groups[0].error_code, error, "OffsetFetch v{version}");
            assert!(response.groups[0].topics.is_empty());
        }
        let response: OffsetDeleteResponse = setup.ask(OFFSET_DELETE, 0, &offset_delete_of("g")).await;
        assert_eq!((response.error_code, response.topics.len()), (error, 0));
    }
}

/// A store that, once it stalls, finishes nothing.
#[derive(Default)]
struct StallingStore {
    inner: MemoryStore,
    stalls: AtomicBool,
    unfinished: Mutex<Vec<Outcome>>,
}

impl StateStore for StallingStore {
    fn load(&self, shard: ShardId) -> StoreFuture<(Incarnation, Vec<RawRecord>)> {
        self.inner.load(shard)
    }

    fn append(&self, shard: ShardId, incarnation: Incarnation, batch: Vec<RawRecord>, outcome: Outcome) {
        if self.stalls.load(Ordering::SeqCst) {
            self.unfinished.lock().expect("no panic").push(outcome);
        } else {
            self.inner.append(shard, incarnation, batch, outcome);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stalls_is_told_to_each_client_so_that_it_asks_again() {
    let store = Arc::new(StallingStore::default());
    let shared: Arc<dyn StateStore> = Arc::clone(&store) as _;
    let setup = Setup::with(Options {
        store: shared,
        ..Options::default()
    });
    setup.loaded().await;
    let member_id = joined(&setup, "g", 3).await.member_id;
    let synced: SyncGroupResponse = setup.ask(SYNC_GROUP, 3, &sync("g", &member_id, 1, 3)).await;
    assert_eq!(synced.error_code, 0);
    store.stalls.store(true, Ordering::SeqCst);
    // Each commit holds up what comes after it in its group.
    for version in 2..=9 {
        let request = commit("g", &[("orders", &[0, 1])])
            .with_member_id(member_id.clone())
            .with_generation_id_or_member_epoch(1);
        let response: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, version, &request).await;
        let codes: Vec<_> = errors(&response).into_iter().map(|(_, _, error)| error).collect();
        assert_eq!(codes, [15, 15], "OffsetCommit v{version}");
    }
    for version in 1..=7 {
        let request = single("g", Some(&[("orders", &[0])])).with_require_stable(version >= 7);
        let response: OffsetFetchResponse = setup.ask(OFFSET_FETCH, version, &request).await;
        // What older clients look for the coordinator by.
        let error = match version {
            1 => response.topics[0].partitions[0].error_code,
            _ => response.error_code,
        };
        assert_eq!(error, 16, "OffsetFetch v{version}");
    }
    let beat: HeartbeatResponse = setup.ask(HEARTBEAT, 4, &heartbeat("g", &member_id, 1)).await;
    assert_eq!(beat.error_code, 15);
    let synced: SyncGroupResponse = setup.ask(SYNC_GROUP, 3, &sync("g", &member_id, 1, 3)).await;
    assert_eq!(synced.error_code, 15);
    let joined: JoinGroupResponse = setup.ask(JOIN_GROUP, 4, &join("new", "")).await;
    assert_eq!(joined.error_code, 15);
}

#[tokio::test]
async fn admins_get_a_retriable_error_for_each_group() {
    for (setup, error) in setups().await {
        for version in versions::<DescribeGroupsRequest>() {
            let response: DescribeGroupsResponse = setup.ask(DESCRIBE_GROUPS, version, &describe(&["a", "b"])).await;
            let errors: Vec<_> = response.groups.iter().map(|group| group.error_code).collect();
            assert_eq!(errors, [error, error], "DescribeGroups v{version}");
        }
        for version in 0..=3 {
            let answered = deleted(&setup, version, delete(&["a"], version), &mut Upstream::unused()).await;
            assert_eq!(answered, [("a".to_owned(), error)], "DeleteGroups v{version}");
        }
        for version in versions::<ListGroupsRequest>() {
            let response: ListGroupsResponse = setup.ask(LIST_GROUPS, version, &ListGroupsRequest::default()).await;
            assert_eq!(
                (response.error_code, response.groups.len()),
                (error, 0),
                "ListGroups v{version}"
            );
        }
    }
}

#[tokio::test]
async fn a_body_that_cannot_be_read_closes_the_connection() {
    let setup = Setup::new().await;
    let owned = APIS
        .iter()
        .filter(|row| row.route == Route::Own && row.key != API_VERSIONS);
    for row in owned {
        // A body without fields ends before its first byte, and what follows is ignored.
        let first = if row.key == LIST_GROUPS { 4 } else { row.min };
        for version in first..=row.max {
            for body in [&b"\x7f"[..], &[0xff; 64], &[0x00, 0x05, b'g']] {
                let body = Bytes::copy_from_slice(body);
                let answer = setup.handle(row.key, version, body, &mut Upstream::unused()).await;
                assert!(
                    matches!(answer, Answer::Close(_)),
                    "{} v{version}: {answer:?}",
                    row.name
                );
            }
        }
        let too_new = setup
            .handle(row.key, row.max + 1, Bytes::new(), &mut Upstream::unused())
            .await;
        assert!(matches!(too_new, Answer::Close(_)), "{} v{}", row.name, row.max + 1);
    }
    let foreign = setup.handle(METADATA, 0, Bytes::new(), &mut Upstream::unused()).await;
    assert!(matches!(foreign, Answer::Close(_)));
}
