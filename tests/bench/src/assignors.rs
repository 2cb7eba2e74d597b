//! The server-side assignors of consumer groups beside Kafka's own classes, on groups of the same shapes: the first of them are those
//! of Kafka's JMH benchmark (10,000 members, 1,000 topics, ten partitions for each member).

mod kafka;
mod ours;

use std::fmt;

use convoke::coordinator::assignor::Assignor;
use convoke_support::Result;

use self::kafka::Kafka;
use self::ours::Ours;
use crate::results::{Results, Row, Sample};
use crate::rig::Route;

pub const MEMBERS: usize = 10_000;
pub const TOPICS: usize = 1_000;
pub const PARTITIONS_EACH: usize = 10;

const PARTITIONS_OF_TOPIC: usize = MEMBERS * PARTITIONS_EACH / TOPICS;

/// Seconds for each case in each round: thousands of calls of the fast ones, some of the slow ones.
pub const SECONDS: f64 = 0.5;
/// The same for Kafka in the round that is not counted, in which the JVM compiles.
const SECONDS_TO_COMPILE: f64 = 3.0;

/// What is assigned, and by which assignor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    pub assignor: Assignor,
    pub subscriptions: Subscriptions,
    pub change: Change,
}

/// What the members subscribe to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subscriptions {
    /// All to all topics.
    Equal,
    /// Each to one of five sets of topics that have none in common.
    Buckets,
    /// Each to one of twenty sets of 400 topics, of which each has topics in common with others.
    Overlapping,
}

/// What happened to the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It is new: nobody has anything.
    Full,
    /// One member joined a settled group.
    Join,
    /// One member left a settled group.
    Leave,
}

impl Case {
    pub const UNIFORM_EQUAL_JOIN: Self = Self::uniform(Subscriptions::Equal, Change::Join);
    pub const UNIFORM_EQUAL_LEAVE: Self = Self::uniform(Subscriptions::Equal, Change::Leave);
    pub const UNIFORM_BUCKETS_JOIN: Self = Self::uniform(Subscriptions::Buckets, Change::Join);
    pub const UNIFORM_BUCKETS_LEAVE: Self = Self::uniform(Subscriptions::Buckets, Change::Leave);
    pub const UNIFORM_OVERLAPPING_JOIN: Self = Self::uniform(Subscriptions::Overlapping, Change::Join);

    pub const ALL: [Self; 11] = [
        Self::uniform(Subscriptions::Equal, Change::Full),
        Self::UNIFORM_EQUAL_JOIN,
        Self::UNIFORM_EQUAL_LEAVE,
        Self::uniform(Subscriptions::Buckets, Change::Full),
        Self::UNIFORM_BUCKETS_JOIN,
        Self::UNIFORM_BUCKETS_LEAVE,
        Self::uniform(Subscriptions::Overlapping, Change::Full),
        Self::UNIFORM_OVERLAPPING_JOIN,
        Self::range(Subscriptions::Equal, Change::Full),
        Self::range(Subscriptions::Equal, Change::Join),
        Self::range(Subscriptions::Buckets, Change::Join),
    ];

    const fn uniform(subscriptions: Subscriptions, change: Change) -> Self {
        Self {
            assignor: Assignor::Uniform,
            subscriptions,
            change,
        }
    }

    const fn range(subscriptions: Subscriptions, change: Change) -> Self {
        Self {
            assignor: Assignor::Range,
            subscriptions,
            change,
        }
    }
}

impl Row for Case {
    fn key(self) -> String {
        format!("{}_{}_{}", self.assignor.name(), self.subscriptions, self.change)
    }

    fn title(self) -> String {
        format!(
            "{}, subscriptions {}, {}",
            self.assignor.name(),
            self.subscriptions,
            self.change
        )
    }
}

impl Subscriptions {
    /// The different subscriptions, each as the bounds of its topics' numbers; the members have them in turn.
    fn spans(self) -> Vec<Vec<(usize, usize)>> {
        let spans = |count: usize, width: usize| {
            (0..count)
                .map(|index| {
                    let (start, end) = (index * TOPICS / count, index * TOPICS / count + width);
                    match end.checked_sub(TOPICS) {
                        Some(wrapped @ 1..) => vec![(0, wrapped), (start, TOPICS)],
                        _ => vec![(start, end)],
                    }
                })
                .collect()
        };
        match self {
            Self::Equal => spans(1, TOPICS),
            Self::Buckets => spans(5, TOPICS / 5),
            Self::Overlapping => spans(20, 400),
        }
    }
}

impl fmt::Display for Subscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "equal",
            Self::Buckets => "buckets",
            Self::Overlapping => "overlapping",
        })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Join => "join",
            Self::Leave => "leave",
        })
    }
}

/// Times every case in each round, and once more before; ours and Kafka's in turn.
///
/// # Errors
/// When Kafka's classes cannot be had or run, or an assignor fails.
pub fn measure(rounds: u32, routes: &[Route]) -> Result<Results<Case>> {
    let mut results = Results::default();
    let mut kafka = routes.contains(&Route::Direct).then(Kafka::start).transpose()?;
    let mut ours = routes.contains(&Route::Convoke).then(Ours::default);
    for round in 0..=rounds {
        eprintln!("assignors, round {round} of {rounds}");
        for case in Case::ALL {
            let mut record = |route, sample: Sample| {
                if round > 0 {
                    results.record(case, route, sample);
                }
            };
            if let Some(kafka) = &mut kafka {
                let seconds = if round == 0 { SECONDS_TO_COMPILE } else { SECONDS };
                record(Route::Direct, kafka.round(case, seconds)?);
            }
            if let Some(ours) = &mut ours {
                record(Route::Convoke, ours.round(case, SECONDS)?);
            }
        }
    }
    Ok(results)
}
