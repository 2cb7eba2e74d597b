//! What an actor knows on one side: ids, generations and partitions as that side's coordinator told it.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::answers::Answer;
use crate::assignment;
use crate::names::Names;
use crate::step::{Id, Instance, Owned, Round};
use crate::world::Topics;

/// Partitions by the id of their topic.
pub type Held = BTreeMap<Uuid, BTreeSet<i32>>;

/// A member that a join's answer named.
#[derive(Debug, Clone)]
pub struct Named {
    pub id: String,
    pub topics: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub struct Actor {
    pub id: String,
    pub former_id: String,
    pub round: i32,
    pub former_round: i32,
    /// Type and name, as the last join said; of versions that do not say it, the name alone.
    pub protocol: (Option<String>, Option<String>),
    /// Whom the last join's answer told it to assign for.
    pub members: Vec<Named>,
    pub held: Held,
}

/// All actors of one side.
#[derive(Debug, Clone)]
pub struct Actors(Vec<Actor>);

impl Actors {
    pub fn new(count: usize) -> Self {
        Self(vec![Actor::default(); count])
    }

    pub fn get(&self, actor: usize) -> &Actor {
        &self.0[actor]
    }

    pub fn id(&self, actor: usize, id: Id) -> String {
        match id {
            Id::Own => self.0[actor].id.clone(),
            Id::Former => self.0[actor].former_id.clone(),
            Id::Chosen => format!("chosen-{actor}"),
            Id::ChosenAnew => format!("chosen-anew-{actor}"),
            Id::Empty => String::new(),
            Id::Stranger => "stranger".to_owned(),
            Id::Of(other) => self.0[other].id.clone(),
        }
    }

    pub fn instance(actor: usize, instance: Instance) -> Option<String> {
        match instance {
            Instance::None => None,
            Instance::Own => Some(format!("instance-{actor}")),
            Instance::Of(other) => Some(format!("instance-{other}")),
            Instance::Stranger => Some("no-instance".to_owned()),
            Instance::Empty => Some(String::new()),
        }
    }

    pub fn round(&self, actor: usize, round: Round) -> i32 {
        match round {
            Round::Own => self.0[actor].round,
            Round::Next => self.0[actor].round + 1,
            Round::Former => self.0[actor].former_round,
            Round::Exactly(round) => round,
        }
    }

    /// `None` where nothing is said.
    pub fn owned(&self, actor: usize, owned: Owned, topics: &Topics) -> Option<Held> {
        let mut held = self.0[actor].held.clone();
        match owned {
            Owned::Unsaid => return None,
            Owned::Nothing => held.clear(),
            Owned::Told => {}
            Owned::Fewer => {
                if let Some(mut topic) = held.last_entry() {
                    topic.get_mut().pop_last();
                    if topic.get().is_empty() {
                        topic.remove();
                    }
                }
            }
            Owned::More => {
                let partitions = held.entry(topics.any_id()).or_default();
                let more = partitions.last().map_or(0, |last| last + 1);
                partitions.insert(more);
            }
            Owned::Of(other) => held = self.0[other].held.clone(),
        }
        Some(held)
    }

    /// Takes over what an answer tells its actor.
    pub fn learn(&mut self, actor: usize, answer: &Answer, names: &mut Names, topics: &Topics) {
        let actor_number = actor;
        let actor = &mut self.0[actor];
        match answer {
            Answer::Join(joined) => {
                names.give(actor_number, &joined.member_id);
                // MEMBER_ID_REQUIRED gives an id and nothing else.
                if matches!(joined.error_code, 0 | 79) {
                    actor.is_called(&joined.member_id);
                }
                if joined.error_code == 0 {
                    actor.hears_round(joined.generation_id);
                    let said = |text: &Option<_>| text.as_ref().map(ToString::to_string);
                    actor.protocol = (said(&joined.protocol_type), said(&joined.protocol_name));
                    actor.members = joined.members.iter().map(named).collect();
                }
            }
            Answer::Sync(synced) if synced.error_code == 0 => {
                if let Some(held) = assignment::read(&synced.assignment, topics) {
                    actor.held = held;
                }
            }
            Answer::Beat(beaten) if beaten.error_code == 0 => {
                if let Some(id) = &beaten.member_id {
                    names.give(actor_number, id);
                    actor.is_called(id);
                }
                actor.hears_round(beaten.member_epoch);
                if let Some(assignment) = &beaten.assignment {
                    let topics = assignment.topic_partitions.iter();
                    actor.held = topics
                        .map(|topic| (topic.topic_id, topic.partitions.iter().copied().collect()))
                        .collect();
                }
            }
            _ => {}
        }
    }
}

impl Actor {
    fn is_called(&mut self, id: &str) {
        if self.id != id {
            self.former_id = std::mem::replace(&mut self.id, id.to_owned());
        }
    }

    fn hears_round(&mut self, round: i32) {
        if self.round != round {
            self.former_round = std::mem::replace(&mut self.round, round);
        }
    }
}

fn named(member: &kafka_protocol::messages::join_group_response::JoinGroupResponseMember) -> Named {
    Named {
        id: member.member_id.to_string(),
        topics: assignment::topics(&member.metadata),
    }
}
