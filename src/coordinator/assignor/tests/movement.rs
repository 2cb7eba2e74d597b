//! `uniform` moves no more than balance asks for.

use proptest::prelude::*;

use super::group::{Group, Subscriptions, groups};
use crate::coordinator::assignor::Assignor;

const UNIFORM: Assignor = Assignor::Uniform;

/// The least number of partitions that go to another member in any balanced assignment of a group with equal subscriptions:
/// the most is kept where those who hold most may have most.
fn least_gained(group: &Group) -> usize {
    let mut held: Vec<usize> = group
        .members
        .values()
        .map(|member| group.keepable(member).len())
        .collect();
    held.sort_unstable_by_key(|&held| std::cmp::Reverse(held));
    let (partitions, members) = (group.subscribed().len(), held.len());
    let quota = |place: usize| partitions / members + usize::from(place < partitions % members);
    let kept: usize = held
        .iter()
        .enumerate()
        .map(|(place, &held)| held.min(quota(place)))
        .sum();
    partitions - kept
}

proptest! {
    #[test]
    fn equal_subscriptions_move_the_least_that_balance_allows(group in groups(Subscriptions::Equal, 6, 8, 9)) {
        prop_assert_eq!(group.gained(&group.assign(UNIFORM)), least_gained(&group));
    }
}
