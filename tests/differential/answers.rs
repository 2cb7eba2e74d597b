//! Answers: read, and shown as text that is the same for both sides if the answers are. Every field is in it; what stands in the
//! order of Kafka's hash maps is sorted, ids have the names of their members, addresses are those of the side.

use bytes::Bytes;
use convoke::wire::newest::delete_groups::DeleteGroupsResponse;
use convoke::wire::{api, codec};
use convoke_support::Result;
use kafka_protocol::messages::{
    ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatResponse, DescribeGroupsResponse, FindCoordinatorResponse,
    HeartbeatResponse, JoinGroupResponse, LeaveGroupResponse, ListGroupsResponse, OffsetCommitResponse,
    OffsetDeleteResponse, OffsetFetchResponse, SyncGroupResponse,
};
use kafka_protocol::protocol::{Decodable, StrBytes};

use crate::assignment;
use crate::names::Names;

/// Partitions of one topic in a description.
type Described = kafka_protocol::messages::consumer_group_describe_response::TopicPartitions;

#[derive(Debug)]
pub enum Answer {
    Join(JoinGroupResponse),
    Sync(SyncGroupResponse),
    Heartbeat(HeartbeatResponse),
    Leave(LeaveGroupResponse),
    Commit(OffsetCommitResponse),
    Fetch(OffsetFetchResponse),
    DeleteOffsets(OffsetDeleteResponse),
    Describe(DescribeGroupsResponse),
    List(ListGroupsResponse),
    Delete(DeleteGroupsResponse),
    Find(FindCoordinatorResponse),
    Beat(ConsumerGroupHeartbeatResponse),
    DescribeConsumers(ConsumerGroupDescribeResponse),
}

/// How much of an assignment can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Which partitions each member has.
    Exact,
    /// Whether it is to have some: which ones, and so who has to wait for whom, depends on the order of Kafka's hash maps.
    Any,
}

impl Placement {
    /// What can be compared of the partitions of one topic.
    pub fn reduce(self, partitions: &mut Vec<i32>) {
        partitions.sort_unstable();
        if self == Self::Any {
            partitions.truncate(1);
            partitions.fill(-1);
        }
    }
}

pub fn read(api_key: i16, version: i16, body: Bytes) -> Result<Answer> {
    Ok(match api_key {
        api::JOIN_GROUP => Answer::Join(whole(version, body)?),
        api::SYNC_GROUP => Answer::Sync(whole(version, body)?),
        api::HEARTBEAT => Answer::Heartbeat(whole(version, body)?),
        api::LEAVE_GROUP => Answer::Leave(whole(version, body)?),
        api::OFFSET_COMMIT => Answer::Commit(codec::decode_response(version, body)?),
        api::OFFSET_FETCH => Answer::Fetch(codec::decode_response(version, body)?),
        api::OFFSET_DELETE => Answer::DeleteOffsets(whole(version, body)?),
        api::DESCRIBE_GROUPS => Answer::Describe(codec::decode_response(version, body)?),
        api::LIST_GROUPS => Answer::List(codec::decode_response(version, body)?),
        api::DELETE_GROUPS => Answer::Delete(codec::decode_response(version, body)?),
        api::FIND_COORDINATOR => Answer::Find(codec::decode_response(version, body)?),
        api::CONSUMER_GROUP_HEARTBEAT => Answer::Beat(codec::decode_response(version, body)?),
        api::CONSUMER_GROUP_DESCRIBE => Answer::DescribeConsumers(codec::decode_response(version, body)?),
        _ => return Err(format!("no answer of {api_key} is known").into()),
    })
}

fn whole<T: Decodable>(version: i16, mut body: Bytes) -> Result<T> {
    let answer = T::decode(&mut body, version)?;
    if body.is_empty() {
        Ok(answer)
    } else {
        Err(format!("{} bytes are left over", body.len()).into())
    }
}

/// What makes the answers of one side comparable.
#[derive(Debug, Clone, Copy)]
pub struct Viewer<'a> {
    pub names: &'a Names,
    /// The address that the side's clients have of the only node.
    pub address: &'a str,
    pub placement: Placement,
    /// Before 4.0 brokers answer about offsets in the order of a hash map.
    pub is_old: bool,
}

