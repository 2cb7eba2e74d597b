//! A non-blocking connection with one request under way: the cheapest client that still sees whole frames.
//!
//! Of a response only the first bytes are kept; the rest is read into a buffer that all connections share, so that a
//! megabyte of records costs no more than the kernel's copy into a warm cache.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use crate::wire::LENGTH_SIZE;

/// The first bytes of a response that are kept by a closed loop: enough for all but records.
pub const HEAD_MAX: usize = 512;

/// What all connections of a loop read into.
pub const SCRATCH_SIZE: usize = 256 * 1024;

#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    /// Bytes of the frame under way that have come, its length included.
    received: usize,
    length: [u8; LENGTH_SIZE],
    head: Vec<u8>,
    head_max: usize,
}

impl Link {
    /// Connects and registers for both directions, edge-triggered.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn connect(address: SocketAddr, head_max: usize, registry: &Registry, token: Token) -> io::Result<Self> {
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self {
            stream,
            received: 0,
            length: [0; LENGTH_SIZE],
            head: Vec::with_capacity(head_max.min(HEAD_MAX)),
            head_max,
        })
    }

    /// Writes as much of `bytes` as the socket takes and says how much that was.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.stream.write(&bytes[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    /// Reads what has come; true once the response is complete, and then `head` and `len` tell of it until the next read.
    ///
    /// # Errors
    /// When the connection has ended, or more has come than one response.
    pub fn receive(&mut self, scratch: &mut [u8]) -> io::Result<bool> {
        if self.is_complete() {
            self.received = 0;
            self.head.clear();
        }
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.take(&scratch[..count])?;
                    // A short read has emptied the socket; what comes later is another edge.
                    if self.is_complete() || count < scratch.len() {
                        return Ok(self.is_complete());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The first bytes of the response, without its length.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The bytes of the whole response, without its length.
    #[must_use]
    pub const fn len(&self) -> usize {
        u32::from_be_bytes(self.length) as usize
    }

    const fn is_complete(&self) -> bool {
        self.received >= LENGTH_SIZE && self.received == LENGTH_SIZE + self.len()
    }

    fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if self.received < LENGTH_SIZE {
            let (length, rest) = bytes.split_at(bytes.len().min(LENGTH_SIZE - self.received));
            self.length[self.received..self.received + length.len()].copy_from_slice(length);
            self.received += length.len();
            bytes = rest;
        }
        let wanted = self.head_max - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(wanted)]);
        self.received += bytes.len();
        if !bytes.is_empty() && self.received > LENGTH_SIZE + self.len() {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "more than the one response that was asked for",
            ));
        }
        Ok(())
    }
}
