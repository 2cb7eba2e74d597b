//! What servers get wrong by a byte, a level or a version, and clients then take for something else.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    JoinGroupRequest, JoinGroupResponse, LeaveGroupResponse, ListGroupsRequest, ListGroupsResponse,
    OffsetCommitResponse, OffsetDeleteResponse, OffsetFetchRequest, OffsetFetchResponse, SyncGroupRequest,
    SyncGroupResponse,
};

use super::groups::{commits, delete, deleted, deletes, describe, offset_delete};
use super::kit::*;
use super::membership::{join, joined, leave, sync};
use super::offset_commit::{commit, errors, partition};
use super::offset_fetch::{fetch_by_id, fetch_one, group, single};
use crate::coordinator::record::{OffsetValue, Record};
use crate::handler::Answer;
use crate::store::memory::MemoryStore;
use crate::store::{ShardId, StateStore};
use crate::wire::api::*;

/// An upstream without groups.
fn no_groups() -> Upstream {
    Upstream::answering(|asked| encode(&ListGroupsResponse::default(), asked.version))
}

#[tokio::test]
async fn a_reason_of_any_length_and_of_any_bytes_keeps_nobody_from_joining_or_leaving() {
    let setup = Setup::new().await;
    let garbled = |body: Bytes| {
        let at = body
            .windows(3)
            .position(|bytes| bytes == b"\x07\x08\x07")
            .expect("the reason");
        let mut body = BytesMut::from(&body[..]);
        body[at..at + 3].copy_from_slice(b"\xc3\x28\xff");
        body.freeze()
    };
    for version in 8..=9 {
        let with = |reason: &str| encode(&join("g", "").with_reason(Some(string(reason))), version);
        for body in [with(&"r".repeat(32_767)), garbled(with("\u{7}\u{8}\u{7}"))] {
            let (response, _) = setup
                .exchange::<JoinGroupResponse>(JOIN_GROUP, version, body, &mut Upstream::unused())
                .await;
            assert_eq!(response.error_code, 79, "v{version}");
        }
    }
    for garble in [false, true] {
        let member_id = joined(&setup, "h", 3).await.member_id;
        let mut request = leave("h", &member_id, 5);
        let reason = if garble {
            "\u{7}\u{8}\u{7}".to_owned()
        } else {
            "r".repeat(32_767)
        };
        request.members[0].reason = Some(string(&reason));
        let body = encode(&request, 5);
        let body = if garble { garbled(body) } else { body };
        let (response, _) = setup
            .exchange::<LeaveGroupResponse>(LEAVE_GROUP, 5, body, &mut Upstream::unused())
            .await;
        assert_eq!((response.error_code, response.members[0].error_code), (0, 0));
    }
}

/// Every offset that is stored, in the order of their partitions.
async fn stored(store: &MemoryStore) -> Vec<OffsetValue> {
    let mut offsets = Vec::new();
    for shard in 0..4 {
        let (_, records) = store.load(ShardId(shard)).await.expect("in memory");
        for raw in records {
            if let Some(Record::OffsetCommit { value, .. }) = Record::from_raw(&raw).expect("ours") {
                offsets.extend(value);
            }
        }
    }
    offsets
}

#[tokio::test]
async fn a_retention_of_minus_one_is_the_brokers_and_any_other_is_the_commits_own() {
    for version in 2..=9 {
        for (retention_ms, kept_ms) in [(-1, None), (0, Some(0)), (3_600_000, Some(3_600_000))] {
            if version > 4 && retention_ms != -1 {
                continue;
            }
            let store = Arc::new(MemoryStore::new());
            let shared: Arc<dyn StateStore> = Arc::clone(&store) as _;
            let setup = Setup::with(Options {
                store: shared,
                ..Options::default()
            });
            setup.loaded().await;
            let request = commit("g", &[("orders", &[0])]).with_retention_time_ms(retention_ms);
            let response: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, version, &request).await;
            assert!(errors(&response).iter().all(|(_, _, error)| *error == 0));
            let kept = stored(&store).await.remove(0);
            assert!(kept.commit_timestamp_ms > 1_600_000_000_000, "counted from now");
            let own = kept.expire_timestamp_ms.map(|at_ms| at_ms - kept.commit_timestamp_ms);
            assert_eq!(own, kept_ms, "v{version}, {retention_ms}");
        }
    }
}

