//! What classic members say.

use super::Writer;
use crate::answers::Placement;
use crate::step::{Ask, Assign, Id, Instance, Metadata, Owned, Round, Said};
use crate::world::OWN_TOPIC;

/// Nobody is thrown out while a conversation lasts.
const SESSION_MS: i32 = 600_000;
const REBALANCE_MS: i32 = 300_000;

impl Writer<'_> {
    pub(super) fn as_classic_member(&mut self, actor: usize) {
        if !self.is_in[actor] {
            self.enter(actor);
            if self.rng.chance(600) {
                self.settle();
            }
            return;
        }
        match self.rng.below(100) {
            0..25 => self.settle(),
            25..35 => self.rejoin(actor),
            35..50 => self.sync(actor),
            50..55 => {
                for member in self.members() {
                    self.sync(member);
                }
            }
            55..80 => self.heartbeat(actor),
            80..90 => self.leave(actor),
            _ => self.enter(actor),
        }
    }

    /// A first join, and the second one that gives back the id which newer versions are given by the first.
    fn enter(&mut self, actor: usize) {
        let Some(version) = self.version(convoke::wire::api::JOIN_GROUP) else {
            return;
        };
        self.is_in[actor] = true;
        let join = self.join(actor, Id::Empty);
        self.say_in(version, actor, join);
        let is_static = self.instance(actor) != Instance::None && version >= 5;
        if version >= 4 && !is_static {
            let join = self.join(actor, Id::Own);
            self.say_in(version, actor, join);
        }
    }

    fn rejoin(&mut self, actor: usize) {
        let id = match self.instance(actor) {
            Instance::Own if self.rng.chance(400) => Id::Empty,
            _ => Id::Own,
        };
        let join = self.join(actor, id);
        self.say(actor, join);
    }

    /// Every member joins again, then every member syncs.
    fn settle(&mut self) {
        for member in self.members() {
            if self.is_classic(member) {
                let join = self.join(member, Id::Own);
                self.say(member, join);
            } else {
                self.beat(member);
            }
        }
        for member in self.members() {
            if self.is_classic(member) {
                self.sync(member);
            }
        }
    }

    fn join(&mut self, actor: usize, id: Id) -> Ask {
        let (protocol_type, protocols) = if self.is_connect {
            let names = *self
                .rng
                .pick(&[&["sessioned"][..], &["sessioned", "default"], &["default", "sessioned"]]);
            let protocols = names
                .iter()
                .map(|name| (*name, Metadata::Bytes(b"\0\x01worker")))
                .collect();
            ("connect", protocols)
        } else {
            let sets: &[&[&str]] = &[
                &["range"],
                &["range", "cooperative-sticky"],
                &["cooperative-sticky", "range"],
                &["roundrobin", "range"],
            ];
            let topics = self.subscription(actor);
            let protocols = self.rng.pick(sets).iter().map(|name| {
                let (version, owned) = match *name {
                    "cooperative-sticky" => (3, Owned::Told),
                    _ => (1, Owned::Nothing),
                };
                let metadata = Metadata::Subscription {
                    version,
                    topics: topics.clone(),
                    owned,
                };
                (*name, metadata)
            });
            ("consumer", protocols.collect())
        };
        Ask::Join {
            id,
            instance: self.instance(actor),
            session_ms: SESSION_MS,
            rebalance_ms: REBALANCE_MS,
            protocol_type,
            protocols,
        }
    }

    /// The topics that an actor reads, most of the time the same.
    pub(super) fn subscription(&mut self, actor: usize) -> Vec<&'static str> {
        if self.placement == Placement::Any {
            // As many members as there are have equal parts of it.
            return vec!["sixty"];
        }
        let sets: &[&[&str]] = match self.own_partitions {
            None => &[&["three"], &["three", "one"], &["one", "twelve"], &["three", "none"]],
            Some(_) => &[&[OWN_TOPIC], &[OWN_TOPIC, "one"], &["three", OWN_TOPIC], &["three"]],
        };
        let usual = (self.statics >> (20 + 4 * actor)) as usize % sets.len();
        let set = if self.rng.chance(150) {
            self.rng.below(sets.len())
        } else {
            usual
        };
        sets[set].to_vec()
    }

    fn sync(&mut self, actor: usize) {
        let sync = Ask::Sync {
            id: Id::Own,
            instance: self.instance(actor),
            generation: Round::Own,
            protocol: Said::Right,
            assign: Assign::Partitions,
        };
        self.say(actor, sync);
    }

    fn heartbeat(&mut self, actor: usize) {
        let heartbeat = Ask::Heartbeat {
            id: Id::Own,
            instance: self.instance(actor),
            generation: Round::Own,
        };
        self.say(actor, heartbeat);
    }

    pub(super) fn leave(&mut self, actor: usize) {
        let mut leaving = vec![actor];
        while self.rng.chance(250) {
            leaving.push(self.other());
        }
        let members = leaving.iter().map(|member| {
            self.is_in[*member] = false;
            match self.instance(*member) {
                Instance::Own if self.rng.chance(300) => (Id::Empty, Instance::Of(*member)),
                Instance::Own => (Id::Of(*member), Instance::Of(*member)),
                _ => (Id::Of(*member), Instance::None),
            }
        });
        let members = members.collect();
        self.say(actor, Ask::Leave { members });
        self.let_another_be_heard();
    }
}
