//! The racks of nodes, and what a topic's partitions have of them.

use std::collections::BTreeMap;

use kafka_protocol::messages::metadata_response::{MetadataResponseBroker, MetadataResponseTopic};

/// The rack of each node, as a hash of its name. A node that is down is not listed, but its rack is remembered: otherwise every
/// restart of a broker would look like a change of racks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Racks(BTreeMap<i32, u64>);

impl Racks {
    /// What a list of nodes says, over what was known.
    #[must_use]
    pub fn learn(&self, brokers: &[MetadataResponseBroker]) -> Self {
        let mut racks = self.0.clone();
        for broker in brokers {
            match &broker.rack {
                Some(rack) => racks.insert(broker.node_id.0, hash(FNV_OFFSET, rack.as_bytes())),
                None => racks.remove(&broker.node_id.0),
            };
        }
        Self(racks)
    }

    /// A hash of the racks that each partition has replicas in, whatever the order that they are listed in; 0 where no rack is
    /// known.
    #[must_use]
    pub fn of(&self, topic: &MetadataResponseTopic) -> u64 {
        if self.0.is_empty() {
            return 0;
        }
        let mut partitions: Vec<_> = topic.partitions.iter().collect();
        partitions.sort_unstable_by_key(|partition| partition.partition_index);
        let (mut racks, mut any, mut state) = (Vec::<u64>::new(), false, FNV_OFFSET);
        for partition in partitions {
            racks.clear();
            racks.extend(partition.replica_nodes.iter().filter_map(|node| self.0.get(&node.0)));
            racks.sort_unstable();
            racks.dedup();
            any |= !racks.is_empty();
            state = hash(state, &partition.partition_index.to_be_bytes());
            state = hash(state, &racks.len().to_be_bytes());
            for rack in &racks {
                state = hash(state, &rack.to_be_bytes());
            }
        }
        if any { state } else { 0 }
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// FNV-1a: small, and the same in every process, which the standard library's hash does not promise.
fn hash(state: u64, bytes: &[u8]) -> u64 {
    let step = |state: u64, byte: &u8| (state ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
    bytes.iter().fold(state, step)
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::BrokerId;

    use super::*;
    use crate::config::HostPort;
    use crate::upstream::mock::{broker, id, text, topic};

    fn node(id: i32, rack: Option<&str>) -> MetadataResponseBroker {
        let address = HostPort {
            host: "b".to_owned(),
            port: 1,
        };
        broker(id, &address).with_rack(rack.map(text))
    }

    fn replicated(replicas: &[&[i32]]) -> MetadataResponseTopic {
        let mut topic = topic("t", id(1), &vec![0; replicas.len()]);
        for (partition, nodes) in topic.partitions.iter_mut().zip(replicas) {
            partition.replica_nodes = nodes.iter().copied().map(BrokerId).collect();
        }
        topic
    }

    #[test]
    fn the_order_of_partitions_and_replicas_does_not_count_and_their_racks_do() {
        let racks = Racks::default().learn(&[node(1, Some("a")), node(2, Some("b")), node(3, Some("b"))]);
        let mut turned = replicated(&[&[1, 2], &[2, 3]]);
        turned.partitions.reverse();
        let hash = racks.of(&replicated(&[&[1, 2], &[2, 3]]));
        assert_ne!(hash, 0);
        assert_eq!(racks.of(&turned), hash);
        assert_eq!(racks.of(&replicated(&[&[3, 1], &[3]])), hash, "the same racks");
        assert_ne!(racks.of(&replicated(&[&[2, 3], &[1, 2]])), hash, "of other partitions");
    }

    #[test]
    fn a_node_that_is_down_keeps_its_rack_and_one_that_moved_has_the_new_one() {
        let racks = Racks::default().learn(&[node(1, Some("a")), node(2, Some("b"))]);
        let both = replicated(&[&[1, 2]]);
        let hash = racks.of(&both);
        assert_eq!(racks.learn(&[node(1, Some("a"))]).of(&both), hash);
        assert_ne!(racks.learn(&[node(2, Some("c"))]).of(&both), hash);
        assert_eq!(racks.learn(&[node(1, None), node(2, None)]).of(&both), 0);
    }

    #[test]
    fn without_racks_there_is_nothing_to_tell_apart() {
        let racks = Racks::default().learn(&[node(1, Some("a"))]);
        assert_eq!(racks.of(&replicated(&[&[2, 3]])), 0);
        assert_eq!(Racks::default().of(&replicated(&[&[1]])), 0);
    }
}
