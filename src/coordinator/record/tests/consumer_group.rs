//! The records of consumer groups, compared with the bytes of Kafka's own classes.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use uuid::Uuid;

use super::golden;
use crate::coordinator::held::HeldPartitions;
use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::coordinator::record::{
    ClassicMemberValue, ConsumerGroupMetadataValue, ConsumerGroupRecord, ConsumerMemberValue, CurrentAssignmentValue,
    MemberState, Record, ResolvedRegexValue, TargetAssignmentValue,
};
use crate::coordinator::request::Protocol;
use crate::coordinator::topic_names::TopicNames;

fn partition(topic: (u64, u64), partition: i32) -> TopicPartition {
    TopicPartition {
        topic_id: Uuid::from_u64_pair(topic.0, topic.1),
        partition,
    }
}

fn bare_member() -> ConsumerMemberValue {
    ConsumerMemberValue {
        instance_id: None,
        rack_id: None,
        client_id: "".into(),
        client_host: "/10.0.0.1".into(),
        subscribed_topic_names: TopicNames::default(),
        subscribed_topic_regex: "".into(),
        rebalance_timeout_ms: -1,
        server_assignor: None,
        client_assignors: Vec::new(),
        classic: None,
    }
}

fn full_member() -> ConsumerMemberValue {
    ConsumerMemberValue {
        instance_id: Some("i".into()),
        rack_id: Some("r".into()),
        client_id: "c".into(),
        subscribed_topic_names: vec!["a".into(), "b".into()].into(),
        subscribed_topic_regex: "x.*".into(),
        rebalance_timeout_ms: 60_000,
        server_assignor: Some("uniform".into()),
        ..bare_member()
    }
}

fn classic_member() -> ConsumerMemberValue {
    ConsumerMemberValue {
        client_id: "c".into(),
        subscribed_topic_names: vec!["t".into()].into(),
        rebalance_timeout_ms: 60_000,
        classic: Some(ClassicMemberValue {
            session_timeout_ms: 45_000,
            protocols: vec![Protocol {
                name: "range".into(),
                metadata: Bytes::from(vec![0; 200]),
            }],
        }),
        ..bare_member()
    }
}

fn member(value: Option<ConsumerMemberValue>) -> ConsumerGroupRecord {
    ConsumerGroupRecord::Member {
        member_id: "m".into(),
        value: value.map(Arc::new),
    }
}

fn target(value: Option<Partitions>) -> ConsumerGroupRecord {
    ConsumerGroupRecord::TargetMember {
        member_id: "m".into(),
        value: value.map(|partitions| Arc::new(partitions).into()),
    }
}

fn current(value: Option<CurrentAssignmentValue>) -> ConsumerGroupRecord {
    ConsumerGroupRecord::CurrentAssignment {
        member_id: "m".into(),
        value,
    }
}

fn regex(value: Option<ResolvedRegexValue>) -> ConsumerGroupRecord {
    ConsumerGroupRecord::Regex {
        pattern: "x.*".into(),
        value,
    }
}

fn epoch(epoch: i32, metadata_hash: i64) -> ConsumerGroupRecord {
    ConsumerGroupRecord::Metadata(Some(ConsumerGroupMetadataValue { epoch, metadata_hash }))
}

fn target_epoch(timestamp_ms: i64) -> ConsumerGroupRecord {
    ConsumerGroupRecord::Target(Some(TargetAssignmentValue::of_server(7, timestamp_ms)))
}

fn nothing_held() -> CurrentAssignmentValue {
    CurrentAssignmentValue {
        member_epoch: 9,
        previous_member_epoch: 8,
        state: MemberState::Stable,
        assigned: HeldPartitions::default(),
        pending_revocation: HeldPartitions::default(),
    }
}

