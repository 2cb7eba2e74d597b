//! What the real cluster knows of the groups before they come here.

use std::collections::BTreeMap;

use convoke::coordinator::input::{ImportedOffset, InspectFailure, Presence, UpstreamGroup};
use convoke::coordinator::request::Text;
use uuid::Uuid;

use crate::plan::{Faults, TOPICS};
use crate::protocol::Partition;
use convoke_support::rng::Rng;

#[derive(Debug, Default)]
pub(crate) struct Upstream {
    groups: BTreeMap<Text, Group>,
}

#[derive(Debug, Default)]
struct Group {
    /// Its members go at this time.
    live_until_ms: u64,
    is_share: bool,
    offsets: BTreeMap<Partition, i64>,
}

impl Upstream {
    /// Makes up what the group was before. `may_be_share`: no consumer of ours is in it.
    pub(crate) fn add(&mut self, rng: &mut Rng, group_id: &Text, may_be_share: bool, mut fresh: impl FnMut() -> i64) {
        let mut group = Group::default();
        if rng.chance(200) {
            group.live_until_ms = rng.between(1_000, 40_000);
        }
        group.is_share = may_be_share && rng.chance(100);
        if !group.is_share && rng.chance(400) {
            for (topic, (_, partitions)) in TOPICS.iter().enumerate() {
                for partition in 0..*partitions {
                    if rng.chance(500) {
                        group.offsets.insert((topic, partition), fresh());
                    }
                }
            }
        }
        self.groups.insert(group_id.clone(), group);
    }

    /// Answers the coordinator.
    pub(crate) fn inspect(
        &self,
        rng: &mut Rng,
        faults: &Faults,
        now_ms: u64,
        group_id: &Text,
    ) -> Result<UpstreamGroup, InspectFailure> {
        if rng.chance(faults.inspect_failure) {
            return Err(InspectFailure {
                reason: "planted".to_owned(),
            });
        }
        let group = &self.groups[group_id];
        let presence = if group.is_share {
            Presence::OtherType {
                group_type: "share".into(),
            }
        } else if now_ms < group.live_until_ms {
            Presence::Live {
                group_type: "classic".into(),
                protocol_type: "consumer".into(),
                state: "Stable".into(),
            }
        } else {
            Presence::Vacant
        };
        let offsets = match presence {
            Presence::Vacant => group.offsets.iter().map(imported).collect(),
            _ => Vec::new(),
        };
        Ok(UpstreamGroup { presence, offsets })
    }

    /// A commit that was not ours and went on to the upstream.
    pub(crate) fn commit(&mut self, group_id: &Text, partition: Partition, offset: i64) {
        if let Some(group) = self.groups.get_mut(group_id) {
            group.offsets.insert(partition, offset);
        }
    }

    pub(crate) fn offset(&self, group_id: &Text, partition: Partition) -> Option<i64> {
        self.groups.get(group_id)?.offsets.get(&partition).copied()
    }

    pub(crate) fn delete_topic(&mut self, topic: usize) {
        for group in self.groups.values_mut() {
            group.offsets.retain(|(of, _), _| *of != topic);
        }
    }

    /// Whether it takes a commit from outside of any generation now.
    pub(crate) fn takes_commits(&self, group_id: &Text, now_ms: u64) -> bool {
        let group = &self.groups[group_id];
        !group.is_share && now_ms >= group.live_until_ms
    }
}

fn imported((&(topic, partition), &offset): (&Partition, &i64)) -> ImportedOffset {
    ImportedOffset {
        topic: TOPICS[topic].0.into(),
        topic_id: Uuid::nil(),
        partition,
        offset,
        leader_epoch: -1,
        metadata: "".into(),
    }
}
