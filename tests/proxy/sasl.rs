//! SASL passes through; what ends here is let in when a broker would let it in.

use bytes::{BufMut, BytesMut};
use convoke::config::{Config, SaslConfig, SaslMechanism};
use convoke::telemetry::close_reason::CloseReason;
use convoke::wire::api::DESCRIBE_GROUPS;
use kafka_protocol::messages::DescribeGroupsResponse;
use kafka_protocol::messages::describe_groups_response::DescribedGroup;
use kafka_protocol::protocol::{Encodable, StrBytes};

use crate::fixture::Fixture;
use crate::frames::{
    self, API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE, correlation_id, error, heartbeat, list_offsets, offsets,
    put_string, request, response, token,
};
use crate::mock::Mock;
use crate::raw::Raw;

/// An upstream that lets nobody in without SASL.
async fn fixture() -> Fixture {
    Fixture::with(credentials).await
}

/// One that checks ACLs as well.
async fn fixture_with_authorizer() -> Fixture {
    let mock = Mock::start().await;
    *mock.authorizer.lock().expect("not poisoned") = "StandardAuthorizer";
    Fixture::behind(mock, credentials).await
}

fn credentials(config: &mut Config) {
    config.upstream.sasl = Some(SaslConfig {
        mechanism: SaslMechanism::Plain,
        username: "convoke".to_owned(),
        password: "secret".to_owned(),
    });
}

fn handshake(version: i16, correlation_id: i32, mechanism: &str) -> Vec<u8> {
    let mut body = Vec::new();
    put_string(&mut body, mechanism);
    request(SASL_HANDSHAKE, version, correlation_id, &body)
}

fn accepted(version: i16, correlation_id: i32) -> Vec<u8> {
    response(SASL_HANDSHAKE, version, correlation_id, &[0; 6])
}

fn authenticate(correlation_id: i32, token: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_i32(i32::try_from(token.len()).expect("short"));
    body.put_slice(token);
    request(SASL_AUTHENTICATE, 1, correlation_id, &body)
}

fn authenticated(correlation_id: i32, error: i16, token: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_i16(error);
    body.put_i16(-1);
    body.put_i32(i32::try_from(token.len()).expect("short"));
    body.put_slice(token);
    body.put_i64(0);
    response(SASL_AUTHENTICATE, 1, correlation_id, &body)
}

/// Passes one frame each way.
async fn exchange(client: &mut Raw, upstream: &mut Raw, up: &[u8], down: &[u8]) {
    client.send(up).await;
    assert_eq!(upstream.frame().await, up);
    upstream.send(down).await;
    assert_eq!(client.frame().await, down);
}

