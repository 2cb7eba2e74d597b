//! The admin side over real sockets, in front of a stand-in for the assembled process.

mod stand_in;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use convoke::admin::{Admin, Listening, Readiness, Shards, UpstreamHealth};
use convoke::coordinator::partitions::TopicPartition;
use convoke::coordinator::record::MemberState;
use convoke::coordinator::request::{
    ClientAssignor, ComputationView, ConsumerGroupView, ConsumerMemberView, ExternalAssignorView,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use uuid::Uuid;

use stand_in::{ORDERS, StandIn, exchange, get, start, view};

/// An id that no topic has any more.
const GONE: Uuid = Uuid::from_u128(0xB);

#[tokio::test]
async fn health_is_ok_and_readiness_says_what_is_missing_until_nothing_is() {
    let running = start(StandIn::default()).await;
    let (status, _, body) = get(running.address, "/healthz").await;
    assert_eq!((status, body.as_str()), (200, "ok\n"));
    let (status, _, body) = get(running.address, "/readyz").await;
    let report: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(status, 503);
    assert_eq!(
        report["reasons"],
        json!([
            "upstream: no answer yet (for 0 s)",
            "shards: how many there are is not known yet",
            "listeners: bound, but not serving yet"
        ])
    );
    running.subject.readiness.lock().expect("not poisoned").settings_failure = Some("no node answers".to_owned());
    let (_, _, body) = get(running.address, "/readyz").await;
    assert!(
        body.contains("shards: how many there are is not known yet: no node answers"),
        "{body}"
    );
    *running.subject.readiness.lock().expect("not poisoned") = Readiness {
        upstream: UpstreamHealth {
            reachable: true,
            nodes: 3,
            metadata_age: Some(Duration::from_millis(1500)),
            ..UpstreamHealth::default()
        },
        shards: Shards {
            total: 50,
            loaded: 50,
            failed: 0,
        },
        settings_failure: None,
        store_failure: None,
        listening: Listening::Serving,
    };
    let (status, head, body) = get(running.address, "/readyz").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: application/json"), "{head}");
    let expected = json!({
        "ready": true,
        "reasons": [],
        "upstream": {"reachable": true, "nodes": 3, "metadata_age_seconds": 1.5, "last_error": null},
        "shards": {"total": 50, "loaded": 50, "failed": 0},
        "store": {"writable": true, "last_error": null},
        "listeners": "serving",
    });
    assert_eq!(serde_json::from_str::<Value>(&body).expect("JSON"), expected);
    // Loaded, but what is asked of them cannot be made durable.
    running.subject.readiness.lock().expect("not poisoned").store_failure =
        Some("cannot write /data/convoke.redb: No space left on device".to_owned());
    let (status, _, body) = get(running.address, "/readyz").await;
    let report: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, report["store"]["writable"].as_bool()), (503, Some(false)));
    let reason = report["reasons"][0].as_str().expect("a reason");
    assert!(
        reason.starts_with("store: cannot write /data/convoke.redb: No space left"),
        "{reason}"
    );
}

#[tokio::test]
async fn groups_are_shown_with_their_members_and_decoded_assignments() {
    let running = start(StandIn {
        views: vec![Some(view()), None],
        ..StandIn::default()
    })
    .await;
    let (status, _, body) = get(running.address, "/groups").await;
    assert_eq!(status, 200);
    let expected = json!({
        "groups": [{
            "group_id": "orders \"quoted\"",
            "type": "classic",
            "state": "Stable",
            "state_since_ms": 1_700_000_000_000_i64,
            "generation_id": 3,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "leader": "m-1",
            "members": [{
                "member_id": "m-1",
                "group_instance_id": null,
                "client_id": "c",
                "client_host": "/127.0.0.1",
                "session_timeout_ms": 45_000,
                "rebalance_timeout_ms": 300_000,
                "parked": false,
                "assignment": {"t": [7]},
                "assignment_bytes": 21,
                "consumer": null,
            }],
            "pending_members": 0,
            "committed_offsets": 4,
            "classic": {
                "assigned_by": "coordinator",
                "assignor": "sticky",
                "computation": {"assignor": "lag", "member_id": "x", "passed_over": ["y"]},
                "partitions_withheld": 2,
            },
            "consumer": null,
        }],
        "external_assignors": [],
        "shards_unavailable": 1,
    });
    assert_eq!(serde_json::from_str::<Value>(&body).expect("JSON"), expected);
}

