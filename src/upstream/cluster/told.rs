//! The topics that the coordinator is told of. Assignments follow them, so a broker that lags behind must not take away
//! what was there: a topic stays until it is certainly gone, and a topic of one id never shrinks.

use std::sync::Arc;

use super::deletions::Deletions;
use super::{Topic, Topics};

/// What is to be told after `told`, now that `seen` is the picture. It is `told` itself when nothing differs, and `seen` when
/// nothing has to be kept. Without `deletions` nothing is taken away.
#[must_use]
pub fn next(told: &Arc<Topics>, seen: &Arc<Topics>, deletions: Option<&Deletions>) -> Arc<Topics> {
    if Arc::ptr_eq(told, seen) {
        return Arc::clone(told);
    }
    let kept: Vec<&Topic> = told
        .by_name
        .values()
        .filter(|topic| stays(topic, seen, deletions))
        .collect();
    if kept.is_empty() {
        return if told == seen {
            Arc::clone(told)
        } else {
            Arc::clone(seen)
        };
    }
    let mut next = Topics::clone(seen);
    for topic in kept {
        next.insert(topic.clone());
    }
    if next == **told {
        Arc::clone(told)
    } else {
        Arc::new(next)
    }
}

/// Whether what was told of the topic stands against what is seen.
fn stays(topic: &Topic, seen: &Topics, deletions: Option<&Deletions>) -> bool {
    // Without an id nobody can be asked whether it is the same.
    if topic.id.is_nil() {
        return false;
    }
    let undecided = |id| deletions.is_none_or(|deletions| deletions.is_undecided(id));
    match seen.by_name.get(&topic.name) {
        None => undecided(&topic.id),
        Some(found) if found.id == topic.id => found.partitions < topic.partitions,
        // An id that vanished before is back, at a broker that has not heard of its end.
        Some(found) => deletions.is_some_and(|deletions| deletions.has_vanished(&found.id)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tokio::time::Instant;
    use uuid::Uuid;

    use super::super::metadata::TopicAnswer;
    use super::*;
    use crate::coordinator::request::Text;

    fn topics(entries: &[(&str, u128, i32)]) -> Arc<Topics> {
        let mut topics = Topics::default();
        for (name, id, partitions) in entries {
            topics.insert(Topic {
                name: Text::from(*name),
                id: Uuid::from_u128(*id),
                partitions: *partitions,
                racks: 0,
            });
        }
        Arc::new(topics)
    }

    fn vanished(name: &str, id: u128) -> Deletions {
        let mut deletions = Deletions::default();
        deletions.look_for(BTreeMap::from([(Uuid::from_u128(id), Text::from(name))]));
        deletions
    }

    #[test]
    fn what_is_new_or_grown_is_told_and_nothing_is_when_nothing_differs() {
        let told = topics(&[("a", 1, 1)]);
        let seen = topics(&[("a", 1, 2), ("b", 2, 1)]);
        assert!(Arc::ptr_eq(&next(&told, &seen, None), &seen));
        assert!(Arc::ptr_eq(&next(&told, &topics(&[("a", 1, 1)]), None), &told));
        assert!(Arc::ptr_eq(&next(&told, &told, None), &told));
    }

    #[test]
    fn a_topic_that_vanished_stays_until_it_is_certainly_gone() {
        let (told, seen) = (topics(&[("a", 1, 1), ("b", 2, 1)]), topics(&[("b", 2, 1)]));
        let mut deletions = vanished("a", 1);
        assert!(Arc::ptr_eq(&next(&told, &seen, Some(&deletions)), &told));
        assert!(Arc::ptr_eq(&next(&told, &seen, None), &told));
        let now = Instant::now();
        for node in [1, 2] {
            deletions.answered(Uuid::from_u128(1), node, &TopicAnswer::Unknown, now);
        }
        assert!(Arc::ptr_eq(&next(&told, &seen, Some(&deletions)), &seen));
        deletions.handed_over();
        assert!(Arc::ptr_eq(&next(&told, &seen, Some(&deletions)), &seen));
    }

    #[test]
    fn a_broker_that_lags_behind_takes_no_partitions_away_and_brings_no_old_id_back() {
        let told = topics(&[("a", 1, 3), ("b", 4, 1)]);
        let lagging = topics(&[("a", 1, 2), ("b", 2, 1)]);
        assert!(Arc::ptr_eq(&next(&told, &lagging, Some(&vanished("b", 2))), &told));
    }

    #[test]
    fn a_topic_that_was_created_again_takes_the_place_of_the_old_one() {
        let (told, seen) = (topics(&[("a", 1, 3)]), topics(&[("a", 2, 1)]));
        assert!(Arc::ptr_eq(&next(&told, &seen, Some(&vanished("a", 1))), &seen));
        assert!(Arc::ptr_eq(&next(&told, &seen, None), &seen));
    }

    #[test]
    fn a_topic_without_an_id_goes_at_once() {
        let (told, seen) = (topics(&[("a", 0, 3)]), topics(&[]));
        assert!(Arc::ptr_eq(&next(&told, &seen, None), &seen));
    }
}
