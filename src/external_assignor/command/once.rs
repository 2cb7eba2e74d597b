//! A process for each question: the document on its standard input, the answer is all of its standard output.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::{ANSWER_MAX, CommandConfig, CommandError, Process, stderr};

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
        let Some(mut stdin) = stdin else { return Ok(()) };
        match stdin.write_all(&question).await {
            // It does not read all of the question; it may answer all the same.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    };
    let read = async move {
        let mut answer = Vec::new();
        if let Some(stdout) = stdout {
            stdout.take(ANSWER_MAX as u64 + 1).read_to_end(&mut answer).await?;
        }
        Ok(answer)
    };
    let ((), answer) = tokio::try_join!(write, read)?;
    if answer.len() > ANSWER_MAX {
        return Err(CommandError::TooLong);
    }
    match process.ended().await? {
        status if status.success() => Ok(answer),
        status => Err(CommandError::Ended(status)),
    }
}
