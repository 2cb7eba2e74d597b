//! A connection that asks one request after another and keeps the whole of each answer.

use std::io;
use std::net::SocketAddr;

use mio::{Registry, Token};

use crate::link::Link;

/// What the leader of a large classic group is told of its members is the longest answer.
const ANSWER_MAX: usize = 16 * 1024 * 1024;

#[derive(Debug)]
pub struct Caller {
    link: Link,
    request: Vec<u8>,
    /// Bytes of the request that are written.
    sent: usize,
}

impl Caller {
    /// # Errors
    /// When nobody listens there.
    pub fn connect(address: SocketAddr, registry: &Registry, token: Token) -> io::Result<Self> {
        Ok(Self {
            link: Link::connect(address, ANSWER_MAX, registry, token)?,
            request: Vec::new(),
            sent: 0,
        })
    }

    /// Sends a whole frame; nothing else may be under way.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn ask(&mut self, frame: Vec<u8>) -> io::Result<()> {
        self.request = frame;
        self.sent = 0;
        self.flush()
    }

    /// Writes what the socket has not taken yet.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.sent < self.request.len() {
            self.sent += self.link.send(&self.request[self.sent..])?;
        }
        Ok(())
    }

    /// Reads what has come: the answer without its length once it is whole.
    ///
    /// # Errors
    /// When the connection has ended, or more has come than one answer.
    pub fn receive(&mut self, scratch: &mut [u8]) -> io::Result<Option<&[u8]>> {
        Ok(match self.link.receive(scratch)? {
            true => Some(self.link.head()),
            false => None,
        })
    }
}