/// A client through SASL PLAIN, and its upstream.
async fn plain(fixture: &mut Fixture) -> (Raw, Raw) {
    let mut client = fixture.client().await;
    client.send(&handshake(1, 1, "PLAIN")).await;
    let mut upstream = fixture.mock.client().await;
    assert_eq!(upstream.frame().await, handshake(1, 1, "PLAIN"));
    upstream.send(&accepted(1, 1)).await;
    assert_eq!(client.frame().await, accepted(1, 1));
    exchange(
        &mut client,
        &mut upstream,
        &authenticate(2, b"\0me\0mine"),
        &authenticated(2, 0, b""),
    )
    .await;
    (client, upstream)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_versions_is_answered_before_authentication_and_nothing_else() {
    let mut fixture = fixture().await;
    let mut client = fixture.client().await;
    client
        .send(&[request(API_VERSIONS, 0, 1, b""), heartbeat(2)].concat())
        .await;
    assert_eq!(error(&client.frame().await), 0);
    client.closed().await;
    fixture.mock.untouched();
    fixture.ended(CloseReason::IllegalSaslState).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authenticated_client_is_let_in() {
    let mut fixture = fixture().await;
    let (mut client, mut upstream) = plain(&mut fixture).await;
    client.send(&heartbeat(3)).await;
    assert_eq!(correlation_id(&client.frame().await), 3);
    exchange(&mut client, &mut upstream, &list_offsets(4), &offsets(4)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_behind_the_exchange_waits_for_its_outcome() {
    let mut fixture = fixture().await;
    let mut client = fixture.client().await;
    let frames = [handshake(1, 1, "PLAIN"), authenticate(2, b"\0me\0mine"), heartbeat(3)];
    client.send(&frames.concat()).await;
    let mut upstream = fixture.mock.client().await;
    upstream.frame().await;
    upstream.frame().await;
    upstream.send(&accepted(1, 1)).await;
    assert_eq!(client.frame().await, accepted(1, 1));
    client.silent().await;
    upstream.send(&authenticated(2, 0, b"")).await;
    assert_eq!(client.frame().await, authenticated(2, 0, b""));
    assert_eq!(correlation_id(&client.frame().await), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_client_is_not_let_in() {
    let mut fixture = fixture().await;
    let mut client = fixture.client().await;
    client
        .send(&[handshake(1, 1, "PLAIN"), authenticate(2, b"\0me\0wrong"), heartbeat(3)].concat())
        .await;
    let mut upstream = fixture.mock.client().await;
    upstream.frame().await;
    upstream.frame().await;
    upstream
        .send(&[accepted(1, 1), authenticated(2, 58, b"")].concat())
        .await;
    assert_eq!(
        client.rest().await,
        [accepted(1, 1), authenticated(2, 58, b"")].concat()
    );
    fixture.ended(CloseReason::IllegalSaslState).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_an_exchange_lets_nobody_in() {
    let mut fixture = fixture().await;
    let mut client = fixture.client().await;
    client.send(&handshake(1, 1, "SCRAM-SHA-256")).await;
    let mut upstream = fixture.mock.client().await;
    upstream.frame().await;
    upstream.send(&accepted(1, 1)).await;
    client.frame().await;
    let challenge = authenticated(2, 0, b"r=nonce,s=salt,i=4096");
    exchange(
        &mut client,
        &mut upstream,
        &authenticate(2, b"n,,n=admin,r=nonce"),
        &challenge,
    )
    .await;
    client.send(&heartbeat(3)).await;
    client.closed().await;
    fixture.ended(CloseReason::IllegalSaslState).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_within_re_authentication_closes_the_connection() {
    let mut fixture = fixture().await;
    let (mut client, mut upstream) = plain(&mut fixture).await;
    exchange(&mut client, &mut upstream, &handshake(1, 3, "PLAIN"), &accepted(1, 3)).await;
    client.send(&heartbeat(4)).await;
    client.closed().await;
    fixture.ended(CloseReason::IllegalSaslState).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn re_authentication_goes_on_where_the_session_was() {
    let mut fixture = fixture().await;
    let (mut client, mut upstream) = plain(&mut fixture).await;
    exchange(&mut client, &mut upstream, &handshake(1, 3, "PLAIN"), &accepted(1, 3)).await;
    exchange(
        &mut client,
        &mut upstream,
        &authenticate(4, b"\0me\0mine"),
        &authenticated(4, 0, b""),
    )
    .await;
    client.send(&heartbeat(5)).await;
    assert_eq!(correlation_id(&client.frame().await), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_is_not_moved_to_a_connection_that_has_not_authenticated() {
    let mut fixture = fixture().await;
    let (mut client, mut upstream) = plain(&mut fixture).await;
    upstream.shutdown().await;
    upstream.closed().await;
    client.send(&heartbeat(3)).await;
    assert_eq!(
        correlation_id(&client.frame().await),
        3,
        "the group lives here and does not mind"
    );
    client.send(&list_offsets(4)).await;
    client.closed().await;
    fixture.mock.untouched();
    fixture.ended(CloseReason::UpstreamClosed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_the_oldest_handshake_pass_without_a_head() {
    let mut fixture = fixture().await;
    let mut client = fixture.client().await;
    client.send(&handshake(0, 1, "SCRAM-SHA-512")).await;
    let mut upstream = fixture.mock.client().await;
    assert_eq!(upstream.frame().await, handshake(0, 1, "SCRAM-SHA-512"));
    upstream.send(&accepted(0, 1)).await;
    assert_eq!(client.frame().await, accepted(0, 1));
    let (first, second) = (token(b"n,,n=me,r=nonce"), token(b"c=biws,r=nonce,p=proof"));
    exchange(&mut client, &mut upstream, &first, &token(b"r=nonce,s=salt,i=4096")).await;
    exchange(&mut client, &mut upstream, &second, &token(b"v=signature")).await;
    client.send(&heartbeat(2)).await;
    assert_eq!(correlation_id(&client.frame().await), 2);
    exchange(&mut client, &mut upstream, &list_offsets(3), &offsets(3)).await;
}

/// Answers the question what the user may do with the group of [`heartbeat`].
async fn answer_probe(upstream: &mut Raw, error: i16, operations: i32) {
    let question = upstream.frame().await;
    let (api_key, version, id) = frames::head(&question);
    assert_eq!(api_key, DESCRIBE_GROUPS);
    let group = DescribedGroup::default()
        .with_group_id(StrBytes::from_static_str("group").into())
        .with_error_code(error)
        .with_authorized_operations(operations);
    let mut body = BytesMut::new();
    let answer = DescribeGroupsResponse::default().with_groups(vec![group]);
    answer.encode(&mut body, version).expect("a version that there is");
    upstream.send(&response(DESCRIBE_GROUPS, version, id, &body)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_user_may_do_is_asked_for_on_its_own_connection() {
    let mut fixture = fixture_with_authorizer().await;
    let (mut client, mut upstream) = plain(&mut fixture).await;
    client.send(&heartbeat(3)).await;
    answer_probe(&mut upstream, 0, 1 << 8).await;
    let refused = client.frame().await;
    assert_eq!((correlation_id(&refused), error(&refused)), (3, 30));
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    client.send(&heartbeat(4)).await;
    answer_probe(&mut upstream, 0, 1 << 3 | 1 << 8).await;
    assert_eq!(error(&client.frame().await), 25, "a new right counts");
    // Known, and so not asked for: the next frame that goes up is the client's.
    client.send(&[heartbeat(5), list_offsets(6)].concat()).await;
    assert_eq!(upstream.frame().await, list_offsets(6));
    upstream.send(&offsets(6)).await;
    assert_eq!(error(&client.frame().await), 25);
    assert_eq!(client.frame().await, offsets(6));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_asked_while_an_exchange_is_open() {
    let mut fixture = fixture_with_authorizer().await;
    let (mut client, mut upstream) = plain(&mut fixture).await;
    let frames = [handshake(1, 3, "PLAIN"), authenticate(4, b"\0me\0mine"), heartbeat(5)];
    client.send(&frames.concat()).await;
    upstream.frame().await;
    upstream.frame().await;
    upstream.silent().await;
    upstream.send(&accepted(1, 3)).await;
    upstream.silent().await;
    upstream.send(&authenticated(4, 0, b"")).await;
    answer_probe(&mut upstream, 0, 1 << 3 | 1 << 8).await;
    client.frame().await;
    client.frame().await;
    assert_eq!(correlation_id(&client.frame().await), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_cannot_be_asked_for_any_more_is_told_and_has_to_come_again() {
    let mut fixture = fixture_with_authorizer().await;
    let (mut client, mut upstream) = plain(&mut fixture).await;
    upstream.shutdown().await;
    upstream.closed().await;
    client.send(&[heartbeat(3), heartbeat(4)].concat()).await;
    let answer = client.frame().await;
    assert_eq!((correlation_id(&answer), error(&answer)), (3, 15));
    client.closed().await;
    fixture.mock.untouched();
    fixture.ended(CloseReason::UpstreamClosed).await;
}
