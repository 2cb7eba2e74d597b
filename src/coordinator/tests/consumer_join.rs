//! Members, their epochs, and what a heartbeat changes.

use super::consumer_client::{
    Client, REBALANCE_MS, SESSION_MS, T, U, at_once, beat_of, join_of, of_t, owning, settle, shard, shard_with, topics,
};
use super::group_test::GroupTest;
use crate::coordinator::event::{EpochReason, Event};
use crate::coordinator::partitions::Partitions;
use crate::coordinator::record::{ConsumerGroupRecord, Record};
use crate::coordinator::request::{ConsumerGroupHeartbeatRequest, Response};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

#[test]
fn the_first_member_of_a_group_gets_everything_at_epoch_two() {
    // Scenario 78.
    let mut test = shard();
    let response = test.beat(join_of("a"));
    assert_eq!(response.error, ErrorCode::NONE);
    assert_eq!(response.member_id.as_deref(), Some("a"));
    assert_eq!((response.member_epoch, response.heartbeat_interval_ms), (2, 5_000));
    assert_eq!(response.assignment.as_deref(), Some(&of_t(&[0, 1, 2, 3, 4, 5])));
    assert_eq!(&*test.state(), "Stable");
    let kinds: Vec<&str> = test.records.iter().map(kind).collect();
    assert_eq!(
        kinds,
        ["member", "epoch", "target member", "target", "current", "owned"]
    );
}

fn kind(record: &Record) -> &'static str {
    match record {
        Record::ConsumerGroup { record, .. } => match record {
            ConsumerGroupRecord::Metadata(_) => "epoch",
            ConsumerGroupRecord::PartitionMetadata(_) => "partition metadata",
            ConsumerGroupRecord::Member { .. } => "member",
            ConsumerGroupRecord::Target(_) => "target",
            ConsumerGroupRecord::TargetMember { .. } => "target member",
            ConsumerGroupRecord::CurrentAssignment { .. } => "current",
            ConsumerGroupRecord::Regex { .. } => "regex",
        },
        Record::GroupOwned { .. } => "owned",
        Record::GroupConfig { .. } => "config",
        Record::GroupMetadata { .. } => "classic",
        Record::OffsetCommit { .. } => "offset",
    }
}

#[test]
fn a_heartbeat_of_the_wrong_form_is_refused() {
    // Scenarios 61, 62, 101.
    let mut test = shard();
    let wrong = [
        join_of(""),
        join_of(" "),
        ConsumerGroupHeartbeatRequest {
            group_id: " ".into(),
            ..join_of("a")
        },
        ConsumerGroupHeartbeatRequest {
            group_instance_id: Some("".into()),
            ..join_of("a")
        },
        ConsumerGroupHeartbeatRequest {
            rack_id: Some("".into()),
            ..join_of("a")
        },
        ConsumerGroupHeartbeatRequest {
            rebalance_timeout_ms: -1,
            ..join_of("a")
        },
        ConsumerGroupHeartbeatRequest {
            topic_partitions: None,
            ..join_of("a")
        },
        ConsumerGroupHeartbeatRequest {
            topic_partitions: Some(of_t(&[0])),
            ..join_of("a")
        },
        ConsumerGroupHeartbeatRequest {
            subscribed_topic_names: None,
            ..join_of("a")
        },
        beat_of("a", -2),
        beat_of("a", -3),
    ];
    for request in wrong {
        assert_eq!(
            test.beat_error(request.clone()),
            ErrorCode::INVALID_REQUEST,
            "{request:?}"
        );
    }
    assert!(test.records.is_empty());
}

#[test]
fn a_member_of_the_first_version_is_given_an_id() {
    // Scenario 61.
    let mut test = shard();
    let response = test.beat(ConsumerGroupHeartbeatRequest {
        needs_member_id: false,
        ..join_of("")
    });
    let id = response.member_id.expect("an id");
    assert!(!id.is_empty());
    assert_eq!(test.beat(beat_of(&id, 2)).error, ErrorCode::NONE);
}

