//! What the upstream said lately that the user of one connection may do: the pure part, without I/O and clock.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::coordinator::request::Text;
use crate::handler::registrations::Registrations;

/// For how long a yes is remembered: two heartbeats at Kafka's default share one. A right that is withdrawn ends with it.
const ALLOWED_FOR: Duration = Duration::from_secs(5);
/// For how long a no is remembered: long enough that a client that insists does not make the upstream answer each time.
const DENIED_FOR: Duration = Duration::from_secs(1);
/// What a table may hold, in bytes: about 500 names. What finds no room is asked for each time.
const SIZE_MAX: usize = 64 * 1024;
/// What an entry takes beside its name, roughly.
const ENTRY_SIZE: usize = 96;

/// The `AclOperation`s that group APIs need, by Kafka's codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::handler) enum Operation {
    Read = 3,
    Delete = 6,
    Describe = 8,
}

/// What one answer of the upstream tells about one resource: for each operation whether it is allowed, where it tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Told {
    read: Option<bool>,
    delete: Option<bool>,
    describe: Option<bool>,
}

impl Told {
    /// From a set of operations as Kafka writes it: the bit of each one's code.
    pub(super) const fn set(bits: i32) -> Self {
        Self {
            read: Some(bits & (1 << Operation::Read as i32) != 0),
            delete: Some(bits & (1 << Operation::Delete as i32) != 0),
            describe: Some(bits & (1 << Operation::Describe as i32) != 0),
        }
    }

    /// About one operation.
    pub(super) fn only(operation: Operation, allowed: bool) -> Self {
        let mut told = Self::default();
        *told.slot(operation) = Some(allowed);
        told
    }

    pub(super) const fn of(self, operation: Operation) -> Option<bool> {
        match operation {
            Operation::Read => self.read,
            Operation::Delete => self.delete,
            Operation::Describe => self.describe,
        }
    }

    const fn slot(&mut self, operation: Operation) -> &mut Option<bool> {
        match operation {
            Operation::Read => &mut self.read,
            Operation::Delete => &mut self.delete,
            Operation::Describe => &mut self.describe,
        }
    }
}

/// What is known about one resource, each operation with the end of its time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known([Option<(bool, Instant)>; 3]);

const OPERATIONS: [Operation; 3] = [Operation::Read, Operation::Delete, Operation::Describe];

impl Known {
    pub(super) fn learn(&mut self, told: Told, now: Instant) {
        for (slot, operation) in self.0.iter_mut().zip(OPERATIONS) {
            if let Some(allowed) = told.of(operation) {
                let time = if allowed { ALLOWED_FOR } else { DENIED_FOR };
                *slot = Some((allowed, now + time));
            }
        }
    }

    pub(super) fn of(&self, operation: Operation, now: Instant) -> Option<bool> {
        let mut slots = self.0.iter().zip(OPERATIONS);
        let (slot, _) = slots.find(|(_, of)| *of == operation)?;
        slot.filter(|(_, until)| now < *until).map(|(allowed, _)| allowed)
    }

    fn is_over(&self, now: Instant) -> bool {
        self.0.iter().flatten().all(|(_, until)| *until <= now)
    }
}

/// What is known about resources of one type, by name.
#[derive(Debug, Default)]
pub(super) struct Table {
    known: BTreeMap<Text, Known>,
    size: usize,
}

impl Table {
    pub(super) fn of(&self, name: &str, operation: Operation, now: Instant) -> Option<bool> {
        self.known.get(name)?.of(operation, now)
    }

    pub(super) fn learn(&mut self, name: &Text, told: Told, now: Instant) {
        if let Some(known) = self.known.get_mut(name) {
            known.learn(told, now);
            return;
        }
        let size = name.len() + ENTRY_SIZE;
        if self.size + size > SIZE_MAX {
            return;
        }
        self.size += size;
        self.known.entry(Text::clone(name)).or_default().learn(told, now);
    }

    /// Lets go of what is too old to count.
    pub(super) fn forget_old(&mut self, now: Instant) {
        self.known.retain(|_, known| !known.is_over(now));
        self.size = self.known.keys().map(|name| name.len() + ENTRY_SIZE).sum();
    }
}

/// What is known about the user of one connection. It is not shared with other connections: who a connection's user is, only
/// the upstream knows.
#[derive(Debug, Default)]
pub struct Decisions {
    pub(super) groups: Table,
    pub(super) topics: Table,
    pub(super) cluster: Known,
    /// What that user has registered, by the right to do so.
    pub(super) registrations: Registrations,
}

impl Decisions {
    /// Lets go of what is too old to count.
    pub(super) fn forget_old(&mut self, now: Instant) {
        self.groups.forget_old(now);
        self.topics.forget_old(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> Text {
        Text::from(format!("{number:08}"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_yes_and_a_no_have_their_own_times() {
        let start = Instant::now();
        let mut known = Known::default();
        assert_eq!(known.of(Operation::Read, start), None);
        known.learn(Told::set(1 << 3 | 1 << 8), start);
        let seen = |known: &Known, after: Duration| OPERATIONS.map(|operation| known.of(operation, start + after));
        assert_eq!(seen(&known, Duration::ZERO), [Some(true), Some(false), Some(true)]);
        assert_eq!(seen(&known, DENIED_FOR), [Some(true), None, Some(true)]);
        assert_eq!(seen(&known, ALLOWED_FOR), [None, None, None]);
        // What is learnt about one operation does not make the others younger.
        known.learn(Told::only(Operation::Delete, true), start + DENIED_FOR);
        assert_eq!(seen(&known, ALLOWED_FOR), [None, Some(true), None]);
        assert!(!known.is_over(start + ALLOWED_FOR));
        assert!(known.is_over(start + ALLOWED_FOR + DENIED_FOR));
    }

    #[tokio::test(start_paused = true)]
    async fn a_table_is_bounded_and_has_room_again_when_time_has_passed() {
        let start = Instant::now();
        let mut table = Table::default();
        let yes = Told::only(Operation::Read, true);
        for number in 0..10_000 {
            table.learn(&name(number), yes, start);
        }
        assert!(table.size <= SIZE_MAX);
        let held = table.known.len();
        assert!((400..1_000).contains(&held), "{held}");
        assert_eq!(table.of(&name(0), Operation::Read, start), Some(true));
        assert_eq!(table.of(&name(9_999), Operation::Read, start), None, "no room");
        let long = Text::from("x".repeat(SIZE_MAX));
        let later = start + ALLOWED_FOR;
        table.forget_old(later);
        assert_eq!((table.known.len(), table.size), (0, 0));
        table.learn(&long, yes, later);
        assert_eq!(table.of(&long, Operation::Read, later), None, "too long to keep");
        table.learn(&name(9_999), yes, later);
        assert_eq!(table.of(&name(9_999), Operation::Read, later), Some(true));
    }
}
