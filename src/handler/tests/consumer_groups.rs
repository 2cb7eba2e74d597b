//! Groups of KIP-848: their two APIs, and the others about such groups.

use kafka_protocol::messages::consumer_group_describe_response::DescribedGroup;
use kafka_protocol::messages::consumer_group_heartbeat_request::TopicPartitions;
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse, DescribeGroupsRequest, DescribeGroupsResponse, ListGroupsRequest,
    ListGroupsResponse, MetadataResponse, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
};

use super::access::rules::{DESCRIBE, READ, Rules, upstream};
use super::access::{checking, forget};
use super::groups::{describe as describe_classic, described as described_classic, describes};
use super::kit::*;
use super::membership::joined as joined_classic;
use super::offset_commit::{commit, errors};
use super::offset_fetch::group as fetch_of;
use super::unavailable::setups;
use crate::handler::Answer;
use crate::wire::api::*;

/// A first heartbeat; v0's members have no id of their own.
fn join(group_id: &str, version: i16) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest::default()
        .with_group_id(string(group_id).into())
        .with_member_id(string(if version == 0 { "" } else { "me" }))
        .with_rebalance_timeout_ms(20_000)
        .with_subscribed_topic_names(Some(vec![string("orders").into()]))
        .with_topic_partitions(Some(Vec::new()))
}

fn beat(group_id: &str, member_id: &str, member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest::default()
        .with_group_id(string(group_id).into())
        .with_member_id(string(member_id))
        .with_member_epoch(member_epoch)
}

fn describe(group_ids: &[&str]) -> ConsumerGroupDescribeRequest {
    ConsumerGroupDescribeRequest::default().with_group_ids(group_ids.iter().map(|id| string(id).into()).collect())
}

async fn joined(setup: &Setup, group_id: &str, version: i16) -> ConsumerGroupHeartbeatResponse {
    let request = join(group_id, version);
    let response: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, version, &request).await;
    assert_eq!(response.error_code, 0, "v{version}: {:?}", response.error_message);
    response
}

fn errors_of(response: &ConsumerGroupDescribeResponse) -> Vec<(&str, i16)> {
    let groups = response.groups.iter();
    groups
        .map(|group| (group.group_id.as_str(), group.error_code))
        .collect()
}

#[tokio::test]
async fn a_member_lives_from_its_first_heartbeat_to_its_last() {
    let setup = Setup::new().await;
    for version in 0..=1 {
        let group_id = format!("g{version}");
        let first = joined(&setup, &group_id, version).await;
        let member_id = first.member_id.as_deref().expect("an id").to_owned();
        assert_eq!(member_id == "me", version == 1, "{member_id}");
        assert!(first.heartbeat_interval_ms > 0);
        let assigned = first.assignment.expect("the only member has everything at once");
        assert_eq!(assigned.topic_partitions.len(), 1);
        assert_eq!(assigned.topic_partitions[0].topic_id, ORDERS);
        assert_eq!(assigned.topic_partitions[0].partitions, [0, 1, 2]);

        let owned = TopicPartitions::default()
            .with_topic_id(ORDERS)
            .with_partitions(vec![0, 1, 2]);
        let next = beat(&group_id, &member_id, first.member_epoch).with_topic_partitions(Some(vec![owned]));
        let next: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, version, &next).await;
        assert_eq!((next.error_code, next.member_epoch), (0, first.member_epoch));
        assert_eq!(next.assignment, None, "nothing is new");

        let ahead = beat(&group_id, &member_id, first.member_epoch + 1);
        let ahead: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, version, &ahead).await;
        assert_eq!((ahead.error_code, ahead.member_id, ahead.member_epoch), (110, None, 0));

        let last = beat(&group_id, &member_id, -1);
        let last: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, version, &last).await;
        assert_eq!((last.error_code, last.member_epoch), (0, -1));
        let late = beat(&group_id, &member_id, first.member_epoch);
        let late: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, version, &late).await;
        assert_eq!(late.error_code, 25);
    }
}

