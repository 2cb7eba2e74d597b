//! `range`: contiguous, co-partitioned, in a fixed order.

use proptest::prelude::*;

use super::group::{Group, Subscriptions, groups};
use crate::coordinator::assignor::Assignor;

const RANGE: Assignor = Assignor::Range;

#[test]
fn the_first_members_get_the_greater_ranges() {
    let group = Group::new(&[5, 2], &[&[0, 1], &[0, 1]]);
    assert_eq!(
        group.assign(RANGE),
        [vec![(0, 0), (0, 1), (0, 2), (1, 0)], vec![(0, 3), (0, 4), (1, 1)]]
    );
}

#[test]
fn only_subscribers_have_a_part_of_a_topic() {
    let group = Group::new(&[3, 3], &[&[0], &[0, 1], &[1]]);
    assert_eq!(
        group.assign(RANGE),
        [vec![(0, 0), (0, 1)], vec![(0, 2), (1, 0), (1, 1)], vec![(1, 2)]]
    );
}

#[test]
fn more_members_than_partitions_leave_the_last_without() {
    let group = Group::new(&[2], &[&[0], &[0], &[0]]);
    assert_eq!(group.assign(RANGE), [vec![(0, 0)], vec![(0, 1)], vec![]]);
}

#[test]
fn static_members_come_first_and_keep_their_ranges_under_new_member_ids() {
    let mut group = Group::new(&[4], &[&[0], &[0], &[0], &[0]]);
    for (member, instance_id) in [(1, 7), (3, 5)] {
        group.members.get_mut(&member).expect("it was made").instance_id = Some(instance_id);
    }
    let before = group.assign(RANGE);
    assert_eq!(before, [[(0, 2)], [(0, 1)], [(0, 3)], [(0, 0)]]);
    // Both come back with ids that sort the other way round.
    let (one, three) = (group.members[&1].clone(), group.members[&3].clone());
    group.members.insert(1, three);
    group.members.insert(3, one);
    let after = group.assign(RANGE);
    assert_eq!(after, [[(0, 2)], [(0, 0)], [(0, 3)], [(0, 1)]]);
}

proptest! {
    #[test]
    fn ranges_are_valid_contiguous_and_within_one_for_each_topic(group in prop_oneof![
        groups(Subscriptions::Equal, 6, 8, 9),
        groups(Subscriptions::Any, 6, 8, 9),
    ]) {
        let targets = group.assign(RANGE);
        group.check(&targets);
        for topic in group.topics.keys() {
            let mut sizes = Vec::new();
            for (member, target) in group.members.values().zip(&targets) {
                let range: Vec<i32> = target.iter().filter(|held| held.0 == *topic).map(|held| held.1).collect();
                prop_assert!(range.windows(2).all(|pair| pair[0] + 1 == pair[1]));
                sizes.extend(member.topics.contains(topic).then_some(range.len()));
            }
            prop_assert!(sizes.iter().max() <= sizes.iter().min().map(|least| least + 1).as_ref());
        }
    }

    #[test]
    fn topics_of_equal_size_are_placed_alike(mut group in groups(Subscriptions::Equal, 6, 8, 9), size in 0..9) {
        for topic in group.topics.values_mut() {
            *topic = size;
        }
        for (member, target) in group.members.values().zip(group.assign(RANGE)) {
            let of = |topic: usize| target.iter().filter(move |held| held.0 == topic).map(|held| held.1);
            let mut topics = member.topics.iter();
            if let Some(&first) = topics.next() {
                prop_assert!(topics.all(|&topic| of(topic).eq(of(first))));
            }
        }
    }

    #[test]
    fn the_present_target_makes_no_difference(group in groups(Subscriptions::Any, 6, 8, 9)) {
        let mut new = group.clone();
        for member in new.members.values_mut() {
            member.target.clear();
        }
        prop_assert_eq!(new.assign(RANGE), group.assign(RANGE));
    }
}
