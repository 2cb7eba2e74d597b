//! Every message that has a table, with its decoder and encoder.

use std::fmt;

use bytes::{Bytes, BytesMut};
use convoke::wire::codec::{Encode, GuardedRequest, GuardedResponse, decode_request, decode_response, encode};
use convoke::wire::newest::api_versions::ApiVersionsRequest;
use convoke::wire::newest::delete_groups::DeleteGroupsResponse;
use convoke::wire::schema::Schema;
use kafka_protocol::messages::*;

/// One message.
pub struct Message {
    pub schema: &'static Schema,
    decode: fn(i16, &[u8]) -> Result<(), String>,
    encoded_again: fn(i16, &[u8]) -> Option<Vec<u8>>,
}

impl Message {
    pub fn decode(&self, version: i16, body: &[u8]) -> Result<(), String> {
        (self.decode)(version, body)
    }

    /// The body decoded and encoded again, where there is an encoder for the version.
    pub fn encoded_again(&self, version: i16, body: &[u8]) -> Option<Vec<u8>> {
        (self.encoded_again)(version, body)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.schema.name)
    }
}

const fn request<T: GuardedRequest + Encode>() -> Message {
    Message {
        schema: T::SCHEMA,
        decode: |version, body| {
            decode_request::<T>(version, copy(body))
                .map(drop)
                .map_err(|error| error.to_string())
        },
        encoded_again: |version, body| encode_again(&decode_request::<T>(version, copy(body)).ok()?, version),
    }
}

const fn response<T: GuardedResponse + Encode>() -> Message {
    Message {
        schema: T::SCHEMA,
        decode: |version, body| {
            decode_response::<T>(version, copy(body))
                .map(drop)
                .map_err(|error| error.to_string())
        },
        encoded_again: |version, body| encode_again(&decode_response::<T>(version, copy(body)).ok()?, version),
    }
}

fn copy(body: &[u8]) -> Bytes {
    Bytes::copy_from_slice(body)
}

fn encode_again<T: Encode>(message: &T, version: i16) -> Option<Vec<u8>> {
    let mut out = BytesMut::new();
    encode(message, version, &mut out).ok().map(|()| out.to_vec())
}

pub static MESSAGES: &[Message] = &[
    request::<ApiVersionsRequest>(),
    request::<ConsumerGroupDescribeRequest>(),
    request::<ConsumerGroupHeartbeatRequest>(),
    request::<DeleteGroupsRequest>(),
    request::<DescribeGroupsRequest>(),
    request::<FindCoordinatorRequest>(),
    request::<HeartbeatRequest>(),
    request::<JoinGroupRequest>(),
    request::<LeaveGroupRequest>(),
    request::<ListGroupsRequest>(),
    request::<OffsetCommitRequest>(),
    request::<OffsetDeleteRequest>(),
    request::<OffsetFetchRequest>(),
    request::<SyncGroupRequest>(),
    response::<ApiVersionsResponse>(),
    response::<ConsumerGroupDescribeResponse>(),
    response::<DeleteGroupsResponse>(),
    response::<DescribeClusterResponse>(),
    response::<DescribeConfigsResponse>(),
    response::<DescribeGroupsResponse>(),
    response::<DescribeQuorumResponse>(),
    response::<FindCoordinatorResponse>(),
    response::<ListGroupsResponse>(),
    response::<MetadataResponse>(),
    response::<OffsetFetchResponse>(),
    response::<ProduceResponse>(),
    response::<SaslAuthenticateResponse>(),
    response::<SaslHandshakeResponse>(),
];
