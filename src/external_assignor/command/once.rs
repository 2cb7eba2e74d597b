//! A process for each question: the document on its standard input, the answer is all of its standard output.

use std::future::pending;
use std::io;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdout;
use tokio::time::timeout;

use super::{ANSWER_MAX, CommandConfig, CommandError, Process, stderr};

/// For what it printed before it ended and is still to be read, where others hold its standard output open.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub(super) async fn ask(config: &CommandConfig, group: &str, question: Vec<u8>) -> Result<Vec<u8>, CommandError> {
    let mut process = Process::start(config)?;
    // The process ends with the future, answered or not.
    let answered = timeout(config.time_limit, converse(&mut process, group, question)).await;
    answered.unwrap_or(Err(CommandError::TimedOut(config.time_limit)))
}

async fn converse(process: &mut Process, group: &str, mut question: Vec<u8>) -> Result<Vec<u8>, CommandError> {
    question.push(b'\n');
    let (stdin, stdout) = (process.child.stdin.take(), process.child.stdout.take());
    stderr::log(process.child.stderr.take(), Some(group));
    let write = async move {
        if let Some(mut stdin) = stdin
            && let Err(error) = stdin.write_all(&question).await
            // It does not read all of the question; it may answer all the same.
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            return error;
        }
        pending().await
    };
    let (answer, status) = tokio::select! {
        answered = read(process, stdout) => answered?,
        error = write => return Err(error.into()),
    };
    if answer.len() > ANSWER_MAX {
        return Err(CommandError::TooLong);
    }
    match status.success() {
        true => Ok(answer),
        false => Err(CommandError::Ended(status)),
    }
}

/// All that it prints until it closes its standard output, or ends: what it started may hold that open for longer, and goes with it.
async fn read(process: &mut Process, stdout: Option<ChildStdout>) -> io::Result<(Vec<u8>, ExitStatus)> {
    let mut answer = Vec::new();
    if let Some(stdout) = stdout {
        let mut stdout = stdout.take(ANSWER_MAX as u64 + 1);
        let mut read = pin!(stdout.read_to_end(&mut answer));
        tokio::select! {
            read = &mut read => { read?; }
            status = process.ended() => {
                // What left its process group cannot be killed, and is not waited for.
                if let Ok(read) = timeout(LAST_WORDS, read).await {
                    read?;
                }
                return Ok((answer, status?));
            }
        }
    }
    if answer.len() > ANSWER_MAX {
        // It would go on printing.
        process.kill();
    }
    Ok((answer, process.ended().await?))
}
