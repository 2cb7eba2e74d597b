//! What Convoke is meant to reach, each aim a ratio or a size that is not to be exceeded (or gone below).

use crate::assignors::Case;
use crate::results::{Results, Row as _};
use crate::rig::Route;
use crate::settle;
use crate::work::{Figure, Work};

/// An aim beside what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub what: String,
    pub aim: String,
    pub measured: f64,
    pub reached: bool,
}

/// Throughput moves by a few percent between runs on a busy machine; that much less is not less.
const THROUGHPUT_TOLERANCE: f64 = 0.03;

/// A fifth of what a broker's coordinator takes where no member waits for its next heartbeat to hear of a change: its interval
/// between assignments, and a tenth of a second.
const SETTLE_MS: f64 = 220.0;

/// All aims for which something was measured.
#[must_use]
pub fn outcomes(results: &Results, settling: &Results<settle::Case>, assignors: &Results<Case>) -> Vec<Outcome> {
    let relay_cpu = [
        (Work::Produce1K, 1.0),
        (Work::Produce64K, 0.85),
        (Work::Consume64K, 0.85),
        (Work::Consume1M, 0.6),
    ];
    let relay = relay_cpu.into_iter().flat_map(|(work, limit)| {
        let title = work.title();
        let cpu = results.ratio(work, Figure::CpuMsPerGigabyte, Route::Convoke, Route::Haproxy);
        let rate = results.ratio(work, Figure::MegabytesPerSecond, Route::Convoke, Route::Haproxy);
        [
            at_most(format!("{title}: relay CPU against HAProxy"), limit, cpu),
            at_least(
                format!("{title}: throughput against HAProxy"),
                1.0 - THROUGHPUT_TOLERANCE,
                rate,
            ),
        ]
    });
    let memory = [
        (Figure::IdleResidentMb, "resident MB when idle", 20.0),
        (Figure::KilobytesPerConnection, "resident KB a connection", 10.0),
    ];
    let memory = memory.into_iter().map(|(figure, what, limit)| {
        at_most(
            what.to_owned(),
            limit,
            results.median(Work::Memory, Route::Convoke, figure),
        )
    });
    let assignors = [
        (Case::UNIFORM_EQUAL_JOIN, 2.0),
        (Case::UNIFORM_EQUAL_LEAVE, 2.0),
        (Case::UNIFORM_BUCKETS_JOIN, 50.0),
        (Case::UNIFORM_BUCKETS_LEAVE, 50.0),
        (Case::UNIFORM_OVERLAPPING_JOIN, 50.0),
    ]
    .map(|(case, limit)| {
        at_most(
            format!("{}: ms", case.title()),
            limit,
            assignors.median(case, Route::Convoke, Figure::AssignMs),
        )
    });
    let ours = relay
        .chain(coordinator(results))
        .chain(settled(settling))
        .chain(memory)
        .chain(assignors);
    ours.flatten().collect()
}

/// Of the coordinator beside the broker's own.
fn coordinator(results: &Results) -> impl Iterator<Item = Option<Outcome>> {
    let against_broker = [
        (
            Work::Heartbeat,
            Figure::CpuUsPerRequest,
            "CPU a Heartbeat against the broker's",
            0.25,
        ),
        (
            Work::ConsumerHeartbeat,
            Figure::CpuUsPerRequest,
            "CPU a ConsumerGroupHeartbeat against the broker's",
            0.25,
        ),
        (
            Work::OffsetCommit,
            Figure::CpuUsPerRequest,
            "CPU a commit against the broker's",
            1.0 / 3.0,
        ),
        (
            Work::JoinStorm,
            Figure::JoinMs,
            "join storm: time against the broker's",
            1.0,
        ),
        (
            Work::JoinStorm,
            Figure::RejoinMs,
            "join storm, all again: time against the broker's",
            1.0,
        ),
    ];
    against_broker.into_iter().map(move |(work, figure, what, limit)| {
        let ratio = results.ratio(work, figure, Route::Convoke, Route::Direct);
        at_most(what.to_owned(), limit, ratio)
    })
}

/// Of consumer groups that are new.
fn settled(settling: &Results<settle::Case>) -> impl Iterator<Item = Option<Outcome>> {
    settle::Case::LARGE.into_iter().flat_map(move |case| {
        let ratio = |figure| settling.ratio(case, figure, Route::Convoke, Route::Direct);
        [
            at_most(
                format!("{case}: ms to settle"),
                SETTLE_MS,
                settling.median(case, Route::Convoke, Figure::SettleMs),
            ),
            at_most(
                format!("{case}: time to settle against the broker's"),
                0.2,
                ratio(Figure::SettleMs),
            ),
            below(
                format!("{case}: heartbeats against the broker's"),
                1.0,
                ratio(Figure::Heartbeats),
            ),
        ]
    })
}

fn at_most(what: String, limit: f64, measured: Option<f64>) -> Option<Outcome> {
    measured.map(|measured| Outcome {
        what,
        aim: format!("at most {limit:.2}"),
        measured,
        reached: measured <= limit,
    })
}

fn below(what: String, limit: f64, measured: Option<f64>) -> Option<Outcome> {
    measured.map(|measured| Outcome {
        what,
        aim: format!("below {limit:.2}"),
        measured,
        reached: measured < limit,
    })
}

fn at_least(what: String, limit: f64, measured: Option<f64>) -> Option<Outcome> {
    measured.map(|measured| Outcome {
        what,
        aim: format!("at least {limit:.2}"),
        measured,
        reached: measured >= limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aim_is_judged_only_where_both_sides_were_measured() {
        let mut results = Results::default();
        results.record(Work::Heartbeat, Route::Convoke, [(Figure::CpuUsPerRequest, 5.0)].into());
        let outcomes = |results: &Results| outcomes(results, &Results::default(), &Results::default());
        assert_eq!(outcomes(&results), []);
        results.record(Work::Heartbeat, Route::Direct, [(Figure::CpuUsPerRequest, 16.0)].into());
        let outcomes = outcomes(&results);
        assert_eq!(outcomes.len(), 1);
        assert!(!outcomes[0].reached, "{outcomes:?}");
    }

    #[test]
    fn as_many_heartbeats_are_not_fewer() {
        let reached = |measured| below(String::new(), 1.0, Some(measured)).map(|outcome| outcome.reached);
        assert_eq!((reached(0.99), reached(1.0)), (Some(true), Some(false)));
    }
}
