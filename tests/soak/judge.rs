//! Who owned what, who read what, and what was acknowledged: everything that members told, in the order of time, and what of it
//! must not have been.
//!
//! A member that was cut off goes on to believe that it owns its partitions until it hears better. That is how Kafka is meant to be,
//! and no fault as long as nothing that such a member does counts: it is judged by the commits that were acknowledged to it.

pub mod examples;
mod offsets;

use std::collections::{BTreeMap, BTreeSet};

use offsets::Offsets;

/// Microseconds since 1970.
pub type Time = u64;

/// A removal counts for what a member was told so long before it: what was told may have been long on its way.
const BEFORE: Time = 60_000_000;

/// What somebody told. A member's name begins with its group's, and a dot.
#[derive(Debug, Clone)]
pub enum Told {
    /// A record was acknowledged to its producer.
    Sent { partition: String, offset: i64 },
    /// All that the member owns from now on.
    Assigned {
        member: String,
        partitions: BTreeSet<String>,
    },
    /// The member gave these up, or had lost them before.
    Revoked {
        member: String,
        partitions: BTreeSet<String>,
        lost: bool,
    },
    Read {
        member: String,
        partition: String,
        offset: i64,
    },
    /// A commit that was acknowledged; `began` is before it was sent.
    Committed {
        member: String,
        began: Time,
        offsets: BTreeMap<String, i64>,
    },
    /// The member is no more.
    Ended { member: String },
    /// Convoke's log says that it took the member out.
    Removed { member: String },
}

/// One partition in one member's hands, from its being assigned to its being given up, lost or orphaned.
#[derive(Debug, Clone)]
struct Tenure {
    id: u64,
    member: String,
    from: Time,
    has_read: bool,
}

/// Commits of one tenure that were acknowledged.
#[derive(Debug)]
struct Commits {
    tenure: u64,
    first_acknowledged: Time,
}

#[derive(Debug, Default)]
struct Partition {
    open: Vec<Tenure>,
    /// Tenures of different members that were open at once, and since when.
    shared: Vec<(Tenure, Tenure, Time)>,
    /// Tenures in the order in which they were first acknowledged a commit.
    commits: Vec<Commits>,
    /// The tenure that each member had last.
    last: BTreeMap<String, u64>,
    read: Offsets,
    /// All below was read when it was committed.
    checked: i64,
    /// Commits that were acknowledged lately: when, and what.
    acknowledged: Vec<(Time, i64)>,
    /// The highest that was acknowledged before those.
    settled: i64,
}

#[derive(Debug, Default)]
struct Group {
    partitions: BTreeMap<String, Partition>,
    owned: BTreeMap<String, BTreeSet<String>>,
    removed: BTreeMap<String, Vec<Time>>,
    last_commit: Option<Time>,
    counts: Counts,
}

/// What a group did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub read: u64,
    pub commits: u64,
    /// Commits of a partition that the member had given up.
    pub stray: u64,
    /// The longest time without an acknowledged commit.
    pub longest_pause: Time,
}

#[derive(Debug, Default)]
pub struct Judge {
    groups: BTreeMap<String, Group>,
    sent: BTreeMap<String, Offsets>,
    tenures: u64,
    broken: Vec<(Time, String)>,
}

