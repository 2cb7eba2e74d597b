//! The upstream's topics that change: those that clients of the consumer protocol are subscribed to.

use std::sync::Arc;

use convoke::coordinator::input::{DeletedTopic, Input};
use convoke::coordinator::partitions::TopicPartition;
use convoke::coordinator::request::{ResolvedRegex, Text};
use convoke::coordinator::topics::{Topic, Topics};
use uuid::Uuid;

use crate::plan::TOPICS;
use crate::world::{Planted, World};

pub(crate) const CHANGING: [&str; 3] = ["m0", "m1", "m2"];
/// What members subscribe to by a pattern, and which of the changing topics it stands for.
pub(crate) const PATTERNS: [(&str, &[usize]); 2] = [("m.*", &[0, 1, 2]), ("m[12]", &[1, 2])];
const MOST_PARTITIONS: i32 = 9;

/// A partition of a topic's index, of the topic that had the name at that time.
pub(crate) type Place = (usize, u32, i32);

/// The changing topics as they are now.
#[derive(Debug)]
pub(crate) struct Picture {
    topics: [State; CHANGING.len()],
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// How often the name was given to a topic.
    creation: u32,
    /// 0 while there is no such topic.
    partitions: i32,
    racks: u64,
}

impl Default for Picture {
    fn default() -> Self {
        let topic = |partitions| State {
            creation: 1,
            partitions,
            racks: 0,
        };
        Self {
            topics: [topic(4), topic(2), topic(0)],
        }
    }
}

fn id(topic: usize, creation: u32) -> Uuid {
    Uuid::from_u128((topic as u128 + 100) << 32 | u128::from(creation))
}

/// Which of the changing topics had this id at any time.
pub(crate) fn index_of(id: &Uuid) -> usize {
    usize::try_from(id.as_u128() >> 32).unwrap() - 100
}

/// A partition of a changing topic, by all topics' indexes.
pub(crate) fn place_of(partition: &TopicPartition) -> Place {
    let creation = u32::try_from(partition.topic_id.as_u128() & u128::from(u32::MAX)).unwrap();
    (
        TOPICS.len() + index_of(&partition.topic_id),
        creation,
        partition.partition,
    )
}

/// The names of all topics: first those that stay, then those that change.
fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|(name, _)| *name).chain(CHANGING)
}

pub(crate) fn name_of(topic: usize) -> &'static str {
    names().nth(topic).unwrap()
}

pub(crate) fn index_of_name(name: &str) -> Result<usize, String> {
    let index = names().position(|topic| topic == name);
    index.ok_or_else(|| format!("unknown topic {name}"))
}

impl Picture {
    /// How many partitions a topic has, by all topics' indexes.
    pub(crate) fn count(&self, topic: usize) -> i32 {
        match TOPICS.get(topic) {
            Some((_, partitions)) => *partitions,
            None => self.topics[topic - TOPICS.len()].partitions,
        }
    }

    /// How often the name was given to a topic.
    pub(crate) fn creation(&self, topic: usize) -> u32 {
        topic
            .checked_sub(TOPICS.len())
            .map_or(0, |changing| self.topics[changing].creation)
    }

    /// All partitions of a topic, by all topics' indexes.
    pub(crate) fn places(&self, topic: usize) -> impl Iterator<Item = Place> + use<> {
        let creation = self.creation(topic);
        (0..self.count(topic)).map(move |number| (topic, creation, number))
    }

    fn told(&self) -> Arc<Topics> {
        let mut told = Topics::default();
        let mut insert = |name: &str, id, partitions, racks| {
            told.insert(Topic {
                name: name.into(),
                id,
                partitions,
                racks,
            });
        };
        for (index, (name, partitions)) in TOPICS.iter().enumerate() {
            insert(name, Uuid::from_u128(index as u128 + 1), *partitions, 0);
        }
        for (index, topic) in self.topics.iter().enumerate().filter(|(_, topic)| topic.partitions > 0) {
            insert(
                CHANGING[index],
                id(index, topic.creation),
                topic.partitions,
                topic.racks,
            );
        }
        Arc::new(told)
    }

    /// What the handler finds that these patterns stand for.
    pub(crate) fn resolve(&self, patterns: &[Text]) -> Vec<ResolvedRegex> {
        let resolve = |pattern: &Text| {
            let (_, topics) = PATTERNS.iter().find(|(known, _)| **known == **pattern)?;
            let topics = topics.iter().filter(|topic| self.topics[**topic].partitions > 0);
            Some(ResolvedRegex {
                pattern: pattern.clone(),
                topics: topics.map(|topic| CHANGING[*topic].into()).collect(),
            })
        };
        patterns.iter().filter_map(resolve).collect()
    }
}

impl World {
    pub(crate) fn tell_topics(&mut self) -> Result<(), String> {
        let topics = self.picture.told();
        self.step(Input::Topics(topics))
    }

    /// A topic is created, grows, goes, moves to other racks, or is another under its old name.
    pub(crate) fn change_topic(&mut self) -> Result<(), String> {
        let index = self.rng.below(CHANGING.len());
        let topic = &mut self.picture.topics[index];
        let gone = id(index, topic.creation);
        let was_there = topic.partitions > 0;
        let kind = self.rng.below(4);
        match (was_there, kind) {
            (true, 0) => topic.partitions = 0,
            (true, 1) => topic.creation += 1,
            (true, 2) => topic.partitions = (topic.partitions + 2).min(MOST_PARTITIONS),
            (true, _) => topic.racks += 1,
            (false, _) => {
                topic.creation += 1;
                topic.partitions = 3;
            }
        }
        let topic = *topic;
        self.note(|| format!("topic {} is now {topic:?}", CHANGING[index]));
        if self.planted != Planted::UntoldTopics {
            self.tell_topics()?;
        }
        if was_there && kind < 2 {
            self.checker.topic_deleted(TOPICS.len() + index);
            self.upstream.delete_topic(TOPICS.len() + index);
            let name = CHANGING[index].into();
            self.step(Input::TopicsDeleted(vec![DeletedTopic { name, id: gone }]))?;
        }
        Ok(())
    }
}
