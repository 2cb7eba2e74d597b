//! One pattern against the names of all topics, in bounded memory and time.

use std::time::{Duration, Instant};

use regex::bytes::{Regex, RegexBuilder};
use rustix::time::{ClockId, clock_gettime};

use super::re2;
use crate::coordinator::request::Text;
use crate::coordinator::topics::Topics;

/// Bytes of a pattern.
pub(super) const LENGTH_MAX: usize = 16 << 10;
/// Bytes of the machine that a pattern is compiled to: repetitions in repetitions multiply.
const SIZE_MAX: usize = 1 << 20;
/// Bytes of what is remembered of it while it runs.
const RUNNING_MAX: usize = 2 << 20;
/// What matching may cost. Matching is linear in the names, but so is it in the machine, which may be large.
const CPU_MAX: Duration = Duration::from_millis(500);
/// The clock of the thread is only looked at so often: that is a system call.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Why nothing was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    #[error("{0}")]
    Invalid(String),
    #[error("it takes too long to match against the topics; make it simpler")]
    TooSlow,
    #[error("the process is stopping")]
    Ended,
}

/// The topics whose whole name matches, by name. Blocks for up to [`CPU_MAX`] of a processor's time.
///
/// # Errors
/// What is wrong with the pattern.
pub(super) fn search(pattern: &str, topics: &Topics) -> Result<Vec<Text>, Failure> {
    let regex = compile(pattern)?;
    let budget = Budget::new();
    let mut looked = Instant::now();
    let mut found = Vec::new();
    for name in topics.by_name.keys() {
        if regex.is_match(name.as_bytes()) {
            found.push(name.clone());
        }
        if looked.elapsed() >= LOOK_EVERY {
            looked = Instant::now();
            if budget.is_spent() {
                return Err(Failure::TooSlow);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

pub(super) fn compile(pattern: &str) -> Result<Regex, Failure> {
    if pattern.len() > LENGTH_MAX {
        let problem = format!("it has {} bytes, and may have {LENGTH_MAX}", pattern.len());
        return Err(Failure::Invalid(problem));
    }
    let translated = re2::translate(pattern).map_err(Failure::Invalid)?;
    let mut builder = RegexBuilder::new(&format!(r"\A(?:{translated})\z"));
    builder.unicode(false).size_limit(SIZE_MAX).dfa_size_limit(RUNNING_MAX);
    builder.build().map_err(|error| {
        Failure::Invalid(match error {
            regex::Error::CompiledTooBig(_) => "it is too large once its repetitions are written out".to_owned(),
            error => error.to_string(),
        })
    })
}

/// What this thread may still use. A process that is stopped for a while, or has no processor to run on, uses nothing up.
struct Budget {
    begun: Duration,
}

impl Budget {
    fn new() -> Self {
        Self { begun: used() }
    }

    fn is_spent(&self) -> bool {
        used().saturating_sub(self.begun) > CPU_MAX
    }
}

/// The processor's time that this thread has had.
fn used() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(used.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(used.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}
