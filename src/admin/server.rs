//! The HTTP server: a few connections at a time, each with little time and short heads.
//!
//! A flood of connections keeps nobody out for long: who comes takes the place of the oldest that waits for nothing.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::places::{Eviction, Occupant, Place, Places};
use super::{Subject, groups};
use crate::coordinator::request::ShardView;
use crate::telemetry::log_limit::LogLimit;

/// Connections at a time; for one more the oldest that waits for no answer is closed.
const CONNECTIONS_MAX: usize = 64;
/// How long a client may take for the head of a request; idle connections are closed after it too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a connection may live, so that a reader that does not read gives its place back.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the shards may take to tell of their groups.
const VIEW_TIMEOUT: Duration = Duration::from_secs(5);
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;
/// A pause after an accept that failed, usually for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often the log says, at most, that connections are too many or cannot be accepted.
const SAY_EVERY: Duration = Duration::from_secs(60);

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Why the admin side cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for admin: {source}; give another address with admin.listen or --admin")]
pub struct AdminError {
    pub address: SocketAddr,
    pub source: io::Error,
}

/// The bound admin side.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    address: SocketAddr,
}

/// What connections share.
struct Shared {
    subject: Arc<dyn Subject>,
    /// One scrape at a time: it sets gauges before it reads them.
    scraping: Mutex<()>,
}

impl Admin {
    /// Binds the address; port 0 takes a free one.
    ///
    /// # Errors
    /// When it cannot be had.
    pub async fn bind(address: SocketAddr) -> Result<Self, AdminError> {
        let failed = |source| AdminError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// The bound address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` fires; connections that are open then end with it.
    pub async fn serve(self, subject: Arc<dyn Subject>, stop: CancellationToken) {
        let shared = Arc::new(Shared {
            subject,
            scraping: Mutex::new(()),
        });
        let places = Places::new(CONNECTIONS_MAX);
        let said = LogLimit::new(SAY_EVERY);
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    if let Some(place) = place_for(peer, &places, &said) {
                        tokio::spawn(serve_connection(stream, place, Arc::clone(&shared), stop.clone()));
                    }
                }
                Err(error) => {
                    if said.may_say() {
                        tracing::warn!(%error, "cannot accept a connection to the admin side");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// A place for a new connection; none while every connection waits for its answer.
fn place_for(peer: SocketAddr, places: &Arc<Places>, said: &LogLimit) -> Option<Place> {
    match places.take() {
        Some((place, Eviction::None)) => Some(place),
        Some((place, Eviction::OldestIdle)) => {
            if said.may_say() {
                tracing::warn!(
                    %peer,
                    "{CONNECTIONS_MAX} connections to the admin side are open: the oldest idle one is closed for each new one"
                );
            }
            Some(place)
        }
        None => {
            if said.may_say() {
                tracing::warn!(%peer, "admin connection turned away: {CONNECTIONS_MAX} others wait for answers");
            }
            None
        }
    }
}

async fn serve_connection(stream: TcpStream, place: Place, shared: Arc<Shared>, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = place.evicted() => {}
        () = answer_requests(stream, place.occupant(), shared) => {}
        () = tokio::time::sleep(CONNECTION_TIMEOUT) => {}
    }
}

async fn answer_requests(stream: TcpStream, occupant: Occupant, shared: Arc<Shared>) {
    let service = service_fn(move |request| {
        let (shared, busy) = (Arc::clone(&shared), occupant.begin());
        async move {
            let answer = shared.answer(&request).await;
            drop(busy);
            Ok::<_, Infallible>(answer)
        }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "admin connection ended");
    }
}

type Answer = Response<Full<Bytes>>;

impl Shared {
    /// The body of a request is not read: nothing here takes one.
    async fn answer(&self, request: &Request<Incoming>) -> Answer {
        let path = request.uri().path();
        if !matches!(path, "/metrics" | "/healthz" | "/readyz" | "/groups") {
            let known = "there is /metrics, /healthz, /readyz and /groups\n";
            return answer(StatusCode::NOT_FOUND, TEXT, known);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refused = answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n");
            refused
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        match path {
            "/metrics" => self.metrics().await,
            "/groups" => self.groups().await,
            "/readyz" => {
                let (ready, report) = self.subject.readiness().report();
                let status = if ready {
                    StatusCode::OK
                } else {
                    StatusCode::SERVICE_UNAVAILABLE
                };
                answer(status, JSON, report)
            }
            _ => answer(StatusCode::OK, TEXT, "ok\n"),
        }
    }

    async fn views(&self) -> Option<Vec<Option<ShardView>>> {
        tokio::time::timeout(VIEW_TIMEOUT, self.subject.views()).await.ok()
    }

    async fn groups(&self) -> Answer {
        match self.views().await {
            Some(views) => answer(StatusCode::OK, JSON, groups::report(&views, &self.subject.topics())),
            None => answer(
                StatusCode::SERVICE_UNAVAILABLE,
                TEXT,
                "the shards did not answer in time\n",
            ),
        }
    }

    /// Metrics are shown even while shards cannot tell: then the gauges about groups count those that can.
    async fn metrics(&self) -> Answer {
        let _one = self.scraping.lock().await;
        let views: Vec<ShardView> = self.views().await.unwrap_or_default().into_iter().flatten().collect();
        let subject = Arc::clone(&self.subject);
        let text = tokio::task::spawn_blocking(move || subject.metrics(&views)).await;
        match text {
            Ok(Ok(text)) => answer(StatusCode::OK, PROMETHEUS, text),
            Ok(Err(reason)) => answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("{reason}\n")),
            Err(error) => answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("{error}\n")),
        }
    }
}

fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
