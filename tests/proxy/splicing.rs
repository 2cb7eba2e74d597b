//! Large frames that the kernel moves from one socket to the other, and what can befall them half-way.
//!
//! `convoke_spliced_bytes_total` tells what went that way. A frame is cut where the test wants it by waiting until the first
//! part has come out at the other end.

use std::sync::Arc;

use convoke::telemetry::close_reason::CloseReason;
use socket2::SockRef;
use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;

use crate::fixture::Fixture;
use crate::frames::{FETCH, LIST_OFFSETS, correlation_id, list_offsets, offsets, produce, request, response};
use crate::mock::fetch_with_endpoint;
use crate::raw::{PATIENCE, Raw, contains, soon, until_stuck};

const MEGABYTE: usize = 1024 * 1024;
/// Enough of a frame to show its head, and to be told from the rest.
const FIRST: usize = 200;

fn spliced(fixture: &Fixture) -> usize {
    let text = format!("{:.0}", fixture.metric("convoke_spliced_bytes_total"));
    text.parse().expect("a whole number")
}

/// A large answer to [`list_offsets`], with bytes that tell where they stand.
fn large_answer(correlation_id: i32, size: usize) -> Vec<u8> {
    let body: Vec<u8> = (0..size).map(|at| u8::try_from(at % 251).expect("small")).collect();
    response(LIST_OFFSETS, 1, correlation_id, &body)
}

/// Sends the start of a frame and waits until it has come through.
async fn start(from: &mut Raw, to: &mut Raw, frame: &[u8], first: usize) {
    from.send(&frame[..first]).await;
    expect(to, &frame[..first]).await;
}

