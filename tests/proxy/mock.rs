//! The upstream: connections of Convoke's own are answered by themselves, those of clients are handed to the test.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use convoke::wire::api::{APIS, DESCRIBE_CONFIGS, Route};
use kafka_protocol::messages::api_versions_response::{ApiVersion, ApiVersionsResponse};
use kafka_protocol::messages::describe_configs_response::{DescribeConfigsResourceResult, DescribeConfigsResult};
use kafka_protocol::messages::metadata_response::{MetadataResponse, MetadataResponseBroker};
use kafka_protocol::messages::{DescribeConfigsResponse, SaslAuthenticateResponse, SaslHandshakeResponse};
use kafka_protocol::protocol::{Encodable, StrBytes};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::frames::{self, API_VERSIONS, CLIENT_ID, SASL_AUTHENTICATE, SASL_HANDSHAKE};
use crate::raw::{Raw, soon};

/// The only node there is.
pub const NODE_ID: i32 = 1;
const METADATA: i16 = 3;
/// Where a request's client id begins, counted from the frame's first byte.
const CLIENT_ID_AT: usize = 14;

/// Node ids and addresses.
pub type Nodes = Arc<Mutex<BTreeMap<i32, SocketAddr>>>;

/// Requests for Metadata, whole.
pub type Questions = Arc<Mutex<Vec<Vec<u8>>>>;

/// The value of a setting, to be set before Convoke reads it.
pub type Authorizer = Arc<Mutex<&'static str>>;

/// A broker that does nothing by itself for clients.
#[derive(Debug)]
pub struct Mock {
    pub address: SocketAddr,
    /// What it tells Convoke of the cluster: by itself, that it is the only node.
    pub nodes: Nodes,
    /// Its `authorizer.class.name`: by itself, none.
    pub authorizer: Authorizer,
    /// What Convoke asked of the cluster.
    pub questions: Questions,
    clients: mpsc::Receiver<Raw>,
    accepting: JoinHandle<()>,
}

impl Mock {
    pub async fn start() -> Self {
        let mock = Self::joining(Nodes::default()).await;
        mock.nodes.lock().expect("not poisoned").insert(NODE_ID, mock.address);
        mock
    }

    /// Another node, which tells the same of the cluster as those that share `nodes`.
    pub async fn joining(nodes: Nodes) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (sender, clients) = mpsc::channel(64);
        let authorizer = Authorizer::default();
        let questions = Questions::default();
        let told = Told {
            nodes: Arc::clone(&nodes),
            authorizer: Arc::clone(&authorizer),
            questions: Arc::clone(&questions),
        };
        let accepting = tokio::spawn(accept(listener, told, sender));
        Self {
            address,
            nodes,
            authorizer,
            questions,
            clients,
            accepting,
        }
    }

    /// The next connection that the proxy makes for a client, with the client's first bytes still in it.
    pub async fn client(&mut self) -> Raw {
        soon("a connection for a client", self.clients.recv())
            .await
            .expect("the mock accepts")
    }

    /// Whether a connection for a client arrives within a moment.
    pub async fn has_client(&mut self) -> bool {
        let moment = Duration::from_millis(200);
        matches!(tokio::time::timeout(moment, self.clients.recv()).await, Ok(Some(_)))
    }

    /// No connection was made for a client.
    pub fn untouched(&mut self) {
        assert!(self.clients.try_recv().is_err(), "a connection was made for a client");
    }

    /// Listens no more; connections that exist stay.
    pub async fn stop_listening(&mut self) {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// What Convoke's own connections are about.
#[derive(Debug, Clone)]
struct Told {
    nodes: Nodes,
    authorizer: Authorizer,
    questions: Questions,
}

async fn accept(listener: TcpListener, told: Told, clients: mpsc::Sender<Raw>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (told, clients) = (told.clone(), clients.clone());
        tokio::spawn(async move {
            match belongs_to_a_client(&stream).await {
                Some(true) => drop(clients.send(Raw::new(stream)).await),
                Some(false) => answer_convoke(Raw::new(stream), &told).await,
                None => {}
            }
        });
    }
}

