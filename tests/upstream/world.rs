//! Our own client in front of a broker, and how tests wait.

use std::future::Future;
use std::time::Duration;

use convoke::config::{HostPort, SaslConfig, UpstreamConfig};
use convoke::coordinator::input::DeletedTopic;
use convoke::upstream::Upstream;
use convoke::upstream::cluster::{Cluster, ClusterWatch};
use convoke_support::Result;
use convoke_support::kafka::Kafka;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The broker lines that are supported.
pub fn broker_versions() -> [&'static str; 3] {
    ["3.8.1", "4.1.1", "4.4.0"]
}

/// Long enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A client of ours with a runtime of its own.
pub struct World {
    runtime: Runtime,
    pub upstream: Upstream,
    pub deleted: Mutex<mpsc::Receiver<Vec<DeletedTopic>>>,
    shutdown: CancellationToken,
}

impl World {
    pub fn new(kafka: &Kafka, sasl: Option<SaslConfig>) -> Self {
        Self::at(&kafka.bootstrap(), sasl)
    }

    pub fn at(bootstrap: &str, sasl: Option<SaslConfig>) -> Self {
        let addresses = bootstrap.split(',').map(|address| {
            let (host, port) = address.split_once(':').expect("host:port");
            HostPort {
                host: host.to_owned(),
                port: port.parse().expect("a port"),
            }
        });
        let config = UpstreamConfig {
            bootstrap: addresses.collect(),
            sasl,
            connect_timeout: Duration::from_secs(3),
            request_timeout: Duration::from_secs(10),
            metadata_refresh: Duration::from_secs(1),
        };
        let runtime = Runtime::new().expect("a runtime");
        let shutdown = CancellationToken::new();
        let (upstream, deleted) = {
            let _inside = runtime.enter();
            Upstream::start(&config, 64 << 20, &[], &shutdown)
        };
        Self {
            runtime,
            upstream,
            deleted: Mutex::new(deleted),
            shutdown,
        }
    }

    pub fn cluster(&self) -> &ClusterWatch {
        self.upstream.cluster()
    }

    pub fn run<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime.block_on(work)
    }

    /// Waits until the picture of the cluster is as wanted.
    pub fn wait(&self, what: &str, wanted: impl Fn(&Cluster) -> bool) -> Result<()> {
        self.run(async {
            let mut changes = self.cluster().subscribe();
            let seen = changes.wait_for(|_| wanted(&self.cluster().snapshot()));
            if timeout(PATIENCE, seen).await.is_err() {
                let state = self.cluster().state();
                return Err(format!("the picture never showed {what}: {state:?}").into());
            }
            Ok(())
        })
    }

    pub fn next_deletion(&self) -> Result<Vec<DeletedTopic>> {
        self.run(async {
            let mut deleted = self.deleted.lock().await;
            let topics = timeout(PATIENCE, deleted.recv())
                .await
                .map_err(|_| "no deletion was confirmed")?;
            topics.ok_or_else(|| "the watcher ended".into())
        })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
