//! Requests to frames and frames to responses, by kafka-protocol; and a blocking client for everything that is not measured.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use convoke::wire::codec::{Encode, GuardedResponse, decode_response};
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
    whole((R::KEY, version), R::header_version(version), |out| {
        Ok(request.encode(out, version)?)
    })
}

/// The same of a request that Convoke alone has, in its version 0.
///
/// # Errors
/// When it cannot be encoded.
pub fn own_frame(api_key: i16, request: &impl Encode) -> Result<Vec<u8>> {
    whole((api_key, 0), 2, |out| Ok(request.encode_body(0, out)?))
}

fn whole(
    (api_key, version): (i16, i16),
    header_version: i16,
    body: impl FnOnce(&mut BytesMut) -> Result<()>,
) -> Result<Vec<u8>> {
    let header = RequestHeader::default()
        .with_request_api_key(api_key)
        .with_request_api_version(version)
        .with_client_id(Some(StrBytes::from_static_str("convoke-bench")));
    let mut out = BytesMut::new();
    header.encode(&mut out, header_version)?;
    body(&mut out)?;
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

/// The response to a request that Convoke alone has, from a frame without its length.
///
/// # Errors
/// When it is malformed.
pub fn decode_own<R: GuardedResponse>(answer: Vec<u8>) -> Result<R> {
    let mut bytes = Bytes::from(answer);
    ResponseHeader::decode(&mut bytes, 1)?;
    Ok(decode_response(0, bytes)?)
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
        self.send(frame)?;
        self.receive()
    }

    /// Sends a whole frame.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn send(&mut self, frame: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(frame)?)
    }

    /// The next answer, without its length.
    ///
    /// # Errors
    /// When the connection ends or no answer comes in half a minute.
    pub fn receive(&mut self) -> Result<Vec<u8>> {
        let mut len = [0; LENGTH_SIZE];
        self.stream.read_exact(&mut len)?;
        let mut answer = vec![0; usize::try_from(i32::from_be_bytes(len))?];
        self.stream.read_exact(&mut answer)?;
        Ok(answer)
    }
}
