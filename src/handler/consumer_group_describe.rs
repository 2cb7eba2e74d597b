//! ConsumerGroupDescribe (69, KIP-848).
//!
//! v1 (KIP-1099) tells members that speak the classic protocol.
//! A group with a topic that the caller may not describe is told as an error without members. Groups that the caller may not
//! describe come first, as Kafka has them.

use std::collections::BTreeSet;

use bytes::Bytes;
use kafka_protocol::messages::consumer_group_describe_response::{Assignment, DescribedGroup, Member, TopicPartitions};
use kafka_protocol::messages::{ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, TopicName};

use super::access::{Access, Operation};
use super::call::{Call, Handled};
use super::convert::{optional_wire, text, wire};
use super::merge::{Part, Theirs, ask_ours, first_error, is_whole, named, split};
use super::{Answer, ClientUpstream};
use crate::coordinator::request::{self as core, Request, Response, Text};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

/// The newest version.
const VERSION_MAX: i16 = 1;
/// The first version that tells what protocol a member speaks.
const MEMBER_TYPE_SINCE: i16 = 1;
/// What such a field says of each protocol, and where it does not exist.
const CLASSIC_MEMBER: i8 = 0;
const CONSUMER_MEMBER: i8 = 1;
const NO_MEMBER_TYPE: i8 = -1;
/// In Kafka's words.
const HIDDEN_TOPICS: &str = "The group has described topic(s) that the client is not authorized to describe.";

type Described = Part<DescribedGroup>;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    let request: ConsumerGroupDescribeRequest = codec::decode_request(call.version, body)?;
    let group_ids = named(&request.group_ids);
    let (refused, granted) = split(call, access, group_ids, Operation::Describe).await;
    let requests = granted.into_iter().map(|group_id| {
        let describe = Request::ConsumerGroupDescribe {
            group_id: group_id.clone(),
        };
        (group_id, describe)
    });
    let mut groups = ask_ours(call, requests.collect(), |group_id, response| {
        part(call.version, group_id, response)
    })
    .await;
    if refused.is_empty() && is_whole(&groups) && call.can_forward() {
        return Ok(Answer::Forward);
    }
    hide(access, &mut groups).await;
    add_theirs(call, access.upstream, &mut groups).await;
    let granted = groups.into_iter().filter_map(|(_, part)| part.answered());
    let mut granted: Vec<DescribedGroup> = granted.collect();
    if request.include_authorized_operations {
        add_operations(access, &mut granted).await;
    }
    let refused = refused.iter().map(|(group_id, error)| failed(group_id, *error));
    let described: Vec<_> = refused.chain(granted).collect();
    let error = first_error(described.iter().map(|group| group.error_code));
    call.reply(&ConsumerGroupDescribeResponse::default().with_groups(described), error)
}

fn part(version: i16, group_id: &str, response: Response) -> Described {
    match response {
        Response::ConsumerGroupDescribe(response) => Part::Answered(to_wire(version, &response)),
        Response::NotOwned => Part::Upstream,
        Response::Unavailable { error } => Part::Answered(failed(group_id, error)),
        _ => Part::Answered(failed(group_id, ErrorCode::UNKNOWN_SERVER_ERROR)),
    }
}

fn failed(group_id: &str, error: ErrorCode) -> DescribedGroup {
    DescribedGroup::default()
        .with_group_id(wire(group_id).into())
        .with_error_code(error.0)
}

/// Takes the members out of our groups that have a topic which the caller may not describe. What the upstream tells of its
/// own it has seen to itself.
async fn hide(access: &mut Access<'_, impl ClientUpstream>, groups: &mut [(Text, Described)]) {
    let ours = groups.iter().filter_map(|(_, part)| match part {
        Part::Answered(group) => Some(group),
        Part::Upstream => None,
    });
    let names: BTreeSet<Text> = ours.flat_map(topics).collect();
    let denied = access.topics(names, Operation::Describe).await;
    for (group_id, part) in groups {
        let Part::Answered(group) = part else { continue };
        match &denied {
            Ok(denied) if topics(group).any(|topic| denied.contains(&topic)) => {
                *group = failed(group_id, ErrorCode::TOPIC_AUTHORIZATION_FAILED)
                    .with_error_message(Some(wire(HIDDEN_TOPICS)));
            }
            Err(error) if topics(group).next().is_some() => *group = failed(group_id, *error),
            Ok(_) | Err(_) => {}
        }
    }
}

