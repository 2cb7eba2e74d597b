//! A member of a consumer group that computes assignments when it is chosen to, as KIP-848 has it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use convoke::config::HostPort;
use convoke::upstream::connection::Limits;
use convoke::upstream::node::{Dialer, Node};
use convoke::wire::api;
use convoke::wire::assignment::TopicPartitions;
use convoke::wire::assignment::heartbeat::{self, AssignedBy, ClientAssignor};
use convoke::wire::assignment::install::{InstallAssignmentRequest, InstallAssignmentResponse, InstalledMember};
use convoke::wire::assignment::prepare::{PrepareAssignmentRequest, PrepareAssignmentResponse};
use convoke_support::Result;
use convoke_support::convoke::Convoke;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use kafka_protocol::messages::consumer_group_heartbeat_request::TopicPartitions as Owned;
use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, GroupId, TopicName};
use kafka_protocol::protocol::StrBytes;

pub const ASSIGNOR: &str = "ours";
pub const TOPIC: &str = "t";
pub const PARTITIONS: i32 = 4;

/// A broker with topic `t`, and Convoke in front of it.
pub struct World {
    // Dropped first.
    pub convoke: Convoke,
    _kafka: Kafka,
}

impl World {
    pub fn start() -> Result<Self> {
        let kafka = Kafka::start_in(Network::Loopback, Options::new("4.4.0").quick_heartbeats())?;
        kafka.create_topic(TOPIC, u32::try_from(PARTITIONS)?)?;
        Ok(Self {
            convoke: Convoke::start(env!("CARGO_BIN_EXE_convoke"), &kafka, &[])?,
            _kafka: kafka,
        })
    }

    /// A connection to the node that coordinates every group here.
    pub async fn connect(&self) -> Result<Arc<Node>> {
        let address = self.convoke.nodes().values().next().ok_or("no node")?;
        let (host, port) = address.rsplit_once(':').ok_or("no port")?;
        let address = HostPort {
            host: host.to_owned(),
            port: port.parse()?,
        };
        let dialer = Dialer {
            software_name: "participant",
            sasl: None,
            own: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            limits: Limits {
                request_timeout: Duration::from_secs(30),
                frame_max: 1 << 20,
                in_flight: 4,
            },
        };
        Ok(dialer.dial(&address).await?)
    }
}

/// One member.
pub struct Participant {
    node: Arc<Node>,
    group: StrBytes,
    pub id: StrBytes,
    pub epoch: i32,
    /// What it says of its assignor.
    pub assignor: ClientAssignor,
    owned: Vec<TopicPartitions>,
    /// What the assignor told it with its partitions.
    pub told: AssignedBy,
    /// Something changed that the next heartbeat has to say.
    must_say_assignor: bool,
    must_say_owned: bool,
    /// Whether the last answer asked it to compute.
    pub is_chosen: bool,
}

impl Participant {
    /// Joins with an assignor that reads these versions of metadata and writes its own in the newest.
    pub async fn join(world: &World, group: &str, id: &str, versions: (i16, i16)) -> Result<Self> {
        let mut member = Self {
            node: world.connect().await?,
            group: StrBytes::from_string(group.to_owned()),
            id: StrBytes::from_string(id.to_owned()),
            epoch: 0,
            assignor: ClientAssignor {
                name: StrBytes::from_static_str(ASSIGNOR),
                minimum_version: versions.0,
                maximum_version: versions.1,
                reason: 0,
                metadata_version: versions.1,
                metadata: Bytes::copy_from_slice(id.as_bytes()),
            },
            owned: Vec::new(),
            told: AssignedBy::default(),
            must_say_assignor: true,
            must_say_owned: true,
            is_chosen: false,
        };
        member.beat().await?;
        Ok(member)
    }

