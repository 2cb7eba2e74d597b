//! Differences that stay, each with its reason. One that no conversation meets any more is reported, so that the list stays true.

use std::collections::BTreeSet;

use crate::conversation::Turn;
use crate::step::{Ask, Id, Named, Offset, Round, Step};

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

    /// Whether a member of a consumer group left, and no other was heard since, or only one that joined.
    fn is_before_the_next_target(&self) -> bool {
        let (mut is_before, mut has_parted) = (false, false);
        for turn in self.turns {
            let answer = turn.answers[0].get(&turn.step);
            if turn.step == self.step || !answer.is_some_and(|answer| has_error(answer, 0)) {
                continue;
            }
            match self.steps.get(turn.step).map(|step| &step.ask) {
                Some(Ask::Leave { .. }) => is_before = true,
                Some(Ask::Beat(beat)) if matches!(beat.epoch, Round::Exactly(..0)) => is_before = true,
                Some(Ask::Beat(beat)) if beat.epoch != Round::Exactly(0) => is_before = false,
                Some(Ask::Beat(_) | Ask::Join { .. }) => has_parted |= is_before && self.is_of_uniform(),
                _ => {}
            }
        }
        let is_downgraded = self
            .broker
            .is_some_and(|broker| broker.contains("\"PreparingRebalance\""));
        (is_before || has_parted) && self.is_of_consumers() && !is_downgraded
    }

    fn is_of_uniform(&self) -> bool {
        let mut beats = self.steps.iter().filter_map(|step| match &step.ask {
            Ask::Beat(beat) => Some(beat),
            _ => None,
        });
        beats.any(|beat| beat.assignor == Some("uniform"))
    }

    /// Whether somebody spoke the consumer protocol.
    fn is_of_consumers(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.ask, Ask::Beat(_)))
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

/// A description without the lines about assignments.
fn without_assignments(answer: &str) -> Vec<&str> {
    answer
        .lines()
        .filter(|line| !line.starts_with("assignment of"))
        .collect()
}

/// Whether it is about offsets, and names a topic or partition twice, or a topic without partitions.
fn names_oddly(ask: &Ask) -> bool {
    let named: Named = match ask {
        Ask::Commit { topics, .. } => {
            let partitions = |offsets: &Vec<Offset>| offsets.iter().map(|offset| offset.partition).collect();
            topics
                .iter()
                .map(|(topic, offsets)| (*topic, partitions(offsets)))
                .collect()
        }
        Ask::Fetch { topics, groups, .. } => {
            let groups_once = groups
                .iter()
                .enumerate()
                .all(|(at, group)| !groups[..at].contains(group));
            match topics {
                _ if !groups_once => return true,
                Some(topics) => topics.clone(),
                None => return false,
            }
        }
        Ask::DeleteOffsets { topics } => topics.clone(),
        _ => return false,
    };
    let is_without = named.iter().any(|(_, partitions)| partitions.is_empty());
    let all: Vec<(&str, i32)> = named
        .iter()
        .flat_map(|(topic, partitions)| partitions.iter().map(|partition| (*topic, *partition)))
        .collect();
    let topics: BTreeSet<&str> = named.iter().map(|(topic, _)| *topic).collect();
    let once: BTreeSet<(&str, i32)> = all.iter().copied().collect();
    is_without || topics.len() < named.len() || once.len() < all.len()
}

