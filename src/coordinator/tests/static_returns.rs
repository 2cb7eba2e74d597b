//! Static members whose processes come back: late, twice, changed, after everything was lost.

use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{
    REBALANCE_MS, SESSION_MS, commit_as, join_as, old_join, protocols, static_join, subscription, sync_as,
};
use crate::coordinator::request::{HeartbeatRequest, JoinGroupRequest, OffsetCommitRequest, Protocol, Text};
use crate::wire::error_code::ErrorCode;

fn heartbeat_of(test: &mut GroupTest, member_id: &Text, instance_id: &str, generation_id: i32) -> ErrorCode {
    test.heartbeat_of(HeartbeatRequest {
        group_id: "g".into(),
        generation_id,
        member_id: member_id.clone(),
        group_instance_id: Some(instance_id.into()),
    })
}

/// A join of a static member that has its id.
fn rejoin_as(member_id: &Text, instance_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        member_id: member_id.clone(),
        ..static_join(instance_id)
    }
}

#[test]
fn an_abandoned_join_that_arrives_late_is_fenced_and_the_new_process_lives() {
    let mut test = GroupTest::new();
    let ids = test.form(vec![static_join("i0"), old_join()]);
    let parked = test.join(rejoin_as(&ids[0], "i0"));
    let returned = test.join(static_join("i0"));
    let fenced = ErrorCode::FENCED_INSTANCE_ID;
    assert_eq!(test.join_reply(parked).error, fenced, "at once");
    let late = test.join(rejoin_as(&ids[0], "i0"));
    assert_eq!(test.join_reply(late).error, fenced);
    assert!(!test.is_answered(returned), "the live one waits on");
    test.join(join_as(&ids[1]));
    let new_id = test.joined(returned).member_id;
    test.sync_all(&[new_id.clone(), ids[1].clone()], 2);

    let late = test.join(rejoin_as(&ids[0], "i0"));
    assert_eq!(test.join_reply(late).error, fenced);
    assert_eq!(heartbeat_of(&mut test, &ids[0], "i0", 2), fenced);
    let commit = OffsetCommitRequest {
        group_instance_id: Some("i0".into()),
        ..commit_as(&ids[0], 2, 1)
    };
    assert_eq!(test.commit(commit), [fenced]);
    let described: Vec<Text> = test
        .describe()
        .members
        .into_iter()
        .map(|member| member.member_id)
        .collect();
    assert_eq!(described, [new_id.clone(), ids[1].clone()]);
    assert_eq!(heartbeat_of(&mut test, &new_id, "i0", 2), ErrorCode::NONE);
}

#[test]
fn a_silent_static_leader_stays_with_what_it_said_and_somebody_else_leads() {
    let mut test = GroupTest::new();
    let ids = test.form(vec![static_join("i"), old_join()]);
    let newcomer = test.join(old_join());
    let rejoined = test.join(join_as(&ids[1]));
    for _ in 0..REBALANCE_MS / 5_000 {
        assert!(!test.is_answered(rejoined));
        assert_eq!(
            heartbeat_of(&mut test, &ids[0], "i", 1),
            ErrorCode::REBALANCE_IN_PROGRESS
        );
        test.advance_ms(5_000);
    }
    let joined = test.joined(rejoined);
    assert_eq!((joined.generation_id, &joined.leader), (2, &ids[1]));
    assert_eq!(test.joined(newcomer).leader, ids[1]);
    let of_silent = joined.members.iter().find(|member| member.member_id == ids[0]);
    let of_silent = of_silent.expect("it is still a member");
    assert_eq!(of_silent.metadata, protocols(&["range"])[0].metadata);
    assert_eq!(of_silent.group_instance_id.as_deref(), Some("i"));
}

