//! The timers of a shard: one for each key, fired in the order of their deadlines.
//!
//! A timer that is armed again or cancelled leaves no trace, so a stale one can never fire. Every arming gets a token; a pass
//! over the due timers takes only tokens older than its own beginning, so that one which arms itself with no delay cannot
//! hold the shard in a loop.
//!
//! Every heartbeat puts a session off. So a timer that is put off stays where it is in the queue, and moves on only when it
//! gets to the front.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::external::Scope;
use super::request::Text;

/// What a timer is for. Keys of one group are neighbours, `Join` being the first of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerKey {
    /// The pass over offsets and groups that ran out of their retention.
    Expiry,
    /// What the upstream said of a group is to be asked again.
    Verdict(Text),
    /// A timer of an external assignor, which outlives its group.
    External(Scope, ExternalTimer),
    /// A timer of a group.
    Group(Text, GroupTimer),
}

/// The timers of an external assignor, each with its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ExternalTimer {
    /// Its parked heartbeat is to be answered.
    Poll(Text),
    Session(Text),
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
    /// Somebody to compute the next target, or what that one has of its time.
    Computation,
    /// The joins that wait for a target that is computed outside.
    JoinWait,
    /// A new assignment that was asked for too soon.
    Asked,
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

/// A place in the queue: a deadline, then the order of arming.
type Place = (u64, Token);

#[derive(Debug, Clone, Copy)]
struct Armed {
    deadline_ms: u64,
    delay_ms: u64,
    token: Token,
    /// Where it stands in the queue: not behind where it belongs.
    queued: Place,
}

/// All timers of a shard, in monotonic milliseconds.
#[derive(Debug, Default)]
pub(super) struct Timers {
    armed: BTreeMap<TimerKey, Armed>,
    queue: BTreeMap<Place, TimerKey>,
    tokens: u64,
}

impl Timers {
    /// Arms the timer of this key, in place of the one it may have had.
    pub(super) fn arm(&mut self, now_ms: u64, key: TimerKey, delay_ms: u64) {
        let token = Token(self.tokens);
        self.tokens += 1;
        let deadline_ms = now_ms.saturating_add(delay_ms);
        let mut armed = Armed {
            deadline_ms,
            delay_ms,
            token,
            queued: (deadline_ms, token),
        };
        match self.armed.get_mut(&key) {
            Some(before) if before.queued < armed.queued => {
                armed.queued = before.queued;
                *before = armed;
            }
            _ => {
                self.cancel(&key);
                self.queue.insert(armed.queued, key.clone());
                self.armed.insert(key, armed);
            }
        }
    }

    pub(super) fn cancel(&mut self, key: &TimerKey) {
        if let Some(armed) = self.armed.remove(key) {
            self.queue.remove(&armed.queued);
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
        loop {
            let first = self.queue.first_entry()?;
            let (looked_for_ms, _) = *first.key();
            if looked_for_ms > now_ms {
                return None;
            }
            // What is queued is armed.
            let armed = self.armed.get_mut(first.get())?;
            let place = (armed.deadline_ms, armed.token);
            if armed.queued == place {
                if armed.token >= pass {
                    return None;
                }
                let key = first.remove();
                self.armed.remove(&key);
                return Some(key);
            }
            // It was put off.
            armed.queued = place;
            let key = first.remove();
            self.queue.insert(place, key);
        }
    }

    /// Gives every timer of every group its whole delay again, from now. Says how many sessions were among them.
    pub(super) fn renew_groups(&mut self, now_ms: u64) -> usize {
        let renewed: Vec<(TimerKey, u64)> = self
            .armed
            .iter()
            .filter(|(key, _)| matches!(key, TimerKey::External(..) | TimerKey::Group(..)))
            .map(|(key, armed)| (key.clone(), armed.delay_ms))
            .collect();
        let is_session = |(key, _): &&(TimerKey, u64)| {
            matches!(
                key,
                TimerKey::External(_, ExternalTimer::Session(_)) | TimerKey::Group(_, GroupTimer::Session(_))
            )
        };
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
            .is_some_and(|(key, _)| matches!(key, TimerKey::External(..) | TimerKey::Group(..)))
    }

    /// When the next timer is to be looked at: when it is due, or earlier if it was put off.
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
    fn a_timer_that_was_put_off_fires_in_the_order_of_its_new_deadline_and_arming() {
        let mut timers = Timers::default();
        timers.arm(0, session("g", "put off"), 10);
        timers.arm(0, session("g", "second"), 20);
        timers.arm(5, session("g", "put off"), 15);
        timers.arm(0, session("g", "brought forward"), 30);
        timers.arm(6, session("g", "brought forward"), 1);
        assert_eq!(due(&mut timers, 19), [session("g", "brought forward")]);
        assert_eq!(timers.next_deadline(), Some(20));
        assert_eq!(due(&mut timers, 20), [session("g", "second"), session("g", "put off")]);
        timers.arm(20, session("g", "gone"), 5);
        timers.arm(21, session("g", "gone"), 5);
        timers.cancel(&session("g", "gone"));
        assert_eq!(timers.next_deadline(), None);
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
