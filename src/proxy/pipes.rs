//! Pipes through which the kernel moves bytes from one socket to another, splice(2): they are not copied through this process.
//!
//! A pipe is lent out only while bytes are in it, so a connection that waits for its peers has none, and a handful serve them
//! all. Each costs two file descriptors, and what it holds stays in the kernel: their number is bounded. Who gets none copies.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::net::TcpStream;

use super::stream::Behind;

/// As much as the kernel gives an ordinary user's pipe (pipe(7), `pipe-max-size`).
const PIPE_SIZE: usize = 1024 * 1024;
/// Pipes that may be lent out at once. A client that does not read keeps the pipe with its bytes.
const LENT_MAX: usize = 32;
/// Pipes that stay open while nobody needs them.
const KEPT_MAX: usize = 8;

/// The pipes of the process.
#[derive(Debug)]
pub(crate) struct Pipes {
    stock: Mutex<Stock>,
    /// Cleared when the kernel, or what stands in its place, refuses to splice.
    usable: AtomicBool,
}

#[derive(Debug, Default)]
struct Stock {
    idle: Vec<Ends>,
    lent: usize,
}

#[derive(Debug)]
struct Ends {
    read: OwnedFd,
    write: OwnedFd,
}

impl Ends {
    fn open() -> Result<Self, Errno> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A user who has too many pages in pipes keeps what every pipe starts with, which does as well.
        let _ = fcntl_setpipe_size(&write, PIPE_SIZE);
        Ok(Self { read, write })
    }
}

/// A pipe on loan. One that is dropped with bytes in it is closed, and they are lost.
#[derive(Debug)]
pub(crate) struct Pipe<'a> {
    pipes: &'a Pipes,
    /// There until it is dropped.
    ends: Option<Ends>,
    held: usize,
}

impl Pipes {
    pub(crate) const fn new() -> Self {
        Self {
            stock: Mutex::new(Stock {
                idle: Vec::new(),
                lent: 0,
            }),
            usable: AtomicBool::new(true),
        }
    }

    /// An empty pipe; none if all are taken or none can be opened.
    pub(crate) fn lend(&self) -> Option<Pipe<'_>> {
        if !self.usable.load(Ordering::Relaxed) {
            return None;
        }
        let mut stock = self.stock();
        if stock.lent == LENT_MAX {
            return None;
        }
        let ends = stock.idle.pop().or_else(|| Ends::open().ok())?;
        stock.lent += 1;
        Some(Pipe {
            pipes: self,
            ends: Some(ends),
            held: 0,
        })
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pipe<'_> {
    /// Bytes that are in it.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// Takes in at most `max` of the bytes that have arrived at the socket; 0 is the end of the stream. The pipe must be empty:
    /// a full one looks like a socket without bytes.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there, `Unsupported` if this cannot be done at all; the socket's own errors.
    pub(crate) fn fill(&mut self, from: &TcpStream, max: usize) -> io::Result<usize> {
        debug_assert_eq!(self.held, 0, "a pipe is emptied before it is filled");
        let Some(ends) = &self.ends else { return Ok(0) };
        match splice(from, None, &ends.write, None, max, flags()) {
            Ok(n) => {
                self.held = n;
                Ok(n)
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                self.pipes.usable.store(false, Ordering::Relaxed);
                Err(io::ErrorKind::Unsupported.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the socket as much as it takes; [`Self::held`] tells what is left.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing now; its own errors.
    pub(crate) fn empty_into(&mut self, to: &TcpStream, behind: Behind) -> io::Result<usize> {
        let Some(ends) = &self.ends else { return Ok(0) };
        let more = match behind {
            Behind::More => SpliceFlags::MORE,
            Behind::Nothing => SpliceFlags::empty(),
        };
        let n = splice(&ends.read, None, to, None, self.held, flags() | more)?;
        self.held -= n.min(self.held);
        Ok(n)
    }
}

impl Drop for Pipe<'_> {
    fn drop(&mut self) {
        let mut stock = self.pipes.stock();
        stock.lent -= 1;
        if let Some(ends) = self.ends.take()
            && self.held == 0
            && stock.idle.len() < KEPT_MAX
        {
            stock.idle.push(ends);
        }
    }
}

fn flags() -> SpliceFlags {
    SpliceFlags::MOVE | SpliceFlags::NONBLOCK
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        (near.expect("a listener"), far.expect("a client").0)
    }

    #[tokio::test]
    async fn their_number_is_bounded_and_few_are_kept() {
        let pipes = Pipes::new();
        let lent: Vec<_> = (0..LENT_MAX).map(|_| pipes.lend().expect("a pipe")).collect();
        assert!(pipes.lend().is_none());
        drop(lent);
        assert_eq!(pipes.stock().idle.len(), KEPT_MAX);
        assert_eq!(pipes.stock().lent, 0);
    }

    #[tokio::test]
    async fn a_pipe_with_bytes_in_it_is_not_lent_again() {
        let pipes = Pipes::new();
        let (mut sender, receiver) = pair().await;
        sender.write_all(b"for somebody else").await.expect("open");
        receiver.readable().await.expect("open");
        let mut pipe = pipes.lend().expect("a pipe");
        assert_eq!(pipe.fill(&receiver, 3).expect("bytes"), 3);
        assert_eq!(pipe.held(), 3);
        drop(pipe);
        assert!(pipes.stock().idle.is_empty());
        assert_eq!(pipes.stock().lent, 0);
    }
}
