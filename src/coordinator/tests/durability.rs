//! Nobody is told what a crash could still take back, and every request is answered when the shard ends.

use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{commit_as, commit_of, fetch_of, first_join, join_as, old_join, sync_as};
use crate::coordinator::input::{Input, Lsn};
use crate::coordinator::request::{HeartbeatRequest, Request, Response};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

#[test]
fn a_commit_is_answered_when_it_is_durable() {
    let mut test = GroupTest::new();
    test.fetch("t");
    test.store_is_prompt = false;
    let commit = test.send(Request::OffsetCommit(commit_of(1)));
    test.advance_ms(2_000);
    assert!(!test.is_answered(commit));
    test.sync_store();
    assert!(test.is_answered(commit));
}

#[test]
fn reads_and_heartbeats_wait_for_the_writes_that_they_could_have_seen() {
    // 148
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    test.store_is_prompt = false;
    let commit = test.send(Request::OffsetCommit(commit_as(&ids[0], 1, 5)));
    let later = [
        Request::OffsetFetch(fetch_of("t")),
        Request::Heartbeat(HeartbeatRequest {
            group_id: "g".into(),
            generation_id: 1,
            member_id: ids[0].clone(),
            group_instance_id: None,
        }),
        Request::DescribeGroup { group_id: "g".into() },
    ]
    .map(|request| test.send(request));
    assert!(later.iter().all(|ticket| !test.is_answered(*ticket)));
    assert!(!test.is_answered(commit));
    test.sync_store();
    assert!(later.iter().all(|ticket| test.is_answered(*ticket)));
    assert_eq!(test.fetch("t"), 5);
}

#[test]
fn nobody_waits_for_the_store_for_longer_than_the_commit_timeout() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    test.commit(commit_as(&ids[0], 1, 1));
    test.store_is_prompt = false;
    let commit = test.send(Request::OffsetCommit(commit_as(&ids[0], 1, 2)));
    test.advance_ms(2_000);
    let fetch = test.send(Request::OffsetFetch(fetch_of("t")));
    test.advance_ms(2_999);
    assert!(!test.is_answered(commit));
    test.advance_ms(1);
    let error = ErrorCode::COORDINATOR_NOT_AVAILABLE;
    assert_eq!(test.reply(commit), Response::Unavailable { error });
    assert!(!test.is_answered(fetch), "it has its own time");
    test.advance_ms(2_000);
    assert_eq!(
        test.reply(fetch),
        Response::Unavailable { error },
        "and never hears that there is no offset"
    );
    // It is written after all, and once.
    test.store_is_prompt = true;
    test.sync_store();
    assert_eq!(test.fetch("t"), 2);
    assert_eq!(test.commit(commit_as(&ids[0], 1, 3)), [ErrorCode::NONE]);
    assert_eq!((test.fetch("t"), test.restarted().fetch("t")), (3, 3));
}

#[test]
fn a_join_phase_may_take_longer_than_anybody_waits_for_the_store() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let parked = test.join(join_as(&ids[0]));
    for _ in 0..4 {
        test.advance_ms(5_000);
        test.heartbeat(&ids[1], 1);
    }
    assert!(!test.is_answered(parked), "it waits for the other, not for the store");
    test.join(join_as(&ids[1]));
    assert_eq!(test.joined(parked).generation_id, 2);
}

#[test]
fn a_reply_waits_for_its_own_batch_alone() {
    let mut test = GroupTest::new();
    test.fetch("t");
    test.store_is_prompt = false;
    let first = test.send(Request::OffsetCommit(commit_of(1)));
    let lsn = test.appended();
    let second = test.send(Request::OffsetCommit(commit_of(2)));
    assert_eq!(test.appended(), Lsn(lsn.0 + 1));
    test.input(Input::Durable(lsn));
    assert!(test.is_answered(first));
    assert!(!test.is_answered(second));
    test.sync_store();
    assert!(test.is_answered(second));
}

#[test]
fn the_view_for_people_does_not_wait_for_the_store() {
    let mut test = GroupTest::new();
    test.fetch("t");
    test.store_is_prompt = false;
    test.send(Request::OffsetCommit(commit_of(1)));
    assert_eq!(test.view().groups[0].offsets, 1);
}

#[test]
fn a_new_group_is_recorded_before_its_first_id_is_handed_out() {
    let mut test = GroupTest::new();
    test.fetch("t");
    test.store_is_prompt = false;
    let ticket = test.join(first_join());
    assert!(!test.is_answered(ticket));
    let written = test.last_metadata().expect("a value");
    assert_eq!(
        (written.generation, &*written.protocol_type, written.members.len()),
        (0, "", 0)
    );
    test.sync_store();
    assert_eq!(test.join_reply(ticket).error, ErrorCode::MEMBER_ID_REQUIRED);
}

#[test]
fn a_generation_is_recorded_with_the_leaders_assignment_and_not_before() {
    let mut test = GroupTest::new();
    let ticket = test.join(old_join());
    test.advance_ms(INITIAL_DELAY_MS);
    let id = test.joined(ticket).member_id;
    assert_eq!(test.last_metadata().expect("a value").generation, 0);
    test.sync(sync_as(&id, 1));
    let written = test.last_metadata().expect("a value");
    assert_eq!((written.generation, written.leader.as_ref()), (1, Some(&id)));
    assert_eq!(written.protocol.as_deref(), Some("range"));
    assert_eq!(written.current_state_timestamp_ms, test.wall_ms());
}

#[test]
fn when_the_shard_ends_every_parked_and_held_request_is_answered() {
    // 27, 51, 147, 149
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let parked_join = test.join(join_as(&ids[0]));
    test.store_is_prompt = false;
    test.upstream = None;
    let held = test.send(Request::OffsetCommit(commit_as(&ids[0], 1, 5)));
    let mut other = fetch_of("t");
    other.group_id = "h".into();
    let parked_at_the_gate = test.send(Request::OffsetFetch(other));
    let answers = test.unload(ErrorCode::NOT_COORDINATOR);
    let tickets: Vec<_> = answers.keys().copied().collect();
    assert_eq!(tickets, [parked_join, held, parked_at_the_gate]);
    for answer in answers.into_values() {
        let error = ErrorCode::NOT_COORDINATOR;
        assert_eq!(answer, Response::Unavailable { error });
    }
}

#[test]
fn when_the_shard_ends_parked_and_held_syncs_are_answered() {
    // 51
    let mut test = GroupTest::new();
    let tickets = [test.join(old_join()), test.join(old_join()), test.join(old_join())];
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let ids = tickets.map(|ticket| test.joined(ticket).member_id);
    test.store_is_prompt = false;
    let parked = [test.sync(sync_as(&ids[1], 1)), test.sync(sync_as(&ids[2], 1))];
    let leader = test.sync(sync_as(&ids[0], 1));
    let answers = test.unload(ErrorCode::COORDINATOR_NOT_AVAILABLE);
    let tickets: Vec<_> = answers.keys().copied().collect();
    assert_eq!(tickets, [parked[0], parked[1], leader]);
}

#[test]
fn a_write_that_failed_is_gone_after_the_reload_and_can_be_tried_again() {
    // 147
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    let before = test.records.clone();
    test.store_is_prompt = false;
    test.send(Request::OffsetCommit(commit_as(&ids[0], 1, 5)));
    let mut test = GroupTest::loaded_from(Settings::default(), &before);
    assert_eq!(test.fetch("t"), -1);
    assert_eq!(test.commit(commit_as(&ids[0], 1, 5)), [ErrorCode::NONE]);
    assert_eq!(test.fetch("t"), 5);
}
