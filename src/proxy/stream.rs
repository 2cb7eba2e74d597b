//! The byte streams under a connection. Everything above sees the two halves only, so that TLS comes in here.

use std::io;
use std::time::Duration;

use rustix::net::{SendFlags, send};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::config::HostPort;

/// Where bytes of a peer are read.
pub(crate) type ReadSide = OwnedReadHalf;
/// Where bytes for a peer are written; dropping it shuts down that direction.
pub(crate) type WriteSide = OwnedWriteHalf;

/// A peer that vanished without a word is noticed after some five minutes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(120);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEPALIVE_PROBES: u32 = 6;

/// Makes the two halves of a connection; small frames are sent at once, dead peers are noticed.
pub(crate) fn split(stream: TcpStream) -> io::Result<(ReadSide, WriteSide)> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream.into_split())
}

/// Connects to an upstream node, trying each address of its name.
pub(crate) async fn dial(address: &HostPort, timeout: Duration) -> io::Result<(ReadSide, WriteSide)> {
    let connect = TcpStream::connect((address.host.as_str(), address.port));
    let stream = tokio::time::timeout(timeout, connect)
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {timeout:?}")))??;
    split(stream)
}

/// What comes behind bytes that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    /// The rest of their frame, without which the peer can do nothing: the kernel may hold back what does not fill a segment
    /// (MSG_MORE in send(2); for 200 ms at most).
    More,
    /// Perhaps nothing for long.
    Nothing,
}

/// Writes as much of `bytes` as the socket takes.
///
/// # Errors
/// `WouldBlock` if it takes nothing now; its own errors.
pub(crate) fn try_write(to: &TcpStream, bytes: &[u8], behind: Behind) -> io::Result<usize> {
    let more = match behind {
        Behind::More => SendFlags::MORE,
        Behind::Nothing => SendFlags::empty(),
    };
    to.try_io(Interest::WRITABLE, || Ok(send(to, bytes, more | SendFlags::NOSIGNAL)?))
}
