//! Stopping: nothing new, what is under way is answered, the rest is cut off in time.

use std::time::Duration;

use convoke::telemetry::close_reason::CloseReason;
use tokio::net::TcpStream;

use crate::fixture::Fixture;
use crate::frames::{correlation_id, heartbeat, join_group, list_offsets, offsets};
use crate::raw::{PATIENCE, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_answers_what_is_under_way_and_takes_nothing_new() {
    let mut fixture = Fixture::start().await;
    let mut idle = fixture.client().await;
    idle.send(&heartbeat(1)).await;
    idle.frame().await;
    let (mut busy, mut upstream) = fixture.client_and_upstream().await;
    busy.send(&list_offsets(1)).await;
    upstream.frame().await;

    let stop = fixture.stop.clone();
    let drain = tokio::spawn(async move { stop.drain(PATIENCE).await });
    idle.closed().await;
    busy.silent().await;
    assert!(
        TcpStream::connect(fixture.node()).await.is_err(),
        "a listener is still open"
    );
    upstream.send(&offsets(1)).await;
    assert_eq!(busy.frame().await, offsets(1));
    busy.closed().await;
    assert_eq!(soon("the drain", drain).await.expect("no panic"), 0);
    fixture.ended(CloseReason::Drained).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_ends_when_its_time_is_over() {
    let fixture = Fixture::start().await;
    let mut parked = fixture.client().await;
    parked.send(&join_group(1, "new", 0)).await;
    while fixture.metric("convoke_requests_total{api=\"JoinGroup\"}") == 0.0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let cut_off = soon("the drain", fixture.stop.drain(Duration::from_millis(100))).await;
    assert_eq!(cut_off, 1);
    parked.closed().await;
    fixture.ended(CloseReason::DrainTimeout).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_half_sent_up_is_finished() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let request = crate::frames::produce(3, 1, 1, 1000);
    client.send(&request[..500]).await;
    let mut first = [0; 100];
    tokio::io::AsyncReadExt::read_exact(&mut upstream.stream, &mut first)
        .await
        .expect("it is passed on as it comes");
    let stop = fixture.stop.clone();
    let drain = tokio::spawn(async move { stop.drain(PATIENCE).await });
    client.silent().await;
    client.send(&request[500..]).await;
    let mut rest = vec![0; request.len() - 100];
    tokio::io::AsyncReadExt::read_exact(&mut upstream.stream, &mut rest)
        .await
        .expect("the rest");
    upstream.send(&crate::frames::response(0, 3, 1, &[0; 8])).await;
    assert_eq!(correlation_id(&client.frame().await), 1);
    client.closed().await;
    assert_eq!(soon("the drain", drain).await.expect("no panic"), 0);
}