/// Whether it is a join with two protocols of the same name.
fn lists_twice(ask: &Ask) -> bool {
    let Ask::Join { protocols, .. } = ask else {
        return false;
    };
    let names: BTreeSet<&str> = protocols.iter().map(|(name, _)| *name).collect();
    names.len() < protocols.len()
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
        name: "3.8: topics in maps",
        reason: "Kafka 3.8 keeps topics and partitions of requests about offsets in maps, in which what is named twice is named once \
                 and a topic without partitions is not named.",
        brokers: Brokers::Before4,
        then: Then::GoesOn,
        is_it: |seen| seen.ask().is_some_and(names_oddly),
    },
    Accepted {
        name: "3.8: a commit in a group that is not there",
        reason: "Kafka 3.8's own coordinator knows no GROUP_ID_NOT_FOUND for commits, and says ILLEGAL_GENERATION in v9, too.",
        brokers: Brokers::Before4,
        then: Then::GoesOn,
        is_it: |seen| {
            let (Some(broker), Some(convoke)) = (seen.broker, seen.convoke) else {
                return false;
            };
            let is_commit = matches!(seen.ask(), Some(Ask::Commit { .. }));
            is_commit && broker.replace("error_code: 22,", "error_code: 69,") == convoke
        },
    },
    Accepted {
        name: "3.8: assignments while a group rebalances",
        reason: "Kafka 3.8 describes members with their last assignments only while their group is stable.",
        brokers: Brokers::Before4,
        then: Then::GoesOn,
        is_it: |seen| {
            let is_described = matches!(seen.ask(), Some(Ask::Describe { .. }));
            let (Some(broker), Some(convoke)) = (seen.broker, seen.convoke) else {
                return false;
            };
            is_described && without_assignments(broker) == without_assignments(convoke)
        },
    },
    Accepted {
        name: "3.8: equal votes",
        reason: "Of protocols with equally many votes Kafka 3.8 takes that of the member which is first in a hash map of random ids; \
                 Kafka 4 and Convoke take the one which is first in a hash map of their names.",
        brokers: Brokers::Before4,
        then: Then::Ends,
        is_it: |seen| {
            let is_join = matches!(seen.ask(), Some(Ask::Join { .. }));
            is_join && same_without(seen, &["protocol_name", "members"])
        },
    },
    Accepted {
        name: "3.8: the last offset",
        reason: "Kafka 3.8 deletes an empty group with its last offset; Kafka 4 and Convoke keep it until it expires.",
        brokers: Brokers::Before4,
        then: Then::Ends,
        is_it: |seen| {
            let said = seen.steps.iter().take(seen.step + 1);
            let has_deleted = said
                .into_iter()
                .any(|step| matches!(step.ask, Ask::DeleteOffsets { .. }));
            let broker = seen.broker.unwrap_or_default();
            let is_gone = match seen.ask() {
                Some(Ask::Describe { .. }) => broker.contains("\"Dead\""),
                Some(Ask::Delete { .. } | Ask::DeleteOffsets { .. }) => has_error(broker, 69),
                Some(Ask::List { .. }) => true,
                _ => false,
            };
            has_deleted && is_gone
        },
    },
    Accepted {
        name: "protocol that is listed twice",
        reason: "Kafka counts a protocol that a member lists twice for two members, finds none that all support, and never answers \
                 the group's joins again; for Convoke the member supports it once.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_it: |seen| {
            let said = seen.turns.iter().filter_map(|turn| seen.steps.get(turn.step));
            said.into_iter().any(|step| lists_twice(&step.ask))
        },
    },
    Accepted {
        name: "classic member that comes back with partitions",
        reason: "A classic member that was taken out of a consumer group, and says that it still has partitions, may have lost them \
                 to others: Convoke tells it UNKNOWN_MEMBER_ID, so that it gives them up. Kafka lets it in.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_it: |seen| {
            let is_in = seen.broker.is_some_and(|broker| has_error(broker, 0));
            let is_join = matches!(seen.ask(), Some(Ask::Join { .. }));
            is_join && is_in && seen.convoke.is_some_and(|convoke| has_error(convoke, 25))
        },
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
        name: "target of those that are left",
        reason: "When a member of a consumer group leaves, Convoke computes the target of the others at once, Kafka with the next \
                 heartbeat of one of them. Where somebody joins in between, the uniform assignor, which leaves as much as it can where \
                 the last target had it, may come to another one.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_it: |seen| seen.is_before_the_next_target(),
    },
    Accepted {
        name: "assignments on the way back",
        reason: "A consumer group that becomes a classic one again says of its members what they have; Kafka says what they were \
                 to have, which others may still read.",
        brokers: Brokers::All,
        then: Then::GoesOn,
        is_it: |seen| {
            let (Some(broker), Some(convoke)) = (seen.broker, seen.convoke) else {
                return false;
            };
            let is_rebalancing = broker.contains("\"PreparingRebalance\"");
            matches!(seen.ask(), Some(Ask::Describe { .. }))
                && is_rebalancing
                && without_assignments(broker) == without_assignments(convoke)
        },
    },
    Accepted {
        name: "consumer in the middle of a round",
        reason: "A consumer that joins a classic group whose round is not over makes Kafka read the metadata of members for a protocol \
                 that they may not have, which fails with UNKNOWN_SERVER_ERROR and answers their joins; Convoke refuses the consumer.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_it: |seen| {
            let Some(turn) = seen.turns.last() else {
                return false;
            };
            let [broker, convoke] = turn.answers.each_ref().map(|answers| answers.get(&turn.step));
            let is_beat = seen
                .steps
                .get(turn.step)
                .is_some_and(|step| matches!(step.ask, Ask::Beat(_)));
            is_beat
                && broker.is_some_and(|broker| has_error(broker, -1))
                && convoke.is_some_and(|convoke| has_error(convoke, 69))
        },
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
            let is_refused = seen.broker.is_some_and(|broker| has_error(broker, 111));
            is_refused && seen.convoke.is_some_and(|convoke| has_error(convoke, 0))
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
