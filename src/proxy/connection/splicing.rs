//! What is left of a large frame, moved from one peer to the other by the kernel.

use std::future::poll_fn;
use std::io;

use tokio::io::Interest;
use tokio::net::TcpStream;

use super::context::Context;
use crate::proxy::pipes::Pipe;
use crate::proxy::stream::Behind;

/// Fewer bytes are copied: two system calls more cost as much as copying them (measured).
pub(super) const SPLICE_MIN: usize = 32 * 1024;

/// Whom the bytes are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Towards {
    Client,
    Upstream,
}

/// Why no more bytes can be moved.
#[derive(Debug)]
pub(super) enum SpliceError {
    /// The stream they come from ended.
    Ended,
    Read(io::Error),
    Write(io::Error),
}

/// Two sockets between which bytes are moved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Splice<'a> {
    pub(super) ctx: &'a Context,
    pub(super) from: &'a TcpStream,
    pub(super) to: &'a TcpStream,
    pub(super) towards: Towards,
    /// What comes behind the bytes that are moved.
    pub(super) behind: Behind,
}

impl Splice<'_> {
    /// Moves the next bytes, and answers how many it moved. Less than asked for means that there is no pipe now: the next ones
    /// have to be copied.
    pub(super) async fn run(&self, bytes: usize) -> Result<usize, SpliceError> {
        let mut moved = 0;
        while moved < bytes {
            let Some(pipe) = self.take_in(bytes - moved).await? else {
                break;
            };
            moved += pipe.held();
            let behind = if moved < bytes { Behind::More } else { self.behind };
            self.hand_over(pipe, behind).await?;
        }
        Ok(moved)
    }

    /// A pipe with at least one byte in it, which is had only once there is something to put into it.
    async fn take_in(&self, max: usize) -> Result<Option<Pipe<'_>>, SpliceError> {
        loop {
            poll_fn(|cx| self.from.poll_read_ready(cx))
                .await
                .map_err(SpliceError::Read)?;
            let Some(mut pipe) = self.ctx.services.pipes.lend() else {
                return Ok(None);
            };
            match self.from.try_io(Interest::READABLE, || pipe.fill(self.from, max)) {
                Ok(0) => return Err(SpliceError::Ended),
                Ok(n) => {
                    self.ctx.progress.moved();
                    self.ctx.services.metrics.spliced_bytes.inc_by(n as u64);
                    return Ok(Some(pipe));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
                Err(error) => return Err(SpliceError::Read(error)),
            }
        }
    }

    async fn hand_over(&self, mut pipe: Pipe<'_>, behind: Behind) -> Result<(), SpliceError> {
        let to_client = self.towards == Towards::Client;
        if to_client {
            self.ctx.progress.set_writing_to_client(true);
        }
        while pipe.held() > 0 {
            poll_fn(|cx| self.to.poll_write_ready(cx))
                .await
                .map_err(SpliceError::Write)?;
            match self.to.try_io(Interest::WRITABLE, || pipe.empty_into(self.to, behind)) {
                Ok(0) => return Err(SpliceError::Write(io::ErrorKind::WriteZero.into())),
                Ok(_) => self.ctx.progress.moved(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(SpliceError::Write(error)),
            }
        }
        if to_client {
            self.ctx.progress.set_writing_to_client(false);
        }
        Ok(())
    }
}
