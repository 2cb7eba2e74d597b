//! Convoke's assignors, called as its coordinator calls them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use convoke::coordinator::assignor::{GroupSpec, MemberSpec};
use convoke::coordinator::partitions::Partitions;
use convoke_support::Result;
use rustix::time::{ClockId, clock_gettime};
use uuid::Uuid;

use super::{Case, Change, MEMBERS, PARTITIONS_OF_TOPIC, TOPICS};
use crate::results::{Sample, median};
use crate::work::Figure;

/// The groups that were made so far, and what their assignment gives beside the time that it takes.
#[derive(Debug, Default)]
pub(super) struct Ours {
    groups: BTreeMap<Case, (GroupSpec, Sample)>,
}

impl Ours {
    pub(super) fn round(&mut self, case: Case, seconds: f64) -> Result<Sample> {
        let (group, outcome) = match self.groups.entry(case) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let group = group(case)?;
                let outcome = outcome(case, &group)?;
                entry.insert((group, outcome))
            }
        };
        let mut times = Vec::new();
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while times.len() < 3 || Instant::now() < end {
            let start = clock_gettime(ClockId::ThreadCPUTime);
            let targets = case.assignor.assign(black_box(group))?;
            let took = clock_gettime(ClockId::ThreadCPUTime) - start;
            #[allow(clippy::cast_precision_loss, reason = "times far below 2^53 ns")]
            times.push(took.tv_sec as f64 * 1e3 + took.tv_nsec as f64 / 1e6);
            drop(black_box(targets));
        }
        let mut sample = outcome.clone();
        sample.extend(median(times).map(|median| (Figure::AssignMs, median)));
        Ok(sample)
    }
}

/// The group after the change, with the targets from before it.
fn group(case: Case) -> Result<GroupSpec> {
    let ids: Vec<Uuid> = (0..TOPICS).map(random_id).collect();
    let partitions = i32::try_from(PARTITIONS_OF_TOPIC)?;
    let subscriptions: Vec<Arc<[Uuid]>> = case
        .subscriptions
        .spans()
        .into_iter()
        .map(|spans| {
            let mut topics: Vec<Uuid> = spans
                .into_iter()
                .flat_map(|(start, end)| &ids[start..end])
                .copied()
                .collect();
            topics.sort_unstable();
            topics.into()
        })
        .collect();
    let member = |number: usize| MemberSpec {
        member_id: format!("member{number:05}").into(),
        instance_id: None,
        rack_id: None,
        topics: Arc::clone(&subscriptions[number % subscriptions.len()]),
        target: Arc::new(Partitions::default()),
    };
    let before = match case.change {
        Change::Full => return Ok(spec(MEMBERS, member, &ids, partitions)),
        Change::Join => MEMBERS - 1,
        Change::Leave => MEMBERS + 1,
    };
    let before = spec(before, member, &ids, partitions);
    let targets = case.assignor.assign(&before)?;
    let mut after = spec(MEMBERS, member, &ids, partitions);
    for (member, target) in after.members.iter_mut().zip(targets) {
        member.target = target;
    }
    Ok(after)
}

fn spec(members: usize, member: impl Fn(usize) -> MemberSpec, ids: &[Uuid], partitions: i32) -> GroupSpec {
    GroupSpec {
        members: (0..members).map(member).collect(),
        topics: ids.iter().map(|&id| (id, partitions)).collect(),
    }
}

/// A topic id as brokers draw them, the same in each run.
fn random_id(number: usize) -> Uuid {
    // SplitMix64.
    let mix = |seed: u64| {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    let seed = number as u64 * 2 + 1;
    Uuid::from_u64_pair(mix(seed), mix(seed + 1))
}

fn outcome(case: Case, group: &GroupSpec) -> Result<Sample> {
    let targets = case.assignor.assign(group)?;
    let gained = group.members.iter().zip(&targets).map(|(member, target)| {
        let gained = target.iter().filter(|partition| !member.target.contains(partition));
        gained.count()
    });
    let loads = || targets.iter().map(|target| target.len());
    let figure = |value: usize| u32::try_from(value).map(f64::from);
    Ok([
        (Figure::Gained, figure(gained.sum())?),
        (Figure::LeastLoad, figure(loads().min().unwrap_or_default())?),
        (Figure::MostLoad, figure(loads().max().unwrap_or_default())?),
    ]
    .into())
}
