//! The watcher and lookups against scripted brokers on loopback.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::describe_configs_response::{DescribeConfigsResourceResult, DescribeConfigsResult};
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, DescribeConfigsRequest, DescribeConfigsResponse, MetadataRequest,
};
use kafka_protocol::protocol::StrBytes;
use tokio::time::{Instant, timeout};

use super::*;
use crate::upstream::mock::{
    Asked, MockBroker, Reply, api_versions, broker, config, dialer, id, metadata, text, topic, topic_error,
};
use crate::wire::error_code::ErrorCode;

const PATIENCE: Duration = Duration::from_secs(20);

/// What the mock cluster consists of; tests change it while it runs.
#[derive(Default)]
struct Scene {
    nodes: Mutex<Vec<(i32, HostPort)>>,
    topics: Mutex<Vec<MetadataResponseTopic>>,
    cluster_id: Mutex<Option<&'static str>>,
    dead: AtomicBool,
    authorizer: Mutex<&'static str>,
}

impl Scene {
    fn set_topics(&self, topics: Vec<MetadataResponseTopic>) {
        *self.topics.lock().unwrap() = topics;
    }

    fn answer(&self, asked: &Asked) -> Reply {
        if self.dead.load(Ordering::Relaxed) {
            return Reply::Close;
        }
        if asked.is(ApiKey::DescribeConfigs) {
            return self.authorizer(asked);
        }
        if !asked.is(ApiKey::Metadata) {
            return api_versions(asked);
        }
        let request: MetadataRequest = asked.decode();
        assert!(!request.allow_auto_topic_creation);
        let known = self.topics.lock().unwrap().clone();
        let topics = match request.topics {
            None => known,
            Some(wanted) => wanted
                .iter()
                .map(|wanted| self.one(&known, wanted.name.as_deref(), wanted.topic_id))
                .collect(),
        };
        let nodes = self.nodes.lock().unwrap();
        let brokers = nodes.iter().map(|(id, address)| broker(*id, address)).collect();
        let mut answer = metadata(brokers, topics);
        if let Some(id) = *self.cluster_id.lock().unwrap() {
            answer.cluster_id = Some(text(id));
        }
        asked.answer(&answer)
    }

    fn authorizer(&self, asked: &Asked) -> Reply {
        let request: DescribeConfigsRequest = asked.decode();
        let asked_for = request.resources[0].configuration_keys.as_ref();
        assert_eq!(asked_for.map(Vec::len), Some(1));
        let config = DescribeConfigsResourceResult::default()
            .with_name(text("authorizer.class.name"))
            .with_value(Some(text(*self.authorizer.lock().unwrap())));
        let result = DescribeConfigsResult::default().with_configs(vec![config]);
        asked.answer(&DescribeConfigsResponse::default().with_results(vec![result]))
    }

    fn one(&self, known: &[MetadataResponseTopic], name: Option<&StrBytes>, topic_id: Uuid) -> MetadataResponseTopic {
        let same = |topic: &&MetadataResponseTopic| match name {
            Some(name) => topic.name.as_ref().is_some_and(|known| known.as_str() == name.as_str()),
            None => topic.topic_id == topic_id,
        };
        known.iter().find(same).cloned().unwrap_or_else(|| match name {
            Some(name) => topic_error(Some(name.as_str()), Uuid::nil(), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            None => topic_error(None, topic_id, ErrorCode::UNKNOWN_TOPIC_ID),
        })
    }
}

/// A watch in front of one mock broker, node 1.
struct Bench {
    scene: Arc<Scene>,
    broker: MockBroker,
    watch: ClusterWatch,
    deleted: mpsc::Receiver<Vec<DeletedTopic>>,
    _shutdown: tokio_util::sync::DropGuard,
}

fn watch(
    bootstrap: Vec<HostPort>,
) -> (
    ClusterWatch,
    mpsc::Receiver<Vec<DeletedTopic>>,
    tokio_util::sync::DropGuard,
) {
    let shutdown = CancellationToken::new();
    let (watch, deleted) = ClusterWatch::start(&config(bootstrap), Arc::new(Pool::new(dialer(None))), &shutdown);
    (watch, deleted, shutdown.drop_guard())
}

async fn scene_broker(scene: &Arc<Scene>, port: u16) -> MockBroker {
    let scene = Arc::clone(scene);
    MockBroker::start_at(port, move |asked| scene.answer(asked)).await
}

impl Bench {
    async fn start(topics: Vec<MetadataResponseTopic>) -> Self {
        let scene = Arc::new(Scene::default());
        scene.set_topics(topics);
        let broker = scene_broker(&scene, 0).await;
        *scene.nodes.lock().unwrap() = vec![(1, broker.address.clone())];
        let (watch, deleted, shutdown) = watch(vec![broker.address.clone()]);
        timeout(PATIENCE, watch.ready()).await.unwrap();
        Self {
            scene,
            broker,
            watch,
            deleted,
            _shutdown: shutdown,
        }
    }