#[tokio::test]
async fn an_epoch_is_told_as_it_was_committed_and_none_is_made_up() {
    let setup = Setup::new().await;
    for version in 6..=9 {
        for epoch in [0, -1, 7] {
            let mut request = commit("g", &[("orders", &[0])]);
            request.topics[0].partitions[0].committed_leader_epoch = epoch;
            let _: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, version, &request).await;
            for version in 5..=7 {
                let response = fetch_one(&setup, "g", version, &[("orders", &[0])]).await;
                assert_eq!(response.topics[0].partitions[0].committed_leader_epoch, epoch);
            }
        }
    }
}

#[tokio::test]
async fn metadata_comes_back_byte_by_byte() {
    let setup = Setup::new().await;
    let odd = ["", "\0\0", "{\"a\":\"\\u0000\"}", "\u{1f600} é", &"x".repeat(4_096)];
    for metadata in odd {
        let mut request = commit("g", &[]);
        let mut committed = partition(0, 1);
        committed.committed_metadata = Some(string(metadata));
        request.topics = commit("g", &[("orders", &[0])]).topics;
        request.topics[0].partitions = vec![committed];
        let _: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 8, &request).await;
        let response = fetch_one(&setup, "g", 7, &[("orders", &[0])]).await;
        assert_eq!(response.topics[0].partitions[0].metadata.as_deref(), Some(metadata));
    }
}

#[tokio::test]
async fn what_was_asked_for_is_answered_and_nothing_else() {
    let setup = Setup::new().await;
    let request = commit("g", &[("orders", &[0, 1]), ("payments", &[0])]);
    let _: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 8, &request).await;
    let none = |index, offset, epoch, metadata: Option<&str>, error| {
        assert_eq!((index, offset, epoch, error), (2, -1, -1, 0));
        assert_eq!(metadata, Some(""), "empty, not null");
    };
    for version in 1..=7 {
        let response = fetch_one(&setup, "g", version, &[("orders", &[2])]).await;
        assert_eq!(
            (response.topics.len(), response.topics[0].partitions.len()),
            (1, 1),
            "v{version}"
        );
        let it = &response.topics[0].partitions[0];
        none(
            it.partition_index,
            it.committed_offset,
            it.committed_leader_epoch,
            it.metadata.as_deref(),
            it.error_code,
        );
    }
    for version in 8..=9 {
        let request = OffsetFetchRequest::default().with_groups(vec![group("g", Some(&[("orders", &[2])]))]);
        let response: OffsetFetchResponse = setup.ask(OFFSET_FETCH, version, &request).await;
        let topics = &response.groups[0].topics;
        assert_eq!((topics.len(), topics[0].partitions.len()), (1, 1), "v{version}");
        let it = &topics[0].partitions[0];
        none(
            it.partition_index,
            it.committed_offset,
            it.committed_leader_epoch,
            it.metadata.as_deref(),
            it.error_code,
        );
    }
}

#[tokio::test]
async fn all_topics_and_no_topics_are_told_apart_in_every_version() {
    let setup = Setup::new().await;
    let request = commit("g", &[("orders", &[0, 1]), ("payments", &[0])]);
    let _: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 8, &request).await;
    for version in 2..=7 {
        for (group_id, topics, partitions) in [("g", None, 3), ("g", Some(&[][..]), 0), ("unknown", None, 0)] {
            let response: OffsetFetchResponse = setup.ask(OFFSET_FETCH, version, &single(group_id, topics)).await;
            let found: usize = response.topics.iter().map(|topic| topic.partitions.len()).sum();
            assert_eq!(
                (response.error_code, found),
                (0, partitions),
                "v{version} {group_id} {topics:?}"
            );
        }
    }
    for version in 8..=9 {
        let groups = vec![group("g", None), group("g", Some(&[])), group("unknown", None)];
        let request = OffsetFetchRequest::default().with_groups(groups);
        let response: OffsetFetchResponse = setup.ask(OFFSET_FETCH, version, &request).await;
        all_none_unknown(&response, version);
    }
    let body = fetch_by_id(&[("g", None), ("g", Some(&[])), ("unknown", None)]);
    let (response, _) = setup
        .exchange::<OffsetFetchResponse>(OFFSET_FETCH, 10, body, &mut Upstream::unused())
        .await;
    all_none_unknown(&response, 10);
}

