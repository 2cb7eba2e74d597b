//! Classic consumers of a group that is assigned for, which do anything at any time, answers that are lost, topics that grow, restarts, and
//! an external assignor of any mood: no partition ever has two owners, and in the end each has one.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::classic_assign::{assigned_by, of_t, offering};
use super::consumer_client::{T, topics};
use super::consumer_migration::metadata;
use super::group_test::GroupTest;
use super::moody_assignor::{Mood, MoodyAssignor, mood};
use super::requests::{first_join, join_as, subscription, sync_as};
use crate::coordinator::input::Ticket;
use crate::coordinator::record::Record;
use crate::coordinator::request::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeavingMember, Request, Response,
    SyncGroupRequest, Text,
};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

type Who = usize;

const CLIENTS: usize = 5;
/// Sessions last ten seconds: who is away for less comes back to what it had.
const STEP_MS: u64 = 1_000;

#[derive(Debug, Clone)]
enum Act {
    Start(Who),
    Kill(Who),
    Leave(Who),
    /// The answer that it waits for is lost.
    Lose(Who),
    /// It joins again for no reason that the group knows.
    Rejoin(Who),
    Grow,
    Restart,
    /// The external assignor is so from now on, where there is one.
    Mood(Mood),
    /// It wants a new assignment.
    Ask,
    Pass(u8),
}

fn act() -> impl Strategy<Value = Act> {
    let who = || 0..CLIENTS;
    prop_oneof![
        4 => who().prop_map(Act::Start),
        1 => who().prop_map(Act::Kill),
        1 => who().prop_map(Act::Leave),
        2 => who().prop_map(Act::Lose),
        1 => who().prop_map(Act::Rejoin),
        1 => Just(Act::Grow),
        1 => Just(Act::Restart),
        2 => mood().prop_map(Act::Mood),
        1 => Just(Act::Ask),
        8 => (1..8_u8).prop_map(Act::Pass),
    ]
}

#[derive(Debug, Clone, Default, PartialEq)]
enum Phase {
    #[default]
    Away,
    MustJoin,
    Joins(Ticket),
    Syncs(Ticket),
    Stable,
}

#[derive(Debug, Clone, Default)]
struct Client {
    /// Of a static member.
    instance_id: Option<Text>,
    member_id: Option<Text>,
    generation_id: i32,
    owned: BTreeSet<i32>,
    phase: Phase,
}

impl Client {
    /// The group does not know it, or knows a later one of it: what it has is lost.
    fn begin_anew(&mut self, phase: Phase) {
        self.member_id = None;
        self.generation_id = -1;
        self.owned.clear();
        self.phase = phase;
    }
}

struct World {
    settings: Settings,
    protocol: &'static str,
    test: GroupTest,
    log: Vec<Record>,
    /// How often the shard was loaded.
    starts: u64,
    clients: Vec<Client>,
    /// Asked where the rule names it.
    external: MoodyAssignor,
    partitions: i32,
}

impl World {
    fn new(protocol: &'static str, assignor: Option<&'static str>) -> Self {
        let settings = assigned_by(assignor);
        let mut test = GroupTest::with_settings(settings.clone());
        test.tell_topics(topics(&[("t", T, 4)]));
        let client = |number: usize| Client {
            instance_id: (number + 2 > CLIENTS).then(|| format!("i{number}").into()),
            ..Client::default()
        };
        Self {
            settings,
            protocol,
            test,
            log: Vec::new(),
            starts: 1,
            clients: (0..CLIENTS).map(client).collect(),
            external: MoodyAssignor::new(),
            partitions: 4,
        }
    }

