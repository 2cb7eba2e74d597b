//! One computation of a target outside of the coordinator.
//!
//! ```text
//!             somebody who can compute is heard              it installs
//!   Wanted ───────────────────────────────────────▶ Given ───────────────▶ over
//!     │  ▲                                            │
//!     │  └────────────────────────────────────────────┘ it is passed over: too slow, gone, failed, refused
//!     └─▶ over: nobody is left, a server assignor computes
//! ```
//!
//! Nothing of it is durable: after a restart the group's epoch is still ahead of its target's, and it begins anew.

use std::collections::BTreeSet;

use super::COMPUTE_LONGEST_MS;
use super::snapshot::Snapshot;
use crate::coordinator::request::{ComputationView, Text};

/// After so many refused results somebody is passed over.
const REFUSALS_MAX: u8 = 3;
/// Those who are gone while they compute may be back at once; a computation bears so many of them.
const LOSSES_MAX: u8 = 3;

#[derive(Debug)]
pub(in crate::coordinator) struct Computation {
    pub(in crate::coordinator) assignor: Text,
    /// Monotonic clock.
    pub(in crate::coordinator) wanted_ms: u64,
    /// How long the group's members can wait for it; `None` where they go on meanwhile.
    bound_ms: Option<i32>,
    given: Option<Given>,
    passed_over: BTreeSet<Text>,
    losses: u8,
    /// What the last assignor that failed said.
    error: i8,
}

/// Who computes.
#[derive(Debug)]
pub(in crate::coordinator) struct Given {
    pub(in crate::coordinator) member_id: Text,
    /// Monotonic clock.
    given_ms: u64,
    timeout_ms: i32,
    /// The last that it was given.
    pub(in crate::coordinator) snapshot: Option<Snapshot>,
    refusals: u8,
}

impl Computation {
    pub(super) fn wanted(assignor: Text, now_ms: u64, bound_ms: Option<i32>) -> Self {
        Self {
            assignor,
            wanted_ms: now_ms,
            bound_ms,
            given: None,
            passed_over: BTreeSet::new(),
            losses: 0,
            error: 0,
        }
    }

    pub(in crate::coordinator) const fn given(&self) -> Option<&Given> {
        self.given.as_ref()
    }

    pub(in crate::coordinator) fn is_given_to(&self, member_id: &str) -> bool {
        self.given.as_ref().is_some_and(|given| &*given.member_id == member_id)
    }

    /// What is left of the time of whoever computes, in milliseconds.
    pub(in crate::coordinator) fn left_ms(&self, now_ms: u64) -> i32 {
        let left_ms = |given: &Given| left_ms(given.timeout_ms, given.given_ms, now_ms);
        self.given
            .as_ref()
            .map_or(0, |given| left_ms(given).min(self.patience_ms(now_ms)))
    }

    /// For how much longer the group's members can wait, in milliseconds.
    pub(super) fn patience_ms(&self, now_ms: u64) -> i32 {
        self.bound_ms
            .map_or(i32::MAX, |bound_ms| left_ms(bound_ms, self.wanted_ms, now_ms))
    }

    /// Whether whoever computes has been told what from.
    pub(in crate::coordinator) fn has_snapshot(&self) -> bool {
        self.given.as_ref().is_some_and(|given| given.snapshot.is_some())
    }

    /// Whether it has not had its turn.
    pub(in crate::coordinator) fn may_have(&self, member_id: &str) -> bool {
        !self.passed_over.contains(member_id)
    }

    pub(in crate::coordinator) fn give(&mut self, member_id: Text, now_ms: u64, timeout_ms: i32) {
        self.given = Some(Given {
            member_id,
            given_ms: now_ms,
            timeout_ms: timeout_ms.clamp(0, COMPUTE_LONGEST_MS),
            snapshot: None,
            refusals: 0,
        });
    }

    pub(in crate::coordinator) fn take_snapshot(&mut self, snapshot: Snapshot) {
        if let Some(given) = &mut self.given {
            given.snapshot = Some(snapshot);
        }
    }

