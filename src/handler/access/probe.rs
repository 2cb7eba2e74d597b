//! The questions to the upstream. Each is a request that Kafka authorizes as the one it stands for, and that changes nothing:
//!
//! | what may be done | asked with | told by |
//! |---|---|---|
//! | READ, DELETE, DESCRIBE of groups | DescribeGroups v3-5 with authorized operations | the operations; a group that may not be described tells only that |
//! | READ of such a group | Heartbeat of nobody | any error but `GROUP_AUTHORIZATION_FAILED` |
//! | DELETE of such a group | OffsetDelete of nothing | as above |
//! | DESCRIBE of topics | Metadata v8-10 with authorized operations | the operations |
//! | READ of topics | Fetch v4-12 of a partition that no topic has | any error but `TOPIC_AUTHORIZATION_FAILED` |
//! | DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS of the cluster | Metadata v8-10 with the cluster's authorized operations | the operations |
//!
//! They answer alike for what exists and for what does not. Metadata tells READ of topics as well, but describes each of their
//! partitions, and hides READ behind a denied DESCRIBE, which Fetch does not.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::describe_groups_response::DescribedGroup;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::{
    DescribeGroupsRequest, DescribeGroupsResponse, FetchRequest, FetchResponse, HeartbeatRequest, MetadataRequest,
    MetadataResponse, OffsetDeleteRequest,
};

use super::decisions::{Operation, Told};
use crate::coordinator::request::Text;
use crate::handler::ClientUpstream;
use crate::handler::call::Call;
use crate::handler::convert::{text, wire};
use crate::wire::api::{DESCRIBE_GROUPS, FETCH, HEARTBEAT, METADATA, OFFSET_DELETE};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

/// The last version that tells the operations of a group that does not exist.
const DESCRIBE_GROUPS_NEWEST: i16 = 5;
/// The last version that tells the operations on the cluster.
const METADATA_NEWEST: i16 = 10;
/// The first version that every supported broker takes; up to 12 topics have names.
const FETCH_VERSION: i16 = 4;
/// The version whose answer begins with its error.
const ERROR_FIRST: i16 = 0;
/// Stands for operations that are not told.
const NOT_TOLD: i32 = i32::MIN;
/// An index that no partition has.
const NO_PARTITION: i32 = i32::MAX;

/// What a node says about a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Told(Told),
    /// The user may know of the group, but the node does not coordinate it (now): what its requests are answered.
    Elsewhere(ErrorCode),
}

/// What the user may do with the groups. A group of which nothing was said is missing.
pub(super) async fn groups(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    group_ids: &[Text],
) -> Result<Vec<(Text, Said)>, ErrorCode> {
    let groups = described(call, upstream, group_ids).await?;
    let groups = groups.iter();
    Ok(groups
        .filter_map(|group| Some((text(&group.group_id), about_group(group)?)))
        .collect())
}

/// The operations that the user may do with the groups, as Kafka's own answers carry them. A group of which nothing was said is
/// missing.
pub(super) async fn operations(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    group_ids: &[Text],
) -> Result<Vec<(Text, i32)>, ErrorCode> {
    let groups = described(call, upstream, group_ids).await?;
    let told = groups.iter().filter(|group| group.error_code == ErrorCode::NONE.0);
    Ok(told
        .map(|group| (text(&group.group_id), group.authorized_operations))
        .collect())
}

async fn described(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    group_ids: &[Text],
) -> Result<Vec<DescribedGroup>, ErrorCode> {
    let version = call.version_of(DESCRIBE_GROUPS, DESCRIBE_GROUPS_NEWEST);
    let request = DescribeGroupsRequest::default()
        .with_groups(group_ids.iter().map(|group_id| wire(group_id).into()).collect())
        .with_include_authorized_operations(true);
    let response: DescribeGroupsResponse = call.ask_api(DESCRIBE_GROUPS, upstream, version, &request).await?;
    Ok(response.groups)
}

fn about_group(group: &DescribedGroup) -> Option<Said> {
    match ErrorCode(group.error_code) {
        ErrorCode::NONE if group.authorized_operations != NOT_TOLD => {
            Some(Said::Told(Told::set(group.authorized_operations)))
        }
        ErrorCode::GROUP_AUTHORIZATION_FAILED => Some(Said::Told(Told::only(Operation::Describe, false))),
        error => elsewhere(error).map(Said::Elsewhere),
    }
}

/// What the client is answered where a node authorizes a request and does not coordinate its group. That the group is still
/// being loaded is told as an error that no client takes for fatal.
const fn elsewhere(error: ErrorCode) -> Option<ErrorCode> {
    match error {
        ErrorCode::NOT_COORDINATOR => Some(error),
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS | ErrorCode::COORDINATOR_NOT_AVAILABLE => {
            Some(ErrorCode::COORDINATOR_NOT_AVAILABLE)
        }
        _ => None,
    }
}

