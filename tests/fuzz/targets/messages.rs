//! Every message that is decoded, with its decoder and encoder.

use std::fmt;

use bytes::{Bytes, BytesMut};
use convoke::wire::assignment::install::{InstallAssignmentRequest, InstallAssignmentResponse};
use convoke::wire::assignment::prepare::{PrepareAssignmentRequest, PrepareAssignmentResponse};
use convoke::wire::codec::{
    Encode, GuardedRequest, GuardedResponse, WireError, decode_request, decode_response, encode,
};
use convoke::wire::newest::api_versions::ApiVersionsRequest;
use convoke::wire::newest::delete_groups::DeleteGroupsResponse;
use convoke::wire::schema::Schema;
use convoke::wire::{guard, lenient};
use kafka_protocol::messages::*;

use super::{Target, number};
use crate::bodies::{self, Random};

/// One message.
pub struct Message {
    pub schema: &'static Schema,
    decode: fn(i16, &[u8]) -> Result<(), String>,
    encoded_again: fn(i16, &[u8]) -> Option<Vec<u8>>,
    /// Requests may be odd in ways that brokers do not mind.
    pub lenient: bool,
}

impl Message {
    pub fn decode(&self, version: i16, body: &[u8]) -> Result<(), String> {
        (self.decode)(version, body)
    }

    /// The body decoded and encoded again, where there is an encoder for the version.
    pub fn encoded_again(&self, version: i16, body: &[u8]) -> Option<Vec<u8>> {
        (self.encoded_again)(version, body)
    }

    /// Decodes a body, and checks that exactly what should be decoded is. Tells whether it was.
    ///
    /// # Panics
    /// If not.
    pub fn check(&self, version: i16, body: &[u8]) -> bool {
        let mut passed = guard::check(self.schema, version, body).is_ok();
        if !passed && self.lenient {
            passed = lenient::plain(self.schema, version, body).is_ok_and(|plain| {
                guard::check(self.schema, version, &plain).expect("the guard takes what is plain");
                true
            });
        }
        let decoded = self.decode(version, body);
        assert_eq!(decoded.is_ok(), passed, "v{version}: {decoded:?}");
        passed
    }

    /// The first byte of an input chooses the version.
    fn version(&self, choice: usize) -> i16 {
        let versions = usize::try_from(self.schema.max - self.schema.min + 1).expect("some");
        self.schema.min + i16::try_from(choice % versions).expect("few")
    }

    fn seed(&self, random: &mut Random) -> Vec<u8> {
        let choice = random.byte();
        let body = bodies::valid(self.schema, self.version(usize::from(choice)), 2, random);
        [&[choice], &body[..]].concat()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.schema.name)
    }
}

/// A target for each message.
pub fn targets() -> Vec<Target> {
    let targets = MESSAGES.iter().map(|message| Target {
        name: message.schema.name.to_owned(),
        reads: &[
            "wire/codec.rs",
            "wire/guard.rs",
            "wire/lenient.rs",
            "wire/reader.rs",
            "wire/text.rs",
            "wire/body.rs",
        ],
        seed: Box::new(|random| message.seed(random)),
        run: Box::new(|mut input| {
            let version = message.version(number(&mut input));
            message.check(version, input);
        }),
        held_per_byte: 64,
    });
    targets.collect()
}

const fn request<T: GuardedRequest + Encode>() -> Message {
    Message {
        schema: T::SCHEMA,
        decode: |version, body| outcome(decode_request::<T>(version, copy(body))),
        encoded_again: |version, body| encode_again(decode_request::<T>(version, copy(body)), version),
        lenient: true,
    }
}

const fn response<T: GuardedResponse + Encode>() -> Message {
    Message {
        schema: T::SCHEMA,
        decode: |version, body| outcome(decode_response::<T>(version, copy(body))),
        encoded_again: |version, body| encode_again(decode_response::<T>(version, copy(body)), version),
        lenient: false,
    }
}

fn outcome<T>(decoded: Result<T, WireError>) -> Result<(), String> {
    decoded.map(drop).map_err(|error| error.to_string())
}

fn copy(body: &[u8]) -> Bytes {
    Bytes::copy_from_slice(body)
}

fn encode_again<T: Encode>(message: Result<T, WireError>, version: i16) -> Option<Vec<u8>> {
    let mut out = BytesMut::new();
    encode(&message.ok()?, version, &mut out).ok().map(|()| out.to_vec())
}

pub static MESSAGES: &[Message] = &[
    request::<AlterConfigsRequest>(),
    request::<ApiVersionsRequest>(),
    request::<ConsumerGroupDescribeRequest>(),
    request::<ConsumerGroupHeartbeatRequest>(),
    request::<DeleteGroupsRequest>(),
    request::<DescribeConfigsRequest>(),
    request::<DescribeGroupsRequest>(),
    request::<FindCoordinatorRequest>(),
    request::<HeartbeatRequest>(),
    request::<IncrementalAlterConfigsRequest>(),
    request::<JoinGroupRequest>(),
    request::<InstallAssignmentRequest>(),
    request::<LeaveGroupRequest>(),
    request::<ListGroupsRequest>(),
    request::<OffsetCommitRequest>(),
    request::<OffsetDeleteRequest>(),
    request::<OffsetFetchRequest>(),
    request::<PrepareAssignmentRequest>(),
    request::<SyncGroupRequest>(),
    response::<AlterConfigsResponse>(),
    response::<ApiVersionsResponse>(),
    response::<ConsumerGroupDescribeResponse>(),
    response::<ConsumerGroupHeartbeatResponse>(),
    response::<DeleteGroupsResponse>(),
    response::<DescribeClusterResponse>(),
    response::<DescribeConfigsResponse>(),
    response::<DescribeGroupsResponse>(),
    response::<DescribeQuorumResponse>(),
    response::<FetchResponse>(),
    response::<FindCoordinatorResponse>(),
    response::<IncrementalAlterConfigsResponse>(),
    response::<InstallAssignmentResponse>(),
    response::<ListConfigResourcesResponse>(),
    response::<ListGroupsResponse>(),
    response::<ListOffsetsResponse>(),
    response::<MetadataResponse>(),
    response::<OffsetCommitResponse>(),
    response::<OffsetFetchResponse>(),
    response::<PrepareAssignmentResponse>(),
    response::<ProduceResponse>(),
    response::<SaslAuthenticateResponse>(),
    response::<SaslHandshakeResponse>(),
];
