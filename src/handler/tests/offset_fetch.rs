use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::offset_fetch_response::OffsetFetchResponseGroup;
use kafka_protocol::messages::{OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse};
use uuid::Uuid;

use super::kit::*;
use super::offset_commit::commit;
use crate::store::StateStore;
use crate::store::memory::MemoryStore;
use crate::wire::api::{OFFSET_COMMIT, OFFSET_FETCH};

/// A request for one group, in v1 to v7.
pub(super) fn single(group_id: &str, topics: Option<&[(&str, &[i32])]>) -> OffsetFetchRequest {
    let topics = topics.map(|topics| {
        let topics = topics.iter().map(|(name, partitions)| {
            OffsetFetchRequestTopic::default()
                .with_name(string(name).into())
                .with_partition_indexes(partitions.to_vec())
        });
        topics.collect()
    });
    OffsetFetchRequest::default()
        .with_group_id(string(group_id).into())
        .with_topics(topics)
}

/// One group of a request in v8 or v9.
pub(super) fn group(group_id: &str, topics: Option<&[(&str, &[i32])]>) -> OffsetFetchRequestGroup {
    let topics = topics.map(|topics| {
        let topics = topics.iter().map(|(name, partitions)| {
            OffsetFetchRequestTopics::default()
                .with_name(string(name).into())
                .with_partition_indexes(partitions.to_vec())
        });
        topics.collect()
    });
    OffsetFetchRequestGroup::default()
        .with_group_id(string(group_id).into())
        .with_topics(topics)
}

/// Partitions of topics by their ids.
pub(super) type ById<'a> = &'a [(Uuid, &'a [i32])];

/// A v10 body for these groups; `None` asks for all topics.
pub(super) fn fetch_by_id(groups: &[(&str, Option<ById<'_>>)]) -> Bytes {
    let mut body = Compact::default().len(groups.len());
    for (group_id, topics) in groups {
        body = body.text(group_id).null().int32(-1);
        body = match topics {
            None => body.null(),
            Some(topics) => {
                body = body.len(topics.len());
                for (id, partitions) in *topics {
                    body = body.uuid(*id).len(partitions.len());
                    for index in *partitions {
                        body = body.int32(*index);
                    }
                    body = body.tags();
                }
                body
            }
        };
        body = body.tags();
    }
    body.boolean(false).tags().done()
}

pub(super) async fn fetch_one(
    setup: &Setup,
    group_id: &str,
    version: i16,
    topics: &[(&str, &[i32])],
) -> OffsetFetchResponse {
    setup.ask(OFFSET_FETCH, version, &single(group_id, Some(topics))).await
}

/// (topic, partition, offset, error) of each partition.
fn lines(group: &OffsetFetchResponseGroup) -> Vec<(String, i32, i64, i16)> {
    let topics = group.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| {
            (
                topic.name.to_string(),
                partition.partition_index,
                partition.committed_offset,
                partition.error_code,
            )
        })
    });
    topics.collect()
}

async fn committed(group_ids: &[&str]) -> Setup {
    let setup = Setup::new().await;
    for group_id in group_ids {
        let request = commit(group_id, &[("orders", &[0, 1]), ("payments", &[0])]);
        let _: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 8, &request).await;
    }
    setup
}

#[tokio::test]
async fn offsets_come_back_in_every_version_of_one_group() {
    let setup = committed(&["g"]).await;
    for version in 1..=7 {
        let response = fetch_one(&setup, "g", version, &[("payments", &[0]), ("orders", &[1, 2])]).await;
        assert_eq!(response.error_code, 0);
        let names: Vec<_> = response.topics.iter().map(|topic| topic.name.to_string()).collect();
        assert_eq!(names, ["payments", "orders"], "v{version}");
        let known = &response.topics[1].partitions[0];
        assert_eq!(
            (known.partition_index, known.committed_offset, known.error_code),
            (1, 42, 0)
        );
        assert_eq!(known.metadata.as_deref(), Some("note"));
        assert_eq!(known.committed_leader_epoch, if version >= 5 { 3 } else { -1 });
        let none = &response.topics[1].partitions[1];
        assert_eq!(
            (none.partition_index, none.committed_offset, none.error_code),
            (2, -1, 0)
        );
        assert_eq!(none.metadata.as_deref(), Some(""));
    }
    for version in 2..=7 {
        let response: OffsetFetchResponse = setup.ask(OFFSET_FETCH, version, &single("g", None)).await;
        let partitions: usize = response.topics.iter().map(|topic| topic.partitions.len()).sum();
        assert_eq!(partitions, 3, "v{version}");
    }
}

#[tokio::test]
async fn an_unknown_group_and_an_unknown_topic_are_no_errors() {
    let setup = committed(&["g"]).await;
    for version in 1..=7 {
        for (group_id, topic) in [("unknown", "orders"), ("g", NO_TOPIC), ("", "orders")] {
            let response = fetch_one(&setup, group_id, version, &[(topic, &[0])]).await;
            assert_eq!(response.error_code, 0);
            let none = &response.topics[0].partitions[0];
            assert_eq!((none.committed_offset, none.error_code), (-1, 0), "v{version}");
        }
    }
    let response: OffsetFetchResponse = setup.ask(OFFSET_FETCH, 7, &single("unknown", None)).await;
    assert!(response.topics.is_empty());
}

