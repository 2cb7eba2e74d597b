//! The way of one member from what it holds to its target (Kafka's `CurrentAssignmentBuilder`): give up first, wait for what
//! others have not given up, take what is free. A pure function, one step for each heartbeat.

#[cfg(test)]
mod tests;

use uuid::Uuid;

use crate::coordinator::held::HeldPartitions;
use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::coordinator::record::{CurrentAssignmentValue, MemberState};

/// What a step is made from.
pub(super) struct Step<'a> {
    pub(super) current: &'a CurrentAssignmentValue,
    pub(super) target_epoch: i32,
    pub(super) target: &'a Partitions,
    /// What the member says it owns; `None` if it says nothing, which is taken for "as before".
    pub(super) owned: Option<&'a Partitions>,
    /// Whether the request changed what the member is subscribed to.
    pub(super) subscription_changed: bool,
    pub(super) is_subscribed: &'a dyn Fn(&Uuid) -> bool,
    /// Whether nobody else holds the partition.
    pub(super) is_free: &'a dyn Fn(&TopicPartition) -> bool,
}

/// The member is in a state that this build does not know, and has to begin anew without partitions.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MustRejoin;

/// What a member keeps, gives up, takes, and cannot have yet.
#[derive(Default)]
struct Parts {
    keep: Vec<(TopicPartition, i32)>,
    revoke: Vec<(TopicPartition, i32)>,
    free: Vec<TopicPartition>,
    unreleased: bool,
}

impl Step<'_> {
    /// What the member holds after this step; `None` if nothing changes.
    pub(super) fn run(&self) -> Result<Option<CurrentAssignmentValue>, MustRejoin> {
        let current = self.current;
        let is_at_target = current.member_epoch == self.target_epoch;
        let next = match current.state {
            MemberState::Stable if !is_at_target => Some(self.next(current.member_epoch)),
            MemberState::Stable => self.trim_if_changed(),
            MemberState::UnrevokedPartitions if self.owns(current.pending_revocation.partitions()) => {
                self.trim_if_changed()
            }
            MemberState::UnrevokedPartitions | MemberState::UnreleasedPartitions => {
                Some(self.next(current.member_epoch))
            }
            MemberState::Unknown if self.owned.is_none_or(|owned| !owned.is_empty()) => return Err(MustRejoin),
            MemberState::Unknown => Some(self.next(self.target_epoch)),
        };
        Ok(next.filter(|next| next != current))
    }

    fn owns(&self, partitions: &Partitions) -> bool {
        self.owned.is_none_or(|owned| partitions.intersects(owned))
    }

    fn next(&self, epoch: i32) -> CurrentAssignmentValue {
        let parts = self.part();
        let revoke: HeldPartitions = parts.revoke.into_iter().collect();
        let keep = match parts.keep.len() == self.current.assigned.len() {
            true => self.current.assigned.clone(),
            false => parts.keep.iter().copied().collect(),
        };
        if !revoke.is_empty() && self.owns(revoke.partitions()) {
            return self.at(epoch, MemberState::UnrevokedPartitions, keep, revoke);
        }
        let state = match parts.unreleased {
            true => MemberState::UnreleasedPartitions,
            false => MemberState::Stable,
        };
        let assigned = match parts.free.is_empty() {
            true => keep,
            false => {
                let taken = parts.free.into_iter().map(|partition| (partition, self.target_epoch));
                parts.keep.into_iter().chain(taken).collect()
            }
        };
        self.at(self.target_epoch, state, assigned, HeldPartitions::default())
    }

    /// Whoever gave up a subscription gives up its partitions at once, before a target is computed without them.
    fn trim_if_changed(&self) -> Option<CurrentAssignmentValue> {
        if !self.subscription_changed {
            return None;
        }
        let is_subscribed = |(partition, _): &(TopicPartition, i32)| (self.is_subscribed)(&partition.topic_id);
        let (keep, drop): (Vec<_>, Vec<_>) = self.current.assigned.iter().partition(is_subscribed);
        if drop.is_empty() {
            return None;
        }
        let pending = self.current.pending_revocation.iter().chain(drop);
        let pending: HeldPartitions = pending.collect();
        let keep = keep.into_iter().collect();
        Some(match self.owns(pending.partitions()) {
            true => self.at(
                self.current.member_epoch,
                MemberState::UnrevokedPartitions,
                keep,
                pending,
            ),
            false => CurrentAssignmentValue {
                assigned: keep,
                ..self.current.clone()
            },
        })
    }

    fn at(
        &self,
        member_epoch: i32,
        state: MemberState,
        assigned: HeldPartitions,
        pending_revocation: HeldPartitions,
    ) -> CurrentAssignmentValue {
        CurrentAssignmentValue {
            member_epoch,
            previous_member_epoch: self.current.member_epoch,
            state,
            assigned,
            pending_revocation,
        }
    }

    /// One walk over both ordered sets.
    fn part(&self) -> Parts {
        let mut parts = Parts::default();
        let mut subscription = Subscription::new(self.is_subscribed);
        let mut wanted = self
            .target
            .iter()
            .copied()
            .filter(|partition| subscription.has(partition.topic_id))
            .peekable();
        let mut held = self.current.assigned.iter().peekable();
        loop {
            match (wanted.peek(), held.peek()) {
                (Some(want), Some((hold, _))) if want == hold => {
                    wanted.next();
                    parts.keep.extend(held.next());
                }
                (Some(want), Some((hold, _))) if hold < want => parts.revoke.extend(held.next()),
                (None, Some(_)) => parts.revoke.extend(held.next()),
                (Some(want), _) => {
                    match (self.is_free)(want) {
                        true => parts.free.push(*want),
                        false => parts.unreleased = true,
                    }
                    wanted.next();
                }
                (None, None) => return parts,
            }
        }
    }
}

/// Asks once for each topic of an ordered walk.
struct Subscription<'a> {
    is_subscribed: &'a dyn Fn(&Uuid) -> bool,
    last: Option<(Uuid, bool)>,
}

impl<'a> Subscription<'a> {
    fn new(is_subscribed: &'a dyn Fn(&Uuid) -> bool) -> Self {
        Self {
            is_subscribed,
            last: None,
        }
    }

    fn has(&mut self, topic_id: Uuid) -> bool {
        match self.last {
            Some((last, answer)) if last == topic_id => answer,
            _ => {
                let answer = (self.is_subscribed)(&topic_id);
                self.last = Some((topic_id, answer));
                answer
            }
        }
    }
}
