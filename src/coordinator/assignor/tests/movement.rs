//! `uniform` moves no more than balance asks for.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::group::{Group, Member, Partition, Subscriptions, groups};
use crate::coordinator::assignor::Assignor;

const UNIFORM: Assignor = Assignor::Uniform;

/// The least number of partitions that go to another member in any balanced assignment of a group with equal subscriptions:
/// the most is kept where those who hold most may have most.
fn least_gained(group: &Group) -> usize {
    let held = group.members.values().map(|member| group.keepable(member).len());
    let mut held: Vec<usize> = held.collect();
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

/// The least number of partitions that a member gains in any assignment whose loads are at least as even, by trying them all.
fn least_gained_by_trial(group: &Group, targets: &[Vec<Partition>]) -> usize {
    let members: Vec<&Member> = group.members.values().collect();
    let partitions: Vec<Partition> = group.subscribed().into_iter().collect();
    let loads: Vec<usize> = targets.iter().map(Vec::len).collect();
    let mut trial = Trial {
        members: &members,
        partitions: &partitions,
        squares: squares(&loads),
        least: partitions.len(),
    };
    trial.place(0, 0, &mut vec![0; members.len()]);
    trial.least
}

struct Trial<'a> {
    members: &'a [&'a Member],
    partitions: &'a [Partition],
    /// How uneven loads may be.
    squares: usize,
    least: usize,
}

impl Trial<'_> {
    /// Tries every subscriber for the partition of that number, and all that can follow.
    fn place(&mut self, number: usize, gained: usize, loads: &mut Vec<usize>) {
        let Some(partition) = self.partitions.get(number) else {
            if squares(loads) <= self.squares {
                self.least = self.least.min(gained);
            }
            return;
        };
        for (index, member) in self.members.iter().enumerate() {
            if member.topics.contains(&partition.0) {
                loads[index] += 1;
                let gains = usize::from(!member.target.contains(partition));
                self.place(number + 1, gained + gains, loads);
                loads[index] -= 1;
            }
        }
    }
}

/// The smaller, the more even.
fn squares(loads: &[usize]) -> usize {
    loads.iter().map(|load| load * load).sum()
}

#[test]
fn small_groups_hardly_ever_move_more_than_any_other_assignment_that_is_as_even() {
    const GROUPS: usize = 500;
    let strategy = groups(Subscriptions::Any, 5, 3, 4);
    // The same groups in each run: what is promised is a rate.
    let mut runner = TestRunner::deterministic();
    let generated = std::iter::repeat_with(|| strategy.new_tree(&mut runner).expect("nothing is rejected").current());
    let small = generated.filter(|group| (3..=8).contains(&group.subscribed().len()));
    let excess: Vec<usize> = small
        .take(GROUPS)
        .map(|group| {
            let targets = group.assign(UNIFORM);
            group.gained(&targets) - least_gained_by_trial(&group, &targets)
        })
        .filter(|&excess| excess > 0)
        .collect();
    assert!(excess.len() <= GROUPS / 100, "{excess:?}");
    assert!(excess.iter().all(|&excess| excess == 1), "{excess:?}");
}

#[test]
fn the_most_loaded_members_give_to_a_newcomer() {
    // The first topic's owners have two each, the last one's owner four.
    let group = Group::new(&[4, 4], &[&[0], &[0], &[1], &[0, 1]]).holding(&[
        &[(0, 0), (0, 1)],
        &[(0, 2), (0, 3)],
        &[(1, 0), (1, 1), (1, 2), (1, 3)],
    ]);
    let targets = group.assign(UNIFORM);
    group.check(&targets);
    assert_eq!(group.gained(&targets), 2);
    assert_eq!(targets[3].iter().map(|held| held.0).collect::<Vec<_>>(), [1, 1]);
}

proptest! {
    #[test]
    fn equal_subscriptions_move_the_least_that_balance_allows(group in groups(Subscriptions::Equal, 6, 8, 9)) {
        prop_assert_eq!(group.gained(&group.assign(UNIFORM)), least_gained(&group));
    }

    #[test]
    fn a_newcomer_with_the_same_subscription_is_the_only_one_to_gain(group in groups(Subscriptions::Equal, 6, 8, 9)) {
        let mut group = group.settled(UNIFORM);
        let topics = group.members[&0].topics.clone();
        group.members.insert(100, Member { topics, ..Member::default() });
        let targets = group.assign(UNIFORM);
        let share = group.subscribed().len() / group.members.len();
        let own = targets.last().map_or(0, Vec::len);
        prop_assert_eq!((own, group.gained(&targets)), (share, share));
    }

    #[test]
    fn only_what_a_leaver_had_moves(group in groups(Subscriptions::Equal, 6, 8, 9), leaver in any::<prop::sample::Index>()) {
        let mut group = group.settled(UNIFORM);
        let left = group.members.remove(&leaver.index(group.members.len())).map_or(0, |member| member.target.len());
        if !group.members.is_empty() {
            prop_assert_eq!(group.gained(&group.assign(UNIFORM)), left);
        }
    }

    #[test]
    fn only_new_partitions_are_placed_when_topics_grow(
        group in groups(Subscriptions::Equal, 6, 8, 9),
        growth in prop::collection::vec(0..5, 6),
    ) {
        let mut group = group.settled(UNIFORM);
        let before = group.subscribed().len();
        for (size, growth) in group.topics.values_mut().zip(growth) {
            *size += growth;
        }
        prop_assert_eq!(group.gained(&group.assign(UNIFORM)), group.subscribed().len() - before);
    }

    #[test]
    fn a_topic_that_goes_leaves_the_others_where_they_are_as_far_as_balance_allows(
        group in groups(Subscriptions::Equal, 6, 8, 9),
    ) {
        let mut group = group.settled(UNIFORM);
        group.topics.remove(&0);
        for member in group.members.values_mut() {
            member.topics.remove(&0);
        }
        prop_assert_eq!(group.gained(&group.assign(UNIFORM)), least_gained(&group));
    }

    #[test]
    fn nothing_that_moved_could_as_well_have_stayed(group in groups(Subscriptions::Any, 6, 8, 9)) {
        let targets = group.assign(UNIFORM);
        let members = || group.members.values().zip(&targets);
        for (owner, target) in members() {
            for partition in target.iter().filter(|partition| !owner.target.contains(partition)) {
                for (before, kept) in members().filter(|(member, _)| group.keepable(member).contains(partition)) {
                    prop_assert!(
                        kept.len() >= target.len(),
                        "{partition:?} of {before:?} would leave loads as even: {targets:?}"
                    );
                }
            }
        }
    }
}
