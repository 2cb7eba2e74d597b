mod client_assignors;
mod consumer_group;

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::coordinator::group_config::{GroupConfig, GroupSetting};

/// Made by Kafka 4.4.0's own classes: see `tests/golden/CoordinatorRecords.java`.
const GOLDEN: &str = include_str!("../../../tests/golden/coordinator_records.txt");

fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().map(|d| (d as char).to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4) | pair[1]).collect()
}

fn golden() -> BTreeMap<&'static str, RawRecord> {
    GOLDEN
        .lines()
        .map(|line| {
            let [name, key, value] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
            let raw = RawRecord {
                key: hex(key),
                value: (value != "-").then(|| hex(value)),
            };
            (name, raw)
        })
        .collect()
}

fn key(group: &str, topic: &str, partition: i32) -> OffsetKey {
    OffsetKey {
        group_id: group.into(),
        topic: topic.into(),
        partition,
    }
}

fn offset_value(offset: i64) -> OffsetValue {
    OffsetValue {
        offset,
        leader_epoch: -1,
        metadata: "".into(),
        commit_timestamp_ms: 1000,
        expire_timestamp_ms: None,
        topic_id: Uuid::nil(),
    }
}

fn offset(key: OffsetKey, value: OffsetValue) -> Record {
    Record::OffsetCommit {
        key,
        value: Some(value),
    }
}

/// The group of the golden file, as far as `version` can tell it.
fn group(version: i16) -> Record {
    let first = MemberValue {
        member_id: "c1-id".into(),
        group_instance_id: (version >= 3).then(|| "instance-1".into()),
        client_id: "c1".into(),
        client_host: "/127.0.0.1".into(),
        rebalance_timeout_ms: if version >= 1 { 300_000 } else { -1 },
        session_timeout_ms: 45_000,
        subscription: Bytes::from_static(&[0, 1, 2]),
        assignment: Bytes::from(vec![b'a'; 200]),
    };
    let second = MemberValue {
        member_id: "c2-id".into(),
        group_instance_id: None,
        client_id: "".into(),
        client_host: "/10.0.0.2".into(),
        rebalance_timeout_ms: if version >= 1 { 60_000 } else { -1 },
        session_timeout_ms: 10_000,
        subscription: Bytes::new(),
        assignment: Bytes::new(),
    };
    Record::GroupMetadata {
        group_id: "g".into(),
        value: Some(GroupMetadataValue {
            protocol_type: "consumer".into(),
            generation: 12,
            protocol: Some("range".into()),
            leader: Some("c1-id".into()),
            current_state_timestamp_ms: if version >= 2 { 1_764_500_000_123 } else { -1 },
            members: vec![first, second],
        }),
    }
}

#[test]
fn writes_the_bytes_kafka_writes() {
    let golden = golden();
    let long = OffsetValue {
        leader_epoch: 1,
        metadata: "x".repeat(300).into(),
        commit_timestamp_ms: 1,
        ..offset_value(5)
    };
    let written = [
        (
            "offset-written",
            offset(
                key("orders", "payments", 7),
                OffsetValue {
                    leader_epoch: 42,
                    metadata: "caf\u{e9} \u{1f680}".into(),
                    commit_timestamp_ms: 1_764_500_000_123,
                    topic_id: Uuid::from_u64_pair(0x0123_4567_89ab_cdef, 0x8edc_ba98_7654_3210),
                    ..offset_value(123_456_789_012)
                },
            ),
        ),
        (
            "offset-written-bare",
            offset(
                key("", "t", 0),
                OffsetValue {
                    commit_timestamp_ms: 1_764_500_000_123,
                    ..offset_value(0)
                },
            ),
        ),
        (
            "offset-written-expiring",
            offset(
                key("orders", "payments", 7),
                OffsetValue {
                    metadata: "m".into(),
                    commit_timestamp_ms: 1_764_500_000_123,
                    expire_timestamp_ms: Some(1_764_500_060_123),
                    ..offset_value(5)
                },
            ),
        ),
        ("offset-long-metadata", offset(key("orders", "payments", 7), long)),
        (
            "offset-tombstone",
            Record::OffsetCommit {
                key: key("orders", "payments", 7),
                value: None,
            },
        ),
        (
            "group-tombstone",
            Record::GroupMetadata {
                group_id: "orders".into(),
                value: None,
            },
        ),
        ("group-v3", group(3)),
    ];
    for (name, record) in written {
        assert_eq!(record.to_raw(), golden[name], "{name}");
        assert_eq!(Record::from_raw(&golden[name]), Ok(Some(record)), "{name}");
    }
}

