use bytes::Bytes;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse, OffsetFetchResponse};
use uuid::Uuid;

use super::kit::*;
use super::offset_fetch::fetch_one;
use crate::wire::api::OFFSET_COMMIT;

pub(super) fn partition(index: i32, offset: i64) -> OffsetCommitRequestPartition {
    OffsetCommitRequestPartition::default()
        .with_partition_index(index)
        .with_committed_offset(offset)
        .with_committed_leader_epoch(3)
        .with_committed_metadata(Some(string("note")))
}

pub(super) fn commit(group_id: &str, topics: &[(&str, &[i32])]) -> OffsetCommitRequest {
    let topics = topics.iter().map(|(name, partitions)| {
        OffsetCommitRequestTopic::default()
            .with_name(string(name).into())
            .with_partitions(partitions.iter().map(|index| partition(*index, 42)).collect())
    });
    OffsetCommitRequest::default()
        .with_group_id(string(group_id).into())
        .with_generation_id_or_member_epoch(-1)
        .with_topics(topics.collect())
}

/// A v10 body: ids, no names.
pub(super) fn commit_by_id(group_id: &str, topics: &[(Uuid, &[i32])]) -> Bytes {
    let mut body = Compact::default()
        .text(group_id)
        .int32(-1)
        .text("")
        .null()
        .len(topics.len());
    for (id, partitions) in topics {
        body = body.uuid(*id).len(partitions.len());
        for index in *partitions {
            body = body.int32(*index).int64(42).int32(3).text("note").tags();
        }
        body = body.tags();
    }
    body.tags().done()
}

/// (topic, partition, error) of each partition.
pub(super) fn errors(response: &OffsetCommitResponse) -> Vec<(String, i32, i16)> {
    let topics = response.topics.iter().flat_map(|topic| {
        let partitions = topic.partitions.iter();
        partitions.map(|partition| (topic.name.to_string(), partition.partition_index, partition.error_code))
    });
    topics.collect()
}

fn named(expected: &[(&str, i32, i16)]) -> Vec<(String, i32, i16)> {
    let owned = expected
        .iter()
        .map(|(name, partition, error)| ((*name).to_owned(), *partition, *error));
    owned.collect()
}

#[tokio::test]
async fn a_commit_is_kept_in_every_version() {
    let setup = Setup::new().await;
    for version in 2..=9 {
        let group_id = format!("g{version}");
        let request = commit(&group_id, &[("orders", &[0, 2]), ("payments", &[0])]);
        let response: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, version, &request).await;
        let expected = named(&[("orders", 0, 0), ("orders", 2, 0), ("payments", 0, 0)]);
        assert_eq!(errors(&response), expected, "v{version}");
        let fetched: OffsetFetchResponse = fetch_one(&setup, &group_id, 7, &[("orders", &[2])]).await;
        let offset = &fetched.topics[0].partitions[0];
        assert_eq!(offset.committed_offset, 42, "v{version}");
        assert_eq!(offset.committed_leader_epoch, if version >= 6 { 3 } else { -1 });
        assert_eq!(offset.metadata.as_deref(), Some("note"));
    }
}

#[tokio::test]
async fn topics_and_partitions_that_the_upstream_lacks_are_refused_one_by_one() {
    let setup = Setup::new().await;
    for version in 2..=9 {
        let request = commit("g", &[(NO_TOPIC, &[0]), ("orders", &[0, 3, -1]), ("payments", &[1])]);
        let body = encode(&request, version);
        let (response, counted) = setup
            .exchange::<OffsetCommitResponse>(OFFSET_COMMIT, version, body, &mut Upstream::unused())
            .await;
        let expected = [
            (NO_TOPIC, 0, 3),
            ("orders", 3, 3),
            ("orders", -1, 3),
            ("orders", 0, 0),
            ("payments", 1, 3),
        ];
        assert_eq!(errors(&response), named(&expected), "v{version}");
        assert_eq!(counted.0, 3);
    }
}