impl Judge {
    /// A judge of these groups.
    pub fn new<'a>(groups: impl IntoIterator<Item = &'a str>) -> Self {
        let groups = groups.into_iter().map(|name| (name.to_owned(), Group::default()));
        Self {
            groups: groups.collect(),
            ..Self::default()
        }
    }

    /// Takes in what was told at that time; later calls are for later times.
    pub fn hear(&mut self, at: Time, told: Told) {
        match told {
            Told::Sent { partition, offset } => self.sent.entry(partition).or_default().insert(offset),
            Told::Assigned { member, partitions } => self.assigned(at, &member, partitions),
            Told::Revoked {
                member,
                partitions,
                lost,
            } => {
                let end = if lost { End::Lost } else { End::GivenUp };
                self.ended(at, &member, &partitions, end);
            }
            Told::Read {
                member,
                partition,
                offset,
            } => self.read(at, &member, &partition, offset),
            Told::Committed { member, began, offsets } => self.committed(at, &member, began, &offsets),
            Told::Ended { member } => {
                let owned = self.group(&member).owned.get(&member).cloned().unwrap_or_default();
                self.ended(at, &member, &owned, End::Lost);
            }
            Told::Removed { member } if self.knows(&member) => {
                let removed = &mut self.group(&member).removed;
                removed.entry(member).or_default().push(at);
            }
            // Some other client of Convoke's.
            Told::Removed { .. } => {}
        }
    }

    /// What was found wrong since the last call.
    pub fn take_broken(&mut self) -> Vec<(Time, String)> {
        std::mem::take(&mut self.broken)
    }

    pub fn counts(&self) -> impl Iterator<Item = (&String, Counts)> {
        self.groups.iter().map(|(name, group)| (name, group.counts))
    }

    /// Records that producers were acknowledged.
    pub fn sent(&self) -> u64 {
        self.sent.values().map(Offsets::len).sum()
    }

    /// What a group has not committed of what producers were acknowledged: partitions, with where it is and where it should be.
    pub fn behind(&self, group: &str) -> Vec<(String, i64, i64)> {
        let partitions = self.groups.get(group).map(|group| &group.partitions);
        let behind = self.sent.iter().filter_map(|(name, sent)| {
            let committed = partitions?.get(name).map_or(0, Partition::highest);
            (committed < sent.end()).then(|| (name.clone(), committed, sent.end()))
        });
        behind.collect()
    }

    /// The last word, when no member is left: `committed` is what the coordinator says now, by group and partition.
    pub fn finish(&mut self, at: Time, committed: &BTreeMap<String, BTreeMap<String, i64>>) {
        let mut broken = Vec::new();
        for (name, group) in &mut self.groups {
            let (removed, kept) = (&group.removed, committed.get(name));
            for (id, partition) in &mut group.partitions {
                for (first, second, since) in std::mem::take(&mut partition.shared) {
                    if !excused(removed, &first, &second, at) {
                        broken.push(owned_twice(id, &first, &second, since, at));
                    }
                }
                let (kept, acknowledged) = (kept.and_then(|kept| kept.get(id)), partition.highest());
                if kept.copied().unwrap_or(0) < acknowledged {
                    broken.push(format!(
                        "{name}: {acknowledged} was acknowledged as committed for {id}, and {kept:?} is what there is"
                    ));
                }
            }
            for (id, sent) in &self.sent {
                let missing = group.partitions.get(id).map_or_else(
                    || sent.missing_in(&Offsets::default()),
                    |partition| sent.missing_in(&partition.read),
                );
                if let Some(first) = missing.first() {
                    let count = missing.len();
                    broken.push(format!(
                        "{name}: {count} records of {id} were read by nobody, the first is {first}"
                    ));
                }
            }
        }
        self.broken.extend(broken.into_iter().map(|what| (at, what)));
    }

    fn knows(&self, member: &str) -> bool {
        member
            .split_once('.')
            .is_some_and(|(group, _)| self.groups.contains_key(group))
    }

    fn group(&mut self, member: &str) -> &mut Group {
        let name = member.split_once('.').map_or(member, |(group, _)| group);
        self.groups.entry(name.to_owned()).or_default()
    }

    fn assigned(&mut self, at: Time, member: &str, partitions: BTreeSet<String>) {
        let mut next = self.tenures;
        let group = self.group(member);
        let before = group
            .owned
            .insert(member.to_owned(), partitions.clone())
            .unwrap_or_default();
        for name in partitions.difference(&before) {
            let partition = group.partitions.entry(name.clone()).or_default();
            let tenure = Tenure {
                id: next,
                member: member.to_owned(),
                from: at,
                has_read: false,
            };
            next += 1;
            let others = partition.open.iter().filter(|other| other.member != member);
            let shared: Vec<_> = others.map(|other| (other.clone(), tenure.clone(), at)).collect();
            partition.shared.extend(shared);
            partition.last.insert(member.to_owned(), tenure.id);
            partition.open.push(tenure);
        }
        self.tenures = next;
        // A client that names fewer than before has given up the others without a word.
        let silent = before.difference(&partitions).cloned().collect();
        self.close(at, member, &silent, End::GivenUp);
    }

    fn ended(&mut self, at: Time, member: &str, partitions: &BTreeSet<String>, end: End) {
        if let Some(owned) = self.group(member).owned.get_mut(member) {
            owned.retain(|name| !partitions.contains(name));
        }
        self.close(at, member, partitions, end);
    }

    fn close(&mut self, at: Time, member: &str, partitions: &BTreeSet<String>, end: End) {
        let mut broken = Vec::new();
        let group = self.group(member);
        for name in partitions {
            let Some(partition) = group.partitions.get_mut(name) else {
                continue;
            };
            partition.open.retain(|tenure| tenure.member != member);
            let is_over =
                |(first, second, _): &mut (Tenure, Tenure, Time)| first.member == member || second.member == member;
            for (first, second, since) in partition.shared.extract_if(.., is_over) {
                if end == End::GivenUp && !excused(&group.removed, &first, &second, at) {
                    broken.push((at, owned_twice(name, &first, &second, since, at)));
                }
            }
        }
        self.broken.extend(broken);
    }

    fn read(&mut self, at: Time, member: &str, name: &str, offset: i64) {
        let group = self.group(member);
        group.counts.read += 1;
        let partition = group.partitions.entry(name.to_owned()).or_default();
        partition.read.insert(offset);
        let tenure = partition.open.iter_mut().find(|tenure| tenure.member == member);
        let Some(tenure) = tenure.filter(|tenure| !tenure.has_read) else {
            return;
        };
        tenure.has_read = true;
        let from = tenure.from;
        let acknowledged = partition.acknowledged_before(from);
        if offset < acknowledged {
            let what = format!(
                "{member} began to read {name} at {offset}, and {acknowledged} was acknowledged as committed before"
            );
            self.broken.push((at, what));
        }
    }

    fn committed(&mut self, at: Time, member: &str, began: Time, offsets: &BTreeMap<String, i64>) {
        let mut broken = Vec::new();
        let group = self.group(member);
        group.counts.commits += 1;
        if let Some(last) = group.last_commit {
            let pause = at.saturating_sub(last);
            group.counts.longest_pause = group.counts.longest_pause.max(pause);
        }
        group.last_commit = Some(at);
        for (name, &offset) in offsets {
            let partition = group.partitions.entry(name.clone()).or_default();
            let is_open = partition.open.iter().any(|tenure| tenure.member == member);
            group.counts.stray += u64::from(!is_open);
            let before = partition.acknowledged_before(began);
            if offset < before {
                broken.push(format!(
                    "{member} committed {offset} for {name}, after {before} was acknowledged"
                ));
            }
            if let Some(missing) = partition.read.first_missing(partition.checked, offset) {
                broken.push(format!(
                    "{member} committed {offset} for {name}, and nobody has read {missing}"
                ));
            }
            partition.checked = partition.checked.max(offset);
            if let Some(other) = partition.acknowledge(member, began, at, offset) {
                broken.push(format!(
                    "{member} was acknowledged a commit for {name} {} ms after another member, which had it from {member}",
                    (began - other) / 1000
                ));
            }
        }
        self.broken.extend(broken.into_iter().map(|what| (at, what)));
    }
}

