//! Differences that stay, each with its reason. One that no conversation meets any more is reported, so that the list stays true.

use crate::conversation::Turn;
use crate::step::{Ask, Id, Round, Step};

/// One kind of difference.
#[derive(Debug)]
pub struct Accepted {
    pub name: &'static str,
    pub reason: &'static str,
    /// Which brokers it is met with.
    pub brokers: Brokers,
    pub then: Then,
    is_it: fn(&Seen<'_>) -> bool,
}

/// What becomes of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    GoesOn,
    /// The two sides' groups are no longer in the same state, so that nothing further can be compared.
    Ends,
    /// The same, though the answers do not differ yet.
    EndsUnseen,
}

/// Apache Kafka rewrote its coordinator for 4.0; Convoke answers as the new one does, whatever its upstream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brokers {
    Before4,
    All,
}

/// Answers that differ.
#[derive(Debug)]
pub struct Seen<'a> {
    pub is_old: bool,
    pub steps: &'a [Step],
    /// What was answered.
    pub step: usize,
    /// All turns so far; what differs is in the last.
    pub turns: &'a [Turn],
    pub broker: Option<&'a str>,
    pub convoke: Option<&'a str>,
}

impl Seen<'_> {
    fn ask(&self) -> Option<&Ask> {
        self.steps.get(self.step).map(|step| &step.ask)
    }

    /// Whether an actor leaves whose last join was told to come again with the id it was given.
    fn gives_an_unused_id_back(&self) -> bool {
        let Some(Ask::Leave { members }) = self.ask() else {
            return false;
        };
        let actor = self.steps.get(self.step).map(|step| step.actor);
        members.iter().any(|(id, _)| match id {
            Id::Own => actor.is_some_and(|actor| self.has_unused_id(actor)),
            Id::Of(other) => self.has_unused_id(*other),
            _ => false,
        })
    }

    fn has_unused_id(&self, actor: usize) -> bool {
        let mut joins = self.turns.iter().rev().filter_map(|turn| {
            let step = self.steps.get(turn.step)?;
            let is_join = step.actor == actor && matches!(step.ask, Ask::Join { .. });
            is_join.then(|| turn.answers[0].get(&turn.step))
        });
        // One that is parked has used it.
        joins.next().flatten().is_some_and(|answer| has_error(answer, 79))
    }

    /// Whether Convoke answered an earlier request on the same connection that the broker did not answer.
    fn is_behind_what_kafka_forgot(&self) -> bool {
        let lane = |step: usize| self.steps.get(step).map(|step| step.lane);
        let answered = |side: usize| self.turns.iter().flat_map(move |turn| turn.answers[side].keys());
        let mut earlier = answered(1).filter(|step| **step < self.step && lane(**step) == lane(self.step));
        earlier.any(|step| !answered(0).any(|answered| answered == step))
    }

    /// Convoke answers with this error what the broker does not answer.
    fn only_convoke_answers(&self, error: i16) -> bool {
        self.broker.is_none() && self.convoke.is_some_and(|convoke| has_error(convoke, error))
    }
}

/// Whether both are answers, and the same but for these fields.
fn same_without(seen: &Seen<'_>, fields: &[&str]) -> bool {
    let (Some(broker), Some(convoke)) = (seen.broker, seen.convoke) else {
        return false;
    };
    without(broker, fields) == without(convoke, fields)
}

/// An answer without the lines of some fields; one of several lines ends with the bracket as far in as its name.
fn without<'a>(answer: &'a str, fields: &[&str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut end: Option<String> = None;
    for line in answer.lines() {
        if let Some(bracket) = &end {
            if line == bracket {
                end = None;
            }
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let is_left_out = fields.iter().any(|field| {
            line.trim_start()
                .strip_prefix(field)
                .is_some_and(|rest| rest.starts_with(": "))
        });
        if !is_left_out {
            kept.push(line);
        } else if let Some(closing) = closing(line) {
            end = Some(format!("{}{closing},", " ".repeat(indent)));
        }
    }
    kept
}

/// What closes what this line opens.
fn closing(line: &str) -> Option<&'static str> {
    let pairs = [("[", "]"), ("(", ")"), ("{", "}")];
    pairs
        .into_iter()
        .find_map(|(opening, closing)| line.ends_with(opening).then_some(closing))
}