fn all_none_unknown(response: &OffsetFetchResponse, version: i16) {
    let found = response.groups.iter().map(|group| {
        let partitions = group.topics.iter().map(|topic| topic.partitions.len());
        (group.error_code, partitions.sum::<usize>())
    });
    assert_eq!(found.collect::<Vec<_>>(), [(0, 3), (0, 0), (0, 0)], "v{version}");
}

#[tokio::test]
async fn a_topic_that_does_not_exist_fails_no_fetch_of_several_groups() {
    let setup = Setup::new().await;
    commits(&setup, "g").await;
    for version in 8..=9 {
        let topics: &[(&str, &[i32])] = &[(NO_TOPIC, &[0]), ("orders", &[0])];
        let request = OffsetFetchRequest::default().with_groups(vec![group("g", Some(topics))]);
        let response: OffsetFetchResponse = setup.ask(OFFSET_FETCH, version, &request).await;
        let group = &response.groups[0];
        let told: Vec<_> = group
            .topics
            .iter()
            .map(|topic| (topic.partitions[0].committed_offset, topic.partitions[0].error_code))
            .collect();
        assert_eq!((group.error_code, told), (0, vec![(-1, 0), (42, 0)]), "v{version}");
    }
}

#[tokio::test]
async fn the_group_without_a_name_can_be_described_and_deleted() {
    let setup = Setup::new().await;
    for version in 0..=3 {
        commits(&setup, "").await;
        for version in versions::<DescribeGroupsRequest>() {
            let response: DescribeGroupsResponse = setup.ask(DESCRIBE_GROUPS, version, &describe(&[""])).await;
            let group = &response.groups[0];
            assert_eq!(
                (group.error_code, group.group_state.as_str()),
                (0, "Empty"),
                "v{version}"
            );
        }
        let mut upstream = Upstream::answering(deletes(&[]));
        let answered = deleted(&setup, version, delete(&[""], version), &mut upstream).await;
        assert_eq!(answered, [(String::new(), 0)], "v{version}");
        let response = fetch_one(&setup, "", 7, &[("orders", &[0])]).await;
        assert_eq!(response.topics[0].partitions[0].committed_offset, -1);
    }
}

