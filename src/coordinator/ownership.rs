//! Which groups are ours. Two coordinators for one group is the disaster to rule out, so the upstream is asked about a group
//! before its first request that depends on the answer, and its committed offsets are taken over first.
//!
//! A group is ours once a `GroupOwned` record marks it; the mark is written with the first record of the group, whatever
//! that is. Until then there is only what the upstream said last, which is soft and asked again after a while. The mark
//! outlives the group by the retention, so that the upstream's stale offsets do not come back to life.

use std::collections::BTreeMap;

use super::context::Context;
use super::event::Event;
use super::input::{InspectFailure, Presence, Ticket, UpstreamGroup};
use super::record::{ConsumerGroupRecord, GroupOwnedValue, Record};
use super::request::{Request, Text};
use super::timer::TimerKey;

/// How long it holds who is in a group at the upstream, in milliseconds: members come and go, and an offset may be committed
/// there until the group is ours.
const PRESENCE_HOLDS_MS: u64 = 1_000;
/// How long it holds that a group is of a type that is never ours, in milliseconds.
const TYPE_HOLDS_MS: u64 = 30_000;
/// Who is in the way of a take-over is told at most once in this time, in milliseconds.
const REFUSAL_TOLD_AGAIN_MS: u64 = 30_000;
/// Marks that are dropped at a time.
const EXPIRY_MARKS_MAX: usize = 1_000;
/// How long a mark outlives the retention of offsets, in milliseconds.
const MARK_GRACE_MS: i64 = 24 * 60 * 60 * 1_000;

/// What is known of a group's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Marked as ours, or vacant at the upstream.
    Ours,
    /// Nothing yet.
    Unknown,
    /// It has members at the upstream.
    Live,
    /// A share or streams group.
    OtherType,
}

#[derive(Debug)]
enum Inquiry {
    /// The requests that wait for the answer, in the order in which they came.
    Asked(Vec<(Ticket, Request)>),
    Answered(Standing),
}

#[derive(Debug, Default)]
pub(super) struct Ownership {
    marks: BTreeMap<Text, GroupOwnedValue>,
    inquiries: BTreeMap<Text, Inquiry>,
    /// Monotonic milliseconds at which a refused take-over was told last.
    refusals_told: BTreeMap<Text, u64>,
}

impl Ownership {
    /// Takes a record in, new or loaded.
    pub(super) fn apply(&mut self, record: &Record) {
        if let Record::GroupOwned { group_id, value } = record {
            match value {
                Some(value) => {
                    self.marks.insert(group_id.clone(), value.clone());
                }
                None => {
                    self.marks.remove(group_id);
                }
            }
        }
    }

    pub(super) fn is_marked(&self, group_id: &str) -> bool {
        self.marks.contains_key(group_id)
    }

    pub(super) fn marked(&self) -> impl Iterator<Item = &Text> {
        self.marks.keys()
    }

    pub(super) fn standing(&self, group_id: &str) -> Standing {
        if self.is_marked(group_id) {
            return Standing::Ours;
        }
        match self.inquiries.get(group_id) {
            Some(Inquiry::Answered(standing)) => *standing,
            Some(Inquiry::Asked(_)) | None => Standing::Unknown,
        }
    }

    /// Parks a request until the upstream has answered, and asks if nobody has.
    pub(super) fn park(&mut self, group_id: &Text, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        if let Some(Inquiry::Asked(parked)) = self.inquiries.get_mut(group_id) {
            parked.push((ticket, request));
            return;
        }
        let parked = Inquiry::Asked(vec![(ticket, request)]);
        self.inquiries.insert(group_id.clone(), parked);
        cx.effects.inspections.push(group_id.clone());
    }

    /// The parked requests, once the upstream has answered; `None` if it was not asked.
    pub(super) fn settle(
        &mut self,
        group_id: &Text,
        result: &Result<UpstreamGroup, InspectFailure>,
        cx: &mut Context<'_>,
    ) -> Option<Vec<(Ticket, Request)>> {
        if !matches!(self.inquiries.get(group_id), Some(Inquiry::Asked(_))) {
            return None;
        }
        let Some(Inquiry::Asked(parked)) = self.inquiries.remove(group_id) else {
            return None;
        };
        match result {
            Ok(upstream) => {
                let standing = Standing::of(&upstream.presence);
                let holds_ms = match standing {
                    Standing::OtherType => TYPE_HOLDS_MS,
                    _ => PRESENCE_HOLDS_MS,
                };
                self.inquiries.insert(group_id.clone(), Inquiry::Answered(standing));
                let key = TimerKey::Verdict(group_id.clone());
                cx.timers.arm(cx.now.monotonic_ms, key, holds_ms);
                if parked.iter().any(|(_, request)| request.is_join()) {
                    self.tell_refusal(group_id, &upstream.presence, cx);
                }
            }
            Err(failure) => cx.event(Event::InspectFailed {
                group_id: group_id.clone(),
                reason: failure.reason.clone(),
            }),
        }
        Some(parked)
    }

