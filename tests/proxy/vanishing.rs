//! Clients and upstreams that are cut off at any moment, clients that do not read, and what groups see of it: nothing, until
//! sessions end.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use convoke::coordinator::settings::Settings;
use convoke_support::rng::Rng;
use kafka_protocol::messages::consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::{
    DescribeGroupsRequest, GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    OffsetFetchRequest, ResponseHeader, SyncGroupRequest,
};
use kafka_protocol::protocol::{Decodable, HeaderVersion, Request, StrBytes};

use crate::fixture::{Fixture, VACANT};
use crate::frames::{self, heartbeat, list_offsets, offset_commit, offsets, produce};
use crate::raw::{Raw, soon, until_stuck};

const UNKNOWN_TOPIC: i16 = 3;
const REBALANCE_IN_PROGRESS: i16 = 27;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn group() -> GroupId {
    GroupId(text(VACANT))
}

fn join(member_id: &str, session_timeout_ms: i32, rebalance_timeout_ms: i32) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(Bytes::from_static(b"metadata"));
    JoinGroupRequest::default()
        .with_group_id(group())
        .with_member_id(text(member_id))
        .with_session_timeout_ms(session_timeout_ms)
        .with_rebalance_timeout_ms(rebalance_timeout_ms)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol])
}

fn beat(member_id: &StrBytes, generation_id: i32) -> HeartbeatRequest {
    HeartbeatRequest::default()
        .with_group_id(group())
        .with_member_id(member_id.clone())
        .with_generation_id(generation_id)
}

fn written<R: Request>(version: i16, request: &R) -> Vec<u8> {
    let mut body = BytesMut::new();
    request.encode(&mut body, version).expect("writable");
    frames::request(R::KEY, version, 1, &body)
}

async fn answer<R: Request>(client: &mut Raw, version: i16) -> R::Response {
    let mut frame = Bytes::from(client.frame().await).slice(4..);
    ResponseHeader::decode(&mut frame, R::Response::header_version(version)).expect("readable");
    R::Response::decode(&mut frame, version).expect("readable")
}

async fn ask<R: Request>(client: &mut Raw, version: i16, request: &R) -> R::Response {
    client.send(&written(version, request)).await;
    answer::<R>(client, version).await
}

/// State and number of members of the group.
async fn described(client: &mut Raw) -> (String, usize) {
    let request = DescribeGroupsRequest::default().with_groups(vec![group()]);
    let group = ask(client, 4, &request).await.groups.remove(0);
    (group.group_state.to_string(), group.members.len())
}

