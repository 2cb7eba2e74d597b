//! A broker, and Convoke in front of it. Both coordinate groups of their own: the broker those whose ids begin with "b-", Convoke
//! those that begin with "c-". The topics are the same, and so are their ids.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use convoke::upstream::connection::{Connection, Limits};
use convoke::wire::{api, codec};
use convoke_support::Result;
use convoke_support::convoke::Convoke;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, CreateTopicsRequest, DescribeGroupsRequest, FindCoordinatorRequest,
    MetadataRequest,
};
use kafka_protocol::protocol::{Decodable, Request};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::requests::{encode, text};

/// Far above what anything here takes.
const LIMIT: Duration = Duration::from_secs(60);
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

/// Topics and their ids.
#[derive(Debug, Default)]
pub struct Topics {
    ids: BTreeMap<String, Uuid>,
}

impl Topics {
    pub fn id(&self, name: &str) -> Option<Uuid> {
        self.ids.get(name).copied()
    }

    /// An id also for a topic that there is not.
    pub fn id_or_unknown(&self, name: &str) -> Uuid {
        self.id(name).unwrap_or(Uuid::from_u128(4711))
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
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, i32)> {
        TOPICS.into_iter()
    }
}

pub struct World {
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
            .set("group.consumer.min.session.timeout.ms", "1000")
            .set("group.consumer.min.heartbeat.interval.ms", "500")
            // Both sides compute each target at once, so that nothing depends on the time between two steps.
            .set("group.consumer.assignment.interval.ms", "0");
        let kafka = Kafka::start_in(Network::Loopback, options)?;
        let admin = Admin::connect(&kafka.address(NODE)).await?;
        admin.create_topics().await?;
        admin.until_coordinated().await?;
        let topics = admin.topics().await?;
        let convoke = Convoke::start(env!("CARGO_BIN_EXE_convoke"), &kafka, &[])?;
        let mut world = Self {
            convoke,
            kafka,
            topics,
            versions: BTreeMap::new(),
        };
        let theirs = admin.versions().await?;
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

/// Who prepares the broker.
struct Admin(Connection);

impl Admin {
    async fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        let limits = Limits {
            request_timeout: LIMIT,
            frame_max: 16 << 20,
            in_flight: 4,
        };
        Ok(Self(Connection::over(stream, address.to_owned(), limits)))
    }

    async fn ask<R: Request>(&self, version: i16, request: &R) -> Result<R::Response> {
        let mut answer = self.0.call(R::KEY, version, &encode(request, version)?).await?;
        Ok(R::Response::decode(&mut answer, version)?)
    }

    async fn create_topics(&self) -> Result<()> {
        let topics = TOPICS.map(|(name, partitions)| {
            CreatableTopic::default()
                .with_name(text(name).into())
                .with_num_partitions(partitions)
                .with_replication_factor(1)
        });
        let request = CreateTopicsRequest::default()
            .with_topics(topics.to_vec())
            .with_timeout_ms(30_000);
        let answer = self.ask(5, &request).await?;
        match answer.topics.iter().find(|topic| topic.error_code != 0) {
            Some(topic) => Err(format!("a topic was not made: {topic:?}").into()),
            None => Ok(()),
        }
    }

    /// The first question for a coordinator makes the broker create the topic that it needs; then that is loaded.
    async fn until_coordinated(&self) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let request = FindCoordinatorRequest::default().with_key(text("any"));
            let is_found = self.ask(3, &request).await?.error_code == 0;
            let describe = DescribeGroupsRequest::default().with_groups(vec![text("any").into()]);
            let described = self.ask(5, &describe).await?;
            if is_found && described.groups.iter().all(|group| group.error_code == 0) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err("groups get no coordinator".into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn topics(&self) -> Result<Topics> {
        let named = TOPICS.map(|(name, _)| MetadataRequestTopic::default().with_name(Some(text(name).into())));
        let request = MetadataRequest::default().with_topics(Some(named.to_vec()));
        let deadline = Instant::now() + LIMIT;
        loop {
            let answer = self.ask(10, &request).await?;
            if answer.topics.iter().all(|topic| topic.error_code == 0) {
                let ids = answer.topics.iter();
                let ids = ids.filter_map(|topic| Some((topic.name.as_ref()?.to_string(), topic.topic_id)));
                return Ok(Topics { ids: ids.collect() });
            }
            if Instant::now() > deadline {
                return Err(format!("topics without leaders: {answer:?}").into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn versions(&self) -> Result<BTreeMap<i16, (i16, i16)>> {
        let request = ApiVersionsRequest::default()
            .with_client_software_name(text("differential"))
            .with_client_software_version(text("1"));
        let answer = self.0.call(ApiVersionsRequest::KEY, 3, &encode(&request, 3)?).await?;
        let answer: ApiVersionsResponse = codec::decode_response(3, answer)?;
        let keys = answer.api_keys.iter();
        Ok(keys
            .map(|key| (key.api_key, (key.min_version, key.max_version)))
            .collect())
    }
}
