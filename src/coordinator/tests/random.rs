//! Clients that do anything at any time: nothing panics, every request is answered once, and what is durable stays true.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::group_test::GroupTest;
use super::requests::{commit_as, first_join, join_as, old_join, protocols, static_join, sync_as};
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{
    HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, LeavingMember, Request, Response, SyncGroupRequest, Text,
};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

/// Which member ids a request uses: the latest ones that were handed out, or none that exists.
type Who = usize;

#[derive(Debug, Clone)]
enum Act {
    FirstJoin,
    OldJoin,
    StaticJoin(u8),
    Rejoin(Who, bool),
    RejoinStatic(Who, u8),
    Sync(Who, bool),
    Heartbeat(Who),
    Leave(Who, Who),
    LeaveStatic(u8),
    Commit(Who),
    Delete,
    Pass(u64),
    Stall(u64),
    HoldStore,
    ReleaseStore,
}

fn act() -> impl Strategy<Value = Act> {
    let who = 0..6_usize;
    prop_oneof![
        2 => Just(Act::FirstJoin),
        1 => Just(Act::OldJoin),
        2 => (0..2_u8).prop_map(Act::StaticJoin),
        6 => (who.clone(), any::<bool>()).prop_map(|(who, changed)| Act::Rejoin(who, changed)),
        1 => (who.clone(), 0..2_u8).prop_map(|(who, instance)| Act::RejoinStatic(who, instance)),
        6 => (who.clone(), any::<bool>()).prop_map(|(who, leads)| Act::Sync(who, leads)),
        4 => who.clone().prop_map(Act::Heartbeat),
        1 => (who.clone(), who.clone()).prop_map(|(one, other)| Act::Leave(one, other)),
        1 => (0..2_u8).prop_map(Act::LeaveStatic),
        2 => who.prop_map(Act::Commit),
        1 => Just(Act::Delete),
        5 => (0..6_000_u64).prop_map(Act::Pass),
        1 => (0..60_000_u64).prop_map(Act::Stall),
        1 => Just(Act::HoldStore),
        2 => Just(Act::ReleaseStore),
    ]
}

/// The errors of an answer.
fn errors(response: &Response) -> Vec<ErrorCode> {
    match response {
        Response::JoinGroup(join) => vec![join.error],
        Response::SyncGroup(sync) => vec![sync.error],
        Response::Heartbeat { error } | Response::DeleteGroup { error } | Response::Unavailable { error } => {
            vec![*error]
        }
        Response::LeaveGroup(leave) => leave.members.iter().map(|member| member.error).collect(),
        Response::OffsetCommit(commit) => {
            let partitions = commit.topics.iter().flat_map(|(_, partitions)| partitions);
            partitions.map(|(_, error)| *error).collect()
        }
        other => panic!("not the answer to any of it: {other:?}"),
    }
}

/// What clients know how to take of such an answer.
fn documented(response: &Response) -> &'static [ErrorCode] {
    const UNKNOWN: ErrorCode = ErrorCode::UNKNOWN_MEMBER_ID;
    const FENCED: ErrorCode = ErrorCode::FENCED_INSTANCE_ID;
    const REBALANCING: ErrorCode = ErrorCode::REBALANCE_IN_PROGRESS;
    const ILLEGAL: ErrorCode = ErrorCode::ILLEGAL_GENERATION;
    match response {
        Response::JoinGroup(_) => &[
            UNKNOWN,
            FENCED,
            REBALANCING,
            ErrorCode::MEMBER_ID_REQUIRED,
            ErrorCode::GROUP_MAX_SIZE_REACHED,
            ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
            // For the id of a dynamic member that comes with an instance id, as Kafka.
            ErrorCode::UNKNOWN_SERVER_ERROR,
        ],
        Response::SyncGroup(_) | Response::Heartbeat { .. } => &[UNKNOWN, FENCED, REBALANCING, ILLEGAL],
        Response::LeaveGroup(_) => &[UNKNOWN, FENCED],
        // The store was waited for.
        Response::Unavailable { .. } => &[ErrorCode::COORDINATOR_NOT_AVAILABLE],
        Response::OffsetCommit(_) => &[UNKNOWN, FENCED, REBALANCING, ILLEGAL, ErrorCode::GROUP_ID_NOT_FOUND],
        _ => &[ErrorCode::NON_EMPTY_GROUP, ErrorCode::GROUP_ID_NOT_FOUND],
    }
}

/// The clients, as far as they remember anything.
struct Clients {
    test: GroupTest,
    sent: BTreeSet<Ticket>,
    /// Member ids in the order in which they were handed out.
    ids: Vec<Text>,
    waiting: BTreeSet<Ticket>,
    generation_id: i32,
}

impl Clients {
    fn new() -> Self {
        Self {
            test: GroupTest::with_settings(Settings {
                group_max_size: 4,
                ..Settings::default()
            }),
            sent: BTreeSet::new(),
            ids: Vec::new(),
            waiting: BTreeSet::new(),
            generation_id: 0,
        }
    }

    fn id(&self, who: Who) -> Text {
        let latest = self.ids.iter().rev().nth(who);
        latest.cloned().unwrap_or_else(|| "stranger".into())
    }

    fn send(&mut self, request: Request) {
        let ticket = self.test.send(request);
        self.sent.insert(ticket);
        self.waiting.insert(ticket);
    }

    fn join(&mut self, request: JoinGroupRequest) {
        self.send(Request::JoinGroup(request));
    }

    fn leave(&mut self, members: Vec<(Text, Option<Text>)>) {
        let leaving = |(member_id, group_instance_id)| LeavingMember {
            member_id,
            group_instance_id,
            reason: None,
        };
        self.send(Request::LeaveGroup(LeaveGroupRequest {
            group_id: "g".into(),
            members: members.into_iter().map(leaving).collect(),
        }));
    }

