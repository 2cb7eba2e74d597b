//! A connection end that tests hold in their hands: whole frames, halves of frames, silence.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Nothing in these tests takes so long; what does has gone wrong.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Awaits what has to happen.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = timeout(PATIENCE, future).await;
    waited.unwrap_or_else(|_| panic!("{what} did not happen within {PATIENCE:?}"))
}

/// One end of a connection.
#[derive(Debug)]
pub struct Raw {
    pub stream: TcpStream,
}

impl Raw {
    pub async fn connect(address: SocketAddr) -> Self {
        Self::new(
            soon("connecting", TcpStream::connect(address))
                .await
                .expect("a listener"),
        )
    }

    pub fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a TCP socket");
        Self { stream }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        soon("sending", self.stream.write_all(bytes))
            .await
            .expect("the peer reads");
    }

    /// The next frame, its length included.
    pub async fn frame(&mut self) -> Vec<u8> {
        soon("a frame", self.try_frame()).await.expect("a frame")
    }

    async fn try_frame(&mut self) -> io::Result<Vec<u8>> {
        let mut prefix = [0; 4];
        self.stream.read_exact(&mut prefix).await?;
        let len = usize::try_from(i32::from_be_bytes(prefix)).expect("not negative");
        let mut frame = prefix.to_vec();
        frame.resize(4 + len, 0);
        self.stream.read_exact(&mut frame[4..]).await?;
        Ok(frame)
    }

    /// Reads to the end of the stream; whether the peer closes in good order or with a reset does not matter.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let read = soon("the peer's closing", self.stream.read_to_end(&mut rest)).await;
        if let Err(error) = read {
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
        }
        rest
    }

    /// The peer closes, and says nothing more.
    pub async fn closed(&mut self) {
        assert_eq!(self.rest().await, b"", "bytes before the end");
    }

    /// Tells the peer that nothing more comes.
    pub async fn shutdown(&mut self) {
        self.stream.shutdown().await.expect("open");
    }

    /// Nothing is there to read, and will not be for a moment.
    pub async fn silent(&mut self) {
        let mut byte = [0];
        let moment = Duration::from_millis(100);
        let read = timeout(moment, self.stream.peek(&mut byte)).await;
        assert!(read.is_err(), "expected silence, got {read:?}");
    }
}

/// Writes until the peer takes nothing more for a while; answers how much it took.
pub async fn until_stuck(peer: &mut Raw, bytes: &[u8]) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match timeout(Duration::from_millis(300), peer.stream.write(&bytes[written..])).await {
            Ok(n) => written += n.expect("open"),
            Err(_) => break,
        }
    }
    written
}

pub fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
