//! The length guard and kafka-protocol behind one pair of functions: nothing is decoded that the guard has not passed.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, ApiVersionsResponse, ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, DeleteGroupsRequest,
    DescribeClusterResponse, DescribeConfigsRequest, DescribeConfigsResponse, DescribeGroupsRequest,
    DescribeGroupsResponse, DescribeQuorumResponse, FetchResponse, FindCoordinatorRequest, FindCoordinatorResponse,
    HeartbeatRequest, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, JoinGroupRequest,
    LeaveGroupRequest, ListConfigResourcesResponse, ListGroupsRequest, ListGroupsResponse, ListOffsetsResponse,
    MetadataResponse, OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetFetchRequest,
    OffsetFetchResponse, ProduceResponse, SaslAuthenticateResponse, SaslHandshakeResponse, SyncGroupRequest,
};
use kafka_protocol::protocol::{Decodable, Encodable};

use super::guard;
use super::lenient;
use super::newest;
use super::schema::{self, Schema};

/// What is wrong with bytes from a peer, or with a message that is to be sent.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("frame of {len} bytes, at most {max} are taken")]
    TooLong { len: usize, max: usize },
    #[error("{0}")]
    Malformed(String),
    #[error("unknown api key {0}")]
    UnknownApi(i16),
    #[error("{api} has no version {version}")]
    UnsupportedVersion { api: &'static str, version: i16 },
}

/// A message that can be decoded, because it has a table for the guard.
pub trait Guarded: Sized {
    const SCHEMA: &'static Schema;

    /// Decodes a body that the guard has passed.
    ///
    /// # Errors
    /// `Malformed`.
    fn decode_passed(body: Bytes, version: i16) -> Result<Self, WireError>;
}

/// A request of a client.
pub trait GuardedRequest: Guarded {}

/// A response of an upstream node.
pub trait GuardedResponse: Guarded {}

/// Decodes the body of a request. Texts and bytes in it are slices of `body` and keep it in memory: what is to outlive the
/// request is copied. What a broker does not mind is no error: see [`lenient`].
///
/// # Errors
/// `Malformed`, `UnsupportedVersion`.
pub fn decode_request<T: GuardedRequest>(version: i16, body: Bytes) -> Result<T, WireError> {
    if guard::check(T::SCHEMA, version, &body).is_ok() {
        return T::decode_passed(body, version);
    }
    decode(version, lenient::plain(T::SCHEMA, version, &body)?)
}

/// Decodes the body of a response, all of it. Brokers write no oddities.
///
/// # Errors
/// `Malformed`, `UnsupportedVersion`.
pub fn decode_response<T: GuardedResponse>(version: i16, body: Bytes) -> Result<T, WireError> {
    decode(version, body)
}

fn decode<T: Guarded>(version: i16, body: Bytes) -> Result<T, WireError> {
    guard::check(T::SCHEMA, version, &body)?;
    T::decode_passed(body, version)
}

/// Writes a body.
///
/// # Errors
/// `Malformed` when a field is set that this version does not have, or when there is no such version: a mistake of ours.
pub fn encode<T: Encode>(message: &T, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
    message.encode_body(version, out)
}