impl Viewer<'_> {
    pub fn show(self, answer: Answer) -> String {
        let text = match answer {
            Answer::Join(mut joined) => {
                joined.member_id = self.member(&joined.member_id);
                joined.leader = self.member(&joined.leader);
                for member in &mut joined.members {
                    member.member_id = self.member(&member.member_id);
                }
                joined.members.sort_by_key(|member| member.member_id.clone());
                format!("{joined:#?}")
            }
            Answer::Sync(mut synced) => {
                let assignment = std::mem::take(&mut synced.assignment);
                let assignment = match self.placement {
                    Placement::Exact => assignment::show(&assignment),
                    Placement::Any => "of some".to_owned(),
                };
                format!("{synced:#?}\nassignment {assignment}")
            }
            Answer::Heartbeat(answer) => format!("{answer:#?}"),
            Answer::Leave(mut left) => {
                for member in &mut left.members {
                    member.member_id = self.member(&member.member_id);
                }
                format!("{left:#?}")
            }
            Answer::Commit(mut answer) => {
                if self.is_old {
                    answer.topics.sort_by_key(|topic| topic.name.clone());
                    for topic in &mut answer.topics {
                        topic.partitions.sort_by_key(|partition| partition.partition_index);
                    }
                }
                format!("{answer:#?}")
            }
            Answer::Fetch(answer) => self.fetched(answer),
            Answer::DeleteOffsets(mut answer) => {
                if self.is_old {
                    answer.topics.sort_by_key(|topic| topic.name.clone());
                    for topic in &mut answer.topics {
                        topic.partitions.sort_by_key(|partition| partition.partition_index);
                    }
                }
                format!("{answer:#?}")
            }
            Answer::Describe(answer) => self.described(answer),
            Answer::List(mut listed) => {
                listed.groups.retain(|group| self.names.is_own_group(&group.group_id));
                listed.groups.sort_by_key(|group| group.group_id.clone());
                format!("{listed:#?}")
            }
            Answer::Delete(mut deleted) => {
                deleted.results.sort_by_key(|result| result.group_id.clone());
                format!("{deleted:#?}")
            }
            Answer::Find(answer) => self.found(answer),
            Answer::Beat(answer) => self.beaten(answer),
            Answer::DescribeConsumers(answer) => self.described_consumers(answer),
        };
        let lines = self.names.text(&text);
        let told = |line: &&str| !line.trim().starts_with("unknown_tagged_fields: {}");
        lines.lines().filter(told).collect::<Vec<_>>().join("\n")
    }

    fn member(self, id: &str) -> StrBytes {
        StrBytes::from_string(self.names.member(id))
    }

    fn fetched(self, mut answer: OffsetFetchResponse) -> String {
        answer.topics.sort_by_key(|topic| topic.name.clone());
        for topic in &mut answer.topics {
            topic.partitions.sort_by_key(|partition| partition.partition_index);
        }
        for group in &mut answer.groups {
            group.topics.sort_by_key(|topic| (topic.name.clone(), topic.topic_id));
            for topic in &mut group.topics {
                topic.partitions.sort_by_key(|partition| partition.partition_index);
            }
        }
        format!("{answer:#?}")
    }

    fn described(self, mut answer: DescribeGroupsResponse) -> String {
        answer.groups.sort_by_key(|group| group.group_id.clone());
        let mut assignments = Vec::new();
        for group in &mut answer.groups {
            for member in &mut group.members {
                member.member_id = self.member(&member.member_id);
            }
            group
                .members
                .sort_by_key(|member| (member.member_id.clone(), member.client_id.clone()));
            for member in &mut group.members {
                let assignment = std::mem::take(&mut member.member_assignment);
                if self.placement == Placement::Exact {
                    let assignment = assignment::show(&assignment);
                    assignments.push(format!("assignment of {}: {assignment}", member.member_id));
                }
            }
        }
        format!("{answer:#?}\n{}", assignments.join("\n"))
    }

    fn found(self, mut answer: FindCoordinatorResponse) -> String {
        let own = |host: &mut StrBytes, port: &mut i32| {
            if format!("{}:{port}", host.as_str()) == self.address {
                (*host, *port) = (StrBytes::from_static_str("the side's address"), 0);
            }
        };
        own(&mut answer.host, &mut answer.port);
        answer
            .coordinators
            .iter_mut()
            .for_each(|coordinator| own(&mut coordinator.host, &mut coordinator.port));
        format!("{answer:#?}")
    }

    fn beaten(self, mut answer: ConsumerGroupHeartbeatResponse) -> String {
        answer.member_id = answer.member_id.map(|id| self.member(&id));
        if self.placement == Placement::Any {
            answer.assignment = None;
        }
        if let Some(assignment) = &mut answer.assignment {
            assignment.topic_partitions.sort_by_key(|topic| topic.topic_id);
            for topic in &mut assignment.topic_partitions {
                self.placement.reduce(&mut topic.partitions);
            }
        }
        format!("{answer:#?}")
    }

    fn described_consumers(self, mut answer: ConsumerGroupDescribeResponse) -> String {
        let in_order = |topics: &mut Vec<Described>| {
            topics.sort_by_key(|topic| topic.topic_id);
            topics
                .iter_mut()
                .for_each(|topic| self.placement.reduce(&mut topic.partitions));
        };
        answer.groups.sort_by_key(|group| group.group_id.clone());
        for group in &mut answer.groups {
            for member in &mut group.members {
                member.member_id = self.member(&member.member_id);
                member.subscribed_topic_names.sort();
                if self.placement == Placement::Any {
                    member.assignment.topic_partitions.clear();
                }
                in_order(&mut member.assignment.topic_partitions);
                in_order(&mut member.target_assignment.topic_partitions);
            }
            group
                .members
                .sort_by_key(|member| (member.member_id.clone(), member.client_id.clone()));
        }
        format!("{answer:#?}")
    }
}
