//! A conversation for people: what was said, what was answered, and where the answers part.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::conversation::Held;
use crate::step::Step;

/// Letters of an answer that both sides gave.
const BRIEF: usize = 300;

pub fn show(held: &Held) -> String {
    let mut text = String::new();
    for turn in &held.turns {
        if let Some(step) = held.steps.get(turn.step) {
            let _ = writeln!(text, "{:3}: {}", turn.step, said(step));
        }
        let [broker, convoke] = &turn.answers;
        let steps: BTreeSet<usize> = broker.keys().chain(convoke.keys()).copied().collect();
        for step in steps {
            let answers = (broker.get(&step), convoke.get(&step));
            text.push_str(&match answers {
                (Some(broker), Some(convoke)) if broker == convoke => brief(step, broker),
                (broker, convoke) => parted(step, broker, convoke),
            });
        }
    }
    text
}

fn said(step: &Step) -> String {
    let lane = if step.lane == step.actor {
        String::new()
    } else {
        format!(" on connection {}", step.lane)
    };
    format!(
        "actor {}{lane}, {:?}, v{}: {:?}",
        step.actor, step.group, step.version, step.ask
    )
}

/// An answer on one line.
fn brief(step: usize, answer: &str) -> String {
    let words: Vec<&str> = answer.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(BRIEF).collect();
    format!("     answer to {step}: {line}\n")
}

/// Two answers line by line: a minus is the broker's, a plus Convoke's.
fn parted(step: usize, broker: Option<&String>, convoke: Option<&String>) -> String {
    let nothing = "no answer".to_owned();
    let broker: Vec<&str> = broker.unwrap_or(&nothing).lines().collect();
    let convoke: Vec<&str> = convoke.unwrap_or(&nothing).lines().collect();
    let mut text = format!("     answer to {step}:\n");
    let (mut at, mut other) = (0, 0);
    for (next, next_other) in common(&broker, &convoke)
        .into_iter()
        .chain([(broker.len(), convoke.len())])
    {
        for line in &broker[at..next] {
            let _ = writeln!(text, "   - {line}");
        }
        for line in &convoke[other..next_other] {
            let _ = writeln!(text, "   + {line}");
        }
        if let Some(line) = broker.get(next) {
            let _ = writeln!(text, "     {line}");
        }
        (at, other) = (next + 1, next_other + 1);
    }
    text
}

/// Where the longest lines that both have, in this order, stand in each.
fn common(left: &[&str], right: &[&str]) -> Vec<(usize, usize)> {
    let mut lengths = vec![vec![0_usize; right.len() + 1]; left.len() + 1];
    for at in (0..left.len()).rev() {
        for other in (0..right.len()).rev() {
            lengths[at][other] = if left[at] == right[other] {
                lengths[at + 1][other + 1] + 1
            } else {
                lengths[at + 1][other].max(lengths[at][other + 1])
            };
        }
    }
    let (mut at, mut other, mut pairs) = (0, 0, Vec::new());
    while at < left.len() && other < right.len() {
        if left[at] == right[other] {
            pairs.push((at, other));
            (at, other) = (at + 1, other + 1);
        } else if lengths[at + 1][other] >= lengths[at][other + 1] {
            at += 1;
        } else {
            other += 1;
        }
    }
    pairs
}
