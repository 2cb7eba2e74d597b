//! A connection with nothing under way, between two threads: its sockets belong to no reactor.

use std::io;
use std::net::TcpStream as Socket;

use tokio::net::TcpStream;

use super::buffer::Buffer;
use super::context::Context;
use super::queue::Queue;
use super::requests::Requests;
use super::responses::Responses;
use super::upstream_link::Upstream;
use crate::proxy::stream;

/// What the two halves of a connection hold when nothing is under way.
#[derive(Debug)]
pub(super) struct Resting {
    pub(super) client: Socket,
    pub(super) upstream: Upstream<Socket>,
    /// What the client has sent of its next request.
    pub(super) input: Buffer,
}

impl Resting {
    /// Takes the connection off the reactor of this thread.
    pub(super) fn lie_down(requests: Requests<'_>, responses: Responses<'_>) -> io::Result<Self> {
        let (client_reader, up, input) = requests.into_parts();
        let (client_writer, upstream_reader) = responses.into_parts();
        let upstream = match (up, upstream_reader) {
            (Upstream::Open(writer), Some(reader)) => Upstream::Open(stream::join(reader, writer)?.into_std()?),
            (Upstream::None, _) => Upstream::None,
            (Upstream::Open(_) | Upstream::Lost, _) => Upstream::Lost,
        };
        Ok(Self {
            client: stream::join(client_reader, client_writer)?.into_std()?,
            upstream,
            input,
        })
    }

    /// Goes on with it on the reactor of this thread.
    pub(super) fn get_up<'a>(self, ctx: &'a Context, queue: &'a Queue) -> io::Result<(Requests<'a>, Responses<'a>)> {
        let (reader, writer) = stream::split(TcpStream::from_std(self.client)?)?;
        let (up, down) = match self.upstream {
            Upstream::Open(socket) => {
                let (reader, writer) = stream::split(TcpStream::from_std(socket)?)?;
                (Upstream::Open(writer), Some(reader))
            }
            Upstream::None => (Upstream::None, None),
            Upstream::Lost => (Upstream::Lost, None),
        };
        Ok((
            Requests::new(ctx, reader, up, self.input, queue),
            Responses::new(ctx, writer, down, queue),
        ))
    }
}
