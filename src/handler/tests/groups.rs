//! DescribeGroups, DeleteGroups and OffsetDelete of groups that are coordinated here.

use bytes::Bytes;
use kafka_protocol::messages::describe_groups_response::DescribedGroup;
use kafka_protocol::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use kafka_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, DescribeGroupsResponse, OffsetCommitResponse, OffsetDeleteRequest,
    OffsetDeleteResponse, OffsetFetchResponse, SyncGroupResponse,
};

use super::kit::*;
use super::membership::{joined, sync};
use super::offset_commit::commit;
use super::offset_fetch::fetch_one;
use crate::wire::api::{DELETE_GROUPS, DESCRIBE_GROUPS, OFFSET_COMMIT, OFFSET_DELETE, SYNC_GROUP};
use crate::wire::codec;
use crate::wire::newest::delete_groups::{DeletableGroupResult, DeleteGroupsResponse};

pub(super) fn describe(group_ids: &[&str]) -> DescribeGroupsRequest {
    DescribeGroupsRequest::default().with_groups(group_ids.iter().map(|id| string(id).into()).collect())
}

pub(super) fn described(group_id: &str, state: &str) -> DescribedGroup {
    DescribedGroup::default()
        .with_group_id(string(group_id).into())
        .with_group_state(string(state))
}

pub(super) fn describes(groups: Vec<DescribedGroup>) -> impl FnMut(&Asked) -> Bytes + Send + 'static {
    let response = DescribeGroupsResponse::default().with_groups(groups);
    move |asked| encode(&response, asked.version)
}

/// The body of a DeleteGroups request; v3's is v2's.
pub(super) fn delete(group_ids: &[&str], version: i16) -> Bytes {
    let group_ids = group_ids.iter().map(|id| string(id).into());
    let request = DeleteGroupsRequest::default().with_groups_names(group_ids.collect());
    encode(&request, version.min(2))
}

/// An upstream that deletes nothing but answers each group with its error, 69 where there is none.
pub(super) fn deletes(errors: &'static [(&'static str, i16)]) -> impl FnMut(&Asked) -> Bytes + Send + 'static {
    move |asked| {
        let request: DeleteGroupsRequest = asked.decode();
        let results = request.groups_names.iter().map(|group_id| {
            let error = errors.iter().find(|(id, _)| *id == group_id.as_str());
            DeletableGroupResult {
                group_id: group_id.0.clone(),
                error_code: error.map_or(69, |(_, error)| *error),
                error_message: None,
            }
        });
        let response = DeleteGroupsResponse {
            throttle_time_ms: 0,
            results: results.collect(),
        };
        let mut body = bytes::BytesMut::new();
        codec::encode(&response, asked.version, &mut body).expect("well-formed");
        body.freeze()
    }
}

pub(super) async fn deleted(setup: &Setup, version: i16, body: Bytes, upstream: &mut Upstream) -> Vec<(String, i16)> {
    let results = results(setup, version, body, upstream).await;
    let results = results
        .iter()
        .map(|result| (result.group_id.to_string(), result.error_code));
    results.collect()
}

async fn results(setup: &Setup, version: i16, body: Bytes, upstream: &mut Upstream) -> Vec<DeletableGroupResult> {
    match setup.handle(DELETE_GROUPS, version, body, upstream).await {
        crate::handler::Answer::Reply(body, _) => {
            let response: DeleteGroupsResponse =
                codec::decode_response(version, body.freeze()).expect("an answer of ours");
            response.results
        }
        other => panic!("{other:?}"),
    }
}

pub(super) async fn commits(setup: &Setup, group_id: &str) {
    let request = commit(group_id, &[("orders", &[0, 1])]);
    let response: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, 8, &request).await;
    assert!(
        super::offset_commit::errors(&response)
            .iter()
            .all(|(_, _, error)| *error == 0)
    );
}

async fn stable(setup: &Setup, group_id: &str) -> String {
    let member_id = joined(setup, group_id, 9).await.member_id;
    let synced: SyncGroupResponse = setup.ask(SYNC_GROUP, 5, &sync(group_id, &member_id, 1, 5)).await;
    assert_eq!(synced.error_code, 0);
    member_id.to_string()
}

#[tokio::test]
async fn a_stable_group_is_described_in_every_version() {
    let setup = Setup::new().await;
    let member_id = stable(&setup, "g").await;
    for version in versions::<DescribeGroupsRequest>() {
        let response: DescribeGroupsResponse = setup.ask(DESCRIBE_GROUPS, version, &describe(&["g", "g"])).await;
        assert_eq!(response.groups.len(), 2, "as often as it is named");
        assert_eq!(response.groups[0], response.groups[1]);
        let group = &response.groups[0];
        assert_eq!(group.error_code, 0, "v{version}");
        assert_eq!(group.error_message, None);
        assert_eq!(group.group_state.as_str(), "Stable");
        assert_eq!(group.protocol_type.as_str(), "consumer");
        assert_eq!(group.protocol_data.as_str(), "range");
        assert_eq!(group.authorized_operations, i32::MIN);
        let member = &group.members[0];
        assert_eq!(member.member_id.as_str(), member_id);
        assert_eq!(member.client_id.as_str(), "tester");
        assert_eq!(member.client_host.as_str(), "/127.0.0.1");
        assert_eq!(member.member_metadata, Bytes::from_static(b"subscription"));
        assert_eq!(member.member_assignment, Bytes::from_static(b"assignment"));
    }
}

