//! Consumers of both protocols that do anything at any time, answers that are lost, topics that change and restarts: nothing
//! panics, no partition ever has two owners, and what is durable is what there is.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::consumer_client::{T, U, beat_of, join_of, shard_with, topics};
use super::consumer_migration::owning;
use super::group_test::GroupTest;
use super::requests::{join_as, old_join, static_join, sync_as};
use crate::coordinator::consumer_protocol::read_assignment;
use crate::coordinator::input::Ticket;
use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::coordinator::record::{ConsumerGroupRecord, CurrentAssignmentValue, Record};
use crate::coordinator::request::{ConsumerGroupHeartbeatRequest, HeartbeatRequest, Request, Response, Text};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

/// Which of the clients acts.
type Who = usize;

const CLIENTS: usize = 5;

#[derive(Debug, Clone)]
enum Act {
    /// The next heartbeat, which its client hears, or never hears.
    Beat(Who, bool),
    /// The next heartbeat without what its client owns.
    SilentBeat(Who),
    Subscribe(Who, u8),
    Rejoin(Who),
    Leave(Who, bool),
    ClassicJoin(u8),
    ClassicBeat,
    ClassicLeave,
    Topics(i32, i32),
    Pass(u64),
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    let who = 0..CLIENTS;
    prop_oneof![
        12 => (who.clone(), proptest::bool::weighted(0.8)).prop_map(|(who, heard)| Act::Beat(who, heard)),
        1 => who.clone().prop_map(Act::SilentBeat),
        2 => (who.clone(), 0..3_u8).prop_map(|(who, which)| Act::Subscribe(who, which)),
        1 => who.clone().prop_map(Act::Rejoin),
        2 => (who, any::<bool>()).prop_map(|(who, for_good)| Act::Leave(who, for_good)),
        2 => (0..3_u8).prop_map(Act::ClassicJoin),
        4 => Just(Act::ClassicBeat),
        1 => Just(Act::ClassicLeave),
        2 => (0..7_i32, 0..4_i32).prop_map(|(of_t, of_u)| Act::Topics(of_t, of_u)),
        4 => (0..20_000_u64).prop_map(Act::Pass),
        1 => Just(Act::Restart),
    ]
}

#[derive(Debug, Clone, Default)]
struct Consumer {
    epoch: i32,
    owned: Arc<Partitions>,
    waits_for: Option<Ticket>,
}

/// The one classic consumer.
#[derive(Debug, Clone, Default)]
struct Classic {
    id: Option<Text>,
    generation_id: i32,
    owned: Vec<i32>,
    waits_for: Option<Ticket>,
}

struct World {
    test: GroupTest,
    /// Everything that became durable before the last restart.
    log: Vec<Record>,
    consumers: Vec<Consumer>,
    classic: Classic,
    topics: (i32, i32),
}

impl World {
    fn new(interval_ms: Option<i32>) -> Self {
        Self {
            test: shard_with(Settings {
                group_consumer_assignment_interval_ms: interval_ms,
                ..Settings::default()
            }),
            log: Vec::new(),
            consumers: vec![Consumer::default(); CLIENTS],
            classic: Classic::default(),
            topics: (6, 3),
        }
    }

    /// The last one is a static member, whose incarnations take turns at two ids.
    fn request(&self, who: Who) -> ConsumerGroupHeartbeatRequest {
        let consumer = &self.consumers[who];
        let id = format!("m{who}");
        let request = match consumer.epoch {
            ..=0 => join_of(&id),
            epoch => ConsumerGroupHeartbeatRequest {
                topic_partitions: Some((*consumer.owned).clone()),
                ..beat_of(&id, epoch)
            },
        };
        ConsumerGroupHeartbeatRequest {
            group_instance_id: (who == CLIENTS - 1).then(|| "i".into()),
            ..request
        }
    }

    fn beat(&mut self, who: Who, request: ConsumerGroupHeartbeatRequest, heard: bool) {
        if self.consumers[who].waits_for.is_some() {
            return;
        }
        let ticket = self.test.send_beat(request);
        if heard {
            self.consumers[who].waits_for = Some(ticket);
        }
    }