    /// What the upstream said of the group is too old.
    pub(super) fn forget_verdict(&mut self, group_id: &str) {
        if let Some(Inquiry::Answered(_)) = self.inquiries.get(group_id) {
            self.inquiries.remove(group_id);
        }
    }

    /// Marks a group whose offsets were imported.
    pub(super) fn take_over(&mut self, group_id: &Text, offsets: usize, cx: &mut Context<'_>) {
        self.write(group_id, Some(cx.now.wall_ms), cx);
        cx.event(Event::GroupTakenOver {
            group_id: group_id.clone(),
            offsets,
        });
    }

    /// Adds the marks that go into the same batch as the step's records: of groups that had none, and anew of groups that
    /// were deleted.
    pub(super) fn mark(&mut self, cx: &mut Context<'_>) {
        let mut group_ids: Vec<Text> = cx
            .effects
            .records
            .iter()
            .filter_map(|record| self.needs_mark(record))
            .collect();
        group_ids.sort_unstable();
        group_ids.dedup();
        for group_id in group_ids {
            match self.is_marked(&group_id) {
                true => self.write(&group_id, Some(cx.now.wall_ms), cx),
                false => self.take_over(&group_id, 0, cx),
            }
        }
    }

    /// Drops marks that have outlived their groups for long enough; what is too much for one batch waits for the next time.
    pub(super) fn expire(&mut self, exists: impl Fn(&str) -> bool, cx: &mut Context<'_>) {
        let holds_ms = cx.settings.offsets_retention_ms.saturating_add(MARK_GRACE_MS);
        let is_old = |mark: &GroupOwnedValue| cx.now.wall_ms.saturating_sub(mark.since_ms) >= holds_ms;
        let old = self
            .marks
            .iter()
            .filter(|(group_id, mark)| is_old(mark) && !exists(group_id));
        let old: Vec<Text> = old
            .map(|(group_id, _)| group_id.clone())
            .take(EXPIRY_MARKS_MAX)
            .collect();
        for group_id in old {
            self.write(&group_id, None, cx);
        }
    }

    /// Every request that waits for the upstream.
    pub(super) fn parked(&self) -> impl Iterator<Item = Ticket> {
        self.inquiries.values().flat_map(|inquiry| match inquiry {
            Inquiry::Asked(parked) => parked.iter().map(|(ticket, _)| *ticket).collect(),
            Inquiry::Answered(_) => Vec::new(),
        })
    }

    fn write(&mut self, group_id: &Text, since_ms: Option<i64>, cx: &mut Context<'_>) {
        let record = Record::GroupOwned {
            group_id: group_id.clone(),
            value: since_ms.map(|since_ms| GroupOwnedValue { since_ms }),
        };
        self.apply(&record);
        cx.effects.records.push(record);
    }

    fn needs_mark(&self, record: &Record) -> Option<Text> {
        let group_id = match record {
            Record::GroupMetadata { group_id, value: None } => return Some(group_id.clone()),
            Record::ConsumerGroup {
                group_id,
                record: ConsumerGroupRecord::Metadata(None),
            } => return Some(group_id.clone()),
            Record::GroupMetadata { group_id, .. } | Record::ConsumerGroup { group_id, .. } => group_id,
            Record::OffsetCommit { key, .. } => &key.group_id,
            Record::GroupOwned { .. } | Record::GroupConfig { .. } => return None,
        };
        (!self.is_marked(group_id)).then(|| group_id.clone())
    }

    fn tell_refusal(&mut self, group_id: &Text, presence: &Presence, cx: &mut Context<'_>) {
        let Presence::Live {
            group_type,
            protocol_type,
            state,
        } = presence
        else {
            return;
        };
        let now_ms = cx.now.monotonic_ms;
        self.refusals_told
            .retain(|_, told_ms| now_ms.saturating_sub(*told_ms) < REFUSAL_TOLD_AGAIN_MS);
        if self.refusals_told.contains_key(group_id) {
            return;
        }
        self.refusals_told.insert(group_id.clone(), now_ms);
        cx.event(Event::TakeoverRefused {
            group_id: group_id.clone(),
            group_type: group_type.clone(),
            protocol_type: protocol_type.clone(),
            state: state.clone(),
        });
    }
}

impl Standing {
    fn of(presence: &Presence) -> Self {
        match presence {
            Presence::Vacant => Self::Ours,
            Presence::Live { .. } => Self::Live,
            Presence::OtherType { .. } => Self::OtherType,
        }
    }
}
