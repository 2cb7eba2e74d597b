//! The tagged fields of client-side assignors, byte for byte, beside records of Kafka's that stay as they were.

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::golden;
use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::coordinator::record::{ConsumerGroupRecord, Record, RecordError, TargetAssignmentValue, TargetMemberValue};
use crate::coordinator::request::ClientAssignor;

fn of_g(record: ConsumerGroupRecord) -> Record {
    Record::ConsumerGroup {
        group_id: "g".into(),
        record,
    }
}

fn value_of(record: &Record) -> Vec<u8> {
    record.to_raw().value.expect("a value").to_vec()
}

/// The record with these bytes in the place of its value.
fn read(record: &Record, value: &[u8]) -> Result<Option<Record>, RecordError> {
    let mut raw = record.to_raw();
    raw.value = Some(Bytes::copy_from_slice(value));
    Record::from_raw(&raw)
}

/// The tag 20848 as a varint.
const TAG: [u8; 3] = [0xf0, 0xa2, 0x01];
/// The tag 20849 as a varint.
const SECOND_TAG: [u8; 3] = [0xf1, 0xa2, 0x01];

#[test]
fn a_members_assignors_follow_what_kafka_writes_of_it() {
    let bare = golden()["consumer-member-bare"].clone();
    let Ok(Some(Record::ConsumerGroup {
        record: ConsumerGroupRecord::Member {
            member_id,
            value: Some(value),
        },
        ..
    })) = Record::from_raw(&bare)
    else {
        panic!("not a member");
    };
    let assignors = vec![
        ClientAssignor {
            name: "lag".into(),
            minimum_version: 1,
            maximum_version: 258,
            reason: -3,
            metadata_version: 2,
            metadata: Bytes::from_static(b"xyz"),
        },
        ClientAssignor {
            name: "b".into(),
            minimum_version: 0,
            maximum_version: 0,
            reason: 0,
            metadata_version: 0,
            metadata: Bytes::new(),
        },
    ];
    let mut value = (*value).clone();
    value.client_assignors = assignors;
    let record = of_g(ConsumerGroupRecord::Member {
        member_id,
        value: Some(Arc::new(value)),
    });
    let written = value_of(&record);
    let kafkas = bare.value.expect("a value");
    // Its one tagged field: that it is not classic.
    assert_eq!(kafkas[kafkas.len() - 4..], [1, 0, 1, 0]);
    let (head, own) = written.split_at(kafkas.len() - 4);
    assert_eq!(head, &kafkas[..kafkas.len() - 4]);
    let mut expected = vec![2, 0, 1, 0];
    expected.extend(TAG);
    expected.extend([26, 3]);
    expected.extend([4, b'l', b'a', b'g', 0, 1, 1, 2, 0xfd, 0, 2, 4, b'x', b'y', b'z', 0]);
    expected.extend([2, b'b', 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    // The field's length: what follows it.
    expected[7] = (expected.len() - 8) as u8;
    assert_eq!(own, expected);
    assert_eq!(Record::from_raw(&record.to_raw()), Ok(Some(record.clone())));
    let cut = [&written[..written.len() - 1], &[]].concat();
    assert!(read(&record, &cut).is_err(), "a cut field is damage");
}

#[test]
fn a_target_names_the_assignor_that_computed_it_and_its_error() {
    let target = |assignor: Option<&str>, assignor_error| {
        of_g(ConsumerGroupRecord::Target(Some(TargetAssignmentValue {
            assignor: assignor.map(Into::into),
            assignor_error,
            ..TargetAssignmentValue::of_server(7, 0)
        })))
    };
    let head = [0, 0, 0, 0, 0, 7];
    let named = target(Some("lag"), 0);
    assert_eq!(
        value_of(&named),
        [&head[..], &[1], &TAG, &[4, 4, b'l', b'a', b'g']].concat()
    );
    let failed = target(None, -9);
    assert_eq!(value_of(&failed), [&head[..], &[1], &SECOND_TAG, &[1, 0xf7]].concat());
    assert_eq!(value_of(&target(None, 0)), [&head[..], &[0]].concat());
    for record in [named, failed, target(Some("a"), 1)] {
        assert_eq!(Record::from_raw(&record.to_raw()), Ok(Some(record)));
    }
    let long = [&head[..], &[1], &SECOND_TAG, &[2, 0, 0]].concat();
    let error = read(&target(None, 1), &long).expect_err("two bytes are no int8");
    assert_eq!(
        error.to_string(),
        "ConsumerGroupTargetAssignmentMetadataValue: end is followed by 1 bytes that belong to nothing"
    );
}

#[test]
fn a_members_target_carries_the_assignors_metadata() {
    let partitions: Partitions = [TopicPartition {
        topic_id: Uuid::from_u128(1),
        partition: 5,
    }]
    .into_iter()
    .collect();
    let target = |metadata_version, metadata: &'static [u8]| {
        of_g(ConsumerGroupRecord::TargetMember {
            member_id: "m".into(),
            value: Some(TargetMemberValue {
                partitions: Arc::new(partitions.clone()),
                metadata_version,
                metadata: Bytes::from_static(metadata),
            }),
        })
    };
    let plain = value_of(&target(0, b""));
    let (last, head) = plain.split_last().expect("something");
    assert_eq!(*last, 0, "no tagged fields");
    let full = [head, &[2], &TAG, &[2, 0, 3], &SECOND_TAG, &[3, 3, b'h', b'i']].concat();
    assert_eq!(value_of(&target(3, b"hi")), full);
    for record in [target(0, b""), target(3, b"hi"), target(-1, b""), target(0, b"x")] {
        assert_eq!(Record::from_raw(&record.to_raw()), Ok(Some(record)));
    }
}
