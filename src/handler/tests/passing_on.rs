//! Groups that are not coordinated here: whole requests go on as they came, others are split and merged.

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka_protocol::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{
    DescribeGroupsRequest, DescribeGroupsResponse, HeartbeatResponse, JoinGroupResponse, LeaveGroupResponse,
    OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteResponse, OffsetFetchRequest, OffsetFetchResponse,
    SyncGroupResponse,
};

use super::groups::{commits, delete, deleted, deletes, describe, described, describes, offset_delete_of};
use super::kit::*;
use super::membership::{heartbeat, join, leave, sync};
use super::offset_commit::{commit, commit_by_id};
use super::offset_fetch::{ById, fetch_by_id, group, single};
use crate::handler::Answer;
use crate::wire::api::*;

/// Every request about one group, in its newest version that kafka-protocol writes.
fn requests(group_id: &str) -> Vec<(i16, i16, Bytes)> {
    vec![
        (JOIN_GROUP, 9, encode(&join(group_id, ""), 9)),
        (SYNC_GROUP, 5, encode(&sync(group_id, "m", 1, 5), 5)),
        (HEARTBEAT, 4, encode(&heartbeat(group_id, "m", 1), 4)),
        (LEAVE_GROUP, 5, encode(&leave(group_id, "m", 5), 5)),
        (OFFSET_COMMIT, 9, encode(&commit(group_id, &[("orders", &[0])]), 9)),
        (OFFSET_FETCH, 7, encode(&single(group_id, None), 7)),
        (
            OFFSET_FETCH,
            9,
            encode(
                &OffsetFetchRequest::default().with_groups(vec![group(group_id, None)]),
                9,
            ),
        ),
        (OFFSET_DELETE, 0, encode(&offset_delete_of(group_id), 0)),
        (DESCRIBE_GROUPS, 6, encode(&describe(&[group_id]), 6)),
        (DELETE_GROUPS, 3, delete(&[group_id], 3)),
    ]
}

#[tokio::test]
async fn a_request_about_a_foreign_group_alone_goes_on_as_it_came() {
    let setup = Setup::new().await;
    for group_id in ["delegated-g", "live-g"] {
        // A fetch makes the coordinator ask; a member of a group that nobody asked about is simply unknown.
        setup
            .handle(
                OFFSET_FETCH,
                7,
                encode(&single(group_id, None), 7),
                &mut Upstream::unused(),
            )
            .await;
        for (api_key, version, body) in requests(group_id) {
            let answer = setup.handle(api_key, version, body, &mut Upstream::unused()).await;
            assert!(
                matches!(answer, Answer::Forward),
                "api {api_key} v{version} {group_id}: {answer:?}"
            );
        }
        let body = commit_by_id(group_id, &[(ORDERS, &[0])]);
        let answer = setup.handle(OFFSET_COMMIT, 10, body, &mut Upstream::unused()).await;
        assert!(matches!(answer, Answer::Forward), "{answer:?}");
        let body = fetch_by_id(&[(group_id, None)]);
        let answer = setup.handle(OFFSET_FETCH, 10, body, &mut Upstream::unused()).await;
        assert!(matches!(answer, Answer::Forward), "{answer:?}");
    }
}

#[tokio::test]
async fn what_an_older_upstream_cannot_read_is_not_sent_there() {
    let keys = [JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP];
    let options = Options {
        versions: keys.map(|key| (key, (0, 1))).into(),
        ..Options::default()
    };
    let setup = Setup::with(options);
    setup.loaded().await;
    let id = "delegated-g";
    let response: JoinGroupResponse = setup.ask(JOIN_GROUP, 9, &join(id, "")).await;
    assert_eq!(response.error_code, 35);
    let response: SyncGroupResponse = setup.ask(SYNC_GROUP, 5, &sync(id, "m", 1, 5)).await;
    assert_eq!(response.error_code, 35);
    let response: HeartbeatResponse = setup.ask(HEARTBEAT, 4, &heartbeat(id, "m", 1)).await;
    assert_eq!(response.error_code, 35);
    let response: LeaveGroupResponse = setup.ask(LEAVE_GROUP, 5, &leave(id, "m", 5)).await;
    assert_eq!(response.error_code, 35);
    let answer = setup
        .handle(HEARTBEAT, 1, encode(&heartbeat(id, "m", 1), 1), &mut Upstream::unused())
        .await;
    assert!(matches!(answer, Answer::Forward), "{answer:?}");
    let response: OffsetDeleteResponse = {
        let options = Options {
            versions: BTreeMap::from([(OFFSET_DELETE, (1, 1))]),
            ..Options::default()
        };
        Setup::with(options).ask(OFFSET_DELETE, 0, &offset_delete_of(id)).await
    };
    assert_eq!(response.error_code, 35);
}