/// How a tenure ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    GivenUp,
    /// Its member knows that somebody else has it already, or is no more.
    Lost,
}

impl Partition {
    /// The highest commit that was acknowledged.
    fn highest(&self) -> i64 {
        let lately = self.acknowledged.iter().map(|(_, offset)| *offset);
        lately.fold(self.settled, i64::max)
    }

    /// The highest that was acknowledged before that time.
    fn acknowledged_before(&self, time: Time) -> i64 {
        let before = self.acknowledged.iter().filter(|(at, _)| *at < time);
        before.map(|(_, offset)| *offset).fold(self.settled, i64::max)
    }

    /// Notes a commit. Says since when another tenure has had commits acknowledged, if that came in between two of this one.
    fn acknowledge(&mut self, member: &str, began: Time, at: Time, offset: i64) -> Option<Time> {
        self.acknowledged.push((at, offset));
        // No commit takes so long.
        let old = |acknowledged: Time| acknowledged + 3 * BEFORE < at;
        for (_, offset) in self.acknowledged.extract_if(.., |(at, _)| old(*at)) {
            self.settled = self.settled.max(offset);
        }
        let tenure = *self.last.get(member)?;
        let known = self.commits.iter().position(|commits| commits.tenure == tenure);
        let Some(known) = known else {
            self.commits.push(Commits {
                tenure,
                first_acknowledged: at,
            });
            return None;
        };
        let others = self.commits[known + 1..]
            .iter()
            .map(|commits| commits.first_acknowledged);
        others.filter(|first| *first < began).min()
    }
}

/// Whether one of the two had been taken out, so that it did not own what it was told, or had been told, to own.
fn excused(removed: &BTreeMap<String, Vec<Time>>, first: &Tenure, second: &Tenure, until: Time) -> bool {
    [first, second].into_iter().any(|tenure| {
        let mut removed = removed.get(&tenure.member).into_iter().flatten();
        removed.any(|at| (tenure.from.saturating_sub(BEFORE)..=until).contains(at))
    })
}

fn owned_twice(partition: &str, first: &Tenure, second: &Tenure, since: Time, until: Time) -> String {
    format!(
        "{partition} was owned by {} and {} for {} ms",
        first.member,
        second.member,
        until.saturating_sub(since) / 1000
    )
}
