//! External assignors: how they register, what they are told, and that they are no members.

use super::computing_client::{asking, assignor, registration, running};
use super::consumer_client::{Client, SESSION_MS, at_once, beat_of, join_of, shard, shard_with};
use crate::coordinator::event::{EpochReason, Event};
use crate::coordinator::group_patterns::GroupPatterns;
use crate::coordinator::request::{ClientAssignor, ConsumerGroupHeartbeatRequest, Request};
use crate::coordinator::settings::{ExternalAssignorRule, Settings};
use crate::wire::error_code::ErrorCode;

#[test]
fn an_external_assignor_is_no_member_and_leaves_no_record() {
    let mut test = shard();
    test.register("x");
    let poll = test.poll("x");
    assert!(!test.is_answered(poll), "it waits for something to do");
    let view = test.view();
    assert_eq!((view.groups.len(), view.externals.len()), (0, 1));
    assert!(view.externals[0].parked && view.externals[0].assignors == [assignor("lag")]);
    assert_eq!(test.list(&[], &[]).groups, []);
    assert!(test.records.is_empty(), "{:?}", test.records);
    test.advance_ms(5_000);
    let told = test.beat_reply(poll);
    assert_eq!(
        (
            told.member_epoch,
            told.should_compute_assignment,
            told.heartbeat_interval_ms
        ),
        (1, false, 5_000)
    );
    let left = test.beat(beat_of("x", -1));
    assert_eq!((left.error, left.member_epoch), (ErrorCode::NONE, -1));
    assert_eq!(test.view().externals, []);
    assert_eq!(test.beat(beat_of("x", 1)).error, ErrorCode::GROUP_ID_NOT_FOUND);
}

#[test]
fn a_silent_one_is_gone_after_its_session() {
    let mut test = shard();
    test.register("x");
    test.advance_ms(SESSION_MS - 1);
    assert_eq!(test.view().externals.len(), 1);
    test.advance_ms(1);
    assert_eq!(test.view().externals, []);
    let reason = test.events.iter().find_map(|event| match event {
        Event::ExternalAssignorGone { reason, .. } => Some(*reason),
        _ => None,
    });
    assert_eq!(reason, Some(EpochReason::SessionExpired));
}

#[test]
fn what_it_says_new_is_answered_at_once() {
    let mut test = shard();
    test.register("x");
    let first = test.poll("x");
    let news = ConsumerGroupHeartbeatRequest {
        client_assignors: Some(vec![assignor("lag"), assignor("zone")]),
        ..beat_of("x", 1)
    };
    assert!(!test.beat(news.clone()).should_compute_assignment);
    assert_eq!(
        test.beat_reply(first).error,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
        "whoever sends another has given up the one before"
    );
    let same = test.send_beat(news);
    assert!(!test.is_answered(same), "nothing is new");
    assert_eq!(test.view().externals[0].assignors.len(), 2);
}