    fn do_one(&mut self, act: Act) {
        let instance = |number: u8| Text::from(format!("i{number}"));
        match act {
            Act::FirstJoin => self.join(first_join()),
            Act::OldJoin => self.join(old_join()),
            Act::StaticJoin(number) => self.join(static_join(&instance(number))),
            Act::Rejoin(who, changed) => {
                let names: &[&str] = if changed { &["range", "sticky"] } else { &["range"] };
                self.join(JoinGroupRequest {
                    protocols: protocols(names),
                    ..join_as(&self.id(who))
                });
            }
            Act::RejoinStatic(who, number) => self.join(JoinGroupRequest {
                group_instance_id: Some(instance(number)),
                ..join_as(&self.id(who))
            }),
            Act::Sync(who, leads) => {
                let assignments = self.ids.iter().filter(|_| leads).map(|id| (id.clone(), "a".into()));
                self.send(Request::SyncGroup(SyncGroupRequest {
                    assignments: assignments.collect(),
                    ..sync_as(&self.id(who), self.generation_id)
                }));
            }
            Act::Heartbeat(who) => self.send(Request::Heartbeat(HeartbeatRequest {
                group_id: "g".into(),
                generation_id: self.generation_id,
                member_id: self.id(who),
                group_instance_id: None,
            })),
            Act::Leave(one, other) => self.leave(vec![(self.id(one), None), (self.id(other), None)]),
            Act::LeaveStatic(number) => self.leave(vec![("".into(), Some(instance(number)))]),
            Act::Commit(who) => self.send(Request::OffsetCommit(commit_as(&self.id(who), self.generation_id, 1))),
            Act::Delete => self.send(Request::DeleteGroup { group_id: "g".into() }),
            Act::Pass(ms) => self.test.advance_ms(ms),
            Act::Stall(ms) => self.test.stall_ms(ms),
            Act::HoldStore => self.test.store_is_prompt = false,
            Act::ReleaseStore => {
                self.test.store_is_prompt = true;
                self.test.sync_store();
            }
        }
        self.listen();
    }

    /// Takes in what joins were told, each once.
    fn listen(&mut self) {
        let answered = self.waiting.iter().filter(|ticket| self.test.is_answered(**ticket));
        let answered: Vec<Ticket> = answered.copied().collect();
        for ticket in answered {
            self.waiting.remove(&ticket);
            let reply = self.test.reply(ticket);
            for error in errors(&reply) {
                let known = documented(&reply);
                assert!(
                    error == ErrorCode::NONE || known.contains(&error),
                    "{error:?} in {reply:?}"
                );
            }
            let Response::JoinGroup(join) = reply else {
                continue;
            };
            if join.error == ErrorCode::NONE && join.leader == join.member_id {
                let listed: BTreeSet<&Text> = join.members.iter().map(|member| &member.member_id).collect();
                assert_eq!(listed.len(), join.members.len(), "{join:?}");
                assert!(listed.contains(&join.member_id), "{join:?}");
            }
            let handed_out = matches!(join.error, ErrorCode::NONE | ErrorCode::MEMBER_ID_REQUIRED);
            if handed_out && !self.ids.contains(&join.member_id) {
                self.ids.push(join.member_id);
            }
            self.generation_id = self.generation_id.max(join.generation_id);
        }
    }

    /// What must hold whatever happened.
    fn check(&mut self) {
        let view = self.test.view();
        let parked = view
            .groups
            .iter()
            .flat_map(|group| &group.members)
            .filter(|member| member.parked);
        assert_eq!(view.parked_joins + view.parked_syncs, parked.count(), "{view:?}");
        for group in &view.groups {
            let instances = || {
                group
                    .members
                    .iter()
                    .filter_map(|member| member.group_instance_id.as_ref())
            };
            let distinct: BTreeSet<&Text> = instances().collect();
            assert_eq!(distinct.len(), instances().count(), "{group:?}");
            let is_member = |id: &Text| group.members.iter().any(|member| member.member_id == *id);
            // Those who have not rejoined yet do not count.
            assert!(view.parked_joins <= 4, "{group:?}");
            match &*group.state {
                "Empty" => assert_eq!((group.members.len(), &group.leader), (0, &None), "{group:?}"),
                "Stable" | "CompletingRebalance" => {
                    assert!(group.leader.as_ref().is_some_and(is_member), "{group:?}");
                    assert_eq!(view.parked_joins, 0, "{group:?}");
                }
                _ => assert_eq!(view.parked_syncs, 0, "{group:?}"),
            }
            if &*group.state == "Stable" {
                assert_eq!(view.parked_syncs, 0, "{group:?}");
            }
        }
    }

    /// After everything became durable a restart shows the last recorded state, and ends with every request answered.
    fn finish(mut self) {
        self.test.sync_store();
        let mut one = self.test.restarted();
        let mut other = self.test.restarted();
        assert_eq!(one.view(), other.view());
        let answered: BTreeSet<Ticket> = self.test.replies().keys().copied().collect();
        let at_the_end: BTreeSet<Ticket> = self.test.unload(ErrorCode::NOT_COORDINATOR).into_keys().collect();
        assert_eq!(answered.intersection(&at_the_end).next(), None);
        let all: BTreeSet<Ticket> = answered.union(&at_the_end).copied().collect();
        assert!(self.sent.is_subset(&all));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_clients_do_every_request_is_answered_once_and_the_group_stays_sound(
        acts in proptest::collection::vec(act(), 1..150)
    ) {
        let mut clients = Clients::new();
        for act in acts {
            clients.do_one(act);
            clients.check();
        }
        clients.finish();
    }
}