#[tokio::test]
async fn a_group_that_is_named_very_often_is_not_answered_as_often() {
    let setup = Setup::new().await;
    joined(&setup, "g", 1).await;
    for (named, answered) in [(3, 3), (1_000, 17)] {
        let request = describe(&vec!["g"; named]);
        let response: ConsumerGroupDescribeResponse = setup.ask(CONSUMER_GROUP_DESCRIBE, 1, &request).await;
        assert_eq!(response.groups.len(), answered);
    }
}

#[tokio::test]
async fn a_heartbeat_that_cannot_be_one_is_refused_with_the_reason() {
    let setup = Setup::new().await;
    let nameless = join("g", 0);
    let response: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, 1, &nameless).await;
    assert_eq!(response.error_code, 42, "since v1 members bring their ids");
    assert!(response.error_message.is_some());
    let unknown = join("g", 1).with_server_assignor(Some(string("tarot")));
    let response: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, 1, &unknown).await;
    assert_eq!(response.error_code, 112);
    let invalid = join("g", 1).with_subscribed_topic_regex(Some(string("(")));
    let response: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, 1, &invalid).await;
    assert_eq!(response.error_code, 128);
    assert!(response.error_message.is_some());
    let nobody = beat("nothing", "me", 4);
    let response: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, 1, &nobody).await;
    assert_eq!(response.error_code, 69);
}

#[tokio::test]
async fn a_pattern_is_resolved_with_the_first_heartbeat() {
    let setup = Setup::new().await;
    let request = join("g", 1)
        .with_subscribed_topic_names(None)
        .with_subscribed_topic_regex(Some(string("pay.*")));
    let response: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, 1, &request).await;
    let assigned = response.assignment.expect("assigned at once").topic_partitions;
    assert_eq!((assigned.len(), assigned[0].topic_id), (1, PAYMENTS));
    let described: ConsumerGroupDescribeResponse = setup.ask(CONSUMER_GROUP_DESCRIBE, 1, &describe(&["g"])).await;
    let member = &described.groups[0].members[0];
    assert_eq!(member.subscribed_topic_regex.as_deref(), Some("pay.*"));
    assert!(member.subscribed_topic_names.is_empty());
}

#[tokio::test]
async fn a_pattern_stands_only_for_topics_that_its_user_may_describe() {
    let setup = checking().await;
    let request = join("g", 1)
        .with_subscribed_topic_names(None)
        .with_subscribed_topic_regex(Some(string("[op].*")));
    let body = encode(&request, 1);
    // The second user gets what the first found, as far as that one's own rights go, and nobody gets what nobody could tell.
    for (topics, expected) in [
        (&["payments"][..], &[PAYMENTS][..]),
        (&["orders"], &[ORDERS]),
        (&["orders", "payments"], &[ORDERS, PAYMENTS]),
        (&[], &[]),
    ] {
        forget(&setup).await;
        let mut rules = Rules::group(READ | DESCRIBE);
        rules.topics = topics.iter().map(|name| (*name, DESCRIBE)).collect();
        let mut upstream = upstream(rules);
        let exchanged = setup.exchange(CONSUMER_GROUP_HEARTBEAT, 1, body.clone(), &mut upstream);
        let (response, _): (ConsumerGroupHeartbeatResponse, _) = exchanged.await;
        assert_eq!(response.error_code, 0, "{topics:?}: {:?}", response.error_message);
        let assigned = response.assignment.expect("assigned at once").topic_partitions;
        let ids: Vec<_> = assigned.iter().map(|topic| topic.topic_id).collect();
        assert_eq!(ids, expected, "{topics:?}");
        let leave = encode(&beat("g", "me", -1), 1);
        setup.handle(CONSUMER_GROUP_HEARTBEAT, 1, leave, &mut upstream).await;
    }
    // Somebody may join the group whose topics cannot be asked about.
    forget(&setup).await;
    let rules = Rules::group(READ | DESCRIBE);
    let mut deaf = Upstream::answering(move |asked| match asked.api_key {
        METADATA => encode(&MetadataResponse::default(), asked.version),
        _ => rules.answer(asked),
    });
    let exchanged = setup.exchange(CONSUMER_GROUP_HEARTBEAT, 1, body, &mut deaf);
    let (response, _): (ConsumerGroupHeartbeatResponse, _) = exchanged.await;
    assert_eq!((response.error_code, response.assignment), (15, None));
}