#[tokio::test]
async fn operations_come_from_the_upstream_for_groups_of_ours_too() {
    let setup = Setup::new().await;
    commits(&setup, "g").await;
    for version in 3..=6 {
        let request = describe(&["g"]).with_include_authorized_operations(true);
        let answer = described("g", "Dead").with_authorized_operations(0b1_0000);
        let mut upstream = Upstream::answering(describes(vec![answer]));
        let (response, _) = setup
            .exchange::<DescribeGroupsResponse>(DESCRIBE_GROUPS, version, encode(&request, version), &mut upstream)
            .await;
        assert_eq!(response.groups[0].group_state.as_str(), "Empty", "v{version}");
        assert_eq!(response.groups[0].authorized_operations, 0b1_0000);
        let asked = &upstream.asked[0];
        assert_eq!(
            asked.version,
            version.min(5),
            "v6 does not tell them for a group that is not there"
        );
        let asked: DescribeGroupsRequest = asked.decode();
        assert!(asked.include_authorized_operations);

        let (response, _) = setup
            .exchange::<DescribeGroupsResponse>(
                DESCRIBE_GROUPS,
                version,
                encode(&request, version),
                &mut Upstream::gone(),
            )
            .await;
        assert_eq!(response.groups[0].error_code, 0, "the description stands without them");
        assert_eq!(response.groups[0].authorized_operations, i32::MIN);
    }
}

#[tokio::test]
async fn a_group_is_deleted_here_and_its_stale_copy_upstream() {
    let setup = Setup::new().await;
    for version in 0..=3 {
        commits(&setup, "g").await;
        stable_in(&setup, "busy", version).await;
        let mut upstream = Upstream::answering(deletes(&[("g", 0)]));
        let body = delete(&["g", "busy", "g", "unknown"], version);
        let answered = deleted(&setup, version, body, &mut upstream).await;
        let expected = [("g", 0), ("busy", 68), ("unknown", 69)].map(|(id, error)| (id.to_owned(), error));
        assert_eq!(answered, expected, "v{version}");
        let asked: DeleteGroupsRequest = upstream.asked[0].decode();
        let ids: Vec<_> = asked.groups_names.iter().map(|id| id.to_string()).collect();
        assert_eq!(ids, ["g", "unknown"], "the group with members stays");
        assert_eq!(upstream.asked.len(), 1);
        let fetched: OffsetFetchResponse = fetch_one(&setup, "g", 7, &[("orders", &[0])]).await;
        assert_eq!(fetched.topics[0].partitions[0].committed_offset, -1);
    }
}

async fn stable_in(setup: &Setup, group_id: &str, round: i16) {
    if round == 0 {
        stable(setup, group_id).await;
    }
}

#[tokio::test]
async fn what_the_upstream_does_with_its_stale_copy_does_not_matter() {
    let setup = Setup::new().await;
    for mut upstream in [
        Upstream::gone(),
        Upstream::answering(deletes(&[])),
        Upstream::answering(deletes(&[("g", 30)])),
    ] {
        commits(&setup, "g").await;
        assert_eq!(
            deleted(&setup, 2, delete(&["g"], 2), &mut upstream).await,
            [("g".to_owned(), 0)]
        );
    }
}

pub(super) fn offset_delete(group_id: &str, topics: &[(&str, &[i32])]) -> OffsetDeleteRequest {
    let topics = topics.iter().map(|(name, partitions)| {
        let partitions = partitions
            .iter()
            .map(|index| OffsetDeleteRequestPartition::default().with_partition_index(*index));
        OffsetDeleteRequestTopic::default()
            .with_name(string(name).into())
            .with_partitions(partitions.collect())
    });
    OffsetDeleteRequest::default()
        .with_group_id(string(group_id).into())
        .with_topics(topics.collect())
}

#[tokio::test]
async fn offsets_are_deleted_one_by_one() {
    let setup = Setup::new().await;
    commits(&setup, "g").await;
    let request = offset_delete("g", &[(NO_TOPIC, &[0]), ("orders", &[0, 7])]);
    let response: OffsetDeleteResponse = setup.ask(OFFSET_DELETE, 0, &request).await;
    assert_eq!(response.error_code, 0);
    let errors: Vec<_> = response
        .topics
        .iter()
        .flat_map(|topic| {
            topic
                .partitions
                .iter()
                .map(|partition| (partition.partition_index, partition.error_code))
        })
        .collect();
    assert_eq!(errors, [(0, 3), (7, 3), (0, 0)]);
    let fetched: OffsetFetchResponse = fetch_one(&setup, "g", 7, &[("orders", &[0, 1])]).await;
    let offsets: Vec<_> = fetched.topics[0]
        .partitions
        .iter()
        .map(|partition| partition.committed_offset)
        .collect();
    assert_eq!(offsets, [-1, 42]);
}

#[tokio::test]
async fn an_error_of_the_group_stands_alone_in_an_offset_delete() {
    let setup = Setup::new().await;
    for (group_id, error) in [("unknown", 69), ("", 24)] {
        let request = offset_delete(group_id, &[(NO_TOPIC, &[0])]);
        let response: OffsetDeleteResponse = setup.ask(OFFSET_DELETE, 0, &request).await;
        assert_eq!(response.error_code, error, "{group_id:?}");
        assert!(response.topics.is_empty());
    }
}

pub(super) fn offset_delete_of(group_id: &str) -> OffsetDeleteRequest {
    offset_delete(group_id, &[("orders", &[0])])
}

#[tokio::test]
async fn a_group_that_is_named_very_often_is_not_answered_as_often() {
    let setup = Setup::new().await;
    stable(&setup, "g").await;
    let response: DescribeGroupsResponse = setup.ask(DESCRIBE_GROUPS, 5, &describe(&["g"; 1_000])).await;
    assert_eq!(response.groups.len(), 17);
}
