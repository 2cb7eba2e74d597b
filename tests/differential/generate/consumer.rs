//! What members of the consumer protocol say.

use super::Writer;
use crate::answers::Placement;
use crate::step::{Ask, Beat, Id, Instance, Owned, Round};

const REBALANCE_MS: i32 = 300_000;

impl Writer<'_> {
    pub(super) fn as_consumer(&mut self, actor: usize) {
        if !self.is_in[actor] {
            self.join_as_consumer(actor);
            return;
        }
        match self.rng.below(100) {
            0..25 => self.beat(actor),
            25..55 => {
                for _ in 0..2 {
                    for member in self.members() {
                        if self.is_classic(member) {
                            self.as_classic_member(member);
                        } else {
                            self.acknowledge(member);
                        }
                    }
                }
            }
            55..70 => self.acknowledge(actor),
            70..78 => self.say_everything(actor),
            78..90 => self.leave_as_consumer(actor),
            90..94 => self.leave(actor),
            _ => self.join_as_consumer(actor),
        }
    }

    fn join_as_consumer(&mut self, actor: usize) {
        self.is_in[actor] = true;
        let id = match (self.placement, self.rng.below(10)) {
            (Placement::Any, 0..3) => Id::Empty,
            (_, 9) => Id::ChosenAnew,
            _ => Id::Chosen,
        };
        let topics = self.subscription(actor);
        let beat = Beat {
            epoch: Round::Exactly(0),
            rebalance_ms: REBALANCE_MS,
            topics: Some(topics),
            owned: Owned::Nothing,
            ..self.silent(actor, id)
        };
        self.say(actor, Ask::Beat(beat));
    }

    /// A heartbeat that says nothing new.
    fn silent(&mut self, actor: usize, id: Id) -> Beat {
        let assignor = match self.placement {
            Placement::Exact => "range",
            Placement::Any => "uniform",
        };
        Beat {
            id,
            instance: self.instance(actor),
            epoch: Round::Own,
            rack: None,
            rebalance_ms: -1,
            topics: None,
            regex: None,
            assignor: Some(assignor),
            owned: Owned::Unsaid,
        }
    }

    pub(super) fn beat(&mut self, actor: usize) {
        let beat = self.silent(actor, Id::Own);
        self.say(actor, Ask::Beat(beat));
    }

    fn acknowledge(&mut self, actor: usize) {
        let beat = Beat {
            owned: Owned::Told,
            ..self.silent(actor, Id::Own)
        };
        self.say(actor, Ask::Beat(beat));
    }

    fn say_everything(&mut self, actor: usize) {
        let topics = self.subscription(actor);
        let owned = *self.rng.pick(&[Owned::Told, Owned::Told, Owned::Fewer, Owned::Nothing]);
        let beat = Beat {
            rebalance_ms: REBALANCE_MS,
            topics: Some(topics),
            owned,
            ..self.silent(actor, Id::Own)
        };
        self.say(actor, Ask::Beat(beat));
    }

    fn leave_as_consumer(&mut self, actor: usize) {
        let epoch = match self.instance(actor) {
            Instance::Own if self.rng.chance(600) => -2,
            _ => -1,
        };
        self.is_in[actor] = false;
        let beat = Beat {
            epoch: Round::Exactly(epoch),
            ..self.silent(actor, Id::Own)
        };
        self.say(actor, Ask::Beat(beat));
        self.let_another_be_heard();
    }

    /// Kafka computes the target of those that are left with the next heartbeat, Convoke does at once.
    pub(super) fn let_another_be_heard(&mut self) {
        let heard = self.members().into_iter().find(|member| !self.is_classic(*member));
        if let Some(member) = heard {
            self.beat(member);
        }
    }
}
