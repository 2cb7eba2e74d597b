//! A connection that sends what it is told to, in any client's name, and reports answers as they come, parked ones too.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use convoke::wire::frame::{ResponseHead, request_head};
use convoke_support::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::timeout;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Requests of one connection, or answers of one side, that may wait: far more than a conversation has steps.
pub const QUEUE: usize = 4096;

/// An answer, or that there will be none.
#[derive(Debug)]
pub struct Arrival {
    /// The request it belongs to.
    pub step: usize,
    /// `None`: the connection was closed instead.
    pub body: Option<Bytes>,
}

/// What the next answer belongs to.
#[derive(Debug)]
struct Expected {
    step: usize,
    api_key: i16,
    version: i16,
}

/// The sending half; answers arrive in the channel it was opened with.
#[derive(Debug)]
pub struct Connection {
    write: OwnedWriteHalf,
    expected: mpsc::Sender<Expected>,
}

impl Connection {
    pub async fn open(address: &str, arrivals: mpsc::Sender<Arrival>) -> Result<Self> {
        let stream = timeout(CONNECT_LIMIT, TcpStream::connect(address)).await??;
        stream.set_nodelay(true)?;
        let (read, write) = stream.into_split();
        let (expected, expectations) = mpsc::channel(QUEUE);
        tokio::spawn(report(read, expectations, arrivals));
        Ok(Self { write, expected })
    }

    pub async fn send(&mut self, step: usize, api_key: i16, version: i16, client_id: &str, body: &[u8]) -> Result<()> {
        let mut frame = BytesMut::new();
        frame.put_i32(0);
        request_head(api_key, version, i32::try_from(step)?, Some(client_id), &mut frame)?;
        frame.put_slice(body);
        let len = i32::try_from(frame.len() - 4)?;
        frame[..4].copy_from_slice(&len.to_be_bytes());
        let expected = Expected { step, api_key, version };
        self.expected.send(expected).await?;
        // A connection that the other end closed is reported by the reading half.
        let _ = self.write.write_all(&frame).await;
        Ok(())
    }
}

async fn report(mut read: OwnedReadHalf, mut expected: mpsc::Receiver<Expected>, arrivals: mpsc::Sender<Arrival>) {
    while let Some(next) = expected.recv().await {
        let body = answer(&mut read, &next).await;
        let is_sent = arrivals.send(Arrival { step: next.step, body }).await;
        if is_sent.is_err() {
            return;
        }
    }
}

async fn answer(read: &mut OwnedReadHalf, expected: &Expected) -> Option<Bytes> {
    let len = usize::try_from(read.read_i32().await.ok()?).ok()?;
    let mut frame = vec![0; len];
    read.read_exact(&mut frame).await.ok()?;
    let mut frame = Bytes::from(frame);
    let head = ResponseHead::parse(expected.api_key, expected.version, &frame)
        .and_then(convoke::wire::frame::Parsed::complete)
        .ok()?;
    if usize::try_from(head.correlation_id) != Ok(expected.step) {
        return None;
    }
    frame.advance(head.body_offset.min(frame.len()));
    Some(frame)
}
