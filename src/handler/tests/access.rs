//! Whoever the upstream would let is served, nobody else is, and the upstream is asked no more than it takes.

pub(super) mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::list_groups_response::ListGroupsResponse;
use kafka_protocol::messages::{
    DescribeGroupsRequest, DescribeGroupsResponse, HeartbeatRequest, HeartbeatResponse, JoinGroupRequest,
    JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse, ListGroupsRequest, OffsetCommitResponse,
    OffsetDeleteResponse, OffsetFetchRequest, OffsetFetchResponse, SyncGroupRequest, SyncGroupResponse,
};

use rules::*;

use super::groups::{delete, deleted, deletes, describe, described, offset_delete, offset_delete_of};
use super::kit::*;
use super::membership::{heartbeat, join, leave, sync};
use super::offset_commit::{commit, commit_by_id, errors};
use super::offset_fetch::{fetch_by_id, group, single};
use crate::handler::Answer;
use crate::wire::api::*;

/// Rules that a test changes as it goes.
fn changing(rules: &Arc<Mutex<Rules>>) -> Upstream {
    let rules = Arc::clone(rules);
    Upstream::answering(move |asked| rules.lock().expect("not poisoned").answer(asked))
}

pub(super) async fn checking() -> Setup {
    let setup = Setup::with(Options {
        authorizer: true,
        ..Options::default()
    });
    setup.loaded().await;
    setup
}

/// Makes what is known of the user old.
pub(super) async fn forget(setup: &Setup) {
    *setup.decisions.lock().await = Default::default();
}

/// The first error of each request about group "g", in every version.
async fn first_errors(setup: &Setup, upstream: &mut Upstream) -> Vec<(String, i16)> {
    let mut bodies = Vec::new();
    for version in versions::<JoinGroupRequest>() {
        bodies.push((JOIN_GROUP, version, encode(&join("g", "ghost"), version)));
    }
    for version in versions::<SyncGroupRequest>() {
        bodies.push((SYNC_GROUP, version, encode(&sync("g", "ghost", 1, version), version)));
    }
    for version in versions::<HeartbeatRequest>() {
        bodies.push((HEARTBEAT, version, encode(&heartbeat("g", "ghost", 1), version)));
    }
    for version in versions::<LeaveGroupRequest>() {
        bodies.push((LEAVE_GROUP, version, encode(&leave("g", "ghost", version), version)));
    }
    for version in 2..=9 {
        bodies.push((
            OFFSET_COMMIT,
            version,
            encode(&commit("g", &[("orders", &[0])]), version),
        ));
    }
    bodies.push((OFFSET_COMMIT, 10, commit_by_id("g", &[(ORDERS, &[0])])));
    for version in 1..=7 {
        bodies.push((
            OFFSET_FETCH,
            version,
            encode(&single("g", Some(&[("orders", &[0])])), version),
        ));
    }
    for version in 8..=9 {
        let request = OffsetFetchRequest::default().with_groups(vec![group("g", Some(&[("orders", &[0])]))]);
        bodies.push((OFFSET_FETCH, version, encode(&request, version)));
    }
    bodies.push((OFFSET_FETCH, 10, fetch_by_id(&[("g", Some(&[(ORDERS, &[0])]))])));
    for version in versions::<DescribeGroupsRequest>() {
        bodies.push((DESCRIBE_GROUPS, version, encode(&describe(&["g"]), version)));
    }
    bodies.push((OFFSET_DELETE, 0, encode(&offset_delete_of("g"), 0)));
    for version in 0..=3 {
        bodies.push((DELETE_GROUPS, version, delete(&["g"], version)));
    }
    let mut errors = Vec::new();
    for (api_key, version, body) in bodies {
        forget(setup).await;
        let error = match setup.handle(api_key, version, body, upstream).await {
            Answer::Reply(_, error) => error.0,
            // The upstream sees to it.
            Answer::Forward => 0,
            other => panic!("api {api_key} v{version}: {other:?}"),
        };
        errors.push((format!("{} v{version}", find(api_key).expect("known").name), error));
    }
    errors
}

