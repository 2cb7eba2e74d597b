//! OffsetCommit, OffsetFetch, OffsetDelete and DeleteGroups: what a classic group lets happen.

use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{commit_as, commit_of, commit_topic, join_as, old_join, protocols, subscription, sync_as};
use crate::coordinator::event::Event;
use crate::coordinator::input::{DeletedTopic, Input};
use crate::coordinator::record::Record;
use crate::coordinator::request::{
    JoinGroupRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetDeleteResponse, Protocol, Request, Response, Text,
};
use crate::wire::error_code::ErrorCode;

fn delete_offsets(test: &mut GroupTest, topics: &[&str]) -> OffsetDeleteResponse {
    let topics = topics.iter().map(|topic| (Text::from(*topic), vec![0]));
    let ticket = test.send(Request::OffsetDelete(OffsetDeleteRequest {
        group_id: "g".into(),
        topics: topics.collect(),
    }));
    match test.reply(ticket) {
        Response::OffsetDelete(response) => response,
        other => panic!("not the answer to a deletion: {other:?}"),
    }
}

#[test]
fn a_commit_outside_a_generation_makes_a_simple_group() {
    // 119
    let mut test = GroupTest::new();
    assert_eq!(test.commit(commit_of(5)), [ErrorCode::NONE]);
    assert_eq!(test.fetch("t"), 5);
    assert_eq!(&*test.state(), "Empty");
    assert!(
        !test
            .records
            .iter()
            .any(|record| matches!(record, Record::GroupMetadata { .. }))
    );
    assert!(test.events.contains(&Event::OffsetsCommitted { count: 1 }));
    let mut test = test.restarted();
    assert_eq!(test.fetch("t"), 5);
}

#[test]
fn a_commit_in_a_generation_of_an_unknown_group_is_refused_as_the_version_allows() {
    // 119
    let mut test = GroupTest::new();
    let id = "m".into();
    assert_eq!(test.commit(commit_as(&id, 5, 1)), [ErrorCode::GROUP_ID_NOT_FOUND]);
    let old = OffsetCommitRequest {
        knows_member_epochs: false,
        ..commit_as(&id, 5, 1)
    };
    assert_eq!(test.commit(old), [ErrorCode::ILLEGAL_GENERATION]);
    assert_eq!(test.records, []);
}

#[test]
fn the_group_without_a_name_may_have_offsets() {
    // 119
    let mut test = GroupTest::new();
    let nameless = OffsetCommitRequest {
        group_id: "".into(),
        ..commit_of(5)
    };
    assert_eq!(test.commit(nameless), [ErrorCode::NONE]);
}

#[test]
fn only_members_commit_while_there_are_any() {
    // 120
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    assert_eq!(test.commit(commit_of(1)), [ErrorCode::UNKNOWN_MEMBER_ID]);
    assert_eq!(
        test.commit(commit_as(&"m".into(), 1, 1)),
        [ErrorCode::UNKNOWN_MEMBER_ID]
    );
    assert_eq!(test.commit(commit_as(&ids[0], 0, 1)), [ErrorCode::ILLEGAL_GENERATION]);
    assert_eq!(test.commit(commit_as(&ids[0], -1, 1)), [ErrorCode::ILLEGAL_GENERATION]);
    assert_eq!(test.commit(commit_as(&ids[0], 1, 1)), [ErrorCode::NONE]);
}

#[test]
fn anybody_commits_outside_a_generation_while_the_group_is_empty() {
    // 120
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    test.leave(&[(&ids[0], None)]);
    assert_eq!(test.commit(commit_as(&"ghost".into(), -1, 7)), [ErrorCode::NONE]);
    assert_eq!(test.fetch("t"), 7);
    assert_eq!(test.commit(commit_as(&"".into(), 0, 8)), [ErrorCode::UNKNOWN_MEMBER_ID]);
    assert_eq!(
        test.commit(commit_as(&"ghost".into(), 1, 8)),
        [ErrorCode::UNKNOWN_MEMBER_ID]
    );
}

#[test]
fn members_commit_while_they_give_up_partitions_but_not_while_the_assignment_is_awaited() {
    // 121
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    test.join(join_as(&ids[0]));
    assert_eq!(&*test.state(), "PreparingRebalance");
    assert_eq!(test.commit(commit_as(&ids[1], 1, 5)), [ErrorCode::NONE]);
    assert_eq!(test.commit(commit_as(&ids[1], 2, 5)), [ErrorCode::ILLEGAL_GENERATION]);
    test.join(join_as(&ids[1]));
    assert_eq!(&*test.state(), "CompletingRebalance");
    assert_eq!(
        test.commit(commit_as(&ids[1], 2, 6)),
        [ErrorCode::REBALANCE_IN_PROGRESS]
    );
    assert_eq!(test.fetch("t"), 5);
}