#[tokio::test]
async fn descriptions_are_merged_in_the_order_of_the_request() {
    let setup = Setup::new().await;
    commits(&setup, "ours").await;
    let ids = ["delegated-a", "ours", "unknown", "delegated-b"];
    for version in versions::<DescribeGroupsRequest>() {
        // In another order, and without one.
        let answers = vec![described("unknown", "Dead"), described("delegated-a", "Stable")];
        let mut upstream = Upstream::answering(describes(answers));
        let (response, _) = setup
            .exchange::<DescribeGroupsResponse>(
                DESCRIBE_GROUPS,
                version,
                encode(&describe(&ids), version),
                &mut upstream,
            )
            .await;
        let got: Vec<_> = response
            .groups
            .iter()
            .map(|group| (group.group_id.as_str(), group.group_state.as_str(), group.error_code))
            .collect();
        let not_found = if version >= 6 { 69 } else { 0 };
        let expected = [
            ("delegated-a", "Stable", 0),
            ("ours", "Empty", 0),
            ("unknown", "Dead", not_found),
            ("delegated-b", "", 15),
        ];
        assert_eq!(got, expected, "v{version}");
        let message = response.groups[2].error_message.as_deref();
        assert_eq!(message, (version >= 6).then_some("Group unknown not found."));
        let asked: DescribeGroupsRequest = upstream.asked[0].decode();
        let asked: Vec<_> = asked.groups.iter().map(|id| id.to_string()).collect();
        assert_eq!(asked, ["delegated-a", "unknown", "delegated-b"]);

        let (response, counted) = setup
            .exchange::<DescribeGroupsResponse>(
                DESCRIBE_GROUPS,
                version,
                encode(&describe(&ids), version),
                &mut Upstream::gone(),
            )
            .await;
        let errors: Vec<_> = response.groups.iter().map(|group| group.error_code).collect();
        assert_eq!(errors, [15, 0, 15, 15], "v{version}");
        assert_eq!(counted.0, 15);
    }
}

#[tokio::test]
async fn an_older_upstream_is_asked_in_its_own_version() {
    let options = Options {
        versions: BTreeMap::from([(DESCRIBE_GROUPS, (0, 5)), (DELETE_GROUPS, (0, 1))]),
        ..Options::default()
    };
    let setup = Setup::with(options);
    setup.loaded().await;
    let mut upstream = Upstream::answering(describes(vec![described("live-g", "Dead")]));
    let (response, _) = setup
        .exchange::<DescribeGroupsResponse>(DESCRIBE_GROUPS, 6, encode(&describe(&["live-g"]), 6), &mut upstream)
        .await;
    assert_eq!(upstream.asked[0].version, 5);
    assert_eq!(response.groups[0].error_code, 69);
    let mut upstream = Upstream::answering(deletes(&[("live-g", 68)]));
    let answered = deleted(&setup, 3, delete(&["live-g"], 3), &mut upstream).await;
    assert_eq!(upstream.asked[0].version, 1);
    assert_eq!(answered, [("live-g".to_owned(), 68)]);
}