/// Looks without taking anything out of the stream; `None` if it closes before anything can be seen.
async fn belongs_to_a_client(stream: &TcpStream) -> Option<bool> {
    let mut start = [0; CLIENT_ID_AT + CLIENT_ID.len()];
    loop {
        let n = stream.peek(&mut start).await.ok()?;
        if n == 0 {
            return None;
        }
        if n == start.len() {
            return Some(start.ends_with(CLIENT_ID.as_bytes()));
        }
        // What is there stays readable: this is no event to wait for.
        tokio::task::yield_now().await;
    }
}

async fn answer_convoke(mut convoke: Raw, told: &Told) {
    loop {
        let mut first = [0];
        match convoke.stream.peek(&mut first).await {
            Ok(n) if n > 0 => {}
            _ => return,
        }
        let request = convoke.frame().await;
        let (key, version, id) = frames::head(&request);
        let body = match key {
            API_VERSIONS => encode(&api_versions(), version),
            METADATA => {
                told.questions.lock().expect("not poisoned").push(request.clone());
                metadata(&told.nodes.lock().expect("not poisoned").clone(), version)
            }
            SASL_HANDSHAKE => {
                let plain = SaslHandshakeResponse::default().with_mechanisms(vec![StrBytes::from_static_str("PLAIN")]);
                encode(&plain, version)
            }
            DESCRIBE_CONFIGS => encode(&settings(*told.authorizer.lock().expect("not poisoned")), version),
            SASL_AUTHENTICATE => encode(&SaslAuthenticateResponse::default(), version),
            // Whoever asks more is left waiting.
            _ => continue,
        };
        convoke.send(&frames::response(key, version, id, &body)).await;
    }
}

fn encode(message: &impl Encodable, version: i16) -> Bytes {
    let mut out = BytesMut::new();
    message
        .encode(&mut out, version)
        .expect("a version that kafka-protocol knows");
    out.freeze()
}

/// Every API that is offered to anybody, in all versions.
fn api_versions() -> ApiVersionsResponse {
    let offered = APIS.iter().filter(|api| api.route != Route::Refuse);
    let keys = offered.map(|api| {
        ApiVersion::default()
            .with_api_key(api.key)
            .with_min_version(api.min)
            .with_max_version(api.max)
    });
    ApiVersionsResponse::default().with_api_keys(keys.collect())
}

fn settings(authorizer: &'static str) -> DescribeConfigsResponse {
    let config = DescribeConfigsResourceResult::default()
        .with_name(StrBytes::from_static_str("authorizer.class.name"))
        .with_value(Some(StrBytes::from_static_str(authorizer)));
    let result = DescribeConfigsResult::default().with_configs(vec![config]);
    DescribeConfigsResponse::default().with_results(vec![result])
}

/// A Metadata answer without topics.
pub fn metadata(nodes: &BTreeMap<i32, SocketAddr>, version: i16) -> Bytes {
    let brokers = nodes.iter().map(|(id, address)| {
        MetadataResponseBroker::default()
            .with_node_id((*id).into())
            .with_host(StrBytes::from_string(address.ip().to_string()))
            .with_port(address.port().into())
    });
    let response = MetadataResponse::default()
        .with_brokers(brokers.collect())
        .with_cluster_id(Some(StrBytes::from_static_str("mock")))
        .with_controller_id(NODE_ID.into());
    encode(&response, version)
}

/// A Fetch (v16) answer of one record batch of so many bytes, with the endpoint of the node that leads the partition now.
pub fn fetch_with_endpoint(host: &str, port: i32, records: usize) -> Bytes {
    use kafka_protocol::messages::fetch_response::{
        FetchResponse, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
    };
    let mut batch = BytesMut::new();
    batch.put_bytes(0x5a, records);
    let partition = PartitionData::default()
        .with_current_leader(
            LeaderIdAndEpoch::default()
                .with_leader_id(2.into())
                .with_leader_epoch(7),
        )
        .with_records(Some(batch.freeze()));
    let topic = FetchableTopicResponse::default().with_partitions(vec![partition]);
    let endpoint = NodeEndpoint::default()
        .with_node_id(2.into())
        .with_host(StrBytes::from_string(host.to_owned()))
        .with_port(port);
    let response = FetchResponse::default()
        .with_responses(vec![topic])
        .with_node_endpoints(vec![endpoint]);
    encode(&response, 16)
}
