//! The offsets of a consumer group.

use super::consumer_client::{Client, beat_of, join_of, shard};
use super::group_test::GroupTest;
use super::requests::{commit_as, commit_of, commit_topic, fetch_of, offset_record};
use crate::coordinator::request::{OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest, Request, Response};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

const RETENTION_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

fn fetch_error(test: &mut GroupTest, member_id: Option<&str>, member_epoch: i32) -> ErrorCode {
    let request = OffsetFetchRequest {
        member_id: member_id.map(Into::into),
        member_epoch,
        ..fetch_of("t")
    };
    match test.call(Request::OffsetFetch(request)) {
        Response::OffsetFetch(response) => response.error,
        other => panic!("not the answer to a fetch: {other:?}"),
    }
}

#[test]
fn a_member_commits_at_its_epoch() {
    // Scenario 123.
    let mut test = shard();
    let a = Client::joined(&mut test, "a");
    assert_eq!(test.commit(commit_as(&a.id, 2, 5)), [ErrorCode::NONE]);
    assert_eq!(test.fetch("t"), 5);
    assert_eq!(test.commit(commit_as(&a.id, 3, 6)), [ErrorCode::STALE_MEMBER_EPOCH]);
    assert_eq!(
        test.commit(commit_as(&"b".into(), 2, 6)),
        [ErrorCode::UNKNOWN_MEMBER_ID]
    );
    assert_eq!(test.commit(commit_of(6)), [ErrorCode::UNKNOWN_MEMBER_ID]);
    let old = OffsetCommitRequest {
        knows_member_epochs: false,
        ..commit_as(&a.id, 2, 6)
    };
    assert_eq!(test.commit(old), [ErrorCode::UNSUPPORTED_VERSION]);
}

#[test]
fn a_member_commits_at_an_older_epoch_what_it_has_had_since_then() {
    // Scenario 123.
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    let mut b = Client::joined(&mut test, "b");
    a.beat(&mut test);
    a.beat(&mut test);
    b.beat(&mut test);
    assert_eq!((a.epoch, b.epoch), (3, 3));
    let commit = |client: &Client, epoch: i32| {
        let mut request = commit_as(&client.id, epoch, 7);
        request.topics[0].partitions[0].partition = client.numbers()[0];
        request
    };
    assert_eq!(test.commit(commit(&a, 2)), [ErrorCode::NONE]);
    assert_eq!(
        test.commit(commit(&b, 2)),
        [ErrorCode::STALE_MEMBER_EPOCH],
        "it has it since 3"
    );
    let mut both = commit(&a, 2);
    both.topics.push(commit_topic("u", 1));
    let stale = ErrorCode::STALE_MEMBER_EPOCH;
    assert_eq!(
        test.commit(both),
        [stale, stale],
        "one that is not its own fails the whole request"
    );
}

#[test]
fn a_fetch_names_its_member_rightly_or_not_at_all() {
    // Scenario 124.
    let mut test = shard();
    Client::joined(&mut test, "a");
    assert_eq!(fetch_error(&mut test, None, -1), ErrorCode::NONE);
    assert_eq!(fetch_error(&mut test, Some("a"), 2), ErrorCode::NONE);
    assert_eq!(fetch_error(&mut test, Some("a"), 1), ErrorCode::STALE_MEMBER_EPOCH);
    assert_eq!(fetch_error(&mut test, Some("b"), 2), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(fetch_error(&mut test, None, 2), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn anybody_commits_while_nobody_is_in_the_group() {
    let mut test = shard();
    Client::joined(&mut test, "a");
    test.beat(beat_of("a", -1));
    assert_eq!(test.commit(commit_of(4)), [ErrorCode::NONE]);
    assert_eq!(test.fetch("t"), 4);
}

#[test]
fn offsets_of_subscribed_topics_are_not_deleted() {
    // Scenario 130.
    let mut test = shard();
    let a = Client::joined(&mut test, "a");
    test.commit(commit_as(&a.id, 2, 5));
    let request = OffsetDeleteRequest {
        group_id: "g".into(),
        topics: vec![("t".into(), vec![0]), ("u".into(), vec![0])],
    };
    match test.call(Request::OffsetDelete(request)) {
        Response::OffsetDelete(response) => {
            assert_eq!(response.error, ErrorCode::NONE);
            let errors: Vec<ErrorCode> = response.topics.iter().map(|(_, partitions)| partitions[0].1).collect();
            assert_eq!(errors, [ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode::NONE]);
        }
        other => panic!("not the answer to a deletion: {other:?}"),
    }
}

#[test]
fn only_an_empty_group_is_deleted_with_all_it_has() {
    // Scenario 134.
    let mut test = shard();
    let a = Client::joined(&mut test, "a");
    test.commit(commit_as(&a.id, 2, 5));
    assert_eq!(test.delete_group(), ErrorCode::NON_EMPTY_GROUP);
    test.beat(beat_of("a", -1));
    assert_eq!(test.delete_group(), ErrorCode::NONE);
    assert_eq!((test.fetch_all(), &*test.state()), (0, ""));
    assert_eq!(test.delete_group(), ErrorCode::GROUP_ID_NOT_FOUND);
    assert!(test.restarted().view().groups.is_empty());
}

#[test]
fn offsets_expire_by_their_commit_unless_the_topic_is_subscribed() {
    // Scenario 131.
    let now_ms = GroupTest::new().wall_ms();
    let records = [offset_record("t", 1, now_ms), offset_record("u", 1, now_ms)];
    let mut test = GroupTest::loaded_from(Settings::default(), &records);
    test.tell_topics(super::consumer_client::topics(&[("t", 1, 6), ("u", 2, 3)]));
    let join = test.send_beat(join_of("a"));
    test.advance_ms(100);
    assert!(test.is_answered(join));
    let mut passed_ms = 0;
    while passed_ms < RETENTION_MS + 1_200_000 {
        test.advance_ms(40_000);
        test.beat(beat_of("a", 2));
        passed_ms += 40_000;
    }
    assert_eq!((test.fetch("t"), test.fetch("u")), (1, -1));
    test.beat(beat_of("a", -1));
    test.advance_ms(1_200_000);
    assert_eq!(&*test.state(), "", "with its last offset an empty group goes");
}
