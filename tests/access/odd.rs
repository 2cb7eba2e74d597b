//! Requests that no stock client sends and that a broker answers all the same: text that is not UTF-8, bytes after the end, the
//! same thing named twice, things that name nothing. Each goes straight to the broker and through Convoke, and the answers have
//! to be the same byte for byte.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use convoke::upstream::connection::CLIENT_ID;
use convoke::wire::api;
use convoke_support::Result;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse,
    LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest,
    SyncGroupRequest,
};
use kafka_protocol::protocol::{Encodable, StrBytes};
use tokio::time::timeout;

use crate::answers;
use crate::client::{Client, encode};
use crate::rules::Side;
use crate::world::World;

/// A broker answers in milliseconds whatever it answers.
const PATIENCE: Duration = Duration::from_secs(3);

/// Stands in the text of a request for a byte that is not UTF-8.
const NOT_UTF_8: char = '~';
/// The same for a second such byte.
const NEITHER: char = '^';

/// One side: its connection, and what its requests are about.
struct Asker<'a> {
    world: &'a World,
    side: Side,
    user: &'static str,
    client: Client,
    /// The id that the side's member was given.
    member_id: String,
}

/// What comes of a request.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Answer(Vec<u8>),
    Closed,
    /// Not for [`PATIENCE`].
    Nothing,
}

impl Asker<'_> {
    fn text(text: &str) -> StrBytes {
        StrBytes::from_string(text.to_owned())
    }

    /// The id of a group of this side; every name begins with "odd".
    fn group(&self, name: &str) -> GroupId {
        Self::text(&self.side.group(name)).into()
    }

    async fn send(&mut self, api_key: i16, version: i16, body: &[u8]) -> Result<Outcome> {
        let body: Vec<u8> = body
            .iter()
            .map(|byte| match char::from(*byte) {
                NOT_UTF_8 => 0xff,
                NEITHER => 0xfe,
                _ => *byte,
            })
            .collect();
        let outcome = match timeout(PATIENCE, self.client.raw(api_key, version, &body)).await {
            Ok(Ok(answer)) => return self.normal(api_key, version, answer),
            Ok(Err(error)) if error.to_string().contains("closed the connection") => Outcome::Closed,
            Ok(Err(error)) => return Err(error),
            Err(_) => Outcome::Nothing,
        };
        self.client = self.world.login(self.side, self.user).await?;
        Ok(outcome)
    }

    /// An answer in which both sides' groups and members are called the same. Groups, and all topics of one, stand in the order
    /// of Kafka's hash maps, so those are sorted.
    fn normal(&self, api_key: i16, version: i16, answer: Bytes) -> Result<Outcome> {
        const SORTED: [i16; 4] = [
            api::OFFSET_FETCH,
            api::DESCRIBE_GROUPS,
            api::LIST_GROUPS,
            api::DELETE_GROUPS,
        ];
        if SORTED.contains(&api_key) {
            let sorted = answers::normal(self.side, api_key, version, answer)?;
            return Ok(Outcome::Answer(self.same_names(sorted.as_bytes())));
        }
        Ok(Outcome::Answer(self.same_names(&answer)))
    }

    fn same_names(&self, answer: &[u8]) -> Vec<u8> {
        let mut normal = answer.to_vec();
        let own = self.side.group("odd");
        for at in 0..normal.len() {
            if normal[at..].starts_with(own.as_bytes()) {
                normal[at] = b'?';
            }
            let given = format!("{CLIENT_ID}-");
            if normal[at..].starts_with(given.as_bytes()) {
                let end = (at + given.len() + 36).min(normal.len());
                normal[at + given.len()..end].fill(b'?');
            }
        }
        normal
    }

    /// Makes a member of the group "odd-busy".
    async fn join(&mut self) -> Result<()> {
        let mut metadata = vec![0, 0, 0, 0, 0, 1, 0, 4];
        metadata.extend(b"open\xff\xff\xff\xff");
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(Self::text("range"))
            .with_metadata(metadata.into());
        let join = JoinGroupRequest::default()
            .with_group_id(self.group("odd-busy"))
            .with_session_timeout_ms(1_800_000)
            .with_rebalance_timeout_ms(60_000)
            .with_protocol_type(Self::text("consumer"))
            .with_protocols(vec![protocol]);
        let joined: JoinGroupResponse = self.client.ask(3, &join).await?;
        self.member_id = joined.member_id.to_string();
        match joined.error_code {
            0 => Ok(()),
            error => Err(format!("{:?}: no member: {error}", self.side).into()),
        }
    }
}

