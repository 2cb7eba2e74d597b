//! The assignor that is measured: as little work as an assignor can have that keeps the balance and moves little.

use std::collections::BTreeMap;

use convoke::wire::assignment::TopicPartitions;
use convoke::wire::assignment::install::InstalledMember;
use convoke::wire::assignment::prepare::{PrepareAssignmentResponse, PreparedMember};
use uuid::Uuid;

/// Each member keeps what it has as far as its share goes, and what is left over goes to those that have less. All members are
/// subscribed to all topics.
pub fn share(prepared: &PrepareAssignmentResponse) -> Vec<InstalledMember> {
    let sizes = prepared
        .topics
        .iter()
        .map(|topic| (topic.topic_id, usize::try_from(topic.num_partitions).unwrap_or(0)));
    let mut is_free: BTreeMap<Uuid, Vec<bool>> = sizes.map(|(id, size)| (id, vec![true; size])).collect();
    let all: usize = is_free.values().map(Vec::len).sum();
    let (least, mut with_one_more) = (all / prepared.members.len(), all % prepared.members.len());
    let mut shares: Vec<Vec<(Uuid, i32)>> = Vec::with_capacity(prepared.members.len());
    for member in &prepared.members {
        let kept: Vec<_> = target(member).take(least + usize::from(with_one_more > 0)).collect();
        with_one_more -= usize::from(kept.len() > least);
        for &(id, partition) in &kept {
            if let (Some(topic), Ok(place)) = (is_free.get_mut(&id), usize::try_from(partition)) {
                topic[place] = false;
            }
        }
        shares.push(kept);
    }
    let mut free = is_free.iter().flat_map(|(id, topic)| {
        let free = (0..).zip(topic).filter(|(_, is_free)| **is_free);
        free.map(|(partition, _)| (*id, partition))
    });
    for share in &mut shares {
        let missing = least.saturating_sub(share.len());
        share.extend(free.by_ref().take(missing));
    }
    for share in shares.iter_mut().filter(|share| share.len() == least) {
        share.extend(free.next());
    }
    let installed = |(member, share): (&PreparedMember, Vec<_>)| InstalledMember {
        member_id: member.member_id.clone(),
        partitions: by_topic(share),
        ..InstalledMember::default()
    };
    prepared.members.iter().zip(shares).map(installed).collect()
}

fn target(member: &PreparedMember) -> impl Iterator<Item = (Uuid, i32)> {
    let topics = member.topic_partitions.iter();
    topics.flat_map(|topic| topic.partitions.iter().map(|&partition| (topic.topic_id, partition)))
}

fn by_topic(mut partitions: Vec<(Uuid, i32)>) -> Vec<TopicPartitions> {
    partitions.sort_unstable();
    let topics = partitions.chunk_by(|(one, _), (other, _)| one == other);
    topics
        .map(|topic| TopicPartitions {
            topic_id: topic[0].0,
            partitions: topic.iter().map(|&(_, partition)| partition).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use convoke::wire::assignment::prepare::TopicMetadata;

    use super::*;

    const TOPIC: Uuid = Uuid::from_u128(1);

    fn prepared(partitions: i32, targets: &[&[i32]]) -> PrepareAssignmentResponse {
        let member = |target: &&[i32]| PreparedMember {
            topic_partitions: vec![TopicPartitions {
                topic_id: TOPIC,
                partitions: target.to_vec(),
            }],
            ..PreparedMember::default()
        };
        PrepareAssignmentResponse {
            members: targets.iter().map(member).collect(),
            topics: vec![TopicMetadata {
                topic_id: TOPIC,
                num_partitions: partitions,
                ..TopicMetadata::default()
            }],
            ..PrepareAssignmentResponse::default()
        }
    }

    fn shared(partitions: i32, targets: &[&[i32]]) -> Vec<Vec<i32>> {
        let numbers = |member: InstalledMember| {
            member
                .partitions
                .into_iter()
                .flat_map(|topic| topic.partitions)
                .collect()
        };
        share(&prepared(partitions, targets)).into_iter().map(numbers).collect()
    }

    #[test]
    fn nobody_loses_more_than_the_balance_takes() {
        assert_eq!(shared(5, &[&[0, 1, 2], &[3, 4]]), [vec![0, 1, 2], vec![3, 4]]);
        assert_eq!(
            shared(6, &[&[0, 1, 2], &[3, 4, 5], &[]]),
            [vec![0, 1], vec![3, 4], vec![2, 5]]
        );
        assert_eq!(shared(5, &[&[0], &[3]]), [vec![0, 1, 4], vec![2, 3]]);
        assert_eq!(shared(1, &[&[], &[0], &[]]), [vec![], vec![0], vec![]]);
    }
}
