//! Subscriptions by pattern. Patterns are resolved outside; the tests stand for whoever does it.

use super::consumer_client::{Client, T, U, beat_of, join_of, settle, shard, topics};
use super::group_test::GroupTest;
use crate::coordinator::record::{ConsumerGroupRecord, Record};
use crate::coordinator::request::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, ResolvedRegex, Response, Text,
};
use crate::wire::error_code::ErrorCode;

fn regex_join_of(member_id: &str, pattern: &str) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: None,
        subscribed_topic_regex: Some(pattern.into()),
        ..join_of(member_id)
    }
}

fn resolved(patterns: &[(&str, &[&str])]) -> Option<Vec<ResolvedRegex>> {
    let resolve = |(pattern, topics): &(&str, &[&str])| ResolvedRegex {
        pattern: (*pattern).into(),
        topics: topics.iter().copied().map(Text::from).collect(),
    };
    Some(patterns.iter().map(resolve).collect())
}

/// The patterns that are to be resolved before this heartbeat goes on.
fn asked(test: &mut GroupTest, request: &ConsumerGroupHeartbeatRequest) -> Vec<Text> {
    let ticket = test.send_beat(request.clone());
    match test.reply(ticket) {
        Response::ResolveRegexes { patterns } => patterns,
        other => panic!("nothing is to be resolved: {other:?}"),
    }
}

fn beat_with(
    test: &mut GroupTest,
    request: ConsumerGroupHeartbeatRequest,
    patterns: &[(&str, &[&str])],
) -> ConsumerGroupHeartbeatResponse {
    test.beat(ConsumerGroupHeartbeatRequest {
        resolved: resolved(patterns),
        ..request
    })
}

/// A member that joined by a pattern that stands for "t".
fn joined(test: &mut GroupTest, id: &str) -> Client {
    let request = regex_join_of(id, "t.*");
    assert_eq!(asked(test, &request), ["t.*".into()]);
    let mut client = Client::new(id);
    client.hear(&beat_with(test, request, &[("t.*", &["t"])]));
    client
}

#[test]
fn a_new_pattern_is_resolved_before_its_member_is_answered() {
    // Scenario 104.
    let mut test = shard();
    let request = regex_join_of("a", "t.*");
    assert_eq!(asked(&mut test, &request), ["t.*".into()]);
    assert!(test.records.is_empty(), "nothing has changed yet");
    assert_eq!(&*test.state(), "");
    let client = joined(&mut test, "a");
    assert_eq!((client.epoch, client.numbers().len()), (2, 6));
    let member = test.member("a");
    assert_eq!(member.subscribed_topic_regex.as_deref(), Some("t.*"));
}

#[test]
fn a_pattern_that_could_not_be_resolved_stands_for_nothing_and_is_asked_for_again() {
    let mut test = shard();
    let request = regex_join_of("a", "t.*");
    let mut client = Client::new("a");
    client.hear(&beat_with(&mut test, request, &[]));
    assert!(client.owned.is_empty());
    assert_eq!(asked(&mut test, &client.request()), ["t.*".into()]);
    client.hear(&beat_with(&mut test, client.request(), &[("t.*", &["t"])]));
    assert_eq!(client.numbers().len(), 6);
}

#[test]
fn a_pattern_that_the_group_knows_is_not_resolved_again() {
    // Scenario 105.
    let mut test = shard();
    let a = joined(&mut test, "a");
    let mut b = Client::new("b");
    b.hear(&test.beat(regex_join_of("b", "t.*")));
    assert_eq!(b.epoch, 3);
    settle(&mut test, &mut [a, b]);
    assert_eq!(test.member("b").assignment[0].partitions.len(), 3);
}

