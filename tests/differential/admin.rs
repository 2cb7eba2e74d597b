//! Who prepares the broker: its topics, those that come and go in the middle of a conversation too.

use std::collections::BTreeMap;
use std::time::Duration;

use convoke::upstream::connection::{Connection, Limits};
use convoke::wire::codec;
use convoke_support::Result;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest,
    DescribeGroupsRequest, FindCoordinatorRequest, MetadataRequest,
};
use kafka_protocol::protocol::{Decodable, Request};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::requests::{encode, text};
use crate::step::TopicChange;

/// Far above what anything here takes.
pub const LIMIT: Duration = Duration::from_secs(60);
/// The time between two looks at what takes its time.
pub const AGAIN: Duration = Duration::from_millis(50);

/// A connection to the broker.
pub struct Admin(Connection);

impl Admin {
    pub async fn connect(address: &str) -> Result<Self> {
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

    /// Changes a topic, and says what its id is when the broker shows the change; `None` for one that is gone.
    pub async fn change(&self, name: &str, change: TopicChange) -> Result<Option<Uuid>> {
        match change {
            TopicChange::Created(partitions) => self.create(name, partitions).await?,
            TopicChange::Grown(partitions) => self.grow(name, partitions).await?,
            TopicChange::Deleted => self.delete(name).await?,
        }
        let deadline = Instant::now() + LIMIT;
        loop {
            let (id, partitions) = self.topic(name).await?;
            if partitions == change.partitions() {
                return Ok(id);
            }
            if Instant::now() > deadline {
                return Err(format!("{name} does not become {change:?}").into());
            }
            sleep(AGAIN).await;
        }
    }

    pub async fn create(&self, name: &str, partitions: i32) -> Result<()> {
        let topic = CreatableTopic::default()
            .with_name(text(name).into())
            .with_num_partitions(partitions)
            .with_replication_factor(1);
        let request = CreateTopicsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(30_000);
        let answer = self.ask(5, &request).await?;
        done(name, answer.topics.iter().map(|topic| topic.error_code))
    }

    async fn grow(&self, name: &str, partitions: i32) -> Result<()> {
        let topic = CreatePartitionsTopic::default()
            .with_name(text(name).into())
            .with_count(partitions)
            .with_assignments(None);
        let request = CreatePartitionsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(30_000);
        let answer = self.ask(2, &request).await?;
        done(name, answer.results.iter().map(|topic| topic.error_code))
    }

    pub async fn delete(&self, name: &str) -> Result<()> {
        let request = DeleteTopicsRequest::default()
            .with_topic_names(vec![text(name).into()])
            .with_timeout_ms(30_000);
        let answer = self.ask(4, &request).await?;
        done(name, answer.responses.iter().map(|topic| topic.error_code))
    }

    /// The id of a topic and the number of its partitions; nothing if it is not there.
    async fn topic(&self, name: &str) -> Result<(Option<Uuid>, i32)> {
        let named = MetadataRequestTopic::default().with_name(Some(text(name).into()));
        let request = MetadataRequest::default()
            .with_topics(Some(vec![named]))
            .with_allow_auto_topic_creation(false);
        let answer = self.ask(10, &request).await?;
        let is_there = |topic: &&kafka_protocol::messages::metadata_response::MetadataResponseTopic| {
            topic.error_code == 0 && topic.partitions.iter().all(|partition| partition.error_code == 0)
        };
        Ok(match answer.topics.iter().find(is_there) {
            Some(topic) => (Some(topic.topic_id), i32::try_from(topic.partitions.len())?),
            None => (None, 0),
        })
    }

    /// The ids of topics that there are.
    pub async fn ids(&self, names: impl Iterator<Item = &'static str>) -> Result<BTreeMap<String, Uuid>> {
        let deadline = Instant::now() + LIMIT;
        let mut ids = BTreeMap::new();
        for name in names {
            loop {
                if let (Some(id), _) = self.topic(name).await? {
                    ids.insert(name.to_owned(), id);
                    break;
                }
                if Instant::now() > deadline {
                    return Err(format!("{name} has no leaders").into());
                }
                sleep(AGAIN).await;
            }
        }
        Ok(ids)
    }

    /// The first question for a coordinator makes the broker create the topic that it needs; then that is loaded.
    pub async fn until_coordinated(&self) -> Result<()> {
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
            sleep(AGAIN).await;
        }
    }

    /// The versions of each API.
    pub async fn versions(&self) -> Result<BTreeMap<i16, (i16, i16)>> {
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

fn done(what: &str, mut errors: impl Iterator<Item = i16>) -> Result<()> {
    match errors.find(|error| *error != 0) {
        Some(error) => Err(format!("{what}: error {error}").into()),
        None => Ok(()),
    }
}
