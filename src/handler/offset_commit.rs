//! OffsetCommit (8).
//!
//! v2-4 retention time. v6 leader epoch. v7 group instance id. v8 flexible. v9 errors of KIP-848. v10 topic ids, no names.
//! Topics that the caller may not read, and topics and partitions that the upstream does not have, are refused before the coordinator sees the rest; if nothing is
//! left, it is not asked. [`partitions`](super::partitions) says how the answer is put together.

use bytes::Bytes;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};

use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::convert::{optional_text, text, wire};
use super::merge::first_error;
use super::partitions::{Checked, answered};
use super::topics::{Lookups, NAMES_UP_TO, named, refusal};
use super::{Answer, ClientUpstream};
use crate::coordinator::request::{
    self as core, OffsetCommitPartition, OffsetCommitTopic, OffsetTopic, Request, Response, Text,
};
use crate::upstream::cluster::Topic;
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

/// `retention_time_ms` of a client that leaves it to the broker.
const DEFAULT_RETENTION: i64 = -1;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: OffsetCommitRequest = codec::decode_request(call.version, body)?;
    let is_delegated = call.is_delegated(&request.group_id);
    if is_delegated && call.can_forward() {
        return Ok(Answer::Forward);
    }
    let checked = match access.group(&request.group_id, Operation::Read).await {
        Ok(()) => check(call, access, &request).await,
        Err(error) => Err(error),
    };
    let mut topics = match checked {
        Ok(topics) => topics,
        Err(error) => return fail(call, &request, error),
    };
    if topics.iter().all(|topic| topic.accepted().next().is_none()) {
        return answer(call, &topics);
    }
    let response = if is_delegated {
        Response::NotOwned
    } else {
        let commit = Request::OffsetCommit(to_core(call.version, &request, &topics));
        call.services.coordinator.call(&request.group_id, commit).await
    };
    match response {
        Response::OffsetCommit(response) => fill_in(&mut topics, response.topics.into_iter().flat_map(|topic| topic.1)),
        Response::NotOwned if call.can_forward() => return Ok(Answer::Forward),
        Response::NotOwned => relay(call, access.upstream, &request, &mut topics).await,
        Response::Unavailable { error } => refuse(&mut topics, error),
        _ => refuse(&mut topics, ErrorCode::UNKNOWN_SERVER_ERROR),
    }
    answer(call, &topics)
}

/// A topic of the request.
struct CheckedTopic {
    /// As the request names it, and so the answer.
    asked: OffsetTopic,
    /// As the upstream knows it.
    found: Result<Topic, ErrorCode>,
    partitions: Vec<CheckedPartition>,
}

struct CheckedPartition {
    commit: OffsetCommitPartition,
    /// Why the coordinator is not asked.
    refusal: Option<ErrorCode>,
    /// What it said.
    decision: Option<ErrorCode>,
}

impl CheckedTopic {
    fn open(&self) -> impl Iterator<Item = &CheckedPartition> {
        self.partitions.iter().filter(|partition| partition.refusal.is_none())
    }

    fn accepted(&self) -> impl Iterator<Item = &OffsetCommitPartition> {
        self.open().map(|partition| &partition.commit)
    }
}

/// Looks every topic up, after asking whether the caller may read it: to whom may not, one that exists and one that does not
/// are the same. An id that no topic has has no name to ask by.
async fn check(
    call: &Call<'_>,
    access: &mut Access<'_, impl ClientUpstream>,
    request: &OffsetCommitRequest,
) -> Result<Vec<CheckedTopic>, ErrorCode> {
    let mut lookups = Lookups::new(call);
    let mut names = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        names.push(lookups.name(&named(&topic.name, topic.topic_id)).await);
    }
    let known = names.iter().filter_map(|name| name.as_ref().ok().cloned());
    let denied = access.topics(known, Operation::Read).await?;
    let mut topics = Vec::with_capacity(request.topics.len());
    let mut metadata = Text::from("");
    for (topic, name) in request.topics.iter().zip(names) {
        let asked = named(&topic.name, topic.topic_id);
        let highest = topic.partitions.iter().map(|partition| partition.partition_index).max();
        let found = match name {
            Ok(name) if denied.contains(&name) => Err(ErrorCode::TOPIC_AUTHORIZATION_FAILED),
            Ok(_) => lookups.find_partition(&asked, highest.unwrap_or(0)).await,
            Err(error) => Err(error),
        };
        let partitions = topic.partitions.iter().map(|partition| CheckedPartition {
            commit: to_core_partition(partition, &mut metadata),
            refusal: refusal(&found, partition.partition_index),
            decision: None,
        });
        let partitions = partitions.collect();
        topics.push(CheckedTopic {
            asked,
            found,
            partitions,
        });
    }
    Ok(topics)
}

/// One error for everything that the request names, as it names it.
fn fail(call: &Call<'_>, request: &OffsetCommitRequest, error: ErrorCode) -> Handled {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter();
        let partitions = partitions.map(|partition| (partition.partition_index, error));
        (named(&topic.name, topic.topic_id), partitions.collect())
    });
    reply(call, topics.collect())
}