async fn until_described(client: &mut Raw, state: &str, members: usize) {
    let become_so = async {
        while described(client).await != (state.to_owned(), members) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(&format!("{state} with {members} members"), become_so).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_go_while_their_joins_are_parked_are_members_for_a_session_and_not_longer() {
    const CLIENTS: usize = 50;
    let fixture = Fixture::grouping(Settings {
        group_min_session_timeout_ms: 500,
        group_initial_rebalance_delay_ms: 1_000,
        ..Settings::default()
    })
    .await;
    let mut parked = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = fixture.client().await;
        client.send(&written(2, &join("", 700, 2_000))).await;
        parked.push(client);
    }
    let mut watcher = fixture.client().await;
    until_described(&mut watcher, "PreparingRebalance", CLIENTS).await;
    drop(parked);
    soon("the end of their connections", async {
        while fixture.metric("convoke_connections") > 1.0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    until_described(&mut watcher, "CompletingRebalance", CLIENTS).await;
    until_described(&mut watcher, "Empty", 0).await;
    let joined = ask(&mut watcher, 2, &join("", 700, 2_000)).await;
    assert_eq!((joined.error_code, joined.members.len()), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_does_not_read_holds_up_nobody_in_its_group() {
    let fixture = Fixture::grouping(Settings {
        group_initial_rebalance_delay_ms: 300,
        ..Settings::default()
    })
    .await;
    let (mut deaf, mut other) = (fixture.client().await, fixture.client().await);
    for client in [&mut deaf, &mut other] {
        client.send(&written(2, &join("", 10_000, 1_000))).await;
    }
    let deaf_id = answer::<JoinGroupRequest>(&mut deaf, 2).await.member_id;
    let joined: JoinGroupResponse = answer::<JoinGroupRequest>(&mut other, 2).await;
    for (client, id) in [(&mut deaf, &deaf_id), (&mut other, &joined.member_id)] {
        let sync = SyncGroupRequest::default()
            .with_group_id(group())
            .with_generation_id(joined.generation_id)
            .with_member_id(id.clone());
        client.send(&written(2, &sync)).await;
    }
    for client in [&mut deaf, &mut other] {
        assert_eq!(answer::<SyncGroupRequest>(client, 2).await.error_code, 0);
    }
    // Heartbeats alone have answers so short that sockets hold those of hundreds of thousands.
    let describe = DescribeGroupsRequest::default().with_groups(vec![group()]);
    let asked = [written(0, &beat(&deaf_id, joined.generation_id)), written(4, &describe)];
    let asked = asked.concat().repeat(100_000);
    let taken = until_stuck(&mut deaf, &asked).await;
    assert!(taken < asked.len(), "all of it was taken");

    let own_beat = beat(&joined.member_id, joined.generation_id);
    for _ in 0..100 {
        assert_eq!(ask(&mut other, 0, &own_beat).await.error_code, 0);
    }
    let mut newcomer = fixture.client().await;
    newcomer.send(&written(2, &join("", 10_000, 1_000))).await;
    let called = async {
        while ask(&mut other, 0, &own_beat).await.error_code != REBALANCE_IN_PROGRESS {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    soon("a call to rejoin", called).await;
    let rejoined = ask(&mut other, 2, &join(&joined.member_id, 10_000, 1_000)).await;
    assert_eq!(
        (rejoined.error_code, rejoined.generation_id),
        (0, joined.generation_id + 1)
    );
    assert_eq!(answer::<JoinGroupRequest>(&mut newcomer, 2).await.error_code, 0);
    assert_eq!(described(&mut other).await.1, 2, "without the one that did not hear");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_off_at_any_moment_leave_nothing_behind() {
    let mut fixture = Fixture::start().await;
    let bystander = fixture.bystander().await;
    let before = fixture.metric("convoke_connections");
    let mut chance = Rng::new(1);
    for _ in 0..400 {
        let (mut client, mut upstream) = fixture.client_and_upstream().await;
        let requests = [
            list_offsets(1),
            produce(9, 2, 1, 200_000),
            heartbeat(3),
            list_offsets(4),
        ]
        .concat();
        let sent = chance.below(requests.len() + 1);
        // Nobody may read it at the other end.
        until_stuck(&mut client, &requests[..sent]).await;
        if sent >= list_offsets(1).len() {
            assert_eq!(upstream.frame().await, list_offsets(1));
            let half = chance.below(offsets(1).len() + 1);
            upstream.send(&offsets(1)[..half]).await;
        }
        if chance.below(2) == 0 {
            drop(upstream);
            client.rest().await;
        } else {
            drop(client);
            // Whoever has gone may still be owed answers, which now never come.
            drop(upstream);
        }
    }
    soon("the end of all", async {
        while fixture.metric("convoke_connections") > before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let panicked = "convoke_connections_closed_total{reason=\"panicked\"}";
    assert_eq!(fixture.metric(panicked), 0.0);
    assert_eq!(fixture.metric("convoke_owned_memory_bytes"), 0.0);
    bystander.goes_on().await;
}

/// Nothing is asked of the upstream, and nobody is sent elsewhere, whichever address a client came by.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn group_apis_are_answered_on_every_address_and_go_no_further() {
    let mut fixture = Fixture::grouping(Settings {
        group_initial_rebalance_delay_ms: 0,
        ..Settings::default()
    })
    .await;
    for mut client in [fixture.client().await, fixture.bootstrap_client().await] {
        let joined = ask(&mut client, 2, &join("", 10_000, 10_000)).await;
        assert_eq!(joined.error_code, 0);
        let sync = SyncGroupRequest::default()
            .with_group_id(group())
            .with_generation_id(joined.generation_id)
            .with_member_id(joined.member_id.clone());
        assert_eq!(ask(&mut client, 2, &sync).await.error_code, 0);
        let beat = beat(&joined.member_id, joined.generation_id);
        assert_eq!(ask(&mut client, 3, &beat).await.error_code, 0);
        let fetch = OffsetFetchRequest::default().with_group_id(group()).with_topics(None);
        assert_eq!(ask(&mut client, 5, &fetch).await.error_code, 0);
        client.send(&offset_commit(1, VACANT, 1)).await;
        let commit = client.frame().await;
        assert_eq!(
            i16::from_be_bytes([commit[commit.len() - 2], commit[commit.len() - 1]]),
            UNKNOWN_TOPIC
        );
        assert_eq!(described(&mut client).await, ("Stable".to_owned(), 1));
        let identity = MemberIdentity::default().with_member_id(joined.member_id);
        let leave = LeaveGroupRequest::default()
            .with_group_id(group())
            .with_members(vec![identity]);
        assert_eq!(ask(&mut client, 3, &leave).await.members[0].error_code, 0);
        let consumer = ConsumerGroupHeartbeatRequest::default()
            .with_group_id(group())
            .with_member_id(text("member"))
            .with_rebalance_timeout_ms(10_000)
            .with_subscribed_topic_names(Some(vec![text("none").into()]))
            .with_topic_partitions(Some(Vec::new()));
        assert_eq!(ask(&mut client, 1, &consumer).await.error_code, 0);
        let gone = consumer.with_member_epoch(-1);
        assert_eq!(ask(&mut client, 1, &gone).await.error_code, 0);
    }
    fixture.mock.untouched();
}
