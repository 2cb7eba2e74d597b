//! OffsetFetch (9).
//!
//! v1 has no error of the group: it stands at each partition. v2 may ask for all topics. v5 leader epochs. v6 flexible.
//! v7 may insist on stable offsets. v8 several groups. v9 member id and epoch. v10 topic ids, no names.
//! A topic that the caller may not describe is an error at its partitions, and left out of all topics.
//! An unknown group is no error, nor is an unknown name: there is no offset. An id that no topic has is UNKNOWN_TOPIC_ID.

mod answer;
mod query;

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka_protocol::messages::offset_fetch_response::{OffsetFetchResponseGroup, OffsetFetchResponseTopic};
use kafka_protocol::messages::{OffsetFetchRequest, OffsetFetchResponse};
use uuid::Uuid;

use self::answer::{by_name, encode};
use self::query::{GroupQuery, Topics};
use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::convert::text;
use super::merge::{ByName, Part, ask_ours, is_whole};
use super::topics::{Lookups, NAMES_UP_TO};
use super::{Answer, ClientUpstream};
use crate::coordinator::request::{self as core, FetchedOffset, OffsetTopic, Request, Response, Text};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

/// The first version with several groups.
const GROUPS_SINCE: i16 = 8;
/// The first version that can insist on stable offsets.
const STABLE_SINCE: i16 = 7;

/// What is known of a group's offsets, by topic name.
type Fetched = core::OffsetFetchResponse;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: OffsetFetchRequest = codec::decode_request(call.version, body)?;
    let mut queries = query::read(call, &request).await;
    let refused = check(call, access, &mut queries).await;
    let granted = queries.iter().filter(|query| !refused.contains_key(&query.group_id));
    let requests = granted.map(|query| {
        let fetch = Request::OffsetFetch(query.to_core(request.require_stable));
        (query.group_id.clone(), fetch)
    });
    let parts = ask_ours(call, requests.collect(), |_, response| part(response)).await;
    if refused.is_empty() && is_whole(&parts) && call.can_forward() {
        return Ok(Answer::Forward);
    }
    let mut parts = parts.into_iter().map(|(_, part)| part);
    let mut all = Vec::with_capacity(queries.len());
    for query in &queries {
        let part = match refused.get(&query.group_id) {
            Some(error) => Part::Answered(failed(*error)),
            None => parts
                .next()
                .unwrap_or_else(|| Part::Answered(failed(ErrorCode::UNKNOWN_SERVER_ERROR))),
        };
        all.push(without_hidden(access, query, part).await);
    }
    let mut theirs = theirs(call, access.upstream, &queries, &all, request.require_stable)
        .await
        .into_iter();
    let mut answers = Vec::with_capacity(queries.len());
    for (query, part) in queries.iter().zip(all) {
        let fetched = part
            .answered()
            .or_else(|| theirs.next())
            .unwrap_or_else(|| failed(ErrorCode::COORDINATOR_NOT_AVAILABLE));
        answers.push(finish(call, query, fetched).await);
    }
    encode(call, &queries, answers)
}

/// Takes the topics out of the queries that the caller may not describe, and gives the groups that are not to be looked at,
/// each with its error.
async fn check(
    call: &Call<'_>,
    access: &mut Access<'_, impl ClientUpstream>,
    queries: &mut [GroupQuery],
) -> BTreeMap<Text, ErrorCode> {
    // What a rule leaves with the upstream is the upstream's to refuse.
    let ours = queries.iter_mut().filter(|query| !call.is_delegated(&query.group_id));
    let mut ours: Vec<&mut GroupQuery> = ours.collect();
    let group_ids: Vec<Text> = ours.iter().map(|query| query.group_id.clone()).collect();
    let mut refused = access.groups(&group_ids, Operation::Describe).await;
    ours.retain(|query| !refused.contains_key(&query.group_id));
    let names: Vec<Text> = ours.iter().flat_map(|query| query.topic_names()).collect();
    match access.topics(names, Operation::Describe).await {
        Ok(denied) => ours.iter_mut().for_each(|query| query.deny(&denied)),
        Err(error) => {
            // Groups without named topics go on, and fail by themselves if they have to.
            ours.retain(|query| query.topic_names().next().is_some());
            refused.extend(ours.iter().map(|query| (query.group_id.clone(), error)));
        }
    }
    refused
}

/// Of all topics, those that the caller may describe; the upstream has seen to its own.
async fn without_hidden(
    access: &mut Access<'_, impl ClientUpstream>,
    query: &GroupQuery,
    part: Part<Fetched>,
) -> Part<Fetched> {
    match part {
        Part::Answered(mut fetched) if matches!(query.topics, Topics::All) => {
            let names = fetched.topics.iter().map(|(topic, _)| topic.name.clone());
            match access.topics(names, Operation::Describe).await {
                Ok(denied) => fetched.topics.retain(|(topic, _)| !denied.contains(&topic.name)),
                Err(error) => fetched = failed(error),
            }
            Part::Answered(fetched)
        }
        part => part,
    }
}

fn part(response: Response) -> Part<Fetched> {
    match response {
        Response::OffsetFetch(response) => Part::Answered(response),
        Response::NotOwned => Part::Upstream,
        Response::Unavailable { error } => Part::Answered(failed(error)),
        _ => Part::Answered(failed(ErrorCode::UNKNOWN_SERVER_ERROR)),
    }
}

/// COORDINATOR_NOT_AVAILABLE is the end for older clients here, which look for the coordinator when they hear NOT_COORDINATOR.
fn failed(error: ErrorCode) -> Fetched {
    let error = match error {
        ErrorCode::COORDINATOR_NOT_AVAILABLE => ErrorCode::NOT_COORDINATOR,
        error => error,
    };
    Fetched {
        error,
        topics: Vec::new(),
    }
}

