//! JoinGroup: who is let in, and what a join of a member means.

use bytes::Bytes;

use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{SESSION_MS, first_join, join_as, old_join, protocols, static_join, subscription, sync_as};
use crate::coordinator::request::{JoinGroupRequest, Protocol, Text};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

fn error(test: &mut GroupTest, request: JoinGroupRequest) -> ErrorCode {
    let ticket = test.join(request);
    test.join_reply(ticket).error
}

#[test]
fn a_join_with_a_member_id_makes_no_group() {
    // 1
    let mut test = GroupTest::new();
    assert_eq!(error(&mut test, join_as(&"m".into())), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(test.list(&[], &[]).groups, []);
    assert_eq!(test.records, []);
}

#[test]
fn a_dynamic_member_of_an_old_client_is_added_at_once_and_leads_after_the_initial_delay() {
    // 2
    let mut test = GroupTest::new();
    let ticket = test.join(old_join());
    assert_eq!(test.view().groups[0].members.len(), 1);
    test.advance_ms(INITIAL_DELAY_MS - 1);
    assert!(!test.is_answered(ticket));
    test.advance_ms(1);
    let joined = test.joined(ticket);
    assert_eq!(joined.generation_id, 1);
    assert_eq!(joined.leader, joined.member_id);
    assert_eq!(joined.protocol_type.as_deref(), Some("consumer"));
    assert_eq!(joined.protocol_name.as_deref(), Some("range"));
    let members: Vec<&Text> = joined.members.iter().map(|member| &member.member_id).collect();
    assert_eq!(members, [&joined.member_id]);
}

#[test]
fn a_dynamic_member_gets_an_id_first_and_joins_with_it() {
    // 3
    let mut test = GroupTest::new();
    let id = test.member_id();
    assert!(id.starts_with("client-"), "{id}");
    let listed = test.list(&[], &[]).groups;
    assert_eq!((&*listed[0].group_id, &*listed[0].state), ("g", "Empty"));
    assert_eq!(test.view().groups[0].pending_members, 1);
    let ticket = test.join(join_as(&id));
    test.advance_ms(INITIAL_DELAY_MS);
    assert_eq!(test.joined(ticket).member_id, id);
    assert_eq!(test.view().groups[0].pending_members, 0);
}

#[test]
fn an_id_that_nobody_comes_back_with_is_forgotten_at_the_session_timeout() {
    // 4
    let mut test = GroupTest::new();
    let id = test.member_id();
    test.advance_ms(SESSION_MS as u64);
    assert_eq!(test.view().groups[0].pending_members, 0);
    assert_eq!(error(&mut test, join_as(&id)), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn an_id_is_good_until_just_before_the_session_timeout_but_makes_no_member() {
    // 5
    let mut test = GroupTest::new();
    let id = test.member_id();
    test.advance_ms(SESSION_MS as u64 - 1);
    assert_eq!(test.heartbeat(&id, 0), ErrorCode::UNKNOWN_MEMBER_ID);
    let ticket = test.join(join_as(&id));
    test.advance_ms(INITIAL_DELAY_MS);
    assert_eq!(test.joined(ticket).member_id, id);
}

#[test]
fn a_session_timeout_out_of_bounds_is_refused_and_makes_no_group() {
    // 10
    let mut test = GroupTest::new();
    for session_timeout_ms in [5_999, 1_800_001, -1] {
        let request = JoinGroupRequest {
            session_timeout_ms,
            ..first_join()
        };
        assert_eq!(error(&mut test, request), ErrorCode::INVALID_SESSION_TIMEOUT);
    }
    assert_eq!(test.records, []);
    assert_eq!(test.inspected, Vec::<Text>::new());
    for session_timeout_ms in [6_000, 1_800_000] {
        let request = JoinGroupRequest {
            session_timeout_ms,
            ..first_join()
        };
        assert_eq!(error(&mut test, request), ErrorCode::MEMBER_ID_REQUIRED);
    }
}

#[test]
fn an_empty_group_id_protocol_type_or_protocol_list_is_refused() {
    // 11
    let mut test = GroupTest::new();
    let nameless = JoinGroupRequest {
        group_id: "".into(),
        ..first_join()
    };
    assert_eq!(error(&mut test, nameless), ErrorCode::INVALID_GROUP_ID);
    let typeless = JoinGroupRequest {
        protocol_type: "".into(),
        ..first_join()
    };
    assert_eq!(error(&mut test, typeless), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let speechless = JoinGroupRequest {
        protocols: Vec::new(),
        ..first_join()
    };
    assert_eq!(error(&mut test, speechless), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn a_join_must_fit_the_type_and_the_protocols_of_the_group() {
    // 12
    let mut test = GroupTest::new();
    test.stable_group(1);
    let connect = JoinGroupRequest {
        protocol_type: "connect".into(),
        ..first_join()
    };
    assert_eq!(error(&mut test, connect), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let stranger = JoinGroupRequest {
        protocols: protocols(&["sticky"]),
        ..first_join()
    };
    assert_eq!(error(&mut test, stranger), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let common = JoinGroupRequest {
        protocols: protocols(&["sticky", "range"]),
        ..first_join()
    };
    assert_eq!(error(&mut test, common), ErrorCode::MEMBER_ID_REQUIRED);
}

#[test]
fn an_empty_group_takes_any_protocol_type() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    test.leave(&[(&ids[0], None)]);
    let connect = || JoinGroupRequest {
        protocol_type: "connect".into(),
        protocols: protocols(&["sessioned"]),
        ..old_join()
    };
    let ticket = test.join(connect());
    test.advance_ms(INITIAL_DELAY_MS);
    let joined = test.joined(ticket);
    assert_eq!(joined.protocol_type.as_deref(), Some("connect"));
    assert_eq!(joined.protocol_name.as_deref(), Some("sessioned"));
    assert_eq!(joined.generation_id, 3);
}

/// Protocols with metadata that names them.
fn preferences(names: &[&str]) -> JoinGroupRequest {
    let protocol = |name: &&str| Protocol {
        name: (*name).into(),
        metadata: Bytes::copy_from_slice(name.as_bytes()),
    };
    JoinGroupRequest {
        protocols: names.iter().map(protocol).collect(),
        ..old_join()
    }
}

#[test]
fn the_members_vote_for_the_protocol_and_the_leader_gets_the_metadata_for_it() {
    // 13
    let mut test = GroupTest::new();
    let first = test.join(preferences(&["range", "roundrobin"]));
    let second = test.join(preferences(&["sticky", "roundrobin", "range"]));
    let third = test.join(preferences(&["roundrobin", "range"]));
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let leader = test.joined(first);
    assert_eq!(leader.protocol_name.as_deref(), Some("roundrobin"));
    let metadata: Vec<&Bytes> = leader.members.iter().map(|member| &member.metadata).collect();
    assert_eq!(metadata, ["roundrobin"; 3]);
    for follower in [second, third] {
        let joined = test.joined(follower);
        assert_eq!(joined.protocol_name.as_deref(), Some("roundrobin"));
        assert_eq!(joined.members, []);
        assert_eq!(joined.leader, leader.member_id);
    }
}

#[test]
fn with_equal_votes_the_protocol_is_that_which_a_broker_takes() {
    // 13
    for (one, other, taken) in [
        ("roundrobin", "range", "range"),
        ("cooperative-sticky", "range", "range"),
        ("cooperative-sticky", "roundrobin", "roundrobin"),
        ("range", "sticky", "sticky"),
        ("default", "sessioned", "default"),
    ] {
        let mut test = GroupTest::new();
        let first = test.join(preferences(&[one, other]));
        test.join(preferences(&[other, one]));
        test.advance_ms(2 * INITIAL_DELAY_MS);
        assert_eq!(test.joined(first).protocol_name.as_deref(), Some(taken));
    }
}

#[test]
fn a_protocol_that_is_listed_twice_counts_once() {
    let mut test = GroupTest::new();
    let first = test.join(preferences(&["range", "range", "roundrobin"]));
    let second = test.join(preferences(&["roundrobin"]));
    test.advance_ms(2 * INITIAL_DELAY_MS);
    assert_eq!(test.joined(first).protocol_name.as_deref(), Some("roundrobin"));
    assert_eq!(test.joined(second).error, ErrorCode::NONE);
}

#[test]
fn a_refused_join_names_no_generation_and_no_protocol() {
    // 14
    let mut test = GroupTest::new();
    let ticket = test.join(join_as(&"m".into()));
    let reply = test.join_reply(ticket);
    assert_eq!((reply.generation_id, &*reply.leader, &*reply.member_id), (-1, "", "m"));
    assert_eq!((reply.protocol_type, reply.protocol_name), (None, None));
}

#[test]
fn in_stable_a_follower_that_changed_nothing_is_answered_and_a_leader_starts_a_rebalance() {
    // 15
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let follower = test.join(join_as(&ids[1]));
    let joined = test.joined(follower);
    assert_eq!((joined.generation_id, joined.leader), (1, ids[0].clone()));
    assert_eq!(joined.members, []);
    assert_eq!(&*test.state(), "Stable");
    let leader = test.join(join_as(&ids[0]));
    assert!(!test.is_answered(leader));
    assert_eq!(&*test.state(), "PreparingRebalance");
}

#[test]
fn in_stable_a_follower_with_another_subscription_starts_a_rebalance() {
    // 16
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let changed = JoinGroupRequest {
        protocols: vec![Protocol {
            name: "range".into(),
            metadata: subscription(&["t", "u"]),
        }],
        ..join_as(&ids[1])
    };
    let ticket = test.join(changed);
    assert!(!test.is_answered(ticket));
    assert_eq!(&*test.state(), "PreparingRebalance");
}

#[test]
fn while_the_assignment_is_awaited_a_member_that_changed_nothing_is_told_the_generation_again() {
    // 17
    let mut test = GroupTest::new();
    let tickets = [test.join(old_join()), test.join(old_join())];
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let [leader, follower] = tickets.map(|ticket| test.joined(ticket));
    let again = test.join(join_as(&leader.member_id));
    assert_eq!(test.joined(again), leader);
    let again = test.join(join_as(&follower.member_id));
    assert_eq!(test.joined(again), follower);
    assert_eq!(&*test.state(), "CompletingRebalance");
}

#[test]
fn while_the_assignment_is_awaited_a_member_with_other_protocols_starts_a_new_round() {
    // 17
    let mut test = GroupTest::new();
    let tickets = [test.join(old_join()), test.join(old_join())];
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let [leader, follower] = tickets.map(|ticket| test.joined(ticket).member_id);
    let parked = test.sync(sync_as(&follower, 1));
    let changed = test.join(JoinGroupRequest {
        protocols: protocols(&["range", "sticky"]),
        ..join_as(&leader)
    });
    assert_eq!(test.sync_reply(parked).error, ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(!test.is_answered(changed));
    let rejoined = test.join(join_as(&follower));
    assert_eq!(test.joined(changed).generation_id, 2);
    assert_eq!(test.joined(rejoined).generation_id, 2);
}

#[test]
fn of_three_clients_with_ids_only_two_get_into_a_group_of_two() {
    // 24
    let mut test = GroupTest::with_settings(Settings {
        group_max_size: 2,
        ..Settings::default()
    });
    let ids: Vec<Text> = (0..3).map(|_| test.member_id()).collect();
    let tickets: Vec<_> = ids.iter().map(|id| test.join(join_as(id))).collect();
    let refused = test.join_reply(tickets[2]);
    assert_eq!(
        (refused.error, &*refused.member_id),
        (ErrorCode::GROUP_MAX_SIZE_REACHED, "")
    );
    assert_eq!(test.view().groups[0].pending_members, 0);
    test.advance_ms(2 * INITIAL_DELAY_MS);
    assert_eq!(test.joined(tickets[0]).members.len(), 2);
    assert_eq!(error(&mut test, join_as(&ids[2])), ErrorCode::GROUP_MAX_SIZE_REACHED);
}

#[test]
fn a_member_of_a_full_group_may_rejoin() {
    // 26
    let mut test = GroupTest::with_settings(Settings {
        group_max_size: 2,
        ..Settings::default()
    });
    let ids = test.stable_group(2);
    assert_eq!(error(&mut test, first_join()), ErrorCode::GROUP_MAX_SIZE_REACHED);
    let leader = test.join(join_as(&ids[0]));
    let follower = test.join(join_as(&ids[1]));
    assert_eq!(test.joined(leader).generation_id, 2);
    assert_eq!(test.joined(follower).generation_id, 2);
}

#[test]
fn an_unknown_member_or_an_unknown_instance_is_refused() {
    // 40
    let mut test = GroupTest::new();
    test.stable_group(1);
    assert_eq!(error(&mut test, join_as(&"m".into())), ErrorCode::UNKNOWN_MEMBER_ID);
    let unknown_instance = JoinGroupRequest {
        member_id: "m".into(),
        ..static_join("i")
    };
    assert_eq!(error(&mut test, unknown_instance), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn an_id_of_a_dynamic_member_cannot_be_used_with_an_instance_id() {
    let mut test = GroupTest::new();
    let id = test.member_id();
    let mixed = JoinGroupRequest {
        member_id: id,
        ..static_join("i")
    };
    assert_eq!(error(&mut test, mixed), ErrorCode::UNKNOWN_SERVER_ERROR);
}

#[test]
fn a_second_join_of_a_parked_member_takes_the_place_of_the_first() {
    let mut test = GroupTest::new();
    let id = test.member_id();
    let first = test.join(join_as(&id));
    let second = test.join(join_as(&id));
    assert_eq!(test.join_reply(first).error, ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(test.view().parked_joins, 1);
    test.advance_ms(INITIAL_DELAY_MS);
    assert_eq!(test.joined(second).member_id, id);
}

#[test]
fn a_group_that_lost_its_last_member_while_an_id_is_out_lets_others_in() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    let out = test.member_id();
    for id in &ids {
        assert_eq!(test.leave(&[(id, None)]), [ErrorCode::NONE]);
    }
    assert_eq!(&*test.state(), "PreparingRebalance");
    assert_eq!(error(&mut test, first_join()), ErrorCode::MEMBER_ID_REQUIRED);
    let ticket = test.join(join_as(&out));
    test.advance_ms(u64::from(SESSION_MS.unsigned_abs()));
    assert_eq!(test.joined(ticket).member_id, out);
}
