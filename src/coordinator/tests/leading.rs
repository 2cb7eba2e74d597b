//! What the members of a classic group agree on, who leads it, and what the leader is told and tells.

use bytes::Bytes;

use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{commit_as, join_as, old_join, protocols, subscription, sync_as};
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{JoinGroupRequest, Protocol, SyncGroupRequest, Text};
use crate::wire::error_code::ErrorCode;

/// A first join of a client that prefers these protocols in this order.
fn preferring(protocol_type: &str, names: &[&str]) -> JoinGroupRequest {
    JoinGroupRequest {
        protocol_type: protocol_type.into(),
        protocols: protocols(names),
        ..old_join()
    }
}

/// A first join of a client that says this of itself.
fn saying(protocol_type: &str, metadata: Bytes) -> JoinGroupRequest {
    let name = "range".into();
    JoinGroupRequest {
        protocol_type: protocol_type.into(),
        protocols: vec![Protocol { name, metadata }],
        ..old_join()
    }
}

/// The same join of a client that has its id.
fn again(member_id: &Text, request: JoinGroupRequest) -> JoinGroupRequest {
    JoinGroupRequest {
        member_id: member_id.clone(),
        ..request
    }
}

/// A group whose members have joined and not synced; the first leads.
fn completing(test: &mut GroupTest, size: usize) -> Vec<Text> {
    let tickets: Vec<Ticket> = (0..size).map(|_| test.join(old_join())).collect();
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let joined = tickets.into_iter().map(|ticket| test.joined(ticket));
    let ids = joined.map(|joined| {
        assert_eq!(joined.generation_id, 1);
        joined.member_id
    });
    ids.collect()
}

fn assigning(request: SyncGroupRequest, assignments: &[(&Text, &'static str)]) -> SyncGroupRequest {
    let assignments = assignments
        .iter()
        .map(|(id, bytes)| ((*id).clone(), Bytes::from_static(bytes.as_bytes())));
    SyncGroupRequest {
        assignments: assignments.collect(),
        ..request
    }
}

#[test]
fn only_what_all_have_is_voted_on_and_anew_when_somebody_is_gone() {
    let mut test = GroupTest::new();
    let wishes: [&[&str]; 4] = [&["range", "rr"], &["rr", "range"], &["range", "rr"], &["rr"]];
    let tickets = wishes.map(|names| test.join(preferring("consumer", names)));
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let ids = tickets.map(|ticket| {
        let joined = test.joined(ticket);
        assert_eq!(joined.protocol_name.as_deref(), Some("rr"));
        joined.member_id
    });
    test.sync_all(&ids, 1);
    let stranger = test.join(preferring("consumer", &["sticky"]));
    assert_eq!(test.join_reply(stranger).error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);

    test.leave(&[(&ids[3], None)]);
    let tickets = [0, 1, 2].map(|at| test.join(again(&ids[at], preferring("consumer", wishes[at]))));
    for ticket in tickets {
        assert_eq!(
            test.joined(ticket).protocol_name.as_deref(),
            Some("range"),
            "two votes to one"
        );
    }
}

/// Workers of Connect, the last of an older release, that are started one after the other.
#[test]
fn workers_that_start_one_after_the_other_agree_in_one_generation_each_at_most() {
    let mut test = GroupTest::new();
    let wishes: [&[&str]; 3] = [
        &["sessioned", "compatible", "default"],
        &["sessioned", "compatible", "default"],
        &["compatible", "default"],
    ];
    let worker = |at: usize| preferring("connect", wishes[at]);
    let first = test.join(worker(0));
    test.advance_ms(1_000);
    let second = test.join(worker(1));
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let ids = [first, second].map(|ticket| {
        let joined = test.joined(ticket);
        assert_eq!(
            (joined.generation_id, joined.protocol_name.as_deref()),
            (1, Some("sessioned"))
        );
        joined.member_id
    });
    test.sync_all(&ids, 1);
    let third = test.join(worker(2));
    for (at, id) in ids.iter().enumerate() {
        assert_eq!(test.heartbeat(id, 1), ErrorCode::REBALANCE_IN_PROGRESS);
        test.join(again(id, worker(at)));
    }
    let joined = test.joined(third);
    assert_eq!(
        (joined.generation_id, joined.protocol_name.as_deref()),
        (2, Some("compatible"))
    );
}

#[test]
fn a_follower_that_sends_assignments_decides_nothing() {
    let mut test = GroupTest::new();
    let ids = completing(&mut test, 3);
    let follower = test.sync(assigning(sync_as(&ids[1], 1), &[(&ids[0], "theirs"), (&ids[1], "all")]));
    assert!(!test.is_answered(follower), "it waits for the leader");
    let leader = test.sync(assigning(sync_as(&ids[0], 1), &[(&ids[0], "a"), (&ids[1], "b")]));
    let third = test.sync(sync_as(&ids[2], 1));
    let assignments = [leader, follower, third].map(|ticket| test.sync_reply(ticket).assignment);
    assert_eq!(assignments, ["a", "b", ""]);
}

#[test]
fn a_newcomer_sends_those_who_wait_for_the_leader_back_to_join_at_once() {
    let mut test = GroupTest::new();
    let ids = completing(&mut test, 2);
    let parked = test.sync(sync_as(&ids[1], 1));
    let newcomer = test.join(old_join());
    assert_eq!(test.sync_reply(parked).error, ErrorCode::REBALANCE_IN_PROGRESS);
    // The leader comes too late with what it computed.
    let late = test.sync(assigning(sync_as(&ids[0], 1), &[(&ids[0], "a")]));
    assert_eq!(test.sync_reply(late).error, ErrorCode::REBALANCE_IN_PROGRESS);
    test.join(join_as(&ids[0]));
    test.join(join_as(&ids[1]));
    assert_eq!(test.joined(newcomer).generation_id, 2);
}

#[test]
fn a_follower_that_asks_again_finds_its_assignment_where_it_was() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    for _ in 0..3 {
        let joined = test.join(join_as(&ids[1]));
        assert_eq!(test.joined(joined).generation_id, 1);
        let sync = test.sync(sync_as(&ids[1], 1));
        assert_eq!(test.sync_reply(sync).assignment, "a1");
    }
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
}

#[test]
fn a_sync_without_a_generation_or_an_id_disturbs_nobody() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    for (id, error) in [
        (ids[0].clone(), ErrorCode::ILLEGAL_GENERATION),
        ("".into(), ErrorCode::UNKNOWN_MEMBER_ID),
    ] {
        let sync = test.sync(sync_as(&id, -1));
        assert_eq!(test.sync_reply(sync).error, error);
    }
    assert_eq!(
        (&*test.state(), test.heartbeat(&ids[0], 1)),
        ("Stable", ErrorCode::NONE)
    );
}

