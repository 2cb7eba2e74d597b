//! Conversations that chance does not hold, or not soon: those that need time to pass, and one for each accepted difference.

mod classic;
mod consumer;
mod offsets;

use crate::answers::Placement;
use crate::generate::Conversation;
use crate::step::{Ask, Group, Step};

/// A conversation with a name.
pub struct Script {
    pub name: &'static str,
    pub conversation: Conversation,
}

/// Those that can be held with a broker of that age.
pub fn all(is_old: bool) -> Vec<Script> {
    let mut all = classic::all();
    all.extend(offsets::all());
    if !is_old {
        all.extend(consumer::all());
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
