//! Members of consumer groups (KIP-848): what they say, and when, as stock clients do (`ConsumerHeartbeatRequestManager` and
//! `ConsumerMembershipManager` of Kafka's own).
//!
//! A member joins with everything. Whatever it is told to hold it takes at once and says so at once; after that it beats with its
//! id and epoch alone, at the interval that the answers name.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use convoke_support::Result;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::consumer_group_describe_response::{self as described, DescribedGroup};
use kafka_protocol::messages::consumer_group_heartbeat_request::TopicPartitions;
use kafka_protocol::messages::consumer_group_heartbeat_response::Assignment;
use kafka_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, GroupId, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::messages::topic_name;
use crate::wire::{Client, accepted, decode};

pub const HEARTBEAT: i16 = 1;
pub const DESCRIBE: i16 = 1;

const JOIN: i32 = 0;
const LEAVE: i32 = -1;

/// `max.poll.interval.ms` of a stock client.
pub const REBALANCE_TIMEOUT_MS: i32 = 300_000;

/// `retry.backoff.ms` of a stock client.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Heartbeats that a member alone may need until it has everything.
const PATIENCE: usize = 300;

/// Partitions by the id of their topic.
pub type Partitions = BTreeMap<Uuid, BTreeSet<i32>>;

#[derive(Debug)]
pub struct Consumer {
    group_id: GroupId,
    member_id: StrBytes,
    topics: Vec<TopicName>,
    epoch: i32,
    owned: Partitions,
    says: Says,
}

/// What the heartbeat says that is under way or comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Everything,
    /// What it owns since it was told to.
    Owned,
    /// Only that it is there.
    Nothing,
}

impl Consumer {
    #[must_use]
    pub fn new(group_id: &str, number: usize, topics: Vec<TopicName>) -> Self {
        Self {
            group_id: GroupId(StrBytes::from_string(group_id.to_owned())),
            // As long as the ids of stock clients.
            member_id: StrBytes::from_string(format!("bench-member-{number:09}")),
            topics,
            epoch: JOIN,
            owned: Partitions::new(),
            says: Says::Everything,
        }
    }

    /// The member's next heartbeat.
    #[must_use]
    pub fn heartbeat(&self) -> ConsumerGroupHeartbeatRequest {
        let request = ConsumerGroupHeartbeatRequest::default()
            .with_group_id(self.group_id.clone())
            .with_member_id(self.member_id.clone())
            .with_member_epoch(self.epoch);
        match self.says {
            Says::Everything => request
                .with_rebalance_timeout_ms(REBALANCE_TIMEOUT_MS)
                .with_subscribed_topic_names(Some(self.topics.clone()))
                .with_topic_partitions(Some(Vec::new())),
            Says::Owned => {
                let owned = self.owned.iter().map(|(&topic_id, partitions)| {
                    TopicPartitions::default()
                        .with_topic_id(topic_id)
                        .with_partitions(partitions.iter().copied().collect())
                });
                request.with_topic_partitions(Some(owned.collect()))
            }
            Says::Nothing => request,
        }
    }

    /// The heartbeat by which the member leaves.
    #[must_use]
    pub fn leave(&self) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest::default()
            .with_group_id(self.group_id.clone())
            .with_member_id(self.member_id.clone())
            .with_member_epoch(LEAVE)
    }

    /// Takes in an answer, and says how long the next heartbeat has time.
    ///
    /// # Errors
    /// When the member is refused.
    pub fn answered(&mut self, response: ConsumerGroupHeartbeatResponse) -> Result<Duration> {
        match ResponseError::try_from_code(response.error_code) {
            None => {}
            Some(ResponseError::CoordinatorLoadInProgress | ResponseError::CoordinatorNotAvailable) => {
                return Ok(RETRY_PAUSE);
            }
            Some(error) => {
                return Err(format!("ConsumerGroupHeartbeat: {error:?} {:?}", response.error_message).into());
            }
        }
        self.epoch = response.member_epoch;
        let joined = self.says == Says::Everything;
        let told = response.assignment.as_ref().map(partitions);
        // The first assignment is taken up even if it is empty.
        match told.filter(|told| joined || *told != self.owned) {
            Some(told) => {
                self.owned = told;
                self.says = Says::Owned;
                Ok(Duration::ZERO)
            }
            None => {
                self.says = Says::Nothing;
                Ok(Duration::from_millis(u64::try_from(response.heartbeat_interval_ms)?))
            }
        }
    }

    /// How many partitions the member owns, once the coordinator has answered what it said of them.
    #[must_use]
    pub fn acknowledged(&self) -> Option<usize> {
        (self.says == Says::Nothing).then(|| self.owned.values().map(BTreeSet::len).sum())
    }
}

