//! Answers leave in the order of the requests, whoever makes them.

use std::time::Duration;

use convoke::telemetry::close_reason::CloseReason;
use kafka_protocol::messages::ListGroupsResponse;
use kafka_protocol::protocol::Encodable;

use crate::fixture::Fixture;
use crate::frames::{
    API_VERSIONS, LIST_GROUPS, correlation_id, error, head, heartbeat, list_offsets, offsets, produce, request,
    response,
};
use crate::raw::Raw;

const UNKNOWN_MEMBER_ID: i16 = 25;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forwarded_local_and_injected_answers_leave_in_request_order() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.client().await;
    let pipelined = [
        list_offsets(1),
        heartbeat(2),
        list_offsets(3),
        request(LIST_GROUPS, 0, 4, b""),
        request(API_VERSIONS, 0, 5, b""),
        list_offsets(6),
    ];
    client.send(&pipelined.concat()).await;

    let mut upstream = fixture.mock.client().await;
    assert_eq!(head(&upstream.frame().await), (2, 1, 1));
    assert_eq!(head(&upstream.frame().await), (2, 1, 3), "the heartbeat ended here");
    // Asked on the client's own connection, behind what the client had sent.
    let question = upstream.frame().await;
    client.silent().await;
    upstream.send(&[offsets(1), offsets(3)].concat()).await;
    list_no_groups(&mut upstream, &question).await;
    assert_eq!(head(&upstream.frame().await), (2, 1, 6));
    upstream.send(&offsets(6)).await;

    assert_eq!(client.frame().await, offsets(1));
    let beat = client.frame().await;
    assert_eq!((correlation_id(&beat), error(&beat)), (2, UNKNOWN_MEMBER_ID));
    assert_eq!(client.frame().await, offsets(3));
    let listed = client.frame().await;
    assert_eq!((correlation_id(&listed), error(&listed)), (4, 0));
    let versions = client.frame().await;
    assert_eq!((correlation_id(&versions), error(&versions)), (5, 0));
    assert_eq!(client.frame().await, offsets(6));
}