#[test]
fn writes_and_reads_the_bytes_kafka_writes() {
    let golden = golden();
    let held = CurrentAssignmentValue {
        state: MemberState::UnrevokedPartitions,
        assigned: [(partition((1, 2), 0), 9), (partition((1, 2), 5), 7)]
            .into_iter()
            .collect(),
        pending_revocation: [(partition((3, 4), 1), 4)].into_iter().collect(),
        ..nothing_held()
    };
    let targets = [partition((1, 2), 0), partition((1, 2), 5), partition((3, 4), 1)];
    let topics = ResolvedRegexValue {
        topics: vec!["xa".into(), "xb".into()],
        version: 12_345,
        timestamp_ms: 1_764_500_000_123,
    };
    let written = [
        ("consumer-epoch", epoch(7, 0x0123_4567_89ab_cdef)),
        ("consumer-epoch-no-topics", epoch(1, 0)),
        ("consumer-epoch-tombstone", ConsumerGroupRecord::Metadata(None)),
        (
            "consumer-partition-metadata-tombstone",
            ConsumerGroupRecord::PartitionMetadata(None),
        ),
        ("consumer-member-bare", member(Some(bare_member()))),
        ("consumer-member-classic", member(Some(classic_member()))),
        ("consumer-member-tombstone", member(None)),
        ("consumer-target", target_epoch(1_764_500_000_123)),
        ("consumer-target-no-time", target_epoch(0)),
        ("consumer-target-tombstone", ConsumerGroupRecord::Target(None)),
        ("consumer-target-member", target(Some(targets.into_iter().collect()))),
        ("consumer-target-member-none", target(Some(Partitions::default()))),
        ("consumer-target-member-tombstone", target(None)),
        ("consumer-current", current(Some(held))),
        ("consumer-current-none", current(Some(nothing_held()))),
        ("consumer-current-tombstone", current(None)),
        ("consumer-regex", regex(Some(topics))),
        ("consumer-regex-tombstone", regex(None)),
        ("consumer-member", member(Some(full_member()))),
    ];
    for (name, record) in written {
        let record = Record::ConsumerGroup {
            group_id: "g".into(),
            record,
        };
        assert_eq!(record.to_raw(), golden[name], "{name}");
        assert_eq!(Record::from_raw(&golden[name]), Ok(Some(record)), "{name}");
    }
}

#[test]
fn old_partition_metadata_is_kept_as_it_is() {
    let raw = &golden()["consumer-partition-metadata"];
    let record = Record::from_raw(raw).expect("readable").expect("known");
    let Record::ConsumerGroup {
        record: ConsumerGroupRecord::PartitionMetadata(value),
        ..
    } = &record
    else {
        panic!("another record: {record:?}");
    };
    assert_eq!(*value, raw.value);
    assert_eq!(record.to_raw(), *raw);
}

#[test]
fn partitions_without_epochs_were_assigned_at_the_members() {
    let record = Record::from_raw(&golden()["consumer-current-no-epochs"])
        .expect("readable")
        .expect("known");
    let Record::ConsumerGroup {
        record: ConsumerGroupRecord::CurrentAssignment { value: Some(value), .. },
        ..
    } = record
    else {
        panic!("another record: {record:?}");
    };
    assert_eq!(value.state, MemberState::UnreleasedPartitions);
    let held: Vec<(i32, i32)> = value
        .assigned
        .iter()
        .map(|(partition, epoch)| (partition.partition, epoch))
        .collect();
    assert_eq!(held, [(1, 9), (3, 9)]);
}

#[test]
fn a_state_of_a_newer_coordinator_is_read_as_unknown() {
    let mut raw = golden()["consumer-current-none"].clone();
    let mut value = raw.value.expect("a value").to_vec();
    value[10] = 3;
    raw.value = Some(value.into());
    let record = Record::from_raw(&raw).expect("readable").expect("known");
    let unknown = CurrentAssignmentValue {
        state: MemberState::Unknown,
        ..nothing_held()
    };
    assert_eq!(
        record,
        Record::ConsumerGroup {
            group_id: "g".into(),
            record: current(Some(unknown))
        }
    );
}

#[test]
fn fewer_epochs_than_partitions_are_damage() {
    let mut raw = golden()["consumer-current"].clone();
    let value = raw.value.expect("a value").to_vec();
    // The two epochs of the first topic become one.
    let at = value
        .windows(4)
        .position(|four| four == [1, 0, 9, 3])
        .expect("the tagged field");
    let mut damaged = value[..at].to_vec();
    damaged.extend([1, 0, 5, 2]);
    damaged.extend(&value[at + 4..at + 8]);
    damaged.extend(&value[at + 12..]);
    raw.value = Some(damaged.into());
    assert_eq!(
        Record::from_raw(&raw).unwrap_err().to_string(),
        "ConsumerGroupCurrentMemberAssignmentValue: assignedPartitions has 1 elements, 2 are expected"
    );
}

proptest! {
    #[test]
    fn what_a_member_holds_survives_a_round_trip(
        held in proptest::collection::vec((0..4_u128, 0..50_i32, 0..9_i32), 0..60),
        pending in proptest::collection::vec((4..6_u128, 0..50_i32, 0..9_i32), 0..9),
        member_epoch in -2..i32::MAX,
    ) {
        let collect = |held: Vec<(u128, i32, i32)>| held
            .into_iter()
            .map(|(id, number, epoch)| (TopicPartition { topic_id: Uuid::from_u128(id), partition: number }, epoch))
            .collect::<HeldPartitions>();
        let record = Record::ConsumerGroup {
            group_id: "g".into(),
            record: current(Some(CurrentAssignmentValue {
                member_epoch,
                assigned: collect(held),
                pending_revocation: collect(pending),
                ..nothing_held()
            })),
        };
        prop_assert_eq!(Record::from_raw(&record.to_raw()), Ok(Some(record)));
    }
}
