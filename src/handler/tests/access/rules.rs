//! An upstream that authorizes as Kafka does, as far as it is asked.

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka_protocol::messages::fetch_response::{FetchResponse, FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::list_groups_response::ListGroupsResponse;
use kafka_protocol::messages::metadata_response::{MetadataResponse, MetadataResponseTopic};
use kafka_protocol::messages::{
    DescribeGroupsRequest, DescribeGroupsResponse, FetchRequest, HeartbeatRequest, HeartbeatResponse, MetadataRequest,
    OffsetDeleteRequest, OffsetDeleteResponse,
};

use crate::handler::tests::groups::{deletes, described};
use crate::handler::tests::kit::*;
use crate::wire::api::*;

pub(in crate::handler::tests) const READ: i32 = 1 << 3;
pub(super) const DELETE: i32 = 1 << 6;
pub(in crate::handler::tests) const DESCRIBE: i32 = 1 << 8;

/// What the upstream lets the user do, and how it is. Operations are bits, as Kafka writes them.
#[derive(Default)]
pub(in crate::handler::tests) struct Rules {
    pub(in crate::handler::tests) groups: BTreeMap<&'static str, i32>,
    pub(in crate::handler::tests) topics: BTreeMap<&'static str, i32>,
    pub(in crate::handler::tests) cluster: i32,
    /// What group requests are answered that are authorized, where it is not the coordinator.
    pub(in crate::handler::tests) elsewhere: Option<i16>,
}

impl Rules {
    pub(in crate::handler::tests) fn group(operations: i32) -> Self {
        let (groups, topics) = (BTreeMap::from([("g", operations)]), every_topic());
        Self {
            groups,
            topics,
            ..Self::default()
        }
    }

    fn of_group(&self, group_id: &str, operation: i32) -> i16 {
        let operations = self.groups.get(group_id).copied().unwrap_or_default();
        if operations & operation == 0 {
            30
        } else {
            self.elsewhere.unwrap_or(0)
        }
    }

    fn of_topic(&self, name: &str) -> i32 {
        self.topics.get(name).copied().unwrap_or_default()
    }

    pub(in crate::handler::tests) fn answer(&self, asked: &Asked) -> Bytes {
        match asked.api_key {
            DESCRIBE_GROUPS => self.describe_groups(asked),
            HEARTBEAT => {
                let request: HeartbeatRequest = asked.decode();
                let error = match self.of_group(&request.group_id, READ) {
                    0 => 25,
                    error => error,
                };
                encode(&HeartbeatResponse::default().with_error_code(error), asked.version)
            }
            OFFSET_DELETE => {
                let request: OffsetDeleteRequest = asked.decode();
                assert!(request.topics.is_empty(), "it is to delete nothing");
                let error = self.of_group(&request.group_id, DELETE);
                encode(&OffsetDeleteResponse::default().with_error_code(error), asked.version)
            }
            METADATA => self.metadata(asked),
            FETCH => self.fetch(asked),
            LIST_GROUPS => encode(&ListGroupsResponse::default(), asked.version),
            DELETE_GROUPS => deletes(&[])(asked),
            other => panic!("api {other} is not to be asked"),
        }
    }

    fn describe_groups(&self, asked: &Asked) -> Bytes {
        let request: DescribeGroupsRequest = asked.decode();
        assert!(!request.include_authorized_operations || (3..=5).contains(&asked.version));
        let groups = request.groups.iter().map(|group_id| {
            let error = self.of_group(group_id, DESCRIBE);
            let operations = self.groups.get(group_id.as_str()).copied().unwrap_or_default();
            described(group_id, if error == 0 { "Dead" } else { "" })
                .with_error_code(error)
                .with_authorized_operations(if error == 0 && request.include_authorized_operations {
                    operations
                } else {
                    i32::MIN
                })
        });
        encode(
            &DescribeGroupsResponse::default().with_groups(groups.collect()),
            asked.version,
        )
    }

    fn metadata(&self, asked: &Asked) -> Bytes {
        let request: MetadataRequest = asked.decode();
        assert!(!request.allow_auto_topic_creation && (8..=10).contains(&asked.version));
        let topics = request.topics.expect("not all topics").into_iter().map(|topic| {
            let name = topic.name.expect("by name");
            let operations = self.of_topic(&name);
            let may = operations & DESCRIBE != 0;
            MetadataResponseTopic::default()
                .with_name(Some(name))
                .with_error_code(if may { 3 } else { 29 })
                .with_topic_authorized_operations(if may { operations } else { i32::MIN })
        });
        let response = MetadataResponse::default()
            .with_topics(topics.collect())
            .with_cluster_authorized_operations(self.cluster);
        encode(&response, asked.version)
    }

    fn fetch(&self, asked: &Asked) -> Bytes {
        let request: FetchRequest = asked.decode();
        let topics = request.topics.into_iter().map(|topic| {
            let error = if self.of_topic(&topic.topic) & READ == 0 { 29 } else { 3 };
            let partition = PartitionData::default()
                .with_partition_index(topic.partitions[0].partition)
                .with_error_code(error);
            FetchableTopicResponse::default()
                .with_topic(topic.topic)
                .with_partitions(vec![partition])
        });
        encode(
            &FetchResponse::default().with_responses(topics.collect()),
            asked.version,
        )
    }
}

pub(in crate::handler::tests) fn every_topic() -> BTreeMap<&'static str, i32> {
    ["orders", "payments", NO_TOPIC]
        .map(|name| (name, READ | DESCRIBE))
        .into()
}

pub(in crate::handler::tests) fn upstream(rules: Rules) -> Upstream {
    Upstream::answering(move |asked| rules.answer(asked))
}
