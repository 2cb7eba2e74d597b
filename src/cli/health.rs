//! Asks a running Convoke how it is, with nothing but a socket: a container's health check has no shell and no curl.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of the longest answer that is read.
const ANSWER_MAX: usize = 64 * 1024;

/// Why Convoke is not healthy.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unhealthy {
    #[error("nothing answers at http://{address}: {source}")]
    NoAnswer { address: SocketAddr, source: io::Error },
    #[error("http://{address}{path} answered {status}\n{body}")]
    Said {
        address: SocketAddr,
        path: &'static str,
        status: String,
        body: String,
    },
}

/// Gets the path and returns what a healthy Convoke said.
pub(super) fn ask(address: SocketAddr, path: &'static str, timeout: Duration) -> Result<String, Unhealthy> {
    let address = reachable(address);
    let answer = get(address, path, timeout).map_err(|source| Unhealthy::NoAnswer { address, source })?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head
        .lines()
        .next()
        .and_then(|line| line.split_once(' '))
        .map_or("", |(_, status)| status);
    if status.starts_with("200") {
        return Ok(body.trim_end().to_owned());
    }
    Err(Unhealthy::Said {
        address,
        path,
        status: status.to_owned(),
        body: body.trim_end().to_owned(),
    })
}

/// An address that stands for every address of the machine is reached on loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// One HTTP/1.1 exchange within the time-out as a whole.
fn get(address: SocketAddr, path: &str, timeout: Duration) -> io::Result<String> {
    let deadline = Instant::now() + timeout;
    let left = || match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
        left => Ok(left),
    };
    let mut stream = TcpStream::connect_timeout(&address, left()?)?;
    stream.set_write_timeout(Some(left()?))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    while answer.len() < ANSWER_MAX {
        stream.set_read_timeout(Some(left()?))?;
        let count = stream.read(&mut chunk).map_err(timed_out)?;
        match chunk.get(..count) {
            Some([]) | None => break,
            Some(read) => answer.extend_from_slice(read),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A read that ran into its time-out says only that it would block.
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock {
        return io::Error::from(io::ErrorKind::TimedOut);
    }
    error
}
