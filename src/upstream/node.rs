//! A broker that we have a working connection to: dialled, its api versions learnt, authenticated, and authenticated
//! anew before the session ends (KIP-368).
//!
//! Before SASL a broker takes one ApiVersions only, so it comes first and once; one that is refused for its version does
//! not count. Between SaslHandshake and the last SaslAuthenticate no other request may be on the wire.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersionsResponse;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, MetadataRequest, SaslAuthenticateRequest, SaslAuthenticateResponse,
    SaslHandshakeRequest, SaslHandshakeResponse, TopicName,
};
use kafka_protocol::protocol::{Request, StrBytes};
use tokio::net::TcpStream;
use tokio::sync::RwLock;
use tokio::time::{Instant, timeout};

use super::cluster::NodeVersions;
use super::connection::{Connection, Limits, Pending, Stream};
use super::sasl::{Exchange, SaslError, Step};
use super::{UpstreamError, peer};
use crate::config::{HostPort, SaslConfig, SaslMechanism};
use crate::wire::codec::{Encode, GuardedResponse, decode_response, encode};
use crate::wire::error_code::ErrorCode;

/// The newest ApiVersions that we speak; v4 shows features whose minimum is 0 (KIP-584).
const API_VERSIONS_MAX: i16 = 4;
/// SaslHandshake v1 wraps the exchange in SaslAuthenticate (KIP-152).
const HANDSHAKE_VERSION: i16 = 1;
/// SaslAuthenticate v1 tells the session's lifetime (KIP-368), v2 is flexible.
const AUTHENTICATE_VERSION: i16 = 2;
/// SCRAM takes two, PLAIN one; a server that asks for more is not speaking either.
const SASL_ROUNDS_MAX: usize = 4;

/// How connections are made.
#[derive(Debug, Clone)]
pub struct Dialer {
    /// What brokers are told of who asks (KIP-511): [`CLIENT_ID`](super::connection::CLIENT_ID) for the proxy's own connections, by which another Convoke
    /// knows it.
    pub software_name: &'static str,
    pub sasl: Option<SaslConfig>,
    /// Addresses that this process listens on: no broker is there.
    pub own: Vec<SocketAddr>,
    pub connect_timeout: Duration,
    pub limits: Limits,
}

impl Dialer {
    /// Connects, learns the api versions and authenticates.
    ///
    /// # Errors
    /// Why there is no working connection.
    pub async fn dial(&self, address: &HostPort) -> Result<Arc<Node>, UpstreamError> {
        let unreachable = |reason: String| UpstreamError::Unreachable {
            address: address.to_string(),
            reason,
        };
        let connecting = TcpStream::connect((address.host.as_str(), address.port));
        let stream = match timeout(self.connect_timeout, connecting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(unreachable(error.to_string())),
            Err(_) => {
                let ms = self.connect_timeout.as_millis();
                return Err(unreachable(format!("no connection within {ms} ms")));
            }
        };
        if peer::is_own(&stream, &self.own) {
            return Err(peer::ourselves(address.to_string()));
        }
        stream
            .set_nodelay(true)
            .map_err(|error| unreachable(error.to_string()))?;
        self.greet(stream, address.to_string()).await
    }

    /// Makes a node of an open stream.
    pub(super) async fn greet(&self, stream: impl Stream, address: String) -> Result<Arc<Node>, UpstreamError> {
        let connection = Connection::over(stream, address, self.limits);
        let versions = learn_versions(&connection, self.software_name)
            .await
            .map_err(|error| match error {
                UpstreamError::Timeout { address, timeout_ms } => UpstreamError::Unreachable {
                    address,
                    reason: format!("it took the connection and did not answer within {timeout_ms} ms; {SILENT_HINT}"),
                },
                error => first_words(error, TLS_HINT),
            })?;
        let session = match &self.sasl {
            Some(sasl) => authenticate(&connection, sasl).await?,
            None => Session { renew_at: None },
        };
        Ok(Arc::new(Node {
            connection,
            versions: Arc::new(versions),
            software_name: self.software_name,
            sasl: self.sasl.clone(),
            session: RwLock::new(session),
        }))
    }
}

const TLS_HINT: &str = "it closed the connection at our first request; a listener that asks for TLS does so, and Convoke \
                        does not speak TLS yet: give it a PLAINTEXT or SASL_PLAINTEXT listener";
const SILENT_HINT: &str = "a broker that stands still does so, and so does what is no broker";
const SASL_HINT: &str = "it closed the connection instead of answering; a listener that asks for SASL does so: set \
                         upstream.sasl";

