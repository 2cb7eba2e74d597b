//! The odd requests themselves, by what is odd about them.

use bytes::{BufMut, Bytes, BytesMut};
use convoke::wire::api;
use convoke_support::Result;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, DeleteGroupsRequest, DescribeGroupsRequest, GroupId,
    SyncGroupRequest,
};

use super::asker::Asker;
use super::requests::{Odd, about, commit, delete, fetch, join, leave, odd, text};
use crate::world::World;

/// Every odd request, in the order in which they are to be sent: later ones are about what earlier ones left.
pub fn all(world: &World) -> Result<Vec<Odd>> {
    let mut all = Vec::new();
    malformed(world, &mut all)?;
    texts(&mut all);
    commits(&mut all);
    fetches(&mut all);
    groups(&mut all);
    offset_deletes(&mut all);
    members(&mut all);
    if has_consumer_groups(world) {
        consumer_groups(&mut all);
    }
    too_long(&mut all);
    Ok(all)
}

/// Kafka 3.8 lists their APIs and refuses them.
fn has_consumer_groups(world: &World) -> bool {
    !world.kafka.version().starts_with("3.")
}

/// What is put behind a body, or in the place of the last byte of a flexible one, which counts its tagged fields.
const ENDINGS: [(&str, bool, &[u8]); 7] = [
    ("bytes after the end", false, &[1, 2, 3]),
    ("tags that do not ascend", true, &[2, 9, 0, 3, 1, 0xaa]),
    ("a tag twice", true, &[2, 5, 1, 0xaa, 5, 1, 0xbb]),
    ("a tag of 2^32 - 1", true, &[1, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0xaa]),
    ("a padded varint", true, &[0x80, 0x80, 0x00]),
    ("tags that are cut short", true, &[1, 5, 9]),
    ("a varint of six bytes", true, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x00]),
];