fn has_error(answer: &str, error: i16) -> bool {
    answer.contains(&format!("error_code: {error},"))
}

/// All of them.
pub static ACCEPTED: &[Accepted] = &[
    Accepted {
        name: "replaced request",
        reason: "A second join or sync of a member takes the place of its first one. Kafka forgets the first one's client, which \
                 waits until it times out; Convoke answers it REBALANCE_IN_PROGRESS.",
        brokers: Brokers::All,
        then: Then::GoesOn,
        is_it: |seen| seen.ask().is_some_and(Ask::may_park) && seen.only_convoke_answers(27),
    },
    Accepted {
        name: "behind a replaced request",
        reason: "What a client says on the connection of a request that Kafka forgot is not heard by Kafka any more.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_it: |seen| seen.broker.is_none() && seen.is_behind_what_kafka_forgot(),
    },
    Accepted {
        name: "parked sync of a member that is gone",
        reason: "Kafka leaves the sync of a member that is taken out to time out; Convoke answers it UNKNOWN_MEMBER_ID.",
        brokers: Brokers::All,
        then: Then::GoesOn,
        is_it: |seen| matches!(seen.ask(), Some(Ask::Sync { .. })) && seen.only_convoke_answers(25),
    },
    Accepted {
        name: "leader",
        reason: "When a leader is gone the first of the others leads: for Kafka the first in a hash map of random ids, for Convoke \
                 the one that is longest in the group.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_it: |seen| {
            let is_join = matches!(seen.ask(), Some(Ask::Join { .. }));
            is_join && same_without(seen, &["leader", "members"])
        },
    },
    Accepted {
        name: "id given back",
        reason: "A client that leaves before it used the id that it was given makes Kafka's group rebalance, though nobody came or \
                 went; Convoke's stays as it is.",
        brokers: Brokers::All,
        then: Then::EndsUnseen,
        is_it: |seen| seen.gives_an_unused_id_back(),
    },
    Accepted {
        name: "pattern",
        reason: "Kafka matches a pattern behind a heartbeat's back, and the member hears of what it matches with a later one. Convoke \
                 matches before it answers, as the README says.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_it: |seen| {
            let has_pattern = matches!(seen.ask(), Some(Ask::Beat(beat)) if beat.regex.is_some());
            has_pattern && same_without(seen, &["assignment"])
        },
    },
    Accepted {
        name: "static member that joins twice",
        reason: "A static member of a consumer group that did not hear the answer to its join, and joins again with the id that it \
                 chose, is the one that holds its instance id. Kafka refuses it as if it were another, which stock clients take as \
                 fatal; Convoke answers it.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_it: |seen| {
            let joins = matches!(seen.ask(), Some(Ask::Beat(beat)) if beat.epoch == Round::Exactly(0));
            let is_refused = seen.broker.is_some_and(|broker| has_error(broker, 111));
            joins && is_refused && seen.convoke.is_some_and(|convoke| has_error(convoke, 0))
        },
    },
];

/// The accepted difference that this is, if it is one.
pub fn find(seen: &Seen<'_>) -> Option<&'static Accepted> {
    let is_unseen = seen.broker == seen.convoke;
    let mut candidates = ACCEPTED
        .iter()
        .filter(|accepted| is_unseen == (accepted.then == Then::EndsUnseen));
    candidates.find(|accepted| accepted.is_met_with(seen.is_old) && (accepted.is_it)(seen))
}

impl Accepted {
    /// Whether brokers of that age can differ so.
    pub fn is_met_with(&self, is_old: bool) -> bool {
        is_old || self.brokers == Brokers::All
    }
}
