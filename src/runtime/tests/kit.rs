//! A store with a gate, a scripted upstream, and requests.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use crate::coordinator::input::{InspectFailure, Presence, UpstreamGroup};
use crate::coordinator::record::{RawRecord, Record};
use crate::coordinator::request::*;
use crate::coordinator::settings::Settings;
use crate::runtime::{Coordinator, CoordinatorParts, GroupInspector, Inspection, InspectionFuture, TopicChecker};
use crate::store::memory::MemoryStore;
use crate::store::{Incarnation, Outcome, ShardId, StateStore, StoreError, StoreFuture};
use crate::telemetry::metrics::Metrics;
use crate::wire::error_code::ErrorCode;

/// A memory store whose appends wait at a gate and fail when told.
pub(super) struct TestStore {
    inner: Arc<MemoryStore>,
    open: watch::Sender<bool>,
    /// To the gate, through which appends go in their order.
    gate: mpsc::UnboundedSender<Box<dyn FnOnce() + Send>>,
    /// Loads that are still to fail.
    pub(super) failing_loads: AtomicUsize,
    /// Whether the next append fails.
    pub(super) fails_next: AtomicBool,
    pub(super) panics: AtomicBool,
    /// What was handed over, in order.
    pub(super) batches: Mutex<Vec<(ShardId, Vec<RawRecord>)>>,
}

impl TestStore {
    pub(super) fn new() -> Arc<Self> {
        let open = watch::Sender::new(true);
        let mut is_open = open.subscribe();
        let (gate, mut waiting) = mpsc::unbounded_channel::<Box<dyn FnOnce() + Send>>();
        tokio::spawn(async move {
            while let Some(append) = waiting.recv().await {
                // A store that is gone drops what waits.
                match is_open.wait_for(|open| *open).await {
                    Ok(_) => append(),
                    Err(_) => return,
                }
            }
        });
        Arc::new(Self {
            inner: Arc::new(MemoryStore::new()),
            open,
            gate,
            failing_loads: AtomicUsize::new(0),
            fails_next: AtomicBool::new(false),
            panics: AtomicBool::new(false),
            batches: Mutex::default(),
        })
    }

    /// From now on appends wait.
    pub(super) fn shut(&self) {
        self.open.send_replace(false);
    }

    /// Lets all appends through.
    pub(super) fn open(&self) {
        self.open.send_replace(true);
    }

    /// The records that were handed over, in order.
    pub(super) fn records(&self) -> Vec<Record> {
        let batches = self.batches.lock().expect("no test panics with it");
        let raw = batches.iter().flat_map(|(_, batch)| batch);
        raw.map(|raw| Record::from_raw(raw).expect("our own").expect("known"))
            .collect()
    }
}

fn broken() -> StoreError {
    StoreError::Io {
        path: "state.redb".to_owned(),
        reason: "no space left on device".to_owned(),
    }
}

impl StateStore for TestStore {
    fn load(&self, shard: ShardId) -> StoreFuture<(Incarnation, Vec<RawRecord>)> {
        let fails = self
            .failing_loads
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if fails.is_ok() {
            return Box::pin(async { Err(broken()) });
        }
        self.inner.load(shard)
    }

    fn append(&self, shard: ShardId, incarnation: Incarnation, batch: Vec<RawRecord>, outcome: Outcome) {
        assert!(!self.panics.load(Ordering::SeqCst), "told to panic");
        self.batches.lock().expect("no panic").push((shard, batch.clone()));
        let fails = self.fails_next.swap(false, Ordering::SeqCst);
        let inner = Arc::clone(&self.inner);
        let append = move || {
            inner.fail_with(fails.then(broken));
            inner.append(shard, incarnation, batch, outcome);
            inner.fail_with(None);
        };
        self.gate.send(Box::new(append)).expect("the gate is kept");
    }
}

/// An upstream that says the same of every group that has no line of its own.
pub(super) struct TestInspector {
    pub(super) answers: Mutex<BTreeMap<String, Inspection>>,
    pub(super) running: Arc<AtomicUsize>,
    pub(super) most_running: Arc<AtomicUsize>,
    /// How long each answer takes.
    pub(super) takes: Duration,
}

impl TestInspector {
    pub(super) fn new() -> Self {
        Self {
            answers: Mutex::default(),
            running: Arc::default(),
            most_running: Arc::default(),
            takes: Duration::ZERO,
        }
    }

    pub(super) fn says(&self, group_id: &str, answer: Inspection) {
        self.answers
            .lock()
            .expect("no panic")
            .insert(group_id.to_owned(), answer);
    }
}

pub(super) fn vacant() -> UpstreamGroup {
    UpstreamGroup {
        presence: Presence::Vacant,
        offsets: Vec::new(),
    }
}

pub(super) fn out_of_reach() -> InspectFailure {
    InspectFailure {
        reason: "out of reach".to_owned(),
    }
}

impl GroupInspector for TestInspector {
    fn inspect(&self, group_id: &Text) -> InspectionFuture {
        let answer = self.answers.lock().expect("no panic").get(&**group_id).cloned();
        let (running, most) = (Arc::clone(&self.running), Arc::clone(&self.most_running));
        let (takes, panics) = (self.takes, &**group_id == "panic");
        Box::pin(async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(takes).await;
            running.fetch_sub(1, Ordering::SeqCst);
            assert!(!panics, "told to panic");
            answer.unwrap_or_else(|| Ok(vacant()))
        })
    }
}