#[test]
fn metadata_that_is_too_long_fails_its_own_partition() {
    // 122
    let mut test = GroupTest::new();
    let mut request = commit_of(1);
    request.topics = ["a", "b", "c", "d"].map(|topic| commit_topic(topic, 1)).into();
    // Two UTF-16 units each.
    request.topics[0].partitions[0].metadata = "\u{1f600}".repeat(2_048).into();
    request.topics[1].partitions[0].metadata = "\u{1f600}".repeat(2_049).into();
    request.topics[2].partitions[0].metadata = "x".repeat(4_096).into();
    request.topics[3].partitions[0].metadata = "x".repeat(4_097).into();
    let (fine, too_large) = (ErrorCode::NONE, ErrorCode::OFFSET_METADATA_TOO_LARGE);
    assert_eq!(test.commit(request), [fine, too_large, fine, too_large]);
    assert_eq!(test.fetch_all(), 2);
    let counted = |event: &&Event| matches!(event, Event::OffsetsCommitted { .. });
    let counted: Vec<&Event> = test.events.iter().filter(counted).collect();
    assert_eq!(
        counted,
        [&Event::OffsetsCommitted { count: 2 }],
        "what was refused is not counted"
    );
}

#[test]
fn an_instance_id_alone_does_not_keep_anybody_from_committing_into_an_empty_group() {
    let mut test = GroupTest::new();
    let assigned = OffsetCommitRequest {
        group_instance_id: Some("x".into()),
        ..commit_of(5)
    };
    assert_eq!(
        test.commit(assigned.clone()),
        [ErrorCode::NONE],
        "a group that nobody was ever in"
    );
    let ids = test.stable_group(1);
    test.leave(&[(&ids[0], None)]);
    assert_eq!(test.commit(assigned), [ErrorCode::NONE]);
}

#[test]
fn an_administrator_is_refused_in_every_state_of_a_group_with_members_and_changes_nothing() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    test.commit(commit_as(&ids[0], 1, 5));
    let mut alter = commit_of(0);
    alter.topics.push(commit_topic("u", 0));
    let refused = [ErrorCode::UNKNOWN_MEMBER_ID; 2];
    assert_eq!(
        (&*test.state(), test.commit(alter.clone())),
        ("Stable", refused.to_vec())
    );
    test.join(join_as(&ids[0]));
    assert_eq!(
        (&*test.state(), test.commit(alter.clone())),
        ("PreparingRebalance", refused.to_vec())
    );
    test.join(join_as(&ids[1]));
    assert_eq!(
        (&*test.state(), test.commit(alter)),
        ("CompletingRebalance", refused.to_vec())
    );
    assert_eq!((test.fetch("t"), test.fetch("u")), (5, -1));
}

/// Several readers of one process commit for each other.
#[test]
fn a_member_may_commit_what_another_has() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    for (offset, id) in (1..).zip(&ids) {
        assert_eq!(test.commit(commit_as(id, 1, offset)), [ErrorCode::NONE]);
    }
    assert_eq!(test.fetch("t"), 2);
}

#[test]
fn an_unknown_group_has_no_offsets_and_that_is_no_error() {
    // 125
    let mut test = GroupTest::new();
    assert_eq!(test.fetch("t"), -1);
    assert_eq!(test.fetch_all(), 0);
    assert_eq!(test.records, []);
}

/// A Stable group of one member that is subscribed to these topics.
fn subscribed(test: &mut GroupTest, topics: &[&str]) -> Text {
    let protocol = Protocol {
        name: "range".into(),
        metadata: subscription(topics),
    };
    let request = JoinGroupRequest {
        protocols: vec![protocol],
        ..old_join()
    };
    test.form(vec![request]).remove(0)
}

#[test]
fn offsets_of_subscribed_topics_cannot_be_deleted_others_can() {
    // 130
    let mut test = GroupTest::new();
    let mut request = commit_of(1);
    request.topics = vec![commit_topic("t", 1), commit_topic("old", 1)];
    test.commit(request);
    subscribed(&mut test, &["t"]);
    let response = delete_offsets(&mut test, &["t", "old", "never"]);
    assert_eq!(response.error, ErrorCode::NONE);
    assert_eq!(
        response.topics,
        [
            ("t".into(), vec![(0, ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC)]),
            ("old".into(), vec![(0, ErrorCode::NONE)]),
            ("never".into(), vec![(0, ErrorCode::NONE)]),
        ]
    );
    assert_eq!((test.fetch("t"), test.fetch("old")), (1, -1));
    assert!(test.events.contains(&Event::OffsetsDeleted { count: 1 }));
}

