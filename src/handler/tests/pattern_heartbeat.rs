//! External assignors that register for all groups of a pattern by one heartbeat.

use std::collections::BTreeMap;

use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use kafka_protocol::protocol::StrBytes;

use super::access::checking;
use super::access::rules::{DESCRIBE, READ, Rules, every_topic, upstream};
use super::assignment::{assignor, compute, external, hears, member, told};
use super::kit::*;
use super::unavailable::setups;
use crate::handler::Answer;
use crate::wire::api::*;
use crate::wire::assignment::heartbeat::{groups_to_compute, set_client_assignors, should_compute_assignment};
use crate::wire::codec;

const PATTERN: &str = "orders-*";

/// A heartbeat for all groups of the pattern, which says everything each time.
fn of_pattern(pattern: &str, member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
    let owned = (member_epoch == 0).then(Vec::new);
    external(0)
        .with_group_id(string(pattern).into())
        .with_member_epoch(member_epoch)
        .with_topic_partitions(owned)
}

fn asking(group_id: &str) -> ConsumerGroupHeartbeatRequest {
    member(0)
        .with_group_id(string(group_id).into())
        .with_server_assignor(Some(string("lag-balanced")))
}

fn groups(response: &ConsumerGroupHeartbeatResponse) -> Option<Vec<StrBytes>> {
    assert_eq!(response.error_code, 0, "{response:?}");
    assert!(!should_compute_assignment(response).expect("well-formed"));
    groups_to_compute(response).expect("well-formed")
}

#[tokio::test]
async fn one_registration_is_told_of_every_group_of_its_pattern_from_its_first_join_on() {
    let setup = Setup::new().await;
    let registered = hears(&setup, 1, &of_pattern(PATTERN, 0)).await;
    assert_eq!((registered.member_epoch, groups(&registered)), (1, Some(Vec::new())));
    for group_id in ["orders-eu", "orders-us", "orders-asia", "orders-"] {
        let asks = asking(group_id);
        let computes = async {
            let response = hears(&setup, 1, &of_pattern(PATTERN, 1)).await;
            assert_eq!(groups(&response), Some(vec![string(group_id)]));
            compute(&setup, group_id, ("external", 1), "me").await
        };
        let (_, joined) = tokio::join!(computes, hears(&setup, 1, &asks));
        let (partitions, _) = told(&joined).expect("an assignment");
        assert_eq!(partitions, [0, 1, 2], "{group_id}");
    }
    let left = hears(&setup, 1, &of_pattern(PATTERN, -1)).await;
    assert_eq!((left.error_code, left.member_epoch), (0, -1));
    let refused = hears(&setup, 1, &asking("orders-new")).await;
    assert_eq!(refused.error_code, 112, "nobody offers it any more");
}

#[tokio::test]
async fn a_pattern_that_no_rule_has_for_the_name_is_a_group_of_that_name() {
    let setup = Setup::new().await;
    for pattern in ["payments-*", "orders-eu*", "*"] {
        let registered = hears(&setup, 1, &of_pattern(pattern, 0)).await;
        assert_eq!(groups(&registered), None, "{pattern}");
    }
    let mut others = of_pattern(PATTERN, 0);
    let other = crate::wire::assignment::heartbeat::ClientAssignor {
        name: string("other"),
        ..assignor()
    };
    set_client_assignors(&mut others, &[assignor(), other]).expect("they fit");
    assert_eq!(groups(&hears(&setup, 1, &others).await), None, "not for each name");
    // A consumer of a group of that name is one.
    let joined = hears(&setup, 1, &member(0).with_group_id(string(PATTERN).into())).await;
    assert_eq!((joined.error_code, groups(&joined)), (0, None));
    assert!(told(&joined).is_some());
}

#[tokio::test]
async fn a_group_that_the_user_may_not_read_is_not_named_to_it() {
    let may = |groups: &[(&'static str, i32)], elsewhere| {
        upstream(Rules {
            groups: groups.iter().copied().collect::<BTreeMap<_, _>>(),
            topics: every_topic(),
            elsewhere,
            ..Rules::default()
        })
    };
    let setup = checking().await;
    let register = |epoch| encode(&of_pattern(PATTERN, epoch), 1);
    let refused = reply(
        setup
            .handle(CONSUMER_GROUP_HEARTBEAT, 1, register(0), &mut may(&[], None))
            .await,
    );
    assert_eq!(refused.error_code, 30, "it takes READ on a group of the pattern's name");
    for (group_id, operations, elsewhere, named) in [
        ("orders-secret", 0, None, false),
        ("orders-eu", READ | DESCRIBE, None, true),
        ("orders-far", READ | DESCRIBE, Some(16), true),
    ] {
        let assigns = checking().await;
        let all = READ | DESCRIBE;
        let mut rights = may(&[(PATTERN, all), (group_id, operations)], None);
        let registered = assigns
            .handle(CONSUMER_GROUP_HEARTBEAT, 1, register(0), &mut rights)
            .await;
        assert_eq!(groups(&reply(registered)), Some(Vec::new()));
        let reads = assigns.another_connection();
        let mut rights = may(&[(group_id, all)], None);
        let joins = encode(&asking(group_id), 1);
        let join = reads.handle(CONSUMER_GROUP_HEARTBEAT, 1, joins, &mut rights);
        let mut rights = may(&[(PATTERN, all), (group_id, operations)], elsewhere);
        let hears = assigns.handle(CONSUMER_GROUP_HEARTBEAT, 1, register(1), &mut rights);
        tokio::select! {
            heard = hears => assert_eq!(
                groups(&reply(heard)),
                Some(if named { vec![string(group_id)] } else { Vec::new() }),
                "{group_id}"
            ),
            joined = join => panic!("nobody has computed: {joined:?}"),
        }
    }
}

#[tokio::test]
async fn while_no_shard_can_be_asked_registering_has_to_wait() {
    for (setup, error) in setups().await {
        let refused = hears(&setup, 1, &of_pattern(PATTERN, 0)).await;
        assert_eq!(refused.error_code, error);
    }
}

fn reply(answer: Answer) -> ConsumerGroupHeartbeatResponse {
    match answer {
        Answer::Reply(body, _) => codec::decode_response(1, body.freeze()).expect("well-formed"),
        other => panic!("{other:?}"),
    }
}
