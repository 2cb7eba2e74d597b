//! Classic groups that the coordinator assigns for: no member leads.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::consumer_client::{T, U, at_once, topics};
use super::consumer_migration::metadata;
use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{REBALANCE_MS, first_join, join_as, protocols, sync_as};
use crate::coordinator::consumer_protocol::read_assignment;
use crate::coordinator::event::{Event, LeaderReason, RebalanceReason};
use crate::coordinator::group_patterns::GroupPatterns;
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{JoinGroupRequest, JoinGroupResponse, Protocol, SyncGroupRequest, Text};
use crate::coordinator::settings::{ClassicAssignmentRule, Settings};
use crate::wire::error_code::ErrorCode;

/// Settings by which the group "g" is assigned for.
pub(super) fn assigned_by(assignor: Option<&str>) -> Settings {
    let rule = ClassicAssignmentRule {
        groups: GroupPatterns::new(&["g".to_owned()]),
        assignor: assignor.map(Text::from),
        fallback: None,
    };
    Settings {
        coordinator_assigned: [rule].into(),
        ..at_once()
    }
}

/// Such a shard, with the topics "t" of four and "u" of two partitions.
pub(super) fn shard(assignor: Option<&str>) -> GroupTest {
    let mut test = GroupTest::with_settings(assigned_by(assignor));
    test.tell_topics(topics(&[("t", T, 4), ("u", U, 2)]));
    test
}

pub(super) fn offering(protocol: &str, metadata: Bytes, request: JoinGroupRequest) -> JoinGroupRequest {
    let name = protocol.into();
    JoinGroupRequest {
        protocols: vec![Protocol { name, metadata }],
        ..request
    }
}

/// A cooperative consumer of "t": it goes on with what it has, and joins again when it has given something up.
#[derive(Debug)]
pub(super) struct Cooperative {
    pub(super) id: Text,
    pub(super) generation_id: i32,
    pub(super) owned: Vec<i32>,
}

impl Cooperative {
    pub(super) fn new(test: &mut GroupTest) -> Self {
        let first = test.join(offering("cooperative-sticky", metadata(&[]), first_join()));
        Self {
            id: test.join_reply(first).member_id,
            generation_id: -1,
            owned: Vec::new(),
        }
    }

    pub(super) fn join(&self, test: &mut GroupTest) -> Ticket {
        test.join(offering("cooperative-sticky", metadata(&self.owned), join_as(&self.id)))
    }

    /// Takes the answer in, syncs, and says whether it has given something up and so must join again.
    pub(super) fn sync(&mut self, test: &mut GroupTest, joined: Ticket) -> bool {
        let joined = test.joined(joined);
        assert_leaderless(&joined);
        self.generation_id = joined.generation_id;
        let given = synced(test, &self.id, self.generation_id);
        let gave_up = self.owned.iter().any(|number| !given.contains(number));
        self.owned = given;
        gave_up
    }
}

/// Joins all, and lets those that have to give something up join again, as clients do, until nobody has to.
pub(super) fn settle(test: &mut GroupTest, members: &mut [&mut Cooperative]) {
    let mut rounds = 0;
    loop {
        let joins: Vec<Ticket> = members.iter().map(|member| member.join(test)).collect();
        test.advance_ms(2 * INITIAL_DELAY_MS);
        let mut again = false;
        for (member, join) in members.iter_mut().zip(joins) {
            again |= member.sync(test, join);
        }
        let mut owners = BTreeMap::new();
        for member in members.iter() {
            for number in &member.owned {
                assert_eq!(owners.insert(*number, &member.id), None, "two owners");
            }
        }
        rounds += 1;
        assert!(rounds <= 3, "it does not settle");
        if !again {
            return;
        }
    }
}

/// One that has all of "t", and another that came and waits until the first has joined without what it had to give up.
pub(super) fn half_moved(test: &mut GroupTest) -> (Cooperative, Cooperative) {
    let mut first = Cooperative::new(test);
    settle(test, &mut [&mut first]);
    let mut second = Cooperative::new(test);
    let joins = [first.join(test), second.join(test)];
    assert!(first.sync(test, joins[0]));
    assert!(!second.sync(test, joins[1]));
    (first, second)
}

pub(super) fn assert_leaderless(joined: &JoinGroupResponse) {
    assert_eq!((&*joined.leader, joined.skip_assignment), ("", false));
    assert_eq!(joined.members, []);
}

/// The partitions of "t" that a sync gives to a member.
pub(super) fn synced(test: &mut GroupTest, member_id: &Text, generation_id: i32) -> Vec<i32> {
    let ticket = test.sync(sync_as(member_id, generation_id));
    let reply = test.sync_reply(ticket);
    assert_eq!(reply.error, ErrorCode::NONE);
    of_t(&reply.assignment)
}

