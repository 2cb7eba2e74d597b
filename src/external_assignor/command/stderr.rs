//! The command's standard error, for the log. Whatever it prints, it does not flood that.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::ChildStderr;
use tokio::time::Instant;

/// Bytes of a line that are shown; a longer one is cut into several.
const LINE_MAX: u64 = 4 * 1024;
/// Lines of one process that are shown within `A_WHILE`: any traceback, and no flood.
const LINES_MAX: u32 = 100;
const A_WHILE: Duration = Duration::from_secs(1);

/// Logs the lines until the command closes its standard error.
pub(super) fn log(stderr: Option<ChildStderr>, group: Option<&str>) {
    let Some(stderr) = stderr else { return };
    let mut speaker = Speaker {
        group: group.map(str::to_owned),
        budget: Budget::new(Instant::now()),
    };
    tokio::spawn(async move {
        let mut lines = BufReader::new(stderr);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut lines).take(LINE_MAX).read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => break,
                Ok(_) => speaker.hear(&line),
            }
        }
        speaker.tell_left_out();
    });
}

struct Speaker {
    group: Option<String>,
    budget: Budget,
}

impl Speaker {
    fn hear(&mut self, line: &[u8]) {
        let now = Instant::now();
        if self.budget.is_over(now) {
            self.tell_left_out();
            self.budget = Budget::new(now);
        }
        if self.budget.take() {
            self.say(&String::from_utf8_lossy(line.trim_ascii_end()));
        }
    }

    fn tell_left_out(&self) {
        if self.budget.left_out > 0 {
            self.say(&format!(
                "({} more lines within a second, which are left out)",
                self.budget.left_out
            ));
        }
    }

    fn say(&self, line: &str) {
        match &self.group {
            Some(group) => tracing::info!(group, "the command says: {line}"),
            None => tracing::info!("the command says: {line}"),
        }
    }
}

/// How much may still be said, for a while.
struct Budget {
    began: Instant,
    said: u32,
    left_out: u64,
}

impl Budget {
    const fn new(began: Instant) -> Self {
        Self {
            began,
            said: 0,
            left_out: 0,
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.began) >= A_WHILE
    }

    /// Whether one more line may be said; if not, it is counted.
    const fn take(&mut self) -> bool {
        let may = self.said < LINES_MAX;
        match may {
            true => self.said += 1,
            false => self.left_out += 1,
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_lines_a_second_are_said_and_the_others_counted() {
        let began = Instant::now();
        let mut budget = Budget::new(began);
        let said = (0..250).filter(|_| budget.take()).count();
        assert_eq!((said, budget.left_out), (100, 150));
        assert!(!budget.is_over(began + Duration::from_millis(999)));
        assert!(budget.is_over(began + A_WHILE));
    }
}
