use kafka_protocol::messages::consumer_group_describe_response as described;
use kafka_protocol::messages::consumer_group_heartbeat_response::TopicPartitions;

use super::*;

const INTERVAL: Duration = Duration::from_secs(5);
const TOPIC: Uuid = Uuid::from_u128(1);

fn member() -> Consumer {
    Consumer::new("group", 7, vec![topic_name("topic")])
}

fn answer(epoch: i32, partitions: Option<&[i32]>) -> ConsumerGroupHeartbeatResponse {
    let assignment = partitions.map(|partitions| {
        let topic = TopicPartitions::default()
            .with_topic_id(TOPIC)
            .with_partitions(partitions.to_vec());
        let topics = if partitions.is_empty() { Vec::new() } else { vec![topic] };
        Assignment::default().with_topic_partitions(topics)
    });
    ConsumerGroupHeartbeatResponse::default()
        .with_member_epoch(epoch)
        .with_heartbeat_interval_ms(5_000)
        .with_assignment(assignment)
}

fn answered(member: &mut Consumer, epoch: i32, partitions: Option<&[i32]>) -> Duration {
    member.answered(answer(epoch, partitions)).expect("no error")
}

#[test]
fn what_a_member_is_told_to_hold_it_says_at_once_and_then_only_that_it_is_there() {
    let mut member = member();
    assert_eq!(member.heartbeat().member_epoch, 0);
    assert!(member.heartbeat().subscribed_topic_names.is_some());
    assert_eq!(answered(&mut member, 3, Some(&[0, 1])), Duration::ZERO);
    assert_eq!(member.acknowledged(), None);

    let request = member.heartbeat();
    let owned = request.topic_partitions.as_ref().expect("what it owns");
    assert_eq!(owned[0].partitions, [0, 1]);
    assert_eq!((request.member_epoch, request.subscribed_topic_names), (3, None));
    assert_eq!(answered(&mut member, 3, None), INTERVAL);
    assert_eq!(member.acknowledged(), Some(2));

    let request = member.heartbeat();
    assert_eq!(request.topic_partitions, None);
    assert_eq!(request.rebalance_timeout_ms, -1);
}

#[test]
fn an_empty_first_assignment_is_acknowledged_too() {
    let mut member = member();
    assert_eq!(answered(&mut member, 1, Some(&[])), Duration::ZERO);
    assert_eq!(member.heartbeat().topic_partitions, Some(Vec::new()));
    assert_eq!(answered(&mut member, 1, None), INTERVAL);
    assert_eq!(member.acknowledged(), Some(0));
}

#[test]
fn an_acknowledgement_that_is_answered_with_other_partitions_is_followed_by_another() {
    let mut member = member();
    answered(&mut member, 1, Some(&[0, 1]));
    assert_eq!(answered(&mut member, 2, Some(&[0])), Duration::ZERO);
    assert_eq!(member.acknowledged(), None);
    assert_eq!(answered(&mut member, 2, None), INTERVAL);
    assert_eq!(member.acknowledged(), Some(1));
}

#[test]
fn an_assignment_that_is_told_again_changes_nothing() {
    let mut member = member();
    answered(&mut member, 1, Some(&[0]));
    assert_eq!(answered(&mut member, 2, Some(&[0])), INTERVAL);
    assert_eq!(member.acknowledged(), Some(1));
}

#[test]
fn a_coordinator_that_loads_is_asked_the_same_again_and_a_refusal_ends_the_run() {
    let mut member = member();
    let refusal = |error: ResponseError| answer(0, None).with_error_code(error.code());
    let pause = member.answered(refusal(ResponseError::CoordinatorLoadInProgress));
    assert_eq!(pause.expect("a pause"), RETRY_PAUSE);
    assert!(member.heartbeat().subscribed_topic_names.is_some());
    member
        .answered(refusal(ResponseError::FencedMemberEpoch))
        .expect_err("a refusal");
}

#[test]
fn a_group_is_not_settled_while_a_member_is_to_have_something_else() {
    let mut member = member();
    answered(&mut member, 1, Some(&[0]));
    answered(&mut member, 1, None);
    let shown = |partition: i32| {
        let topic = described::TopicPartitions::default()
            .with_topic_id(TOPIC)
            .with_partitions(vec![partition]);
        described::Assignment::default().with_topic_partitions(vec![topic])
    };
    let group = |target: i32| {
        let member = described::Member::default()
            .with_member_id(member.member_id.clone())
            .with_assignment(shown(0))
            .with_target_assignment(shown(target));
        DescribedGroup::default().with_members(vec![member])
    };
    compare(&group(0), &[&member], 1).expect("settled");
    compare(&group(1), &[&member], 1).expect_err("another target");
    compare(&group(0), &[&member], 2).expect_err("a partition without an owner");
    compare(&group(0), &[&member, &member], 1).expect_err("a partition with two owners");
}
