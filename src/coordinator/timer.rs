//! The timers of a shard: one for each key, fired in the order of their deadlines.
//!
//! A timer that is armed again or cancelled leaves no trace, so a stale one can never fire. Every arming gets a token; a pass
//! over the due timers takes only tokens older than its own beginning, so that one which arms itself with no delay cannot
//! hold the shard in a loop.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::request::Text;

/// What a timer is for. Keys of one group are neighbours, `Join` being the first of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerKey {
    /// The pass over offsets and groups that ran out of their retention.
    Expiry,
    /// What the upstream said of a group is to be asked again.
    Verdict(Text),
    /// A timer of a group.
    Group(Text, GroupTimer),
}

/// The timers of a group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GroupTimer {
    /// The join phase of a rebalance.
    Join,
    /// The sync phase of a rebalance.
    Sync,
    /// The next target of a consumer group; in a classic group what was withheld from members for so long.
    Assignment,
    /// The session of a member; also of an id that was handed out by MEMBER_ID_REQUIRED.
    Session(Text),
    /// The time in which a member of a consumer group has to give up partitions.
    Rebalance(Text),
    /// The time in which a classic member of a consumer group has to join again after it was told to.
    ClassicJoin(Text),
    /// The time in which a classic member of a consumer group has to sync after its join.
    ClassicSync(Text),
}

/// The order in which timers were armed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token(u64);

#[derive(Debug, Clone, Copy)]
struct Armed {
    deadline_ms: u64,
    delay_ms: u64,
    token: Token,
}

/// All timers of a shard, in monotonic milliseconds.
#[derive(Debug, Default)]
pub(super) struct Timers {
    armed: BTreeMap<TimerKey, Armed>,
    queue: BTreeMap<(u64, Token), TimerKey>,
    tokens: u64,
}

impl Timers {
    /// Arms the timer of this key, in place of the one it may have had.
    pub(super) fn arm(&mut self, now_ms: u64, key: TimerKey, delay_ms: u64) {
        self.cancel(&key);
        let token = Token(self.tokens);
        self.tokens += 1;
        let deadline_ms = now_ms.saturating_add(delay_ms);
        self.queue.insert((deadline_ms, token), key.clone());
        let armed = Armed {
            deadline_ms,
            delay_ms,
            token,
        };
        self.armed.insert(key, armed);
    }

    pub(super) fn cancel(&mut self, key: &TimerKey) {
        if let Some(armed) = self.armed.remove(key) {
            self.queue.remove(&(armed.deadline_ms, armed.token));
        }
    }

    pub(super) fn is_armed(&self, key: &TimerKey) -> bool {
        self.armed.contains_key(key)
    }

    /// Cancels every timer of a group.
    pub(super) fn cancel_group(&mut self, group_id: &Text) {
        for key in self.keys_of(group_id) {
            self.cancel(&key);
        }
    }

    /// The bound for one pass over the due timers.
    pub(super) fn pass(&self) -> Token {
        Token(self.tokens)
    }

    /// Takes the first timer that is due and was armed before the pass began.
    pub(super) fn pop_due(&mut self, now_ms: u64, pass: Token) -> Option<TimerKey> {
        let entry = self.queue.first_entry()?;
        let (deadline_ms, token) = *entry.key();
        if deadline_ms > now_ms || token >= pass {
            return None;
        }
        let key = entry.remove();
        self.armed.remove(&key);
        Some(key)
    }

    /// Gives every timer of every group its whole delay again, from now. Says how many sessions were among them.
    pub(super) fn renew_groups(&mut self, now_ms: u64) -> usize {
        let renewed: Vec<(TimerKey, u64)> = self
            .armed
            .iter()
            .filter(|(key, _)| matches!(key, TimerKey::Group(..)))
            .map(|(key, armed)| (key.clone(), armed.delay_ms))
            .collect();
        let is_session = |(key, _): &&(TimerKey, u64)| matches!(key, TimerKey::Group(_, GroupTimer::Session(_)));
        let sessions = renewed.iter().filter(is_session).count();
        for (key, delay_ms) in renewed {
            self.arm(now_ms, key, delay_ms);
        }
        sessions
    }

    /// Whether any group has a timer.
    pub(super) fn any_of_a_group(&self) -> bool {
        // They are the last in order.
        self.armed
            .last_key_value()
            .is_some_and(|(key, _)| matches!(key, TimerKey::Group(..)))
    }

    /// When the next timer is due.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.queue.first_key_value().map(|((deadline_ms, _), _)| *deadline_ms)
    }

    fn keys_of(&self, group_id: &Text) -> Vec<TimerKey> {
        let first = TimerKey::Group(group_id.clone(), GroupTimer::Join);
        self.armed
            .range((Bound::Included(first), Bound::Unbounded))
            .map(|(key, _)| key)
            .take_while(|key| matches!(key, TimerKey::Group(id, _) if id == group_id))
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(group: &str, member: &str) -> TimerKey {
        TimerKey::Group(group.into(), GroupTimer::Session(member.into()))
    }

    fn due(timers: &mut Timers, now_ms: u64) -> Vec<TimerKey> {
        let pass = timers.pass();
        std::iter::from_fn(|| timers.pop_due(now_ms, pass)).collect()
    }

    #[test]
    fn timers_fire_in_the_order_of_deadlines_then_of_arming() {
        let mut timers = Timers::default();
        timers.arm(0, session("g", "late"), 20);
        timers.arm(0, session("g", "second"), 10);
        timers.arm(5, session("g", "third"), 5);
        timers.arm(0, session("g", "first"), 3);
        assert_eq!(timers.next_deadline(), Some(3));
        assert_eq!(
            due(&mut timers, 10),
            [session("g", "first"), session("g", "second"), session("g", "third")]
        );
        assert_eq!(timers.next_deadline(), Some(20));
    }

    #[test]
    fn a_timer_armed_again_does_not_fire_at_its_old_deadline() {
        // Scenario 150.
        let mut timers = Timers::default();
        timers.arm(0, TimerKey::Expiry, 10);
        timers.arm(5, TimerKey::Expiry, 10);
        assert_eq!(due(&mut timers, 14), []);
        assert_eq!(due(&mut timers, 15), [TimerKey::Expiry]);
    }

    #[test]
    fn cancelling_a_group_leaves_its_neighbours() {
        let mut timers = Timers::default();
        timers.arm(0, session("a", "m"), 1);
        timers.arm(0, session("b", "m"), 1);
        timers.arm(0, TimerKey::Group("b".into(), GroupTimer::Sync), 1);
        timers.arm(0, session("c", "m"), 1);
        timers.cancel_group(&"b".into());
        assert_eq!(due(&mut timers, 1), [session("a", "m"), session("c", "m")]);
    }

    #[test]
    fn a_timer_without_delay_waits_for_the_next_pass() {
        let mut timers = Timers::default();
        let pass = timers.pass();
        timers.arm(0, TimerKey::Expiry, 0);
        assert_eq!(timers.pop_due(0, pass), None);
        assert_eq!(due(&mut timers, 0), [TimerKey::Expiry]);
    }

    #[test]
    fn renewing_gives_group_timers_their_whole_delay_and_leaves_the_rest() {
        let mut timers = Timers::default();
        timers.arm(0, session("g", "m"), 10);
        timers.arm(0, TimerKey::Expiry, 10);
        assert_eq!(timers.renew_groups(100), 1);
        assert_eq!(due(&mut timers, 109), [TimerKey::Expiry]);
        assert_eq!(due(&mut timers, 110), [session("g", "m")]);
    }
}
