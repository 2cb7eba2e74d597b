//! Requests to frames and frames to responses, by kafka-protocol; and a blocking client for everything that is not measured.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use convoke_support::Result;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

/// Where the correlation id stands in a request frame, its length included.
pub const CORRELATION_ID: Range<usize> = 8..12;

/// The bytes of a frame's length.
pub const LENGTH_SIZE: usize = 4;

const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// A whole request frame, its length included, with correlation id 0.
///
/// # Errors
/// When the request sets a field that the version does not have.
pub fn frame<R: Request>(request: &R, version: i16) -> Result<Vec<u8>> {
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_client_id(Some(StrBytes::from_static_str("convoke-bench")));
    let mut out = BytesMut::new();
    header.encode(&mut out, R::header_version(version))?;
    request.encode(&mut out, version)?;
    let len = u32::try_from(out.len())?;
    Ok([&len.to_be_bytes(), &out[..]].concat())
}

/// The response to a request of that version, from a frame without its length.
///
/// # Errors
/// When it is malformed.
pub fn decode<R: Request>(answer: &[u8], version: i16) -> Result<R::Response> {
    let mut bytes = Bytes::copy_from_slice(answer);
    ResponseHeader::decode(&mut bytes, R::Response::header_version(version))?;
    let response = R::Response::decode(&mut bytes, version)?;
    if bytes.has_remaining() {
        return Err(format!(
            "{} bytes after the end of a response to api key {}",
            bytes.len(),
            R::KEY
        )
        .into());
    }
    Ok(response)
}

/// An error unless the code is NONE.
///
/// # Errors
/// The code's name.
pub fn accepted(code: i16) -> Result<()> {
    match ResponseError::try_from_code(code) {
        None => Ok(()),
        Some(error) => Err(format!("{error:?} ({code})").into()),
    }
}

/// One blocking connection: a request, then its answer.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
}

impl Client {
    /// # Errors
    /// When nobody listens there.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).map_err(|error| format!("cannot connect to {address}: {error}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        Ok(Self { stream })
    }

    /// # Errors
    /// When the connection ends, no answer comes in half a minute, or the answer is malformed.
    pub fn call<R: Request>(&mut self, request: &R, version: i16) -> Result<R::Response> {
        let answer = self.exchange(&frame(request, version)?)?;
        decode::<R>(&answer, version)
    }

    /// Sends a whole frame and returns the answer without its length.
    ///
    /// # Errors
    /// When the connection ends or no answer comes in half a minute.
    pub fn exchange(&mut self, frame: &[u8]) -> Result<Vec<u8>> {
        self.stream.write_all(frame)?;
        let mut len = [0; LENGTH_SIZE];
        self.stream.read_exact(&mut len)?;
        let mut answer = vec![0; usize::try_from(i32::from_be_bytes(len))?];
        self.stream.read_exact(&mut answer)?;
        Ok(answer)
    }
}