/// The topics that a description shows assignments of.
fn topics(group: &DescribedGroup) -> impl Iterator<Item = Text> {
    let assignments = group
        .members
        .iter()
        .flat_map(|member| [&member.assignment, &member.target_assignment]);
    let topics = assignments.flat_map(|assignment| &assignment.topic_partitions);
    topics.map(|topic| text(&topic.topic_name))
}

/// Puts in what the upstream tells of the groups that are its own.
async fn add_theirs(call: &Call<'_>, upstream: &mut impl ClientUpstream, groups: &mut [(Text, Described)]) {
    let asked = groups.iter().filter(|(_, part)| matches!(part, Part::Upstream));
    let asked: Vec<_> = asked.map(|(group_id, _)| wire(group_id).into()).collect();
    if asked.is_empty() {
        return;
    }
    let version = call.upstream_version(call.version.min(VERSION_MAX));
    let request = ConsumerGroupDescribeRequest::default().with_group_ids(asked);
    let theirs: Result<ConsumerGroupDescribeResponse, _> = call.ask(upstream, version, &request).await;
    let named = |group: DescribedGroup| (text(&group.group_id), group);
    let mut theirs = Theirs::of(theirs.map(|theirs| theirs.groups.into_iter().map(named)));
    for (group_id, part) in groups {
        if matches!(part, Part::Upstream) {
            let described = theirs.take(group_id);
            *part = Part::Answered(described.unwrap_or_else(|error| failed(group_id, error)));
        }
    }
}

/// Adds what the caller may do with each group, which only the upstream knows.
async fn add_operations(access: &mut Access<'_, impl ClientUpstream>, groups: &mut [DescribedGroup]) {
    let described = groups.iter_mut().filter(|group| group.error_code == ErrorCode::NONE.0);
    let mut described: Vec<&mut DescribedGroup> = described.collect();
    let group_ids: Vec<Text> = described.iter().map(|group| text(&group.group_id)).collect();
    let Ok(operations) = access.operations(&group_ids).await else {
        // As Kafka says it where it was not asked for.
        return;
    };
    for group in &mut described {
        if let Some(operations) = operations.get(group.group_id.as_str()) {
            group.authorized_operations = *operations;
        }
    }
}

fn to_wire(version: i16, group: &core::ConsumerGroupDescribeResponse) -> DescribedGroup {
    let members = group.members.iter().map(|member| {
        Member::default()
            .with_member_id(wire(&member.member_id))
            .with_instance_id(optional_wire(member.group_instance_id.as_ref()))
            .with_rack_id(optional_wire(member.rack_id.as_ref()))
            .with_member_epoch(member.member_epoch)
            .with_client_id(wire(&member.client_id))
            .with_client_host(wire(&member.client_host))
            .with_subscribed_topic_names(names(&member.subscribed_topic_names))
            .with_subscribed_topic_regex(optional_wire(member.subscribed_topic_regex.as_ref()))
            .with_assignment(assignment(&member.assignment))
            .with_target_assignment(assignment(&member.target_assignment))
            .with_member_type(member_type(version, member.is_classic))
    });
    DescribedGroup::default()
        .with_error_code(group.error.0)
        .with_error_message(optional_wire(group.error_message.as_ref()))
        .with_group_id(wire(&group.group_id).into())
        .with_group_state(wire(&group.state))
        .with_group_epoch(group.group_epoch)
        .with_assignment_epoch(group.assignment_epoch)
        .with_assignor_name(wire(&group.assignor_name))
        .with_members(members.collect())
}

const fn member_type(version: i16, is_classic: bool) -> i8 {
    match (version, is_classic) {
        (..MEMBER_TYPE_SINCE, _) => NO_MEMBER_TYPE,
        (_, true) => CLASSIC_MEMBER,
        (_, false) => CONSUMER_MEMBER,
    }
}

fn names(topics: &[Text]) -> Vec<TopicName> {
    topics.iter().map(|name| wire(name).into()).collect()
}

fn assignment(topics: &[core::AssignedTopic]) -> Assignment {
    let topics = topics.iter().map(|topic| {
        TopicPartitions::default()
            .with_topic_id(topic.topic_id)
            .with_topic_name(wire(&topic.name).into())
            .with_partitions(topic.partitions.clone())
    });
    Assignment::default().with_topic_partitions(topics.collect())
}
