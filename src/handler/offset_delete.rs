//! OffsetDelete (47, KIP-496), one version.
//!
//! Partitions that the caller may not read or that the upstream does not have are refused one by one; the coordinator is asked all the same, so that a bad
//! group is told. An error of the group stands alone. [`partitions`](super::partitions) says how the answer is put together.

use std::collections::BTreeSet;

use bytes::Bytes;
use kafka_protocol::messages::offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use kafka_protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse};
use uuid::Uuid;

use super::ClientUpstream;
use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::convert::{text, wire};
use super::merge::first_error;
use super::partitions::{Checked, answered};
use super::topics::{Lookups, named, refusal};
use crate::coordinator::request::{self as core, Request, Response, Text};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

type CheckedTopic = Checked<Text>;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: OffsetDeleteRequest = codec::decode_request(call.version, body)?;
    if call.is_delegated(&request.group_id) {
        return call.pass_on(|error| fail(call, error));
    }
    if let Err(error) = access.group(&request.group_id, Operation::Delete).await {
        return fail(call, error);
    }
    if request.group_id.is_empty() {
        return fail(call, ErrorCode::INVALID_GROUP_ID);
    }
    let names = request.topics.iter().map(|topic| text(&topic.name));
    let denied = match access.topics(names, Operation::Read).await {
        Ok(denied) => denied,
        Err(error) => return fail(call, error),
    };
    let topics = check(call, &request, &denied).await;
    let delete = Request::OffsetDelete(core::OffsetDeleteRequest {
        group_id: text(&request.group_id),
        topics: accepted(&topics),
    });
    match call.services.coordinator.call(&request.group_id, delete).await {
        Response::OffsetDelete(response) if response.error.is_none() => answer(call, &topics, response),
        Response::OffsetDelete(response) => fail(call, response.error),
        Response::NotOwned => call.pass_on(|error| fail(call, error)),
        Response::Unavailable { error } => fail(call, error),
        _ => fail(call, ErrorCode::UNKNOWN_SERVER_ERROR),
    }
}

fn fail(call: &Call<'_>, error: ErrorCode) -> Handled {
    call.reply(&OffsetDeleteResponse::default().with_error_code(error.0), error)
}

async fn check(call: &Call<'_>, request: &OffsetDeleteRequest, denied: &BTreeSet<Text>) -> Vec<CheckedTopic> {
    let mut lookups = Lookups::new(call);
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let asked = named(&topic.name, Uuid::nil());
        let found = if denied.contains(&asked.name) {
            Err(ErrorCode::TOPIC_AUTHORIZATION_FAILED)
        } else {
            lookups.find(&asked).await
        };
        let partitions = topic
            .partitions
            .iter()
            .map(|partition| (partition.partition_index, refusal(&found, partition.partition_index)));
        topics.push(Checked {
            partitions: partitions.collect(),
            topic: asked.name,
            is_refused: found.is_err(),
        });
    }
    topics
}

fn accepted(topics: &[CheckedTopic]) -> Vec<(Text, Vec<i32>)> {
    let open = topics.iter().map(|checked| {
        let open = checked.partitions.iter().filter(|(_, error)| error.is_none());
        (
            checked.topic.clone(),
            open.map(|(partition, _)| *partition).collect::<Vec<_>>(),
        )
    });
    open.filter(|(_, partitions)| !partitions.is_empty()).collect()
}

fn answer(call: &Call<'_>, topics: &[CheckedTopic], response: core::OffsetDeleteResponse) -> Handled {
    let decided = response.topics.into_iter().flat_map(|(_, partitions)| partitions);
    let topics = answered(topics, decided.map(|(_, error)| error));
    let errors = topics.iter().flat_map(|(_, partitions)| partitions);
    let error = first_error(errors.map(|(_, error)| error.0));
    let topics = topics.into_iter().map(|(name, partitions)| {
        let partitions = partitions.into_iter().map(|(index, error)| {
            OffsetDeleteResponsePartition::default()
                .with_partition_index(index)
                .with_error_code(error.0)
        });
        OffsetDeleteResponseTopic::default()
            .with_name(wire(&name).into())
            .with_partitions(partitions.collect())
    });
    call.reply(&OffsetDeleteResponse::default().with_topics(topics.collect()), error)
}
