//! Answers that differ, and what can be said of them.

use std::collections::BTreeSet;

use crate::conversation::Turn;
use crate::step::{Ask, Id, Instance, Named, Offset, Round, Step};

/// GROUP_MAX_SIZE_REACHED
pub const FULL: i16 = 81;

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
    pub fn ask(&self) -> Option<&Ask> {
        self.steps.get(self.step).map(|step| &step.ask)
    }

    /// Whether an actor leaves whose last join was told to come again with the id it was given.
    pub fn gives_an_unused_id_back(&self) -> bool {
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
    pub fn is_before_the_next_target(&self) -> bool {
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

    pub fn is_somebody_turned_away(&self) -> bool {
        let turn = self.turns.last();
        turn.is_some_and(|turn| turn.answers[0].values().any(|answer| has_error(answer, FULL)))
    }

    /// Whether the broker, and not Convoke, has just turned away somebody with an instance id since the group is full.
    pub fn is_a_static_member_refused(&self) -> bool {
        let Some(turn) = self.turns.last() else {
            return false;
        };
        let [broker, convoke] = &turn.answers;
        broker.iter().any(|(step, answer)| {
            let is_static = match self.steps.get(*step).map(|step| &step.ask) {
                Some(Ask::Join { instance, .. }) => *instance != Instance::None,
                Some(Ask::Beat(beat)) => beat.instance != Instance::None,
                _ => false,
            };
            let ours = convoke.get(step);
            is_static && has_error(answer, FULL) && !ours.is_some_and(|answer| has_error(answer, FULL))
        })
    }

    pub fn has_committed_oddly(&self) -> bool {
        let mut said = self.turns.iter().filter_map(|turn| self.steps.get(turn.step));
        said.any(|step| matches!(step.ask, Ask::Commit { .. }) && names_oddly(&step.ask))
    }

    pub fn is_of_uniform(&self) -> bool {
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
    pub fn only_convoke_answers(&self, error: i16) -> bool {
        self.broker.is_none() && self.convoke.is_some_and(|convoke| has_error(convoke, error))
    }
}

/// Whether both are answers, and the same but for these fields.
pub fn same_without(seen: &Seen<'_>, fields: &[&str]) -> bool {
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
pub fn without_assignments(answer: &str) -> Vec<&str> {
    answer
        .lines()
        .filter(|line| !line.starts_with("assignment of"))
        .collect()
}

/// Whether it is about offsets, and names a topic or partition twice, or a topic without partitions.
pub fn names_oddly(ask: &Ask) -> bool {
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
pub fn lists_twice(ask: &Ask) -> bool {
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

pub fn has_error(answer: &str, error: i16) -> bool {
    answer.contains(&format!("error_code: {error},"))
}