#[tokio::test]
async fn a_consumer_group_is_shown_with_how_far_it_is() {
    let mut view = view();
    let group = &mut view.groups[0];
    group.group_type = "consumer".into();
    group.consumer = Some(ConsumerGroupView {
        assignment_epoch: 3,
        computed_by: None,
        assignor_error: 0,
        computation: None,
        partitions_to_revoke: 1,
        partitions_to_assign: 2,
    });
    let assigned =
        [(ORDERS, 2), (ORDERS, 0), (GONE, 1)].map(|(topic_id, partition)| TopicPartition { topic_id, partition });
    group.members[0].assignment = Bytes::new();
    group.members[0].consumer = Some(ConsumerMemberView {
        member_epoch: 2,
        state: MemberState::UnreleasedPartitions,
        is_classic: true,
        assigned: Arc::new(assigned.into_iter().collect()),
        to_revoke: 1,
        to_assign: 2,
    });
    let running = start(StandIn {
        views: vec![Some(view)],
        ..StandIn::default()
    })
    .await;
    let (_, _, body) = get(running.address, "/groups").await;
    let shown: Value = serde_json::from_str(&body).expect("JSON");
    let group = &shown["groups"][0];
    let expected = json!({
        "assignment_epoch": 3,
        "computed_by": null,
        "assignor_error": 0,
        "computation": null,
        "partitions_to_revoke": 1,
        "partitions_to_assign": 2,
    });
    assert_eq!(group["consumer"], expected);
    let member = &group["members"][0];
    assert_eq!(member["assignment"], json!({"orders": [0, 2], GONE.to_string(): [1]}));
    let expected = json!({
        "epoch": 2,
        "state": "unreleased_partitions",
        "protocol": "classic",
        "partitions_to_revoke": 1,
        "partitions_to_assign": 2,
    });
    assert_eq!(member["consumer"], expected);
}

#[tokio::test]
async fn who_computes_assignments_is_shown_with_the_group_and_without() {
    let mut view = view();
    view.groups[0].consumer = Some(ConsumerGroupView {
        assignment_epoch: 3,
        computed_by: Some("uniform".into()),
        assignor_error: -7,
        computation: Some(ComputationView {
            assignor: "lag-balanced".into(),
            member_id: Some("e-2".into()),
            passed_over: vec!["e-1".into()],
        }),
        partitions_to_revoke: 0,
        partitions_to_assign: 0,
    });
    let external = |group_id: &str, member_id: &str| ExternalAssignorView {
        group_id: group_id.into(),
        member_id: member_id.into(),
        client_id: "convoke-assignor".into(),
        client_host: "/127.0.0.1".into(),
        rebalance_timeout_ms: 30_000,
        assignors: vec![ClientAssignor {
            name: "lag-balanced".into(),
            minimum_version: 0,
            maximum_version: 1,
            reason: 0,
            metadata_version: 1,
            metadata: Bytes::from_static(b"not shown"),
        }],
        parked: member_id == "e-1",
    };
    view.externals = vec![external("orders", "e-2"), external("nobody's", "e-1")];
    let running = start(StandIn {
        views: vec![Some(view)],
        ..StandIn::default()
    })
    .await;
    let (_, _, body) = get(running.address, "/groups").await;
    let shown: Value = serde_json::from_str(&body).expect("JSON");
    let consumer = &shown["groups"][0]["consumer"];
    assert_eq!(
        (&consumer["computed_by"], &consumer["assignor_error"]),
        (&json!("uniform"), &json!(-7))
    );
    let expected = json!({"assignor": "lag-balanced", "member_id": "e-2", "passed_over": ["e-1"]});
    assert_eq!(consumer["computation"], expected);
    let expected = |group_id: &str, member_id: &str| {
        json!({
            "group_id": group_id,
            "member_id": member_id,
            "client_id": "convoke-assignor",
            "client_host": "/127.0.0.1",
            "rebalance_timeout_ms": 30_000,
            "assignors": ["lag-balanced"],
            "parked": member_id == "e-1",
        })
    };
    let expected = json!([expected("nobody's", "e-1"), expected("orders", "e-2")]);
    assert_eq!(shown["external_assignors"], expected);
    let (_, _, metrics) = get(running.address, "/metrics").await;
    assert!(metrics.contains("convoke_external_assignors 2\n"), "{metrics}");
}