/// The next bytes are these.
async fn expect(peer: &mut Raw, bytes: &[u8]) {
    let mut got = vec![0; bytes.len()];
    soon("the bytes", peer.stream.read_exact(&mut got))
        .await
        .expect("the stream goes on");
    assert!(got == bytes, "other bytes than were sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_of_a_large_frame_is_spliced_both_ways() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let up = produce(3, 1, 1, 3 * MEGABYTE);
    start(&mut client, &mut upstream, &up, FIRST).await;
    tokio::join!(client.send(&up[FIRST..]), expect(&mut upstream, &up[FIRST..]));
    assert_eq!(spliced(&fixture), up.len() - FIRST);

    let down = response(0, 3, 1, &up);
    start(&mut upstream, &mut client, &down, FIRST).await;
    tokio::join!(upstream.send(&down[FIRST..]), expect(&mut client, &down[FIRST..]));
    assert_eq!(spliced(&fixture), up.len() + down.len() - 2 * FIRST);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_frames_are_not_spliced() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let up = produce(3, 1, 1, 30 * 1024);
    tokio::join!(client.send(&up), expect(&mut upstream, &up));
    let down = response(0, 3, 1, &vec![1; 30 * 1024]);
    tokio::join!(upstream.send(&down), expect(&mut client, &down));
    assert_eq!(spliced(&fixture), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_frame_may_come_in_pieces_of_any_size() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    for piece in [1_000, 4096, 33_333] {
        let up = produce(9, 1, 1, 300_000);
        let request = async {
            for piece in up.chunks(piece) {
                client.send(piece).await;
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(request, expect(&mut upstream, &up));
        let down = response(0, 9, 1, &fetch_with_endpoint("h", 1, 300_000));
        let down = [&down[..], &offsets(2)].concat();
        client.send(&list_offsets(2)).await;
        assert_eq!(upstream.frame().await, list_offsets(2));
        let answer = async {
            for piece in down.chunks(piece) {
                upstream.send(piece).await;
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(answer, expect(&mut client, &down));
    }
    assert!(spliced(&fixture) > MEGABYTE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_large_frames_follow_each_other_with_small_ones_between() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let sizes = [100, 700_000, 40_000, 0, 2 * MEGABYTE, 65_536, 33_000, 7];
    let ids = || 1..;
    let up: Vec<u8> = ids()
        .zip(sizes)
        .flat_map(|(id, size)| [produce(3, 2 * id, 1, size), list_offsets(2 * id + 1)].concat())
        .collect();
    let down: Vec<u8> = ids()
        .zip(sizes)
        .flat_map(|(id, size)| [response(0, 3, 2 * id, &vec![0x2b; size]), offsets(2 * id + 1)].concat())
        .collect();
    tokio::join!(client.send(&up), expect(&mut upstream, &up));
    tokio::join!(upstream.send(&down), expect(&mut client, &down));
    assert!(spliced(&fixture) > 5 * MEGABYTE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_records_of_a_fetch_are_spliced_and_its_endpoints_taken_out() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let host = "upstream-two.internal";
    let answer = response(FETCH, 16, 5, &fetch_with_endpoint(host, 9092, MEGABYTE));
    let records_end = answer.iter().rposition(|byte| *byte == 0x5a).expect("records") + 1;
    for cut in [records_end - 1, records_end, records_end + 1, answer.len() - 1] {
        let before = spliced(&fixture);
        let fetch = request(FETCH, 16, 5, b"what there is");
        client.send(&fetch).await;
        assert_eq!(upstream.frame().await, fetch);
        start(&mut upstream, &mut client, &answer, FIRST).await;
        let mut rest = vec![0; answer.len() - FIRST];
        let sending = async {
            upstream.send(&answer[FIRST..cut]).await;
            tokio::task::yield_now().await;
            upstream.send(&answer[cut..]).await;
        };
        let (_, read) = tokio::join!(sending, soon("the rest", client.stream.read_exact(&mut rest)));
        read.expect("as long as it was announced");
        assert!(rest[..records_end - FIRST] == answer[FIRST..records_end]);
        assert!(!contains(&rest, host.as_bytes()), "the upstream's address got through");
        assert_eq!(spliced(&fixture) - before, records_end - FIRST, "cut at {cut}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fetch_that_ends_within_its_records_is_cut_off() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let mut body = fetch_with_endpoint("upstream-two.internal", 9092, MEGABYTE).to_vec();
    body.truncate(body.iter().rposition(|byte| *byte == 0x5a).expect("records") + 1);
    let answer = response(FETCH, 16, 5, &body);
    let fetch = request(FETCH, 16, 5, b"what there is");
    client.send(&fetch).await;
    assert_eq!(upstream.frame().await, fetch);
    start(&mut upstream, &mut client, &answer, FIRST).await;
    let (_, rest) = tokio::join!(upstream.send(&answer[FIRST..]), client.rest());
    assert!(answer[FIRST..] == rest);
    fixture.ended(CloseReason::UpstreamMalformed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_has_closed_its_side_behind_a_large_request_gets_its_large_answer() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let (up, down) = (
        produce(3, 1, 1, 2 * MEGABYTE),
        response(0, 3, 1, &vec![7; 2 * MEGABYTE]),
    );
    let request = async {
        client.send(&up).await;
        client.shutdown().await;
    };
    tokio::join!(request, expect(&mut upstream, &up));
    tokio::join!(upstream.send(&down), expect(&mut client, &down));
    client.closed().await;
    upstream.closed().await;
    fixture.ended(CloseReason::ClientClosed).await;
    assert!(spliced(&fixture) > 3 * MEGABYTE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_dies_within_a_large_answer_takes_the_client_along() {
    let mut fixture = Fixture::start().await;
    let bystander = fixture.bystander().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let answer = large_answer(1, MEGABYTE);
    client.send(&list_offsets(1)).await;
    upstream.frame().await;
    start(&mut upstream, &mut client, &answer, FIRST).await;
    upstream.send(&answer[FIRST..MEGABYTE / 2]).await;
    drop(upstream);
    assert!(client.rest().await == answer[FIRST..MEGABYTE / 2]);
    fixture.ended(CloseReason::UpstreamClosed).await;
    assert_eq!(spliced(&fixture), MEGABYTE / 2 - FIRST);
    bystander.goes_on().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_dies_within_a_large_request_takes_its_upstream_connection_along() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let request = produce(3, 1, 1, MEGABYTE);
    start(&mut client, &mut upstream, &request, FIRST).await;
    client.send(&request[FIRST..MEGABYTE / 2]).await;
    drop(client);
    assert!(upstream.rest().await == request[FIRST..MEGABYTE / 2]);
    fixture.ended(CloseReason::ClientClosed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_while_a_large_answer_comes_is_let_go() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let answer = large_answer(1, 64 * MEGABYTE);
    client.send(&list_offsets(1)).await;
    upstream.frame().await;
    start(&mut upstream, &mut client, &answer, FIRST).await;
    until_stuck(&mut upstream, &answer[FIRST..]).await;
    // With bytes unread, which resets the connection.
    drop(client);
    upstream.closed().await;
    fixture.ended(CloseReason::ClientFailed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_goes_while_a_large_request_comes_takes_the_client_along() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let request = produce(3, 1, 1, 64 * MEGABYTE);
    start(&mut client, &mut upstream, &request, FIRST).await;
    until_stuck(&mut client, &request[FIRST..]).await;
    drop(upstream);
    // Whichever half notices it first tells it as a failure or as the end of the stream.
    client.closed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_request_that_is_half_sent_up_is_finished_in_a_drain() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let request = produce(3, 1, 1, MEGABYTE);
    start(&mut client, &mut upstream, &request, MEGABYTE / 2).await;
    let stop = fixture.stop.clone();
    let drain = tokio::spawn(async move { stop.drain(PATIENCE).await });
    client.silent().await;
    tokio::join!(
        client.send(&request[MEGABYTE / 2..]),
        expect(&mut upstream, &request[MEGABYTE / 2..])
    );
    upstream.send(&response(0, 3, 1, &[0; 8])).await;
    assert_eq!(correlation_id(&client.frame().await), 1);
    client.closed().await;
    assert_eq!(soon("the drain", drain).await.expect("no panic"), 0);
    fixture.ended(CloseReason::Drained).await;
}

/// As many pipes as may be in use at once.
const PIPES: usize = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_do_not_read_may_take_all_pipes_and_others_are_served_without() {
    const MORE_THAN_SOCKETS_HOLD: usize = 48 * MEGABYTE;
    let mut fixture = Fixture::start().await;
    let answer = Arc::new(large_answer(1, MORE_THAN_SOCKETS_HOLD));
    let mut stuck = JoinSet::new();
    for _ in 0..PIPES {
        let (mut client, mut upstream) = fixture.client_and_upstream().await;
        SockRef::from(&client.stream)
            .set_recv_buffer_size(16 * 1024)
            .expect("an open socket");
        let answer = Arc::clone(&answer);
        stuck.spawn(async move {
            client.send(&list_offsets(1)).await;
            upstream.frame().await;
            start(&mut upstream, &mut client, &answer, FIRST).await;
            let taken = FIRST + until_stuck(&mut upstream, &answer[FIRST..]).await;
            assert!(taken < answer.len(), "the sockets hold it all");
            (client, upstream)
        });
    }
    let mut stuck = stuck.join_all().await;
    let before = spliced(&fixture);

    let (mut other, mut upstream) = fixture.client_and_upstream().await;
    let request = produce(3, 1, 1, MEGABYTE);
    tokio::join!(other.send(&request), expect(&mut upstream, &request));
    let small_answer = response(0, 3, 1, &vec![9; MEGABYTE]);
    tokio::join!(upstream.send(&small_answer), expect(&mut other, &small_answer));
    assert_eq!(spliced(&fixture), before, "a pipe was left");

    // Whoever goes gives its pipe back.
    let (client, mut its_upstream) = stuck.pop().expect("one of them");
    drop(client);
    its_upstream.closed().await;
    let before = spliced(&fixture);
    let request = produce(3, 2, 1, MEGABYTE);
    tokio::join!(other.send(&request), expect(&mut upstream, &request));
    assert!(spliced(&fixture) > before);
}
