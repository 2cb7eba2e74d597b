//! A group that is met for the first time: the upstream is asked before anything depends on the answer.

use super::group_test::GroupTest;
use super::requests::{commit_of, commit_topic, fetch_of, first_join, join_as, offset_record, sync_as, vacant};
use crate::coordinator::event::Event;
use crate::coordinator::input::{ImportedOffset, Input, InspectFailure, Presence, UpstreamGroup};
use crate::coordinator::record::{GroupOwnedValue, Record};
use crate::coordinator::request::{LeaveGroupRequest, OffsetDeleteRequest, Request, Response, Text};
use crate::wire::error_code::ErrorCode;

fn with_offsets(offsets: &[(&str, i64)]) -> UpstreamGroup {
    let offset = |(topic, offset): &(&str, i64)| ImportedOffset {
        topic: (*topic).into(),
        topic_id: uuid::Uuid::nil(),
        partition: 0,
        offset: *offset,
        leader_epoch: -1,
        metadata: "".into(),
    };
    UpstreamGroup {
        presence: Presence::Vacant,
        offsets: offsets.iter().map(offset).collect(),
    }
}

fn live() -> UpstreamGroup {
    UpstreamGroup {
        presence: Presence::Live {
            group_type: "consumer".into(),
            protocol_type: "consumer".into(),
            state: "Stable".into(),
        },
        offsets: Vec::new(),
    }
}

fn share() -> UpstreamGroup {
    UpstreamGroup {
        presence: Presence::OtherType {
            group_type: "share".into(),
        },
        offsets: Vec::new(),
    }
}

fn mark(since_ms: i64) -> Record {
    Record::GroupOwned {
        group_id: "g".into(),
        value: Some(GroupOwnedValue { since_ms }),
    }
}

/// One request of each kind that depends on what the upstream knows.
fn dependent_requests() -> [Request; 5] {
    [
        Request::JoinGroup(first_join()),
        Request::OffsetCommit(commit_of(1)),
        Request::OffsetFetch(fetch_of("t")),
        Request::OffsetDelete(OffsetDeleteRequest {
            group_id: "g".into(),
            topics: Vec::new(),
        }),
        Request::DeleteGroup { group_id: "g".into() },
    ]
}

/// A shard whose upstream answers when the test says so.
fn asking() -> GroupTest {
    let mut test = GroupTest::new();
    test.upstream = None;
    test
}

fn answer(test: &mut GroupTest, result: Result<UpstreamGroup, InspectFailure>) {
    test.input(Input::Inspected {
        group_id: "g".into(),
        result,
    });
}

#[test]
fn requests_wait_for_the_one_answer_of_the_upstream_and_run_in_their_order() {
    let mut test = asking();
    let commit = test.send(Request::OffsetCommit(commit_of(7)));
    let fetch = test.send(Request::OffsetFetch(fetch_of("t")));
    assert_eq!(test.inspected, ["g".into()]);
    assert!(!test.is_answered(commit) && !test.is_answered(fetch));
    answer(&mut test, Ok(vacant()));
    assert!(test.is_answered(commit));
    assert_eq!(test.fetch("t"), 7);
    assert_eq!(test.inspected, ["g".into()]);
}

#[test]
fn a_join_is_its_groups_once_the_upstream_has_left_it_to_us() {
    let mut test = asking();
    let join = test.join(first_join());
    assert!(!test.admitted.contains(&join));
    answer(&mut test, Ok(vacant()));
    assert!(test.admitted.contains(&join));
    let next = test.join(first_join());
    assert!(test.admitted.contains(&next), "at once, now that it is known");
    let mut test = asking();
    let join = test.join(first_join());
    answer(&mut test, Ok(share()));
    assert_eq!(test.reply(join), Response::NotOwned);
    assert!(!test.admitted.contains(&join));
}

#[test]
fn every_request_that_depends_on_the_upstream_asks() {
    for request in dependent_requests() {
        let mut test = asking();
        let ticket = test.send(request);
        assert_eq!(test.inspected, ["g".into()]);
        assert!(!test.is_answered(ticket));
        answer(&mut test, Ok(vacant()));
        assert!(test.is_answered(ticket));
    }
}