#[test]
fn reads_every_version_kafka_has_written() {
    let golden = golden();
    for version in 0..=4 {
        let value = OffsetValue {
            leader_epoch: if version >= 3 { 9 } else { -1 },
            metadata: "meta".into(),
            expire_timestamp_ms: (version == 1).then_some(2000),
            topic_id: if version >= 4 {
                Uuid::from_u64_pair(3, 4)
            } else {
                Uuid::nil()
            },
            ..offset_value(77)
        };
        let name = format!("offset-v{version}");
        let expected = offset(key("g", "t", 3), value);
        assert_eq!(Record::from_raw(&golden[name.as_str()]), Ok(Some(expected)), "{name}");
        let name = format!("group-v{version}");
        assert_eq!(
            Record::from_raw(&golden[name.as_str()]),
            Ok(Some(group(version))),
            "{name}"
        );
    }
    let legacy = OffsetValue {
        metadata: "meta".into(),
        ..offset_value(77)
    };
    let expected = offset(key("g", "t", 3), legacy);
    assert_eq!(Record::from_raw(&golden["offset-legacy"]), Ok(Some(expected)));
}

#[test]
fn an_empty_group_keeps_its_type_and_no_protocol() {
    let Ok(Some(Record::GroupMetadata { value: Some(value), .. })) = Record::from_raw(&golden()["group-empty"]) else {
        panic!("not read");
    };
    assert_eq!(value.protocol_type.as_ref(), "consumer");
    assert_eq!((value.protocol, value.leader, value.generation), (None, None, 5));
    assert!(value.members.is_empty());
}

#[test]
fn our_own_mark_survives_a_round_trip() {
    let mark = Record::GroupOwned {
        group_id: "g".into(),
        value: Some(GroupOwnedValue {
            since_ms: 1_764_500_000_123,
        }),
    };
    let raw = mark.to_raw();
    assert_eq!(&raw.key[..2], 10_001_i16.to_be_bytes());
    assert_eq!(Record::from_raw(&raw), Ok(Some(mark)));
}

#[test]
fn a_groups_own_settings_survive_a_round_trip() {
    let mut config = GroupConfig::default();
    for (place, setting) in GroupSetting::ALL.into_iter().enumerate() {
        let record = Record::GroupConfig {
            group_id: "g".into(),
            value: Some(GroupConfigValue { config }),
        };
        let raw = record.to_raw();
        assert_eq!(raw.key[..], [&10_002_i16.to_be_bytes()[..], &[0, 1, b'g']].concat());
        assert_eq!(Record::from_raw(&raw), Ok(Some(record)));
        assert_eq!(key_group_id(&raw.key).as_deref(), Ok("g"));
        config.set(setting, i32::try_from(place).ok());
    }
    let tombstone = Record::GroupConfig {
        group_id: "g".into(),
        value: None,
    };
    assert_eq!(Record::from_raw(&tombstone.to_raw()), Ok(Some(tombstone)));
}

#[test]
fn a_setting_of_a_newer_convoke_is_left_out() {
    let config = GroupConfig {
        session_timeout_ms: Some(50_000),
        ..GroupConfig::default()
    };
    let value = |config| {
        let record = Record::GroupConfig {
            group_id: "g".into(),
            value: Some(GroupConfigValue { config }),
        };
        record.to_raw()
    };
    let mut raw = value(config);
    let renamed = raw.value.take().map(|bytes| {
        let mut bytes = bytes.to_vec();
        // The first letter of the first name: after the version, the number of settings and the length.
        bytes[4] = b'x';
        Bytes::from(bytes)
    });
    raw.value = renamed;
    let read = Record::from_raw(&raw).map(|record| record.map(|record| record.to_raw()));
    assert_eq!(read, Ok(Some(value(GroupConfig::default()))));
}

#[test]
fn unknown_key_types_are_skipped() {
    for key_type in [-1, 9, 15, 17, 23, 10_000, 10_003, i16::MAX] {
        let raw = RawRecord {
            key: Bytes::copy_from_slice(&key_type.to_be_bytes()),
            value: Some(Bytes::from_static(b"whatever")),
        };
        assert_eq!(Record::from_raw(&raw), Ok(None), "{key_type}");
    }
}

#[test]
fn every_cut_is_an_error_that_names_the_field() {
    for (name, raw) in golden() {
        for end in 0..raw.key.len() {
            let cut = RawRecord {
                key: raw.key.slice(..end),
                ..raw.clone()
            };
            assert!(Record::from_raw(&cut).is_err(), "{name}: key cut at {end}");
        }
        let Some(value) = &raw.value else { continue };
        if name == "consumer-partition-metadata" {
            // Kept as it is.
            continue;
        }
        for end in 0..value.len() {
            let cut = RawRecord {
                value: Some(value.slice(..end)),
                ..raw.clone()
            };
            assert!(Record::from_raw(&cut).is_err(), "{name}: value cut at {end}");
        }
    }
    let raw = RawRecord {
        key: Bytes::from_static(&[0, 1, 0, 9, b'g']),
        value: None,
    };
    let error = Record::from_raw(&raw).unwrap_err();
    assert_eq!(
        error.to_string(),
        "record key: group ends early: 9 bytes needed, 1 left"
    );
}

