//! Subscriptions by pattern (KIP-848, `SubscribedTopicRegex`). No pattern is compiled here: whoever drives the group is asked
//! what patterns stand for, and the answers are recorded.

use super::ConsumerGroup;
use super::said::Said;
use crate::coordinator::context::Context;
use crate::coordinator::record::{ConsumerGroupRecord, ResolvedRegexValue};
use crate::coordinator::request::{ResolvedRegex, Text};

/// How long one resolution of all patterns holds at least, in milliseconds (Kafka's `REGEX_BATCH_REFRESH_MIN_INTERVAL_MS`).
const REFRESH_AT_MOST_EVERY_MS: i64 = 10_000;

/// When the patterns were resolved, and against what.
#[derive(Debug, Default)]
pub(super) struct Refresh {
    /// Counts the pictures of the topics.
    topics: u64,
    /// The picture that the patterns were resolved against.
    resolved: u64,
    /// The picture when somebody was asked.
    asked: u64,
    /// Wall clock, when somebody was asked.
    asked_at_ms: Option<i64>,
    /// Wall clock, of the newest resolution.
    resolved_at_ms: Option<i64>,
}

impl Refresh {
    pub(super) fn topics_changed(&mut self) {
        self.topics += 1;
    }

    pub(super) fn resolved_at(&mut self, timestamp_ms: i64) {
        self.resolved_at_ms = self.resolved_at_ms.max(Some(timestamp_ms));
    }

    fn is_due(&self, now_ms: i64, interval_ms: i32) -> bool {
        // A clock that was set back says nothing of how long ago it was.
        let passed =
            |since: Option<i64>, ms: i64| since.is_none_or(|since| now_ms < since || now_ms.saturating_sub(since) > ms);
        let is_wanted = self.topics > self.resolved || passed(self.resolved_at_ms, i64::from(interval_ms));
        is_wanted
            && passed(self.resolved_at_ms, REFRESH_AT_MOST_EVERY_MS)
            && passed(self.asked_at_ms, REFRESH_AT_MOST_EVERY_MS)
    }
}

impl ConsumerGroup {
    /// The patterns that have to be resolved before a heartbeat goes on: its own if nobody knows what it stands for, and
    /// from time to time all of the group's. `None` for none, and for a heartbeat that was asked before.
    pub(super) fn patterns_to_resolve(&mut self, said: &Said, was_asked: bool, cx: &Context<'_>) -> Option<Vec<Text>> {
        let pattern = &said.value.subscribed_topic_regex;
        if was_asked {
            return None;
        }
        let mut patterns = Vec::new();
        let refresh_interval_ms = cx.settings.group_consumer_regex_refresh_interval_ms;
        if self.members.has_patterns() && self.regex_refresh.is_due(cx.now.wall_ms, refresh_interval_ms) {
            self.regex_refresh.asked = self.regex_refresh.topics;
            self.regex_refresh.asked_at_ms = Some(cx.now.wall_ms);
            patterns.extend(self.members.patterns().cloned());
        }
        if !self.is_resolved(pattern) && !patterns.contains(pattern) {
            patterns.push(pattern.clone());
        }
        (!patterns.is_empty()).then_some(patterns)
    }

    /// Whether it is known what the pattern stands for; the empty one stands for nothing.
    pub(super) fn is_resolved(&self, pattern: &Text) -> bool {
        pattern.is_empty() || self.regexes.contains_key(pattern)
    }

    /// Takes over what patterns stand for that somebody is subscribed by. Says whether any stands for something new.
    pub(super) fn take_resolutions(&mut self, resolved: &[ResolvedRegex], cx: &mut Context<'_>) -> bool {
        let mut is_news = false;
        for ResolvedRegex { pattern, topics } in resolved {
            if self.members.subscribers_by(pattern) == 0 {
                continue;
            }
            let mut topics = topics.clone();
            topics.sort_unstable();
            topics.dedup();
            is_news |= self.regexes.get(pattern).is_none_or(|known| known.topics != topics);
            let value = ResolvedRegexValue {
                topics,
                version: 0,
                timestamp_ms: cx.now.wall_ms,
            };
            let pattern = pattern.clone();
            self.write(
                ConsumerGroupRecord::Regex {
                    pattern,
                    value: Some(value),
                },
                cx,
            );
        }
        if !resolved.is_empty() {
            self.regex_refresh.resolved = self.regex_refresh.asked;
        }
        is_news
    }

    /// Forgets what a pattern stands for once nobody is subscribed by it.
    pub(super) fn drop_regex(&mut self, pattern: &Text, cx: &mut Context<'_>) {
        if self.regexes.contains_key(pattern) && self.members.subscribers_by(pattern) == 0 {
            let pattern = pattern.clone();
            self.write(ConsumerGroupRecord::Regex { pattern, value: None }, cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_does_not_hold_a_refresh_up() {
        let mut refresh = Refresh::default();
        refresh.resolved_at(4_000_000);
        refresh.topics_changed();
        assert!(!refresh.is_due(4_000_001, 600_000), "resolved a moment ago");
        assert!(refresh.is_due(400_000, 600_000), "an hour before that");
    }
}
