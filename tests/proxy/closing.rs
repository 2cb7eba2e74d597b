//! Each way in which a connection ends, and what the client still gets.

use std::time::Duration;

use convoke::telemetry::close_reason::CloseReason;
use convoke_support::rng::Rng;
use tokio::io::AsyncWriteExt;

use crate::fixture::{FRAME_MAX, Fixture};
use crate::frames::{
    API_VERSIONS, correlation_id, error, heartbeat, join_group, list_offsets, offsets, produce, request, response,
};
use crate::raw::soon;

const UNSUPPORTED_VERSION: i16 = 35;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_has_closed_its_side_still_gets_its_answers() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    client
        .send(&[list_offsets(1), heartbeat(2), list_offsets(3)].concat())
        .await;
    client.shutdown().await;
    upstream.frame().await;
    upstream.frame().await;
    upstream.silent().await;
    upstream.send(&[offsets(1), offsets(3)].concat()).await;
    for expected in [1, 2, 3] {
        assert_eq!(correlation_id(&client.frame().await), expected);
    }
    client.closed().await;
    upstream.closed().await;
    fixture.ended(CloseReason::ClientClosed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_closes_within_a_frame_gets_what_it_asked_for_before() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    client.send(&list_offsets(1)).await;
    client.send(&list_offsets(2)[..10]).await;
    client.shutdown().await;
    upstream.frame().await;
    upstream.send(&offsets(1)).await;
    assert_eq!(client.rest().await, offsets(1));
    fixture.ended(CloseReason::ClientClosed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_closes_within_a_frame_that_is_half_sent_up_waits_for_earlier_answers_only() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let half = produce(3, 2, 1, 100_000);
    client.send(&[&list_offsets(1)[..], &half[..50_000]].concat()).await;
    client.shutdown().await;
    assert_eq!(upstream.frame().await, list_offsets(1));
    let mut taken = vec![0; 50_000];
    let read = tokio::io::AsyncReadExt::read_exact(&mut upstream.stream, &mut taken);
    soon("half a frame", read).await.expect("it is passed on as it comes");
    assert!(taken == half[..50_000]);
    upstream.send(&offsets(1)).await;
    assert_eq!(client.frame().await, offsets(1));
    client.closed().await;
    upstream.closed().await;
    fixture.ended(CloseReason::ClientClosed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_dies_within_an_answer_takes_the_client_along() {
    let mut fixture = Fixture::start().await;
    let bystander = fixture.bystander().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    client.send(&list_offsets(1)).await;
    upstream.frame().await;
    upstream.send(&offsets(1)[..12]).await;
    drop(upstream);
    assert_eq!(client.rest().await, offsets(1)[..12]);
    fixture.ended(CloseReason::UpstreamClosed).await;
    bystander.goes_on().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_closes_instead_of_answering_takes_the_client_along() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    client.send(&[list_offsets(1), heartbeat(2)].concat()).await;
    upstream.frame().await;
    drop(upstream);
    client.closed().await;
    fixture.ended(CloseReason::UpstreamClosed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_closes_while_nothing_is_under_way_is_dialled_again() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    upstream.shutdown().await;
    upstream.closed().await;
    client.send(&heartbeat(1)).await;
    assert_eq!(
        correlation_id(&client.frame().await),
        1,
        "what ends here needs no upstream"
    );
    client.send(&list_offsets(2)).await;
    let mut upstream = fixture.mock.client().await;
    assert_eq!(upstream.frame().await, list_offsets(2));
    upstream.send(&offsets(2)).await;
    assert_eq!(client.frame().await, offsets(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_producer_without_acks_is_told_when_its_upstream_closes() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    client.send(&produce(9, 1, 0, 10)).await;
    upstream.frame().await;
    drop(upstream);
    client.closed().await;
    fixture.ended(CloseReason::UpstreamClosed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_out_of_reach_closes_the_client_after_its_earlier_answers() {
    let mut fixture = Fixture::start().await;
    fixture.mock.stop_listening().await;
    let mut client = fixture.client().await;
    client.send(&[heartbeat(1), list_offsets(2)].concat()).await;
    assert_eq!(correlation_id(&client.frame().await), 1);
    client.closed().await;
    fixture.ended(CloseReason::UpstreamUnreachable).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_to_another_request_closes_the_client() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    client.send(&list_offsets(1)).await;
    upstream.frame().await;
    upstream.send(&offsets(7)).await;
    client.closed().await;
    fixture.ended(CloseReason::UpstreamMalformed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_nobody_asked_for_closes_the_client() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    upstream.send(&offsets(7)).await;
    client.closed().await;
    fixture.ended(CloseReason::UpstreamMalformed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_above_the_frame_limit_closes_the_client() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    client.send(&list_offsets(1)).await;
    upstream.frame().await;
    let len = u32::try_from(FRAME_MAX + 1).expect("below 4 GiB");
    upstream
        .send(&[&len.to_be_bytes()[..], &1_i32.to_be_bytes()].concat())
        .await;
    client.closed().await;
    fixture.ended(CloseReason::UpstreamMalformed).await;
}

/// What a client sends that is not taken, behind a request that is.
async fn refuses(bytes: &[u8], reason: CloseReason) {
    let mut fixture = Fixture::start().await;
    let bystander = fixture.bystander().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    client
        .send(&[&list_offsets(1)[..], &heartbeat(2), bytes].concat())
        .await;
    assert_eq!(upstream.frame().await, list_offsets(1));
    upstream.send(&offsets(1)).await;
    assert_eq!(correlation_id(&client.frame().await), 1, "{reason}");
    assert_eq!(correlation_id(&client.frame().await), 2, "{reason}");
    client.closed().await;
    upstream.closed().await;
    fixture.ended(reason).await;
    bystander.goes_on().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_are_too_long_or_negative_are_not_taken() {
    let too_long = u32::try_from(FRAME_MAX + 1).expect("below 4 GiB").to_be_bytes();
    refuses(&too_long, CloseReason::FrameTooLong).await;
    refuses(b"GET / HTTP/1.1\r\n\r\n", CloseReason::FrameTooLong).await;
    refuses(&(-5_i32).to_be_bytes(), CloseReason::Malformed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_end_within_their_head_are_not_taken() {
    refuses(&[0, 0, 0, 0], CloseReason::Malformed).await;
    refuses(&[0, 0, 0, 6, 0, 2, 0, 1, 0, 0], CloseReason::Malformed).await;
    refuses(
        &[0, 0, 0, 10, 0, 0, 0, 3, 0, 0, 0, 1, 0xff, 0xff],
        CloseReason::Malformed,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apis_and_versions_that_are_not_offered_close_the_connection_as_a_broker_does() {
    const CONTROLLED_SHUTDOWN: i16 = 7;
    const TXN_OFFSET_COMMIT: i16 = 28;
    refuses(
        &[0, 0, 0, 12, 0x27, 0x10, 0, 0, 0, 0, 0, 9, 0, 2, b'm', b'e'],
        CloseReason::UnsupportedApi,
    )
    .await;
    refuses(&request(2, 99, 9, b""), CloseReason::UnsupportedApi).await;
    refuses(&request(12, 99, 9, b""), CloseReason::UnsupportedApi).await;
    for refused in [CONTROLLED_SHUTDOWN, TXN_OFFSET_COMMIT] {
        refuses(&request(refused, 3, 9, b""), CloseReason::UnsupportedApi).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_end_here_have_a_limit_of_their_own() {
    let fixture = Fixture::start().await;
    let mut client = fixture.client().await;
    client.send(&join_group(1, "g", 1024 * 1024)[..64 * 1024]).await;
    client.closed().await;
    fixture.ended(CloseReason::RequestTooLong).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owned_request_that_cannot_be_read_closes_the_connection() {
    let fixture = Fixture::start().await;
    let mut client = fixture.client().await;
    client.send(&request(12, 1, 1, &[0x7f, 0xff])).await;
    client.closed().await;
    fixture.ended(CloseReason::Refused).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_api_versions_is_answered_with_our_own_range() {
    let fixture = Fixture::start().await;
    let mut client = fixture.client().await;
    client.send(&request(API_VERSIONS, 99, 3, b"whatever")).await;
    let answer = client.frame().await;
    assert_eq!((correlation_id(&answer), error(&answer)), (3, UNSUPPORTED_VERSION));
    client.send(&request(API_VERSIONS, 3, 4, &[2, b'x', 2, b'1', 0])).await;
    let answer = client.frame().await;
    assert_eq!((correlation_id(&answer), error(&answer)), (4, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_recognised() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.client().await;
    client
        .send(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03])
        .await;
    client.closed().await;
    fixture.mock.untouched();
    fixture.ended(CloseReason::TlsBytes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_with_an_address_that_cannot_be_read_is_not_passed_on() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    client.send(&request(3, 1, 1, &[0xff, 0xff, 0xff, 0xff])).await;
    upstream.frame().await;
    upstream
        .send(&response(3, 1, 1, b"\0\0\0\x01\0\0\0\x01\0\x0bsecret-host"))
        .await;
    client.closed().await;
    fixture.ended(CloseReason::UpstreamMalformed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_frame_of_a_client_makes_a_connection_panic() {
    let fixture = Fixture::with(|config| config.limits.idle_timeout = Duration::from_millis(100)).await;
    let mut rng = Rng::new(1);
    let mut random = move || rng.word().to_be_bytes();
    for number in 0..400 {
        let garbage: Vec<u8> = (0..1 + number % 16).flat_map(|_| random()).collect();
        let (key, version) = (i16::try_from(number % 95).expect("small"), i16::from(random()[0] % 14));
        let mut client = fixture.client().await;
        // Closed under our hands as soon as it has been seen through.
        let _ = client.stream.write_all(&request(key, version, 1, &garbage)).await;
        let _ = client.stream.shutdown().await;
    }
    soon("the end of all", async {
        // The last ones may not be accepted yet.
        while fixture.metric("convoke_connections_opened_total") < 400.0 || fixture.metric("convoke_connections") > 0.0
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let panicked = "convoke_connections_closed_total{reason=\"panicked\"}";
    assert_eq!(fixture.metric(panicked), 0.0);
}
