//! Limits: connections, idle time, requests under way.

use std::time::Duration;

use convoke::telemetry::close_reason::CloseReason;

use crate::fixture::{BUFFER, Fixture, VACANT};
use crate::frames::{correlation_id, heartbeat, join_group, list_offsets, offset_commit, offsets};
use crate::raw::soon;

const SHORT: Duration = Duration::from_millis(200);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_beyond_the_limit_are_turned_away_until_one_ends() {
    let fixture = Fixture::with(|config| config.limits.connections_max = 2).await;
    let mut first = fixture.client().await;
    let mut second = fixture.client().await;
    for client in [&mut first, &mut second] {
        client.send(&heartbeat(1)).await;
        client.frame().await;
    }
    fixture.client().await.closed().await;
    assert_eq!(fixture.metric("convoke_connections_refused_total"), 1.0);
    drop(first);
    fixture.ended(CloseReason::ClientClosed).await;
    let mut third = fixture.client().await;
    third.send(&heartbeat(1)).await;
    assert_eq!(correlation_id(&third.frame().await), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_address_may_not_take_all_connections() {
    let fixture = Fixture::with(|config| config.limits.connections_max_per_ip = 1).await;
    let mut first = fixture.client().await;
    first.send(&heartbeat(1)).await;
    first.frame().await;
    fixture.client().await.closed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_says_nothing_is_disconnected() {
    let fixture = Fixture::with(|config| config.limits.idle_timeout = SHORT).await;
    let mut client = fixture.client().await;
    client.closed().await;
    fixture.ended(CloseReason::IdleTimeout).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stops_within_a_frame_is_disconnected() {
    let fixture = Fixture::with(|config| config.limits.idle_timeout = SHORT).await;
    let mut client = fixture.client().await;
    client.send(&heartbeat(1)[..9]).await;
    client.closed().await;
    fixture.ended(CloseReason::IdleTimeout).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_waits_for_an_answer_is_not_idle() {
    let mut fixture = Fixture::with(|config| config.limits.idle_timeout = SHORT).await;
    let mut parked = fixture.client().await;
    parked.send(&join_group(1, "new", 0)).await;
    let mut waiting = fixture.client().await;
    waiting.send(&list_offsets(1)).await;
    let mut upstream = fixture.mock.client().await;
    upstream.frame().await;
    fixture.client().await.closed().await;
    parked.silent().await;
    upstream.send(&offsets(1)).await;
    assert_eq!(waiting.frame().await, offsets(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_take_its_answers_is_disconnected() {
    let mut fixture = Fixture::with(|config| config.limits.idle_timeout = SHORT).await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    client.send(&list_offsets(1)).await;
    upstream.frame().await;
    let answer = crate::frames::response(2, 1, 1, &vec![0; 64 * 1024 * 1024]);
    // It ends when the proxy has given the client up.
    let sent = tokio::io::AsyncWriteExt::write_all(&mut upstream.stream, &answer);
    soon("the end", sent).await.expect_err("nobody reads");
    fixture.ended(CloseReason::ClientStalled).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_so_many_requests_of_a_connection_are_under_way() {
    let mut fixture = Fixture::with(|config| config.limits.pipeline_max = 2).await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let all: Vec<u8> = (1..=20).flat_map(list_offsets).collect();
    client.send(&all).await;
    let mut up = 0;
    // Two wait in the queue, one is awaited.
    while up < 3 {
        up += 1;
        assert_eq!(upstream.frame().await, list_offsets(up));
    }
    upstream.silent().await;
    for id in 1..=20 {
        upstream.send(&offsets(id)).await;
        assert_eq!(client.frame().await, offsets(id));
        if up < 20 {
            up += 1;
            assert_eq!(upstream.frame().await, list_offsets(up));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_made_here_do_not_pile_up_for_a_client_that_does_not_read() {
    let mut fixture = Fixture::with(|config| config.limits.pipeline_max = 10_000).await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    // Behind a forwarded request that is not answered, so that none can leave.
    client.send(&list_offsets(1)).await;
    upstream.frame().await;
    let beats: Vec<u8> = (0..20_000).flat_map(heartbeat).collect();
    let write = tokio::io::AsyncWriteExt::write_all(&mut client.stream, &beats);
    soon("the kernel's taking them", write).await.expect("open");
    let answered = || fixture.metric("convoke_requests_total{api=\"Heartbeat\"}");
    let mut before = -1.0;
    while answered() > before {
        before = answered();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(before < 10_000.0, "{before} answers are held");
    upstream.send(&offsets(1)).await;
    assert_eq!(client.frame().await, offsets(1));
    for id in 0..20_000 {
        assert_eq!(correlation_id(&client.frame().await), id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_requests_that_end_here_share_a_bound_which_stalled_ones_cannot_keep() {
    const LONG: usize = 1000 * 1024;
    let fixture = Fixture::start().await;
    let held = || fixture.metric("convoke_owned_memory_bytes");
    let half = &join_group(1, "g", LONG)[..LONG / 2];
    // Two find memory, of 2 MiB; the third waits for its turn.
    let mut stalled = Vec::new();
    for _ in 0..3 {
        let mut client = fixture.client().await;
        client.send(half).await;
        stalled.push(client);
    }
    let taken = (2 * join_group(1, "g", LONG).len()) as f64;
    soon("two turns", async {
        while held() < taken {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    let mut long = fixture.client().await;
    long.send(&join_group(7, "", LONG)).await;
    let mut short = fixture.client().await;
    short.send(&heartbeat(8)).await;
    assert_eq!(correlation_id(&short.frame().await), 8);
    long.silent().await;
    assert_eq!(held(), taken);
    for client in &mut stalled[..2] {
        client.closed().await;
    }
    assert_eq!(correlation_id(&long.frame().await), 7);
    fixture.ended(CloseReason::ClientStalled).await;
    stalled[2].closed().await;
    assert_eq!(held(), 0.0);
}

/// A rebalance may take as long as its slowest member; what has been handed to its group needs no turn any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_that_are_parked_do_not_hold_up_the_long_requests_of_others() {
    const LONG: usize = 1000 * 1024;
    let fixture = Fixture::start().await;
    let held = || fixture.metric("convoke_owned_memory_bytes");
    let mut parked = Vec::new();
    // Five times as much as there may be under way.
    for number in 0..10 {
        let mut client = fixture.client().await;
        client
            .send(&join_group(1, &format!("{VACANT}-{}", number % 3), LONG))
            .await;
        parked.push(client);
    }
    let joins = || fixture.metric("convoke_requests_total{api=\"JoinGroup\"}");
    soon("all turns", async {
        while joins() < 10.0 || held() > 0.0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    for number in 0..3 {
        let mut client = fixture.client().await;
        let commit = offset_commit(number, &format!("{VACANT}-commits"), 20_000);
        assert!(commit.len() > 4 * BUFFER);
        client.send(&commit).await;
        assert_eq!(correlation_id(&client.frame().await), number);
    }
    for client in &mut parked {
        client.silent().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bound_holds_whoever_sends_halves_and_goes() {
    let fixture = Fixture::start().await;
    let request = join_group(1, "", 900 * 1024);
    let mut hostile = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (node, half) = (fixture.node(), request[..100 * 1024 + number * 1024].to_vec());
        hostile.spawn(async move {
            let mut client = crate::raw::Raw::connect(node).await;
            client.send(&half).await;
        });
    }
    while let Some(gone) = hostile.join_next().await {
        gone.expect("it sent its half");
        assert!(fixture.metric("convoke_owned_memory_bytes") <= (2 * 1024 * 1024) as f64);
    }
    let mut client = fixture.client().await;
    client.send(&request).await;
    assert_eq!(correlation_id(&client.frame().await), 1);
}