/// Whether the first word of a line names an API that needs the operation.
fn needs(api: &str, operation: i32) -> bool {
    let by_name: &[&str] = match operation {
        READ => &["JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit"],
        DESCRIBE => &["OffsetFetch", "DescribeGroups"],
        _ => &["OffsetDelete", "DeleteGroups"],
    };
    by_name.contains(&api.split(' ').next().expect("a name"))
}

#[tokio::test]
async fn each_api_needs_its_own_operation_in_every_version() {
    for (operations, granted) in [
        (0, &[] as &[i32]),
        (DESCRIBE, &[DESCRIBE]),
        (READ | DESCRIBE, &[READ, DESCRIBE]),
        (DELETE | DESCRIBE, &[DELETE, DESCRIBE]),
        (READ | DELETE | DESCRIBE, &[READ, DELETE, DESCRIBE]),
        // Denied Describe: it hides the others from the first question, and takes nothing from them.
        (READ, &[READ]),
        (READ | DELETE, &[READ, DELETE]),
    ] {
        let setup = checking().await;
        for (api, error) in first_errors(&setup, &mut upstream(Rules::group(operations))).await {
            let may = granted.iter().any(|operation| needs(&api, *operation));
            assert_eq!(error == 30, !may, "{api} with operations {operations:#b}: {error}");
        }
    }
}

/// What clients are told in this API when nobody could be asked.
fn not_available(api: &str) -> i16 {
    if api.starts_with("OffsetFetch") { 16 } else { 15 }
}

#[tokio::test]
async fn no_answer_is_no_access_and_leaves_no_trace() {
    let setup = checking().await;
    for (api, error) in first_errors(&setup, &mut Upstream::gone()).await {
        assert_eq!(error, not_available(&api), "{api}");
    }
    // Answers that say nothing of what was asked are none.
    let silent = |asked: &Asked| match asked.api_key {
        DESCRIBE_GROUPS => encode(&DescribeGroupsResponse::default(), asked.version),
        _ => Bytes::from_static(b"garbage"),
    };
    for (api, error) in first_errors(&setup, &mut Upstream::answering(silent)).await {
        assert_eq!(error, not_available(&api), "{api}");
    }
    let unknown = |asked: &Asked| {
        let groups = vec![described("g", "Dead").with_authorized_operations(i32::MIN)];
        encode(&DescribeGroupsResponse::default().with_groups(groups), asked.version)
    };
    for (api, error) in first_errors(&setup, &mut Upstream::answering(unknown)).await {
        assert_eq!(error, not_available(&api), "{api}");
    }
    let mut rules = upstream(Rules::group(READ | DESCRIBE | DELETE));
    forget(&setup).await;
    let body = encode(&describe(&["g"]), 6);
    let answer = setup.handle(DESCRIBE_GROUPS, 6, body, &mut rules).await;
    assert!(matches!(answer, Answer::Forward), "nobody made the group: {answer:?}");
}

