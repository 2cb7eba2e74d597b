//! Handlers around a coordinator of four shards, a cluster of two nodes with two topics, and a scripted upstream.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable, Message, StrBytes};
use tokio::sync::{Mutex, watch};
use uuid::Uuid;

use crate::config::HostPort;
use crate::coordinator::group_patterns::GroupPatterns;
use crate::coordinator::input::{Presence, UpstreamGroup};
use crate::coordinator::request::Text;
use crate::coordinator::settings::Settings;
use crate::handler::{Answer, Caller, ClientUpstream, Decisions, GroupMemory, HandlerServices, handle};
use crate::runtime::{Coordinator, CoordinatorParts, GroupInspector, InspectionFuture, TopicChecker};
use crate::store::StateStore;
use crate::store::memory::MemoryStore;
use crate::telemetry::metrics::Metrics;
use crate::upstream::UpstreamError;
use crate::upstream::cluster::ClusterWatch;
use crate::upstream::cluster::{Cluster, NodeVersions, Topic, Topics};
use crate::wire::error_code::ErrorCode;
use crate::wire::frame::RequestHead;

pub(super) const ORDERS: Uuid = Uuid::from_u128(0xA);
pub(super) const PAYMENTS: Uuid = Uuid::from_u128(0xB);
/// No topic has it, which is known without asking.
pub(super) const NOWHERE: Uuid = Uuid::nil();
/// No topic can be called so, which is known without asking.
pub(super) const NO_TOPIC: &str = "no/where";
/// Whether there are such topics only the upstream knows, which cannot be asked.
pub(super) const UNCLEAR: Uuid = Uuid::from_u128(0xC);
pub(super) const UNCLEAR_NAME: &str = "unclear";

/// The shards of "a" to "d" among four; the node that lists each is 1, 2, 1, and for the last the lowest, 1.
const COORDINATORS: [i32; 4] = [1, 2, 1, -1];

/// Groups whose id starts so are live at the upstream, and so not ours.
pub(super) const LIVE: &str = "live-";
/// Groups whose id starts so are delegated by rule.
pub(super) const DELEGATED: &str = "delegated-";
/// Groups whose id starts so are assigned for by the coordinator.
pub(super) const ASSIGNED: &str = "assigned-";

/// Bytes that groups may keep.
pub(super) const GROUP_MEMORY_MAX: usize = 1024 * 1024;

struct Inspector;

impl TopicChecker for Inspector {
    fn check(&self, _topics: BTreeMap<Uuid, Text>) {}
}

impl GroupInspector for Inspector {
    fn inspect(&self, group_id: &Text) -> InspectionFuture {
        let presence = if group_id.starts_with(LIVE) {
            Presence::OtherType {
                group_type: Text::from("share"),
            }
        } else {
            Presence::Vacant
        };
        Box::pin(async move {
            Ok(UpstreamGroup {
                presence,
                offsets: Vec::new(),
            })
        })
    }
}

/// One upstream request of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) api_key: i16,
    pub(super) version: i16,
    pub(super) body: Bytes,
}

impl Asked {
    pub(super) fn decode<T: Decodable>(&self) -> T {
        T::decode(&mut self.body.clone(), self.version).expect("a request of ours")
    }
}

type Script = Box<dyn FnMut(&Asked) -> Option<Bytes> + Send>;

/// The client's own upstream connection.
pub(super) struct Upstream {
    script: Script,
    pub(super) asked: Vec<Asked>,
    /// Whether the request's frame was let go of.
    pub(super) let_go: bool,
}

impl Upstream {
    /// Nothing is to be asked.
    pub(super) fn unused() -> Self {
        Self::answering(|asked| panic!("nothing is to be asked, not {asked:?}"))
    }

    /// The connection is gone.
    pub(super) fn gone() -> Self {
        Self {
            script: Box::new(|_| None),
            asked: Vec::new(),
            let_go: false,
        }
    }

    pub(super) fn answering(mut script: impl FnMut(&Asked) -> Bytes + Send + 'static) -> Self {
        Self {
            script: Box::new(move |asked| Some(script(asked))),
            asked: Vec::new(),
            let_go: false,
        }
    }
}

impl ClientUpstream for Upstream {
    fn let_go_of_request(&mut self) {
        self.let_go = true;
    }