#[tokio::test]
async fn deletions_are_merged_in_the_order_of_the_request() {
    let setup = Setup::new().await;
    for version in 0..=3 {
        commits(&setup, "ours").await;
        let ids = ["delegated-a", "ours", "live-b", "delegated-a"];
        let mut upstream = Upstream::answering(deletes(&[("delegated-a", 0), ("live-b", 68)]));
        let answered = deleted(&setup, version, delete(&ids, version), &mut upstream).await;
        let expected = [("delegated-a", 0), ("ours", 0), ("live-b", 68)].map(|(id, error)| (id.to_owned(), error));
        assert_eq!(answered, expected, "v{version}");
        assert_eq!(upstream.asked[0].version, version.min(2));

        commits(&setup, "ours").await;
        let answered = deleted(&setup, version, delete(&ids, version), &mut Upstream::gone()).await;
        let expected = [("delegated-a", 15), ("ours", 0), ("live-b", 15)].map(|(id, error)| (id.to_owned(), error));
        assert_eq!(answered, expected, "v{version}");
    }
}

fn upstream_offsets(asked: &Asked) -> Bytes {
    let request: OffsetFetchRequest = asked.decode();
    if asked.version < 8 {
        let partition = OffsetFetchResponsePartition::default()
            .with_committed_offset(7)
            .with_metadata(Some(string("theirs")));
        let topic = OffsetFetchResponseTopic::default()
            .with_name(string("orders").into())
            .with_partitions(vec![partition]);
        return encode(&OffsetFetchResponse::default().with_topics(vec![topic]), asked.version);
    }
    let groups = request.groups.iter().rev().map(|group| {
        let partition = OffsetFetchResponsePartitions::default()
            .with_committed_offset(7)
            .with_metadata(Some(string("theirs")));
        let topic = OffsetFetchResponseTopics::default()
            .with_name(string("orders").into())
            .with_partitions(vec![partition]);
        let deleted_since = OffsetFetchResponseTopics::default().with_name(string(NO_TOPIC).into());
        let topics = match group.topics {
            Some(_) => vec![topic],
            None => vec![topic, deleted_since],
        };
        OffsetFetchResponseGroup::default()
            .with_group_id(group.group_id.clone())
            .with_topics(topics)
    });
    encode(
        &OffsetFetchResponse::default().with_groups(groups.collect()),
        asked.version,
    )
}

#[tokio::test]
async fn fetches_are_merged_in_the_order_of_the_request() {
    let setup = Setup::new().await;
    commits(&setup, "ours").await;
    for version in 8..=10 {
        let body = if version == 10 {
            let orders: ById<'_> = &[(NOWHERE, &[1]), (ORDERS, &[0])];
            fetch_by_id(&[("live-a", Some(orders)), ("ours", None), ("delegated-b", None)])
        } else {
            let groups = vec![
                group("live-a", Some(&[("orders", &[0])])),
                group("ours", None),
                group("delegated-b", None),
            ];
            encode(&OffsetFetchRequest::default().with_groups(groups), version)
        };
        let mut upstream = Upstream::answering(upstream_offsets);
        let (response, _) = setup
            .exchange::<OffsetFetchResponse>(OFFSET_FETCH, version, body.clone(), &mut upstream)
            .await;
        assert_eq!(upstream.asked.len(), 1);
        assert_eq!(upstream.asked[0].version, version.min(9));
        let asked: OffsetFetchRequest = upstream.asked[0].decode();
        let named = asked.groups[0].topics.as_ref().expect("named");
        assert_eq!(named.len(), 1);
        assert_eq!(named[0].name.as_str(), "orders");
        let got: Vec<_> = response
            .groups
            .iter()
            .map(|group| {
                (
                    group.group_id.as_str(),
                    group.topics.last().expect("topics").partitions.len(),
                )
            })
            .collect();
        let last = if version == 10 { 1 } else { 0 };
        assert_eq!(got, [("live-a", 1), ("ours", 2), ("delegated-b", last)], "v{version}");
        let first = response.groups[0].topics.first().expect("orders");
        assert_eq!(first.partitions[0].committed_offset, 7);
        if version == 10 {
            assert_eq!(first.topic_id, ORDERS);
            let refused = response.groups[0].topics.last().expect("an id that no topic has");
            assert_eq!(refused.partitions[0].error_code, 100);
        }

        let (response, counted) = setup
            .exchange::<OffsetFetchResponse>(OFFSET_FETCH, version, body, &mut Upstream::gone())
            .await;
        let errors: Vec<_> = response.groups.iter().map(|group| group.error_code).collect();
        assert_eq!(errors, [16, 0, 16], "v{version}");
        assert_eq!(counted.0, 16);
    }
}

