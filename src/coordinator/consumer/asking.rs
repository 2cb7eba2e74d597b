//! A new assignment that a client-side assignor asks for though nothing of the group changed: by a reason of its own, by other
//! metadata, or by another list of assignors. Whoever asks all the time gets one in a while.

use super::ConsumerGroup;
use crate::coordinator::client_assignor::{Choice, Computation};
use crate::coordinator::context::Context;
use crate::coordinator::event::EpochReason;
use crate::coordinator::request::Text;
use crate::coordinator::timer::GroupTimer;

/// How often a group heeds such a wish at most, in milliseconds.
const ASKED_AT_MOST_EVERY_MS: u64 = 1_000;

/// Wishes for a new assignment.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Monotonic clock: when one was heeded.
    heeded_ms: Option<u64>,
    /// One that came too soon.
    kept: Option<(EpochReason, Text)>,
}

impl ConsumerGroup {
    /// Somebody asks. What is still to be computed is computed from what is said now anyway.
    pub(super) fn ask_assignment(&mut self, reason: EpochReason, member_id: &Text, cx: &mut Context<'_>) {
        let is_under_way = self.computation.as_ref().is_some_and(Computation::has_snapshot);
        if self.is_empty() || self.asked.kept.is_some() || (self.epoch > self.target_epoch && !is_under_way) {
            return;
        }
        let now_ms = cx.now.monotonic_ms;
        let next_ms = self
            .asked
            .heeded_ms
            .map_or(0, |ms| ms.saturating_add(ASKED_AT_MOST_EVERY_MS));
        match i32::try_from(next_ms.saturating_sub(now_ms)) {
            Ok(0) => self.heed(reason, member_id, cx),
            wait_ms => {
                self.asked.kept = Some((reason, member_id.clone()));
                cx.arm(&self.id, GroupTimer::Asked, wait_ms.unwrap_or(i32::MAX));
            }
        }
    }

    pub(super) fn on_asked_due(&mut self, cx: &mut Context<'_>) {
        if let Some((reason, member_id)) = self.asked.kept.take()
            && !self.is_empty()
        {
            self.heed(reason, &member_id, cx);
        }
    }

    fn heed(&mut self, reason: EpochReason, member_id: &Text, cx: &mut Context<'_>) {
        self.asked.heeded_ms = Some(cx.now.monotonic_ms);
        self.bump(reason, Some(member_id), cx);
        self.plan_target(cx);
    }

    /// A bump of the group's epoch for whatever reason does what was asked for.
    pub(super) fn forget_asked(&mut self, cx: &mut Context<'_>) {
        if self.asked.kept.take().is_some() {
            cx.cancel(&self.id, GroupTimer::Asked);
        }
    }

    /// An external assignor is heard; `news` is why it asks for a new assignment, if it does. If it can do what the group would
    /// have had the last time, and had not, the group gets a new target.
    pub(in crate::coordinator) fn on_external_news(
        &mut self,
        member_id: &Text,
        news: Option<EpochReason>,
        cx: &mut Context<'_>,
    ) {
        let Choice::Client(wanted) = self.choice(cx.settings) else {
            return;
        };
        if self.is_empty() || !self.can_run(member_id, &wanted, cx) {
            return self.proceed(cx);
        }
        match news {
            Some(EpochReason::AssignorChanged) if self.computed_by.as_ref() == Some(&wanted) => {}
            Some(reason) => self.ask_assignment(reason, member_id, cx),
            None => {}
        }
        self.proceed(cx);
    }

    /// An external assignor left, was silent, or began anew.
    pub(in crate::coordinator) fn on_external_gone(&mut self, member_id: &str, cx: &mut Context<'_>) {
        self.lose(member_id, cx);
        self.proceed(cx);
    }

    /// Whether it is at computing the next target.
    pub(in crate::coordinator) fn is_computed_by(&self, member_id: &str) -> bool {
        let computation = self.computation.as_ref();
        computation.is_some_and(|computation| computation.is_given_to(member_id))
    }
}
