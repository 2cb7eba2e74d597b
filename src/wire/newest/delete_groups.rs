//! DeleteGroups v3: the request is that of v2; each result of the response has an error message.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::DeleteGroupsRequest;
use kafka_protocol::protocol::StrBytes;

use crate::wire::body::{Body, Writer};
use crate::wire::codec::{Encode, Guarded, GuardedResponse, WireError, decode_known};
use crate::wire::reader::ReadError;
use crate::wire::schema::{DELETE_GROUPS_RESPONSE, Schema};

/// Decodes a v3 body.
///
/// # Errors
/// `Malformed`.
pub fn decode_request(body: Bytes) -> Result<DeleteGroupsRequest, WireError> {
    decode_known(body, 2)
}

/// The response in all versions: kafka-protocol's own has no place for the messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteGroupsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<DeletableGroupResult>,
}

/// What became of one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletableGroupResult {
    pub group_id: StrBytes,
    pub error_code: i16,
    /// Sent from v3 on.
    pub error_message: Option<StrBytes>,
}

const MESSAGES_SINCE: i16 = 3;

impl Guarded for DeleteGroupsResponse {
    const SCHEMA: &'static Schema = &DELETE_GROUPS_RESPONSE;

    fn decode_passed(body: Bytes, version: i16) -> Result<Self, WireError> {
        let flexible = Self::SCHEMA.is_flexible(version);
        let mut body = Body::new(&body);
        let throttle_time_ms = body.reader.i32()?;
        let results = body.array(flexible, |body| result(body, version))?;
        if flexible {
            body.skip_tagged_fields()?;
        }
        Ok(Self {
            throttle_time_ms,
            results,
        })
    }
}

impl GuardedResponse for DeleteGroupsResponse {}

fn result(body: &mut Body<'_>, version: i16) -> Result<DeletableGroupResult, ReadError> {
    let flexible = DELETE_GROUPS_RESPONSE.is_flexible(version);
    let group_id = body.text(flexible)?;
    let error_code = body.reader.i16()?;
    let error_message = if version >= MESSAGES_SINCE {
        body.nullable_text(flexible)?
    } else {
        None
    };
    if flexible {
        body.skip_tagged_fields()?;
    }
    Ok(DeletableGroupResult {
        group_id,
        error_code,
        error_message,
    })
}

impl Encode for DeleteGroupsResponse {
    fn encode_body(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
        let schema = Self::SCHEMA;
        if !schema.has_version(version) {
            return Err(WireError::UnsupportedVersion {
                api: schema.name,
                version,
            });
        }
        let writer = Writer {
            flexible: schema.is_flexible(version),
        };
        out.put_i32(self.throttle_time_ms);
        writer.array_len(self.results.len(), out)?;
        for result in &self.results {
            writer.text(&result.group_id, out)?;
            out.put_i16(result.error_code);
            if version >= MESSAGES_SINCE {
                writer.nullable_text(result.error_message.as_deref(), out)?;
            }
            writer.no_tagged_fields(out);
        }
        writer.no_tagged_fields(out);
        Ok(())
    }
}
