//! The proxy, assembled around an upstream that the test plays.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use convoke::config::{
    AdminConfig, Config, GroupsConfig, HostPort, LimitsConfig, ListenConfig, LogConfig, NodePorts, StoreConfig,
    UpstreamConfig,
};
use convoke::coordinator::group_patterns::GroupPatterns;
use convoke::coordinator::input::{Presence, UpstreamGroup};
use convoke::coordinator::request::Text;
use convoke::coordinator::settings::Settings;
use convoke::handler::{GroupMemory, HandlerServices};
use convoke::proxy;
use convoke::proxy::lanes::Lanes;
use convoke::proxy::listeners::Listeners;
use convoke::proxy::services::Services;
use convoke::proxy::stop::Stop;
use convoke::runtime::{Coordinator, CoordinatorParts, GroupInspector, InspectionFuture};
use convoke::store::memory::MemoryStore;
use convoke::telemetry::close_reason::CloseReason;
use convoke::telemetry::log::LogFormat;
use convoke::telemetry::metrics::Metrics;
use convoke::upstream::Upstream;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::mock::{Mock, NODE_ID};
use crate::raw::{Raw, soon};

pub const BUFFER: usize = 64 * 1024;
pub const FRAME_MAX: usize = 100 * 1024 * 1024;

/// Groups whose id starts so are nobody's at the upstream.
pub const VACANT: &str = "vacant";

/// Never answers for any other group, so that whoever meets one waits.
struct Silent;

impl GroupInspector for Silent {
    fn inspect(&self, group_id: &Text) -> InspectionFuture {
        if !group_id.starts_with(VACANT) {
            return Box::pin(std::future::pending());
        }
        let vacant = UpstreamGroup {
            presence: Presence::Vacant,
            offsets: Vec::new(),
        };
        Box::pin(std::future::ready(Ok(vacant)))
    }
}

/// The proxy, serving.
pub struct Fixture {
    pub mock: Mock,
    pub stop: Stop,
    pub listeners: Arc<Listeners>,
    bootstrap: SocketAddr,
    node: SocketAddr,
    metrics: Arc<Metrics>,
    _services: Arc<Services>,
    _upstream: DropGuard,
}