fn with_ending(plain: Odd, (what, replaces, ending): (&str, bool, &'static [u8])) -> Odd {
    let body = plain.body;
    Odd {
        what: format!("{} with {what}", plain.what),
        body: Box::new(move |asker| {
            let plain = body(asker)?;
            let kept = plain.len() - usize::from(replaces);
            let mut changed = BytesMut::from(&plain[..kept]);
            changed.put_slice(ending);
            Ok(changed.freeze())
        }),
        ..plain
    }
}

/// Every API, the oldest version and the newest that names topics: text that is not UTF-8, and odd endings.
fn malformed(world: &World, all: &mut Vec<Odd>) -> Result<()> {
    let has_consumer_groups = has_consumer_groups(world);
    let more = crate::questions::CONSUMER_GROUP_APIS
        .into_iter()
        .filter(|_| has_consumer_groups);
    for api_key in crate::questions::APIS.into_iter().chain(more) {
        let (min, max) = world.versions.get(&api_key).copied().ok_or("an API is missing")?;
        let max = if matches!(api_key, api::OFFSET_COMMIT | api::OFFSET_FETCH) {
            max.min(9)
        } else {
            max
        };
        let flexible = api::find(api_key).and_then(|api| api.flexible_since);
        for version in [min, max] {
            all.push(about(api_key, version, "odd-~"));
            for ending in ENDINGS {
                if !ending.1 || flexible.is_some_and(|since| version >= since) {
                    all.push(with_ending(about(api_key, version, "odd-end"), ending));
                }
            }
        }
    }
    Ok(())
}

fn texts(all: &mut Vec<Odd>) {
    let group = "odd-text~";
    let folded = "odd-text^";
    for version in [2, 7, 8, 9] {
        all.push(odd("metadata that is not UTF-8", 8, version, move |asker| {
            commit(asker.group(group), &[("open", &[0])], "note~")
        }));
        all.push(odd("a topic that is not UTF-8", 8, version, move |asker| {
            commit(asker.group(group), &[("open~", &[0]), ("open", &[0])], "")
        }));
        all.push(odd(
            "another id that is the same text",
            9,
            version.min(9),
            move |asker| {
                fetch(
                    version,
                    &[asker.group(folded)],
                    Some(&[("open", &[0]), ("open~", &[0])]),
                )
            },
        ));
        all.push(odd("all of another id", 9, version.min(9), move |asker| {
            fetch(version, &[asker.group(folded)], None)
        }));
    }
    for version in 0..=5 {
        all.push(odd(
            "an id and another that is the same text",
            15,
            version,
            move |asker| DescribeGroupsRequest::default().with_groups(vec![asker.group(group), asker.group(folded)]),
        ));
    }
    all.push(odd("a topic that is not UTF-8", 47, 0, move |asker| {
        delete(asker.group(group), &[("open~", &[0]), ("open", &[0])])
    }));
    all.push(odd("an id and another that is the same text", 42, 1, move |asker| {
        DeleteGroupsRequest::default().with_groups_names(vec![asker.group(group), asker.group(folded)])
    }));
}

fn commits(all: &mut Vec<Odd>) {
    type Topics = &'static [(&'static str, &'static [i32])];
    const CASES: [(&str, Topics); 12] = [
        ("a topic twice", &[("open", &[0]), ("open", &[0])]),
        (
            "a topic twice, around another",
            &[("open", &[0]), ("shut", &[0]), ("open", &[0])],
        ),
        (
            "a topic twice, known and unknown partitions",
            &[("open", &[0]), ("open", &[7]), ("shut", &[7, 0])],
        ),
        (
            "an unknown topic twice",
            &[("absent", &[0]), ("open", &[0]), ("absent", &[1])],
        ),
        ("a partition twice", &[("open", &[0, 0])]),
        ("an unknown partition twice", &[("open", &[7, 0, 7])]),
        ("a topic without partitions", &[("open", &[])]),
        (
            "a topic without partitions before another",
            &[("open", &[]), ("shut", &[0])],
        ),
        (
            "an unknown topic without partitions",
            &[("absent", &[]), ("shut", &[0])],
        ),
        ("no topics", &[]),
        ("a negative partition", &[("open", &[-1, i32::MIN, 0])]),
        ("a topic without a name", &[("", &[0]), ("open", &[0])]),
    ];
    for version in [2, 7, 9] {
        for (what, topics) in CASES {
            all.push(odd(what, 8, version, move |asker| {
                commit(asker.group("odd-commit"), topics, "note")
            }));
            all.push(odd(what, 8, version, move |asker| {
                commit(asker.group("odd-commit"), topics, &"x".repeat(5_000))
            }));
            all.push(odd(what, 8, version, move |asker| {
                commit(asker.group("odd-busy"), topics, "not a member")
            }));
        }
    }
    all.push(odd("a negative offset", 8, 7, |asker| {
        let mut request = commit(asker.group("odd-commit"), &[("open", &[0])], "");
        request.topics[0].partitions[0].committed_offset = -5;
        request
    }));
    all.push(odd("what was committed", 9, 7, |asker| {
        fetch(7, &[asker.group("odd-commit")], None)
    }));
    for version in [2, 4] {
        for retention in [-2, 0, 1, i64::MAX] {
            all.push(odd("a retention", 8, version, move |asker| {
                commit(asker.group("odd-retention"), &[("open", &[0])], "").with_retention_time_ms(retention)
            }));
        }
    }
}

fn fetches(all: &mut Vec<Odd>) {
    type Topics = Option<&'static [(&'static str, &'static [i32])]>;
    const CASES: [(&str, Topics); 9] = [
        ("a topic twice", Some(&[("open", &[0]), ("open", &[0])])),
        (
            "a topic twice, around another",
            Some(&[("open", &[0]), ("shut", &[0]), ("open", &[1])]),
        ),
        ("a partition twice", Some(&[("open", &[0, 0])])),
        ("a topic without partitions", Some(&[("open", &[]), ("shut", &[0])])),
        (
            "an unknown topic twice",
            Some(&[("absent", &[0]), ("open", &[0]), ("absent", &[0])]),
        ),
        ("no topics", Some(&[])),
        ("a negative partition", Some(&[("open", &[-1, i32::MIN])])),
        ("a topic without a name", Some(&[("", &[0]), ("open", &[0])])),
        ("all topics", None),
    ];
    for version in [1, 2, 5, 7, 8, 9] {
        for (what, topics) in CASES {
            if topics.is_none() && version < 2 {
                continue;
            }
            all.push(odd(what, 9, version, move |asker| {
                fetch(version, &[asker.group("odd-commit")], topics)
            }));
            if version >= 8 {
                all.push(odd(&format!("{what}, of a group twice"), 9, version, move |asker| {
                    let groups = ["odd-commit", "odd-none", "odd-commit", "odd-none"].map(|name| asker.group(name));
                    fetch(version, &groups, topics)
                }));
            }
        }
    }
    for version in [8, 9] {
        all.push(odd("no groups", 9, version, move |_| fetch(version, &[], None)));
    }
}

fn groups(all: &mut Vec<Odd>) {
    const CASES: [&[&str]; 6] = [
        &["odd-busy", "odd-busy"],
        &["odd-commit", "odd-none", "odd-commit", "odd-busy", "odd-none"],
        &["odd-none", "odd-none"],
        &["", "odd-busy", ""],
        &["odd-none", "odd-busy", "odd-commit"],
        &[],
    ];
    for names in CASES {
        for version in [0, 3, 5, 6] {
            all.push(odd(&format!("{names:?}"), 15, version, move |asker| {
                let groups = names.iter().map(|name| asker.group(name));
                DescribeGroupsRequest::default()
                    .with_groups(groups.collect())
                    .with_include_authorized_operations(version >= 3)
            }));
        }
    }
    for version in [0, 2, 3] {
        for names in CASES {
            all.push(odd(&format!("{names:?}"), 42, version, move |asker| {
                let groups = names.iter().map(|name| asker.group(name));
                DeleteGroupsRequest::default().with_groups_names(groups.collect())
            }));
            all.push(about(8, 7, "odd-commit"));
        }
    }
}

fn offset_deletes(all: &mut Vec<Odd>) {
    type Topics = &'static [(&'static str, &'static [i32])];
    const CASES: [(&str, Topics); 8] = [
        ("a topic twice", &[("open", &[0]), ("open", &[0])]),
        (
            "a topic twice, around another",
            &[("shut", &[0]), ("open", &[0]), ("shut", &[1])],
        ),
        ("a partition twice", &[("open", &[0, 0])]),
        ("an unknown partition twice", &[("open", &[7, 0, 7])]),
        ("a topic without partitions", &[("open", &[]), ("shut", &[0])]),
        (
            "an unknown topic twice",
            &[("absent", &[0]), ("open", &[0]), ("absent", &[0])],
        ),
        ("no topics", &[]),
        ("a topic without a name", &[("", &[0]), ("open", &[-1])]),
    ];
    for (what, topics) in CASES {
        for name in ["odd-commit", "odd-busy", "odd-none"] {
            all.push(odd(&format!("{what} of {name}"), 47, 0, move |asker| {
                delete(asker.group(name), topics)
            }));
        }
        all.push(odd("so that offsets are there", 8, 7, |asker| {
            commit(asker.group("odd-commit"), &[("open", &[0]), ("shut", &[0])], "note")
        }));
    }
}

/// What is odd in the consumer protocol and changes nothing.
fn consumer_groups(all: &mut Vec<Odd>) {
    type Change = fn(ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatRequest;
    const CASES: [(&str, Change); 11] = [
        ("a member that nobody knows", |beat| beat.with_member_epoch(1)),
        ("a leave of a member that nobody knows", |beat| {
            beat.with_member_epoch(-1)
        }),
        ("a static leave without an instance", |beat| beat.with_member_epoch(-2)),
        ("an epoch that means nothing", |beat| beat.with_member_epoch(-4)),
        ("a join without topics", |beat| beat.with_subscribed_topic_names(None)),
        ("a join without a timeout", |beat| beat.with_rebalance_timeout_ms(-1)),
        ("a join without partitions", |beat| beat.with_topic_partitions(None)),
        ("a join with an empty instance", |beat| {
            beat.with_instance_id(Some(text("")))
        }),
        ("a join with an empty rack", |beat| beat.with_rack_id(Some(text("")))),
        ("an assignor that is not UTF-8", |beat| {
            beat.with_server_assignor(Some(text("uni~form")))
        }),
        ("a join without an id", |beat| beat.with_member_id(text(""))),
    ];
    for (what, change) in CASES {
        for name in ["odd-consumer", "odd-consumer~", ""] {
            all.push(odd(&format!("{what} of {name:?}"), 68, 1, move |asker| {
                let group = if name.is_empty() {
                    GroupId::default()
                } else {
                    asker.group(name)
                };
                change(
                    ConsumerGroupHeartbeatRequest::default()
                        .with_group_id(group)
                        .with_member_id(text("ghost"))
                        .with_rebalance_timeout_ms(10_000)
                        .with_subscribed_topic_names(Some(vec![text("open").into(), text("open").into()]))
                        .with_topic_partitions(Some(Vec::new())),
                )
            }));
        }
    }
    for version in 0..=1 {
        let lists: [&[&'static str]; 4] = [
            &[],
            &["odd-none", "odd-none"],
            &["odd-text~", "odd-text^"],
            &["odd-busy", "odd-none"],
        ];
        for names in lists {
            all.push(odd(&format!("{names:?}"), 69, version, move |asker| {
                let ids = names.iter().map(|name| asker.group(name)).collect();
                ConsumerGroupDescribeRequest::default().with_group_ids(ids)
            }));
        }
    }
}

/// What a request says of itself whose text is longer than Kafka can write.
pub const TOO_LONG: &str = "too long to be written";

fn too_long(all: &mut Vec<Odd>) {
    let name = "~".repeat(12_000).leak();
    for (api_key, version) in [(12, 0), (12, 4), (14, 3), (9, 1), (15, 0), (15, 5)] {
        let what = TOO_LONG.to_owned();
        all.push(Odd {
            what,
            ..about(api_key, version, name)
        });
    }
}

fn members(all: &mut Vec<Odd>) {
    for version in [3, 5] {
        let cases: [&[&'static str]; 5] = [
            &["ghost", "ghost"],
            &[],
            &[""],
            &["", ""],
            &["ghost", "", "other", "ghost"],
        ];
        for ids in cases {
            for name in ["odd-busy", "odd-none"] {
                all.push(odd(&format!("{ids:?} of {name}"), 13, version, move |asker| {
                    leave(asker.group(name), version, ids)
                }));
            }
        }
    }
    for (version, what) in [(3, "assignments"), (5, "assignments and a protocol")] {
        all.push(odd(&format!("{what} of a member twice"), 14, version, move |asker| {
            let assignment = |content: &'static [u8], id: &str| {
                SyncGroupRequestAssignment::default()
                    .with_member_id(text(id))
                    .with_assignment(Bytes::from_static(content))
            };
            let named = |name: &str| (version >= 5).then(|| text(name));
            SyncGroupRequest::default()
                .with_group_id(asker.group("odd-busy"))
                .with_generation_id(1)
                .with_member_id(text(&asker.member_id))
                .with_protocol_type(named("consumer"))
                .with_protocol_name(named("range"))
                .with_assignments(vec![
                    assignment(b"first", &asker.member_id),
                    assignment(b"second", &asker.member_id),
                    assignment(b"third", "ghost"),
                ])
        }));
    }
    all.push(odd("with a member", 15, 5, |asker| {
        DescribeGroupsRequest::default().with_groups(vec![asker.group("odd-busy"), asker.group("odd-busy")])
    }));
    all.push(odd("its member twice", 13, 4, |asker| {
        leave(
            asker.group("odd-busy"),
            4,
            &[&asker.member_id, "ghost", &asker.member_id],
        )
    }));
    for version in [0, 2, 4, 5, 9] {
        let protocol = |content: &'static [u8]| {
            JoinGroupRequestProtocol::default()
                .with_name(text("range"))
                .with_metadata(Bytes::from_static(content))
        };
        let join = move |asker: &Asker<'_>, protocols: Vec<JoinGroupRequestProtocol>| {
            let first = protocols.is_empty();
            join(asker.group("odd-join"))
                .with_session_timeout_ms(if first { 10_000 } else { 1_800_000 })
                .with_rebalance_timeout_ms(if version == 0 { -1 } else { 60_000 })
                .with_protocols(protocols)
        };
        all.push(odd("no protocols", 11, version, move |asker| join(asker, Vec::new())));
        all.push(odd("no protocol type", 11, version, move |asker| {
            join(asker, vec![protocol(b"first")]).with_protocol_type(text(""))
        }));
    }
}