#[test]
fn what_a_newcomer_reads_reaches_the_leader_that_was_there_before() {
    let mut test = GroupTest::new();
    let ids = test.form(vec![saying("consumer", subscription(&["t1"]))]);
    let newcomer = test.join(saying("consumer", subscription(&["t2"])));
    let leader = test.join(again(&ids[0], saying("consumer", subscription(&["t1"]))));
    let told = test.joined(leader);
    assert_eq!(told.leader, ids[0]);
    let metadata: Vec<_> = told.members.into_iter().map(|member| member.metadata).collect();
    assert_eq!(metadata, [subscription(&["t1"]), subscription(&["t2"])]);
    assert_eq!(test.joined(newcomer).members, []);
    // And what somebody reads beside that from now on.
    test.sync_all(&[ids[0].clone(), test.joined(newcomer).member_id], 2);
    let more = subscription(&["t2", "t3"]);
    test.join(again(
        &test.joined(newcomer).member_id,
        saying("consumer", more.clone()),
    ));
    let leader = test.join(again(&ids[0], saying("consumer", subscription(&["t1"]))));
    assert_eq!(test.joined(leader).members[1].metadata, more);
}

#[test]
fn a_leader_that_rejoins_all_the_time_gets_a_round_each_time_and_harms_nothing() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    for round in 1..=100 {
        assert_eq!(
            test.commit(commit_as(&ids[0], round, i64::from(round))),
            [ErrorCode::NONE]
        );
        let joined = test.join(join_as(&ids[0]));
        assert_eq!(test.joined(joined).generation_id, round + 1);
        test.sync_all(&ids, round + 1);
    }
    let group = test.view().groups.remove(0);
    assert_eq!((group.members.len(), group.offsets, group.pending_members), (1, 1, 0));
    assert_eq!(test.fetch("t"), 100);
}

/// Whatever kind of group it is, its bytes are its own.
#[test]
fn what_members_say_and_are_told_is_shown_byte_by_byte() {
    let metadata = Bytes::from_static(b"\0\x01\0\0\0\0\xff\xff\xff\xff\0\0\0\0 and what nobody knows yet \xc3\x28");
    for protocol_type in ["consumer", "connect", "sr"] {
        let mut test = GroupTest::new();
        let ticket = test.join(saying(protocol_type, metadata.clone()));
        test.advance_ms(INITIAL_DELAY_MS);
        let id = test.joined(ticket).member_id;
        assert_eq!(test.joined(ticket).members[0].metadata, metadata);
        let assignment = "\0\0\u{1}\u{7f}é";
        test.sync(assigning(sync_as(&id, 1), &[(&id, assignment)]));
        for test in [&mut test.restarted(), &mut test] {
            let described = test.describe();
            assert_eq!(
                (&*described.state, &*described.protocol_type),
                ("Stable", protocol_type)
            );
            assert_eq!(described.members[0].metadata, metadata);
            assert_eq!(described.members[0].assignment, assignment);
            assert_eq!(&*test.list(&[], &[]).groups[0].protocol_type, protocol_type);
        }
    }
}
