//! A new assignment that a client-side assignor asks for though nothing of the group changed: by a reason of its own, by other
//! metadata, or by another list of assignors. Whoever asks all the time gets one in a while.

use super::outside::{Computable, ComputedOutside};
use crate::coordinator::context::Context;
use crate::coordinator::event::EpochReason;
use crate::coordinator::request::Text;
use crate::coordinator::timer::GroupTimer;

/// How often a group heeds such a wish at most, in milliseconds.
const ASKED_AT_MOST_EVERY_MS: i32 = 1_000;

/// Wishes for a new assignment.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Monotonic clock: when one was heeded.
    heeded_ms: Option<u64>,
    /// One that came too soon.
    kept: Option<(EpochReason, Text)>,
}

impl Asked {
    /// How long a wish has to wait, in milliseconds.
    fn wait_ms(&self, now_ms: u64) -> i32 {
        let since_ms = self.heeded_ms.map(|ms| now_ms.saturating_sub(ms));
        let since_ms = since_ms.map_or(i32::MAX, |ms| i32::try_from(ms).unwrap_or(i32::MAX));
        (ASKED_AT_MOST_EVERY_MS - since_ms).max(0)
    }
}

pub(in crate::coordinator) trait Asking: ComputedOutside {
    /// Somebody asks. What is still to be computed is computed from what is said now anyway.
    fn ask_assignment(&mut self, reason: EpochReason, member_id: &Text, cx: &mut Context<'_>) {
        if self.outside().asked.kept.is_some() || self.is_asked_in_vain() {
            return;
        }
        match self.outside().asked.wait_ms(cx.now.monotonic_ms) {
            0 => self.heed_now(reason, member_id, cx),
            wait_ms => self.keep_asked(reason, member_id, wait_ms, cx),
        }
    }

    /// Heeds it in a while.
    fn ask_later(&mut self, reason: EpochReason, member_id: &Text, cx: &mut Context<'_>) {
        self.keep_asked(reason, member_id, ASKED_AT_MOST_EVERY_MS, cx);
    }

    fn keep_asked(&mut self, reason: EpochReason, member_id: &Text, wait_ms: i32, cx: &mut Context<'_>) {
        self.outside_mut().asked.kept = Some((reason, member_id.clone()));
        cx.arm(self.group_id(), GroupTimer::Asked, wait_ms);
    }

    fn on_asked_due(&mut self, cx: &mut Context<'_>) {
        if let Some((reason, member_id)) = self.outside_mut().asked.kept.take()
            && self.has_members()
        {
            self.heed_now(reason, &member_id, cx);
        }
    }

    fn heed_now(&mut self, reason: EpochReason, member_id: &Text, cx: &mut Context<'_>) {
        self.outside_mut().asked.heeded_ms = Some(cx.now.monotonic_ms);
        self.heed(reason, member_id, cx);
    }

    /// What begins for whatever other reason does what was asked for.
    fn forget_asked(&mut self, cx: &mut Context<'_>) {
        if self.outside_mut().asked.kept.take().is_some() {
            cx.cancel(self.group_id(), GroupTimer::Asked);
        }
    }

    /// An external assignor is heard; `news` is why it asks for a new assignment, if it does. If it can do what the group would
    /// have had the last time, and had not, the group gets a new one.
    fn on_external_news(&mut self, member_id: &Text, news: Option<EpochReason>, cx: &mut Context<'_>) {
        let Some(wanted) = self.wanted_outside(cx.settings) else {
            return;
        };
        if self.has_members() && self.can_run(member_id, &wanted, cx) {
            match news {
                Some(EpochReason::AssignorChanged) if !self.was_computed_otherwise(&wanted) => {}
                Some(reason) => self.ask_assignment(reason, member_id, cx),
                None => {}
            }
        }
        self.proceed(cx);
    }

    /// An external assignor left, was silent, or began anew.
    fn on_external_gone(&mut self, member_id: &str, cx: &mut Context<'_>) {
        self.lose(member_id, cx);
        self.proceed(cx);
    }
}

impl<G: Computable + ?Sized> Asking for G {}