#[tokio::test]
async fn a_description_tells_the_group_and_its_members() {
    let setup = Setup::new().await;
    joined(&setup, "g", 1).await;
    joined_classic(&setup, "old", 9).await;
    for version in 0..=1 {
        let request = describe(&["g", "old", "g"]);
        let response: ConsumerGroupDescribeResponse = setup.ask(CONSUMER_GROUP_DESCRIBE, version, &request).await;
        assert_eq!(errors_of(&response), [("g", 0), ("old", 69), ("g", 0)]);
        assert!(response.groups[1].error_message.is_some());
        let group = &response.groups[0];
        assert_eq!(
            (group.group_state.as_str(), group.assignor_name.as_str()),
            ("Stable", "uniform")
        );
        assert_eq!(group.group_epoch, group.assignment_epoch);
        let member = &group.members[0];
        assert_eq!(
            (member.member_id.as_str(), member.member_epoch),
            ("me", group.group_epoch)
        );
        assert_eq!(
            (member.client_id.as_str(), member.client_host.as_str()),
            ("tester", "/127.0.0.1")
        );
        assert_eq!(member.member_type, if version == 0 { -1 } else { 1 });
        for assignment in [&member.assignment, &member.target_assignment] {
            assert_eq!(assignment.topic_partitions[0].topic_name.as_str(), "orders");
            assert_eq!(assignment.topic_partitions[0].partitions, [0, 1, 2]);
        }
    }
}

#[tokio::test]
async fn the_apis_of_classic_groups_know_a_consumer_group_when_they_see_one() {
    let setup = Setup::new().await;
    joined(&setup, "g", 1).await;
    for version in versions::<DescribeGroupsRequest>() {
        let response: DescribeGroupsResponse = setup.ask(DESCRIBE_GROUPS, version, &describe_classic(&["g"])).await;
        let group = &response.groups[0];
        assert_eq!(
            (group.group_state.as_str(), group.members.len()),
            ("Dead", 0),
            "v{version}"
        );
        assert_eq!(group.error_code, if version >= 6 { 69 } else { 0 });
    }
    for (states, types, listed) in [
        (vec![], vec!["Consumer"], 1),
        (vec!["stable"], vec![], 1),
        (vec!["Empty"], vec![], 0),
        (vec![], vec!["classic"], 0),
    ] {
        let request = ListGroupsRequest::default()
            .with_states_filter(states.into_iter().map(string).collect())
            .with_types_filter(types.into_iter().map(string).collect());
        let body = encode(&request, 5);
        let mut nothing = Upstream::answering(|asked| encode(&ListGroupsResponse::default(), asked.version));
        let (response, _) = setup
            .exchange::<ListGroupsResponse>(LIST_GROUPS, 5, body, &mut nothing)
            .await;
        assert_eq!(response.groups.len(), listed);
        for group in response.groups {
            let shown = [group.group_state, group.group_type, group.protocol_type];
            assert_eq!(
                shown.each_ref().map(|text| text.as_str()),
                ["Stable", "consumer", "consumer"]
            );
        }
    }
}

#[tokio::test]
async fn offsets_are_those_of_a_member_in_its_epoch() {
    let setup = Setup::new().await;
    let epoch = joined(&setup, "g", 1).await.member_epoch;
    for (version, member_id, member_epoch, error) in [
        (9, "me", epoch, 0),
        (9, "me", epoch + 1, 113),
        (9, "you", epoch, 25),
        (8, "me", epoch, 35),
        (9, "", -1, 25),
    ] {
        let request = commit("g", &[("orders", &[0])])
            .with_member_id(string(member_id))
            .with_generation_id_or_member_epoch(member_epoch);
        let response: OffsetCommitResponse = setup.ask(OFFSET_COMMIT, version, &request).await;
        let codes: Vec<_> = errors(&response).into_iter().map(|(_, _, error)| error).collect();
        assert_eq!(codes, [error], "v{version} {member_id:?} {member_epoch}");
    }
    let fetched = |member_id: Option<&str>, member_epoch| -> OffsetFetchRequestGroup {
        fetch_of("g", Some(&[("orders", &[0])]))
            .with_member_id(member_id.map(string))
            .with_member_epoch(member_epoch)
    };
    for (member_id, member_epoch, error) in [
        (None, -1, 0),
        (Some("me"), epoch, 0),
        (Some("me"), epoch + 1, 113),
        (Some("you"), epoch, 25),
    ] {
        let request = OffsetFetchRequest::default().with_groups(vec![fetched(member_id, member_epoch)]);
        let response: OffsetFetchResponse = setup.ask(OFFSET_FETCH, 9, &request).await;
        assert_eq!(response.groups[0].error_code, error, "{member_id:?} {member_epoch}");
        let told = response.groups[0].topics.len();
        assert_eq!(told, usize::from(error == 0), "never no offset instead of the error");
    }
}

