//! Conversations that chance does not hold, or not soon: those that need time to pass, and one for each accepted difference.

mod classic;
mod consumer;
mod offsets;
mod sizes;
mod time;
mod topics;

use crate::answers::Placement;
use crate::generate::Conversation;
use crate::step::{Ask, Group, Step};

/// A conversation with a name.
pub struct Script {
    pub name: &'static str,
    pub conversation: Conversation,
}

/// What is held before anything else, since it is about what all conversations share. A topic that goes makes brokers before 4.0
/// forget every empty group without offsets, so that there only one conversation may have one.
pub fn alone(is_old: bool) -> Vec<Script> {
    let mut alone = vec![offsets::nameless()];
    if is_old {
        alone.extend(topics::all(is_old));
    }
    alone
}

/// Those that can be held with a broker of that age.
pub fn all(is_old: bool) -> Vec<Script> {
    let mut all = classic::all();
    all.extend(offsets::all());
    all.extend(sizes::all(is_old));
    if !is_old {
        all.extend(consumer::all());
    }
    all
}

/// Those in which time passes, or both sides have to hear of something: they mostly wait.
pub fn slow(is_old: bool) -> Vec<Script> {
    let mut all = time::all(is_old);
    if !is_old {
        all.extend(topics::all(is_old));
    }
    all
}

fn script(name: &'static str, steps: Vec<Step>) -> Script {
    Script {
        name,
        conversation: Conversation {
            placement: Placement::Exact,
            steps,
        },
    }
}

/// An actor says something on its own connection, about the first group.
fn says(actor: usize, version: i16, ask: Ask) -> Step {
    Step {
        actor,
        lane: actor,
        group: Group::Known(0),
        version,
        ask,
    }
}

fn silence(ms: u64) -> Step {
    says(0, 0, Ask::Silence { ms })
}