/// A listener that wants another security protocol just closes; say so where that is the likely reason.
fn first_words(error: UpstreamError, hint: &str) -> UpstreamError {
    match error {
        UpstreamError::Closed { address } => UpstreamError::Unreachable {
            address,
            reason: hint.to_owned(),
        },
        other => other,
    }
}

/// One broker, by the connection that we have to it.
#[derive(Debug)]
pub struct Node {
    connection: Connection,
    versions: Arc<NodeVersions>,
    software_name: &'static str,
    sasl: Option<SaslConfig>,
    /// Held for reading while a request is queued, for writing while we authenticate.
    session: RwLock<Session>,
}

#[derive(Debug)]
struct Session {
    renew_at: Option<Instant>,
}

impl Session {
    fn is_due(&self) -> bool {
        self.renew_at.is_some_and(|at| Instant::now() >= at)
    }
}

impl Node {
    #[must_use]
    pub fn address(&self) -> &str {
        self.connection.address()
    }

    /// As answered when the connection was made.
    #[must_use]
    pub fn versions(&self) -> &Arc<NodeVersions> {
        &self.versions
    }

    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// Resolves when the connection has ended.
    pub async fn closed(&self) {
        self.connection.closed().await;
    }

    /// Asks for the api versions and features again: a feature may be finalized while the broker runs.
    ///
    /// # Errors
    /// Whatever ended the connection, or an error code.
    pub async fn ask_versions(self: &Arc<Self>) -> Result<NodeVersions, UpstreamError> {
        let version = self.version::<ApiVersionsRequest>(0)?.min(API_VERSIONS_MAX);
        let request = api_versions_request(&self.connection, self.software_name, version)?;
        let body = self
            .send(ApiVersionsRequest::KEY, version, &request)
            .await?
            .body()
            .await?;
        parse_versions(&self.connection, version, body)
    }

    /// Sends a request in the newest version that both sides speak, `least` or newer.
    ///
    /// # Errors
    /// `Refused` with UNSUPPORTED_VERSION if there is none; whatever ended the connection.
    pub async fn call<R>(self: &Arc<Self>, least: i16, request: &R) -> Result<R::Response, UpstreamError>
    where
        R: Request,
        R::Response: GuardedResponse,
    {
        let version = self.version::<R>(least)?;
        let body = encoded(&self.connection, version, request)?;
        let answer = self.send(R::KEY, version, &body).await?.body().await.map_err(|error| {
            let hint = if self.sasl.is_none() { SASL_HINT } else { return error };
            first_words(error, hint)
        })?;
        decode_response(version, answer).map_err(|error| malformed(&self.connection, error))
    }

    /// Whether the node offers this version of an API, or newer ones.
    #[must_use]
    pub fn speaks(&self, api: ApiKey, version: i16) -> bool {
        let range = self.versions.apis.get(&(api as i16));
        range.is_some_and(|(_, max)| *max >= version)
    }

    /// Sends a request in this version, for messages that are no stock broker's.
    ///
    /// # Errors
    /// `Malformed` for what cannot be written or read; whatever ended the connection.
    pub async fn exchange<R: GuardedResponse>(
        self: &Arc<Self>,
        api_key: i16,
        version: i16,
        request: &impl Encode,
    ) -> Result<R, UpstreamError> {
        let body = encoded(&self.connection, version, request)?;
        let answer = self.send(api_key, version, &body).await?.body().await?;
        decode_response(version, answer).map_err(|error| malformed(&self.connection, error))
    }

    /// Whether our user may see every topic: a name that nobody uses is unknown to who may, and forbidden to who may not.
    ///
    /// # Errors
    /// Whatever ended the connection.
    pub async fn sees_every_topic(self: &Arc<Self>) -> Result<bool, UpstreamError> {
        let name = nonce().map_err(|error| malformed(&self.connection, error))?;
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let name = TopicName(StrBytes::from_string(format!("convoke-sees-every-topic-{name}")));
        let topic = MetadataRequestTopic::default().with_name(Some(name));
        let request = MetadataRequest::default()
            .with_topics(Some(vec![topic]))
            .with_allow_auto_topic_creation(false);
        let answer = self.call(4, &request).await?;
        let forbidden = ErrorCode::TOPIC_AUTHORIZATION_FAILED.0;
        Ok(answer.topics.iter().all(|topic| topic.error_code != forbidden))
    }