/// A message that can be written: all of kafka-protocol's and our own.
pub trait Encode {
    /// Writes the body.
    ///
    /// # Errors
    /// As [`encode`].
    fn encode_body(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError>;
}

impl<T: Encodable> Encode for T {
    fn encode_body(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
        self.encode(out, version)
            .map_err(|error| refused::<T>("encode", version, &error))
    }
}

/// Decodes by kafka-protocol what the guard has passed.
pub(super) fn decode_known<T: Decodable>(mut body: Bytes, version: i16) -> Result<T, WireError> {
    T::decode(&mut body, version).map_err(|error| refused::<T>("decode", version, &error))
}

fn refused<T>(verb: &str, version: i16, error: &dyn std::fmt::Display) -> WireError {
    let name = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
    WireError::Malformed(format!("cannot {verb} {name} v{version}: {error}"))
}

/// Messages that kafka-protocol decodes in all versions, but for those from `newest` on, which a function of ours decodes.
macro_rules! guarded {
    ($($kind:ident: $message:ty, $schema:ident $(, since $newest:literal: $decode:path)?;)*) => {
        $(
            impl Guarded for $message {
                const SCHEMA: &'static Schema = &schema::$schema;

                fn decode_passed(body: Bytes, version: i16) -> Result<Self, WireError> {
                    $(if version >= $newest {
                        return $decode(body);
                    })?
                    decode_known(body, version)
                }
            }

            impl $kind for $message {}
        )*
    };
}

guarded! {
    GuardedRequest: AlterConfigsRequest, ALTER_CONFIGS_REQUEST;
    GuardedRequest: ConsumerGroupDescribeRequest, CONSUMER_GROUP_DESCRIBE_REQUEST;
    GuardedRequest: ConsumerGroupHeartbeatRequest, CONSUMER_GROUP_HEARTBEAT_REQUEST;
    GuardedRequest: DeleteGroupsRequest, DELETE_GROUPS_REQUEST, since 3: newest::delete_groups::decode_request;
    GuardedRequest: DescribeConfigsRequest, DESCRIBE_CONFIGS_REQUEST;
    GuardedRequest: DescribeGroupsRequest, DESCRIBE_GROUPS_REQUEST;
    GuardedRequest: FindCoordinatorRequest, FIND_COORDINATOR_REQUEST;
    GuardedRequest: HeartbeatRequest, HEARTBEAT_REQUEST;
    GuardedRequest: IncrementalAlterConfigsRequest, INCREMENTAL_ALTER_CONFIGS_REQUEST;
    GuardedRequest: JoinGroupRequest, JOIN_GROUP_REQUEST;
    GuardedRequest: LeaveGroupRequest, LEAVE_GROUP_REQUEST;
    GuardedRequest: ListGroupsRequest, LIST_GROUPS_REQUEST;
    GuardedRequest: OffsetCommitRequest, OFFSET_COMMIT_REQUEST, since 10: newest::offset_commit::decode_request;
    GuardedRequest: OffsetDeleteRequest, OFFSET_DELETE_REQUEST;
    GuardedRequest: OffsetFetchRequest, OFFSET_FETCH_REQUEST, since 10: newest::offset_fetch::decode_request;
    GuardedRequest: SyncGroupRequest, SYNC_GROUP_REQUEST;
    GuardedResponse: AlterConfigsResponse, ALTER_CONFIGS_RESPONSE;
    GuardedResponse: ApiVersionsResponse, API_VERSIONS_RESPONSE, since 5: newest::api_versions::decode_response;
    GuardedResponse: ConsumerGroupDescribeResponse, CONSUMER_GROUP_DESCRIBE_RESPONSE;
    GuardedResponse: ConsumerGroupHeartbeatResponse, CONSUMER_GROUP_HEARTBEAT_RESPONSE;
    GuardedResponse: DescribeClusterResponse, DESCRIBE_CLUSTER_RESPONSE;
    GuardedResponse: DescribeConfigsResponse, DESCRIBE_CONFIGS_RESPONSE;
    GuardedResponse: DescribeGroupsResponse, DESCRIBE_GROUPS_RESPONSE;
    GuardedResponse: DescribeQuorumResponse, DESCRIBE_QUORUM_RESPONSE;
    GuardedResponse: FetchResponse, FETCH_RESPONSE;
    GuardedResponse: FindCoordinatorResponse, FIND_COORDINATOR_RESPONSE;
    GuardedResponse: IncrementalAlterConfigsResponse, INCREMENTAL_ALTER_CONFIGS_RESPONSE;
    GuardedResponse: ListConfigResourcesResponse, LIST_CONFIG_RESOURCES_RESPONSE;
    GuardedResponse: ListGroupsResponse, LIST_GROUPS_RESPONSE;
    GuardedResponse: ListOffsetsResponse, LIST_OFFSETS_RESPONSE, since 11: newest::list_offsets::decode_response;
    GuardedResponse: MetadataResponse, METADATA_RESPONSE;
    GuardedResponse: OffsetCommitResponse, OFFSET_COMMIT_RESPONSE;
    GuardedResponse: OffsetFetchResponse, OFFSET_FETCH_RESPONSE;
    GuardedResponse: ProduceResponse, PRODUCE_RESPONSE;
    GuardedResponse: SaslAuthenticateResponse, SASL_AUTHENTICATE_RESPONSE;
    GuardedResponse: SaslHandshakeResponse, SASL_HANDSHAKE_RESPONSE;
}

#[cfg(test)]
pub mod golden;
#[cfg(test)]
mod tests;
