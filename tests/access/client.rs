//! A client that says exactly what it is told to, as a user of the SASL listener.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use convoke::upstream::connection::{Connection, Limits};
use convoke_support::Result;
use kafka_protocol::messages::{SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest};
use kafka_protocol::protocol::{Decodable, Encodable, Request, StrBytes};
use tokio::net::TcpStream;

/// One authenticated connection.
pub struct Client(Connection);

impl Client {
    /// Connects without authenticating.
    pub async fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        let limits = Limits {
            request_timeout: Duration::from_secs(30),
            frame_max: 16 << 20,
            in_flight: 4,
        };
        Ok(Self(Connection::over(stream, address.to_owned(), limits)))
    }

    /// Connects as a user by SASL PLAIN.
    pub async fn login(address: &str, user: &str, password: &str) -> Result<Self> {
        let client = Self::connect(address).await?;
        let handshake = SaslHandshakeRequest::default().with_mechanism(StrBytes::from_static_str("PLAIN"));
        client.ask(1, &handshake).await?;
        let token = format!("\0{user}\0{password}");
        let authenticate = SaslAuthenticateRequest::default().with_auth_bytes(token.into());
        let answer: SaslAuthenticateResponse = client.ask(2, &authenticate).await?;
        if answer.error_code != 0 {
            return Err(format!("{user} is not let in: {:?}", answer.error_message).into());
        }
        Ok(client)
    }

    pub async fn ask<R: Request>(&self, version: i16, request: &R) -> Result<R::Response> {
        let mut answer = self.raw(R::KEY, version, &encode(request, version)?).await?;
        Ok(R::Response::decode(&mut answer, version)?)
    }

    pub async fn raw(&self, api_key: i16, version: i16, body: &[u8]) -> Result<Bytes> {
        Ok(self.0.call(api_key, version, body).await?)
    }
}

pub fn encode(message: &impl Encodable, version: i16) -> Result<Bytes> {
    let mut body = BytesMut::new();
    message.encode(&mut body, version)?;
    Ok(body.freeze())
}
