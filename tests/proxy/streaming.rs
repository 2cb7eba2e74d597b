//! Frames go through in any size and in any pieces, and memory does not grow with them.

use tokio::io::AsyncWriteExt;

use crate::fixture::{BUFFER, Fixture};
use crate::frames::{FETCH, correlation_id, heartbeat, list_offsets, offsets, produce, request, response};
use crate::mock::fetch_with_endpoint;
use crate::raw::{Raw, contains, soon, until_stuck};

/// The longest answer that is readdressed, if it need not be.
const HELD_MAX: usize = 32 * 1024;
const FIVE_MEGABYTES: usize = 5 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_larger_than_the_buffer_go_through_both_ways() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.client().await;
    let up = produce(3, 7, 1, FIVE_MEGABYTES);
    let down = response(0, 3, 7, &vec![0x33; FIVE_MEGABYTES]);
    let behind = [list_offsets(8), heartbeat(9)].concat();
    let client_side = async {
        client.send(&up).await;
        client.send(&behind).await;
        assert!(client.frame().await == down);
        assert_eq!(client.frame().await, offsets(8));
        assert_eq!(correlation_id(&client.frame().await), 9);
    };
    let upstream_side = async {
        let mut upstream = fixture.mock.client().await;
        assert!(upstream.frame().await == up);
        upstream.send(&down).await;
        assert_eq!(upstream.frame().await, list_offsets(8));
        upstream.send(&offsets(8)).await;
        upstream
    };
    tokio::join!(client_side, upstream_side);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_answer_is_readdressed_and_a_large_one_loses_its_address() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let host = "upstream-two.internal";
    let own_port = fixture.node().port();
    for records in [100, HELD_MAX - 200, HELD_MAX, 4 * BUFFER + 17] {
        let fetch = request(FETCH, 16, 5, b"what there is");
        client.send(&fetch).await;
        assert_eq!(upstream.frame().await, fetch);
        let answer = response(FETCH, 16, 5, &fetch_with_endpoint(host, 9092, records));
        upstream.send(&answer).await;
        let got = client.frame().await;
        assert!(
            !contains(&got, host.as_bytes()),
            "{records}: the upstream's address got through"
        );
        assert!(contains(&got, &vec![0x5a; records]), "{records}: the records did not");
        if answer.len() > HELD_MAX {
            assert_eq!(
                got.len(),
                answer.len(),
                "{records}: the length was announced before the end was seen"
            );
        } else {
            assert!(
                contains(&got, b"127.0.0.1") && got.len() != answer.len(),
                "{records}: no address of ours"
            );
        }
    }
    assert_ne!(own_port, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_and_answers_may_be_cut_anywhere() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let up = [
        list_offsets(1),
        heartbeat(2),
        produce(9, 3, 0, 3),
        produce(9, 4, 1, 3),
        list_offsets(5),
    ];
    let forwarded = [&up[0], &up[2], &up[3], &up[4]];
    let down = [offsets(1), response(0, 9, 4, &[1, 0, 0, 0, 0, 0]), offsets(5)].concat();
    let requests = up.concat();
    for cut in 1..requests.len().max(down.len()) {
        send_cut(&mut client, &requests, cut).await;
        for expected in forwarded {
            assert_eq!(&upstream.frame().await, expected, "cut at {cut}");
        }
        send_cut(&mut upstream, &down, cut).await;
        for expected in [1, 2, 4, 5] {
            assert_eq!(correlation_id(&client.frame().await), expected, "cut at {cut}");
        }
    }
}

/// Sends in two pieces. The pause makes it likely, not certain, that they arrive as two; either way must do.
async fn send_cut(peer: &mut Raw, bytes: &[u8], cut: usize) {
    let (first, second) = bytes.split_at(cut.min(bytes.len()));
    peer.send(first).await;
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    peer.send(second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_byte_may_come_alone() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    for byte in [list_offsets(1), heartbeat(2)].concat() {
        client.send(&[byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(upstream.frame().await, list_offsets(1));
    for byte in offsets(1) {
        upstream.send(&[byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.frame().await, offsets(1));
    assert_eq!(correlation_id(&client.frame().await), 2);
}

/// More than the sockets of both hops may hold, whatever the kernel gives them.
const MORE_THAN_KERNELS_HOLD: usize = 96 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_slows_its_own_upstream_and_nobody_else() {
    let mut fixture = Fixture::start().await;
    let (mut slow, mut its_upstream) = fixture.client_and_upstream().await;
    slow.send(&list_offsets(1)).await;
    its_upstream.frame().await;
    let answer = response(2, 1, 1, &vec![0x44; MORE_THAN_KERNELS_HOLD]);
    let stuck = until_stuck(&mut its_upstream, &answer).await;
    assert!(
        stuck < answer.len() / 2,
        "{stuck} bytes were taken for a client that reads nothing"
    );

    let (mut other, mut upstream) = fixture.client_and_upstream().await;
    other.send(&list_offsets(1)).await;
    upstream.frame().await;
    upstream.send(&offsets(1)).await;
    assert_eq!(other.frame().await, offsets(1));

    let rest = its_upstream.stream.write_all(&answer[stuck..]);
    let (sent, got) = tokio::join!(soon("the rest", rest), slow.frame());
    sent.expect("the client reads now");
    assert!(got == answer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_does_not_read_slows_its_own_client() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let request = produce(3, 1, 1, MORE_THAN_KERNELS_HOLD);
    let stuck = until_stuck(&mut client, &request).await;
    assert!(
        stuck < request.len() / 2,
        "{stuck} bytes were taken for an upstream that reads nothing"
    );
    let rest = client.stream.write_all(&request[stuck..]);
    let (sent, got) = tokio::join!(soon("the rest", rest), upstream.frame());
    sent.expect("the upstream reads now");
    assert!(got == request);
}
