//! One process for all questions: a line for each, and a line for each answer.
//!
//! A process that failed in any way, or wrote a line that is no JSON or that nobody asked for, is killed, since nobody knows which
//! of its lines would answer what: out of step, each answer would be that of the question before. The next question starts another, which has to wait if the last ones failed, too.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Instant, timeout};

use super::{ANSWER_MAX, CommandConfig, CommandError, Process, beginning, stderr};
use crate::upstream::backoff::Backoff;

const FIRST_REST: Duration = Duration::from_millis(200);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// The process, if one runs, and how long there will be none.
#[derive(Debug)]
pub(super) struct Stream {
    running: Option<Running>,
    backoff: Backoff,
    rests_until: Option<Instant>,
}

#[derive(Debug)]
struct Running {
    process: Process,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            running: None,
            backoff: Backoff::new(FIRST_REST, LONGEST_REST),
            rests_until: None,
        }
    }
}

impl Stream {
    pub(super) async fn ask(&mut self, config: &CommandConfig, mut question: Vec<u8>) -> Result<Vec<u8>, CommandError> {
        question.push(b'\n');
        let mut running = match self.running.take() {
            Some(running) => running.if_alive(),
            None => None,
        };
        if running.is_none() {
            running = Some(self.start(config)?);
        }
        let Some(mut running) = running else {
            return Err(CommandError::Resting(Duration::ZERO));
        };
        let answered = timeout(config.time_limit, running.converse(&question)).await;
        match answered.unwrap_or(Err(CommandError::TimedOut(config.time_limit))) {
            Ok(answer) => {
                self.backoff.reset();
                self.running = Some(running);
                Ok(answer)
            }
            Err(error) => {
                self.rests_until = Some(Instant::now() + self.backoff.delay());
                Err(error)
            }
        }
    }

    fn start(&mut self, config: &CommandConfig) -> Result<Running, CommandError> {
        let rest = self
            .rests_until
            .map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
            return Err(CommandError::Resting(rest));
        }
        let started = Running::start(config);
        if started.is_err() {
            self.rests_until = Some(Instant::now() + self.backoff.delay());
        }
        started
    }
}

impl Running {
    fn start(config: &CommandConfig) -> Result<Self, CommandError> {
        let mut process = Process::start(config)?;
        stderr::log(process.child.stderr.take(), None);
        let (stdin, stdout) = (process.child.stdin.take(), process.child.stdout.take());
        let (Some(questions), Some(stdout)) = (stdin, stdout) else {
            return Err(CommandError::NotStarted(std::io::ErrorKind::BrokenPipe.into()));
        };
        Ok(Self {
            process,
            questions,
            answers: BufReader::new(stdout),
        })
    }

    /// One that ended between two questions failed none of them.
    fn if_alive(mut self) -> Option<Self> {
        match self.process.child.try_wait() {
            Ok(None) => Some(self),
            _ => None,
        }
    }

    async fn converse(&mut self, question: &[u8]) -> Result<Vec<u8>, CommandError> {
        if self.has_said_more() {
            return Err(CommandError::Unasked);
        }
        if let Err(error) = self.questions.write_all(question).await {
            return Err(self.why_ended(error).await);
        }
        let mut answer = Vec::new();
        let mut line = (&mut self.answers).take(ANSWER_MAX as u64 + 1);
        line.read_until(b'\n', &mut answer).await?;
        if answer.last() == Some(&b'\n') {
            return match serde_json::from_slice::<IgnoredAny>(&answer) {
                Ok(_) => Ok(answer),
                Err(reason) => Err(CommandError::NotJson {
                    reason,
                    begin: beginning(&answer),
                }),
            };
        }
        if answer.len() > ANSWER_MAX {
            return Err(CommandError::TooLong);
        }
        Err(self.why_ended(std::io::ErrorKind::UnexpectedEof.into()).await)
    }

    /// Whether something came that answers no question: what was read with the last answer, or is in the pipe by now.
    fn has_said_more(&self) -> bool {
        let mut pipe = [PollFd::new(self.answers.get_ref(), PollFlags::IN)];
        !self.answers.buffer().is_empty()
            || poll(&mut pipe, Some(&Timespec::default())).is_ok_and(|_| pipe[0].revents().contains(PollFlags::IN))
    }

    /// Its pipe is closed, so it has ended or will not be talked to any more.
    async fn why_ended(&mut self, error: std::io::Error) -> CommandError {
        match timeout(FIRST_REST, self.process.ended()).await {
            Ok(Ok(status)) => CommandError::Ended(status),
            _ => CommandError::Pipe(error),
        }
    }
}