pub(super) fn of_t(assignment: &Bytes) -> Vec<i32> {
    let named = read_assignment(assignment).expect("an assignment").partitions;
    let of_t = named.into_iter().filter(|(topic, _)| &**topic == "t");
    of_t.flat_map(|(_, numbers)| numbers).collect()
}

/// Joins these at once into a group without members; the answers in order.
pub(super) fn join_all(test: &mut GroupTest, requests: Vec<JoinGroupRequest>) -> Vec<JoinGroupResponse> {
    let tickets: Vec<Ticket> = requests.into_iter().map(|request| test.join(request)).collect();
    test.advance_ms(2 * INITIAL_DELAY_MS);
    tickets.iter().map(|ticket| test.joined(*ticket)).collect()
}

/// Ids by MEMBER_ID_REQUIRED, and their joins for this protocol.
pub(super) fn eager_joins(test: &mut GroupTest, count: usize, protocol: &str) -> Vec<JoinGroupRequest> {
    let ids: Vec<Text> = (0..count).map(|_| test.member_id()).collect();
    let join = |id| JoinGroupRequest {
        protocols: protocols(&[protocol]),
        ..join_as(id)
    };
    ids.iter().map(join).collect()
}

#[test]
fn no_member_leads_and_every_sync_finds_its_part_whoever_comes_first() {
    let mut test = shard(None);
    let joins = eager_joins(&mut test, 2, "range");
    let joined = join_all(&mut test, joins);
    joined.iter().for_each(assert_leaderless);
    assert_eq!(&*test.state(), "Stable");
    let record = test.last_metadata().expect("a record");
    assert_eq!((record.generation, record.leader.as_deref()), (1, None));
    let mut parts: Vec<Vec<i32>> = Vec::new();
    for member in joined.iter().rev() {
        parts.push(synced(&mut test, &member.member_id, 1));
    }
    parts.sort_unstable();
    assert_eq!(parts, [[0, 1], [2, 3]]);
    let assigned = test.events.iter().find_map(|event| match event {
        Event::ClassicAssigned {
            assignor,
            members,
            partitions,
            partitions_withheld,
            ..
        } => Some((&**assignor, *members, *partitions, *partitions_withheld)),
        _ => None,
    });
    assert_eq!(assigned, Some(("range", 2, 4, 0)));
    let view = test.view().groups.remove(0).classic.expect("members");
    assert_eq!(
        (view.assigned_by, view.assignor.as_deref()),
        ("coordinator", Some("range"))
    );
}

#[test]
fn what_a_member_sends_as_if_it_led_is_not_heard() {
    let mut test = shard(None);
    let joins = eager_joins(&mut test, 1, "range");
    let id = join_all(&mut test, joins).remove(0).member_id;
    let ticket = test.sync(SyncGroupRequest {
        assignments: vec![(id.clone(), Bytes::from_static(b"mine"))],
        ..sync_as(&id, 1)
    });
    assert_eq!(of_t(&test.sync_reply(ticket).assignment), [0, 1, 2, 3]);
}

#[test]
fn the_rule_may_name_another_assignor_than_the_members_protocol() {
    let mut test = shard(Some("roundrobin"));
    let joins = eager_joins(&mut test, 2, "range");
    let joined = join_all(&mut test, joins);
    let mut parts: Vec<Vec<i32>> = Vec::new();
    for member in &joined {
        assert_eq!(member.protocol_name.as_deref(), Some("range"));
        parts.push(synced(&mut test, &member.member_id, 1));
    }
    parts.sort_unstable();
    assert_eq!(parts, [[0, 2], [1, 3]]);
}

#[test]
fn eager_members_keep_what_they_had_by_the_coordinators_memory_alone() {
    let mut test = shard(Some("sticky"));
    let joins = eager_joins(&mut test, 2, "range");
    let ids: Vec<Text> = joins.iter().map(|join| join.member_id.clone()).collect();
    join_all(&mut test, joins.clone());
    let before: Vec<Vec<i32>> = ids.iter().map(|id| synced(&mut test, id, 1)).collect();
    let third = eager_joins(&mut test, 1, "range").remove(0);
    let newcomer = test.join(third);
    for join in joins {
        test.join(join);
    }
    assert_eq!(test.joined(newcomer).generation_id, 2);
    for (id, before) in ids.iter().zip(before) {
        let after = synced(&mut test, id, 2);
        assert!(
            after.iter().all(|number| before.contains(number)),
            "{before:?} {after:?}"
        );
    }
}

