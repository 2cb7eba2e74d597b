//! A stand-in for the assembled process, served by a real admin side.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use convoke::admin::{Admin, Readiness, Subject, SubjectFuture};
use convoke::coordinator::request::{ClassicGroupView, ComputationView, GroupView, MemberView, ShardView};
use convoke::coordinator::topics::{Topic, Topics};
use convoke::telemetry::metrics::Metrics;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

pub const ORDERS: Uuid = Uuid::from_u128(0xA);

#[derive(Default)]
pub struct StandIn {
    pub readiness: Mutex<Readiness>,
    pub views: Vec<Option<ShardView>>,
    pub metrics: Metrics,
    /// How often views were asked for.
    pub asked: AtomicUsize,
    /// What each of them waits for.
    pub gate: Option<Arc<Semaphore>>,
}

impl Subject for StandIn {
    fn readiness(&self) -> Readiness {
        self.readiness.lock().expect("not poisoned").clone()
    }

    fn views(&self) -> SubjectFuture<'_, Vec<Option<ShardView>>> {
        Box::pin(async {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if let Some(gate) = &self.gate {
                gate.acquire().await.expect("never closed").forget();
            }
            self.views.clone()
        })
    }

    fn topics(&self) -> Arc<Topics> {
        let mut topics = Topics::default();
        topics.insert(Topic {
            name: "orders".into(),
            id: ORDERS,
            partitions: 3,
            racks: 0,
        });
        Arc::new(topics)
    }

    fn metrics(&self, views: &[ShardView]) -> Result<String, String> {
        self.metrics.set_groups(views);
        self.metrics.render().map_err(|error| error.to_string())
    }
}

pub struct Running {
    pub address: SocketAddr,
    pub subject: Arc<StandIn>,
    _stop: DropGuard,
}

pub async fn start(subject: StandIn) -> Running {
    let admin = Admin::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await
        .expect("a free port");
    let (address, subject, stop) = (admin.address(), Arc::new(subject), CancellationToken::new());
    tokio::spawn(admin.serve(Arc::clone(&subject) as Arc<dyn Subject>, stop.clone()));
    Running {
        address,
        subject,
        _stop: stop.drop_guard(),
    }
}

/// Sends the text and reads until the server closes.
pub async fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("the admin side listens");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("the request is taken");
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    tokio::time::timeout(Duration::from_secs(30), read)
        .await
        .expect("an answer in time")
        .expect("an answer");
    String::from_utf8(answer).expect("text")
}

pub async fn get(address: SocketAddr, path: &str) -> (u16, String, String) {
    let answer = exchange(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
    )
    .await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .expect("a status");
    (status, head.to_ascii_lowercase(), body.to_owned())
}

pub fn view() -> ShardView {
    let assignment: &[u8] = &[0, 1, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0];
    ShardView {
        groups: vec![GroupView {
            group_id: "orders \"quoted\"".into(),
            group_type: "classic".into(),
            state: "Stable".into(),
            protocol_type: Some("consumer".into()),
            protocol_name: Some("range".into()),
            generation_id: 3,
            leader: Some("m-1".into()),
            state_since_ms: 1_700_000_000_000,
            members: vec![MemberView {
                member_id: "m-1".into(),
                group_instance_id: None,
                client_id: "c".into(),
                client_host: "/127.0.0.1".into(),
                session_timeout_ms: 45_000,
                rebalance_timeout_ms: 300_000,
                assignment: Bytes::from_static(assignment),
                parked: false,
                consumer: None,
            }],
            pending_members: 0,
            offsets: 4,
            classic: Some(ClassicGroupView {
                assigned_by: "coordinator",
                assignor: Some("sticky".into()),
                computation: Some(ComputationView {
                    assignor: "lag".into(),
                    member_id: Some("x".into()),
                    passed_over: vec!["y".into()],
                }),
                partitions_withheld: 2,
            }),
            consumer: None,
        }],
        externals: Vec::new(),
        parked_joins: 0,
        parked_syncs: 0,
    }
}