    fn version<R: Request>(&self, least: i16) -> Result<i16, UpstreamError> {
        let refused = |hint: String| UpstreamError::Refused {
            address: self.address().to_owned(),
            api: api_name(R::KEY),
            error: ErrorCode::UNSUPPORTED_VERSION,
            hint,
        };
        let Some(&(min, max)) = self.versions.apis.get(&R::KEY) else {
            return Err(refused("; the broker does not offer it to us".to_owned()));
        };
        let version = max.min(R::VERSIONS.max);
        if version < min || version < least.max(R::VERSIONS.min) {
            let needed = least.max(R::VERSIONS.min);
            return Err(refused(format!(
                "; it speaks {min} to {max} and {needed} or newer is needed"
            )));
        }
        Ok(version)
    }

    async fn send(self: &Arc<Self>, api_key: i16, version: i16, body: &[u8]) -> Result<Pending, UpstreamError> {
        loop {
            let session = self.session.read().await;
            if !session.is_due() || self.is_closed() {
                return self.connection.send(api_key, version, body).await;
            }
            drop(session);
            // On a task of its own: a caller that gives up half-way must not leave the exchange unfinished.
            let node = Arc::clone(self);
            let renewed = tokio::spawn(async move { node.renew().await }).await;
            renewed.unwrap_or_else(|_| Err(self.closed_error()))?;
        }
    }

    async fn renew(&self) -> Result<(), UpstreamError> {
        let mut session = self.session.write().await;
        let Some(sasl) = self.sasl.as_ref().filter(|_| session.is_due()) else {
            return Ok(());
        };
        match authenticate(&self.connection, sasl).await {
            Ok(renewed) => {
                *session = renewed;
                Ok(())
            }
            Err(error) => {
                self.connection.close(error.clone());
                Err(error)
            }
        }
    }

    fn closed_error(&self) -> UpstreamError {
        UpstreamError::Closed {
            address: self.address().to_owned(),
        }
    }
}

/// Kafka's name of an API, for errors.
fn api_name(key: i16) -> &'static str {
    crate::wire::api::find(key).map_or("an unknown api", |api| api.name)
}

fn malformed(connection: &Connection, reason: impl std::fmt::Display) -> UpstreamError {
    UpstreamError::Malformed {
        address: connection.address().to_owned(),
        reason: reason.to_string(),
    }
}

fn encoded(connection: &Connection, version: i16, request: &impl Encode) -> Result<BytesMut, UpstreamError> {
    let mut body = BytesMut::new();
    encode(request, version, &mut body).map_err(|error| malformed(connection, error))?;
    Ok(body)
}

async fn learn_versions(connection: &Connection, software_name: &'static str) -> Result<NodeVersions, UpstreamError> {
    let mut version = API_VERSIONS_MAX;
    loop {
        let request = api_versions_request(connection, software_name, version)?;
        let body = connection.call(ApiVersionsRequest::KEY, version, &request).await?;
        match refused_version(&body) {
            // Each refusal lowers the version, so this ends.
            Some(newest) if version > 0 => version = newest.min(version - 1),
            _ => return parse_versions(connection, version, body),
        }
    }
}

fn api_versions_request(
    connection: &Connection,
    software_name: &'static str,
    version: i16,
) -> Result<BytesMut, UpstreamError> {
    let request = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str(software_name))
        .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")));
    encoded(connection, version, &request)
}

/// A broker that does not know the version answers in v0 with UNSUPPORTED_VERSION and its range of ApiVersions.
fn refused_version(body: &Bytes) -> Option<i16> {
    let code = i16::from_be_bytes(*body.first_chunk()?);
    if ErrorCode(code) != ErrorCode::UNSUPPORTED_VERSION {
        return None;
    }
    // Old brokers list nothing; v0 is what all of them know.
    let answer: Option<ApiVersionsResponse> = decode_response(0, body.clone()).ok();
    let max = answer
        .and_then(|answer| {
            answer
                .api_keys
                .into_iter()
                .find(|api| api.api_key == ApiVersionsRequest::KEY)
        })
        .map_or(0, |api| api.max_version);
    Some(max.max(0))
}

fn parse_versions(connection: &Connection, version: i16, body: Bytes) -> Result<NodeVersions, UpstreamError> {
    let answer: ApiVersionsResponse = decode_response(version, body).map_err(|error| malformed(connection, error))?;
    let error = ErrorCode(answer.error_code);
    if error == ErrorCode::POLICY_VIOLATION {
        // No broker answers so; see proxy::api_versions.
        return Err(peer::another_convoke(connection.address().to_owned()));
    }
    if !error.is_none() {
        return Err(UpstreamError::Refused {
            address: connection.address().to_owned(),
            api: "ApiVersions",
            error,
            hint: String::new(),
        });
    }
    let apis = answer
        .api_keys
        .iter()
        .map(|api| (api.api_key, (api.min_version, api.max_version)));
    let supported = answer.supported_features.iter();
    let finalized = answer.finalized_features.iter();
    Ok(NodeVersions {
        apis: apis.collect(),
        supported_features: supported
            .map(|f| (f.name.to_string(), f.min_version, f.max_version))
            .collect(),
        finalized_features: finalized
            .map(|f| (f.name.to_string(), f.max_version_level, f.min_version_level))
            .collect(),
        finalized_features_epoch: answer.finalized_features_epoch,
    })
}