type Body = Box<dyn Fn(&Asker<'_>) -> Result<Bytes>>;

/// A request: its API and version, and its body on one side.
struct Odd {
    what: String,
    api_key: i16,
    version: i16,
    body: Body,
}

fn odd<M: Encodable>(what: &str, api_key: i16, version: i16, request: impl Fn(&Asker<'_>) -> M + 'static) -> Odd {
    Odd {
        what: what.to_owned(),
        api_key,
        version,
        body: Box::new(move |asker| {
            // The requests of these versions are those of the one before, but for topic ids.
            let version = if api_key == api::DELETE_GROUPS {
                version.min(2)
            } else {
                version
            };
            encode(&request(asker), version)
        }),
    }
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn commit(group: GroupId, topics: &[(&str, &[i32])], metadata: &str) -> OffsetCommitRequest {
    let topics = topics.iter().map(|(name, partitions)| {
        let partitions = partitions.iter().enumerate().map(|(place, index)| {
            OffsetCommitRequestPartition::default()
                .with_partition_index(*index)
                .with_committed_offset(i64::try_from(place).unwrap_or_default() + 40)
                .with_committed_metadata(Some(text(metadata)))
        });
        OffsetCommitRequestTopic::default()
            .with_name(text(name).into())
            .with_partitions(partitions.collect())
    });
    OffsetCommitRequest::default()
        .with_group_id(group)
        .with_generation_id_or_member_epoch(-1)
        .with_topics(topics.collect())
}

fn fetch(version: i16, groups: &[GroupId], topics: Option<&[(&str, &[i32])]>) -> OffsetFetchRequest {
    if version < 8 {
        let topics = topics.map(|topics| {
            let topics = topics.iter().map(|(name, partitions)| {
                OffsetFetchRequestTopic::default()
                    .with_name(text(name).into())
                    .with_partition_indexes(partitions.to_vec())
            });
            topics.collect()
        });
        let group = groups.first().cloned().unwrap_or_default();
        return OffsetFetchRequest::default().with_group_id(group).with_topics(topics);
    }
    let groups = groups.iter().map(|group| {
        let topics = topics.map(|topics| {
            let topics = topics.iter().map(|(name, partitions)| {
                OffsetFetchRequestTopics::default()
                    .with_name(text(name).into())
                    .with_partition_indexes(partitions.to_vec())
            });
            topics.collect()
        });
        OffsetFetchRequestGroup::default()
            .with_group_id(group.clone())
            .with_topics(topics)
    });
    OffsetFetchRequest::default().with_groups(groups.collect())
}

fn delete(group: GroupId, topics: &[(&str, &[i32])]) -> OffsetDeleteRequest {
    let topics = topics.iter().map(|(name, partitions)| {
        let partitions = partitions
            .iter()
            .map(|index| OffsetDeleteRequestPartition::default().with_partition_index(*index));
        OffsetDeleteRequestTopic::default()
            .with_name(text(name).into())
            .with_partitions(partitions.collect())
    });
    OffsetDeleteRequest::default()
        .with_group_id(group)
        .with_topics(topics.collect())
}

/// Refused for its session timeout by whoever looks at it.
fn join(group: GroupId) -> JoinGroupRequest {
    JoinGroupRequest::default()
        .with_group_id(group)
        .with_session_timeout_ms(1)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![JoinGroupRequestProtocol::default().with_name(text("range"))])
}

fn sync(group: GroupId, version: i16) -> SyncGroupRequest {
    let named = (version >= 5).then(|| text("consumer"));
    SyncGroupRequest::default()
        .with_group_id(group)
        .with_generation_id(1)
        .with_member_id(text("ghost"))
        .with_protocol_type(named.clone())
        .with_protocol_name(named)
}

fn leave(group: GroupId, version: i16, member_ids: &[&str]) -> LeaveGroupRequest {
    let request = LeaveGroupRequest::default().with_group_id(group);
    if version < 3 {
        return request.with_member_id(text(member_ids.first().unwrap_or(&"")));
    }
    let members = member_ids
        .iter()
        .map(|id| MemberIdentity::default().with_member_id(text(id)));
    request.with_members(members.collect())
}

/// A plain request of each API that is about one group, of this version.
fn about(api_key: i16, version: i16, group: &'static str) -> Odd {
    let what = format!("{group:?}");
    let what = what.as_str();
    match api_key {
        api::OFFSET_COMMIT => odd(what, api_key, version, move |asker| {
            commit(asker.group(group), &[("open", &[0])], "")
        }),
        api::OFFSET_FETCH => odd(what, api_key, version, move |asker| {
            fetch(version, &[asker.group(group)], Some(&[("open", &[0])]))
        }),
        api::JOIN_GROUP => odd(what, api_key, version, move |asker| join(asker.group(group))),
        api::HEARTBEAT => odd(what, api_key, version, move |asker| {
            HeartbeatRequest::default()
                .with_group_id(asker.group(group))
                .with_member_id(text("ghost"))
        }),
        api::LEAVE_GROUP => odd(what, api_key, version, move |asker| {
            leave(asker.group(group), version, &["ghost"])
        }),
        api::SYNC_GROUP => odd(what, api_key, version, move |asker| sync(asker.group(group), version)),
        api::DESCRIBE_GROUPS => odd(what, api_key, version, move |asker| {
            DescribeGroupsRequest::default().with_groups(vec![asker.group(group)])
        }),
        api::DELETE_GROUPS => odd(what, api_key, version, move |asker| {
            DeleteGroupsRequest::default().with_groups_names(vec![asker.group(group)])
        }),
        api::OFFSET_DELETE => odd(what, api_key, version, move |asker| {
            delete(asker.group(group), &[("open", &[0])])
        }),
        _ => odd(what, api_key, version, move |_| {
            ListGroupsRequest::default().with_states_filter(if version >= 4 { vec![text(group)] } else { Vec::new() })
        }),
    }
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
    for api_key in crate::questions::APIS {
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

/// What both sides answer to the same requests in the same order.
async fn differences(world: &World, user: &'static str) -> Result<(usize, Vec<String>)> {
    let mut askers = Vec::new();
    for side in Side::BOTH {
        let client = world.login(side, user).await?;
        let mut asker = Asker {
            world,
            side,
            user,
            client,
            member_id: String::new(),
        };
        if user == "admin" {
            asker.join().await?;
        }
        askers.push(asker);
    }
    let mut all = Vec::new();
    malformed(world, &mut all)?;
    texts(&mut all);
    commits(&mut all);
    fetches(&mut all);
    groups(&mut all);
    offset_deletes(&mut all);
    members(&mut all);
    all.retain(|odd| {
        let range = world.versions.get(&odd.api_key);
        range.is_some_and(|(min, max)| (min..=max).contains(&&odd.version))
    });
    let mut differences = Vec::new();
    for odd in &all {
        let mut outcomes = Vec::new();
        for asker in &mut askers {
            let body = (odd.body)(asker)?;
            outcomes.push(asker.send(odd.api_key, odd.version, &body).await?);
        }
        if outcomes[0] != outcomes[1] && !is_accepted(world, user, odd) {
            let name = api::find(odd.api_key).map_or("?", |api| api.name);
            let shown = outcomes.iter().map(show).collect::<Vec<_>>().join("\n convoke: ");
            differences.push(format!(
                "{user}: {name} v{} of {}\n broker: {shown}\n",
                odd.version, odd.what
            ));
        }
    }
    Ok((all.len(), differences))
}

/// Where Kafka 3.8 and Kafka 4 differ Convoke answers as Kafka 4 does, whatever the upstream is. 3.8 keeps the topics and partitions
/// of the offset APIs in maps, in which what is named twice is named once and a topic without partitions is not named; it has
/// no answer at all for no groups; it deletes a group with its last offset; and it tells who may not fetch nothing in v1.
fn is_accepted(world: &World, user: &str, odd: &Odd) -> bool {
    if !world.kafka.version().starts_with("3.") {
        return false;
    }
    match odd.api_key {
        api::OFFSET_FETCH if user == "nobody" && odd.version == 1 => true,
        api::OFFSET_COMMIT | api::OFFSET_FETCH | api::OFFSET_DELETE => {
            const ONLY_4: [&str; 4] = [
                "twice",
                "a topic without partitions",
                "no groups",
                "so that offsets are there",
            ];
            ONLY_4.iter().any(|what| odd.what.contains(what))
        }
        api::DELETE_GROUPS => odd.what.contains("the same text"),
        _ => false,
    }
}

fn show(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answer(answer) => {
            let shown = answer.iter().flat_map(|byte| std::ascii::escape_default(*byte));
            shown.map(char::from).collect()
        }
        Outcome::Closed => "closed".to_owned(),
        Outcome::Nothing => "nothing".to_owned(),
    }
}

async fn every_answer_is_the_brokers_own(version: &str) -> Result<()> {
    let world = World::start(version).await?;
    let mut all = Vec::new();
    for user in ["admin", "nobody"] {
        let (asked, found) = differences(&world, user).await?;
        println!(
            "Kafka {version}, {user}: {asked} odd requests on each side, {} answers differ",
            found.len()
        );
        all.extend(found);
    }
    if all.is_empty() {
        return Ok(());
    }
    Err(format!("{} answers differ:\n{}", all.len(), all.join("\n")).into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_requests_get_the_answers_of_kafka_3_8() -> Result<()> {
    every_answer_is_the_brokers_own("3.8.1").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_requests_get_the_answers_of_kafka_4_4() -> Result<()> {
    every_answer_is_the_brokers_own("4.4.0").await
}
