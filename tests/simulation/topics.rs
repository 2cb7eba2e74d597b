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
}

impl Default for Picture {
    fn default() -> Self {
        let topic = |partitions| State {
            creation: 1,
            partitions,
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

impl Picture {
    pub(crate) fn partitions(&self, topic: usize) -> impl Iterator<Item = TopicPartition> + use<> {
        let State { creation, partitions } = self.topics[topic];
        let topic_id = id(topic, creation);
        (0..partitions).map(move |partition| TopicPartition { topic_id, partition })
    }

    fn told(&self) -> Arc<Topics> {
        let mut told = Topics::default();
        let mut insert = |name: &str, id, partitions| {
            told.insert(Topic {
                name: name.into(),
                id,
                partitions,
                racks: 0,
            });
        };
        for (index, (name, partitions)) in TOPICS.iter().enumerate() {
            insert(name, Uuid::from_u128(index as u128 + 1), *partitions);
        }
        for (index, topic) in self.topics.iter().enumerate().filter(|(_, topic)| topic.partitions > 0) {
            insert(CHANGING[index], id(index, topic.creation), topic.partitions);
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

    /// A topic is created, grows, goes, or is another under its old name.
    pub(crate) fn change_topic(&mut self) -> Result<(), String> {
        let index = self.rng.below(CHANGING.len());
        let topic = &mut self.picture.topics[index];
        let gone = id(index, topic.creation);
        let was_there = topic.partitions > 0;
        let kind = self.rng.below(3);
        match (was_there, kind) {
            (true, 0) => topic.partitions = 0,
            (true, 1) => topic.creation += 1,
            (true, _) => topic.partitions = (topic.partitions + 2).min(MOST_PARTITIONS),
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