/// Whether the user may read or delete a group that it may not describe.
pub(super) async fn hidden_group(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    group_id: &Text,
    operation: Operation,
) -> Result<Said, ErrorCode> {
    let mut body = BytesMut::new();
    let (api_key, encoded) = match operation {
        Operation::Describe => return Ok(Said::Told(Told::only(operation, false))),
        Operation::Read => {
            let request = HeartbeatRequest::default().with_group_id(wire(group_id).into());
            (HEARTBEAT, codec::encode(&request, ERROR_FIRST, &mut body))
        }
        Operation::Delete => {
            let request = OffsetDeleteRequest::default().with_group_id(wire(group_id).into());
            (OFFSET_DELETE, codec::encode(&request, ERROR_FIRST, &mut body))
        }
    };
    if encoded.is_err() {
        return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
    }
    let answer = call.ask_raw(api_key, upstream, ERROR_FIRST, body.freeze()).await?;
    let error = first_error(&answer).ok_or(ErrorCode::COORDINATOR_NOT_AVAILABLE)?;
    let allowed = error != ErrorCode::GROUP_AUTHORIZATION_FAILED;
    let elsewhere = elsewhere(error).map(Said::Elsewhere);
    Ok(elsewhere.unwrap_or_else(|| Said::Told(Told::only(operation, allowed))))
}

fn first_error(body: &Bytes) -> Option<ErrorCode> {
    body.first_chunk().map(|code| ErrorCode(i16::from_be_bytes(*code)))
}

/// Whether the user may do it with the topics. A topic of which nothing was said is missing.
pub(super) async fn topics(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    names: &[Text],
    operation: Operation,
) -> Result<Vec<(Text, Told)>, ErrorCode> {
    if operation == Operation::Read {
        return readable_topics(call, upstream, names).await;
    }
    let wanted = names
        .iter()
        .map(|name| MetadataRequestTopic::default().with_name(Some(wire(name).into())));
    let request = MetadataRequest::default()
        .with_topics(Some(wanted.collect()))
        .with_include_topic_authorized_operations(true);
    let response = metadata(call, upstream, request).await?;
    let topics = response.topics.iter();
    Ok(topics
        .filter_map(|topic| Some((text(topic.name.as_ref()?), about_topic(topic)?)))
        .collect())
}

fn about_topic(topic: &MetadataResponseTopic) -> Option<Told> {
    match ErrorCode(topic.error_code) {
        ErrorCode::TOPIC_AUTHORIZATION_FAILED => Some(Told::only(Operation::Describe, false)),
        _ if topic.topic_authorized_operations == NOT_TOLD => None,
        _ => Some(Told::set(topic.topic_authorized_operations)),
    }
}

async fn readable_topics(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    names: &[Text],
) -> Result<Vec<(Text, Told)>, ErrorCode> {
    let wanted = names.iter().map(|name| {
        FetchTopic::default()
            .with_topic(wire(name).into())
            .with_partitions(vec![FetchPartition::default().with_partition(NO_PARTITION)])
    });
    let request = FetchRequest::default().with_topics(wanted.collect());
    let version = call.version_of(FETCH, FETCH_VERSION);
    let response: FetchResponse = call.ask_api(FETCH, upstream, version, &request).await?;
    let topics = response.responses.iter().filter_map(|topic| {
        let error = ErrorCode(topic.partitions.first()?.error_code);
        let allowed = error != ErrorCode::TOPIC_AUTHORIZATION_FAILED;
        let known = !allowed || error == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        known.then(|| (text(&topic.topic), Told::only(Operation::Read, allowed)))
    });
    Ok(topics.collect())
}

/// The operations that the user may do with the cluster, each the bit of its code.
pub(super) async fn cluster_operations(call: &Call<'_>, upstream: &mut impl ClientUpstream) -> Result<i32, ErrorCode> {
    let request = MetadataRequest::default()
        .with_topics(Some(Vec::new()))
        .with_include_cluster_authorized_operations(true);
    let response = metadata(call, upstream, request).await?;
    match response.cluster_authorized_operations {
        NOT_TOLD => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
        operations => Ok(operations),
    }
}

async fn metadata(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    request: MetadataRequest,
) -> Result<MetadataResponse, ErrorCode> {
    let version = call.version_of(METADATA, METADATA_NEWEST);
    let request = request.with_allow_auto_topic_creation(false);
    call.ask_api(METADATA, upstream, version, &request).await
}
