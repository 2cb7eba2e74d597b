//! Consumers of the new protocol as the tests mean them: members of the group "g", subscribed to topic "t" of six partitions.
//! Unless a test says otherwise every change is computed at once.

use std::sync::Arc;

use uuid::Uuid;

use super::group_test::GroupTest;
use crate::coordinator::input::Ticket;
use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::coordinator::request::{
    ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, ConsumerGroupMember,
    Request, Response, Text,
};
use crate::coordinator::settings::Settings;
use crate::coordinator::topics::{Topic, Topics};
use crate::wire::error_code::ErrorCode;

pub(super) const T: u128 = 1;
pub(super) const U: u128 = 2;
pub(super) const SESSION_MS: u64 = 45_000;
pub(super) const REBALANCE_MS: i32 = 60_000;

/// Topics by name, id and number of partitions.
pub(super) fn topics(topics: &[(&str, u128, i32)]) -> Arc<Topics> {
    let mut picture = Topics::default();
    for (name, id, partitions) in topics {
        picture.insert(Topic {
            name: (*name).into(),
            id: Uuid::from_u128(*id),
            partitions: *partitions,
            racks: 0,
        });
    }
    Arc::new(picture)
}

pub(super) fn partition(topic: u128, partition: i32) -> TopicPartition {
    TopicPartition {
        topic_id: Uuid::from_u128(topic),
        partition,
    }
}

/// Partitions of topic "t".
pub(super) fn of_t(numbers: &[i32]) -> Partitions {
    numbers.iter().map(|number| partition(T, *number)).collect()
}

pub(super) fn at_once() -> Settings {
    Settings {
        group_consumer_assignment_interval_ms: Some(0),
        ..Settings::default()
    }
}

/// A shard with the topics "t" of six and "u" of three partitions.
pub(super) fn shard_with(settings: Settings) -> GroupTest {
    let mut test = GroupTest::with_settings(settings);
    test.tell_topics(topics(&[("t", T, 6), ("u", U, 3)]));
    test
}

pub(super) fn shard() -> GroupTest {
    shard_with(at_once())
}

/// A heartbeat that says nothing new.
pub(super) fn beat_of(member_id: &str, member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member_id.into(),
        member_epoch,
        group_instance_id: None,
        rack_id: None,
        rebalance_timeout_ms: -1,
        subscribed_topic_names: None,
        subscribed_topic_regex: None,
        server_assignor: None,
        client_assignors: None,
        topic_partitions: None,
        client_id: "client".into(),
        client_host: "/10.0.0.1".into(),
        connection: 0,
        needs_member_id: true,
        resolved: None,
    }
}

/// The first heartbeat of a member that is subscribed to "t".
pub(super) fn join_of(member_id: &str) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        rebalance_timeout_ms: REBALANCE_MS,
        subscribed_topic_names: Some(vec!["t".into()]),
        topic_partitions: Some(Partitions::default()),
        ..beat_of(member_id, 0)
    }
}

pub(super) fn static_join_of(member_id: &str, instance_id: &str) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_instance_id: Some(instance_id.into()),
        ..join_of(member_id)
    }
}

/// A heartbeat that says what its member owns.
pub(super) fn owning(member_id: &str, member_epoch: i32, owned: Partitions) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        topic_partitions: Some(owned),
        ..beat_of(member_id, member_epoch)
    }
}

/// A consumer that does what a client does: it takes what it is assigned and says so.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) id: Text,
    pub(super) epoch: i32,
    pub(super) owned: Arc<Partitions>,
    /// It has not told yet what it owns now.
    must_tell: bool,
}

impl Client {
    /// A consumer that has joined.
    pub(super) fn joined(test: &mut GroupTest, id: &str) -> Self {
        let mut client = Self::new(id);
        client.hear(&test.beat(join_of(id)));
        client
    }

    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            epoch: 0,
            owned: Arc::default(),
            must_tell: false,
        }
    }

    /// Its next heartbeat.
    pub(super) fn request(&self) -> ConsumerGroupHeartbeatRequest {
        match self.must_tell {
            true => owning(&self.id, self.epoch, (*self.owned).clone()),
            false => beat_of(&self.id, self.epoch),
        }
    }

    /// Takes in what it is told.
    pub(super) fn hear(&mut self, response: &ConsumerGroupHeartbeatResponse) {
        assert_eq!(response.error, ErrorCode::NONE, "{response:?}");
        self.epoch = response.member_epoch;
        self.must_tell = response.assignment.is_some();
        if let Some(assignment) = &response.assignment {
            self.owned = assignment.clone();
        }
    }

    pub(super) fn beat(&mut self, test: &mut GroupTest) -> ConsumerGroupHeartbeatResponse {
        let response = test.beat(self.request());
        self.hear(&response);
        response
    }

    /// The numbers of the partitions that it owns, whatever the topic.
    pub(super) fn numbers(&self) -> Vec<i32> {
        self.owned.iter().map(|partition| partition.partition).collect()
    }
}

/// Lets all beat until nothing changes any more.
pub(super) fn settle(test: &mut GroupTest, clients: &mut [Client]) {
    for _ in 0..6 {
        for client in clients.iter_mut() {
            client.beat(test);
        }
    }
    assert_eq!(&*test.state(), "Stable");
}

impl GroupTest {
    pub(super) fn send_beat(&mut self, request: ConsumerGroupHeartbeatRequest) -> Ticket {
        self.send(Request::ConsumerGroupHeartbeat(request))
    }

    pub(super) fn beat_reply(&self, ticket: Ticket) -> ConsumerGroupHeartbeatResponse {
        match self.reply(ticket) {
            Response::ConsumerGroupHeartbeat(response) => response,
            other => panic!("not the answer to a heartbeat: {other:?}"),
        }
    }

    /// Sends a heartbeat that is answered at once.
    pub(super) fn beat(&mut self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse {
        let ticket = self.send_beat(request);
        self.beat_reply(ticket)
    }

    pub(super) fn beat_error(&mut self, request: ConsumerGroupHeartbeatRequest) -> ErrorCode {
        let response = self.beat(request);
        assert_eq!((response.member_epoch, &response.assignment), (0, &None));
        response.error
    }

    pub(super) fn describe_consumer(&mut self) -> ConsumerGroupDescribeResponse {
        let group_id = "g".into();
        match self.call(Request::ConsumerGroupDescribe { group_id }) {
            Response::ConsumerGroupDescribe(response) => response,
            // Nobody has asked for it here yet.
            Response::NotOwned => {
                ConsumerGroupDescribeResponse::refusal("g".into(), ErrorCode::GROUP_ID_NOT_FOUND, None)
            }
            other => panic!("not a description: {other:?}"),
        }
    }

    /// A member as it is described.
    pub(super) fn member(&mut self, id: &str) -> ConsumerGroupMember {
        let members = self.describe_consumer().members;
        let member = members.into_iter().find(|member| &*member.member_id == id);
        member.unwrap_or_else(|| panic!("no member {id}"))
    }

    pub(super) fn group_epoch(&mut self) -> i32 {
        self.describe_consumer().group_epoch
    }
}
