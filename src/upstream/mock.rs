//! A scripted broker for unit tests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::{ApiVersion, ApiVersionsResponse};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{ApiKey, BrokerId, MetadataResponse, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::connection::{Limits, Stream};
use super::node::Dialer;
use crate::config::{HostPort, SaslConfig, UpstreamConfig};
use crate::wire::error_code::ErrorCode;
use crate::wire::frame::{RequestHead, response_head};

/// A request that reached the mock.
#[derive(Debug, Clone)]
pub struct Asked {
    pub api_key: i16,
    pub version: i16,
    pub body: Bytes,
}

impl Asked {
    pub fn decode<T: Decodable>(&self) -> T {
        T::decode(&mut self.body.clone(), self.version).unwrap()
    }

    pub fn is(&self, api: ApiKey) -> bool {
        self.api_key == api as i16
    }

    /// An answer in the version of the request.
    pub fn answer<T: Encodable>(&self, message: &T) -> Reply {
        answer_in(self.version, message)
    }
}

pub fn answer_in<T: Encodable>(version: i16, message: &T) -> Reply {
    let mut body = BytesMut::new();
    message.encode(&mut body, version).unwrap();
    Reply::Body(body.freeze())
}

#[derive(Debug)]
pub enum Reply {
    Body(Bytes),
    Close,
    /// Never an answer.
    Silence,
}

/// What the mock does with each request.
pub type Script = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

/// Answers one connection until it ends.
pub async fn serve(mut stream: impl Stream, script: Script, seen: Arc<Mutex<Vec<Asked>>>) {
    while let Ok(len) = stream.read_i32().await {
        let mut frame = vec![0; usize::try_from(len).unwrap()];
        if stream.read_exact(&mut frame).await.is_err() {
            return;
        }
        let head = RequestHead::parse(&frame).unwrap().complete().unwrap();
        let body = Bytes::from(frame.split_off(head.body_offset));
        let asked = Asked {
            api_key: head.api_key,
            version: head.api_version,
            body,
        };
        seen.lock().unwrap().push(asked.clone());
        match script(&asked) {
            Reply::Body(body) => {
                let mut out = BytesMut::new();
                response_head(head.api_key, head.api_version, head.correlation_id, &mut out);
                out.extend_from_slice(&body);
                stream.write_i32(i32::try_from(out.len()).unwrap()).await.unwrap();
                stream.write_all(&out).await.unwrap();
            }
            Reply::Close => return,
            Reply::Silence => {}
        }
    }
}

/// A mock that listens on loopback. It and its connections end when it is dropped.
pub struct MockBroker {
    pub address: HostPort,
    pub seen: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl MockBroker {
    pub async fn start(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at(0, script).await
    }

    pub async fn start_at(port: u16, script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::default();
        let (script, log): (Script, _) = (Arc::new(script), Arc::clone(&seen));
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&script), Arc::clone(&log)));
            }
        });
        Self {
            address: HostPort {
                host: "127.0.0.1".into(),
                port,
            },
            seen,
            task,
        }
    }

    /// Ends it, so that its port can be bound again when this returns.
    pub async fn stop(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    /// How many requests of an API have come.
    pub fn count(&self, api: ApiKey) -> usize {
        self.seen.lock().unwrap().iter().filter(|asked| asked.is(api)).count()
    }
}

impl Drop for MockBroker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The versions of a 4.4.0 broker, as far as our own client uses them.
pub fn api_versions(asked: &Asked) -> Reply {
    let apis = [
        (3, 0, 13),
        (9, 1, 10),
        (10, 0, 6),
        (15, 0, 5),
        (16, 0, 5),
        (17, 0, 1),
        (18, 0, 5),
        (32, 1, 4),
        (36, 0, 2),
    ];
    let api = |(key, min, max)| {
        ApiVersion::default()
            .with_api_key(key)
            .with_min_version(min)
            .with_max_version(max)
    };
    asked.answer(&ApiVersionsResponse::default().with_api_keys(apis.map(api).to_vec()))
}

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub fn broker(node: i32, address: &HostPort) -> MetadataResponseBroker {
    MetadataResponseBroker::default()
        .with_node_id(BrokerId(node))
        .with_host(text(&address.host))
        .with_port(i32::from(address.port))
}

pub fn topic(name: &str, topic_id: Uuid, leaders: &[i32]) -> MetadataResponseTopic {
    let partition = |(index, leader): (usize, &i32)| {
        MetadataResponsePartition::default()
            .with_partition_index(i32::try_from(index).unwrap())
            .with_leader_id(BrokerId(*leader))
    };
    MetadataResponseTopic::default()
        .with_name(Some(TopicName(text(name))))
        .with_topic_id(topic_id)
        .with_partitions(leaders.iter().enumerate().map(partition).collect())
}

pub fn topic_error(name: Option<&str>, topic_id: Uuid, error: ErrorCode) -> MetadataResponseTopic {
    MetadataResponseTopic::default()
        .with_name(name.map(|name| TopicName(text(name))))
        .with_topic_id(topic_id)
        .with_error_code(error.0)
}

pub fn metadata(brokers: Vec<MetadataResponseBroker>, topics: Vec<MetadataResponseTopic>) -> MetadataResponse {
    MetadataResponse::default()
        .with_cluster_id(Some(text("cluster-1")))
        .with_brokers(brokers)
        .with_topics(topics)
}

pub fn limits() -> Limits {
    Limits {
        request_timeout: Duration::from_secs(2),
        frame_max: 1 << 20,
        in_flight: 16,
    }
}

pub fn dialer(sasl: Option<SaslConfig>) -> Dialer {
    Dialer {
        software_name: super::connection::CLIENT_ID,
        sasl,
        own: Vec::new(),
        connect_timeout: Duration::from_secs(5),
        limits: limits(),
    }
}

pub fn config(bootstrap: Vec<HostPort>) -> UpstreamConfig {
    UpstreamConfig {
        bootstrap,
        sasl: None,
        connect_timeout: Duration::from_secs(2),
        request_timeout: Duration::from_secs(2),
        metadata_refresh: Duration::from_secs(60),
    }
}