/// Byte by byte: throttle time from v1 on, members from v3 on.
#[tokio::test]
async fn leaving_is_answered_in_the_form_of_each_version() {
    let setup = Setup::new().await;
    for (version, expected) in [
        (0, &b"\0\x19"[..]),
        (1, b"\0\0\0\0\0\x19"),
        (2, b"\0\0\0\0\0\x19"),
        (3, b"\0\0\0\0\0\0\0\0\0\x01\0\x01m\xff\xff\0\x19"),
        (4, b"\0\0\0\0\0\0\x02\x02m\0\0\x19\0\0"),
        (5, b"\0\0\0\0\0\0\x02\x02m\0\0\x19\0\0"),
    ] {
        let body = encode(&leave("unknown", "m", version), version);
        match setup.handle(LEAVE_GROUP, version, body, &mut Upstream::unused()).await {
            Answer::Reply(body, _) => assert_eq!(&body[..], expected, "v{version}"),
            other => panic!("v{version}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_list_of_no_groups_is_an_empty_list_at_once() {
    let setup = Setup::new().await;
    for version in versions::<ListGroupsRequest>() {
        let body = encode(&ListGroupsRequest::default(), version);
        let (response, _) = setup
            .exchange::<ListGroupsResponse>(LIST_GROUPS, version, body, &mut no_groups())
            .await;
        assert_eq!((response.error_code, response.groups.len()), (0, 0), "v{version}");
    }
}

#[tokio::test]
async fn each_topic_stands_once_in_the_answer_to_a_deletion_of_offsets() {
    let setup = Setup::new().await;
    let request = commit("g", &[("orders", &[0, 1]), ("payments", &[0])]);
    let _: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 8, &request).await;
    let request = offset_delete("g", &[("orders", &[0, 9, 1]), ("payments", &[8, 0, 7])]);
    let response: OffsetDeleteResponse = setup.ask(OFFSET_DELETE, 0, &request).await;
    let told = response.topics.iter().map(|topic| {
        let mut partitions: Vec<_> = topic
            .partitions
            .iter()
            .map(|partition| (partition.partition_index, partition.error_code))
            .collect();
        partitions.sort_unstable();
        (topic.name.to_string(), partitions)
    });
    let expected = [
        ("orders".to_owned(), vec![(0, 0), (1, 0), (9, 3)]),
        ("payments".to_owned(), vec![(0, 0), (7, 3), (8, 3)]),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_commit_of_nothing_is_answered_and_leaves_nothing_behind() {
    let setup = Setup::new().await;
    for version in 2..=9 {
        for topics in [&[][..], &[("orders", &[][..])]] {
            let response: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, version, &commit("g", topics)).await;
            assert_eq!(errors(&response), [], "v{version} {topics:?}");
        }
    }
    let body = encode(&ListGroupsRequest::default(), 4);
    let (response, _) = setup
        .exchange::<ListGroupsResponse>(LIST_GROUPS, 4, body, &mut no_groups())
        .await;
    assert_eq!(response.groups, []);
}

/// Two members; each hears in its sync what the leader gave it, and one that the leader forgot hears of nothing.
#[tokio::test]
async fn a_sync_carries_its_assignment_in_every_version() {
    let setup = Setup::new().await;
    for version in versions::<SyncGroupRequest>() {
        for assigned in ["yours", ""] {
            let group_id = format!("g{version}{assigned}");
            let leader = joined(&setup, &group_id, 3).await.member_id;
            let body = |request: &JoinGroupRequest| encode(request, 3);
            let (newcomer, rejoin) = (body(&join(&group_id, "")), body(&join(&group_id, &leader)));
            let (newcomer, _) = tokio::join!(
                setup.handle_apart(JOIN_GROUP, 3, newcomer),
                setup.handle_apart(JOIN_GROUP, 3, rejoin)
            );
            let Answer::Reply(newcomer, _) = newcomer else {
                panic!("{newcomer:?}");
            };
            let follower = decode::<JoinGroupResponse>(newcomer.freeze(), 3).member_id;
            let mut request = sync(&group_id, &leader, 2, version);
            if !assigned.is_empty() {
                request.assignments.push(
                    SyncGroupRequestAssignment::default()
                        .with_member_id(follower.clone())
                        .with_assignment(Bytes::from(assigned)),
                );
            }
            let synced: SyncGroupResponse = setup.ask(SYNC_GROUP, version, &request).await;
            assert_eq!((synced.error_code, &synced.assignment[..]), (0, &b"assignment"[..]));
            let request = sync(&group_id, &follower, 2, version);
            let synced: SyncGroupResponse = setup.ask(SYNC_GROUP, version, &request).await;
            assert_eq!(
                (synced.error_code, &synced.assignment[..]),
                (0, assigned.as_bytes()),
                "v{version}"
            );
        }
    }
}

#[tokio::test]
async fn a_consumer_that_loses_its_last_topic_is_told_of_an_empty_assignment() {
    let setup = Setup::new().await;
    for version in 0..=1 {
        let subscribing = |epoch: i32, topic: &str| {
            ConsumerGroupHeartbeatRequest::default()
                .with_group_id(string(&format!("g{version}")).into())
                .with_member_id(string("me"))
                .with_member_epoch(epoch)
                .with_rebalance_timeout_ms(20_000)
                .with_subscribed_topic_names(Some(vec![string(topic).into()]))
                .with_topic_partitions((epoch == 0).then(Vec::new))
        };
        let request = subscribing(0, "orders");
        let first: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, version, &request).await;
        let assigned = first.assignment.expect("everything");
        assert_eq!(assigned.topic_partitions.len(), 1);
        let request = subscribing(first.member_epoch, NO_TOPIC);
        let next: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, version, &request).await;
        assert_eq!(next.error_code, 0, "{:?}", next.error_message);
        let assigned = next.assignment.expect("not null, which would mean no change");
        assert_eq!(assigned.topic_partitions, []);
    }
}
