//! The user's command: it is given a question on standard input and answers on standard output.
//!
//! It is somebody's program, so nothing of it is trusted: it has a time limit, its output a bound, and whatever it started is
//! killed with it. Its standard error goes to the log line by line.

mod once;
mod stderr;
mod stream;

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, Semaphore};

use self::stream::Stream;

/// Bytes of the longest answer that is read: a group of 10,000 members with 100 partitions each has some 6 MB.
const ANSWER_MAX: usize = 64 * 1024 * 1024;

/// Characters that are shown of what a command said, where it is not its log.
const SHOWN: usize = 1_000;
/// Characters that are shown of the beginning of something that is not understood.
const SHOWN_OF_BEGINNING: usize = 60;

/// What a command said, short enough for a line of the log.
pub(super) fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}… ({} bytes)", &text[..end], text.len())),
        None => Cow::Borrowed(text),
    }
}

/// The beginning of what is not understood, for whoever looks for it in the command.
pub(super) fn beginning(bytes: &[u8]) -> String {
    // A character has at most four bytes.
    let bytes = bytes.get(..4 * SHOWN_OF_BEGINNING).unwrap_or(bytes);
    String::from_utf8_lossy(bytes)
        .chars()
        .take(SHOWN_OF_BEGINNING)
        .collect()
}

/// What to run, and how.
#[derive(Debug, Clone)]
pub struct CommandConfig {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// One process for all questions, a line each; else a process for each question.
    pub is_stream: bool,
    /// For one computation, from the question to the end of the answer.
    pub time_limit: Duration,
    /// How many processes may run at once, if there is one for each question.
    pub parallel: usize,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("cannot be started: {0}")]
    NotStarted(io::Error),
    #[error("is started again in {0:?}, since it ended too often")]
    Resting(Duration),
    #[error("did not answer within {0:?} and was killed")]
    TimedOut(Duration),
    #[error("ended with {0}")]
    Ended(ExitStatus),
    #[error("answered more than {ANSWER_MAX} bytes and was killed")]
    TooLong,
    #[error("wrote a line that was not asked for and was killed; each question has one line for an answer")]
    Unasked,
    #[error(
        "wrote a line that is no JSON and was killed, since its other lines may be out of step: {reason}; it begins {begin:?}"
    )]
    NotJson { reason: serde_json::Error, begin: String },
    #[error("cannot be talked to: {0}")]
    Pipe(#[from] io::Error),
}

/// The command, ready to be asked by any number of groups.
#[derive(Debug)]
pub struct UserCommand {
    config: CommandConfig,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Once(Semaphore),
    Stream(Box<Mutex<Stream>>),
}

impl UserCommand {
    #[must_use]
    pub fn new(config: CommandConfig) -> Self {
        let way = match config.is_stream {
            true => Way::Stream(Box::default()),
            false => Way::Once(Semaphore::new(config.parallel.max(1))),
        };
        Self { config, way }
    }

    /// For one computation.
    #[must_use]
    pub const fn time_limit(&self) -> Duration {
        self.config.time_limit
    }

    /// Asks and waits for the answer. Of its bytes only a stream's are looked at: whether a line is JSON, as any answer is. The
    /// question is one line.
    ///
    /// # Errors
    /// Why there is no answer; the next question may have one.
    pub async fn ask(&self, group: &str, question: Vec<u8>) -> Result<Vec<u8>, CommandError> {
        match &self.way {
            Way::Once(places) => {
                // Never closed.
                let _place = places.acquire().await;
                once::ask(&self.config, group, question).await
            }
            Way::Stream(stream) => stream.lock().await.ask(&self.config, question).await,
        }
    }
}

/// A process of the command and all that it started, which end with it.
#[derive(Debug)]
struct Process {
    child: Child,
    group: Option<Pid>,
}

impl Process {
    fn start(config: &CommandConfig) -> Result<Self, CommandError> {
        let child = Command::new(&config.program)
            .args(&config.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(CommandError::NotStarted)?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Self { child, group })
    }

    /// Waits for its end. What it left behind in its process group goes with it.
    async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.kill();
        Ok(status)
    }

    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // Nobody is left in it: nothing to be done.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests;
