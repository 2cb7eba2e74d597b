//! The command's standard error, for the log.

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::ChildStderr;

/// Bytes of a line that are shown; a longer one is cut into several.
const LINE_MAX: u64 = 4 * 1024;

/// Logs each line until the command closes its standard error.
pub(super) fn log(stderr: Option<ChildStderr>, group: Option<&str>) {
    let Some(stderr) = stderr else { return };
    let group = group.map(str::to_owned);
    tokio::spawn(async move {
        let mut lines = BufReader::new(stderr);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut lines).take(LINE_MAX).read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) => say(&line, group.as_deref()),
            }
        }
    });
}

fn say(line: &[u8], group: Option<&str>) {
    let line = String::from_utf8_lossy(line.trim_ascii_end());
    match group {
        Some(group) => tracing::info!(group, "the command says: {line}"),
        None => tracing::info!("the command says: {line}"),
    }
}