#[tokio::test]
async fn a_group_error_stands_at_every_partition_that_was_not_refused_before() {
    let setup = Setup::new().await;
    for (version, error) in [(2, 22), (8, 22), (9, 69)] {
        let request = commit("unknown", &[("orders", &[0]), (NO_TOPIC, &[0]), ("payments", &[0])])
            .with_generation_id_or_member_epoch(5)
            .with_member_id(string("m"));
        let response: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, version, &request).await;
        let expected = named(&[(NO_TOPIC, 0, 3), ("orders", 0, error), ("payments", 0, error)]);
        assert_eq!(errors(&response), expected, "v{version}");
    }
}

#[tokio::test]
async fn the_coordinator_is_not_asked_when_no_topic_is_left() {
    let setup = Setup::with(Options {
        store: broken_store(),
        ..Options::default()
    });
    for topics in [&[(NO_TOPIC, &[0_i32] as &[i32])] as &[_], &[]] {
        let response: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 8, &commit("g", topics)).await;
        assert_eq!(errors(&response).len(), topics.len());
        assert!(errors(&response).iter().all(|(_, _, error)| *error == 3));
    }
}

#[tokio::test]
async fn a_topic_that_stands_there_twice_is_answered_twice_and_the_later_offset_wins() {
    let setup = Setup::new().await;
    let mut request = commit("g", &[("orders", &[0]), ("payments", &[0]), ("orders", &[1])]);
    request.topics[2].partitions.push(partition(0, 99));
    let response: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 9, &request).await;
    let expected = [("orders", 0, 0), ("payments", 0, 0), ("orders", 1, 0), ("orders", 0, 0)];
    assert_eq!(errors(&response), named(&expected));
    assert_eq!(response.topics.len(), 3);
    let fetched: OffsetFetchResponse = fetch_one(&setup, "g", 7, &[("orders", &[0])]).await;
    assert_eq!(fetched.topics[0].partitions[0].committed_offset, 99);
}

#[tokio::test]
async fn an_empty_group_id_and_long_metadata_are_judged_by_the_coordinator() {
    let setup = Setup::new().await;
    let mut request = commit("", &[("orders", &[0, 1])]);
    request.topics[0].partitions[1].committed_metadata = Some(string(&"é".repeat(4_097)));
    let response: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 8, &request).await;
    assert_eq!(errors(&response), named(&[("orders", 0, 0), ("orders", 1, 12)]));
    request.topics[0].partitions[1].committed_metadata = None;
    let response: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 8, &request).await;
    assert_eq!(errors(&response), named(&[("orders", 0, 0), ("orders", 1, 0)]));
}

#[tokio::test]
async fn v10_names_topics_by_id() {
    let setup = Setup::new().await;
    let body = commit_by_id("g", &[(NOWHERE, &[4]), (ORDERS, &[0, 9]), (PAYMENTS, &[0])]);
    let (response, counted) = setup
        .exchange::<OffsetCommitResponse>(OFFSET_COMMIT, 10, body, &mut Upstream::unused())
        .await;
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
    assert_eq!(errors, [(NOWHERE, 100), (ORDERS, 3), (ORDERS, 0), (PAYMENTS, 0)]);
    assert_eq!(counted.0, 100);
    let fetched: OffsetFetchResponse = fetch_one(&setup, "g", 7, &[("orders", &[0])]).await;
    assert_eq!(fetched.topics[0].partitions[0].committed_offset, 42);
}

#[tokio::test]
async fn a_retention_of_the_client_is_its_own() {
    let setup = Setup::new().await;
    for version in 2..=4 {
        let request = commit("g", &[("orders", &[0])]).with_retention_time_ms(60_000);
        let response: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, version, &request).await;
        assert_eq!(errors(&response), named(&[("orders", 0, 0)]), "v{version}");
    }
}

#[tokio::test]
async fn a_topic_that_cannot_be_looked_up_now_is_to_be_committed_again() {
    let setup = Setup::new().await;
    let request = commit("g", &[(UNCLEAR_NAME, &[0]), ("orders", &[0])]);
    let response: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 9, &request).await;
    assert_eq!(errors(&response), named(&[(UNCLEAR_NAME, 0, 14), ("orders", 0, 0)]));
    let body = commit_by_id("g", &[(UNCLEAR, &[0])]);
    let (response, _) = setup
        .exchange::<OffsetCommitResponse>(OFFSET_COMMIT, 10, body, &mut Upstream::unused())
        .await;
    assert_eq!(errors(&response), named(&[("", 0, 14)]));
}