#[test]
fn who_registered_on_another_connection_since_stays_when_the_old_one_ends() {
    let mut test = shard();
    test.register("x");
    let elsewhere = ConsumerGroupHeartbeatRequest {
        connection: 7,
        member_epoch: 1,
        ..registration("x")
    };
    let poll = test.send_beat(elsewhere);
    let gone = |connection| Request::ExternalGone {
        group_id: "g".into(),
        is_pattern: false,
        member_id: "x".into(),
        connection,
    };
    test.call(gone(0));
    assert!(!test.is_answered(poll));
    assert_eq!(test.view().externals.len(), 1);
    test.call(gone(7));
    assert_eq!(test.beat_reply(poll).error, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(test.view().externals, []);
}

#[test]
fn who_asks_with_each_heartbeat_is_heeded_and_waits_all_the_same() {
    let mut test = shard();
    test.register("x");
    let poll = test.poll("x");
    let join = test.send_beat(asking("a", "lag"));
    assert!(test.beat_reply(poll).should_compute_assignment);
    test.give_all_to(0, "x", 1);
    assert_eq!(test.beat_reply(join).member_epoch, 2);
    let asks = ConsumerGroupHeartbeatRequest {
        client_assignors: Some(vec![ClientAssignor {
            reason: 1,
            ..assignor("lag")
        }]),
        ..beat_of("x", 1)
    };
    assert!(
        test.beat(asks.clone()).should_compute_assignment,
        "it asks, and is who computes"
    );
    test.give_all_to(0, "x", 1);
    let again = test.send_beat(asks);
    assert!(!test.is_answered(again), "it would ask again at once");
    test.advance_ms(999);
    assert!(!test.is_answered(again), "one wish a second");
    test.advance_ms(1);
    assert!(test.beat_reply(again).should_compute_assignment);
}

#[test]
fn a_shard_that_was_loaded_anew_asks_it_to_register_again() {
    let mut test = shard();
    Client::joined(&mut test, "a");
    test.register("x");
    let mut test = test.restarted();
    assert_eq!(test.beat(beat_of("x", 1)).error, ErrorCode::UNKNOWN_MEMBER_ID);
    test.register("x");
}

#[test]
fn of_a_full_heartbeat_it_is_seen_that_it_is_none_of_a_member() {
    let mut test = shard();
    let full = ConsumerGroupHeartbeatRequest {
        member_epoch: 1,
        ..registration("x")
    };
    assert_eq!(test.beat(full.clone()).error, ErrorCode::UNKNOWN_MEMBER_ID);
    test.register("x");
    let poll = test.send_beat(full);
    assert!(!test.is_answered(poll));
}

#[test]
fn wrong_epochs_and_subscriptions_are_refused() {
    let mut test = shard();
    test.register("x");
    assert_eq!(test.beat(beat_of("x", 2)).error, ErrorCode::FENCED_MEMBER_EPOCH);
    let subscribes = ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(vec!["t".into()]),
        ..beat_of("x", 1)
    };
    assert_eq!(test.beat(subscribes).error, ErrorCode::INVALID_REQUEST);
    let list = |assignors| ConsumerGroupHeartbeatRequest {
        client_assignors: Some(assignors),
        ..registration("y")
    };
    let mut upside_down = assignor("lag");
    upside_down.minimum_version = 1;
    let mut long = assignor("lag");
    long.metadata = vec![0; 65_537].into();
    for assignors in [
        vec![assignor(" ")],
        vec![assignor("a"), assignor("a")],
        vec![upside_down],
        vec![long],
        (0..17).map(|number| assignor(&number.to_string())).collect(),
    ] {
        let refused = test.beat(list(assignors));
        assert_eq!(refused.error, ErrorCode::INVALID_REQUEST);
        assert!(refused.error_message.is_some());
    }
}

#[test]
fn a_group_has_so_many_and_no_more() {
    let mut test = shard();
    for number in 0..64 {
        test.register(&format!("x{number}"));
    }
    assert_eq!(test.beat(registration("y")).error, ErrorCode::GROUP_MAX_SIZE_REACHED);
    test.register("x7");
    test.beat(beat_of("x0", -1));
    test.register("y");
}

#[test]
fn they_do_not_count_for_the_groups_size_nor_hold_it_up() {
    let mut test = shard_with(Settings {
        group_consumer_max_size: 1,
        ..at_once()
    });
    test.register("x");
    Client::joined(&mut test, "a");
    assert_eq!(test.describe_consumer().members.len(), 1);
    test.beat(beat_of("a", -1));
    assert_eq!(&*test.state(), "Empty");
    assert_eq!(test.delete_group(), ErrorCode::NONE);
    let poll = test.poll("x");
    assert!(!test.is_answered(poll), "it outlives its group");
}

#[test]
fn a_parked_heartbeat_is_answered_when_the_shard_goes() {
    let mut test = shard();
    test.register("x");
    let poll = test.poll("x");
    let answers = test.unload(ErrorCode::NOT_COORDINATOR);
    assert!(answers.contains_key(&poll));
}

