//! Inspections against scripted brokers on loopback.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use kafka_protocol::messages::describe_groups_response::DescribedGroup;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::offset_fetch_response::{OffsetFetchResponsePartitions, OffsetFetchResponseTopics};
use kafka_protocol::messages::{
    ApiKey, BrokerId, DescribeGroupsRequest, DescribeGroupsResponse, FindCoordinatorResponse, ListGroupsRequest,
    ListGroupsResponse, MetadataRequest, OffsetFetchResponse, TopicName,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::*;
use crate::config::HostPort;
use crate::upstream::Upstream;
use crate::upstream::mock::{
    Asked, MockBroker, Reply, api_versions, broker, config, id, metadata, text, topic, topic_error,
};

/// How the mock answers; node 1 coordinates everything unless said.
struct Scene {
    /// What `__consumer_offsets` has; empty: it does not exist.
    leaders: Vec<i32>,
    groups: Vec<ListedGroup>,
    offsets: BTreeMap<&'static str, Vec<(&'static str, i32, i64)>>,
    /// Answers to OffsetFetch, one after the other, before it succeeds.
    fetch_errors: Vec<ErrorCode>,
    /// How often a fetch of everything finds a transaction open.
    unstable: usize,
    hides_topics: bool,
    /// Whether a list with groups of every type fails.
    lists_nothing: bool,
    /// The topic and partition whose offset only a transaction has, which is open for that many named fetches.
    pending: Option<(&'static str, i32, usize)>,
    /// Besides `t` and `u`.
    more_topics: usize,
    fetches: AtomicUsize,
    unstable_seen: AtomicUsize,
}

impl Default for Scene {
    fn default() -> Self {
        Self {
            leaders: vec![1, 1, 1],
            groups: Vec::new(),
            offsets: BTreeMap::new(),
            fetch_errors: Vec::new(),
            unstable: 0,
            hides_topics: false,
            lists_nothing: false,
            pending: None,
            more_topics: 0,
            fetches: AtomicUsize::new(0),
            unstable_seen: AtomicUsize::new(0),
        }
    }
}

fn listed(group: &'static str, group_type: &'static str, state: &'static str) -> ListedGroup {
    ListedGroup::default()
        .with_group_id(GroupId(text(group)))
        .with_group_type(text(group_type))
        .with_group_state(text(state))
        .with_protocol_type(text("consumer"))
}

impl Scene {
    fn answer(&self, asked: &Asked, own: &HostPort) -> Reply {
        if asked.is(ApiKey::Metadata) {
            return self.metadata(asked, own);
        }
        if asked.is(ApiKey::ListGroups) && self.lists_nothing {
            return self.lists_types(asked);
        }
        if asked.is(ApiKey::DescribeGroups) {
            return self.describes(asked);
        }
        if asked.is(ApiKey::ListGroups) {
            return asked.answer(&ListGroupsResponse::default().with_groups(self.groups.clone()));
        }
        if asked.is(ApiKey::FindCoordinator) {
            let coordinator = Coordinator::default()
                .with_node_id(BrokerId(1))
                .with_host(text("b"))
                .with_port(1);
            return asked.answer(&FindCoordinatorResponse::default().with_coordinators(vec![coordinator]));
        }
        if asked.is(ApiKey::OffsetFetch) {
            return self.offsets(asked);
        }
        api_versions(asked)
    }

    fn lists_types(&self, asked: &Asked) -> Reply {
        let request: ListGroupsRequest = asked.decode();
        let is_wanted = |group: &&ListedGroup| request.types_filter.contains(&group.group_type);
        let groups = self.groups.iter().filter(is_wanted).cloned().collect();
        let error = match request.types_filter.is_empty() {
            true => ErrorCode::UNKNOWN_SERVER_ERROR,
            false => ErrorCode::NONE,
        };
        asked.answer(
            &ListGroupsResponse::default()
                .with_error_code(error.0)
                .with_groups(groups),
        )
    }

    fn describes(&self, asked: &Asked) -> Reply {
        let request: DescribeGroupsRequest = asked.decode();
        let describe = |id: &GroupId| {
            let known = self.groups.iter().find(|group| group.group_id == *id);
            let state = known.map_or(text("Dead"), |group| group.group_state.clone());
            DescribedGroup::default()
                .with_group_id(id.clone())
                .with_protocol_type(text("consumer"))
                .with_group_state(state)
        };
        asked.answer(&DescribeGroupsResponse::default().with_groups(request.groups.iter().map(describe).collect()))
    }

    fn metadata(&self, asked: &Asked, own: &HostPort) -> Reply {
        let request: MetadataRequest = asked.decode();
        let mut topics = vec![topic("t", id(1), &[1]), topic("u", id(2), &[1])];
        if !self.leaders.is_empty() {
            topics.push(topic("__consumer_offsets", id(3), &self.leaders));
        }
        if self.pending.is_some() {
            topics.push(topic("__transaction_state", id(4), &[1]));
        }
        for number in 0..self.more_topics {
            topics.push(topic(&format!("more-{number}"), id(100 + number as u128), &[1; 1_000]));
        }
        if let Some(wanted) = request.topics {
            let error = if self.hides_topics {
                ErrorCode::TOPIC_AUTHORIZATION_FAILED
            } else {
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            };
            let known = |name: &TopicName| {
                let known = topics.iter().find(|topic| topic.name.as_ref() == Some(name));
                known.filter(|_| !self.hides_topics).cloned()
            };
            let missing = |name: &TopicName| topic_error(Some(name.as_str()), id(0), error);
            topics = wanted
                .iter()
                .filter_map(|wanted| {
                    wanted
                        .name
                        .as_ref()
                        .map(|name| known(name).unwrap_or_else(|| missing(name)))
                })
                .collect::<Vec<MetadataResponseTopic>>();
        }
        asked.answer(&metadata(vec![broker(1, own)], topics))
    }

    fn offsets(&self, asked: &Asked) -> Reply {
        let request: OffsetFetchRequest = asked.decode();
        let wanted = &request.groups[0];
        let mut group = OffsetFetchResponseGroup::default().with_group_id(wanted.group_id.clone());
        let fetch = self.fetches.fetch_add(1, Ordering::Relaxed);
        if let Some(error) = self.fetch_errors.get(fetch) {
            group.error_code = error.0;
        } else if let Some(wanted) = wanted.topics.as_ref().filter(|wanted| !wanted.is_empty()) {
            assert!(request.require_stable);
            let partitions: usize = wanted.iter().map(|topic| topic.partition_indexes.len()).sum();
            assert!(partitions <= 10_000, "{partitions} partitions");
            group.topics = wanted.iter().map(|topic| self.named(topic)).collect();
        } else if wanted.topics.is_none() {
            assert!(request.require_stable);
            let offsets = self.offsets.get(wanted.group_id.as_str());
            group.topics = offsets
                .into_iter()
                .flatten()
                .map(|offset| self.offset(*offset))
                .collect();
        }
        asked.answer(&OffsetFetchResponse::default().with_groups(vec![group]))
    }

    fn named(&self, wanted: &OffsetFetchRequestTopics) -> OffsetFetchResponseTopics {
        let partition = |index: &i32| {
            let open = self
                .pending
                .filter(|pending| (pending.0, pending.1) == (wanted.name.as_str(), *index));
            let open = open.is_some_and(|pending| self.unstable_seen.fetch_add(1, Ordering::Relaxed) < pending.2);
            let error = if open {
                ErrorCode::UNSTABLE_OFFSET_COMMIT
            } else {
                ErrorCode::NONE
            };
            OffsetFetchResponsePartitions::default()
                .with_partition_index(*index)
                .with_committed_offset(-1)
                .with_error_code(error.0)
        };
        OffsetFetchResponseTopics::default()
            .with_name(wanted.name.clone())
            .with_partitions(wanted.partition_indexes.iter().map(partition).collect())
    }

    fn offset(&self, (topic, partition, offset): (&str, i32, i64)) -> OffsetFetchResponseTopics {
        let unstable = self.unstable_seen.fetch_add(1, Ordering::Relaxed) < self.unstable;
        let error = if unstable {
            ErrorCode::UNSTABLE_OFFSET_COMMIT
        } else {
            ErrorCode::NONE
        };
        let partition = OffsetFetchResponsePartitions::default()
            .with_partition_index(partition)
            .with_committed_offset(offset)
            .with_error_code(error.0);
        OffsetFetchResponseTopics::default()
            .with_name(TopicName(text(topic)))
            .with_partitions(vec![partition])
    }
}

struct Bench {
    broker: MockBroker,
    upstream: Upstream,
    _shutdown: DropGuard,
}

impl Bench {
    async fn start(scene: Scene) -> Self {
        // The mock tells its own address, which it knows only once it is bound.
        let own = Arc::new(Mutex::new(None));
        let told = Arc::clone(&own);
        let broker = MockBroker::start(move |asked| {
            let address: Option<HostPort> = told.lock().unwrap().clone();
            address.map_or(Reply::Close, |address| scene.answer(asked, &address))
        })
        .await;
        *own.lock().unwrap() = Some(broker.address.clone());
        let shutdown = CancellationToken::new();
        let (upstream, _) = Upstream::start(&config(vec![broker.address.clone()]), 1 << 20, &[], &shutdown);
        upstream.cluster().ready().await;
        Self {
            broker,
            upstream,
            _shutdown: shutdown.drop_guard(),
        }
    }

    async fn failure(&self, group: &str) -> String {
        self.upstream.inspect(group).await.unwrap_err().reason
    }
}

fn offset(topic: &str, topic_id: u128, partition: i32, offset: i64) -> ImportedOffset {
    ImportedOffset {
        topic: topic.into(),
        topic_id: id(topic_id),
        partition,
        offset,
        leader_epoch: -1,
        metadata: "".into(),
    }
}

#[tokio::test]
async fn a_group_that_nobody_knows_is_vacant() {
    let bench = Bench::start(Scene::default()).await;
    let group = bench.upstream.inspect("g").await.unwrap();
    assert_eq!(
        group,
        UpstreamGroup {
            presence: Presence::Vacant,
            offsets: Vec::new()
        }
    );
    // Asked before and after the list: is the group still yours?
    assert_eq!(bench.broker.count(ApiKey::OffsetFetch), 2);
    assert_eq!(bench.broker.count(ApiKey::FindCoordinator), 0);
}

#[tokio::test]
async fn a_vacant_group_brings_its_offsets_with_topic_ids() {
    let bench = Bench::start(Scene {
        groups: vec![listed("g", "Classic", "Empty")],
        offsets: BTreeMap::from([("g", vec![("t", 0, 5), ("t", 1, 6), ("gone", 0, 7), ("u", 3, -1)])]),
        ..Scene::default()
    })
    .await;
    let group = bench.upstream.inspect("g").await.unwrap();
    let expected = vec![offset("t", 1, 0, 5), offset("t", 1, 1, 6), offset("gone", 0, 0, 7)];
    assert_eq!(
        group,
        UpstreamGroup {
            presence: Presence::Vacant,
            offsets: expected
        }
    );
}

#[tokio::test]
async fn a_live_group_says_who_and_brings_no_offsets() {
    let bench = Bench::start(Scene {
        groups: vec![listed("other", "Classic", "Stable"), listed("g", "Consumer", "Stable")],
        offsets: BTreeMap::from([("g", vec![("t", 0, 5)])]),
        ..Scene::default()
    })
    .await;
    let group = bench.upstream.inspect("g").await.unwrap();
    let presence = Presence::Live {
        group_type: "consumer".into(),
        protocol_type: "consumer".into(),
        state: "Stable".into(),
    };
    assert_eq!(
        group,
        UpstreamGroup {
            presence,
            offsets: Vec::new()
        }
    );
}

#[tokio::test]
async fn inspections_of_the_same_moment_share_a_list() {
    let bench = Bench::start(Scene {
        groups: vec![listed("g-7", "Share", "Empty")],
        ..Scene::default()
    })
    .await;
    let mut inspections = tokio::task::JoinSet::new();
    for number in 0..100 {
        let upstream = bench.upstream.clone();
        inspections.spawn(async move { (number, upstream.inspect(&format!("g-{number}")).await.unwrap().presence) });
    }
    while let Some(inspected) = inspections.join_next().await {
        let (number, presence) = inspected.unwrap();
        let share = Presence::OtherType {
            group_type: "share".into(),
        };
        assert_eq!(presence, if number == 7 { share } else { Presence::Vacant });
    }
    let lists = bench.broker.count(ApiKey::ListGroups);
    assert!(lists <= 4, "{lists} lists");
}

#[tokio::test]
async fn groups_of_a_node_that_cannot_list_them_are_described() {
    let bench = Bench::start(Scene {
        lists_nothing: true,
        groups: vec![
            listed("busy", "", "Stable"),
            listed("left", "", "Empty"),
            listed("shared", "share", "Empty"),
        ],
        ..Scene::default()
    })
    .await;
    let presence = async |group| bench.upstream.inspect(group).await.unwrap().presence;
    let share = Presence::OtherType {
        group_type: "share".into(),
    };
    assert!(matches!(presence("busy").await, Presence::Live { .. }));
    assert_eq!(presence("left").await, Presence::Vacant);
    assert_eq!(presence("unknown").await, Presence::Vacant);
    assert_eq!(presence("shared").await, share);
}

#[tokio::test]
async fn a_coordinator_that_moved_or_loads_is_asked_for_again() {
    for error in [ErrorCode::NOT_COORDINATOR, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS] {
        let bench = Bench::start(Scene {
            fetch_errors: vec![error, error],
            ..Scene::default()
        })
        .await;
        assert_eq!(bench.upstream.inspect("g").await.unwrap().presence, Presence::Vacant);
        assert_eq!(bench.broker.count(ApiKey::OffsetFetch), 4);
        let asked_upstream = bench.broker.count(ApiKey::FindCoordinator) > 0;
        assert_eq!(asked_upstream, error == ErrorCode::NOT_COORDINATOR);
    }
}

#[tokio::test]
async fn a_group_that_moves_after_the_list_is_looked_at_again() {
    // The first fetch proves it is there, the second finds it gone: the list between them proves nothing.
    let errors = vec![ErrorCode::NONE, ErrorCode::NOT_COORDINATOR];
    let bench = Bench::start(Scene {
        fetch_errors: errors,
        ..Scene::default()
    })
    .await;
    assert_eq!(bench.upstream.inspect("g").await.unwrap().presence, Presence::Vacant);
    assert_eq!(bench.broker.count(ApiKey::ListGroups), 2);
}

#[tokio::test]
async fn a_cluster_without_groups_yet_is_asked_for_the_coordinator() {
    let bench = Bench::start(Scene {
        leaders: Vec::new(),
        ..Scene::default()
    })
    .await;
    assert_eq!(bench.upstream.inspect("g").await.unwrap().presence, Presence::Vacant);
    assert_eq!(bench.broker.count(ApiKey::FindCoordinator), 1);
}

#[tokio::test]
async fn an_open_transaction_is_waited_for() {
    let offsets = BTreeMap::from([("g", vec![("t", 0, 5)])]);
    let bench = Bench::start(Scene {
        offsets: offsets.clone(),
        unstable: 2,
        ..Scene::default()
    })
    .await;
    assert_eq!(
        bench.upstream.inspect("g").await.unwrap().offsets,
        [offset("t", 1, 0, 5)]
    );

    let bench = Bench::start(Scene {
        offsets,
        unstable: usize::MAX,
        ..Scene::default()
    })
    .await;
    assert_eq!(bench.failure("g").await, "a transaction with an offset of t-0 is open");
}

#[tokio::test]
async fn an_offset_that_only_an_open_transaction_has_is_waited_for() {
    let bench = Bench::start(Scene {
        pending: Some(("u", 0, 2)),
        ..Scene::default()
    })
    .await;
    assert_eq!(bench.upstream.inspect("g").await.unwrap().presence, Presence::Vacant);
    // Is it yours, everything by name, and after two that were unstable all there is.
    assert_eq!(bench.broker.count(ApiKey::OffsetFetch), 7);

    let bench = Bench::start(Scene {
        pending: Some(("u", 0, usize::MAX)),
        ..Scene::default()
    })
    .await;
    assert_eq!(bench.failure("g").await, "a transaction with an offset of u-0 is open");
}

#[tokio::test]
async fn many_partitions_are_asked_for_in_parts() {
    let bench = Bench::start(Scene {
        pending: Some(("more-24", 999, 1)),
        more_topics: 25,
        ..Scene::default()
    })
    .await;
    assert_eq!(bench.upstream.inspect("g").await.unwrap().presence, Presence::Vacant);
}

#[tokio::test]
async fn missing_rights_are_failures_that_name_them() {
    let errors = vec![ErrorCode::GROUP_AUTHORIZATION_FAILED];
    let bench = Bench::start(Scene {
        fetch_errors: errors,
        ..Scene::default()
    })
    .await;
    let reason = bench.failure("g").await;
    assert!(
        reason.contains("grant Convoke's own user Describe on every group"),
        "{reason}"
    );

    let bench = Bench::start(Scene {
        hides_topics: true,
        ..Scene::default()
    })
    .await;
    let reason = bench.failure("g").await;
    assert!(reason.contains("grant it Describe on every topic"), "{reason}");
}

#[tokio::test]
async fn an_upstream_that_is_gone_is_a_failure_and_not_a_vacant_group() {
    let bench = Bench::start(Scene::default()).await;
    let Bench {
        broker,
        upstream,
        _shutdown,
    } = bench;
    drop(broker);
    let asked = Instant::now();
    let reason = upstream.inspect("g").await.unwrap_err().reason;
    assert!(reason.contains("cannot reach"), "{reason}");
    assert!(
        asked.elapsed() < DEADLINE,
        "there is nobody whose answer could be waited for"
    );
}