#[test]
fn the_upstreams_offsets_are_durable_before_the_first_fetch_is_answered() {
    let mut test = asking();
    let fetch = test.send(Request::OffsetFetch(fetch_of("t")));
    test.store_is_prompt = false;
    answer(&mut test, Ok(with_offsets(&[("t", 42), ("u", 43)])));
    assert!(!test.is_answered(fetch));
    let wall_ms = test.wall_ms();
    assert_eq!(
        test.records,
        [
            offset_record("t", 42, wall_ms),
            offset_record("u", 43, wall_ms),
            mark(wall_ms)
        ]
    );
    assert_eq!(
        test.events,
        [Event::GroupTakenOver {
            group_id: "g".into(),
            offsets: 2,
        }]
    );
    test.sync_store();
    assert!(test.is_answered(fetch));
    test.store_is_prompt = true;
    assert_eq!((test.fetch("t"), test.fetch("u")), (42, 43));
}

#[test]
fn a_parked_commit_wins_over_the_imported_offset() {
    let mut test = asking();
    test.send(Request::OffsetCommit(commit_of(7)));
    answer(&mut test, Ok(with_offsets(&[("t", 42)])));
    assert_eq!(test.fetch("t"), 7);
}

#[test]
fn a_vacant_group_leaves_no_trace_until_it_writes_something_itself() {
    let mut test = GroupTest::new();
    assert_eq!(test.fetch("t"), -1);
    assert_eq!(test.records, []);
    test.commit(commit_of(1));
    let wall_ms = test.wall_ms();
    assert_eq!(test.records, [offset_record("t", 1, wall_ms), mark(wall_ms)]);
    assert!(test.events.contains(&Event::GroupTakenOver {
        group_id: "g".into(),
        offsets: 0,
    }));
    test.advance_ms(60_000);
    test.commit(commit_of(2));
    assert_eq!(test.inspected, ["g".into()]);
    assert_eq!(test.records.len(), 3, "marked once");
}

#[test]
fn what_the_upstream_said_of_a_vacant_group_holds_for_a_second() {
    let mut test = GroupTest::new();
    test.fetch("t");
    test.advance_ms(999);
    test.fetch("t");
    assert_eq!(test.inspected.len(), 1);
    test.advance_ms(1);
    test.fetch("t");
    assert_eq!(test.inspected.len(), 2);
}

