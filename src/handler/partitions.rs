//! Answers about the partitions of topics, put together as Kafka does (`OffsetCommitResponse.Builder`, which OffsetDelete shares).
//!
//! What is refused at once stands first, each topic once, an unknown topic even if no partition of it was named. What the
//! coordinator decides follows, topic by topic as the request has them, and goes to a topic that is there already. If nothing
//! is refused, the coordinator's answer is the whole answer, in which a topic that is named twice stands twice. A known topic
//! of which no partition is named is left out.

use std::collections::BTreeMap;

use crate::wire::error_code::ErrorCode;

/// A topic as the request names it, and for each of its partitions the error, where that is known already.
pub(super) struct Checked<T> {
    pub(super) topic: T,
    pub(super) partitions: Vec<(i32, Option<ErrorCode>)>,
    /// The topic cannot be asked about at all.
    pub(super) is_refused: bool,
}

/// Puts the answer together; `decided` has the coordinator's word on each open partition, in the order of the request.
pub(super) fn answered<T: Ord + Clone>(
    checked: &[Checked<T>],
    decided: impl IntoIterator<Item = ErrorCode>,
) -> Vec<(T, Vec<(i32, ErrorCode)>)> {
    let mut decided = decided.into_iter();
    let mut answer = Answer::default();
    for Checked {
        topic,
        partitions,
        is_refused,
    } in checked
    {
        let refused = partitions
            .iter()
            .filter_map(|(partition, error)| Some((*partition, (*error)?)));
        let mut refused = refused.peekable();
        if *is_refused || refused.peek().is_some() {
            answer.add(topic, refused);
        }
    }
    let is_whole = answer.topics.is_empty();
    for Checked { topic, partitions, .. } in checked {
        let open = partitions.iter().filter(|(_, error)| error.is_none());
        let open: Vec<_> = open
            .map(|(partition, _)| (*partition, decided.next().unwrap_or(ErrorCode::UNKNOWN_SERVER_ERROR)))
            .collect();
        if open.is_empty() {
            continue;
        }
        if is_whole {
            answer.topics.push((topic.clone(), open));
        } else {
            answer.add(topic, open);
        }
    }
    answer.topics
}

struct Answer<T> {
    topics: Vec<(T, Vec<(i32, ErrorCode)>)>,
    places: BTreeMap<T, usize>,
}

impl<T> Default for Answer<T> {
    fn default() -> Self {
        Self {
            topics: Vec::new(),
            places: BTreeMap::new(),
        }
    }
}

impl<T: Ord + Clone> Answer<T> {
    fn add(&mut self, topic: &T, partitions: impl IntoIterator<Item = (i32, ErrorCode)>) {
        let place = *self.places.entry(topic.clone()).or_insert(self.topics.len());
        match self.topics.get_mut(place) {
            Some((_, known)) => known.extend(partitions),
            None => self.topics.push((topic.clone(), partitions.into_iter().collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: ErrorCode = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;

    fn checked(
        topic: &'static str,
        partitions: &[(i32, Option<ErrorCode>)],
        is_refused: bool,
    ) -> Checked<&'static str> {
        Checked {
            topic,
            partitions: partitions.to_vec(),
            is_refused,
        }
    }

    fn put_together(checked: &[Checked<&'static str>]) -> Vec<(&'static str, Vec<(i32, i16)>)> {
        let decided = std::iter::repeat(ErrorCode::NONE);
        let topics = answered(checked, decided).into_iter();
        let codes = |partitions: Vec<(i32, ErrorCode)>| partitions.into_iter().map(|(index, error)| (index, error.0));
        topics
            .map(|(topic, partitions)| (topic, codes(partitions).collect()))
            .collect()
    }

    #[test]
    fn a_topic_that_is_named_twice_stands_twice_if_nothing_is_refused() {
        let open = [(0, None)];
        let checked = [
            checked("a", &open, false),
            checked("b", &open, false),
            checked("a", &open, false),
        ];
        assert_eq!(
            put_together(&checked),
            [("a", vec![(0, 0)]), ("b", vec![(0, 0)]), ("a", vec![(0, 0)])]
        );
    }

    #[test]
    fn what_is_refused_stands_first_and_each_topic_once() {
        let checked = [
            checked("a", &[(0, None)], false),
            checked("b", &[(0, None), (7, Some(UNKNOWN))], false),
            checked("a", &[(9, Some(UNKNOWN)), (1, None)], false),
        ];
        assert_eq!(
            put_together(&checked),
            [("b", vec![(7, 3), (0, 0)]), ("a", vec![(9, 3), (0, 0), (1, 0)])]
        );
    }

    #[test]
    fn of_topics_without_partitions_only_unknown_ones_are_answered() {
        let checked = [checked("known", &[], false), checked("unknown", &[], true)];
        assert_eq!(put_together(&checked), [("unknown", vec![])]);
        assert_eq!(put_together(&checked[..1]), []);
    }
}
