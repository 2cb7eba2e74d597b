//! Child processes that never outlive the test, with their output kept for the moment something fails.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Result;

/// Lines kept of each stream; more than any start-up prints, less than a long run would need in memory.
const LINES_KEPT: usize = 5_000;

/// The lines of one output stream, as they came, and whether it has ended.
#[derive(Debug, Default)]
struct Lines {
    lines: VecDeque<String>,
    /// Lines that were dropped from the front.
    dropped: usize,
    ended: bool,
}

/// One output stream that can be awaited line by line.
#[derive(Debug, Clone, Default)]
pub struct Output {
    shared: Arc<(Mutex<Lines>, Condvar)>,
}

impl Output {
    fn follow(stream: impl Read + Send + 'static, hear: impl Fn(&str) + Send + 'static) -> Self {
        let output = Self::default();
        let writer = output.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(std::result::Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                hear(&line);
                writer.push(line);
            }
            let (lock, wake) = &*writer.shared;
            lock.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
            wake.notify_all();
        });
        output
    }

    fn push(&self, line: String) {
        let (lock, wake) = &*self.shared;
        let mut lines = lock.lock().unwrap_or_else(PoisonError::into_inner);
        lines.lines.push_back(line);
        if lines.lines.len() > LINES_KEPT {
            lines.lines.pop_front();
            lines.dropped += 1;
        }
        wake.notify_all();
    }

    /// Waits for a line that `wanted` turns into something, counted from line `from`; says where to go on from.
    ///
    /// # Errors
    /// When the stream ends or the time is over before such a line comes.
    pub fn wait<T>(&self, from: usize, timeout: Duration, wanted: impl Fn(&str) -> Option<T>) -> Result<(T, usize)> {
        let deadline = Instant::now() + timeout;
        let (lock, wake) = &*self.shared;
        let mut lines = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = from;
        loop {
            next = next.max(lines.dropped);
            while let Some(line) = lines.lines.get(next - lines.dropped) {
                next += 1;
                if let Some(found) = wanted(line) {
                    return Ok((found, next));
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if lines.ended || left.is_zero() {
                let why = if lines.ended {
                    "the stream ended"
                } else {
                    "time is over"
                };
                return Err(format!("{why}, and the awaited line has not come").into());
            }
            lines = wake.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many lines have come so far; `wait` can start from here.
    #[must_use]
    pub fn len(&self) -> usize {
        let lines = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.dropped + lines.lines.len()
    }

    /// Whether nothing has come yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until the stream has ended and all of it was taken in; that is a moment after the child is gone.
    pub fn wait_end(&self) {
        let _ = self.wait(usize::MAX, Duration::from_secs(5), |_| None::<()>);
    }

    /// The last lines, for a failure's report.
    #[must_use]
    pub fn tail(&self, count: usize) -> String {
        let lines = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        let skip = lines.lines.len().saturating_sub(count);
        lines.lines.iter().skip(skip).cloned().collect::<Vec<_>>().join("\n")
    }
}

/// What a line came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Output,
    Error,
}

/// A running child. Dropping it kills its whole process group.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    pub stdout: Output,
    pub stderr: Output,
}

impl Process {
    /// Starts the command in a process group of its own that dies with this one.
    ///
    /// # Errors
    /// When the program cannot be started; the message names it.
    pub fn spawn(name: &str, command: Command) -> Result<Self> {
        Self::spawn_heard(name, command, |_, _| {})
    }

    /// The same, with every line told to `hear` as it comes, for what says more than is kept.
    ///
    /// # Errors
    /// As `spawn`.
    pub fn spawn_heard(
        name: &str,
        mut command: Command,
        hear: impl Fn(Stream, &str) + Clone + Send + 'static,
    ) -> Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.process_group(0);
        die_with_parent(&mut command);
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot start {name} ({}): {error}", command.get_program().display()))?;
        let stdin = child.stdin.take();
        let heard = hear.clone();
        let output = |stream| Output::follow(stream, move |line| heard(Stream::Output, line));
        let stdout = child.stdout.take().map(output).unwrap_or_default();
        let error = |stream| Output::follow(stream, move |line| hear(Stream::Error, line));
        let stderr = child.stderr.take().map(error).unwrap_or_default();
        Ok(Self {
            name: name.to_owned(),
            child,
            stdin,
            stdout,
            stderr,
        })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes one line to the child's standard input.
    ///
    /// # Errors
    /// When the child has closed it.
    pub fn send_line(&mut self, line: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().ok_or("its standard input is closed")?;
        stdin.write_all(line.as_bytes())?;
        stdin.write_all(b"\n")?;
        Ok(stdin.flush()?)
    }

    /// Closes the child's standard input.
    pub fn end_of_input(&mut self) {
        self.stdin = None;
    }

    /// Sends a signal to the whole group.
    pub fn signal(&self, signal: i32) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            signal_group(group, signal);
        }
    }

    /// SIGSTOP, and waits until every thread of the child stands: until then one may still answer somebody.
    pub fn freeze(&self) {
        self.signal(libc::SIGSTOP);
        while !self.stands() {
            // The look at /proc is only paced by this.
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// SIGCONT: lets it go on.
    pub fn thaw(&self) {
        self.signal(libc::SIGCONT);
    }

    /// Whether none of its threads runs; one that has ended does not either.
    fn stands(&self) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.child.id())) else {
            return true;
        };
        threads.flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // The state stands behind the name, which is in parentheses.
            stat.rsplit_once(") ")
                .is_none_or(|(_, state)| state.starts_with(['T', 'Z', 'X']))
        })
    }

    /// SIGTERM: asks it to end.
    pub fn terminate(&self) {
        self.signal(libc::SIGTERM);
    }

    /// SIGTERM, and waits for a clean end.
    ///
    /// # Errors
    /// When it still runs after the time, or ends without success; the message holds the end of its output.
    pub fn stop(&mut self, timeout: Duration) -> Result<()> {
        self.terminate();
        let status = self.wait(timeout)?;
        if status.success() {
            return Ok(());
        }
        Err(format!("{} ended with {status}\n{}", self.name, self.report()).into())
    }

    /// Waits until the child has ended.
    ///
    /// # Errors
    /// When it still runs after the time; the message holds the end of its output.
    pub fn wait(&mut self, timeout: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                return Err(format!("{} still runs after {timeout:?}\n{}", self.name, self.report()).into());
            }
            // A child's end cannot be awaited with a time limit; this only paces the look.
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether the child has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the group and waits for the child.
    pub fn kill(&mut self) {
        self.signal(libc::SIGKILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The end of both streams, for a failure's report.
    #[must_use]
    pub fn report(&self) -> String {
        format!(
            "--- {name}: end of standard output\n{out}\n--- {name}: end of standard error\n{err}\n---",
            name = self.name,
            out = self.stdout.tail(40),
            err = self.stderr.tail(80)
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.report());
        }
        self.kill();
    }
}

/// Runs a command to its end and returns its standard output.
///
/// # Errors
/// When it fails or takes too long; the message holds the end of its output.
pub fn run(name: &str, command: Command, timeout: Duration) -> Result<String> {
    let mut process = Process::spawn(name, command)?;
    process.stdin = None;
    let status = process.wait(timeout)?;
    process.stdout.wait_end();
    process.stderr.wait_end();
    if !status.success() {
        return Err(format!("{name} ended with {status}\n{}", process.report()).into());
    }
    Ok(process.stdout.tail(LINES_KEPT))
}

#[allow(
    unsafe_code,
    reason = "prctl between fork and exec is the only way to tie a child to this process"
)]
fn die_with_parent(command: &mut Command) {
    // SAFETY: prctl is async-signal-safe and touches nothing of this process.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
}

#[allow(unsafe_code, reason = "std has no call that signals a process group")]
fn signal_group(group: i32, signal: i32) {
    // SAFETY: kill(2) takes plain integers.
    unsafe {
        libc::kill(-group, signal);
    }
}