#[tokio::test]
async fn several_groups_are_answered_in_their_order() {
    let setup = committed(&["a", "b"]).await;
    for version in 8..=9 {
        let request = OffsetFetchRequest::default().with_groups(vec![
            group("b", Some(&[("orders", &[1])])),
            group("unknown", Some(&[("orders", &[0])])),
            group("a", None),
            group("b", Some(&[("payments", &[0])])),
        ]);
        let response: OffsetFetchResponse = setup.ask(OFFSET_FETCH, version, &request).await;
        let ids: Vec<_> = response.groups.iter().map(|group| group.group_id.to_string()).collect();
        assert_eq!(ids, ["b", "unknown", "a", "b"], "v{version}");
        assert_eq!(lines(&response.groups[0]), [("orders".to_owned(), 1, 42, 0)]);
        assert_eq!(lines(&response.groups[1]), [("orders".to_owned(), 0, -1, 0)]);
        assert_eq!(lines(&response.groups[2]).len(), 3);
        assert_eq!(lines(&response.groups[3]), [("payments".to_owned(), 0, 42, 0)]);
    }
    let response: OffsetFetchResponse = setup.ask(OFFSET_FETCH, 9, &OffsetFetchRequest::default()).await;
    assert!(response.groups.is_empty());
}

#[tokio::test]
async fn a_topic_that_is_asked_for_twice_is_answered_twice() {
    let setup = committed(&["g"]).await;
    let response = fetch_one(&setup, "g", 7, &[("orders", &[0]), ("orders", &[2])]).await;
    let offsets: Vec<_> = response
        .topics
        .iter()
        .map(|topic| topic.partitions[0].committed_offset)
        .collect();
    assert_eq!(offsets, [42, -1]);
}

#[tokio::test]
async fn v10_names_topics_by_id() {
    let setup = committed(&["g"]).await;
    let named: ById<'_> = &[(NOWHERE, &[0, 1]), (ORDERS, &[1]), (PAYMENTS, &[0])];
    let body = fetch_by_id(&[("g", Some(named)), ("g", None), ("unknown", Some(&[(ORDERS, &[0])]))]);
    let (response, counted) = setup
        .exchange::<OffsetFetchResponse>(OFFSET_FETCH, 10, body, &mut Upstream::unused())
        .await;
    assert_eq!(counted.0, 100);
    let by_id = |group: &OffsetFetchResponseGroup| -> Vec<(Uuid, i64, i16)> {
        assert_eq!(group.error_code, 0);
        let topics = group.topics.iter().flat_map(|topic| {
            let partitions = topic.partitions.iter();
            partitions.map(|partition| (topic.topic_id, partition.committed_offset, partition.error_code))
        });
        topics.collect()
    };
    let expected = [
        (ORDERS, 42, 0),
        (PAYMENTS, 42, 0),
        // What is refused comes last.
        (NOWHERE, -1, 100),
        (NOWHERE, -1, 100),
    ];
    assert_eq!(by_id(&response.groups[0]), expected);
    let mut all = by_id(&response.groups[1]);
    all.sort_unstable();
    assert_eq!(all, [(ORDERS, 42, 0), (ORDERS, 42, 0), (PAYMENTS, 42, 0)]);
    assert_eq!(by_id(&response.groups[2]), [(ORDERS, -1, 0)]);
}

#[tokio::test]
async fn a_group_with_an_id_that_cannot_be_looked_up_now_is_to_be_fetched_again() {
    let setup = committed(&["a", "b"]).await;
    let unclear: ById<'_> = &[(ORDERS, &[0]), (UNCLEAR, &[0])];
    let body = fetch_by_id(&[("a", Some(unclear)), ("b", Some(&[(ORDERS, &[0])]))]);
    let (response, _) = setup
        .exchange::<OffsetFetchResponse>(OFFSET_FETCH, 10, body, &mut Upstream::unused())
        .await;
    let errors: Vec<_> = response.groups.iter().map(|group| group.error_code).collect();
    assert_eq!(errors, [14, 0]);
    assert!(response.groups[0].topics.is_empty());
}

#[tokio::test]
async fn a_request_about_many_groups_and_topics_is_answered_in_its_order() {
    let setup = committed(&["g77"]).await;
    let groups = (0..200).map(|number| group(&format!("g{number}"), Some(&[("orders", &[0])])));
    let request = OffsetFetchRequest::default().with_groups(groups.collect());
    let response: OffsetFetchResponse = setup.ask(OFFSET_FETCH, 9, &request).await;
    for (number, group) in response.groups.iter().enumerate() {
        assert_eq!(group.group_id.as_str(), format!("g{number}"));
        let expected = if number == 77 { 42 } else { -1 };
        assert_eq!(lines(group), [("orders".to_owned(), 0, expected, 0)]);
    }
    assert_eq!(response.groups.len(), 200);

    let names: Vec<String> = (0..2_000).map(|number| format!("topic-{number}")).collect();
    let topics: Vec<(&str, &[i32])> = names
        .iter()
        .map(|name| (name.as_str(), &[0_i32, 1] as &[i32]))
        .collect();
    let response = fetch_one(&setup, "g77", 7, &topics).await;
    let answered: Vec<_> = response.topics.iter().map(|topic| topic.name.as_str()).collect();
    assert_eq!(answered, names);
}