#[test]
fn a_returning_member_is_timed_as_it_asks_now_and_shown_by_the_client_of_its_first_join() {
    for restarts in [false, true] {
        let mut test = GroupTest::new();
        let was = JoinGroupRequest {
            client_id: "c1".into(),
            session_timeout_ms: 30_000,
            ..static_join("i")
        };
        test.form(vec![was, static_join("other")]);
        let is = JoinGroupRequest {
            client_id: "c2".into(),
            client_host: "/10.0.0.2".into(),
            session_timeout_ms: 6_000,
            ..static_join("i")
        };
        let returned = test.join(is);
        let id = test.joined(returned).member_id;
        if restarts {
            test = test.restarted();
        }
        let member = test.describe().members.remove(0);
        // As at brokers.
        assert_eq!((&*member.client_id, &*member.client_host), ("c1", "/10.0.0.1"));
        test.advance_ms(5_999);
        assert_eq!(&*test.state(), "Stable");
        test.advance_ms(1);
        assert_eq!(&*test.state(), "PreparingRebalance");
        assert_eq!(heartbeat_of(&mut test, &id, "i", 1), ErrorCode::UNKNOWN_MEMBER_ID);
    }
}

#[test]
fn a_static_member_whose_session_ended_comes_back_as_a_new_one() {
    for restarts in [false, true] {
        let mut test = GroupTest::new();
        let ids = test.form(vec![static_join("i")]);
        test.advance_ms(SESSION_MS as u64);
        assert_eq!(&*test.state(), "Empty");
        if restarts {
            test = test.restarted();
        }
        let ticket = test.join(static_join("i"));
        test.advance_ms(INITIAL_DELAY_MS);
        let joined = test.joined(ticket);
        assert_eq!((joined.members.len(), joined.generation_id), (1, 3));
        assert!(joined.member_id.starts_with("i-"), "{}", joined.member_id);
        assert_ne!(joined.member_id, ids[0]);
    }
}

#[test]
fn ids_that_are_made_right_after_a_load_are_ids_of_their_own() {
    let mut test = GroupTest::new();
    let ids = test.form(vec![static_join("i"), static_join("j")]);
    let mut test = test.restarted();
    let mut made = vec![ids[0].clone()];
    for _ in 0..2 {
        let returned = test.join(static_join("i"));
        let id = test.joined(returned).member_id;
        assert!(!made.contains(&id), "{id} again");
        made.push(id);
    }
    assert_eq!(test.describe().members.len(), 2);
}

#[test]
fn a_static_member_may_return_as_often_as_it_likes() {
    let mut test = GroupTest::new();
    let ids = test.form(vec![static_join("i"), static_join("j")]);
    for _ in 0..50 {
        let returned = test.join(static_join("i"));
        let joined = test.joined(returned);
        assert_eq!(joined.generation_id, 1);
        let sync = test.sync(sync_as(&joined.member_id, 1));
        assert_eq!(test.sync_reply(sync).assignment, "a0");
        assert_eq!(heartbeat_of(&mut test, &ids[1], "j", 1), ErrorCode::NONE);
    }
    assert_eq!(test.view().groups[0].members.len(), 2);
}

/// Kafka rebalances for a return only if it changes the protocol that the group has.
#[test]
fn what_a_returning_member_subscribes_to_is_told_to_the_leader_of_the_next_round() {
    let mut test = GroupTest::new();
    let ids = test.form(vec![old_join(), static_join("i")]);
    let metadata = subscription(&["t", "u"]);
    let returned = test.join(JoinGroupRequest {
        protocols: vec![Protocol {
            name: "range".into(),
            metadata: metadata.clone(),
        }],
        ..static_join("i")
    });
    let id = test.joined(returned).member_id;
    assert_eq!((&*test.state(), test.generation_id()), ("Stable", 1));
    let mut test = test.restarted();
    let leader = test.join(join_as(&ids[0]));
    let follower = test.join(JoinGroupRequest {
        protocols: vec![Protocol {
            name: "range".into(),
            metadata: metadata.clone(),
        }],
        ..rejoin_as(&id, "i")
    });
    assert_eq!(test.joined(follower).generation_id, 2);
    assert_eq!(test.joined(leader).members[1].metadata, metadata);
}