#[tokio::test]
async fn where_the_upstream_does_not_coordinate_it_is_said_so() {
    for (elsewhere, expected) in [(16, 16), (15, 15), (14, 15)] {
        let setup = checking().await;
        for operations in [READ | DELETE | DESCRIBE, READ | DELETE] {
            let rules = Rules {
                elsewhere: Some(elsewhere),
                ..Rules::group(operations)
            };
            for (api, error) in first_errors(&setup, &mut upstream(rules)).await {
                let hidden = needs(&api, DESCRIBE) && operations & DESCRIBE == 0;
                let expected = if expected == 15 { not_available(&api) } else { expected };
                assert_eq!(error, if hidden { 30 } else { expected }, "{api}");
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_has_the_shape_that_kafka_gives_it() {
    let setup = checking().await;
    let mut nobody = upstream(Rules::default());
    for version in versions::<JoinGroupRequest>() {
        let body = encode(&join("g", "me"), version);
        let (response, _) = setup
            .exchange::<JoinGroupResponse>(JOIN_GROUP, version, body, &mut nobody)
            .await;
        assert_eq!((response.error_code, response.generation_id), (30, -1));
        assert_eq!(response.member_id.as_str(), "", "not even the member's id comes back");
        let name = response.protocol_name.as_deref();
        assert_eq!(name, if version >= 7 { None } else { Some("") }, "v{version}");
    }
    for version in versions::<LeaveGroupRequest>() {
        let body = encode(&leave("g", "me", version), version);
        let (response, _) = setup
            .exchange::<LeaveGroupResponse>(LEAVE_GROUP, version, body, &mut nobody)
            .await;
        assert_eq!((response.error_code, response.members.len()), (30, 0), "v{version}");
    }
    // The mandatory names come before the right, and the right before the group's name.
    let nameless = encode(&sync("g", "me", 1, 4), 5);
    let (response, _) = setup
        .exchange::<SyncGroupResponse>(SYNC_GROUP, 5, nameless, &mut nobody)
        .await;
    assert_eq!(response.error_code, 23);
    let empty = encode(&heartbeat("", "me", 1), 4);
    let (response, _) = setup
        .exchange::<HeartbeatResponse>(HEARTBEAT, 4, empty, &mut nobody)
        .await;
    assert_eq!(response.error_code, 30);
    let body = commit_by_id("g", &[(NOWHERE, &[0]), (ORDERS, &[1, 9])]);
    let (response, _) = setup
        .exchange::<OffsetCommitResponse>(OFFSET_COMMIT, 10, body, &mut nobody)
        .await;
    let codes: Vec<_> = errors(&response).into_iter().map(|(_, _, error)| error).collect();
    assert_eq!(codes, [30, 30, 30]);
    assert_eq!(response.topics[1].topic_id, ORDERS);
}

#[tokio::test]
async fn a_forbidden_topic_and_one_that_does_not_exist_cannot_be_told_apart() {
    let setup = checking().await;
    let rules = || Rules {
        topics: BTreeMap::from([("orders", READ | DESCRIBE), ("blind", READ)]),
        ..Rules::group(READ | DELETE | DESCRIBE)
    };
    let topics: &[(&str, &[i32])] = &[("payments", &[0]), ("orders", &[0, 9]), (NO_TOPIC, &[0])];
    for version in 2..=9 {
        let body = encode(&commit("g", topics), version);
        let (response, _) = setup
            .exchange::<OffsetCommitResponse>(OFFSET_COMMIT, version, body, &mut upstream(rules()))
            .await;
        let codes: Vec<_> = errors(&response).into_iter().map(|(_, _, error)| error).collect();
        // What is refused stands first.
        assert_eq!(codes, [29, 3, 0, 29], "v{version}");
    }
    let body = commit_by_id("g", &[(NOWHERE, &[0]), (PAYMENTS, &[0]), (ORDERS, &[0])]);
    let (response, _) = setup
        .exchange::<OffsetCommitResponse>(OFFSET_COMMIT, 10, body, &mut upstream(rules()))
        .await;
    let codes: Vec<_> = errors(&response).into_iter().map(|(_, _, error)| error).collect();
    assert_eq!(
        codes,
        [100, 29, 0],
        "an id that no topic has has no name to be forbidden by"
    );

    for version in 1..=7 {
        let body = encode(&single("g", Some(topics)), version);
        let (response, _) = setup
            .exchange::<OffsetFetchResponse>(OFFSET_FETCH, version, body, &mut upstream(rules()))
            .await;
        let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        let got: Vec<_> = partitions
            .map(|partition| (partition.committed_offset, partition.error_code))
            .collect();
        // Here it stands last.
        assert_eq!(got, [(42, 0), (-1, 0), (-1, 29), (-1, 29)], "v{version}");
    }
    let body = encode(&offset_delete("g", topics), 0);
    let (response, _) = setup
        .exchange::<OffsetDeleteResponse>(OFFSET_DELETE, 0, body, &mut upstream(rules()))
        .await;
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    let got: Vec<_> = partitions.map(|partition| partition.error_code).collect();
    assert_eq!(got, [29, 3, 0, 29]);
}

#[tokio::test]
async fn all_topics_are_those_that_may_be_described() {
    let setup = checking().await;
    let all = Rules::group(READ | DESCRIBE);
    let topics: &[(&str, &[i32])] = &[("orders", &[0]), ("payments", &[0])];
    setup
        .handle(OFFSET_COMMIT, 8, encode(&commit("g", topics), 8), &mut upstream(all))
        .await;
    for version in 8..=10 {
        let few = Rules {
            topics: BTreeMap::from([("payments", DESCRIBE)]),
            ..Rules::group(READ | DESCRIBE)
        };
        let body = match version {
            10 => fetch_by_id(&[("g", None), ("hidden", None)]),
            _ => {
                let groups = vec![group("g", None), group("hidden", None)];
                encode(&OffsetFetchRequest::default().with_groups(groups), version)
            }
        };
        forget(&setup).await;
        let (response, _) = setup
            .exchange::<OffsetFetchResponse>(OFFSET_FETCH, version, body, &mut upstream(few))
            .await;
        assert_eq!(response.groups[0].error_code, 0);
        assert_eq!(response.groups[0].topics.len(), 1, "v{version}");
        let topic = &response.groups[0].topics[0];
        match version {
            10 => assert_eq!(topic.topic_id, PAYMENTS),
            _ => assert_eq!(topic.name.as_str(), "payments"),
        }
        assert_eq!(
            (response.groups[1].error_code, response.groups[1].topics.len()),
            (30, 0)
        );
    }
}

#[tokio::test]
async fn requests_about_several_groups_are_split() {
    let setup = checking().await;
    let rules = || Rules {
        groups: BTreeMap::from([("g", READ | DELETE | DESCRIBE), ("blind", DELETE), ("seen", DESCRIBE)]),
        topics: every_topic(),
        ..Rules::default()
    };
    let ids = ["hidden", "g", "blind", "seen"];
    for version in versions::<DescribeGroupsRequest>() {
        let body = encode(&describe(&ids), version);
        let (response, _) = setup
            .exchange::<DescribeGroupsResponse>(DESCRIBE_GROUPS, version, body, &mut upstream(rules()))
            .await;
        let absent = if version >= 6 { 69 } else { 0 };
        let got: BTreeMap<_, _> = response
            .groups
            .iter()
            .map(|group| (group.group_id.to_string(), group.error_code))
            .collect();
        let expected = [("hidden", 30), ("g", absent), ("blind", 30), ("seen", absent)];
        assert_eq!(
            got,
            expected.map(|(id, error)| (id.to_owned(), error)).into(),
            "v{version}"
        );
    }
    for version in 0..=3 {
        let mut upstream = upstream(rules());
        let answered = deleted(&setup, version, delete(&ids, version), &mut upstream).await;
        let expected = [("hidden", 30), ("g", 69), ("blind", 69), ("seen", 30)];
        let answered: BTreeMap<_, _> = answered.into_iter().collect();
        assert_eq!(
            answered,
            expected.map(|(id, error)| (id.to_owned(), error)).into(),
            "v{version}"
        );
    }
}

#[tokio::test]
async fn a_list_shows_what_may_be_described() {
    let setup = checking().await;
    let mut all = upstream(Rules {
        groups: ["a", "b", "c"].map(|id| (id, READ)).into(),
        topics: every_topic(),
        ..Rules::default()
    });
    for id in ["a", "b", "c"] {
        let body = encode(&commit(id, &[("orders", &[0])]), 8);
        setup.handle(OFFSET_COMMIT, 8, body, &mut all).await;
    }
    for (cluster, elsewhere, expected) in [
        (DESCRIBE, None, &["a", "b", "c"] as &[&str]),
        (0, None, &["b"]),
        // It may be described where it is coordinated.
        (0, Some(16), &["b"]),
    ] {
        forget(&setup).await;
        let mut setup_of_no_node = Setup {
            services: setup.services.clone(),
            caller: setup.caller.clone(),
            decisions: Default::default(),
            apart: Default::default(),
        };
        setup_of_no_node.caller.node_id = None;
        let rules = Rules {
            groups: BTreeMap::from([("b", DESCRIBE), ("c", READ)]),
            cluster,
            elsewhere,
            ..Rules::default()
        };
        let body = encode(&ListGroupsRequest::default(), 5);
        let (response, _) = setup_of_no_node
            .exchange::<ListGroupsResponse>(LIST_GROUPS, 5, body, &mut upstream(rules))
            .await;
        let got: BTreeSet<_> = response.groups.iter().map(|group| group.group_id.to_string()).collect();
        assert_eq!(got, expected.iter().map(|id| (*id).to_owned()).collect());
    }
}

#[tokio::test]
async fn answers_are_remembered_for_moments() {
    let setup = checking().await;
    tokio::time::pause();
    let rules = Arc::new(Mutex::new(Rules::group(READ | DESCRIBE)));
    let mut upstream = changing(&rules);
    let error = async |upstream: &mut Upstream| {
        let body = encode(&heartbeat("g", "ghost", 1), 4);
        let answer = setup.exchange::<HeartbeatResponse>(HEARTBEAT, 4, body, upstream).await;
        answer.0.error_code
    };
    for _ in 0..100 {
        assert_eq!(error(&mut upstream).await, 25);
    }
    assert_eq!(upstream.asked.len(), 1, "one question for a hundred heartbeats");
    rules.lock().expect("not poisoned").groups.clear();
    tokio::time::advance(Duration::from_secs(4)).await;
    assert_eq!(error(&mut upstream).await, 25);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(error(&mut upstream).await, 30, "a withdrawn right ends");
    let asked = upstream.asked.len();
    for _ in 0..100 {
        assert_eq!(error(&mut upstream).await, 30);
    }
    assert_eq!(upstream.asked.len(), asked, "who insists is not asked for each time");
    *rules.lock().expect("not poisoned") = Rules::group(READ | DESCRIBE);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(error(&mut upstream).await, 25, "a new right counts soon");

    let metrics = &setup.services.metrics;
    assert_eq!(metrics.access.probes.get(), upstream.asked.len() as u64);
    assert!(metrics.access.remembered.get() >= 199);
    assert_eq!(metrics.api(HEARTBEAT).denied.get(), 101);
}

#[tokio::test]
async fn many_groups_and_topics_take_few_questions() {
    let setup = checking().await;
    let names: Vec<String> = (0..1_200).map(|number| format!("unseen-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut nobody = upstream(Rules::default());
    let answered = deleted(&setup, 2, delete(&names, 2), &mut nobody).await;
    assert!(answered.iter().all(|(_, error)| *error == 30) && answered.len() == names.len());
    let hidden = nobody.asked.iter().filter(|asked| asked.api_key == OFFSET_DELETE);
    assert_eq!(hidden.count(), 32, "and no more one by one");
    let described = nobody.asked.iter().filter(|asked| asked.api_key == DESCRIBE_GROUPS);
    assert_eq!(described.count(), 3);

    let mut reader = upstream(Rules::group(READ));
    let topics: Vec<(&str, &[i32])> = names.iter().map(|name| (*name, &[0] as &[i32])).collect();
    let body = encode(&commit("g", &topics), 8);
    let (response, _) = setup
        .exchange::<OffsetCommitResponse>(OFFSET_COMMIT, 8, body, &mut reader)
        .await;
    assert!(errors(&response).iter().all(|(_, _, error)| *error == 29));
    let fetches = reader.asked.iter().filter(|asked| asked.api_key == FETCH);
    assert_eq!(fetches.count(), 3);
}

#[tokio::test]
async fn a_node_without_an_authorizer_is_not_asked() {
    let mut setup = Setup::new().await;
    let unused = first_errors(&setup, &mut upstream_for_deletions()).await;
    assert!(unused.iter().all(|(_, error)| *error != 30));
    setup.caller.node_id = None;
    let unused = first_errors(&setup, &mut upstream_for_deletions()).await;
    assert!(unused.iter().all(|(_, error)| *error != 30));
    // A node of which it is not known is asked.
    setup.caller.node_id = Some(4);
    let asked = first_errors(&setup, &mut Upstream::gone()).await;
    assert!(asked.iter().all(|(api, error)| *error == not_available(api)));
}

/// The upstream's own copy of a deleted group is deleted, authorizer or not.
fn upstream_for_deletions() -> Upstream {
    Upstream::answering(|asked| {
        assert_eq!(asked.api_key, DELETE_GROUPS);
        deletes(&[])(asked)
    })
}
