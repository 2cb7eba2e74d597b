//! What members had before, where they and the coordinator may say different things of it.

use std::collections::BTreeMap;

use crate::coordinator::partitions::{Partitions, TopicPartition};

/// What one member is said to have, and the generation that gave it; -1 where none is told.
#[derive(Debug, Default)]
pub(super) struct Claim {
    pub(super) generation: i32,
    pub(super) partitions: Vec<TopicPartition>,
}

#[derive(Debug)]
struct Standing {
    generation: i32,
    /// `None`: claimed twice.
    owner: Option<usize>,
}

/// What each member had: a claim of an older generation loses to a newer one, and of two of the same generation neither holds.
pub(super) fn settle(claims: &[Claim]) -> Vec<Partitions> {
    let mut standings: BTreeMap<TopicPartition, Standing> = BTreeMap::new();
    for (member, claim) in claims.iter().enumerate() {
        let generation = claim.generation;
        for partition in &claim.partitions {
            let owner = Some(member);
            let standing = standings.entry(*partition).or_insert(Standing { generation, owner });
            if standing.generation < generation {
                *standing = Standing { generation, owner };
            } else if standing.generation == generation && standing.owner != owner {
                standing.owner = None;
            }
        }
    }
    let mut held = vec![Vec::new(); claims.len()];
    for (partition, standing) in standings {
        if let Some(owner) = standing.owner {
            held[owner].push(partition);
        }
    }
    held.into_iter().map(Partitions::from_ascending).collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn claim(generation: i32, numbers: &[i32]) -> Claim {
        let partition = |&partition: &i32| TopicPartition {
            topic_id: Uuid::from_u128(1),
            partition,
        };
        Claim {
            generation,
            partitions: numbers.iter().map(partition).collect(),
        }
    }

    fn settled(claims: &[Claim]) -> Vec<Vec<i32>> {
        let numbers = |held: &Partitions| held.iter().map(|held| held.partition).collect();
        settle(claims).iter().map(numbers).collect()
    }

    #[test]
    fn the_newest_claim_holds_whoever_makes_it_first() {
        let claims = [claim(3, &[0, 1]), claim(5, &[1, 2]), claim(-1, &[0, 3])];
        assert_eq!(settled(&claims), [vec![0], vec![1, 2], vec![3]]);
    }

    #[test]
    fn of_two_claims_of_one_generation_neither_holds_until_a_newer_one_comes() {
        let claims = [claim(4, &[0, 1]), claim(4, &[0, 1]), claim(4, &[0]), claim(5, &[1])];
        assert_eq!(settled(&claims), [vec![], vec![], vec![], vec![1]]);
        assert_eq!(settled(&[claim(4, &[0, 0])]), [vec![0]]);
    }
}