#[test]
fn a_stock_member_may_ask_for_what_somebody_offers() {
    let mut test = shard();
    let refused = test.beat(asking("a", "lag"));
    assert_eq!(refused.error, ErrorCode::UNSUPPORTED_ASSIGNOR);
    test.register("x");
    let joined = test.send_beat(asking("a", "lag"));
    test.beat(beat_of("x", -1));
    assert_eq!(test.beat_reply(joined).error, ErrorCode::NONE);
    // The name is known to the group now: nobody is stopped since its assignor is away.
    let full = ConsumerGroupHeartbeatRequest {
        server_assignor: Some("lag".into()),
        ..beat_of("a", test.member("a").member_epoch)
    };
    assert_eq!(test.beat(full).error, ErrorCode::NONE);
    assert_eq!(test.beat(asking("b", "lag")).error, ErrorCode::NONE);
}

#[test]
fn a_member_may_ask_for_what_another_member_runs() {
    let mut test = shard();
    test.beat(running("a", &[assignor("lag")]));
    let joined = test.send_beat(asking("b", "lag"));
    test.advance_ms(3_000);
    assert_eq!(test.beat_reply(joined).error, ErrorCode::NONE);
}

#[test]
fn a_rule_makes_a_name_known_before_anybody_offers_it() {
    let rule = ExternalAssignorRule {
        name: "lag".into(),
        groups: GroupPatterns::new(&["g".into()]),
        always: false,
    };
    let mut test = shard_with(Settings {
        external_assignors: [rule].into(),
        ..at_once()
    });
    assert_eq!(test.beat(asking("a", "lag")).error, ErrorCode::NONE);
    let elsewhere = ConsumerGroupHeartbeatRequest {
        group_id: "h".into(),
        ..asking("a", "lag")
    };
    assert_eq!(test.beat(elsewhere).error, ErrorCode::UNSUPPORTED_ASSIGNOR);
}

#[test]
fn it_may_register_for_a_classic_group() {
    let mut test = shard();
    test.stable_group(2);
    test.register("x");
    let poll = test.poll("x");
    assert!(!test.is_answered(poll));
    assert_eq!(&*test.describe().state, "Stable");
}

#[test]
fn a_member_that_unsubscribes_from_everything_stays_one() {
    let mut test = shard();
    let mut client = Client::new("a");
    client.hear(&test.beat(running("a", &[assignor("lag")])));
    let idle = ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(Vec::new()),
        client_assignors: Some(vec![assignor("lag")]),
        ..beat_of("a", client.epoch)
    };
    assert_eq!(test.beat(idle).error, ErrorCode::NONE);
    assert_eq!(test.view().externals, []);
    assert_eq!(test.describe_consumer().members.len(), 1);
}

#[test]
fn one_without_assignors_is_an_ordinary_member() {
    let mut test = shard();
    let idle = ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(Vec::new()),
        ..join_of("a")
    };
    assert_eq!(test.beat(idle).error, ErrorCode::NONE);
    assert_eq!((test.view().externals.len(), test.view().groups.len()), (0, 1));
}

#[test]
fn nothing_is_prepared_for_a_group_that_is_not_here() {
    let mut test = shard();
    let asked = test.send(Request::PrepareAssignment(super::computing_client::prepare_of("x", 1)));
    assert_eq!(test.reply(asked), crate::coordinator::request::Response::NotOwned);
    test.register("x");
    assert_eq!(test.try_prepare("x", 1).error, ErrorCode::GROUP_ID_NOT_FOUND);
    test.stable_group(1);
    assert_eq!(
        test.try_prepare("x", 1).error,
        ErrorCode::UNKNOWN_MEMBER_ID,
        "a member leads it"
    );
    for (member_id, epoch) in [("", 1), ("x", -1)] {
        assert_eq!(test.try_prepare(member_id, epoch).error, ErrorCode::INVALID_REQUEST);
    }
}