/// Keeps the topics that it was to look for, by loads.
#[derive(Default)]
pub(super) struct TestTopics(pub(super) Mutex<Vec<BTreeMap<Uuid, Text>>>);

impl TopicChecker for TestTopics {
    fn check(&self, topics: BTreeMap<Uuid, Text>) {
        self.0.lock().expect("no panic").push(topics);
    }
}

/// Shards on the store, loaded.
pub(super) async fn start(store: &Arc<TestStore>, shards: u32) -> Coordinator {
    let coordinator = start_with(store, TestInspector::new(), shards);
    loaded(&coordinator).await;
    coordinator
}

pub(super) fn start_with(store: &Arc<TestStore>, inspector: TestInspector, shards: u32) -> Coordinator {
    start_checked(store, inspector, shards, Arc::default())
}

pub(super) fn start_checked(
    store: &Arc<TestStore>,
    inspector: TestInspector,
    shards: u32,
    topic_checker: Arc<TestTopics>,
) -> Coordinator {
    Coordinator::start(CoordinatorParts {
        store: Arc::clone(store) as Arc<dyn StateStore>,
        inspector: Arc::new(inspector),
        topic_checker,
        topics: watch::channel(Arc::default()).1,
        settings: Arc::new(settings()),
        shards,
        seed: 7,
        metrics: Arc::new(Metrics::new()),
    })
}

pub(super) fn settings() -> Settings {
    Settings {
        group_initial_rebalance_delay_ms: 0,
        ..Settings::default()
    }
}

pub(super) async fn loaded(coordinator: &Coordinator) {
    let mut state = coordinator.subscribe();
    let all = state.wait_for(|state| state.loaded == state.shards);
    all.await.expect("the shards live");
}

/// What the future gives once everything that can run has run; `None` if it still waits.
pub(super) async fn settled<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    tokio::time::timeout(Duration::from_millis(500), future).await.ok()
}

pub(super) fn commit(group_id: &str, partition: i32, offset: i64) -> Request {
    commit_to(Uuid::nil(), group_id, partition, offset)
}

pub(super) fn commit_to(topic_id: Uuid, group_id: &str, partition: i32, offset: i64) -> Request {
    Request::OffsetCommit(OffsetCommitRequest {
        group_id: Text::from(group_id),
        generation_id_or_member_epoch: -1,
        member_id: Text::from(""),
        group_instance_id: None,
        retention_time_ms: None,
        knows_member_epochs: true,
        topics: vec![OffsetCommitTopic {
            name: Text::from("orders"),
            topic_id,
            partitions: vec![OffsetCommitPartition {
                partition,
                offset,
                leader_epoch: -1,
                metadata: Text::from(""),
            }],
        }],
    })
}

pub(super) fn committed(error: ErrorCode, partition: i32) -> Response {
    let topic = OffsetTopic {
        name: Text::from("orders"),
        topic_id: Uuid::nil(),
    };
    Response::OffsetCommit(OffsetCommitResponse {
        topics: vec![(topic, vec![(partition, error)])],
    })
}

pub(super) fn fetch(group_id: &str) -> Request {
    Request::OffsetFetch(OffsetFetchRequest {
        group_id: Text::from(group_id),
        member_id: None,
        member_epoch: -1,
        topics: None,
        require_stable: false,
    })
}

/// The fetched offsets by partition.
pub(super) fn offsets(response: Response) -> BTreeMap<i32, i64> {
    let Response::OffsetFetch(response) = response else {
        panic!("{response:?}");
    };
    assert_eq!(response.error, ErrorCode::NONE);
    let offsets = response.topics.into_iter().flat_map(|(_, offsets)| offsets);
    offsets.map(|offset| (offset.partition, offset.offset)).collect()
}

pub(super) fn heartbeat(group_id: &str) -> Request {
    Request::Heartbeat(HeartbeatRequest {
        group_id: Text::from(group_id),
        generation_id: 1,
        member_id: Text::from("m"),
        group_instance_id: None,
    })
}

pub(super) fn join(group_id: &str, member_id: &str, session_timeout_ms: i32) -> Request {
    Request::JoinGroup(JoinGroupRequest {
        group_id: Text::from(group_id),
        member_id: Text::from(member_id),
        group_instance_id: None,
        client_id: Text::from("c"),
        client_host: Text::from("/127.0.0.1"),
        session_timeout_ms,
        rebalance_timeout_ms: 60_000,
        protocol_type: Text::from("consumer"),
        protocols: vec![Protocol {
            name: Text::from("range"),
            metadata: Bytes::new(),
        }],
        require_known_member_id: false,
        supports_skipping_assignment: false,
        reason: None,
    })
}

/// Joins alone and gives the member id.
pub(super) async fn joined(coordinator: &Coordinator, group_id: &str) -> Text {
    match coordinator.call(group_id, join(group_id, "", 10_000)).await {
        Response::JoinGroup(response) => {
            assert_eq!(response.error, ErrorCode::NONE);
            response.member_id
        }
        other => panic!("{other:?}"),
    }
}

pub(super) const fn unavailable(error: ErrorCode) -> Response {
    Response::Unavailable { error }
}
