//! A scripted broker at the other end of a pipe, on virtual time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use kafka_protocol::messages::{ApiKey, ListGroupsRequest, ListGroupsResponse};
use kafka_protocol::protocol::Decodable;
use tokio::io::duplex;

use super::*;
use crate::upstream::mock::{Asked, Reply, answer_in, api_versions, dialer, serve, text};

type Seen = Arc<Mutex<Vec<Asked>>>;

async fn greet(
    sasl: Option<SaslConfig>,
    script: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> (Result<Arc<Node>, UpstreamError>, Seen) {
    let (ours, theirs) = duplex(64 * 1024);
    let seen = Seen::default();
    tokio::spawn(serve(theirs, Arc::new(script), Arc::clone(&seen)));
    (dialer(sasl).greet(ours, "broker:9092".into()).await, seen)
}

fn plain() -> Option<SaslConfig> {
    Some(SaslConfig {
        mechanism: SaslMechanism::Plain,
        username: "u".into(),
        password: "p".into(),
    })
}

/// The apis that were asked, in order.
fn order(seen: &Seen) -> Vec<i16> {
    seen.lock().unwrap().iter().map(|asked| asked.api_key).collect()
}

const VERSIONS: i16 = ApiKey::ApiVersions as i16;
const HANDSHAKE: i16 = ApiKey::SaslHandshake as i16;
const AUTHENTICATE: i16 = ApiKey::SaslAuthenticate as i16;
const LIST: i16 = ApiKey::ListGroups as i16;

/// A broker that lets everybody in, with sessions of this lifetime.
fn lenient(lifetime_ms: i64) -> impl Fn(&Asked) -> Reply + Send + Sync {
    move |asked| match asked.api_key {
        VERSIONS => api_versions(asked),
        HANDSHAKE => asked.answer(&SaslHandshakeResponse::default()),
        AUTHENTICATE => asked.answer(&SaslAuthenticateResponse::default().with_session_lifetime_ms(lifetime_ms)),
        LIST => asked.answer(&ListGroupsResponse::default()),
        _ => Reply::Close,
    }
}

#[tokio::test(start_paused = true)]
async fn versions_are_learnt_once_and_first() {
    let (node, seen) = greet(plain(), lenient(0)).await;
    let node = node.unwrap();
    assert_eq!(node.versions().apis[&9], (1, 10));
    assert_eq!(order(&seen), [VERSIONS, HANDSHAKE, AUTHENTICATE]);
    assert_eq!(seen.lock().unwrap()[2].version, 2);
}

#[tokio::test(start_paused = true)]
async fn an_older_broker_is_asked_again_in_a_version_that_it_speaks() {
    let (node, seen) = greet(None, |asked: &Asked| {
        if asked.version <= 3 {
            return api_versions(asked);
        }
        let range = kafka_protocol::messages::api_versions_response::ApiVersion::default()
            .with_api_key(VERSIONS)
            .with_max_version(3);
        answer_in(
            0,
            &ApiVersionsResponse::default()
                .with_error_code(35)
                .with_api_keys(vec![range]),
        )
    })
    .await;
    assert!(node.is_ok());
    let versions: Vec<i16> = seen.lock().unwrap().iter().map(|asked| asked.version).collect();
    assert_eq!(versions, [4, 3]);
}

#[tokio::test(start_paused = true)]
async fn requests_go_out_in_the_newest_version_of_both_sides() {
    let (node, seen) = greet(None, lenient(0)).await;
    let node = node.unwrap();
    node.call(4, &ListGroupsRequest::default()).await.unwrap();
    assert_eq!(seen.lock().unwrap()[1].version, 5);
    let refused = node.call(6, &ListGroupsRequest::default()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "broker:9092 answered ListGroups with UNSUPPORTED_VERSION; it speaks 0 to 5 and 6 or newer is needed"
    );
}

#[tokio::test(start_paused = true)]
async fn a_listener_without_the_mechanism_says_what_it_has() {
    let (node, _) = greet(plain(), |asked: &Asked| match asked.api_key {
        VERSIONS => api_versions(asked),
        _ => asked.answer(
            &SaslHandshakeResponse::default()
                .with_error_code(33)
                .with_mechanisms(vec![text("SCRAM-SHA-512")]),
        ),
    })
    .await;
    let error = node.unwrap_err().to_string();
    assert!(
        error.contains("UNSUPPORTED_SASL_MECHANISM: it offers [\"SCRAM-SHA-512\"], not PLAIN"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_an_authentication_error_with_the_brokers_words() {
    let (node, _) = greet(plain(), |asked: &Asked| match asked.api_key {
        VERSIONS => api_versions(asked),
        HANDSHAKE => asked.answer(&SaslHandshakeResponse::default()),
        _ => asked.answer(
            &SaslAuthenticateResponse::default()
                .with_error_code(58)
                .with_error_message(Some(text("no such user"))),
        ),
    })
    .await;
    let error = node.unwrap_err();
    assert!(matches!(error, UpstreamError::Authentication { .. }));
    assert!(
        error
            .to_string()
            .contains("SASL_AUTHENTICATION_FAILED \"no such user\""),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_skips_the_scram_proof_is_refused() {
    let sasl = SaslConfig {
        mechanism: SaslMechanism::ScramSha256,
        username: "u".into(),
        password: "p".into(),
    };
    let (node, _) = greet(Some(sasl), lenient(0)).await;
    assert!(matches!(node, Err(UpstreamError::Authentication { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_closes_at_once_is_explained() {
    let (node, _) = greet(None, |_: &Asked| Reply::Close).await;
    let error = node.unwrap_err().to_string();
    assert!(error.contains("a listener that asks for TLS does so"), "{error}");
    let (node, _) = greet(None, lenient(0)).await;
    let request = MetadataRequest::default();
    let error = node.unwrap().call(4, &request).await.unwrap_err().to_string();
    assert!(error.contains("set upstream.sasl"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_renewed_in_time_with_nothing_in_between() {
    let (node, seen) = greet(plain(), lenient(10_000)).await;
    let node = node.unwrap();
    node.call(4, &ListGroupsRequest::default()).await.unwrap();
    tokio::time::advance(Duration::from_millis(8_400)).await;
    node.call(4, &ListGroupsRequest::default()).await.unwrap();
    assert_eq!(order(&seen), [VERSIONS, HANDSHAKE, AUTHENTICATE, LIST, LIST]);
    tokio::time::advance(Duration::from_millis(200)).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let node = Arc::clone(&node);
        calls.spawn(async move { node.call(4, &ListGroupsRequest::default()).await });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap().unwrap();
    }
    let mut expected = vec![HANDSHAKE, AUTHENTICATE];
    expected.extend([LIST; 10]);
    assert_eq!(order(&seen)[5..], expected);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_does_not_leave_a_renewal_unfinished() {
    let (node, seen) = greet(plain(), lenient(10_000)).await;
    let node = node.unwrap();
    tokio::time::advance(Duration::from_secs(9)).await;
    let request = ListGroupsRequest::default();
    // Polled once, which starts the renewal, and dropped.
    tokio::select! {
        biased;
        _ = node.call(4, &request) => panic!("answered at once"),
        () = std::future::ready(()) => {}
    }
    node.call(4, &ListGroupsRequest::default()).await.unwrap();
    assert_eq!(order(&seen)[3..], [HANDSHAKE, AUTHENTICATE, LIST]);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_refused_ends_the_connection() {
    let authenticated = AtomicUsize::new(0);
    let lenient = lenient(10_000);
    let (node, _) = greet(plain(), move |asked: &Asked| {
        if asked.api_key == AUTHENTICATE && authenticated.fetch_add(1, Ordering::Relaxed) > 0 {
            return asked.answer(&SaslAuthenticateResponse::default().with_error_code(58));
        }
        lenient(asked)
    })
    .await;
    let node = node.unwrap();
    tokio::time::advance(Duration::from_secs(9)).await;
    let error = node.call(4, &ListGroupsRequest::default()).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Authentication { .. }), "{error}");
    assert!(node.is_closed());
}

#[test]
fn the_api_versions_request_is_one_that_brokers_accept() {
    let request = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str(crate::upstream::connection::CLIENT_ID))
        .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")));
    let mut body = BytesMut::new();
    encode(&request, 4, &mut body).unwrap();
    let read = ApiVersionsRequest::decode(&mut body.freeze(), 4).unwrap();
    // Kafka's pattern: letters, digits, dots and hyphens, not empty.
    for field in [read.client_software_name, read.client_software_version] {
        assert!(
            !field.is_empty()
                && field
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        );
    }
}