fn to_core(version: i16, request: &OffsetCommitRequest, topics: &[CheckedTopic]) -> core::OffsetCommitRequest {
    let accepted = topics.iter().filter_map(|topic| {
        let partitions: Vec<_> = topic.accepted().cloned().collect();
        let found = topic.found.as_ref().ok().filter(|_| !partitions.is_empty())?;
        Some(OffsetCommitTopic {
            name: found.name.clone(),
            topic_id: found.id,
            partitions,
        })
    });
    core::OffsetCommitRequest {
        group_id: text(&request.group_id),
        generation_id_or_member_epoch: request.generation_id_or_member_epoch,
        member_id: text(&request.member_id),
        group_instance_id: optional_text(request.group_instance_id.as_ref()),
        retention_time_ms: (request.retention_time_ms != DEFAULT_RETENTION).then_some(request.retention_time_ms),
        knows_member_epochs: version >= 9,
        topics: accepted.collect(),
    }
}

/// `metadata` is that of the partition before: it is the same with most clients, and mostly empty.
fn to_core_partition(partition: &OffsetCommitRequestPartition, metadata: &mut Text) -> OffsetCommitPartition {
    let committed = partition.committed_metadata.as_deref().unwrap_or_default();
    if &**metadata != committed {
        *metadata = Text::from(committed);
    }
    OffsetCommitPartition {
        partition: partition.partition_index,
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: Text::clone(metadata),
    }
}

/// Decides the open partitions by the errors that came for them, in the order of the request.
fn fill_in(topics: &mut [CheckedTopic], errors: impl IntoIterator<Item = (i32, ErrorCode)>) {
    let mut errors = errors.into_iter();
    for partition in topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        if partition.refusal.is_none() {
            partition.decision = errors.next().map(|(_, error)| error);
        }
    }
}

fn refuse(topics: &mut [CheckedTopic], error: ErrorCode) {
    for partition in topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        partition.decision = Some(error);
    }
}

fn answer(call: &Call<'_>, topics: &[CheckedTopic]) -> Handled {
    let checked = topics.iter().map(|topic| {
        let partitions = topic.partitions.iter();
        Checked {
            topic: topic.asked.clone(),
            partitions: partitions
                .map(|partition| (partition.commit.partition, partition.refusal))
                .collect(),
            is_refused: topic.found.is_err(),
        }
    });
    let checked: Vec<_> = checked.collect();
    let open = topics.iter().flat_map(CheckedTopic::open);
    let decided = open.map(|partition| partition.decision.unwrap_or(ErrorCode::UNKNOWN_SERVER_ERROR));
    reply(call, answered(&checked, decided))
}

fn reply(call: &Call<'_>, topics: Vec<(OffsetTopic, Vec<(i32, ErrorCode)>)>) -> Handled {
    let errors = topics.iter().flat_map(|(_, partitions)| partitions);
    let error = first_error(errors.map(|(_, error)| error.0));
    let topics = topics.into_iter().map(|(topic, partitions)| {
        let partitions = partitions.into_iter().map(|(index, error)| {
            OffsetCommitResponsePartition::default()
                .with_partition_index(index)
                .with_error_code(error.0)
        });
        OffsetCommitResponseTopic::default()
            .with_name(wire(&topic.name).into())
            .with_topic_id(topic.topic_id)
            .with_partitions(partitions.collect())
    });
    call.reply(&OffsetCommitResponse::default().with_topics(topics.collect()), error)
}

/// Commits at an upstream that does not speak the client's version.
async fn relay(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    request: &OffsetCommitRequest,
    topics: &mut [CheckedTopic],
) {
    let accepted = topics.iter().filter_map(|topic| {
        let partitions: Vec<_> = topic.accepted().map(to_wire_partition).collect();
        let found = topic.found.as_ref().ok().filter(|_| !partitions.is_empty())?;
        Some(
            OffsetCommitRequestTopic::default()
                .with_name(wire(&found.name).into())
                .with_partitions(partitions),
        )
    });
    let relayed = request.clone().with_topics(accepted.collect());
    let version = call.upstream_version(call.version.min(NAMES_UP_TO));
    match call.ask::<OffsetCommitResponse>(upstream, version, &relayed).await {
        Ok(response) => fill_in(
            topics,
            response.topics.into_iter().flat_map(|topic| {
                let errors = topic.partitions.into_iter();
                errors.map(|partition| (partition.partition_index, ErrorCode(partition.error_code)))
            }),
        ),
        Err(error) => refuse(topics, error),
    }
}

fn to_wire_partition(partition: &OffsetCommitPartition) -> OffsetCommitRequestPartition {
    OffsetCommitRequestPartition::default()
        .with_partition_index(partition.partition)
        .with_committed_offset(partition.offset)
        .with_committed_leader_epoch(partition.leader_epoch)
        .with_committed_metadata(Some(wire(&partition.metadata)))
}