/// Fetches the upstream's groups there, by topic names and in the order of the queries.
async fn theirs(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    queries: &[GroupQuery],
    parts: &[Part<Fetched>],
    require_stable: bool,
) -> Vec<Fetched> {
    let asked: Vec<&GroupQuery> = queries
        .iter()
        .zip(parts)
        .filter(|(_, part)| matches!(part, Part::Upstream))
        .map(|(query, _)| query)
        .collect();
    let version = call.upstream_version(call.version.min(NAMES_UP_TO));
    let at_once = if version >= GROUPS_SINCE { asked.len().max(1) } else { 1 };
    let mut fetched = Vec::with_capacity(asked.len());
    for asked in asked.chunks(at_once) {
        let request = query::to_wire(asked, version, require_stable);
        match call.ask::<OffsetFetchResponse>(upstream, version, &request).await {
            Ok(response) => fetched.extend(by_group(asked, version, response)),
            Err(error) => fetched.extend(asked.iter().map(|_| failed(error))),
        }
    }
    fetched
}

/// The upstream's answers in the order of what was asked.
fn by_group(asked: &[&GroupQuery], version: i16, response: OffsetFetchResponse) -> Vec<Fetched> {
    if version < GROUPS_SINCE {
        let topics = response.topics.into_iter().map(from_single);
        return vec![Fetched {
            error: ErrorCode(response.error_code),
            topics: topics.collect(),
        }];
    }
    let groups = response.groups.into_iter();
    let mut groups: ByName<_> = groups.map(|group| (text(&group.group_id), group)).collect();
    let answers = asked.iter().map(|query| {
        let group = groups.take(&query.group_id);
        group.map_or(failed(ErrorCode::COORDINATOR_NOT_AVAILABLE), from_group)
    });
    answers.collect()
}

fn from_group(group: OffsetFetchResponseGroup) -> Fetched {
    let topics = group.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter().map(|partition| FetchedOffset {
            partition: partition.partition_index,
            offset: partition.committed_offset,
            leader_epoch: partition.committed_leader_epoch,
            metadata: text(&partition.metadata.unwrap_or_default()),
            error: ErrorCode(partition.error_code),
        });
        (named(text(&topic.name)), partitions.collect())
    });
    Fetched {
        error: ErrorCode(group.error_code),
        topics: topics.collect(),
    }
}

fn from_single(topic: OffsetFetchResponseTopic) -> (OffsetTopic, Vec<FetchedOffset>) {
    let partitions = topic.partitions.into_iter().map(|partition| FetchedOffset {
        partition: partition.partition_index,
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: text(&partition.metadata.unwrap_or_default()),
        error: ErrorCode(partition.error_code),
    });
    (named(text(&topic.name)), partitions.collect())
}

fn named(name: Text) -> OffsetTopic {
    OffsetTopic {
        name,
        topic_id: Uuid::nil(),
    }
}

/// Puts the offsets under the names or ids of the request. An error of the group stands alone.
async fn finish(call: &Call<'_>, query: &GroupQuery, fetched: Fetched) -> Fetched {
    let error = fetched.error;
    if !error.is_none() {
        return failed(error);
    }
    let topics = match &query.topics {
        Topics::Unanswerable(error) => return failed(*error),
        Topics::Named(topics) => by_name(topics, fetched.topics),
        Topics::All if call.version <= NAMES_UP_TO => with_names(call, fetched.topics),
        Topics::All => match with_ids(call, fetched.topics).await {
            Ok(topics) => topics,
            Err(error) => return failed(error),
        },
    };
    Fetched { error, topics }
}

/// Takes the ids away, for versions that name topics. Offsets of a topic that was made anew since are left out.
fn with_names(
    call: &Call<'_>,
    topics: Vec<(OffsetTopic, Vec<FetchedOffset>)>,
) -> Vec<(OffsetTopic, Vec<FetchedOffset>)> {
    let mut known = Vec::with_capacity(topics.len());
    for (topic, offsets) in topics {
        if !is_earlier(&topic, query::shown_id(call, &topic.name)) {
            add(&mut known, named(topic.name), offsets);
        }
    }
    known
}

/// Adds the ids, for versions that name no topics. Topics that are gone are left out, and so are those made anew since.
async fn with_ids(
    call: &Call<'_>,
    topics: Vec<(OffsetTopic, Vec<FetchedOffset>)>,
) -> Result<Vec<(OffsetTopic, Vec<FetchedOffset>)>, ErrorCode> {
    let mut lookups = Lookups::new(call);
    let mut known = Vec::with_capacity(topics.len());
    for (mut topic, offsets) in topics {
        let id = match lookups.by_name(&topic.name).await {
            Ok(found) => found.id,
            Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => continue,
            // The whole group is to be fetched again: Java's client takes this error at a partition as fatal.
            Err(error) => return Err(error),
        };
        // An upstream without topic ids knows no version that speaks of them.
        if !id.is_nil() && !is_earlier(&topic, id) {
            topic.topic_id = id;
            add(&mut known, topic, offsets);
        }
    }
    Ok(known)
}

/// Whether the offsets were committed to an earlier topic of the name; `now` is the id of the one that has it now.
fn is_earlier(topic: &OffsetTopic, now: Uuid) -> bool {
    !topic.topic_id.is_nil() && !now.is_nil() && topic.topic_id != now
}

/// A topic stands in an answer once. The parts of one, stored with and without its id, come one after the other.
fn add(known: &mut Vec<(OffsetTopic, Vec<FetchedOffset>)>, topic: OffsetTopic, offsets: Vec<FetchedOffset>) {
    match known.last_mut() {
        Some((last, known)) if *last == topic => known.extend(offsets),
        _ => known.push((topic, offsets)),
    }
}