#[test]
fn damage_is_named() {
    let message = |key: &[u8], value: &[u8]| {
        let raw = RawRecord {
            key: Bytes::copy_from_slice(key),
            value: Some(Bytes::copy_from_slice(value)),
        };
        Record::from_raw(&raw).unwrap_err().to_string()
    };
    let group = [0, 2, 0, 1, b'g'];
    let offset = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        message(&group, &[0, 5]),
        "GroupMetadataValue: value has the unknown version 5"
    );
    assert_eq!(
        message(&offset, &[0xff, 0xff]),
        "OffsetCommitValue: value has the unknown version -1"
    );
    assert_eq!(
        message(&[0, 1, 0xff, 0xfe], &[]),
        "record key: group has the negative length -2"
    );
    assert_eq!(message(&[0, 2, 0xff, 0xff], &[]), "record key: group is null");
    assert_eq!(message(&[0, 2, 0, 1, 0xc3], &[]), "record key: group is not UTF-8");
    let mut trailing = offset.to_vec();
    trailing.push(0);
    let value = hex("0000000000000000004d00046d65746100000000000003e8");
    assert_eq!(
        message(&trailing, &value),
        "record key: end is followed by 1 bytes that belong to nothing"
    );
    // A v4 value whose topic id is 15 bytes long, and one whose metadata claims 4 GiB.
    let short = hex("0004000000000000004d000000090100000000000003e801000f000000000000000300000000000000");
    assert_eq!(
        message(&offset, &short),
        "OffsetCommitValue: topicId is 15 bytes long, 16 are expected"
    );
    let huge = hex("0004000000000000004d00000009ffffffff0f00000000000003e800");
    assert_eq!(
        message(&offset, &huge),
        "OffsetCommitValue: metadata is 4294967294 bytes long, at most 32767 are allowed"
    );
    let endless = hex("0004000000000000004d00000009ffffffffff0f");
    assert_eq!(
        message(&offset, &endless),
        "OffsetCommitValue: metadata has a length of more than 32 bits"
    );
}

#[test]
fn unknown_tags_are_skipped() {
    let mut raw = golden()["offset-v4"].clone();
    let value =
        hex("0004000000000000004d00000009056d65746100000000000003e8020010000000000000000300000000000000040702aabb");
    let plain = Record::from_raw(&raw);
    raw.value = Some(value);
    assert_eq!(Record::from_raw(&raw), plain);
}

#[test]
fn a_text_kafka_could_not_read_is_cut_at_a_character() {
    let record = Record::GroupOwned {
        group_id: "é".repeat(20_000).into(),
        value: None,
    };
    let Ok(Some(Record::GroupOwned { group_id, .. })) = Record::from_raw(&record.to_raw()) else {
        panic!("not read");
    };
    assert_eq!(group_id.len(), MAX_TEXT_BYTES - 1);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        key_type in prop_oneof![0_i16..9, Just(16), Just(10_001), Just(10_002)],
        key in proptest::collection::vec(any::<u8>(), 0..40),
        version in 0_i16..6,
        value in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let raw = RawRecord {
            key: key_type.to_be_bytes().into_iter().chain(key).collect(),
            value: Some(version.to_be_bytes().into_iter().chain(value).collect()),
        };
        let _ = Record::from_raw(&raw);
    }

    #[test]
    fn one_flipped_byte_is_read_or_refused(which in 0_usize..40, at in any::<usize>(), to in any::<u8>()) {
        let golden = golden();
        let raw = golden.values().nth(which % golden.len()).unwrap();
        if let Some(value) = &raw.value {
            let mut bytes = value.to_vec();
            let at = at % bytes.len();
            bytes[at] = to;
            let _ = Record::from_raw(&RawRecord { key: raw.key.clone(), value: Some(bytes.into()) });
        }
    }

    #[test]
    fn offsets_survive_a_round_trip(
        group in "\\PC{0,20}", topic in "\\PC{0,20}", partition in any::<i32>(), offset_at in any::<i64>(),
        leader_epoch in any::<i32>(), metadata in "\\PC{0,200}", commit in any::<i64>(), id in any::<u128>(),
    ) {
        let record = offset(key(&group, &topic, partition), OffsetValue {
            offset: offset_at,
            leader_epoch,
            metadata: metadata.into(),
            commit_timestamp_ms: commit,
            expire_timestamp_ms: None,
            topic_id: Uuid::from_u128(id),
        });
        prop_assert_eq!(Record::from_raw(&record.to_raw()), Ok(Some(record)));
    }
}