#[tokio::test]
async fn while_nothing_can_be_looked_at_clients_are_told_to_wait() {
    for (setup, error) in setups().await {
        for version in 0..=1 {
            let request = join("g", version);
            let response: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, version, &request).await;
            assert_eq!((response.error_code, response.assignment), (error, None));
            let request = describe(&["a", "b"]);
            let response: ConsumerGroupDescribeResponse = setup.ask(CONSUMER_GROUP_DESCRIBE, version, &request).await;
            assert_eq!(errors_of(&response), [("a", error), ("b", error)]);
        }
    }
}

#[tokio::test]
async fn rights_are_those_that_kafka_asks_for() {
    let setup = checking().await;
    let hears = async |operations: i32, topic: i32, request: &ConsumerGroupHeartbeatRequest| {
        let mut rules = Rules::group(operations);
        rules.topics = [("orders", topic)].into();
        forget(&setup).await;
        let body = encode(request, 1);
        let answer: (ConsumerGroupHeartbeatResponse, _) = setup
            .exchange(CONSUMER_GROUP_HEARTBEAT, 1, body, &mut upstream(rules))
            .await;
        answer.0.error_code
    };
    assert_eq!(hears(DESCRIBE, DESCRIBE, &join("g", 1)).await, 30);
    assert_eq!(hears(READ | DESCRIBE, READ, &join("g", 1)).await, 29);
    // Not even what is wrong with it.
    assert_eq!(hears(DESCRIBE, DESCRIBE, &join("g", 0)).await, 30);
    assert_eq!(hears(READ | DESCRIBE, DESCRIBE, &join("g", 1)).await, 0);

    for (operations, topic, error, members) in [
        (READ, DESCRIBE, 30, 0),
        (DESCRIBE, READ, 29, 0),
        (DESCRIBE, DESCRIBE, 0, 1),
    ] {
        let mut rules = Rules::group(operations);
        rules.topics = [("orders", topic)].into();
        forget(&setup).await;
        let request = describe(&["g"]).with_include_authorized_operations(true);
        let (response, counted) = setup
            .exchange::<ConsumerGroupDescribeResponse>(
                CONSUMER_GROUP_DESCRIBE,
                1,
                encode(&request, 1),
                &mut upstream(rules),
            )
            .await;
        let group = &response.groups[0];
        assert_eq!(
            (group.error_code, group.members.len(), counted.0),
            (error, members, error)
        );
        assert_eq!(group.group_state.is_empty(), error != 0, "nothing else is told");
        let operations = if error == 0 { operations } else { i32::MIN };
        assert_eq!(group.authorized_operations, operations);
    }
    forget(&setup).await;
    let (response, _) = setup
        .exchange::<ConsumerGroupHeartbeatResponse>(
            CONSUMER_GROUP_HEARTBEAT,
            1,
            encode(&join("g", 1), 1),
            &mut Upstream::gone(),
        )
        .await;
    assert_eq!(response.error_code, 15, "no answer is no access");
}