/// One SASL exchange; nothing else may be sent meanwhile.
async fn authenticate(connection: &Connection, sasl: &SaslConfig) -> Result<Session, UpstreamError> {
    let refused = |reason: String| UpstreamError::Authentication {
        address: connection.address().to_owned(),
        reason,
    };
    handshake(connection, sasl.mechanism).await?;
    let nonce = nonce().map_err(|error| refused(format!("no random nonce: {error}")))?;
    let (mut exchange, mut message) = Exchange::start(sasl, &nonce);
    for _ in 0..SASL_ROUNDS_MAX {
        let started = Instant::now();
        let request = SaslAuthenticateRequest::default().with_auth_bytes(message.into());
        let body = encoded(connection, AUTHENTICATE_VERSION, &request)?;
        let answer = connection
            .call(SaslAuthenticateRequest::KEY, AUTHENTICATE_VERSION, &body)
            .await?;
        let answer: SaslAuthenticateResponse =
            decode_response(AUTHENTICATE_VERSION, answer).map_err(|error| malformed(connection, error))?;
        let error = ErrorCode(answer.error_code);
        if !error.is_none() {
            let said = answer.error_message.unwrap_or_default();
            return Err(refused(format!("{error} {:?}; check upstream.sasl", said.as_str())));
        }
        let step;
        (step, exchange) = take_step(exchange, answer.auth_bytes)
            .await
            .map_err(|error| refused(error.to_string()))?;
        match step.map_err(|error| refused(error.to_string()))? {
            Step::Send(next) => message = next,
            Step::Done => return Ok(session(started, answer.session_lifetime_ms)),
        }
    }
    Err(refused("the exchange does not end".to_owned()))
}

/// The password hashing of SCRAM takes milliseconds, and how many is up to the server: not on a worker thread.
async fn take_step(
    mut exchange: Exchange,
    challenge: Bytes,
) -> Result<(Result<Step, SaslError>, Exchange), tokio::task::JoinError> {
    if matches!(exchange, Exchange::Plain) {
        return Ok((exchange.step(&challenge), exchange));
    }
    tokio::task::spawn_blocking(move || (exchange.step(&challenge), exchange)).await
}

/// Renewed after 85 % of the lifetime, as Kafka's own client does at the earliest.
fn session(started: Instant, lifetime_ms: i64) -> Session {
    let lifetime = u64::try_from(lifetime_ms).ok().filter(|ms| *ms > 0);
    let renew_at = lifetime.and_then(|ms| started.checked_add(Duration::from_millis(ms).mul_f64(0.85)));
    Session { renew_at }
}

async fn handshake(connection: &Connection, mechanism: SaslMechanism) -> Result<(), UpstreamError> {
    let name = mechanism.wire_name();
    let request = SaslHandshakeRequest::default().with_mechanism(StrBytes::from_static_str(name));
    let body = encoded(connection, HANDSHAKE_VERSION, &request)?;
    let answer = connection
        .call(SaslHandshakeRequest::KEY, HANDSHAKE_VERSION, &body)
        .await?;
    let answer: SaslHandshakeResponse =
        decode_response(HANDSHAKE_VERSION, answer).map_err(|error| malformed(connection, error))?;
    let error = ErrorCode(answer.error_code);
    if error.is_none() {
        return Ok(());
    }
    let offered: Vec<&str> = answer.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect();
    let reason = if error == ErrorCode::ILLEGAL_SASL_STATE {
        "its listener takes no SASL; take upstream.sasl out, or name its SASL listener".to_owned()
    } else {
        format!("{error}: it offers {offered:?}, not {name}; set upstream.sasl.mechanism to one of them")
    };
    Err(UpstreamError::Authentication {
        address: connection.address().to_owned(),
        reason,
    })
}

/// 144 random bits, printable and without a comma.
fn nonce() -> Result<String, getrandom::Error> {
    use base64::Engine as _;
    let mut bytes = [0; 18];
    getrandom::fill(&mut bytes)?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests;