    fn do_one(&mut self, act: Act) {
        match act {
            Act::Beat(who, heard) => self.beat(who, self.request(who), heard),
            Act::SilentBeat(who) if self.consumers[who].epoch > 0 => {
                let request = ConsumerGroupHeartbeatRequest {
                    topic_partitions: None,
                    ..self.request(who)
                };
                self.beat(who, request, true);
            }
            Act::Subscribe(who, which) => {
                let names = [vec!["t"], vec!["u"], vec!["t", "u", "none"]][usize::from(which)].clone();
                let request = ConsumerGroupHeartbeatRequest {
                    subscribed_topic_names: Some(names.into_iter().map(Text::from).collect()),
                    ..self.request(who)
                };
                self.beat(who, request, true);
            }
            Act::Rejoin(who) => {
                self.consumers[who].epoch = 0;
                self.consumers[who].owned = Arc::default();
                self.beat(who, self.request(who), true);
            }
            Act::Leave(who, for_good) => {
                let is_static = who == CLIENTS - 1;
                let request = ConsumerGroupHeartbeatRequest {
                    member_epoch: if is_static && !for_good { -2 } else { -1 },
                    topic_partitions: None,
                    ..self.request(who)
                };
                self.test.send_beat(request);
                self.consumers[who] = Consumer::default();
            }
            Act::ClassicJoin(how) => self.classic_join(how),
            Act::ClassicBeat => self.classic_beat(),
            Act::ClassicLeave => {
                if let Some(id) = self.classic.id.take() {
                    self.test.leave_group(&[(&id, None)]);
                }
                self.classic = Classic::default();
            }
            Act::Topics(of_t, of_u) => {
                self.topics = (of_t, of_u);
                let all = [("t", T, of_t), ("u", U, of_u)];
                let there: Vec<_> = all.into_iter().filter(|(_, _, partitions)| *partitions > 0).collect();
                self.test.tell_topics(topics(&there));
            }
            Act::Pass(ms) => self.test.advance_ms(ms),
            Act::Restart => self.restart(),
            Act::SilentBeat(_) => {}
        }
        self.listen();
    }

    fn classic_join(&mut self, how: u8) {
        if self.classic.waits_for.is_some() {
            return;
        }
        let request = match (&self.classic.id, how) {
            (Some(id), _) => owning(&self.classic.owned, join_as(id)),
            (None, 0) => owning(&[], static_join("i")),
            (None, _) => owning(&[], old_join()),
        };
        self.classic.waits_for = Some(self.test.join(request));
    }

    fn classic_beat(&mut self) {
        let Some(id) = self.classic.id.clone() else {
            return;
        };
        let sync = self.test.sync(sync_as(&id, self.classic.generation_id));
        if self.test.is_answered(sync) {
            let synced = self.test.sync_reply(sync);
            let assigned = read_assignment(&synced.assignment).filter(|_| synced.error == ErrorCode::NONE);
            if let Some(assigned) = assigned {
                let of_t = assigned.partitions.into_iter().filter(|(topic, _)| &**topic == "t");
                self.classic.owned = of_t.flat_map(|(_, numbers)| numbers).collect();
            }
        }
        let ticket = self.test.send(Request::Heartbeat(HeartbeatRequest {
            group_id: "g".into(),
            generation_id: self.classic.generation_id,
            member_id: id,
            group_instance_id: None,
        }));
        match self.test.reply(ticket) {
            Response::Heartbeat {
                error: ErrorCode::NONE | ErrorCode::REBALANCE_IN_PROGRESS,
            } => {}
            _ => self.classic = Classic::default(),
        }
    }

    fn restart(&mut self) {
        self.log.append(&mut self.test.records);
        self.test.records.clone_from(&self.log);
        self.test = self.test.restarted();
        // Answers that were still to come do not.
        for consumer in &mut self.consumers {
            consumer.waits_for = None;
        }
        self.classic.waits_for = None;
    }