#[tokio::test]
async fn metrics_count_the_groups_of_this_moment() {
    let running = start(StandIn {
        views: vec![Some(view())],
        ..StandIn::default()
    })
    .await;
    let (status, head, body) = get(running.address, "/metrics").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(
        body.contains("convoke_groups{state=\"Stable\",type=\"classic\"} 1\n"),
        "{body}"
    );
    assert!(body.contains("convoke_group_members 1\n"));
    assert!(body.contains("\nprocess_resident_memory_bytes "));
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let running = start(StandIn::default()).await;
    let (status, _, body) = get(running.address, "/").await;
    assert_eq!(status, 404);
    assert!(body.contains("/groups"), "{body}");
    let post = "POST /groups HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let refused = exchange(running.address, post).await;
    assert!(refused.starts_with("HTTP/1.1 405"), "{refused}");
    assert!(refused.to_ascii_lowercase().contains("allow: get, head"), "{refused}");
    let head = exchange(
        running.address,
        "HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn heads_are_limited() {
    let running = start(StandIn::default()).await;
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(40_000));
    let refused = exchange(running.address, &long).await;
    assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 4"), "{refused}");
}

/// As many connections as are open at a time.
const CONNECTIONS: usize = 64;

/// Whether the server has closed the connection; nothing is to be read from it otherwise.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    let read = tokio::time::timeout(Duration::from_millis(20), stream.read(&mut byte)).await;
    // A reset counts as closed too.
    read.is_ok_and(|read| read.unwrap_or(0) == 0)
}

#[tokio::test]
async fn idle_connections_keep_no_health_check_and_no_scrape_out() {
    let running = start(StandIn::default()).await;
    let mut silent = Vec::new();
    for number in 0..3 * CONNECTIONS {
        let mut stream = TcpStream::connect(running.address).await.expect("a connection");
        if number % 2 == 0 {
            stream.write_all(b"GET /hea").await.expect("half a head");
        }
        silent.push(stream);
    }
    for path in ["/healthz", "/metrics", "/readyz", "/groups"] {
        let (status, _, _) = get(running.address, path).await;
        assert!(matches!(status, 200 | 503), "{path}: {status}");
    }
    let mut open = 0;
    for stream in silent.iter_mut().rev() {
        let closed = is_closed(stream).await;
        open += usize::from(!closed);
        assert!(
            !closed || open >= CONNECTIONS - 4,
            "a younger one went before an older one"
        );
    }
    assert!(open <= CONNECTIONS, "{open} stay");
}

#[tokio::test]
async fn a_scrape_that_is_being_answered_is_not_closed_for_a_newcomer() {
    let running = start(StandIn {
        gate: Some(Arc::new(Semaphore::new(0))),
        ..StandIn::default()
    })
    .await;
    let gate = running.subject.gate.clone().expect("a gate");
    let mut waiting = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(running.address).await.expect("a connection");
        let request = b"GET /groups HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.expect("a request");
        waiting.push(stream);
    }
    let all_wait = async {
        while running.subject.asked.load(Ordering::Relaxed) < CONNECTIONS {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), all_wait)
        .await
        .expect("every request is being answered");
    let mut one_more = TcpStream::connect(running.address).await.expect("a connection");
    assert_eq!(one_more.read(&mut [0]).await.unwrap_or(0), 0, "closed at once");
    gate.add_permits(CONNECTIONS);
    for mut stream in waiting {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let (status, _, _) = get(running.address, "/healthz").await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_taken_port_is_named_with_what_to_do() {
    let running = start(StandIn::default()).await;
    let error = Admin::bind(running.address).await.expect_err("taken").to_string();
    assert!(
        error.contains(&running.address.to_string()) && error.contains("--admin"),
        "{error}"
    );
}
