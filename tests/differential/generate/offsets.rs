//! What is said about offsets, by members and by tools, and about groups as a whole.

use super::{GROUP, GROUPS, Writer};
use crate::answers::Placement;
use crate::step::{Ask, Group, Id, Instance, Named, Note, Offset, Round};
use crate::world::OWN_TOPIC;

impl Writer<'_> {
    pub(super) fn about_offsets(&mut self, actor: usize) {
        let ask = match self.rng.below(100) {
            0..35 => self.commit(actor),
            35..60 => self.fetch(),
            60..70 => Ask::DeleteOffsets { topics: self.named() },
            70..80 => Ask::Describe {
                groups: self.groups(),
                operations: self.rng.chance(300),
            },
            80..86 => Ask::DescribeConsumers {
                groups: self.groups(),
                operations: self.rng.chance(300),
            },
            86..93 => self.list(),
            93..97 => Ask::Delete { groups: self.groups() },
            _ => Ask::Find {
                groups: self.groups(),
                key_type: 0,
            },
        };
        let before = self.steps.len();
        self.say(actor, ask);
        let other = if self.is_about_offsets {
            self.rng.below(GROUPS)
        } else {
            0
        };
        if let Some(step) = self.steps.get_mut(before)
            && step.group == GROUP
        {
            step.group = Group::Known(other);
        }
    }

    fn commit(&mut self, actor: usize) -> Ask {
        let is_member = self.is_in[actor] && self.rng.chance(800);
        let (id, instance, round) = if is_member {
            (Id::Own, self.instance(actor), Round::Own)
        } else {
            (Id::Empty, Instance::None, Round::Exactly(-1))
        };
        let topics = self.named().into_iter().map(|(topic, partitions)| {
            let offsets = partitions.into_iter().map(|partition| self.offset(partition));
            (topic, offsets.collect())
        });
        Ask::Commit {
            id,
            instance,
            round,
            retention_ms: -1,
            topics: topics.collect(),
        }
    }

    fn offset(&mut self, partition: i32) -> Offset {
        let notes = [Note::Text(""), Note::Text("note"), Note::Null];
        Offset {
            partition,
            offset: i64::try_from(self.rng.below(1000)).unwrap_or(0),
            leader_epoch: *self.rng.pick(&[-1, 0, 5]),
            metadata: *self.rng.pick(&notes),
        }
    }

    fn named(&mut self) -> Named {
        let topics: &[(&str, &[i32])] = match self.placement {
            Placement::Exact if self.own_partitions.is_some() => &[
                (OWN_TOPIC, &[0]),
                ("three", &[0, 1]),
                (OWN_TOPIC, &[0, 1, 3]),
                ("one", &[0]),
            ],
            Placement::Exact => &[
                ("one", &[0]),
                ("three", &[0, 1]),
                ("three", &[2]),
                ("twelve", &[3, 11]),
                ("three", &[]),
            ],
            // Which partitions a member has is not the same on both sides, so only what nobody is assigned is named.
            Placement::Any => &[("one", &[0]), ("three", &[0, 1]), ("three", &[2])],
        };
        let first = self.rng.below(topics.len());
        let count = self.rng.below(2) + 1;
        let picked = topics.iter().cycle().skip(first).take(count);
        let mut named = Named::new();
        for (topic, partitions) in picked {
            if named.iter().all(|(known, _)| known != topic) {
                named.push((*topic, partitions.to_vec()));
            }
        }
        named
    }

    fn fetch(&mut self) -> Ask {
        let member = match self.rng.below(5) {
            0 => Some((Id::Own, Round::Own)),
            1 => Some((Id::Empty, Round::Exactly(-1))),
            _ => None,
        };
        Ask::Fetch {
            groups: self.groups(),
            member,
            topics: if self.rng.chance(400) { None } else { Some(self.named()) },
            stable: self.rng.chance(500),
        }
    }

    fn groups(&mut self) -> Vec<Group> {
        let mut groups: Vec<Group> = (0..GROUPS).map(Group::Known).collect();
        self.rng.shuffle(&mut groups);
        let count = self.rng.below(GROUPS) + 1;
        groups.truncate(count);
        groups
    }

    fn list(&mut self) -> Ask {
        let states: &[&[&str]] = &[
            &[],
            &["Stable"],
            &["empty", "PreparingRebalance"],
            &[" Stable ", "CompletingRebalance"],
            &["Assigning", "Reconciling"],
            &["nonsense"],
            &["Dead", ""],
        ];
        let types: &[&[&str]] = &[
            &[],
            &["classic"],
            &["Consumer"],
            &["consumer", "classic"],
            &["share"],
            &["nonsense"],
        ];
        Ask::List {
            states: self.rng.pick(states).to_vec(),
            types: self.rng.pick(types).to_vec(),
        }
    }
}
