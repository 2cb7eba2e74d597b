use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::MemberState::{Stable, UnreleasedPartitions, UnrevokedPartitions};
use super::*;

fn partition(topic: u128, partition: i32) -> TopicPartition {
    TopicPartition {
        topic_id: Uuid::from_u128(topic),
        partition,
    }
}

fn set(numbers: &[i32]) -> Partitions {
    numbers.iter().map(|number| partition(1, *number)).collect()
}

fn held(numbers: &[(i32, i32)]) -> HeldPartitions {
    numbers
        .iter()
        .map(|(number, epoch)| (partition(1, *number), *epoch))
        .collect()
}

fn member(
    state: MemberState,
    member_epoch: i32,
    assigned: &[(i32, i32)],
    pending: &[(i32, i32)],
) -> CurrentAssignmentValue {
    CurrentAssignmentValue {
        member_epoch,
        previous_member_epoch: member_epoch - 1,
        state,
        assigned: held(assigned),
        pending_revocation: held(pending),
    }
}

/// A step to target epoch 10 of a member that is subscribed to everything, while others hold these partitions.
fn step(
    current: &CurrentAssignmentValue,
    target: &[i32],
    owned: Option<&[i32]>,
    others: &[i32],
) -> Option<CurrentAssignmentValue> {
    let (target, others, owned) = (set(target), set(others), owned.map(set));
    let step = Step {
        current,
        target_epoch: 10,
        target: &target,
        owned: owned.as_ref(),
        subscription_changed: false,
        is_subscribed: &|_| true,
        is_free: &|partition| !others.contains(partition),
    };
    step.run().expect("a known state")
}

fn after(
    state: MemberState,
    member_epoch: i32,
    before: i32,
    assigned: &[(i32, i32)],
    pending: &[(i32, i32)],
) -> Option<CurrentAssignmentValue> {
    Some(CurrentAssignmentValue {
        previous_member_epoch: before,
        ..member(state, member_epoch, assigned, pending)
    })
}

#[test]
fn a_stable_member_at_its_target_does_nothing() {
    assert_eq!(step(&member(Stable, 10, &[(0, 9)], &[]), &[0], Some(&[]), &[]), None);
}

#[test]
fn a_member_that_keeps_everything_goes_to_the_new_epoch() {
    let next = step(&member(Stable, 9, &[(0, 3)], &[]), &[0], None, &[]);
    assert_eq!(next, after(Stable, 10, 9, &[(0, 3)], &[]));
}

#[test]
fn what_is_to_be_given_up_is_asked_for_at_the_old_epoch_and_nothing_is_given() {
    let next = step(&member(Stable, 9, &[(0, 3), (1, 4)], &[]), &[0, 2], None, &[]);
    assert_eq!(next, after(UnrevokedPartitions, 9, 9, &[(0, 3)], &[(1, 4)]));
}

#[test]
fn what_the_member_does_not_own_any_more_needs_no_giving_up() {
    let next = step(&member(Stable, 9, &[(0, 3), (1, 4)], &[]), &[0, 2], Some(&[0]), &[]);
    assert_eq!(next, after(Stable, 10, 9, &[(0, 3), (2, 10)], &[]));
}

#[test]
fn free_partitions_are_taken_and_held_ones_waited_for() {
    let next = step(&member(Stable, 9, &[(0, 3)], &[]), &[0, 1, 2], None, &[2]);
    assert_eq!(next, after(UnreleasedPartitions, 10, 9, &[(0, 3), (1, 10)], &[]));
    let next = step(&member(Stable, 9, &[], &[]), &[2], None, &[2]);
    assert_eq!(next, after(UnreleasedPartitions, 10, 9, &[], &[]));
}

#[test]
fn a_member_that_has_to_give_up_stays_until_it_says_so() {
    let current = member(UnrevokedPartitions, 9, &[(0, 3)], &[(1, 4)]);
    assert_eq!(step(&current, &[0, 2], None, &[]), None);
    assert_eq!(step(&current, &[0, 2], Some(&[0, 1]), &[]), None);
    let next = step(&current, &[0, 2], Some(&[0]), &[]);
    assert_eq!(next, after(Stable, 10, 9, &[(0, 3), (2, 10)], &[]));
}

#[test]
fn a_state_of_the_future_begins_anew_without_partitions() {
    let current = member(MemberState::Unknown, 9, &[(0, 3)], &[]);
    assert_eq!(
        step(&current, &[0], Some(&[]), &[]),
        after(Stable, 10, 9, &[(0, 3)], &[])
    );
    let target = set(&[0]);
    let silent = Step {
        current: &current,
        target_epoch: 10,
        target: &target,
        owned: None,
        subscription_changed: false,
        is_subscribed: &|_| true,
        is_free: &|_| true,
    };
    assert_eq!(silent.run(), Err(MustRejoin));
}

#[test]
fn a_topic_that_is_not_subscribed_any_more_is_given_up_also_from_an_old_target() {
    let current = member(Stable, 10, &[(0, 3)], &[]);
    let target = set(&[0]);
    let mut unsubscribed = Step {
        current: &current,
        target_epoch: 10,
        target: &target,
        owned: None,
        subscription_changed: true,
        is_subscribed: &|_| false,
        is_free: &|_| true,
    };
    let next = unsubscribed.run().expect("a known state");
    assert_eq!(next, after(UnrevokedPartitions, 10, 10, &[], &[(0, 3)]));
    unsubscribed.target_epoch = 11;
    let next = unsubscribed.run().expect("a known state");
    assert_eq!(next, after(UnrevokedPartitions, 10, 10, &[], &[(0, 3)]));
}

proptest! {
    /// Members that always do as they are told reach their targets, and never hold what another holds.
    #[test]
    fn members_that_do_as_told_come_to_their_targets(
        targets in proptest::collection::vec(proptest::collection::vec(0..4_usize, 12), 1..4),
        order in proptest::collection::vec(0..4_usize, 0..40),
    ) {
        let mut members = vec![member(Stable, 1, &[], &[]); 4];
        let mut epoch = 1;
        for owners in targets {
            epoch += 1;
            let share = |who| {
                let mine = (0_i32..).zip(&owners).filter(|(_, owner)| **owner == who);
                mine.map(|(number, _)| partition(1, number)).collect::<Partitions>()
            };
            let shares: BTreeMap<usize, Partitions> = (0..4).map(|who| (who, share(who))).collect();
            let settling = (0..4).chain(0..4).chain(0..4).chain(0..4);
            for who in order.iter().copied().chain(settling) {
                let others: BTreeSet<TopicPartition> = members
                    .iter()
                    .enumerate()
                    .filter(|(other, _)| *other != who)
                    .flat_map(|(_, other)| other.assigned.iter().chain(other.pending_revocation.iter()))
                    .map(|(partition, _)| partition)
                    .collect();
                let next = Step {
                    current: &members[who],
                    target_epoch: epoch,
                    target: &shares[&who],
                    owned: Some(&**members[who].assigned.partitions()),
                    subscription_changed: false,
                    is_subscribed: &|_| true,
                    is_free: &|partition| !others.contains(partition),
                };
                if let Some(next) = next.run().expect("a known state") {
                    let holds = next.assigned.iter().chain(next.pending_revocation.iter());
                    for (partition, _) in holds {
                        prop_assert!(!others.contains(&partition), "{partition:?} has two owners");
                    }
                    members[who] = next;
                }
            }
            for (who, share) in &shares {
                prop_assert_eq!(&**members[*who].assigned.partitions(), share);
                prop_assert_eq!((members[*who].state, members[*who].member_epoch), (Stable, epoch));
            }
        }
    }
}
