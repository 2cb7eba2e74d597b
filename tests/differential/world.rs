//! A broker, and Convoke in front of it. Both coordinate groups of their own: the broker those whose ids begin with "b-", Convoke
//! those that begin with "c-". The topics are the same, and so are their ids.

use std::collections::BTreeMap;

use convoke::wire::api;
use convoke_support::Result;
use convoke_support::convoke::Convoke;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use uuid::Uuid;

use crate::admin::Admin;

/// The name of the only node.
const NODE: i32 = 1;
/// The topics that there are, with the number of their partitions.
const TOPICS: [(&str, i32); 4] = [("one", 1), ("three", 3), ("twelve", 12), ("sixty", 60)];
const CONSUMER_GROUP_APIS: [i16; 2] = [api::CONSUMER_GROUP_HEARTBEAT, api::CONSUMER_GROUP_DESCRIBE];
/// A topic that there is not.
pub const NO_TOPIC: &str = "none";

/// The two coordinators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Broker,
    Convoke,
}

impl Side {
    /// What the ids of its groups begin with; as long on both sides.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Broker => "b-",
            Self::Convoke => "c-",
        }
    }
}

/// What a conversation calls the topic that only it has.
pub const OWN_TOPIC: &str = "own";

/// Topics and their ids, as one conversation knows them.
#[derive(Debug, Clone, Default)]
pub struct Topics {
    ids: BTreeMap<String, Uuid>,
    /// The true name of the conversation's own topic.
    own: String,
    /// Its partitions; none while it is not there.
    own_partitions: i32,
}

impl Topics {
    /// The same topics, for a conversation whose own is called so.
    pub fn with_own(&self, own: &str) -> Self {
        Self {
            own: own.to_owned(),
            ..self.clone()
        }
    }

    /// The conversation's own topic is another one, or none.
    pub fn own_is(&mut self, id: Option<Uuid>, partitions: i32) {
        match id {
            Some(id) => self.ids.insert(self.own.clone(), id),
            // Ids of what is gone are still spoken of.
            None => None,
        };
        self.own_partitions = partitions;
    }

    pub const fn own_partitions(&self) -> i32 {
        self.own_partitions
    }

    /// The true name of a topic.
    pub fn called<'a>(&'a self, name: &'a str) -> &'a str {
        if name == OWN_TOPIC { &self.own } else { name }
    }

    pub fn id(&self, name: &str) -> Option<Uuid> {
        self.ids.get(name).copied()
    }

    /// An id also for a topic that there is not.
    pub fn id_or_unknown(&self, name: &str) -> Uuid {
        self.id(self.called(name)).unwrap_or(Uuid::from_u128(4711))
    }

    pub fn name(&self, id: Uuid) -> Option<&str> {
        let mut names = self.ids.iter();
        names.find(|(_, known)| **known == id).map(|(name, _)| name.as_str())
    }

    /// An id of a topic that there is.
    pub fn any_id(&self) -> Uuid {
        self.id_or_unknown(TOPICS[0].0)
    }

    /// Each topic with the number of its partitions.
    pub fn counts(&self) -> impl Iterator<Item = (&str, i32)> {
        TOPICS.into_iter().chain([(self.own.as_str(), self.own_partitions)])
    }
}

pub struct World {
    pub admin: Admin,
    // Dropped first: it speaks to the broker.
    pub convoke: Convoke,
    pub kafka: Kafka,
    pub topics: Topics,
    /// The versions of each API that both sides speak.
    pub versions: BTreeMap<i16, (i16, i16)>,
}

impl World {
    pub async fn start(version: &str) -> Result<Self> {
        let options = Options::new(version)
            .set("offsets.topic.num.partitions", "1")
            .set("group.initial.rebalance.delay.ms", "0")
            .set("group.min.session.timeout.ms", "10")
            // Few enough for a conversation's actors to be too many, and a classic group fewer, so that a group of consumers may
            // be too large for the way back. Convoke reads them from the broker.
            .set("group.max.size", "3")
            .set("group.consumer.max.size", "5")
            .set("group.consumer.min.session.timeout.ms", "1000")
            .set("group.consumer.min.heartbeat.interval.ms", "500")
            // Both sides compute each target at once, so that nothing depends on the time between two steps.
            .set("group.consumer.assignment.interval.ms", "0");
        let kafka = Kafka::start_in(Network::Loopback, options)?;
        let admin = Admin::connect(&kafka.address(NODE)).await?;
        for (name, partitions) in TOPICS {
            admin.create(name, partitions).await?;
        }
        admin.until_coordinated().await?;
        let ids = admin.ids(TOPICS.iter().map(|(name, _)| *name)).await?;
        let topics = Topics {
            ids,
            ..Topics::default()
        };
        let quick = ["--set", "upstream.metadata_refresh=200ms"];
        let convoke = Convoke::start(env!("CARGO_BIN_EXE_convoke"), &kafka, &quick)?;
        let mut world = Self {
            admin,
            convoke,
            kafka,
            topics,
            versions: BTreeMap::new(),
        };
        let theirs = world.admin.versions().await?;
        let ours = Admin::connect(&world.address(Side::Convoke)?).await?.versions().await?;
        let versions = theirs
            .into_iter()
            // What 3.8 lists of consumer groups it refuses.
            .filter(|(key, _)| !world.is_old() || !CONSUMER_GROUP_APIS.contains(key))
            .filter_map(|(key, (min, max))| {
                let (least, most) = ours.get(&key)?;
                Some((key, (min.max(*least), max.min(*most))))
            })
            .collect();
        world.versions = versions;
        Ok(world)
    }

    /// Where clients of a side find its coordinator.
    pub fn address(&self, side: Side) -> Result<String> {
        match side {
            Side::Broker => Ok(self.kafka.address(NODE)),
            Side::Convoke => Ok(self.convoke.nodes().get(&NODE).ok_or("no such node")?.clone()),
        }
    }

    /// Whether the broker coordinates as those before 4.0 do.
    pub fn is_old(&self) -> bool {
        self.kafka.version().starts_with("3.")
    }
}