    /// Counts a refused result; says whether it was one too many.
    pub(in crate::coordinator) fn refuse(&mut self) -> bool {
        self.given.as_mut().is_some_and(|given| {
            given.refusals += 1;
            given.refusals >= REFUSALS_MAX
        })
    }

    pub(in crate::coordinator) fn fail(&mut self, error: i8) {
        self.error = error;
    }

    pub(in crate::coordinator) const fn error(&self) -> i8 {
        self.error
    }

    /// Takes it from whoever has it, who does not get it again.
    pub(in crate::coordinator) fn pass_over(&mut self) -> Option<Text> {
        let given = self.given.take()?;
        self.passed_over.insert(given.member_id.clone());
        Some(given.member_id)
    }

    /// Takes it from whoever has it and is gone; if that one comes back, it may have it again.
    pub(in crate::coordinator) fn lose(&mut self) -> Option<Text> {
        self.losses = self.losses.saturating_add(1);
        match self.losses >= LOSSES_MAX {
            true => self.pass_over(),
            false => self.given.take().map(|given| given.member_id),
        }
    }

    /// Whether anybody had a turn and is not to have another.
    pub(in crate::coordinator) fn has_passed_over(&self) -> bool {
        !self.passed_over.is_empty()
    }

    pub(in crate::coordinator) fn view(&self) -> ComputationView {
        ComputationView {
            assignor: self.assignor.clone(),
            member_id: self.given.as_ref().map(|given| given.member_id.clone()),
            passed_over: self.passed_over.iter().cloned().collect(),
        }
    }

    /// The last snapshot, once what was computed from it is there.
    pub(in crate::coordinator) fn into_snapshot(self) -> Option<Snapshot> {
        self.given?.snapshot
    }
}

fn left_ms(timeout_ms: i32, since_ms: u64, now_ms: u64) -> i32 {
    let passed_ms = i32::try_from(now_ms.saturating_sub(since_ms)).unwrap_or(i32::MAX);
    timeout_ms.saturating_sub(passed_ms).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_passed_over_has_no_second_turn_and_who_is_gone_may_come_back() {
        let mut computation = Computation::wanted("a".into(), 0, None);
        computation.give("slow".into(), 0, 10);
        assert_eq!(computation.pass_over().as_deref(), Some("slow"));
        assert!(!computation.may_have("slow"));
        computation.give("gone".into(), 0, 10);
        assert_eq!(computation.lose().as_deref(), Some("gone"));
        assert!(computation.may_have("gone") && computation.given().is_none());
        for _ in 0..2 {
            computation.give("gone".into(), 0, 10);
            computation.lose();
        }
        assert!(!computation.may_have("gone"), "it comes and goes");
    }

    #[test]
    fn the_time_for_a_computation_has_an_end() {
        let mut computation = Computation::wanted("a".into(), 0, None);
        computation.give("m".into(), 1_000, i32::MAX);
        assert_eq!(computation.left_ms(1_000), 300_000);
        computation.give("m".into(), 1_000, -5);
        assert_eq!(computation.left_ms(1_000), 0);
        computation.give("m".into(), 1_000, 60_000);
        assert_eq!(computation.left_ms(31_000), 30_000);
        assert_eq!(computation.left_ms(u64::MAX), 0);
    }

    #[test]
    fn nobody_has_more_time_than_the_members_can_wait() {
        let mut computation = Computation::wanted("a".into(), 1_000, Some(20_000));
        computation.give("m".into(), 2_000, 60_000);
        assert_eq!(computation.left_ms(2_000), 19_000);
        computation.pass_over();
        computation.give("n".into(), 20_000, 500);
        assert_eq!(
            (computation.left_ms(20_000), computation.patience_ms(20_000)),
            (500, 1_000)
        );
        assert_eq!((computation.left_ms(21_000), computation.patience_ms(21_000)), (0, 0));
    }

    #[test]
    fn the_third_refusal_is_one_too_many() {
        let mut computation = Computation::wanted("a".into(), 0, None);
        computation.give("m".into(), 0, 10);
        assert_eq!([(); 3].map(|()| computation.refuse()), [false, false, true]);
    }
}