    async fn call(&mut self, api_key: i16, version: i16, body: Bytes) -> Result<Bytes, UpstreamError> {
        let asked = Asked { api_key, version, body };
        self.asked.push(asked.clone());
        (self.script)(&asked).ok_or(UpstreamError::Closed {
            address: "127.0.0.1:9092".to_owned(),
        })
    }
}

/// Everything that a request meets.
pub(super) struct Setup {
    pub(super) services: HandlerServices,
    pub(super) caller: Caller,
    /// What is known of the connection's user.
    pub(super) decisions: Mutex<Decisions>,
    /// Of connections that last as long as this.
    pub(super) apart: Mutex<Vec<Decisions>>,
}

/// What `Setup` is to be like.
pub(super) struct Options {
    pub(super) store: Arc<dyn StateStore>,
    /// The api ranges of both nodes.
    pub(super) versions: BTreeMap<i16, (i16, i16)>,
    /// The second node's, where it differs.
    pub(super) second_versions: Option<BTreeMap<i16, (i16, i16)>>,
    pub(super) orders_id: Uuid,
    /// Whether topics have ids at all.
    pub(super) topic_ids: bool,
    pub(super) coordinators: Vec<i32>,
    /// Whether the nodes check ACLs.
    pub(super) authorizer: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            store: Arc::new(MemoryStore::new()),
            versions: BTreeMap::new(),
            second_versions: None,
            orders_id: ORDERS,
            topic_ids: true,
            coordinators: COORDINATORS.to_vec(),
            authorizer: false,
        }
    }
}

impl Setup {
    pub(super) async fn new() -> Self {
        let setup = Self::with(Options::default());
        setup.loaded().await;
        setup
    }

    pub(super) fn with(options: Options) -> Self {
        let metrics = Arc::new(Metrics::new());
        let cluster = cluster(&options);
        let coordinator = Coordinator::start(CoordinatorParts {
            store: options.store,
            inspector: Arc::new(Inspector),
            topic_checker: Arc::new(Inspector),
            topics: watch::channel(Arc::clone(&cluster.topics)).1,
            settings: Arc::new(Settings {
                group_initial_rebalance_delay_ms: 0,
                ..Settings::default()
            }),
            shards: 4,
            seed: 7,
            metrics: Arc::clone(&metrics),
        });
        Self {
            services: HandlerServices {
                coordinator,
                cluster: ClusterWatch::fixed(cluster),
                delegate: GroupPatterns::new(&[format!("{DELEGATED}*")]),
                assign: GroupPatterns::new(&[format!("{ASSIGNED}*")]),
                assignors: Arc::new([("lag-balanced".to_owned(), GroupPatterns::new(&["orders-*".to_owned()]))].into()),
                patterns: Arc::default(),
                group_memory: GroupMemory::new(GROUP_MEMORY_MAX, metrics.group_memory.clone()),
                metrics,
            },
            caller: Caller {
                client_id: Text::from("tester"),
                client_host: Text::from("/127.0.0.1"),
                node_id: Some(1),
            },
            decisions: Mutex::default(),
            apart: Mutex::default(),
        }
    }

    /// Another connection to the same.
    pub(super) fn another_connection(&self) -> Self {
        Self {
            services: self.services.clone(),
            caller: self.caller.clone(),
            decisions: Mutex::default(),
            apart: Mutex::default(),
        }
    }

    pub(super) async fn loaded(&self) {
        let mut state = self.services.coordinator.subscribe();
        let all = state.wait_for(|state| state.loaded == state.shards);
        all.await.expect("the shards live");
    }

    pub(super) async fn handle(&self, api_key: i16, version: i16, body: Bytes, upstream: &mut Upstream) -> Answer {
        let mut decisions = self.decisions.lock().await;
        self.handle_knowing(&mut decisions, (api_key, version), body, upstream)
            .await
    }

    /// The same on a connection of its own, which others need not wait for.
    pub(super) async fn handle_apart(&self, api_key: i16, version: i16, body: Bytes) -> Answer {
        let (mut decisions, mut upstream) = (Decisions::default(), Upstream::unused());
        let answer = self.handle_knowing(&mut decisions, (api_key, version), body, &mut upstream);
        let answer = answer.await;
        self.apart.lock().await.push(decisions);
        answer
    }

    async fn handle_knowing(
        &self,
        decisions: &mut Decisions,
        (api_key, api_version): (i16, i16),
        body: Bytes,
        upstream: &mut Upstream,
    ) -> Answer {
        let head = RequestHead {
            api_key,
            api_version,
            correlation_id: 1,
            client_id: None,
            body_offset: 0,
        };
        handle(&head, body, &self.caller, &self.services, decisions, upstream).await
    }