#[test]
fn a_partition_that_moves_waits_until_its_owner_has_given_it_up() {
    let mut test = shard(None);
    let mut first = Cooperative::new(&mut test);
    settle(&mut test, &mut [&mut first]);
    assert_eq!(first.owned, [0, 1, 2, 3]);
    let mut second = Cooperative::new(&mut test);
    let joins = [first.join(&mut test), second.join(&mut test)];
    assert!(first.sync(&mut test, joins[0]));
    assert!(!second.sync(&mut test, joins[1]));
    assert_eq!((first.owned.len(), second.owned.len()), (2, 0));
    assert_eq!(
        test.view().groups[0]
            .classic
            .as_ref()
            .expect("members")
            .partitions_withheld,
        2
    );
    settle(&mut test, &mut [&mut first, &mut second]);
    assert_eq!((first.owned.len(), second.owned.len()), (2, 2));
}

#[test]
fn a_join_that_is_sent_again_is_answered_with_the_generation_that_there_is() {
    let mut test = shard(None);
    let mut first = Cooperative::new(&mut test);
    let join = offering("cooperative-sticky", metadata(&[]), join_as(&first.id));
    let ticket = test.join(join.clone());
    test.advance_ms(INITIAL_DELAY_MS);
    first.sync(&mut test, ticket);
    let ticket = test.join(join);
    assert_eq!(test.joined(ticket).generation_id, 1);
    assert_leaderless(&test.joined(ticket));
}

#[test]
fn what_is_withheld_is_not_waited_for_for_ever() {
    let mut test = shard(None);
    let (first, second) = half_moved(&mut test);
    test.events.clear();
    for _ in 0..REBALANCE_MS / 1_000 {
        test.advance_ms(1_000);
        test.heartbeat(&first.id, first.generation_id);
        test.heartbeat(&second.id, second.generation_id);
    }
    assert!(test.events.iter().any(|event| matches!(
        event,
        Event::RebalanceStarted {
            reason: RebalanceReason::PartitionsWithheld,
            ..
        }
    )));
}

#[test]
fn who_does_not_sync_is_taken_out_as_always() {
    let mut test = shard(None);
    let joins = eager_joins(&mut test, 2, "range");
    let ids: Vec<Text> = join_all(&mut test, joins)
        .into_iter()
        .map(|joined| joined.member_id)
        .collect();
    synced(&mut test, &ids[0], 1);
    for _ in 0..=REBALANCE_MS / 1_000 {
        test.advance_ms(1_000);
        ids.iter().for_each(|id| {
            test.heartbeat(id, 1);
        });
    }
    assert_eq!(test.heartbeat(&ids[1], 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn groups_of_another_type_are_led_by_a_member() {
    let mut test = shard(None);
    let id = test.member_id();
    let joined = join_all(
        &mut test,
        vec![JoinGroupRequest {
            protocol_type: "connect".into(),
            protocols: protocols(&["range"]),
            ..join_as(&id)
        }],
    );
    assert_eq!(joined[0].leader, id);
    assert!(
        !test
            .events
            .iter()
            .any(|event| matches!(event, Event::AssignmentLeftToLeader { .. }))
    );
}

#[test]
fn members_whose_protocol_or_metadata_is_not_understood_go_on_with_a_leader() {
    let readable = protocols(&["range"]).remove(0).metadata;
    for (protocol, metadata, reason) in [
        ("stream", readable, LeaderReason::Protocol),
        ("range", Bytes::from_static(b"?"), LeaderReason::Metadata),
    ] {
        let mut test = shard(None);
        let id = test.member_id();
        let joined = join_all(&mut test, vec![offering(protocol, metadata, join_as(&id))]);
        assert_eq!((&joined[0].leader, joined[0].members.len()), (&id, 1));
        assert_eq!(&*test.state(), "CompletingRebalance");
        let left = test.events.iter().find_map(|event| match event {
            Event::AssignmentLeftToLeader { leader, reason, .. } => Some((leader.clone(), *reason)),
            _ => None,
        });
        assert_eq!(left, Some((id.clone(), reason)));
        test.sync_all(&[id], 1);
        let view = test.view().groups.remove(0).classic.expect("members");
        assert_eq!((view.assigned_by, view.assignor), ("leader", None));
    }
}

#[test]
fn nobody_is_let_in_before_the_topics_are_known() {
    let mut test = GroupTest::with_settings(assigned_by(None));
    let refused = test.join(first_join());
    assert_eq!(test.join_reply(refused).error, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    let other = test.join(JoinGroupRequest {
        group_id: "other".into(),
        ..first_join()
    });
    assert_eq!(test.join_reply(other).error, ErrorCode::MEMBER_ID_REQUIRED);
}