    fn is_cooperative(&self) -> bool {
        self.protocol == "cooperative-sticky"
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Start(who) if self.clients[who].phase == Phase::Away => self.clients[who].phase = Phase::MustJoin,
            Act::Kill(who) => self.clients[who].begin_anew(Phase::Away),
            Act::Leave(who) => self.leave(who),
            Act::Lose(who) if matches!(self.clients[who].phase, Phase::Joins(_) | Phase::Syncs(_)) => {
                self.clients[who].phase = Phase::MustJoin;
            }
            Act::Rejoin(who) if self.clients[who].phase == Phase::Stable => self.clients[who].phase = Phase::MustJoin,
            Act::Grow => {
                self.partitions += 2;
                self.tell_topics();
            }
            Act::Restart => self.restart(),
            Act::Mood(mood) => self.external.mood = mood,
            Act::Ask => self.external.ask(&mut self.test),
            Act::Pass(steps) => (0..steps).for_each(|_| self.pass()),
            Act::Start(_) | Act::Lose(_) | Act::Rejoin(_) => {}
        }
        self.check();
    }

    fn tell_topics(&mut self) {
        self.test.tell_topics(topics(&[("t", T, self.partitions)]));
    }

    fn restart(&mut self) {
        self.log.append(&mut self.test.records);
        self.starts += 1;
        self.test = GroupTest::loaded_with(self.settings.clone(), &self.log, self.starts);
        self.tell_topics();
        self.external.forget();
        for client in &mut self.clients {
            if matches!(client.phase, Phase::Joins(_) | Phase::Syncs(_)) {
                client.phase = Phase::MustJoin;
            }
        }
    }

    fn leave(&mut self, who: Who) {
        let client = &mut self.clients[who];
        let Some(member_id) = client.member_id.clone().filter(|_| client.instance_id.is_none()) else {
            return;
        };
        client.begin_anew(Phase::Away);
        self.test.call(Request::LeaveGroup(LeaveGroupRequest {
            group_id: "g".into(),
            members: vec![LeavingMember {
                member_id,
                group_instance_id: None,
                reason: None,
            }],
        }));
    }

    /// A second, in which everybody does what is due.
    fn pass(&mut self) {
        for who in 0..CLIENTS {
            match self.clients[who].phase.clone() {
                Phase::Away => {}
                Phase::MustJoin => self.join(who),
                Phase::Joins(ticket) if self.test.is_answered(ticket) => self.joined(who, ticket),
                Phase::Syncs(ticket) if self.test.is_answered(ticket) => self.synced(who, ticket),
                Phase::Joins(_) | Phase::Syncs(_) => {}
                Phase::Stable => self.beat(who),
            }
            self.check();
        }
        self.external.pass(&mut self.test);
        self.test.advance_ms(STEP_MS);
        self.check();
    }

    fn join(&mut self, who: Who) {
        let is_cooperative = self.is_cooperative();
        let client = &mut self.clients[who];
        if !is_cooperative {
            client.owned.clear();
        }
        let metadata = match is_cooperative {
            true => metadata(&client.owned.iter().copied().collect::<Vec<_>>()),
            false => subscription(&["t"]),
        };
        let request = client.member_id.as_ref().map_or_else(first_join, join_as);
        let request = JoinGroupRequest {
            group_instance_id: client.instance_id.clone(),
            ..offering(self.protocol, metadata, request)
        };
        client.phase = Phase::Joins(self.test.join(request));
    }

    fn joined(&mut self, who: Who, ticket: Ticket) {
        let response = match self.test.reply(ticket) {
            Response::JoinGroup(response) => response,
            Response::Unavailable { .. } => return self.clients[who].phase = Phase::MustJoin,
            other => panic!("{other:?}"),
        };
        let client = &mut self.clients[who];
        let JoinGroupResponse {
            error,
            generation_id,
            member_id,
            leader,
            members,
            ..
        } = response;
        match error {
            ErrorCode::NONE => {
                assert_eq!((&*leader, members.len()), ("", 0));
                client.member_id = Some(member_id.clone());
                client.generation_id = generation_id;
                let request = SyncGroupRequest {
                    group_instance_id: client.instance_id.clone(),
                    ..sync_as(&member_id, generation_id)
                };
                client.phase = Phase::Syncs(self.test.sync(request));
            }
            ErrorCode::MEMBER_ID_REQUIRED => {
                client.member_id = Some(member_id);
                client.phase = Phase::MustJoin;
            }
            ErrorCode::REBALANCE_IN_PROGRESS => client.phase = Phase::MustJoin,
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_INSTANCE_ID => client.begin_anew(Phase::MustJoin),
            other => panic!("{other:?}"),
        }
    }

    fn synced(&mut self, who: Who, ticket: Ticket) {
        let response = self.test.sync_reply(ticket);
        let client = &mut self.clients[who];
        match response.error {
            ErrorCode::NONE => {
                let given: BTreeSet<i32> = of_t(&response.assignment).into_iter().collect();
                let gave_up = !client.owned.is_subset(&given);
                client.owned = given;
                client.phase = if gave_up { Phase::MustJoin } else { Phase::Stable };
            }
            ErrorCode::REBALANCE_IN_PROGRESS => client.phase = Phase::MustJoin,
            ErrorCode::ILLEGAL_GENERATION | ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_INSTANCE_ID => {
                client.begin_anew(Phase::MustJoin);
            }
            other => panic!("{other:?}"),
        }
    }

    fn beat(&mut self, who: Who) {
        let client = &mut self.clients[who];
        let Some(member_id) = client.member_id.clone() else {
            return;
        };
        let error = self.test.heartbeat_of(HeartbeatRequest {
            group_id: "g".into(),
            generation_id: client.generation_id,
            member_id,
            group_instance_id: client.instance_id.clone(),
        });
        match error {
            ErrorCode::NONE => {}
            ErrorCode::REBALANCE_IN_PROGRESS => client.phase = Phase::MustJoin,
            ErrorCode::ILLEGAL_GENERATION => {
                client.owned.clear();
                client.phase = Phase::MustJoin;
            }
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_INSTANCE_ID => client.begin_anew(Phase::MustJoin),
            other => panic!("{other:?}"),
        }
    }

    fn check(&self) {
        let mut owners = BTreeMap::new();
        for (who, client) in self.clients.iter().enumerate() {
            for number in &client.owned {
                if let Some(other) = owners.insert(*number, who) {
                    panic!("{number} is {other}'s and {who}'s: {:?}", self.clients);
                }
            }
        }
    }

    /// Whether everybody who is here has its part, and nothing is left.
    fn is_settled(&self) -> bool {
        let here: Vec<&Client> = self
            .clients
            .iter()
            .filter(|client| client.phase != Phase::Away)
            .collect();
        let owned: BTreeSet<i32> = here.iter().flat_map(|client| client.owned.iter().copied()).collect();
        here.iter().all(|client| client.phase == Phase::Stable) && owned == (0..self.partitions).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn no_partition_has_two_owners_and_in_the_end_each_has_one(
        protocol in prop_oneof![Just("range"), Just("sticky"), Just("cooperative-sticky"), Just("cooperative-sticky")],
        assignor in prop_oneof![Just(None), Just(Some("roundrobin")), Just(Some("sticky")), Just(Some("lag")), Just(Some("lag"))],
        acts in prop::collection::vec(act(), 1..60),
    ) {
        let mut world = World::new(protocol, assignor);
        for act in &acts {
            world.act(act);
        }
        world.act(&Act::Start(0));
        let mut seconds = 0;
        while !world.is_settled() {
            world.pass();
            seconds += 1;
            assert!(seconds < 200, "it does not settle: {:?}", world.clients);
        }
    }
}