#[test]
fn a_new_subscription_counts_from_the_moment_the_generation_begins() {
    let mut test = GroupTest::new();
    let id = subscribed(&mut test, &["t"]);
    let mut request = commit_as(&id, 1, 1);
    request.topics = vec![commit_topic("t", 1), commit_topic("u", 1)];
    test.commit(request);
    let protocol = Protocol {
        name: "range".into(),
        metadata: subscription(&["u"]),
    };
    test.join(JoinGroupRequest {
        protocols: vec![protocol],
        ..join_as(&id)
    });
    assert_eq!(&*test.state(), "CompletingRebalance");
    let response = delete_offsets(&mut test, &["t", "u"]);
    let errors = [ErrorCode::NONE, ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC];
    assert_eq!(
        response
            .topics
            .iter()
            .map(|(_, partitions)| partitions[0].1)
            .collect::<Vec<_>>(),
        errors
    );
}

#[test]
fn before_its_first_generation_a_group_of_consumers_counts_as_subscribed_to_everything() {
    let mut test = GroupTest::new();
    test.commit(commit_of(1));
    test.join(old_join());
    assert_eq!(&*test.state(), "PreparingRebalance");
    let response = delete_offsets(&mut test, &["t"]);
    assert_eq!(response.topics[0].1, [(0, ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC)]);
    assert_eq!(test.fetch("t"), 1);
}

#[test]
fn offsets_of_a_group_of_another_type_cannot_be_deleted_while_it_has_members() {
    // 130
    let mut test = GroupTest::new();
    let connect = JoinGroupRequest {
        protocol_type: "connect".into(),
        protocols: protocols(&["sessioned"]),
        ..old_join()
    };
    test.join(connect);
    assert_eq!(delete_offsets(&mut test, &["t"]).error, ErrorCode::NON_EMPTY_GROUP);
}

#[test]
fn offsets_of_an_empty_group_can_be_deleted_and_those_of_an_unknown_group_cannot() {
    // 130
    let mut test = GroupTest::new();
    assert_eq!(delete_offsets(&mut test, &["t"]).error, ErrorCode::GROUP_ID_NOT_FOUND);
    test.commit(commit_of(1));
    let response = delete_offsets(&mut test, &["t"]);
    assert_eq!((response.error, test.fetch("t")), (ErrorCode::NONE, -1));
    assert_eq!(&*test.state(), "Empty");
}

#[test]
fn an_empty_group_is_deleted_with_all_its_offsets() {
    // 134
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    test.commit(commit_as(&ids[0], 1, 5));
    assert_eq!(test.delete_group(), ErrorCode::NON_EMPTY_GROUP);
    test.leave(&[(&ids[0], None)]);
    assert_eq!(test.delete_group(), ErrorCode::NONE);
    assert_eq!(test.last_metadata(), None);
    assert_eq!((test.fetch("t"), &*test.state()), (-1, ""));
    assert_eq!(test.delete_group(), ErrorCode::GROUP_ID_NOT_FOUND);
    assert!(test.events.contains(&Event::GroupDeleted { group_id: "g".into() }));
    let mut test = test.restarted();
    assert_eq!((test.fetch("t"), &*test.state()), (-1, ""));
}

#[test]
fn ids_that_were_handed_out_go_with_the_deleted_group() {
    let mut test = GroupTest::new();
    let id = test.member_id();
    assert_eq!(test.delete_group(), ErrorCode::NONE);
    let ticket = test.join(join_as(&id));
    assert_eq!(test.join_reply(ticket).error, ErrorCode::UNKNOWN_MEMBER_ID);
    test.member_id();
    test.advance_ms(9_999);
    assert_eq!(
        test.view().groups[0].pending_members,
        1,
        "the timer of the first id is gone"
    );
}

#[test]
fn the_offsets_of_a_deleted_topic_go_from_every_group() {
    // 135
    let mut test = GroupTest::new();
    let id = uuid::Uuid::from_u128(1);
    for (group_id, topic_id) in [("g", id), ("h", uuid::Uuid::nil()), ("i", uuid::Uuid::from_u128(2))] {
        let mut request = OffsetCommitRequest {
            group_id: group_id.into(),
            ..commit_of(1)
        };
        request.topics[0].topic_id = topic_id;
        test.commit(request);
    }
    test.input(Input::TopicsDeleted(vec![DeletedTopic { name: "t".into(), id }]));
    let left: Vec<usize> = test.view().groups.iter().map(|group| group.offsets).collect();
    assert_eq!(
        left,
        [0, 0, 1],
        "the third had committed to a topic of the same name created later"
    );
    assert!(test.events.contains(&Event::OffsetsDeleted { count: 2 }));
}

#[test]
fn commits_between_the_assignment_and_the_next_round_belong_to_their_generation() {
    let mut test = GroupTest::new();
    let ticket = test.join(old_join());
    test.advance_ms(INITIAL_DELAY_MS);
    let id = test.joined(ticket).member_id;
    assert_eq!(test.commit(commit_as(&id, 1, 1)), [ErrorCode::REBALANCE_IN_PROGRESS]);
    test.sync(sync_as(&id, 1));
    assert_eq!(test.commit(commit_as(&id, 1, 1)), [ErrorCode::NONE]);
}
