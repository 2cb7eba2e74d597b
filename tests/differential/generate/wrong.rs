//! What is wrong on purpose: one thing about a request that is in order otherwise.

use crate::answers::Placement;
use crate::conversation::ACTORS;
use crate::step::{Ask, Assign, Beat, Group, Id, Instance, Metadata, Note, Offset, Owned, Round, Said, Step};
use crate::world::NO_TOPIC;
use convoke_support::rng::Rng;

pub fn make(step: &mut Step, rng: &mut Rng, placement: Placement) {
    let may_be_nameless = !matches!(
        step.ask,
        Ask::Commit { .. } | Ask::Fetch { .. } | Ask::DeleteOffsets { .. }
    );
    if may_be_nameless && rng.chance(60) {
        step.group = Group::Nameless;
        return;
    }
    match &mut step.ask {
        Ask::Join {
            id,
            instance,
            session_ms,
            rebalance_ms,
            protocol_type,
            protocols,
        } => match rng.below(8) {
            0 | 1 => *id = self::id(rng),
            2 => *instance = self::instance(rng),
            3 => *session_ms = *rng.pick(&[-1, 0, 9, 1_800_001]),
            4 => *rebalance_ms = *rng.pick(&[-1, 0]),
            5 => *protocol_type = *rng.pick(&["", "connect", "other"]),
            6 => protocols.clear(),
            _ => self::protocols(protocols, rng),
        },
        Ask::Sync {
            id,
            instance,
            generation,
            protocol,
            assign,
        } => match rng.below(5) {
            0 => *id = self::id(rng),
            1 => *instance = self::instance(rng),
            2 => *generation = round(rng),
            3 => *protocol = *rng.pick(&[Said::WrongName, Said::WrongType, Said::Missing]),
            _ => {
                *assign = *rng.pick(&[Assign::Nothing, Assign::Strangers, Assign::Garbage, Assign::UserData]);
            }
        },
        Ask::Heartbeat {
            id,
            instance,
            generation,
        } => match rng.below(3) {
            0 => *id = self::id(rng),
            1 => *instance = self::instance(rng),
            _ => *generation = round(rng),
        },
        Ask::Leave { members } => match rng.below(4) {
            0 => members.clear(),
            1 => members.push((Id::Stranger, Instance::None)),
            2 => members.insert(0, (id(rng), instance(rng))),
            _ => members.extend(members.clone()),
        },
        Ask::Commit {
            id,
            instance,
            round,
            retention_ms,
            topics,
        } => match rng.below(6) {
            0 => *id = self::id(rng),
            1 => *instance = self::instance(rng),
            2 => *round = self::round(rng),
            3 => *retention_ms = *rng.pick(&[0, 1, 86_400_000]),
            _ => offsets(topics, rng),
        },
        Ask::Fetch {
            groups, member, topics, ..
        } => match rng.below(4) {
            0 => *member = Some((id(rng), round(rng))),
            1 => groups.push(Group::Known(0)),
            2 => *topics = Some(Vec::new()),
            _ => topics.get_or_insert_default().push((NO_TOPIC, vec![0, 0, -1])),
        },
        Ask::DeleteOffsets { topics } => match rng.below(3) {
            0 => topics.clear(),
            1 => topics.push((NO_TOPIC, vec![0, 0])),
            _ => topics.push(("three", vec![1, 1, 7])),
        },
        Ask::Describe { groups, .. }
        | Ask::Delete { groups }
        | Ask::Find { groups, .. }
        | Ask::DescribeConsumers { groups, .. } => match rng.below(3) {
            0 => groups.clear(),
            1 => groups.push(Group::Known(0)),
            _ => groups.push(Group::Nameless),
        },
        Ask::Beat(beat) => self::beat(beat, rng, placement),
        Ask::List { .. } | Ask::Topic(_) | Ask::ShortSessions | Ask::Silence { .. } => {}
    }
}

fn id(rng: &mut Rng) -> Id {
    let other = rng.below(ACTORS);
    *rng.pick(&[Id::Empty, Id::Stranger, Id::Former, Id::Own, Id::Of(other), Id::Chosen])
}

fn instance(rng: &mut Rng) -> Instance {
    let other = rng.below(ACTORS);
    *rng.pick(&[
        Instance::None,
        Instance::Own,
        Instance::Stranger,
        Instance::Empty,
        Instance::Of(other),
    ])
}

fn round(rng: &mut Rng) -> Round {
    let number = *rng.pick(&[-3, -2, -1, 0, 1, 77]);
    *rng.pick(&[Round::Next, Round::Former, Round::Exactly(number)])
}

fn protocols(protocols: &mut Vec<(&'static str, Metadata)>, rng: &mut Rng) {
    match rng.below(4) {
        0 => protocols.iter_mut().for_each(|(name, _)| *name = "odd"),
        1 => protocols.insert(0, ("odd", Metadata::Bytes(b"odd"))),
        2 => protocols.extend(protocols.clone()),
        _ => {
            let bytes = *rng.pick(&[
                &b""[..],
                b"\xff",
                b"\0\0\0\0\0\0\0\0\0\0",
                b"\0\x09\0\0\0\0\xff\xff\xff\xff",
            ]);
            protocols
                .iter_mut()
                .for_each(|(_, metadata)| *metadata = Metadata::Bytes(bytes));
        }
    }
}

fn offsets(topics: &mut Vec<(&'static str, Vec<Offset>)>, rng: &mut Rng) {
    let offset = Offset {
        partition: 0,
        offset: 7,
        leader_epoch: -1,
        metadata: Note::Text("wrong"),
    };
    match rng.below(8) {
        0 => topics.clear(),
        1 => topics.push((NO_TOPIC, vec![offset])),
        2 => topics.push((
            "three",
            vec![
                offset,
                Offset { partition: 3, ..offset },
                Offset {
                    partition: -1,
                    ..offset
                },
            ],
        )),
        3 => topics.push(("three", vec![offset, Offset { offset: 8, ..offset }])),
        4 => topics.push(("one", vec![Offset { offset: -1, ..offset }])),
        5 => topics.push((
            "one",
            vec![Offset {
                metadata: Note::Long(4097),
                ..offset
            }],
        )),
        6 => topics.push((
            "one",
            vec![Offset {
                metadata: Note::LongPairs(2048),
                ..offset
            }],
        )),
        _ => topics.push((
            "one",
            vec![Offset {
                metadata: Note::LongPairs(2049),
                ..offset
            }],
        )),
    }
}

fn beat(beat: &mut Beat, rng: &mut Rng, placement: Placement) {
    match rng.below(9) {
        0 => beat.id = id(rng),
        1 => beat.instance = instance(rng),
        2 => beat.epoch = round(rng),
        3 => beat.rack = Some(*rng.pick(&["", " ", "a"])),
        4 => beat.rebalance_ms = *rng.pick(&[-1, 60_000]),
        5 => {
            let sets: &[&[&'static str]] = match placement {
                Placement::Exact => &[&[], &["none"], &["three", "three"], &["one", ""]],
                Placement::Any => &[&["sixty", "sixty"], &["sixty", "none"]],
            };
            beat.topics = if rng.chance(250) {
                None
            } else {
                Some(rng.pick(sets).to_vec())
            };
        }
        6 => beat.assignor = *rng.pick(&[Some(""), Some("nobody's")]),
        7 => beat.epoch = Round::Exactly(0),
        _ => {
            let other = rng.below(ACTORS);
            beat.owned = *rng.pick(&[
                Owned::Unsaid,
                Owned::Nothing,
                Owned::Fewer,
                Owned::More,
                Owned::Of(other),
            ]);
        }
    }
}