#[tokio::test]
async fn offsets_of_a_topic_that_was_made_anew_are_not_told_for_the_new_one() {
    let store = Arc::new(MemoryStore::new());
    let options = |orders_id| Options {
        store: Arc::clone(&store) as Arc<dyn StateStore>,
        orders_id,
        ..Options::default()
    };
    let setup = Setup::with(options(ORDERS));
    setup.loaded().await;
    let request = commit("g", &[("orders", &[0]), ("payments", &[0])]);
    let _: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 8, &request).await;
    setup.services.coordinator.drain().await;

    let anew = Uuid::from_u128(0xD);
    let setup = Setup::with(options(anew));
    setup.loaded().await;
    let body = fetch_by_id(&[
        ("g", Some(&[(anew, &[0]), (PAYMENTS, &[0])])),
        ("g", Some(&[(ORDERS, &[0])])),
    ]);
    let (response, _) = setup
        .exchange::<OffsetFetchResponse>(OFFSET_FETCH, 10, body, &mut Upstream::unused())
        .await;
    let offset = |topic: usize| response.groups[0].topics[topic].partitions[0].committed_offset;
    assert_eq!((offset(0), offset(1)), (-1, 42));
    // Nobody can be asked about an id that the picture lacks.
    assert_eq!(response.groups[1].error_code, 14);
}

#[tokio::test]
async fn names_and_all_do_not_bring_back_offsets_of_a_topic_that_was_made_anew_either() {
    let store = Arc::new(MemoryStore::new());
    let options = |orders_id| Options {
        store: Arc::clone(&store) as Arc<dyn StateStore>,
        orders_id,
        ..Options::default()
    };
    let setup = Setup::with(options(ORDERS));
    setup.loaded().await;
    let request = commit("g", &[("orders", &[0, 1]), ("payments", &[0])]);
    let _: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 8, &request).await;
    setup.services.coordinator.drain().await;

    let anew = Uuid::from_u128(0xD);
    let setup = Setup::with(options(anew));
    setup.loaded().await;
    // With an expiry of its own an offset is stored without the id.
    for (index, version, retention) in [(1, 8, -1), (2, 4, 600_000)] {
        let request = commit("g", &[("orders", &[index])]).with_retention_time_ms(retention);
        let _: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, version, &request).await;
    }
    let named = fetch_one(&setup, "g", 7, &[("orders", &[0, 1, 2]), ("payments", &[0])]).await;
    let offsets = named.topics.iter().flat_map(|topic| &topic.partitions);
    let offsets: Vec<i64> = offsets.map(|partition| partition.committed_offset).collect();
    assert_eq!(offsets, [-1, 42, 42, 42]);
    let request = OffsetFetchRequest::default().with_groups(vec![group("g", None)]);
    let all: OffsetFetchResponse = setup.ask(OFFSET_FETCH, 9, &request).await;
    let mut all = lines(&all.groups[0]);
    all.sort_unstable();
    let line = |topic: &str, index| (topic.to_owned(), index, 42, 0);
    assert_eq!(all, [line("orders", 1), line("orders", 2), line("payments", 0)]);
    let body = fetch_by_id(&[("g", None)]);
    let (response, _) = setup
        .exchange::<OffsetFetchResponse>(OFFSET_FETCH, 10, body, &mut Upstream::unused())
        .await;
    let topics: Vec<_> = response.groups[0]
        .topics
        .iter()
        .map(|topic| (topic.topic_id, topic.partitions.len()))
        .collect();
    assert_eq!(topics, [(anew, 2), (PAYMENTS, 1)]);
}

#[tokio::test]
async fn answers_that_no_memory_holds_are_refused() {
    let setup = Setup::new().await;
    let mut request = commit("g", &[("orders", &[0])]);
    request.topics[0].partitions[0].committed_metadata = Some(string(&"x".repeat(4_096)));
    let committed: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 8, &request).await;
    assert_eq!(committed.topics[0].partitions[0].error_code, 0);
    let often = vec![0; 20_000];
    let response: OffsetFetchResponse = fetch_one(&setup, "g", 7, &[("orders", &often)]).await;
    assert_eq!((response.error_code, response.topics.len()), (42, 0));

    let whole = OffsetFetchRequestGroup::default()
        .with_group_id(string("g").into())
        .with_topics(None);
    let request = OffsetFetchRequest::default().with_groups(vec![whole; 40]);
    let response: OffsetFetchResponse = setup.ask(OFFSET_FETCH, 8, &request).await;
    let answered = response.groups.iter().filter(|group| group.error_code == 0);
    assert_eq!(answered.count(), 17);
    assert!(response.groups[39].error_code == 42 && response.groups[39].topics.is_empty());
}