#[test]
fn only_patterns_of_the_group_are_taken_over() {
    let mut test = shard();
    beat_with(
        &mut test,
        regex_join_of("a", "t.*"),
        &[("t.*", &["t"]), ("u.*", &["u"])],
    );
    let patterns = test.records.iter().filter_map(|record| match record {
        Record::ConsumerGroup {
            record: ConsumerGroupRecord::Regex { pattern, .. },
            ..
        } => Some(&**pattern),
        _ => None,
    });
    assert_eq!(patterns.collect::<Vec<_>>(), ["t.*"]);
}

#[test]
fn new_topics_are_looked_for_on_a_heartbeat_ten_seconds_later() {
    // Scenario 106.
    let mut test = shard();
    let mut client = joined(&mut test, "a");
    client.beat(&mut test);
    test.tell_topics(topics(&[("t", T, 6), ("u", U, 3), ("t2", 3, 2)]));
    test.advance_ms(10_000);
    client.beat(&mut test);
    test.advance_ms(1);
    assert_eq!(asked(&mut test, &client.request()), ["t.*".into()]);
    client.beat(&mut test);
    let response = beat_with(&mut test, client.request(), &[("t.*", &["t", "t2"])]);
    assert_eq!(response.member_epoch, 3);
    client.hear(&response);
    assert_eq!(client.owned.len(), 8);
    test.advance_ms(20_000);
    client.beat(&mut test);
}

#[test]
fn patterns_are_resolved_again_after_the_refresh_interval() {
    let mut test = shard();
    let mut client = joined(&mut test, "a");
    test.tell_topics(topics(&[("t", T, 6), ("u", U, 3)]));
    test.advance_ms(11_000);
    asked(&mut test, &client.request());
    client.hear(&beat_with(&mut test, client.request(), &[("t.*", &["t"])]));
    for _ in 0..20 {
        test.advance_ms(30_000);
        client.beat(&mut test);
    }
    test.advance_ms(1);
    assert_eq!(asked(&mut test, &client.request()), ["t.*".into()]);
    let response = beat_with(&mut test, client.request(), &[("t.*", &["t"])]);
    assert_eq!(
        (response.member_epoch, response.assignment),
        (2, None),
        "nothing else came of it"
    );
}

#[test]
fn a_pattern_given_up_is_forgotten_and_the_names_stay() {
    // Scenario 108.
    let mut test = shard();
    let request = ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(vec!["u".into()]),
        ..regex_join_of("a", "t.*")
    };
    let mut client = Client::new("a");
    client.hear(&beat_with(&mut test, request, &[("t.*", &["t"])]));
    assert_eq!(client.owned.len(), 9);
    client.hear(&test.beat(ConsumerGroupHeartbeatRequest {
        subscribed_topic_regex: Some("".into()),
        ..client.request()
    }));
    client.beat(&mut test);
    assert_eq!((client.epoch, client.owned.len()), (3, 3));
    let is_tombstone = |record: &Record| {
        matches!(
            record,
            Record::ConsumerGroup {
                record: ConsumerGroupRecord::Regex { value: None, .. },
                ..
            }
        )
    };
    assert!(test.records.iter().any(is_tombstone));
}

#[test]
fn the_last_to_leave_takes_its_pattern_along() {
    let mut test = shard();
    let client = joined(&mut test, "a");
    test.beat(beat_of("a", -1));
    drop(client);
    assert_eq!(asked(&mut test, &regex_join_of("b", "t.*")), ["t.*".into()]);
}

#[test]
fn what_a_pattern_stands_for_survives_a_reload() {
    let mut test = shard();
    let mut client = joined(&mut test, "a");
    let mut test = test.restarted();
    client.beat(&mut test);
    let mut b = Client::new("b");
    b.hear(&test.beat(regex_join_of("b", "t.*")));
    assert_eq!(b.epoch, 3);
}

#[test]
fn an_empty_pattern_is_none() {
    // What librdkafka says of a member without a pattern.
    let mut test = shard();
    let response = test.beat(ConsumerGroupHeartbeatRequest {
        subscribed_topic_regex: Some("".into()),
        ..join_of("a")
    });
    assert_eq!((response.error, response.member_epoch), (ErrorCode::NONE, 2));
}