/// Answers what is asked on a client's behalf.
async fn list_no_groups(upstream: &mut Raw, question: &[u8]) {
    let (key, version, id) = head(question);
    assert_eq!(key, LIST_GROUPS);
    let mut groups = Vec::new();
    ListGroupsResponse::default()
        .encode(&mut groups, version)
        .expect("a known version");
    upstream.send(&response(LIST_GROUPS, version, id, &groups)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_does_not_answer_for_a_client_costs_it_the_connection_and_nobody_else() {
    let mut fixture = Fixture::with(|config| config.upstream.request_timeout = Duration::from_millis(300)).await;
    let bystander = fixture.bystander().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    client
        .send(&[heartbeat(1), request(LIST_GROUPS, 0, 2, b""), heartbeat(3)].concat())
        .await;
    assert_eq!(head(&upstream.frame().await).0, LIST_GROUPS);
    assert_eq!(
        correlation_id(&client.frame().await),
        1,
        "what was asked before is answered"
    );
    client.closed().await;
    upstream.closed().await;
    fixture.ended(CloseReason::UpstreamSilent).await;
    bystander.goes_on().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_waits_for_as_long_as_the_client_s_own_requests_before_it() {
    let timeout = Duration::from_millis(200);
    let mut fixture = Fixture::with(|config| config.upstream.request_timeout = timeout).await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    client
        .send(&[list_offsets(1), request(LIST_GROUPS, 0, 2, b"")].concat())
        .await;
    assert_eq!(upstream.frame().await, list_offsets(1));
    let question = upstream.frame().await;
    tokio::time::sleep(4 * timeout).await;
    upstream.send(&offsets(1)).await;
    list_no_groups(&mut upstream, &question).await;
    assert_eq!(client.frame().await, offsets(1));
    let listed = client.frame().await;
    assert_eq!((correlation_id(&listed), error(&listed)), (2, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_own_answer_does_not_overtake_one_that_is_still_to_come() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    client.send(&[list_offsets(1), heartbeat(2)].concat()).await;
    upstream.frame().await;
    client.silent().await;
    upstream.send(&offsets(1)).await;
    assert_eq!(correlation_id(&client.frame().await), 1);
    assert_eq!(correlation_id(&client.frame().await), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn produce_without_acks_takes_no_place_among_the_answers() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    for version in 0..=13 {
        let silent = produce(version, 100, 0, 50);
        let answered = produce(version, 101, 1, 50);
        client
            .send(
                &[
                    silent.clone(),
                    list_offsets(1),
                    silent.clone(),
                    answered.clone(),
                    list_offsets(2),
                ]
                .concat(),
            )
            .await;
        for expected in [&silent, &list_offsets(1), &silent, &answered, &list_offsets(2)] {
            assert_eq!(&upstream.frame().await, expected, "v{version}");
        }
        let produced = response(0, version, 101, &produced(version));
        upstream
            .send(&[offsets(1), produced.clone(), offsets(2)].concat())
            .await;
        for expected in [offsets(1), produced, offsets(2)] {
            assert_eq!(client.frame().await, expected, "v{version}");
        }
    }
}

/// A Produce answer for no topics.
fn produced(version: i16) -> Vec<u8> {
    match version {
        0 => vec![0; 4],
        1..=8 => vec![0; 8],
        _ => vec![1, 0, 0, 0, 0, 0],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_request_holds_up_its_own_connection_and_no_other() {
    let mut fixture = Fixture::start().await;
    let (mut parked, mut upstream) = fixture.client_and_upstream().await;
    parked
        .send(&[crate::frames::join_group(1, "new", 0), list_offsets(2)].concat())
        .await;
    let mut other = fixture.client().await;
    other.send(&heartbeat(1)).await;
    assert_eq!(correlation_id(&other.frame().await), 1);
    parked.silent().await;
    upstream.silent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bootstrap_connections_are_served_by_the_bootstrap_list() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.bootstrap_client().await;
    client
        .send(&[request(API_VERSIONS, 0, 1, b""), heartbeat(2)].concat())
        .await;
    assert_eq!(error(&client.frame().await), 0);
    assert_eq!(correlation_id(&client.frame().await), 2);
    fixture.mock.untouched();
    client.send(&list_offsets(3)).await;
    let mut upstream = fixture.mock.client().await;
    assert_eq!(upstream.frame().await, list_offsets(3));
    upstream.send(&offsets(3)).await;
    assert_eq!(client.frame().await, offsets(3));
}

/// The first request that carries records moves its connection to another thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_turns_to_records_keeps_its_upstream_its_groups_and_its_order() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let pipelined = [
        produce(9, 1, 0, 10),
        produce(9, 2, 1, 10),
        heartbeat(3),
        list_offsets(4),
    ];
    for _ in 0..3 {
        client.send(&pipelined.concat()).await;
        for forwarded in [&pipelined[0], &pipelined[1], &pipelined[3]] {
            assert_eq!(&upstream.frame().await, forwarded);
        }
        client.silent().await;
        let produced = response(0, 9, 2, &[1, 0, 0, 0, 0, 0]);
        upstream.send(&[produced.clone(), offsets(4)].concat()).await;
        assert_eq!(client.frame().await, produced);
        let beat = client.frame().await;
        assert_eq!((correlation_id(&beat), error(&beat)), (3, UNKNOWN_MEMBER_ID));
        assert_eq!(client.frame().await, offsets(4));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_whose_upstream_has_closed_turns_to_records_on_a_new_one() {
    let mut fixture = Fixture::start().await;
    let (mut client, upstream) = fixture.client_and_upstream().await;
    drop(upstream);
    // Until it has noticed: requests that end here still work.
    client.send(&heartbeat(1)).await;
    client.frame().await;
    let request = produce(9, 2, 1, 10);
    client.send(&request).await;
    let mut upstream = fixture.mock.client().await;
    assert_eq!(upstream.frame().await, request);
}
