//! Assignments as those compute them who can: good ones of many kinds, and ones that are none.
//!
//! What a good one says to each member is a number that nobody else has, so that it is seen whose work is installed.

use bytes::{BufMut, Bytes, BytesMut};
use convoke::coordinator::partitions::TopicPartition;
use convoke::coordinator::request::{InstalledMember, PrepareAssignmentResponse, PreparedMember, Text};
use uuid::Uuid;

use crate::client::Surroundings;
use crate::plan::METADATA_MAX;

/// In what version an assignor speaks to its members: one that computed, and one that made something up.
pub(crate) const HONEST: i16 = 1;
const LIE: i16 = 2;
/// No topic has had it.
pub(crate) const NO_TOPIC: Uuid = Uuid::max();

/// What is to be installed.
#[derive(Debug)]
pub(crate) struct Placement {
    pub(crate) group_epoch: i32,
    pub(crate) error: i8,
    pub(crate) members: Vec<InstalledMember>,
}

/// What an assignor says to the member of this place.
fn word(number: i64, place: usize) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i64(number);
    bytes.put_u16(place.try_into().unwrap());
    bytes.freeze()
}

/// Of which computation a word is.
pub(crate) fn number_of(word: &[u8]) -> Option<i64> {
    Some(i64::from_be_bytes(word.get(..8)?.try_into().ok()?))
}

/// Each partition to somebody who is subscribed to its topic: in turn, all to the first, by chance, or to whoever has it.
pub(crate) fn honest(prepared: &PrepareAssignmentResponse, around: &mut Surroundings<'_>) -> Placement {
    let number = around.fresh_number();
    let mut members: Vec<InstalledMember> = prepared
        .members
        .iter()
        .enumerate()
        .map(|(place, member)| InstalledMember {
            member_id: member.member_id.clone(),
            partitions: Vec::new(),
            metadata_version: HONEST,
            metadata: word(number, place),
        })
        .collect();
    let kind = around.rng.below(4);
    for topic in &prepared.topics {
        let takers = subscribers(prepared, &topic.topic_id);
        for partition in 0..topic.partitions {
            let partition = TopicPartition {
                topic_id: topic.topic_id,
                partition,
            };
            let has_it = |place: &usize| prepared.members[*place].target.contains(&partition);
            let taker = match kind {
                0 => takers[usize::try_from(partition.partition).unwrap() % takers.len()],
                1 => takers[0],
                2 => *around.rng.pick(&takers),
                _ => takers
                    .iter()
                    .copied()
                    .find(has_it)
                    .unwrap_or_else(|| *around.rng.pick(&takers)),
            };
            members[taker].partitions.push(partition);
        }
    }
    Placement {
        group_epoch: prepared.group_epoch,
        error: 0,
        members,
    }
}

fn subscribers(prepared: &PrepareAssignmentResponse, topic_id: &Uuid) -> Vec<usize> {
    let wants = |(_, member): &(usize, &PreparedMember)| member.topic_ids.contains(topic_id);
    prepared
        .members
        .iter()
        .enumerate()
        .filter(wants)
        .map(|(place, _)| place)
        .collect()
}

/// One that is wrong in one place.
pub(crate) fn lie(prepared: &PrepareAssignmentResponse, around: &mut Surroundings<'_>) -> Placement {
    let mut placement = honest(prepared, around);
    let members = &mut placement.members;
    members.iter_mut().for_each(|member| member.metadata_version = LIE);
    let liar = around.rng.below(members.len());
    let given = members.iter().position(|member| !member.partitions.is_empty());
    match (around.rng.below(11), given) {
        // Of another member, or one's own once more.
        (0, Some(given)) => {
            let partition = members[given].partitions[0];
            members[liar].partitions.push(partition);
        }
        // Left to nobody.
        (1, Some(given)) => drop(members[given].partitions.pop()),
        (2, Some(_)) => members.clear(),
        // To somebody who did not ask for it.
        (3, Some(given)) => {
            let partition = members[given].partitions[0];
            match prepared
                .members
                .iter()
                .position(|member| !member.topic_ids.contains(&partition.topic_id))
            {
                Some(other) => {
                    members[given].partitions.remove(0);
                    members[other].partitions.push(partition);
                }
                None => members[liar].member_id = "".into(),
            }
        }
        // There is no such partition.
        (4, Some(given)) => {
            let TopicPartition { topic_id, .. } = members[given].partitions[0];
            let beyond = prepared
                .topics
                .iter()
                .find(|topic| topic.topic_id == topic_id)
                .map_or(0, |topic| topic.partitions);
            let partition = *around.rng.pick(&[-1, beyond, i32::MAX]);
            members[given].partitions.push(TopicPartition { topic_id, partition });
        }
        (5, _) => members[liar].partitions.push(TopicPartition {
            topic_id: NO_TOPIC,
            partition: 0,
        }),
        (6, _) => placement.group_epoch += if around.rng.chance(500) { 1 } else { -1 },
        (7, _) => members[liar].metadata = vec![0; METADATA_MAX + 1].into(),
        (8, _) => placement.error = 3,
        (9, _) => {
            let mut twice = members[liar].clone();
            twice.partitions.clear();
            members.push(twice);
        }
        _ => members[liar].member_id = Text::from("nobody"),
    }
    placement
}