#[tokio::test]
async fn an_upstream_without_the_newest_offset_versions_is_asked_by_name() {
    let options = Options {
        versions: BTreeMap::from([(OFFSET_COMMIT, (0, 8)), (OFFSET_FETCH, (0, 7))]),
        ..Options::default()
    };
    let setup = Setup::with(options);
    setup.loaded().await;
    let mut upstream = Upstream::answering(|asked| {
        let request: OffsetCommitRequest = asked.decode();
        let topics = request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| {
                OffsetCommitResponsePartition::default()
                    .with_partition_index(partition.partition_index)
                    .with_error_code(25)
            });
            OffsetCommitResponseTopic::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions.collect())
        });
        encode(
            &OffsetCommitResponse::default().with_topics(topics.collect()),
            asked.version,
        )
    });
    for group_id in ["delegated-g", "live-g"] {
        let body = commit_by_id(group_id, &[(NOWHERE, &[0]), (ORDERS, &[1, 9])]);
        let (response, _) = setup
            .exchange::<OffsetCommitResponse>(OFFSET_COMMIT, 10, body, &mut upstream)
            .await;
        let asked = upstream.asked.pop().expect("asked");
        assert_eq!(asked.version, 8);
        let asked: OffsetCommitRequest = asked.decode();
        assert_eq!(asked.group_id.as_str(), group_id);
        assert_eq!(asked.topics[0].name.as_str(), "orders");
        assert_eq!(asked.topics[0].partitions.len(), 1);
        let errors: Vec<_> = response
            .topics
            .iter()
            .flat_map(|topic| {
                topic
                    .partitions
                    .iter()
                    .map(|partition| (topic.topic_id, partition.error_code))
            })
            .collect();
        assert_eq!(errors, [(NOWHERE, 100), (ORDERS, 3), (ORDERS, 25)]);
    }

    let body = fetch_by_id(&[("delegated-a", Some(&[(ORDERS, &[0])])), ("live-b", None)]);
    let mut upstream = Upstream::answering(upstream_offsets);
    let (response, _) = setup
        .exchange::<OffsetFetchResponse>(OFFSET_FETCH, 10, body, &mut upstream)
        .await;
    let versions: Vec<_> = upstream.asked.iter().map(|asked| asked.version).collect();
    assert_eq!(versions, [7, 7], "one request for each group");
    for group in &response.groups {
        assert_eq!(group.topics[0].topic_id, ORDERS);
        assert_eq!(group.topics[0].partitions[0].committed_offset, 7);
    }
}

#[tokio::test]
async fn a_bootstrap_connection_is_asked_for_what_every_node_speaks() {
    let options = Options {
        versions: BTreeMap::from([(DESCRIBE_GROUPS, (0, 6))]),
        second_versions: Some(BTreeMap::from([(DESCRIBE_GROUPS, (0, 4))])),
        ..Options::default()
    };
    let mut setup = Setup::with(options);
    setup.loaded().await;
    for (node_id, newest) in [(Some(1), 6), (Some(2), 4), (None, 4), (Some(3), 6)] {
        setup.caller.node_id = node_id;
        for version in versions::<DescribeGroupsRequest>() {
            let mut upstream = Upstream::answering(describes(vec![described("live-g", "Stable")]));
            let body = encode(&describe(&["live-g"]), version);
            let answer = setup.handle(DESCRIBE_GROUPS, version, body, &mut upstream).await;
            let forwards = matches!(answer, Answer::Forward);
            assert_eq!(forwards, version <= newest, "node {node_id:?} v{version}");
            let asked: Vec<_> = upstream.asked.iter().map(|asked| asked.version).collect();
            assert_eq!(asked, if forwards { vec![] } else { vec![newest] });
        }
    }
}
