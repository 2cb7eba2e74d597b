//! The topics in a member's subscription (`ConsumerProtocolSubscription`), which is opaque to the protocol itself but tells
//! which offsets are in use.
//!
//! The bytes come from clients: nothing is reserved by a length they name, and whatever is wrong with them means "unknown".

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::coordinator::consumer_protocol::read_topics;
use crate::coordinator::request::Text;
use crate::wire::text::as_java;

/// What a group is subscribed to, as far as its metadata tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Subscription {
    /// Another protocol type (or none): its metadata says nothing of topics.
    NotConsumer,
    /// Somebody's metadata cannot be read, or no generation has begun: every topic counts as subscribed.
    Unknown,
    Topics(BTreeSet<Text>),
}

impl Subscription {
    /// The union of what the members' metadata for the selected protocol says.
    pub(super) fn of(metadata: impl Iterator<Item = Bytes>) -> Self {
        let mut topics = BTreeSet::new();
        for bytes in metadata {
            let Some((_, names)) = read_topics(&mut &*bytes) else {
                return Self::Unknown;
            };
            // A name that is not UTF-8 is no topic's, and as in Kafka no reason to read no further.
            topics.extend(names.into_iter().map(|name| Text::from(&*as_java(name))));
        }
        Self::Topics(topics)
    }

    pub(super) fn contains(&self, topic: &str) -> bool {
        match self {
            Self::NotConsumer => false,
            Self::Unknown => true,
            Self::Topics(topics) => topics.contains(topic),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Version, topics, then user data and more that is not read.
    fn subscription(version: i16, topics: &[&str]) -> Bytes {
        let mut bytes = version.to_be_bytes().to_vec();
        bytes.extend(i32::try_from(topics.len()).expect("few topics").to_be_bytes());
        for topic in topics {
            bytes.extend(i16::try_from(topic.len()).expect("short names").to_be_bytes());
            bytes.extend(topic.as_bytes());
        }
        bytes.extend([0xff, 0xff, 0xff, 0xff, 1, 2, 3]);
        bytes.into()
    }

    #[test]
    fn topics_of_all_members_are_joined_whatever_the_version() {
        let subscription = Subscription::of([subscription(0, &["a", "b"]), subscription(3, &["b", "c"])].into_iter());
        assert_eq!(
            subscription,
            Subscription::Topics(["a", "b", "c"].map(Text::from).into())
        );
        assert!(subscription.contains("a"));
        assert!(!subscription.contains("d"));
    }

    #[test]
    fn metadata_that_cannot_be_read_makes_every_topic_subscribed() {
        for bytes in [
            &[][..],
            &[0],
            &[0xff, 0xff, 0, 0, 0, 0],
            &[0, 0, 0xff, 0xff, 0xff, 0xff],
            &[0, 0, 0x7f, 0xff, 0xff, 0xff],
            &[0, 0, 0, 0, 0, 1, 0xff, 0xff],
            &[0, 0, 0, 0, 0, 1, 0, 2, b'a'],
        ] {
            let subscription = Subscription::of([Bytes::copy_from_slice(bytes)].into_iter());
            assert_eq!(subscription, Subscription::Unknown, "{bytes:?}");
            assert!(subscription.contains("anything"));
        }
    }

    #[test]
    fn a_name_that_is_not_utf_8_is_one_more_that_no_topic_has() {
        let mut bytes = subscription(1, &["a", "b"]).to_vec();
        bytes[8] = 0xff;
        let subscription = Subscription::of([Bytes::from(bytes)].into_iter());
        assert_eq!(
            subscription,
            Subscription::Topics(["\u{fffd}", "b"].map(Text::from).into())
        );
    }

    #[test]
    fn a_group_without_members_is_subscribed_to_nothing() {
        assert_eq!(
            Subscription::of(std::iter::empty()),
            Subscription::Topics(BTreeSet::new())
        );
    }

    proptest! {
        #[test]
        fn hostile_bytes_yield_no_more_than_they_hold(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Some((_, topics)) = read_topics(&mut &*bytes) {
                let held: usize = topics.iter().map(|topic| topic.len() + 2).sum();
                prop_assert!(held <= bytes.len());
            }
        }
    }
}