#[tokio::test]
async fn foreign_groups_are_the_upstreams() {
    let newest = Options {
        versions: [(CONSUMER_GROUP_HEARTBEAT, (0, 1)), (CONSUMER_GROUP_DESCRIBE, (0, 1))].into(),
        ..Options::default()
    };
    let setup = Setup::with(newest);
    setup.loaded().await;
    for request in [
        join("delegated-g", 1),
        join("live-g", 1),
        beat("delegated-g", "me", 3),
        beat("live-g", "me", 3),
    ] {
        let body = encode(&request, 1);
        let answer = setup
            .handle(CONSUMER_GROUP_HEARTBEAT, 1, body, &mut Upstream::unused())
            .await;
        assert!(matches!(answer, Answer::Forward), "{request:?}: {answer:?}");
    }
    let body = encode(&describe(&["live-g", "delegated-g"]), 1);
    let answer = setup
        .handle(CONSUMER_GROUP_DESCRIBE, 1, body, &mut Upstream::unused())
        .await;
    assert!(matches!(answer, Answer::Forward), "{answer:?}");

    joined(&setup, "ours", 1).await;
    let theirs = |asked: &Asked| {
        let request: ConsumerGroupDescribeRequest = asked.decode();
        assert_eq!(request.group_ids.len(), 2);
        let group = DescribedGroup::default()
            .with_group_id(string("delegated-b").into())
            .with_group_state(string("Reconciling"));
        let response = ConsumerGroupDescribeResponse::default().with_groups(vec![group]);
        encode(&response, asked.version)
    };
    let body = encode(&describe(&["delegated-a", "ours", "delegated-b"]), 1);
    let (response, _) = setup
        .exchange::<ConsumerGroupDescribeResponse>(
            CONSUMER_GROUP_DESCRIBE,
            1,
            body.clone(),
            &mut Upstream::answering(theirs),
        )
        .await;
    assert_eq!(
        errors_of(&response),
        [("delegated-a", 15), ("ours", 0), ("delegated-b", 0)]
    );
    assert_eq!(response.groups[2].group_state.as_str(), "Reconciling");
    let (response, _) = setup
        .exchange::<ConsumerGroupDescribeResponse>(CONSUMER_GROUP_DESCRIBE, 1, body, &mut Upstream::gone())
        .await;
    assert_eq!(
        errors_of(&response),
        [("delegated-a", 15), ("ours", 0), ("delegated-b", 15)]
    );
}

#[tokio::test]
async fn an_upstream_without_the_protocol_is_not_sent_what_it_cannot_read() {
    // As 3.8 lists them, to refuse them.
    let older = Options {
        versions: [(CONSUMER_GROUP_HEARTBEAT, (0, 0)), (CONSUMER_GROUP_DESCRIBE, (0, 0))].into(),
        ..Options::default()
    };
    let setup = Setup::with(older);
    setup.loaded().await;
    let request = join("delegated-g", 1);
    let response: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, 1, &request).await;
    assert_eq!(response.error_code, 35);
    let mut upstream = Upstream::answering(|asked| {
        assert_eq!(asked.version, 0);
        let group = DescribedGroup::default()
            .with_group_id(string("delegated-g").into())
            .with_error_code(35);
        encode(
            &ConsumerGroupDescribeResponse::default().with_groups(vec![group]),
            asked.version,
        )
    });
    let body = encode(&describe(&["delegated-g"]), 1);
    let (response, _) = setup
        .exchange::<ConsumerGroupDescribeResponse>(CONSUMER_GROUP_DESCRIBE, 1, body, &mut upstream)
        .await;
    assert_eq!(errors_of(&response), [("delegated-g", 35)]);
}

#[tokio::test]
async fn without_topic_ids_there_are_no_consumer_groups() {
    let setup = Setup::with(Options {
        topic_ids: false,
        ..Options::default()
    });
    setup.loaded().await;
    for version in 0..=1 {
        let request = join("g", version);
        let response: ConsumerGroupHeartbeatResponse = setup.ask(CONSUMER_GROUP_HEARTBEAT, version, &request).await;
        assert_eq!(response.error_code, 35);
    }
    // Classic groups work as ever.
    joined_classic(&setup, "g", 9).await;
    let mut upstream = Upstream::answering(describes(vec![described_classic("g", "Dead")]));
    let body = encode(&describe_classic(&["g"]), 5);
    let answer = setup.handle(DESCRIBE_GROUPS, 5, body, &mut upstream).await;
    assert!(matches!(answer, Answer::Reply(..)), "{answer:?}");
}
