//! A client outside of any generation: commits and fetches for a group of its own, and asks and deletes as admins do.

use std::collections::BTreeSet;

use convoke::coordinator::request::{
    ListGroupsRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest, Request, Response, Text,
};
use convoke::wire::error_code::ErrorCode;

use crate::client::{Surroundings, Wish};
use crate::commits::{by_topic, commit_topics};
use crate::plan::TOPICS;
use crate::protocol::Partition;

const REQUEST_TIMEOUT_MS: u64 = 10_000;

#[derive(Debug)]
pub(crate) struct Standalone {
    pub(crate) group_id: Text,
    /// All groups, for what an admin does.
    groups: Vec<Text>,
    next_ms: u64,
}

impl Standalone {
    pub(crate) const fn new(group_id: Text, groups: Vec<Text>) -> Self {
        Self {
            group_id,
            groups,
            next_ms: 0,
        }
    }

    pub(crate) fn next(&mut self, around: &mut Surroundings<'_>) -> Wish {
        if around.now_ms < self.next_ms {
            return Wish::WakeAt(self.next_ms);
        }
        self.next_ms = around.now_ms + around.rng.between(200, 4_000);
        let request = match around.rng.below(10) {
            0..4 => self.commit(around),
            4..7 => self.fetch(around),
            7 => Request::DescribeGroup {
                group_id: around.rng.pick(&self.groups).clone(),
            },
            8 => Request::ListGroups(ListGroupsRequest::default()),
            _ if around.rng.chance(around.faults.deletion) => self.delete(around),
            _ => self.fetch(around),
        };
        Wish::Send(Box::new(request), REQUEST_TIMEOUT_MS)
    }

    fn commit(&self, around: &mut Surroundings<'_>) -> Request {
        let partitions = some_partitions(around);
        Request::OffsetCommit(OffsetCommitRequest {
            group_id: self.group_id.clone(),
            generation_id_or_member_epoch: -1,
            member_id: "".into(),
            group_instance_id: None,
            retention_time_ms: None,
            knows_member_epochs: false,
            topics: commit_topics(&partitions, around),
        })
    }

    /// Of its own group or another, by name or all.
    fn fetch(&self, around: &mut Surroundings<'_>) -> Request {
        let group_id = if around.rng.chance(700) {
            &self.group_id
        } else {
            around.rng.pick(&self.groups)
        };
        Request::OffsetFetch(OffsetFetchRequest {
            group_id: group_id.clone(),
            member_id: None,
            member_epoch: -1,
            topics: around.rng.chance(500).then(|| by_topic(&every_partition())),
            require_stable: around.rng.chance(500),
        })
    }

    fn delete(&self, around: &mut Surroundings<'_>) -> Request {
        let group_id = around.rng.pick(&self.groups).clone();
        if around.rng.chance(500) {
            return Request::DeleteGroup { group_id };
        }
        let topics = by_topic(&some_partitions(around));
        let topics = topics
            .into_iter()
            .map(|(topic, partitions)| (topic.name, partitions))
            .collect();
        Request::OffsetDelete(OffsetDeleteRequest { group_id, topics })
    }

    pub(crate) fn on_response(&self, response: &Response) -> Result<(), String> {
        let errors: Vec<ErrorCode> = match response {
            Response::OffsetCommit(response) => {
                let partitions = response.topics.iter().flat_map(|(_, partitions)| partitions);
                partitions.map(|(_, error)| *error).collect()
            }
            Response::OffsetFetch(response) => vec![response.error],
            Response::OffsetDelete(response) => match response.error {
                ErrorCode::GROUP_ID_NOT_FOUND | ErrorCode::NON_EMPTY_GROUP => return Ok(()),
                error => vec![error],
            },
            Response::DeleteGroup { error } => match *error {
                ErrorCode::GROUP_ID_NOT_FOUND | ErrorCode::NON_EMPTY_GROUP => return Ok(()),
                error => vec![error],
            },
            Response::DescribeGroup(response) => vec![response.error],
            Response::ListGroups(_) | Response::NotOwned | Response::Unavailable { .. } => return Ok(()),
            _ => return Err(format!("{}: unexpected {response:?}", self.group_id)),
        };
        match errors.iter().find(|error| !error.is_none()) {
            Some(_) => Err(format!("{}: unexpected {response:?}", self.group_id)),
            None => Ok(()),
        }
    }
}

fn every_partition() -> BTreeSet<Partition> {
    let of =
        |(topic, (_, partitions)): (usize, &(&str, i32))| (0..*partitions).map(move |partition| (topic, partition));
    TOPICS.iter().enumerate().flat_map(of).collect()
}

fn some_partitions(around: &mut Surroundings<'_>) -> BTreeSet<Partition> {
    let mut partitions = every_partition();
    partitions.retain(|_| around.rng.chance(300));
    partitions.insert((0, 0));
    partitions
}