    /// A heartbeat: it says what is new, and takes in the answer.
    pub async fn beat(&mut self) -> Result<()> {
        let mut request = ConsumerGroupHeartbeatRequest::default()
            .with_group_id(GroupId(self.group.clone()))
            .with_member_id(self.id.clone())
            .with_member_epoch(self.epoch);
        if self.epoch == 0 {
            let names = vec![TopicName(StrBytes::from_static_str(TOPIC))];
            request = request
                .with_rebalance_timeout_ms(3_000)
                .with_subscribed_topic_names(Some(names));
        }
        if std::mem::take(&mut self.must_say_owned) {
            let owned = |topic: &TopicPartitions| {
                Owned::default()
                    .with_topic_id(topic.topic_id)
                    .with_partitions(topic.partitions.clone())
            };
            request = request.with_topic_partitions(Some(self.owned.iter().map(owned).collect()));
        }
        if std::mem::take(&mut self.must_say_assignor) {
            heartbeat::set_client_assignors(&mut request, std::slice::from_ref(&self.assignor))?;
        }
        let answer = self.node.call(heartbeat::VERSION, &request).await?;
        if answer.error_code != 0 {
            return Err(format!("{} {:?}", answer.error_code, answer.error_message).into());
        }
        self.is_chosen = heartbeat::should_compute_assignment(&answer)?;
        self.epoch = answer.member_epoch;
        if let Some(assignment) = &answer.assignment {
            self.told = heartbeat::assigned_by(assignment)?;
            let topic = |topic: &kafka_protocol::messages::consumer_group_heartbeat_response::TopicPartitions| {
                TopicPartitions {
                    topic_id: topic.topic_id,
                    partitions: topic.partitions.clone(),
                }
            };
            self.owned = assignment.topic_partitions.iter().map(topic).collect();
            self.must_say_owned = true;
        }
        Ok(())
    }

    /// Says with its next heartbeat that it wants a new assignment, or that its metadata is another.
    pub fn change_assignor(&mut self, change: impl FnOnce(&mut ClientAssignor)) {
        change(&mut self.assignor);
        self.must_say_assignor = true;
    }

    /// What it has, ascending.
    pub fn partitions(&self) -> Vec<i32> {
        let mut partitions: Vec<i32> = self.owned.iter().flat_map(|topic| topic.partitions.clone()).collect();
        partitions.sort_unstable();
        partitions
    }

    pub async fn prepare(&self) -> Result<PrepareAssignmentResponse> {
        self.prepare_as(self.group.clone(), self.id.clone(), self.epoch).await
    }

    pub async fn prepare_as(
        &self,
        group_id: StrBytes,
        member_id: StrBytes,
        member_epoch: i32,
    ) -> Result<PrepareAssignmentResponse> {
        let request = PrepareAssignmentRequest {
            group_id,
            member_id,
            member_epoch,
        };
        Ok(self
            .node
            .exchange(api::CONSUMER_GROUP_PREPARE_ASSIGNMENT, 0, &request)
            .await?)
    }

    pub async fn install(
        &self,
        group_epoch: i32,
        error: i8,
        members: Vec<InstalledMember>,
    ) -> Result<InstallAssignmentResponse> {
        let request = InstallAssignmentRequest {
            group_id: self.group.clone(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            group_epoch,
            error,
            members,
        };
        Ok(self
            .node
            .exchange(api::CONSUMER_GROUP_INSTALL_ASSIGNMENT, 0, &request)
            .await?)
    }
}

/// What a member is to be given of the one topic, with the member's own name for metadata.
pub fn give(prepared: &PrepareAssignmentResponse, member_id: &str, partitions: &[i32]) -> InstalledMember {
    InstalledMember {
        member_id: StrBytes::from_string(member_id.to_owned()),
        partitions: vec![TopicPartitions {
            topic_id: prepared.topics[0].topic_id,
            partitions: partitions.to_vec(),
        }],
        metadata_version: 7,
        metadata: Bytes::from(format!("for {member_id}")),
    }
}
