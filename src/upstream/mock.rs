//! A scripted broker for unit tests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::{ApiVersion, ApiVersionsResponse};
use kafka_protocol::protocol::{Encodable, StrBytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::connection::{Limits, Stream};
use super::node::Dialer;
use crate::config::SaslConfig;
use crate::wire::frame::{RequestHead, response_head};

/// A request that reached the mock.
#[derive(Debug, Clone)]
pub struct Asked {
    pub api_key: i16,
    pub version: i16,
}

impl Asked {
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
        let asked = Asked {
            api_key: head.api_key,
            version: head.api_version,
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
        }
    }
}

/// The versions of a 4.4.0 broker, as far as our own client uses them.
pub fn api_versions(asked: &Asked) -> Reply {
    let apis = [
        (3, 0, 13),
        (9, 1, 10),
        (10, 0, 6),
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

pub fn limits() -> Limits {
    Limits {
        request_timeout: Duration::from_secs(5),
        frame_max: 1 << 20,
        in_flight: 16,
    }
}

pub fn dialer(sasl: Option<SaslConfig>) -> Dialer {
    Dialer {
        sasl,
        connect_timeout: Duration::from_secs(5),
        limits: limits(),
    }
}
