//! Requests that our own client never makes, for bringing groups into a state.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use convoke::upstream::connection::{Connection, Limits};
use convoke_support::Result;
use kafka_protocol::protocol::{Decodable, Request};
use tokio::net::TcpStream;

/// A connection of a client that is not Convoke's.
pub struct Raw(Connection);

impl Raw {
    pub async fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        let limits = Limits {
            request_timeout: Duration::from_secs(30),
            frame_max: 1 << 20,
            in_flight: 4,
        };
        Ok(Self(Connection::over(stream, address.to_owned(), limits)))
    }

    pub async fn call<R: Request>(&self, version: i16, request: &R) -> Result<R::Response> {
        let mut body = BytesMut::new();
        request.encode(&mut body, version)?;
        let mut answer = self.send(R::KEY, version, &body).await?;
        Ok(R::Response::decode(&mut answer, version)?)
    }

    /// A body in a version that kafka-protocol does not write.
    pub async fn send(&self, api_key: i16, version: i16, body: &[u8]) -> Result<Bytes> {
        Ok(self.0.call(api_key, version, body).await?)
    }
}