    async fn until(&self, wanted: impl Fn(&Cluster) -> bool) {
        let mut changes = self.watch.subscribe();
        let seen = changes.wait_for(|_| wanted(&self.watch.snapshot()));
        timeout(PATIENCE, seen)
            .await
            .expect("the picture never was as wanted")
            .unwrap();
    }

    /// Asks for refreshes until one that was asked for now has been answered.
    async fn refresh(&self) {
        let before = self.broker.count(ApiKey::Metadata);
        self.watch.request_refresh();
        wait_until(|| self.broker.count(ApiKey::Metadata) > before).await;
    }

    async fn next_deletion(&mut self) -> Vec<(String, Uuid)> {
        let deleted = timeout(PATIENCE, self.deleted.recv())
            .await
            .expect("no deletion")
            .unwrap();
        deleted.iter().map(|topic| (topic.name.to_string(), topic.id)).collect()
    }
}

/// For what has no event: reads until it is so.
async fn wait_until(wanted: impl Fn() -> bool) {
    let waiting = async {
        while !wanted() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it never came to be");
}

#[tokio::test]
async fn the_next_bootstrap_address_is_tried_when_the_first_is_down() {
    let scene = Arc::new(Scene::default());
    let broker = scene_broker(&scene, 0).await;
    *scene.nodes.lock().unwrap() = vec![(5, broker.address.clone())];
    let closed = HostPort {
        host: "127.0.0.1".into(),
        port: 1,
    };
    let (watch, _deleted, _shutdown) = watch(vec![closed, broker.address.clone()]);
    let cluster = timeout(PATIENCE, watch.ready()).await.unwrap();
    assert_eq!(cluster.nodes[&5], broker.address);
    assert_eq!(cluster.versions[&5].apis[&18], (0, 5));
    let state = watch.state();
    assert!(state.reachable && state.last_error.is_none());
    assert_eq!(state.nodes_connected, 1);
}

#[tokio::test]
async fn a_broker_that_never_answers_holds_nobody_up_for_longer_than_the_time_out() {
    let silent = MockBroker::start(|asked| {
        if asked.is(ApiKey::Metadata) {
            Reply::Silence
        } else {
            api_versions(asked)
        }
    })
    .await;
    let scene = Arc::new(Scene::default());
    let broker = scene_broker(&scene, 0).await;
    *scene.nodes.lock().unwrap() = vec![(1, broker.address.clone())];
    let (watch, _deleted, _shutdown) = watch(vec![silent.address.clone(), broker.address.clone()]);
    timeout(PATIENCE, watch.ready()).await.unwrap();
    assert!(watch.state().failures > 0);
}

#[tokio::test]
async fn refreshes_that_are_asked_for_together_make_one() {
    let bench = Bench::start(Vec::new()).await;
    bench.refresh().await;
    let before = bench.broker.count(ApiKey::Metadata);
    let started = Instant::now();
    for _ in 0..100 {
        bench.watch.request_refresh();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let asked = bench.broker.count(ApiKey::Metadata) - before;
    let at_most = 2 + started.elapsed().as_millis() / 250;
    assert!(
        asked >= 1 && asked as u128 <= at_most,
        "{asked} refreshes, at most {at_most} expected"
    );
}

#[tokio::test]
async fn a_picture_that_is_the_same_is_not_published_again() {
    let bench = Bench::start(vec![topic("t", id(1), &[1])]).await;
    let mut changes = bench.watch.subscribe();
    changes.mark_unchanged();
    bench.refresh().await;
    bench.refresh().await;
    assert!(!changes.has_changed().unwrap());
    bench.scene.set_topics(vec![topic("t", id(1), &[1, 1])]);
    bench.watch.request_refresh();
    timeout(PATIENCE, changes.changed()).await.unwrap().unwrap();
    assert_eq!(bench.watch.snapshot().topics.by_name["t"].partitions, 2);
}

#[tokio::test]
async fn a_deleted_topic_is_handed_over_once_it_is_certain() {
    let mut bench = Bench::start(vec![topic("t", id(1), &[1]), topic("u", id(2), &[1])]).await;
    bench.scene.set_topics(vec![topic("u", id(2), &[1])]);
    bench.watch.request_refresh();
    assert_eq!(bench.next_deletion().await, [("t".to_owned(), id(1))]);
}

#[tokio::test]
async fn a_topic_under_another_id_is_a_deletion_of_the_old_one() {
    let mut bench = Bench::start(vec![topic("t", id(1), &[1])]).await;
    bench.scene.set_topics(vec![topic("t", id(9), &[1])]);
    bench.watch.request_refresh();
    assert_eq!(bench.next_deletion().await, [("t".to_owned(), id(1))]);
    assert_eq!(bench.watch.snapshot().topics.by_name["t"].id, id(9));
}

#[tokio::test]
async fn a_topic_that_went_before_the_start_is_handed_over_when_somebody_asks() {
    let mut bench = Bench::start(vec![topic("t", id(9), &[1]), topic("u", id(2), &[1])]).await;
    let stored = [(id(1), "t"), (id(2), "u"), (id(3), "gone"), (id(0), "none")];
    bench
        .watch
        .check_topics(stored.map(|(id, name)| (id, name.into())).into());
    let gone = [("t".to_owned(), id(1)), ("gone".to_owned(), id(3))];
    assert_eq!(bench.next_deletion().await, gone);
    // Asked for again it is told again: whoever asks may have lost what it heard.
    bench.watch.check_topics([(id(3), "gone".into())].into());
    assert_eq!(bench.next_deletion().await, gone[1..]);
}

#[tokio::test]
async fn topics_are_looked_for_that_were_asked_for_before_the_upstream_was_there() {
    let scene = Arc::new(Scene::default());
    scene.set_topics(vec![topic("t", id(1), &[1])]);
    scene.dead.store(true, Ordering::Relaxed);
    let broker = scene_broker(&scene, 0).await;
    *scene.nodes.lock().unwrap() = vec![(1, broker.address.clone())];
    let (watch, mut deleted, _shutdown) = watch(vec![broker.address.clone()]);
    watch.check_topics([(id(1), "t".into()), (id(2), "gone".into())].into());
    scene.dead.store(false, Ordering::Relaxed);
    let deleted = timeout(PATIENCE, deleted.recv()).await.unwrap().unwrap();
    assert_eq!(deleted.iter().map(|topic| topic.id).collect::<Vec<_>>(), [id(2)]);
}

#[tokio::test]
async fn a_topic_that_may_only_be_hidden_is_not_handed_over_when_somebody_asks() {
    let mut bench = Bench::start(Vec::new()).await;
    let hidden = topic_error(None, id(1), ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    bench.scene.set_topics(vec![hidden]);
    bench
        .watch
        .check_topics([(id(1), "hidden".into()), (id(2), "gone".into())].into());
    assert_eq!(bench.next_deletion().await, [("gone".to_owned(), id(2))]);
    bench.refresh().await;
    bench.refresh().await;
    assert!(bench.deleted.try_recv().is_err());
}

#[tokio::test]
async fn a_topic_that_a_lookup_found_anew_is_a_deletion_of_the_old_one() {
    let mut bench = Bench::start(vec![topic("t", id(1), &[1])]).await;
    bench.scene.set_topics(vec![topic("t", id(9), &[1])]);
    assert!(bench.watch.find_topic_by_id(id(9)).await.unwrap().is_some());
    assert!(bench.watch.snapshot().topics.by_id(&id(1)).is_none());
    assert_eq!(bench.next_deletion().await, [("t".to_owned(), id(1))]);
}

#[tokio::test]
async fn topics_that_fall_out_of_the_list_but_are_still_there_are_kept() {
    let scene = Arc::new(Scene::default());
    let all = vec![topic("t", id(1), &[1]), topic("hidden", id(2), &[1])];
    scene.set_topics(all.clone());
    let partial = Arc::new(AtomicBool::new(false));
    let (answering, lists_nothing) = (Arc::clone(&scene), Arc::clone(&partial));
    let broker = MockBroker::start(move |asked: &Asked| {
        let lists_all = asked.is(ApiKey::Metadata) && asked.decode::<MetadataRequest>().topics.is_none();
        if !lists_nothing.load(Ordering::Relaxed) {
            return answering.answer(asked);
        }
        if lists_all {
            let nodes = answering.nodes.lock().unwrap();
            return asked.answer(&metadata(vec![broker(nodes[0].0, &nodes[0].1)], Vec::new()));
        }
        answering.set_topics(vec![
            topic("t", id(1), &[1]),
            topic_error(None, id(2), ErrorCode::TOPIC_AUTHORIZATION_FAILED),
        ]);
        answering.answer(asked)
    })
    .await;
    *scene.nodes.lock().unwrap() = vec![(1, broker.address.clone())];
    let (watch, mut deleted, _shutdown) = watch(vec![broker.address.clone()]);
    timeout(PATIENCE, watch.ready()).await.unwrap();
    partial.store(true, Ordering::Relaxed);
    for _ in 0..4 {
        watch.request_refresh();
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    assert!(deleted.try_recv().is_err());
    assert_eq!(watch.find_topic("t").await.unwrap().map(|topic| topic.id), Some(id(1)));
}

#[tokio::test]
async fn lookups_of_the_same_moment_share_a_question_and_its_answer_counts_for_a_while() {
    let bench = Bench::start(Vec::new()).await;
    let before = bench.broker.count(ApiKey::Metadata);
    let mut lookups = tokio::task::JoinSet::new();
    for number in 0..200 {
        let watch = bench.watch.clone();
        lookups.spawn(async move { watch.find_topic(&format!("missing-{}", number % 4)).await });
    }
    while let Some(found) = lookups.join_next().await {
        assert_eq!(found.unwrap().unwrap(), None);
    }
    let asked = bench.broker.count(ApiKey::Metadata) - before;
    assert!(asked <= 4, "{asked} questions");
    let again = bench.watch.find_topic("missing-0").await.unwrap();
    assert_eq!(again, None);
    assert_eq!(bench.broker.count(ApiKey::Metadata) - before, asked);
}

#[tokio::test]
async fn a_new_topic_is_found_by_name_and_by_id_and_joins_the_picture() {
    let bench = Bench::start(Vec::new()).await;
    bench
        .scene
        .set_topics(vec![topic("new", id(3), &[1]), topic("other", id(4), &[1, 1])]);
    let new = bench.watch.find_topic("new").await.unwrap().unwrap();
    assert_eq!((new.id, new.partitions), (id(3), 1));
    let other = bench.watch.find_topic_by_id(id(4)).await.unwrap().unwrap();
    assert_eq!(&*other.name, "other");
    bench.until(|cluster| cluster.topics.by_name.len() == 2).await;
}

#[tokio::test]
async fn a_partition_beyond_the_picture_is_asked_for() {
    let bench = Bench::start(vec![topic("t", id(1), &[1])]).await;
    let before = bench.broker.count(ApiKey::Metadata);
    assert!(bench.watch.find_partition("t", 0).await.unwrap().is_some());
    assert_eq!(bench.broker.count(ApiKey::Metadata), before);
    bench.scene.set_topics(vec![topic("t", id(1), &[1, 1, 1])]);
    let grown = bench.watch.find_partition("t", 2).await.unwrap().unwrap();
    assert_eq!(grown.partitions, 3);
}

#[tokio::test]
async fn names_that_cannot_exist_are_not_asked_for() {
    let bench = Bench::start(Vec::new()).await;
    let before = bench.broker.count(ApiKey::Metadata);
    let long = "x".repeat(250);
    for name in ["", ".", "..", "a b", "ü", long.as_str()] {
        assert_eq!(bench.watch.find_topic(name).await.unwrap(), None);
    }
    assert_eq!(bench.watch.find_topic_by_id(Uuid::nil()).await.unwrap(), None);
    assert_eq!(bench.broker.count(ApiKey::Metadata), before);
}

#[tokio::test]
async fn an_upstream_that_is_gone_is_an_error_and_not_a_missing_topic() {
    let bench = Bench::start(vec![topic("t", id(1), &[1])]).await;
    bench.scene.dead.store(true, Ordering::Relaxed);
    let found = bench.watch.find_topic("other").await;
    assert!(found.is_err(), "{found:?}");
    wait_until(|| !bench.watch.state().reachable).await;
    assert!(bench.watch.state().last_error.is_some());
    // What was known stays known.
    assert!(bench.watch.find_topic("t").await.unwrap().is_some());
    bench.scene.dead.store(false, Ordering::Relaxed);
    wait_until(|| bench.watch.state().reachable).await;
    assert_eq!(bench.watch.state().last_error, None);
}

#[tokio::test]
async fn another_cluster_behind_the_address_is_refused() {
    let mut bench = Bench::start(vec![topic("t", id(1), &[1])]).await;
    *bench.scene.cluster_id.lock().unwrap() = Some("cluster-2");
    bench.scene.set_topics(Vec::new());
    bench.watch.request_refresh();
    wait_until(|| !bench.watch.state().reachable).await;
    let error = bench.watch.state().last_error.unwrap();
    assert!(error.contains("belongs to cluster \"cluster-2\""), "{error}");
    assert!(bench.watch.is_other_cluster(), "nothing may be served now");
    assert!(bench.watch.snapshot().topics.by_name.contains_key("t"));
    assert!(bench.deleted.try_recv().is_err());
}

#[tokio::test]
async fn a_node_that_comes_back_upgraded_is_learnt_anew() {
    let bench = Bench::start(Vec::new()).await;
    let address = bench.broker.address.clone();
    let scene = Arc::clone(&bench.scene);
    let Bench {
        broker,
        watch,
        _shutdown,
        ..
    } = bench;
    broker.stop().await;
    let upgraded = move |asked: &Asked| {
        if !asked.is(ApiKey::ApiVersions) {
            return scene.answer(asked);
        }
        let api = |key, max| ApiVersion::default().with_api_key(key).with_max_version(max);
        asked.answer(&ApiVersionsResponse::default().with_api_keys(vec![api(3, 13), api(18, 9)]))
    };
    let _broker = MockBroker::start_at(address.port, upgraded).await;
    let mut changes = watch.subscribe();
    let learnt = changes.wait_for(|_| {
        watch
            .snapshot()
            .versions
            .get(&1)
            .is_some_and(|node| node.apis[&18].1 == 9)
    });
    timeout(PATIENCE, learnt).await.expect("never learnt").unwrap();
}

#[tokio::test]
async fn the_watch_of_tests_shows_what_it_was_given() {
    let mut cluster = Cluster::default();
    Arc::make_mut(&mut cluster.topics).insert(Topic {
        name: "t".into(),
        id: id(1),
        partitions: 1,
        racks: 0,
    });
    let watch = ClusterWatch::fixed(cluster.clone());
    assert_eq!(*watch.snapshot(), cluster);
    assert!(watch.find_topic("t").await.unwrap().is_some());
    assert!(watch.find_topic("u").await.is_err());
}

#[tokio::test]
async fn only_a_node_that_says_so_checks_no_access_and_its_word_holds_until_it_is_back() {
    let bench = Bench::start(Vec::new()).await;
    bench.until(|cluster| !cluster.checks_access(Some(1))).await;
    let cluster = bench.watch.snapshot();
    assert!(!cluster.checks_access(None), "no other node is known");
    assert!(cluster.checks_access(Some(2)), "nobody knows it");
    assert!(Cluster::default().checks_access(None));
    let Bench {
        scene,
        broker,
        watch,
        deleted: _deleted,
        _shutdown,
    } = bench;
    let port = broker.address.port;
    broker.stop().await;
    wait_until(|| !watch.state().reachable).await;
    assert!(!watch.snapshot().checks_access(Some(1)), "groups go on without it");
    *scene.authorizer.lock().unwrap() = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
    let _broker = scene_broker(&scene, port).await;
    let mut changes = watch.subscribe();
    let seen = changes.wait_for(|_| watch.snapshot().authorizers.get(&1) == Some(&true));
    timeout(PATIENCE, seen).await.expect("it is back").unwrap();
    assert!(watch.snapshot().checks_access(Some(1)) && watch.snapshot().checks_access(None));
}
