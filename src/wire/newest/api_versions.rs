//! ApiVersions v5 (KIP-1242): the request may say which cluster and node the client means to talk to; the response is
//! that of v4.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::ApiVersionsResponse;
use kafka_protocol::protocol::StrBytes;

use crate::wire::body::{Body, Writer};
use crate::wire::codec::{self, Encode, Guarded, GuardedRequest, WireError, decode_known};
use crate::wire::schema::{API_VERSIONS_REQUEST, Schema};

/// The newest response that kafka-protocol knows.
const RESPONSE_MAX: i16 = 4;

/// The request in all versions: kafka-protocol's own has no place for cluster and node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiVersionsRequest {
    /// Sent from v3 on, as is the version.
    pub client_software_name: StrBytes,
    pub client_software_version: StrBytes,
    /// Sent from v5 on: the cluster that the client believes it talks to, if it says so.
    pub cluster_id: Option<StrBytes>,
    /// Sent from v5 on: the node that it believes it talks to, or -1.
    pub node_id: i32,
}

impl Default for ApiVersionsRequest {
    fn default() -> Self {
        Self {
            client_software_name: StrBytes::default(),
            client_software_version: StrBytes::default(),
            cluster_id: None,
            node_id: -1,
        }
    }
}

const SOFTWARE_SINCE: i16 = 3;
const EXPECTED_NODE_SINCE: i16 = 5;

impl Guarded for ApiVersionsRequest {
    const SCHEMA: &'static Schema = &API_VERSIONS_REQUEST;

    fn decode_passed(body: Bytes, version: i16) -> Result<Self, WireError> {
        let mut request = Self::default();
        if version < SOFTWARE_SINCE {
            return Ok(request);
        }
        let mut body = Body::new(&body);
        request.client_software_name = body.text(true)?;
        request.client_software_version = body.text(true)?;
        if version >= EXPECTED_NODE_SINCE {
            request.cluster_id = body.nullable_text(true)?;
            request.node_id = body.reader.i32()?;
        }
        body.skip_tagged_fields()?;
        Ok(request)
    }
}

impl GuardedRequest for ApiVersionsRequest {}

impl Encode for ApiVersionsRequest {
    fn encode_body(&self, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
        let schema = Self::SCHEMA;
        if !schema.has_version(version) {
            return Err(WireError::UnsupportedVersion {
                api: schema.name,
                version,
            });
        }
        if version < SOFTWARE_SINCE {
            return Ok(());
        }
        let writer = Writer { flexible: true };
        writer.text(&self.client_software_name, out)?;
        writer.text(&self.client_software_version, out)?;
        if version >= EXPECTED_NODE_SINCE {
            writer.nullable_text(self.cluster_id.as_deref(), out)?;
            out.put_i32(self.node_id);
        }
        writer.no_tagged_fields(out);
        Ok(())
    }
}

/// Decodes a v5 response body.
///
/// # Errors
/// `Malformed`.
pub fn decode_response(body: Bytes) -> Result<ApiVersionsResponse, WireError> {
    decode_known(body, RESPONSE_MAX)
}

/// Writes a response body of any version.
///
/// # Errors
/// `UnsupportedVersion` above 5 (a client of the future is answered in version 0); `Malformed`.
pub fn encode_response(response: &ApiVersionsResponse, version: i16, out: &mut BytesMut) -> Result<(), WireError> {
    let schema = ApiVersionsResponse::SCHEMA;
    if !schema.has_version(version) {
        return Err(WireError::UnsupportedVersion {
            api: schema.name,
            version,
        });
    }
    codec::encode(response, version.min(RESPONSE_MAX), out)
}