    /// The reply in the same version, and the error that the metrics count.
    pub(super) async fn exchange<T: Decodable>(
        &self,
        api_key: i16,
        version: i16,
        body: Bytes,
        upstream: &mut Upstream,
    ) -> (T, ErrorCode) {
        match self.handle(api_key, version, body, upstream).await {
            Answer::Reply(body, error) => (decode(body.freeze(), version), error),
            other => panic!("api {api_key} v{version}: {other:?}"),
        }
    }

    /// The reply to a request that needs no upstream.
    pub(super) async fn ask<T: Decodable>(&self, api_key: i16, version: i16, request: &impl Encodable) -> T {
        let body = encode(request, version);
        self.exchange(api_key, version, body, &mut Upstream::unused()).await.0
    }
}

pub(super) fn encode(message: &impl Encodable, version: i16) -> Bytes {
    let mut body = BytesMut::new();
    message.encode(&mut body, version).expect("well-formed");
    body.freeze()
}

pub(super) fn decode<T: Decodable>(mut body: Bytes, version: i16) -> T {
    let message = T::decode(&mut body, version).expect("well-formed");
    assert!(body.is_empty(), "{} bytes are left over", body.len());
    message
}

pub(super) fn versions<T: Message>() -> std::ops::RangeInclusive<i16> {
    T::VERSIONS.min..=T::VERSIONS.max
}

pub(super) fn string(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn cluster(options: &Options) -> Cluster {
    let mut cluster = Cluster {
        coordinators: options.coordinators.clone(),
        ..Cluster::default()
    };
    // One that is not in the picture (any more) may have told, too.
    cluster.authorizers = [1, 2, 3].map(|node_id| (node_id, options.authorizer)).into();
    for node_id in [1, 2] {
        let address = HostPort {
            host: "127.0.0.1".to_owned(),
            port: 9092,
        };
        cluster.nodes.insert(node_id, address);
        let versions = NodeVersions {
            apis: match &options.second_versions {
                Some(versions) if node_id == 2 => versions.clone(),
                _ => options.versions.clone(),
            },
            ..NodeVersions::default()
        };
        cluster.versions.insert(node_id, Arc::new(versions));
    }
    let mut topics = Topics::default();
    for (name, id, partitions) in [("orders", options.orders_id, 3), ("payments", PAYMENTS, 1)] {
        topics.insert(Topic {
            name: Text::from(name),
            id: if options.topic_ids { id } else { Uuid::nil() },
            partitions,
            racks: 0,
        });
    }
    cluster.topics = Arc::new(topics);
    cluster
}

/// Writes the compact forms of flexible versions, for what kafka-protocol does not write.
#[derive(Default)]
pub(super) struct Compact(BytesMut);

impl Compact {
    pub(super) fn len(mut self, len: usize) -> Self {
        assert!(len < 127, "one byte is enough for a test");
        self.0.put_u8(u8::try_from(len + 1).expect("short"));
        self
    }

    pub(super) fn null(mut self) -> Self {
        self.0.put_u8(0);
        self
    }

    pub(super) fn text(self, text: &str) -> Self {
        let mut with_len = self.len(text.len());
        with_len.0.put_slice(text.as_bytes());
        with_len
    }

    pub(super) fn int32(mut self, value: i32) -> Self {
        self.0.put_i32(value);
        self
    }

    pub(super) fn int64(mut self, value: i64) -> Self {
        self.0.put_i64(value);
        self
    }

    pub(super) fn boolean(mut self, value: bool) -> Self {
        self.0.put_u8(u8::from(value));
        self
    }

    pub(super) fn uuid(mut self, value: Uuid) -> Self {
        self.0.put_slice(value.as_bytes());
        self
    }

    /// No tagged fields.
    pub(super) fn tags(mut self) -> Self {
        self.0.put_u8(0);
        self
    }

    pub(super) fn done(self) -> Bytes {
        self.0.freeze()
    }
}

/// A store that never loads.
pub(super) fn broken_store() -> Arc<MemoryStore> {
    let store = MemoryStore::new();
    store.fail_with(Some(crate::store::StoreError::Io {
        path: "state.redb".to_owned(),
        reason: "no space left on device".to_owned(),
    }));
    Arc::new(store)
}
