//! `uniform`: validity, balance, the same answer to the same question.

use std::sync::Arc;

use proptest::prelude::*;

use super::group::{Group, Partition, Subscriptions, groups};
use crate::coordinator::assignor::Assignor;

const UNIFORM: Assignor = Assignor::Uniform;

#[test]
fn a_new_group_is_filled_member_by_member() {
    let group = Group::new(&[3, 2], &[&[0, 1], &[0, 1]]);
    assert_eq!(
        group.assign(UNIFORM),
        [vec![(0, 0), (0, 1), (0, 2)], vec![(1, 0), (1, 1)]]
    );
}

#[test]
fn a_newcomer_gets_its_share_and_nobody_else_gains() {
    let group = Group::new(&[6], &[&[0], &[0], &[0]]).holding(&[&[(0, 0), (0, 1), (0, 2)], &[(0, 3), (0, 4), (0, 5)]]);
    assert_eq!(
        group.assign(UNIFORM),
        [vec![(0, 0), (0, 1)], vec![(0, 3), (0, 4)], vec![(0, 2), (0, 5)]]
    );
}

#[test]
fn the_greater_quota_stays_with_the_members_that_fill_it() {
    let group = Group::new(&[5], &[&[0], &[0]]).holding(&[&[(0, 3), (0, 4)], &[(0, 0), (0, 1), (0, 2)]]);
    assert_eq!(group.gained(&group.assign(UNIFORM)), 0);
}

#[test]
fn a_partition_of_two_owners_is_left_to_one() {
    for subscriptions in [[&[0][..], &[0]], [&[0], &[0, 1]]] {
        let group = Group::new(&[2, 0], &subscriptions).holding(&[&[(0, 0), (0, 1)], &[(0, 0), (0, 1)]]);
        let targets = group.assign(UNIFORM);
        group.check(&targets);
        assert_eq!(targets.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    }
}

#[test]
fn members_with_less_choice_are_served_first() {
    // Only the second member may have the second topic, so the first topic is the first member's.
    let group = Group::new(&[2, 4], &[&[0], &[0, 1]]);
    let targets = group.assign(UNIFORM);
    group.check(&targets);
    assert_eq!(targets[0], [(0, 0), (0, 1)]);
}

/// Whether no move of one partition would make two loads more equal: where Kafka's balancing ends.
fn is_balanced(group: &Group, targets: &[Vec<Partition>]) -> bool {
    let loads = targets.iter().map(Vec::len);
    let members: Vec<_> = group.members.values().zip(loads).collect();
    targets.iter().all(|owned| {
        owned.iter().all(|(topic, _)| {
            let subscribers = members.iter().filter(|(member, _)| member.topics.contains(topic));
            subscribers
                .map(|(_, load)| load)
                .min()
                .is_some_and(|&least| owned.len() <= least + 1)
        })
    })
}

proptest! {
    #[test]
    fn equal_subscriptions_are_served_within_one(group in groups(Subscriptions::Equal, 6, 8, 9)) {
        let targets = group.assign(UNIFORM);
        group.check(&targets);
        let loads = || targets.iter().map(Vec::len);
        prop_assert!(loads().max() <= loads().min().map(|least| least + 1));
    }

    #[test]
    fn any_subscriptions_are_served_as_evenly_as_kafka_serves_them(group in groups(Subscriptions::Any, 6, 8, 9)) {
        let targets = group.assign(UNIFORM);
        group.check(&targets);
        prop_assert!(is_balanced(&group, &targets), "{targets:?}");
    }

    #[test]
    fn a_settled_group_is_left_as_it_is(group in prop_oneof![
        groups(Subscriptions::Equal, 6, 8, 9),
        groups(Subscriptions::Any, 6, 8, 9),
    ]) {
        let spec = group.settled(UNIFORM).spec();
        let targets = UNIFORM.assign(&spec).expect("all sizes are known");
        for (member, target) in spec.members.iter().zip(&targets) {
            prop_assert!(Arc::ptr_eq(&member.target, target));
        }
    }

    #[test]
    fn the_same_question_has_the_same_answer(group in groups(Subscriptions::Any, 6, 8, 9)) {
        let mut spec = group.spec();
        // Equal subscriptions in one slice or in many.
        for member in 1..spec.members.len() {
            if spec.members[member].topics == spec.members[member - 1].topics {
                spec.members[member].topics = Arc::clone(&spec.members[member - 1].topics);
            }
        }
        prop_assert_eq!(UNIFORM.assign(&spec), UNIFORM.assign(&group.spec()));
    }
}