impl Fixture {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// With another configuration than usual.
    pub async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::behind(Mock::start().await, change).await
    }

    /// In front of this upstream.
    pub async fn behind(mock: Mock, change: impl FnOnce(&mut Config)) -> Self {
        // Longer than any test: joins stay parked.
        let settings = Settings {
            group_initial_rebalance_delay_ms: 600_000,
            ..Settings::default()
        };
        Self::assembled(mock, settings, change).await
    }

    /// With groups that have these settings.
    pub async fn grouping(settings: Settings) -> Self {
        Self::assembled(Mock::start().await, settings, |_| {}).await
    }

    async fn assembled(mock: Mock, settings: Settings, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config(mock.address);
        change(&mut config);
        let shutdown = CancellationToken::new();
        let metrics = Arc::new(Metrics::new());
        let listeners = Listeners::bind(&config.listen, Box::new(|_| {})).expect("a free port");
        let (upstream, _deleted) = Upstream::start(&config.upstream, config.limits.frame_max, &[], &shutdown);
        let cluster = soon("the first picture", upstream.cluster().ready()).await;
        assert!(listeners.follow(&cluster).is_empty());
        let ip = listeners.bootstrap().ip();
        let node = listeners.advertised(NODE_ID, ip).expect("the node has a listener");
        let coordinator = Coordinator::start(CoordinatorParts {
            store: Arc::new(MemoryStore::new()),
            inspector: Arc::new(Silent),
            topic_checker: Arc::new(upstream.clone()),
            topics: upstream.cluster().topics(),
            settings: Arc::new(settings),
            shards: 1,
            seed: 1,
            metrics: Arc::clone(&metrics),
        });
        let mut states = coordinator.subscribe();
        let loaded = states.wait_for(|state| state.loaded == state.shards);
        soon("the coordinator's loading", loaded).await.expect("it runs");
        let handlers = HandlerServices {
            coordinator,
            cluster: upstream.cluster().clone(),
            delegate: GroupPatterns::new(&config.groups.delegate),
            assign: GroupPatterns::default(),
            assignors: Arc::default(),
            patterns: Arc::default(),
            group_memory: GroupMemory::new(config.limits.group_memory_max, metrics.group_memory.clone()),
            metrics: Arc::clone(&metrics),
        };
        let stop = Stop::new();
        let bootstrap = listeners.bootstrap();
        let listeners = Arc::new(listeners);
        let services = Services::new(
            &config,
            Arc::clone(&metrics),
            handlers,
            Arc::clone(&listeners),
            Lanes::start().expect("threads"),
            stop.clone(),
        );
        let services = Arc::new(services);
        proxy::serve(&services);
        Self {
            mock,
            stop,
            listeners,
            bootstrap,
            node: SocketAddr::new(ip, node.port),
            metrics,
            _services: services,
            _upstream: shutdown.drop_guard(),
        }
    }

    /// A client on the node's address.
    pub async fn client(&self) -> Raw {
        Raw::connect(self.node).await
    }

    /// A client on the bootstrap address.
    pub async fn bootstrap_client(&self) -> Raw {
        Raw::connect(self.bootstrap).await
    }

    pub const fn node(&self) -> SocketAddr {
        self.node
    }

    /// A client whose first request is up; the upstream's end of it, and the answer, still to be sent.
    pub async fn client_and_upstream(&mut self) -> (Raw, Raw) {
        let mut client = self.client().await;
        client.send(&crate::frames::list_offsets(0)).await;
        let mut upstream = self.mock.client().await;
        assert_eq!(upstream.frame().await, crate::frames::list_offsets(0));
        upstream.send(&crate::frames::offsets(0)).await;
        assert_eq!(client.frame().await, crate::frames::offsets(0));
        (client, upstream)
    }

    /// A client that waits for an answer while something happens to another one.
    pub async fn bystander(&mut self) -> Bystander {
        let (mut client, mut upstream) = self.client_and_upstream().await;
        client.send(&crate::frames::list_offsets(1)).await;
        assert_eq!(upstream.frame().await, crate::frames::list_offsets(1));
        Bystander { client, upstream }
    }

    /// The value of a metric, as `/metrics` shows it.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.metrics.render().expect("every metric is text");
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().expect("a number"))
    }

    /// Waits until a connection has ended for this reason, and only for this one.
    pub async fn ended(&self, reason: CloseReason) {
        let counted =
            |reason: CloseReason| self.metric(&format!("convoke_connections_closed_total{{reason=\"{reason}\"}}"));
        soon("the end of a connection", async {
            while CloseReason::ALL.iter().all(|reason| counted(*reason) == 0.0) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
        let all: Vec<_> = CloseReason::ALL
            .into_iter()
            .filter(|reason| counted(*reason) > 0.0)
            .collect();
        assert_eq!(all, [reason]);
    }
}

/// A client with a request under way, and the upstream's end of its connection.
pub struct Bystander {
    client: Raw,
    upstream: Raw,
}

impl Bystander {
    /// It gets its answer, and an answer to all that it asks now.
    pub async fn goes_on(mut self) {
        self.upstream.send(&crate::frames::offsets(1)).await;
        assert_eq!(self.client.frame().await, crate::frames::offsets(1));
        self.client.send(&crate::frames::heartbeat(2)).await;
        assert_eq!(crate::frames::correlation_id(&self.client.frame().await), 2);
        self.client.send(&crate::frames::list_offsets(3)).await;
        assert_eq!(self.upstream.frame().await, crate::frames::list_offsets(3));
        self.upstream.send(&crate::frames::offsets(3)).await;
        assert_eq!(self.client.frame().await, crate::frames::offsets(3));
    }
}

fn config(upstream: SocketAddr) -> Config {
    let host_port = |address: SocketAddr| HostPort {
        host: address.ip().to_string(),
        port: address.port(),
    };
    Config {
        upstream: UpstreamConfig {
            bootstrap: vec![host_port(upstream)],
            sasl: None,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(5),
            metadata_refresh: Duration::from_secs(60),
        },
        listen: ListenConfig {
            bootstrap: HostPort {
                host: "127.0.0.1".to_owned(),
                port: 0,
            },
            nodes: NodePorts::Ephemeral,
            advertise: None,
        },
        admin: AdminConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        },
        store: StoreConfig { data: "unused".into() },
        groups: GroupsConfig {
            delegate: Vec::new(),
            assign: Vec::new(),
        },
        assignors: Vec::new(),
        settings: BTreeMap::new(),
        limits: LimitsConfig {
            frame_max: FRAME_MAX,
            owned_request_max: 1024 * 1024,
            owned_memory_max: 2 * 1024 * 1024,
            group_memory_max: 16 * 1024 * 1024,
            connections_max: 100,
            connections_max_per_ip: 100,
            idle_timeout: Duration::from_secs(600),
            buffer: BUFFER,
            pipeline_max: 64,
            assignor_metadata_max: 64 * 1024,
        },
        drain_timeout: Duration::from_secs(10),
        log: LogConfig {
            filter: "warn".to_owned(),
            format: LogFormat::Text,
        },
    }
}
