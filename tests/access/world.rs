//! A broker with an authorizer, Convoke in front of it with only the rights that it needs, and both sides' groups.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use convoke::wire::api;
use convoke_support::Result;
use convoke_support::convoke::Convoke;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    ApiVersionsRequest, CreateTopicsRequest, DescribeGroupsRequest, FindCoordinatorRequest, GroupId, JoinGroupRequest,
    JoinGroupResponse, MetadataRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::client::Client;
use crate::questions::{TopicIds, commit};
use crate::rules::{self, ASKED_TOPICS, BUSY, COMMITTED, GROUPS, PASSWORD, Side, TOPICS, USERS};

/// Far above what anything here takes.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The name of the only node.
const NODE: i32 = 1;

pub struct World {
    // Dropped first: it speaks to the broker.
    pub convoke: Convoke,
    pub kafka: Kafka,
    pub admin: Client,
    pub ids: TopicIds,
    /// The versions of each API that both sides speak.
    pub versions: BTreeMap<i16, (i16, i16)>,
}

impl World {
    pub async fn start(version: &str) -> Result<Self> {
        let options = USERS
            .iter()
            .filter(|user| **user != "admin")
            .fold(Options::new(version).sasl().authorizer(), |options, user| {
                options.user(user, PASSWORD)
            });
        let kafka = Kafka::start_in(Network::Loopback, options)?;
        let admin = login(&kafka.address(NODE), "admin").await?;
        rules::create(&admin).await?;
        create_topics(&admin).await?;
        until_coordinated(&admin).await?;
        let versions = common_versions(&admin).await?;
        let ids = topic_ids(&admin).await?;
        let convoke = Convoke::start(env!("CARGO_BIN_EXE_convoke"), &kafka, &[])?;
        Ok(Self {
            convoke,
            kafka,
            admin,
            ids,
            versions,
        })
    }

    /// A user's connection to the node that coordinates every group, on either side.
    pub async fn login(&self, side: Side, user: &str) -> Result<Client> {
        let address = match side {
            Side::Broker => self.kafka.address(NODE),
            Side::Convoke => self.convoke.nodes().get(&NODE).ok_or("no such node")?.clone(),
        };
        login(&address, user).await
    }

    /// Brings a member into a group, with a session that outlasts the test.
    pub async fn join(&self, side: Side, admin: &Client) -> Result<()> {
        let group_id = GroupId(StrBytes::from_string(side.group(BUSY)));
        let joined = join(admin, group_id.clone()).await?;
        let sync = SyncGroupRequest::default()
            .with_group_id(group_id)
            .with_generation_id(joined.generation_id)
            .with_member_id(joined.member_id.clone())
            .with_assignments(vec![
                SyncGroupRequestAssignment::default()
                    .with_member_id(joined.member_id)
                    .with_assignment(b"assignment".to_vec().into()),
            ]);
        let synced = admin.ask(3, &sync).await?;
        match (joined.error_code, synced.error_code) {
            (0, 0) => Ok(()),
            errors => Err(format!("{side:?}: no member: {errors:?}").into()),
        }
    }

    /// Commits offsets of every topic, so that each group is there again.
    pub async fn commit(&self, admins: &[(Side, Client)]) -> Result<()> {
        for (side, admin) in admins {
            for name in COMMITTED {
                let answer = admin.ask(8, &commit(&side.group(name))).await?;
                let done = answer.topics.iter().filter(|topic| {
                    let mut partitions = topic.partitions.iter();
                    partitions.any(|partition| partition.error_code == 0)
                });
                if done.count() != TOPICS.len() {
                    return Err(format!("{side:?}: offsets of {name} are not committed: {answer:#?}").into());
                }
            }
        }
        Ok(())
    }
}

/// A client joins a group, with a session that outlasts the test.
pub async fn join(client: &Client, group_id: GroupId) -> Result<JoinGroupResponse> {
    let mut metadata = vec![0, 0, 0, 0, 0, 1, 0, 4];
    metadata.extend(b"open\xff\xff\xff\xff");
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(StrBytes::from_static_str("range"))
        .with_metadata(metadata.into());
    let request = JoinGroupRequest::default()
        .with_group_id(group_id)
        .with_session_timeout_ms(1_800_000)
        .with_rebalance_timeout_ms(60_000)
        .with_protocol_type(StrBytes::from_static_str("consumer"))
        .with_protocols(vec![protocol]);
    client.ask(3, &request).await
}

async fn login(address: &str, user: &str) -> Result<Client> {
    let password = if user == "admin" { "admin-secret" } else { PASSWORD };
    Client::login(address, user, password).await
}

async fn create_topics(admin: &Client) -> Result<()> {
    let topics = TOPICS.map(|name| {
        CreatableTopic::default()
            .with_name(StrBytes::from_static_str(name).into())
            .with_num_partitions(1)
            .with_replication_factor(1)
    });
    let request = CreateTopicsRequest::default()
        .with_topics(topics.to_vec())
        .with_timeout_ms(30_000);
    let answer = admin.ask(5, &request).await?;
    match answer.topics.iter().find(|topic| topic.error_code != 0) {
        Some(topic) => Err(format!("a topic was not made: {topic:?}").into()),
        None => Ok(()),
    }
}

/// The first question for a coordinator makes the broker create the topic that it needs; then each partition is loaded.
async fn until_coordinated(admin: &Client) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    let groups = Side::BOTH.map(|side| GROUPS.map(|name| side.group(name)));
    for group_id in groups.into_iter().flatten() {
        loop {
            let request = FindCoordinatorRequest::default().with_key(StrBytes::from_string(group_id.clone()));
            let found = admin.ask(3, &request).await?.error_code == 0;
            let described =
                DescribeGroupsRequest::default().with_groups(vec![StrBytes::from_string(group_id.clone()).into()]);
            if found
                && admin
                    .ask(5, &described)
                    .await?
                    .groups
                    .iter()
                    .all(|group| group.error_code == 0)
            {
                break;
            }
            if Instant::now() > deadline {
                return Err(format!("{group_id:?} gets no coordinator").into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

async fn common_versions(admin: &Client) -> Result<BTreeMap<i16, (i16, i16)>> {
    let request = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("access"))
        .with_client_software_version(StrBytes::from_static_str("1"));
    let answer = admin.ask(3, &request).await?;
    let common = answer.api_keys.iter().filter_map(|broker| {
        let ours = api::find(broker.api_key)?;
        let range = (broker.min_version.max(ours.min), broker.max_version.min(ours.max));
        Some((broker.api_key, range))
    });
    Ok(common.collect())
}

async fn topic_ids(admin: &Client) -> Result<TopicIds> {
    let topics =
        TOPICS.map(|name| MetadataRequestTopic::default().with_name(Some(StrBytes::from_static_str(name).into())));
    let request = MetadataRequest::default().with_topics(Some(topics.to_vec()));
    let deadline = Instant::now() + LIMIT;
    loop {
        let answer = admin.ask(10, &request).await?;
        if answer.topics.iter().all(|topic| topic.error_code == 0) {
            let known = answer.topics.iter().filter_map(|topic| {
                let name = topic.name.as_ref()?;
                Some((name.to_string(), topic.topic_id))
            });
            let mut ids: TopicIds = known.collect();
            for (number, name) in ASKED_TOPICS.into_iter().enumerate() {
                let number = u128::try_from(number)?;
                ids.entry(name.to_owned()).or_insert(Uuid::from_u128(number + 1000));
            }
            return Ok(ids);
        }
        if Instant::now() > deadline {
            return Err(format!("topics without leaders: {answer:?}").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