    fn listen(&mut self) {
        for consumer in &mut self.consumers {
            let Some(ticket) = consumer.waits_for.filter(|ticket| self.test.is_answered(*ticket)) else {
                continue;
            };
            consumer.waits_for = None;
            match self.test.reply(ticket) {
                Response::ConsumerGroupHeartbeat(response) if response.error == ErrorCode::NONE => {
                    let is_sound = response.member_epoch > 0 && response.heartbeat_interval_ms > 0;
                    assert!(is_sound, "{response:?}");
                    consumer.epoch = response.member_epoch;
                    if let Some(assignment) = response.assignment {
                        consumer.owned = assignment;
                    }
                }
                Response::ConsumerGroupHeartbeat(_) => *consumer = Consumer::default(),
                other => panic!("not the answer to a heartbeat: {other:?}"),
            }
        }
        let answered = self.classic.waits_for.filter(|ticket| self.test.is_answered(*ticket));
        if let Some(ticket) = answered {
            self.classic.waits_for = None;
            let joined = self.test.join_reply(ticket);
            match joined.error {
                ErrorCode::NONE => {
                    self.classic.id = Some(joined.member_id);
                    self.classic.generation_id = joined.generation_id;
                }
                _ => self.classic = Classic::default(),
            }
        }
    }

    /// What each member holds by the records.
    fn held(&self) -> BTreeMap<Text, CurrentAssignmentValue> {
        let mut held = BTreeMap::new();
        for record in self.log.iter().chain(&self.test.records) {
            if let Record::ConsumerGroup {
                record: ConsumerGroupRecord::CurrentAssignment { member_id, value },
                ..
            } = record
            {
                match value {
                    Some(value) => held.insert(member_id.clone(), value.clone()),
                    None => held.remove(member_id),
                };
            }
        }
        held
    }

    fn check(&mut self) {
        let mut owners: BTreeMap<TopicPartition, Text> = BTreeMap::new();
        let group = self.test.describe_consumer();
        for (member_id, held) in self.held() {
            for (partition, epoch) in held.assigned.iter().chain(held.pending_revocation.iter()) {
                let other = owners.insert(partition, member_id.clone());
                assert_eq!(other, None, "{partition:?} has two owners");
                assert!(
                    epoch <= held.member_epoch.max(group.group_epoch),
                    "{member_id}: {held:?}"
                );
            }
            if group.error == ErrorCode::NONE {
                assert!(held.member_epoch <= group.assignment_epoch, "{member_id}: {held:?}");
            }
        }
        if group.error != ErrorCode::NONE {
            return;
        }
        assert!(group.assignment_epoch <= group.group_epoch);
        if &*group.state == "Stable" {
            let subscribed = |topic: &str| {
                let subscribes = |names: &[Text]| names.iter().any(|name| &**name == topic);
                group
                    .members
                    .iter()
                    .any(|member| subscribes(&member.subscribed_topic_names))
            };
            let all = [("t", self.topics.0), ("u", self.topics.1)];
            let expected: i32 = all
                .iter()
                .filter(|(topic, _)| subscribed(topic))
                .map(|(_, count)| count)
                .sum();
            let assigned = group.members.iter().flat_map(|member| &member.assignment);
            let assigned: usize = assigned.map(|topic| topic.partitions.len()).sum();
            assert_eq!(assigned, usize::try_from(expected).expect("few"), "{group:?}");
        }
    }

    /// A restart shows the same group, and whoever goes on comes to rest.
    fn finish(mut self) {
        let before = self.test.describe_consumer();
        self.restart();
        if before.error == ErrorCode::NONE {
            let after = self.test.describe_consumer();
            // New topics may have made it one more at once.
            assert_eq!(after.members.len(), before.members.len());
            assert!(after.group_epoch >= before.group_epoch);
        }
        self.act_all(&[Act::ClassicLeave, Act::Leave(CLIENTS - 1, true), Act::Pass(20_000)]);
        for _ in 0..30 {
            for who in 0..CLIENTS - 1 {
                self.do_one(Act::Beat(who, true));
            }
            self.do_one(Act::Pass(4_000));
            self.check();
        }
        assert_eq!(&*self.test.state(), "Stable");
    }

    fn act_all(&mut self, acts: &[Act]) {
        for act in acts {
            self.do_one(act.clone());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_members_do_no_partition_has_two_owners_and_the_group_comes_to_rest(
        interval_ms in prop_oneof![Just(None), Just(Some(0)), Just(Some(3_000))],
        acts in proptest::collection::vec(act(), 1..120)
    ) {
        let mut world = World::new(interval_ms);
        for act in acts {
            world.do_one(act);
            world.check();
        }
        world.finish();
    }
}