#[test]
fn an_unknown_group_and_an_unknown_member_are_told_apart() {
    // Scenario 63.
    let mut test = shard();
    assert_eq!(test.beat_error(beat_of("a", 5)), ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(test.beat_error(beat_of("a", -1)), ErrorCode::GROUP_ID_NOT_FOUND);
    Client::joined(&mut test, "a");
    assert_eq!(test.beat_error(beat_of("b", 5)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(test.beat_error(beat_of("b", -1)), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn an_epoch_that_was_never_given_is_fenced_and_the_member_stays() {
    // Scenario 64.
    let mut test = shard();
    let mut client = Client::joined(&mut test, "a");
    assert_eq!(test.beat_error(beat_of("a", 3)), ErrorCode::FENCED_MEMBER_EPOCH);
    assert_eq!(test.beat_error(beat_of("a", 1)), ErrorCode::FENCED_MEMBER_EPOCH);
    client.beat(&mut test);
}

#[test]
fn a_member_that_missed_an_answer_is_told_again() {
    // Scenarios 64, 66.
    let mut test = shard();
    let a = Client::joined(&mut test, "a");
    Client::joined(&mut test, "b");
    // The answer, which takes partitions from it at its old epoch, is lost, and so is the next.
    test.beat(a.request());
    let kept = test.member("a").target_assignment[0].partitions.clone();
    let told = test.beat(owning("a", a.epoch, of_t(&kept)));
    assert_eq!(told.member_epoch, 3);
    let full = |owned: Partitions| ConsumerGroupHeartbeatRequest {
        rebalance_timeout_ms: REBALANCE_MS,
        subscribed_topic_names: Some(vec!["t".into()]),
        ..owning("a", 2, owned)
    };
    let again = test.beat(full(of_t(&kept)));
    assert_eq!((again.error, again.member_epoch), (ErrorCode::NONE, 3));
    assert_eq!(again.assignment.as_deref(), Some(&of_t(&kept)));
    assert_eq!(
        test.beat_error(full(of_t(&[0, 1, 2, 3, 4, 5]))),
        ErrorCode::FENCED_MEMBER_EPOCH
    );
    assert_eq!(test.beat_error(beat_of("a", 2)), ErrorCode::FENCED_MEMBER_EPOCH);
}

#[test]
fn a_known_member_may_begin_anew_at_any_time() {
    // Scenario 65.
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    let mut b = Client::joined(&mut test, "b");
    a.beat(&mut test);
    // It has to give up partitions, and comes without any.
    let again = test.beat(join_of("a"));
    assert_eq!((again.error, again.member_epoch), (ErrorCode::NONE, 3));
    a.hear(&again);
    settle(&mut test, &mut [a.clone(), b.clone()]);
    let epoch = test.group_epoch();
    b.hear(&test.beat(join_of("b")));
    assert_eq!(b.numbers().len(), 3);
    assert_eq!(test.group_epoch(), epoch, "nothing changed for the group");
}

#[test]
fn a_heartbeat_without_news_writes_nothing_and_is_told_nothing() {
    // Scenario 67.
    let mut test = shard();
    let mut client = Client::joined(&mut test, "a");
    client.beat(&mut test);
    let written = test.records.len();
    let response = client.beat(&mut test);
    assert_eq!((response.member_epoch, &response.assignment), (2, &None));
    assert_eq!(test.records.len(), written);
}

#[test]
fn who_says_everything_is_told_everything() {
    // Scenario 68.
    let mut test = shard();
    let client = Client::joined(&mut test, "a");
    let written = test.records.len();
    let response = test.beat(ConsumerGroupHeartbeatRequest {
        member_epoch: client.epoch,
        topic_partitions: Some((*client.owned).clone()),
        ..join_of("a")
    });
    assert_eq!(response.assignment, Some(client.owned));
    assert_eq!(test.records.len(), written);
}

#[test]
fn another_subscription_is_another_epoch_and_target() {
    // Scenario 69.
    let mut test = shard();
    let mut client = Client::joined(&mut test, "a");
    let response = test.beat(ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(vec!["u".into(), "t".into(), "u".into()]),
        ..client.request()
    });
    client.hear(&response);
    assert_eq!(client.epoch, 3);
    let topics: Vec<u128> = client.owned.by_topic().map(|(id, _)| id.as_u128()).collect();
    assert_eq!(topics, [T, U]);
    assert!(test.events.iter().any(|event| matches!(
        event,
        Event::GroupEpochBumped {
            reason: EpochReason::SubscriptionChanged,
            group_epoch: 3,
            ..
        }
    )));
    let response = test.beat(ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(vec!["u".into()]),
        ..client.request()
    });
    assert_eq!(response.member_epoch, 3, "it has to give up the partitions of t first");
    client.hear(&response);
    client.beat(&mut test);
    assert_eq!((client.epoch, client.numbers()), (4, vec![0, 1, 2]));
}

#[test]
fn the_order_in_which_topics_are_named_is_no_change() {
    let mut test = shard();
    let names = |names: [&str; 2], request| ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(names.map(Into::into).into()),
        ..request
    };
    let mut client = Client::new("a");
    client.hear(&test.beat(names(["t", "u"], join_of("a"))));
    let epoch = test.group_epoch();
    for order in [["u", "t"], ["t", "u"]].into_iter().cycle().take(10) {
        let request = names(order, client.request());
        client.hear(&test.beat(request));
        assert_eq!((test.group_epoch(), client.owned.len()), (epoch, 9));
    }
}

#[test]
fn a_rack_or_host_is_recorded_and_an_assignor_is_another_epoch() {
    // Scenario 70.
    let mut test = shard();
    let client = Client::joined(&mut test, "a");
    test.beat(ConsumerGroupHeartbeatRequest {
        rack_id: Some("r".into()),
        client_host: "/10.0.0.2".into(),
        ..client.request()
    });
    let member = test.member("a");
    assert_eq!(
        (member.rack_id.as_deref(), &*member.client_host),
        (Some("r"), "/10.0.0.2")
    );
    assert_eq!(test.group_epoch(), 2);
    test.beat(ConsumerGroupHeartbeatRequest {
        server_assignor: Some("range".into()),
        client_host: "/10.0.0.2".into(),
        ..client.request()
    });
    let group = test.describe_consumer();
    assert_eq!((group.group_epoch, &*group.assignor_name), (3, "range"));
}

#[test]
fn an_unknown_assignor_is_refused_and_nothing_stored() {
    // Scenario 71.
    let mut test = shard();
    let response = test.beat(ConsumerGroupHeartbeatRequest {
        server_assignor: Some("sticky".into()),
        ..join_of("a")
    });
    assert_eq!(response.error, ErrorCode::UNSUPPORTED_ASSIGNOR);
    let message = response.error_message.expect("a message");
    assert!(message.contains("uniform, range"), "{message}");
    assert!(test.records.is_empty());
}

#[test]
fn a_full_group_takes_nobody_new() {
    // Scenario 73.
    let mut test = shard_with(Settings {
        group_consumer_max_size: 1,
        ..at_once()
    });
    Client::joined(&mut test, "a");
    assert_eq!(test.beat_error(join_of("b")), ErrorCode::GROUP_MAX_SIZE_REACHED);
    assert_eq!(test.beat(join_of("a")).error, ErrorCode::NONE);
}

#[test]
fn a_silent_member_is_taken_out_and_its_partitions_are_free() {
    // Scenarios 74, 75.
    let mut test = shard();
    let a = Client::joined(&mut test, "a");
    let mut b = Client::joined(&mut test, "b");
    for _ in 0..9 {
        test.advance_ms(SESSION_MS / 9);
        b.beat(&mut test);
    }
    assert_eq!(test.beat_error(a.request()), ErrorCode::UNKNOWN_MEMBER_ID);
    b.beat(&mut test);
    assert_eq!((b.epoch, b.numbers()), (4, vec![0, 1, 2, 3, 4, 5]));
    assert!(test.events.iter().any(|event| matches!(
        event,
        Event::ConsumerMemberRemoved {
            reason: EpochReason::SessionExpired,
            ..
        }
    )));
}

#[test]
fn a_topic_that_does_not_exist_yet_is_assigned_once_it_does() {
    // Scenario 80.
    let mut test = shard();
    let mut client = Client::new("a");
    client.hear(&test.beat(ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(vec!["later".into()]),
        ..join_of("a")
    }));
    assert!(client.owned.is_empty());
    test.tell_topics(topics(&[("t", T, 6), ("later", 9, 2)]));
    client.beat(&mut test);
    assert_eq!(client.numbers(), [0, 1]);
}

#[test]
fn new_partitions_are_one_new_epoch_without_any_heartbeat() {
    // Scenario 81.
    let mut test = shard();
    let mut client = Client::joined(&mut test, "a");
    test.tell_topics(topics(&[("t", T, 8), ("u", U, 3)]));
    assert_eq!(test.group_epoch(), 3);
    test.tell_topics(topics(&[("t", T, 8), ("u", U, 4)]));
    assert_eq!(test.group_epoch(), 3, "nobody is subscribed to u");
    client.beat(&mut test);
    assert_eq!((client.epoch, client.numbers().len()), (3, 8));
}

#[test]
fn a_topic_made_anew_is_another_topic() {
    // Scenario 82.
    let mut test = shard();
    let mut client = Client::joined(&mut test, "a");
    test.tell_topics(topics(&[("t", 7, 2)]));
    client.beat(&mut test);
    assert!(client.owned.is_empty(), "the old topic's partitions are to be given up");
    client.beat(&mut test);
    let topics: Vec<u128> = client.owned.by_topic().map(|(id, _)| id.as_u128()).collect();
    assert_eq!(topics, [7]);
}

#[test]
fn another_rack_is_another_epoch() {
    // Scenario 83.
    let mut test = shard();
    Client::joined(&mut test, "a");
    let mut picture = (*topics(&[("t", T, 6), ("u", U, 3)])).clone();
    let mut topic = picture.by_name["t"].clone();
    topic.racks = 1;
    picture.insert(topic);
    test.tell_topics(picture.into());
    assert_eq!(test.group_epoch(), 3);
}

#[test]
fn before_anybody_told_of_topics_members_are_asked_to_wait() {
    let mut test = GroupTest::with_settings(at_once());
    let ticket = test.send_beat(join_of("a"));
    let error = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
    assert_eq!(test.reply(ticket), Response::Unavailable { error });
}