/// Makes a client the only member of a new group and the owner of all partitions of a topic; what it returns beats with no more than its
/// id and its epoch.
///
/// # Errors
/// When it cannot join.
pub fn join_alone(client: &mut Client, group_id: &str, topic: &str, partitions: usize) -> Result<Consumer> {
    let mut consumer = Consumer::new(group_id, 0, vec![topic_name(topic)]);
    for _ in 0..PATIENCE {
        let pause = consumer.answered(client.call(&consumer.heartbeat(), HEARTBEAT)?)?;
        if consumer.acknowledged() == Some(partitions) {
            return Ok(consumer);
        }
        std::thread::sleep(pause.min(RETRY_PAUSE));
    }
    Err(format!("the only member of {group_id} has {:?}", consumer.owned).into())
}

/// # Errors
/// Unless the answer to a heartbeat of a settled member is NONE and tells of nothing new.
pub fn verify_heartbeat(answer: &[u8]) -> Result<()> {
    let response = decode::<ConsumerGroupHeartbeatRequest>(answer, HEARTBEAT)?;
    accepted(response.error_code)?;
    match response.assignment {
        None => Ok(()),
        Some(assignment) => Err(format!("a settled member is told of {assignment:?}").into()),
    }
}

/// Whether each of the members has, by what the coordinator shows of the group, what it was assigned, and owns just that, and they
/// own `count` partitions between them, none twice.
///
/// # Errors
/// What is not so.
pub fn verify_settled(client: &mut Client, members: &[&Consumer], count: usize) -> Result<()> {
    let group_id = members.first().ok_or("a group without members")?.group_id.clone();
    let request = ConsumerGroupDescribeRequest::default().with_group_ids(vec![group_id]);
    let response = client.call(&request, DESCRIBE)?;
    let group = response.groups.first().ok_or("no group in the answer")?;
    accepted(group.error_code)?;
    compare(group, members, count)
}

fn compare(group: &DescribedGroup, members: &[&Consumer], count: usize) -> Result<()> {
    let mut all = BTreeSet::new();
    for member in members {
        let shown = group.members.iter().find(|shown| shown.member_id == member.member_id);
        let shown = shown.ok_or_else(|| format!("{} is not in the group", member.member_id))?;
        let (assigned, target) = (
            shown_partitions(&shown.assignment),
            shown_partitions(&shown.target_assignment),
        );
        if assigned != target || assigned != member.owned {
            return Err(format!(
                "{} owns {:?}, was assigned {assigned:?}, and is to have {target:?}",
                member.member_id, member.owned
            )
            .into());
        }
        for (&topic_id, partitions) in &member.owned {
            for &partition in partitions {
                if !all.insert((topic_id, partition)) {
                    return Err(format!("{topic_id}-{partition} has two owners").into());
                }
            }
        }
    }
    if (group.members.len(), all.len()) != (members.len(), count) {
        return Err(format!(
            "{} members of {} own {} partitions of {count}",
            members.len(),
            group.members.len(),
            all.len()
        )
        .into());
    }
    Ok(())
}

fn partitions(assignment: &Assignment) -> Partitions {
    let topics = assignment.topic_partitions.iter();
    topics
        .map(|topic| (topic.topic_id, topic.partitions.iter().copied().collect()))
        .collect()
}

fn shown_partitions(assignment: &described::Assignment) -> Partitions {
    let topics = assignment.topic_partitions.iter();
    topics
        .map(|topic| (topic.topic_id, topic.partitions.iter().copied().collect()))
        .collect()
}

#[cfg(test)]
mod tests;
