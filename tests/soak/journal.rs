//! What everybody said: kept on disk line by line, and given to the judge in the order in which it happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use convoke_support::Result;
use convoke_support::process::Stream;
use serde_json::Value;

use crate::judge::{Time, Told};

/// Lines of different processes are on their way for less than this.
pub const ON_THE_WAY: Duration = Duration::from_secs(5);

/// Now, as clients tell it.
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// What Convoke's log said, counted.
#[derive(Debug, Clone, Default)]
pub struct Logged {
    /// By group.
    pub rebalances: BTreeMap<String, u64>,
    pub removals: u64,
    pub errors: u64,
    pub panics: Vec<String>,
}

/// Shared by the threads that read what processes say.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    began: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    waiting: BTreeMap<(Time, u64), Told>,
    count: u64,
    events: File,
    members: File,
    convoke: File,
    logged: Logged,
    /// The newest beginning of an acknowledged commit, by group.
    progress: BTreeMap<String, Time>,
    errors: BTreeMap<String, u64>,
}

impl Journal {
    /// One whose files are in that folder.
    pub fn new(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let file = |name: &str| File::create(folder.join(name));
        Ok(Self {
            folder: folder.to_owned(),
            began: Instant::now(),
            inner: Mutex::new(Inner {
                waiting: BTreeMap::new(),
                count: 0,
                events: file("events.log")?,
                members: file("members.log")?,
                convoke: file("convoke.log")?,
                logged: Logged::default(),
                progress: BTreeMap::new(),
                errors: BTreeMap::new(),
            }),
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Something that was done, or found: one line with its time.
    pub fn event(&self, kind: &str, what: &str) {
        let line = format!("{:8.1} {kind:16} {what}", self.began.elapsed().as_secs_f32());
        println!("{line}");
        let _ = writeln!(self.lock().events, "{} {line}", now());
    }

    /// A client's line.
    pub fn member_said(&self, member: &str, stream: Stream, line: &str) {
        let mut inner = self.lock();
        let _ = writeln!(inner.members, "{} {member} {line}", now());
        let said = serde_json::from_str::<Value>(line).ok().filter(Value::is_object);
        // What else there is are a library's own log and the last words of one that dies.
        if let Some(said) = said.filter(|_| stream == Stream::Output) {
            inner.take_in(member, &said);
        }
    }

    /// A line of Convoke's log.
    pub fn convoke_said(&self, line: &str) {
        let mut inner = self.lock();
        let _ = writeln!(inner.convoke, "{line}");
        inner.note_log(line);
    }

    /// A member is no more.
    pub fn ended(&self, member: &str) {
        let member = member.to_owned();
        self.lock().push(now(), Told::Ended { member });
    }

    /// What has happened, in its order, as far as everybody has told of it; all of it when nobody is left to tell.
    pub fn take(&self, all: bool) -> Vec<(Time, Told)> {
        let until = if all {
            Time::MAX
        } else {
            now().saturating_sub(u64::try_from(ON_THE_WAY.as_micros()).unwrap_or_default())
        };
        let mut inner = self.lock();
        let later = inner.waiting.split_off(&(until, 0));
        let told = std::mem::replace(&mut inner.waiting, later);
        told.into_iter().map(|((at, _), told)| (at, told)).collect()
    }

    /// Whether the group was acknowledged a commit that began after that time.
    pub fn progressed(&self, group: &str, since: Time) -> bool {
        self.lock().progress.get(group).is_some_and(|began| *began > since)
    }

    pub fn logged(&self) -> Logged {
        self.lock().logged.clone()
    }

    /// What clients complained of, and how often.
    pub fn errors(&self) -> BTreeMap<String, u64> {
        self.lock().errors.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn push(&mut self, at: Time, told: Told) {
        self.count += 1;
        self.waiting.insert((at, self.count), told);
    }

    fn take_in(&mut self, member: &str, said: &Value) {
        let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| said[key].as_i64().unwrap_or_default();
        let partitions = || -> BTreeSet<String> {
            let names = said["partitions"].as_array().into_iter().flatten();
            names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
        };
        let name = member.to_owned();
        let told = match said["event"].as_str() {
            Some("sent") => Told::Sent {
                partition: text("partition"),
                offset: number("offset"),
            },
            Some("assigned") => Told::Assigned {
                member: name,
                partitions: partitions(),
            },
            Some("revoked") => Told::Revoked {
                member: name,
                partitions: partitions(),
                lost: said["lost"] == true,
            },
            Some("message") => Told::Read {
                member: name,
                partition: text("partition"),
                offset: number("offset"),
            },
            Some("committed") => {
                let began = said["began"].as_u64().unwrap_or_default();
                let group = member.split_once('.').map_or(member, |(group, _)| group);
                let newest = self.progress.entry(group.to_owned()).or_default();
                *newest = began.max(*newest);
                let offsets = said["offsets"].as_object().into_iter().flatten();
                Told::Committed {
                    member: name,
                    began,
                    offsets: offsets
                        .filter_map(|(name, at)| Some((name.clone(), at.as_i64()?)))
                        .collect(),
                }
            }
            Some("error") => {
                *self.errors.entry(kind_of(&text("message"))).or_default() += 1;
                return;
            }
            _ => return,
        };
        self.push(said["at"].as_u64().unwrap_or_else(now), told);
    }

    fn note_log(&mut self, line: &str) {
        let field = |name: &str| {
            let (_, rest) = line.split_once(&format!(" {name}=\""))?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        if line.contains("panicked at") {
            self.logged.panics.push(line.to_owned());
        }
        self.logged.errors += u64::from(line.contains(" ERROR "));
        if line.contains(": member removed ") {
            self.logged.removals += 1;
            if let Some(member) = field("client_id") {
                self.push(now(), Told::Removed { member });
            }
        }
        let is_over = line.contains(": rebalance completed ") || line.contains(": group settled ");
        if let Some(group) = field("group").filter(|_| is_over) {
            *self.logged.rebalances.entry(group).or_default() += 1;
        }
    }
}

/// A complaint without its numbers and names, which are different each time.
fn kind_of(message: &str) -> String {
    let letters = message
        .chars()
        .map(|letter| if letter.is_ascii_digit() { '#' } else { letter });
    let short: String = letters.take(110).collect();
    short.lines().next().unwrap_or_default().to_owned()
}
