//! The OffsetFetch response in each version.

use kafka_protocol::messages::OffsetFetchResponse;
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};

use super::query::{GroupQuery, QueriedTopic, Topics};
use super::{Fetched, GROUPS_SINCE, failed};
use crate::coordinator::request::{FetchedOffset, OffsetTopic, Text};
use crate::handler::call::{Call, Handled};
use crate::handler::convert::wire;
use crate::handler::merge::{ByName, first_error};
use crate::wire::error_code::ErrorCode;

/// The first version with an error for the group as a whole.
const GROUP_ERROR_SINCE: i16 = 2;

/// The queried topics in their order, each with the offsets that were fetched under its name; those that are refused come last.
pub(super) fn by_name(
    queried: &[QueriedTopic],
    fetched: Vec<(OffsetTopic, Vec<FetchedOffset>)>,
) -> Vec<(OffsetTopic, Vec<FetchedOffset>)> {
    let mut fetched: ByName<_> = fetched
        .into_iter()
        .map(|(topic, offsets)| (topic.name, offsets))
        .collect();
    let known = queried.iter().filter(|topic| topic.name.is_ok());
    let refused = queried.iter().filter(|topic| topic.name.is_err());
    let topics = known.chain(refused).map(|topic| {
        let offsets = match &topic.name {
            Ok(name) => fetched
                .take(name)
                .unwrap_or_else(|| none_of(topic, ErrorCode::UNKNOWN_SERVER_ERROR)),
            Err(error) => none_of(topic, *error),
        };
        (topic.asked.clone(), offsets)
    });
    topics.collect()
}

fn none_of(topic: &QueriedTopic, error: ErrorCode) -> Vec<FetchedOffset> {
    let none = topic.partitions.iter().map(|partition| FetchedOffset {
        partition: *partition,
        offset: -1,
        leader_epoch: -1,
        metadata: Text::from(""),
        error,
    });
    none.collect()
}

/// An answer that would take more memory is refused. Metadata is up to 4 KiB by default, and a request may name a partition
/// in four bytes, as often as it likes.
const SIZE_MAX: usize = 64 << 20;
/// What a partition takes beside its metadata, at most.
const PARTITION_SIZE: usize = 32;

/// Answers in the call's version; there is one answer for each query.
pub(super) fn encode(call: &Call<'_>, queries: &[GroupQuery], mut answers: Vec<Fetched>) -> Handled {
    let offsets = answers
        .iter()
        .flat_map(|answer| &answer.topics)
        .flat_map(|(_, offsets)| offsets);
    let size: usize = offsets.map(|offset| PARTITION_SIZE + offset.metadata.len()).sum();
    if size > SIZE_MAX {
        answers
            .iter_mut()
            .for_each(|answer| *answer = failed(ErrorCode::INVALID_REQUEST));
    }
    let of_groups = answers.iter().map(|answer| answer.error.0);
    let of_partitions = answers.iter().flat_map(|answer| &answer.topics);
    let of_partitions = of_partitions.flat_map(|(_, offsets)| offsets.iter().map(|offset| offset.error.0));
    let error = first_error(of_groups.chain(of_partitions));
    let mut answers = queries.iter().zip(answers);
    let response = if call.version >= GROUPS_SINCE {
        let groups = answers.map(|(query, answer)| group(query, answer));
        OffsetFetchResponse::default().with_groups(groups.collect())
    } else {
        match answers.next() {
            Some((query, answer)) => single(call.version, query, answer),
            None => OffsetFetchResponse::default(),
        }
    };
    call.reply(&response, error)
}

fn group(query: &GroupQuery, answer: Fetched) -> OffsetFetchResponseGroup {
    let topics = answer.topics.into_iter().map(|(topic, offsets)| {
        let partitions = offsets.into_iter().map(|offset| {
            OffsetFetchResponsePartitions::default()
                .with_partition_index(offset.partition)
                .with_committed_offset(offset.offset)
                .with_committed_leader_epoch(offset.leader_epoch)
                .with_metadata(Some(wire(&offset.metadata)))
                .with_error_code(offset.error.0)
        });
        OffsetFetchResponseTopics::default()
            .with_name(wire(&topic.name).into())
            .with_topic_id(topic.topic_id)
            .with_partitions(partitions.collect())
    });
    OffsetFetchResponseGroup::default()
        .with_group_id(wire(&query.group_id).into())
        .with_error_code(answer.error.0)
        .with_topics(topics.collect())
}

fn single(version: i16, query: &GroupQuery, answer: Fetched) -> OffsetFetchResponse {
    let has_place = version >= GROUP_ERROR_SINCE || answer.error.is_none();
    let topics = match &query.topics {
        Topics::Named(queried) if !has_place => {
            let failed = queried
                .iter()
                .map(|topic| (topic.asked.clone(), none_of(topic, answer.error)));
            failed.collect()
        }
        _ => answer.topics,
    };
    let topics = topics.into_iter().map(|(topic, offsets)| {
        let partitions = offsets.into_iter().map(|offset| {
            OffsetFetchResponsePartition::default()
                .with_partition_index(offset.partition)
                .with_committed_offset(offset.offset)
                .with_committed_leader_epoch(offset.leader_epoch)
                .with_metadata(Some(wire(&offset.metadata)))
                .with_error_code(offset.error.0)
        });
        OffsetFetchResponseTopic::default()
            .with_name(wire(&topic.name).into())
            .with_partitions(partitions.collect())
    });
    OffsetFetchResponse::default()
        .with_topics(topics.collect())
        .with_error_code(answer.error.0)
}