#[test]
fn a_group_with_members_at_the_upstream_is_not_taken_over() {
    let mut test = asking();
    let [join, rest @ ..] = dependent_requests().map(|request| test.send(request));
    answer(&mut test, Ok(live()));
    let reply = test.join_reply(join);
    assert_eq!(reply.error, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    for ticket in rest {
        assert_eq!(test.reply(ticket), Response::NotOwned);
    }
    assert_eq!(test.records, []);
    assert_eq!(
        test.events,
        [Event::TakeoverRefused {
            group_id: "g".into(),
            group_type: "consumer".into(),
            protocol_type: "consumer".into(),
            state: "Stable".into(),
        }]
    );
}

#[test]
fn a_commit_that_is_the_upstreams_does_not_wait_for_our_store() {
    let mut test = GroupTest::new();
    test.fetch("t");
    test.store_is_prompt = false;
    test.send(Request::OffsetCommit(commit_of(1)));
    test.upstream = Some(Ok(live()));
    let mut theirs = commit_of(2);
    theirs.group_id = "h".into();
    let ticket = test.send(Request::OffsetCommit(theirs));
    assert_eq!(test.reply(ticket), Response::NotOwned);
}

#[test]
fn a_group_with_members_at_the_upstream_is_asked_about_again_after_a_second() {
    let mut test = GroupTest::new();
    test.upstream = Some(Ok(live()));
    let error = |test: &mut GroupTest| {
        let ticket = test.join(first_join());
        test.join_reply(ticket).error
    };
    assert_eq!(error(&mut test), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    test.upstream = Some(Ok(vacant()));
    test.advance_ms(999);
    assert_eq!(error(&mut test), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    assert_eq!(test.inspected.len(), 1);
    test.advance_ms(1);
    assert_eq!(error(&mut test), ErrorCode::MEMBER_ID_REQUIRED);
}

#[test]
fn who_is_in_the_way_is_told_once_in_half_a_minute() {
    let mut test = GroupTest::new();
    test.upstream = Some(Ok(live()));
    for _ in 0..59 {
        test.join(first_join());
        test.advance_ms(1_000);
    }
    assert_eq!(test.inspected.len(), 59);
    assert_eq!(test.events.len(), 2);
}

#[test]
fn a_share_group_is_left_to_the_upstream_with_all_its_requests() {
    let mut test = asking();
    let tickets = dependent_requests().map(|request| test.send(request));
    answer(&mut test, Ok(share()));
    let member_requests = [
        Request::SyncGroup(sync_as(&"m".into(), 1)),
        Request::LeaveGroup(LeaveGroupRequest {
            group_id: "g".into(),
            members: Vec::new(),
        }),
        Request::DescribeGroup { group_id: "g".into() },
    ]
    .map(|request| test.send(request));
    for ticket in tickets.into_iter().chain(member_requests) {
        assert_eq!(test.reply(ticket), Response::NotOwned);
    }
    test.advance_ms(29_999);
    test.send(Request::OffsetFetch(fetch_of("t")));
    assert_eq!(test.inspected.len(), 1);
    test.advance_ms(1);
    test.send(Request::OffsetFetch(fetch_of("t")));
    assert_eq!(test.inspected.len(), 2);
}

#[test]
fn an_upstream_out_of_reach_is_a_retriable_error_and_asked_again_at_the_next_request() {
    let mut test = asking();
    let tickets = dependent_requests().map(|request| test.send(request));
    let reason = String::from("connection refused");
    answer(&mut test, Err(InspectFailure { reason: reason.clone() }));
    let error = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
    for ticket in tickets {
        assert_eq!(test.reply(ticket), Response::Unavailable { error });
    }
    assert_eq!(
        test.events,
        [Event::InspectFailed {
            group_id: "g".into(),
            reason,
        }]
    );
    test.send(Request::OffsetFetch(fetch_of("t")));
    assert_eq!(test.inspected.len(), 2);
}

#[test]
fn requests_of_members_never_ask() {
    let mut test = asking();
    assert_eq!(test.heartbeat(&"m".into(), 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(test.leave(&[("m", None)]), [ErrorCode::UNKNOWN_MEMBER_ID]);
    let sync = test.sync(sync_as(&"m".into(), 1));
    assert_eq!(test.sync_reply(sync).error, ErrorCode::UNKNOWN_MEMBER_ID);
    let describe = test.send(Request::DescribeGroup { group_id: "g".into() });
    assert_eq!(test.reply(describe), Response::NotOwned);
    assert_eq!(test.inspected, Vec::<Text>::new());
}

#[test]
fn a_malformed_join_does_not_ask() {
    let mut test = asking();
    let mut request = first_join();
    request.session_timeout_ms = 1;
    let ticket = test.join(request);
    assert_eq!(test.join_reply(ticket).error, ErrorCode::INVALID_SESSION_TIMEOUT);
    assert_eq!(test.inspected, Vec::<Text>::new());
}

#[test]
fn a_join_with_a_stale_id_to_a_vacant_group_makes_no_group() {
    let mut test = GroupTest::new();
    let ticket = test.join(join_as(&"stale".into()));
    assert_eq!(test.join_reply(ticket).error, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(test.records, []);
}

#[test]
fn a_deleted_group_does_not_get_the_upstreams_stale_offsets_back() {
    let mut test = GroupTest::new();
    test.upstream = Some(Ok(with_offsets(&[("t", 42)])));
    assert_eq!(test.fetch("t"), 42);
    test.advance_ms(60_000);
    assert_eq!(test.delete_group(), ErrorCode::NONE);
    assert_eq!(
        test.records.last(),
        Some(&mark(test.wall_ms())),
        "marked anew, from the deletion"
    );
    let mut test = test.restarted();
    test.upstream = Some(Ok(with_offsets(&[("t", 42)])));
    assert_eq!(test.fetch("t"), -1);
    assert_eq!(test.inspected, Vec::<Text>::new());
}

#[test]
fn an_answer_that_nobody_waits_for_changes_nothing() {
    let mut test = GroupTest::new();
    let mut request = commit_of(1);
    request.topics.push(commit_topic("u", 2));
    test.commit(request);
    let written = test.records.len();
    answer(&mut test, Ok(with_offsets(&[("v", 42)])));
    assert_eq!(test.records.len(), written);
    assert_eq!(test.fetch("v"), -1);
}
