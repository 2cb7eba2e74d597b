use super::*;
use crate::coordinator::request::OffsetCommitTopic;

const NOW: i64 = 1_764_500_000_000;
const OLD: Uuid = Uuid::from_u128(1);
const NEW: Uuid = Uuid::from_u128(2);

fn partition(partition: i32, offset: i64) -> OffsetCommitPartition {
    OffsetCommitPartition {
        partition,
        offset,
        leader_epoch: 3,
        metadata: "".into(),
    }
}

fn commit_of(group: &str, topic: &str, topic_id: Uuid, partitions: Vec<OffsetCommitPartition>) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch: -1,
        member_id: "".into(),
        group_instance_id: None,
        retention_time_ms: None,
        knows_member_epochs: false,
        topics: vec![OffsetCommitTopic {
            name: topic.into(),
            topic_id,
            partitions,
        }],
    }
}

fn apply(offsets: &mut Offsets, records: &[Record]) {
    for record in records {
        let Record::OffsetCommit { key, value } = record else {
            panic!("not an offset: {record:?}");
        };
        offsets.apply(key, value.as_ref());
    }
}

/// `g` has `t`-0..3 at 10, 11, 12 under the id `OLD`, committed at `NOW`.
fn three() -> Offsets {
    let mut offsets = Offsets::default();
    let partitions = (0..3).map(|p| partition(p, 10 + i64::from(p))).collect();
    let (records, _) = Offsets::commit(&commit_of("g", "t", OLD, partitions), NOW, 4096);
    apply(&mut offsets, &records);
    offsets
}

fn named(topic: &str, topic_id: Uuid, partitions: &[i32]) -> Vec<(OffsetTopic, Vec<i32>)> {
    let topic = OffsetTopic {
        name: topic.into(),
        topic_id,
    };
    vec![(topic, partitions.to_vec())]
}

fn fetched_offsets(offsets: &Offsets, topic_id: Uuid, partitions: &[i32]) -> Vec<i64> {
    let topics = named("t", topic_id, partitions);
    let answer = offsets.fetch("g", Some(&topics));
    answer[0].1.iter().map(|fetched| fetched.offset).collect()
}

#[test]
fn a_commit_is_fetched_by_name_and_as_part_of_all() {
    let offsets = three();
    assert_eq!((offsets.count("g"), offsets.total()), (3, 3));
    let topics = named("t", OLD, &[2, 9]);
    let answer = offsets.fetch("g", Some(&topics));
    assert_eq!(answer[0].0, topics[0].0);
    let found = &answer[0].1[0];
    assert_eq!((found.partition, found.offset, found.leader_epoch), (2, 12, 3));
    let missing = &answer[0].1[1];
    assert_eq!(
        (missing.offset, missing.leader_epoch, missing.error),
        (-1, -1, ErrorCode::NONE)
    );
    let all = offsets.fetch("g", None);
    assert_eq!((all.len(), all[0].1.len(), all[0].0.topic_id), (1, 3, OLD));
}

#[test]
fn an_unknown_group_has_no_offsets_and_no_error() {
    let offsets = Offsets::default();
    assert_eq!(fetched_offsets(&offsets, Uuid::nil(), &[0]), [-1]);
    assert!(offsets.fetch("g", None).is_empty());
}

#[test]
fn metadata_is_measured_in_utf16_units_and_fails_its_partition_only() {
    let commit = |metadata: String| {
        let mut long = partition(0, 1);
        long.metadata = metadata.into();
        let request = commit_of("g", "t", OLD, vec![long, partition(1, 2)]);
        let (records, response) = Offsets::commit(&request, NOW, 4096);
        (records.len(), response.topics[0].1.clone())
    };
    let (none, too_large) = (ErrorCode::NONE, ErrorCode::OFFSET_METADATA_TOO_LARGE);
    assert_eq!(commit("x".repeat(4096)), (2, vec![(0, none), (1, none)]));
    assert_eq!(commit("x".repeat(4097)), (1, vec![(0, too_large), (1, none)]));
    // Three bytes in UTF-8, one unit in UTF-16.
    assert_eq!(commit("\u{20ac}".repeat(4096)).0, 2);
    // Four bytes in UTF-8, two units in UTF-16.
    assert_eq!(commit("\u{1f680}".repeat(2048)).0, 2);
    assert_eq!(commit("\u{1f680}".repeat(2049)).0, 1);
}

#[test]
fn metadata_that_the_record_cannot_hold_is_refused_whatever_the_setting() {
    let mut long = partition(0, 1);
    long.metadata = "x".repeat(MAX_TEXT_BYTES + 1).into();
    let (records, _) = Offsets::commit(&commit_of("g", "t", OLD, vec![long]), NOW, i32::MAX);
    assert!(records.is_empty());
}

#[test]
fn the_later_of_two_commits_of_one_request_wins() {
    let mut offsets = Offsets::default();
    let request = commit_of("g", "t", OLD, vec![partition(0, 5), partition(0, 4)]);
    let (records, response) = Offsets::commit(&request, NOW, 4096);
    apply(&mut offsets, &records);
    assert_eq!(fetched_offsets(&offsets, OLD, &[0]), [4]);
    assert_eq!(response.topics[0].1.len(), 2);
}

#[test]
fn a_commit_with_a_retention_of_its_own_expires_by_it_and_reads_back_the_same() {
    let mut request = commit_of("g", "t", OLD, vec![partition(0, 5)]);
    request.retention_time_ms = Some(60_000);
    let (records, _) = Offsets::commit(&request, NOW, 4096);
    assert_eq!(Record::from_raw(&records[0].to_raw()), Ok(Some(records[0].clone())));
    let mut offsets = Offsets::default();
    apply(&mut offsets, &records);
    let week = Expiry {
        base: ExpiryBase::Commit,
        retention_ms: 604_800_000,
    };
    assert!(offsets.expire("g", week, NOW + 59_999, |_| false).is_empty());
    assert_eq!(offsets.expire("g", week, NOW + 60_000, |_| false).len(), 1);
    assert!(offsets.expire("g", week, NOW + 60_000, |topic| topic == "t").is_empty());
}

#[test]
fn a_topic_created_anew_has_no_offset_for_who_knows_its_id() {
    let offsets = three();
    assert_eq!(fetched_offsets(&offsets, NEW, &[0, 1]), [-1, -1]);
    assert_eq!(fetched_offsets(&offsets, OLD, &[0, 1]), [10, 11]);
    assert_eq!(fetched_offsets(&offsets, Uuid::nil(), &[0]), [10]);
}

#[test]
fn deleting_skips_what_is_subscribed_and_forgives_what_is_unknown() {
    let mut offsets = three();
    let request = OffsetDeleteRequest {
        group_id: "g".into(),
        topics: vec![("t".into(), vec![0, 7]), ("other".into(), vec![0])],
    };
    let (records, response) = offsets.delete(&request, |topic| topic == "t");
    assert!(records.is_empty());
    assert_eq!(response.topics[0].1[0], (0, ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC));
    assert_eq!(response.topics[1].1[0], (0, ErrorCode::NONE));
    let (records, response) = offsets.delete(&request, |_| false);
    assert_eq!(response.topics[0].1, [(0, ErrorCode::NONE), (7, ErrorCode::NONE)]);
    assert_eq!(records.len(), 1);
    apply(&mut offsets, &records);
    assert_eq!(fetched_offsets(&offsets, OLD, &[0, 1]), [-1, 11]);
    assert_eq!(offsets.total(), 2);
}

#[test]
fn a_deleted_group_leaves_nothing() {
    let mut offsets = three();
    let records = offsets.delete_group("g");
    apply(&mut offsets, &records);
    assert_eq!(offsets, Offsets::default());
    assert!(offsets.delete_group("g").is_empty());
}

#[test]
fn retention_counts_from_the_commit_or_from_the_moment_the_group_became_empty() {
    let offsets = three();
    let day = 86_400_000;
    let by = |base| Expiry {
        base,
        retention_ms: day,
    };
    let expired = |base, now| offsets.expire("g", by(base), now, |_| false).len();
    assert_eq!(expired(ExpiryBase::Commit, NOW + day - 1), 0);
    assert_eq!(expired(ExpiryBase::Commit, NOW + day), 3);
    assert_eq!(expired(ExpiryBase::Moment(NOW + 5), NOW + day), 0);
    assert_eq!(expired(ExpiryBase::Moment(NOW + 5), NOW + day + 5), 3);
}

#[test]
fn a_deleted_topic_takes_offsets_of_its_id_and_of_no_known_id() {
    let mut offsets = three();
    let (records, _) = Offsets::commit(&commit_of("h", "t", Uuid::nil(), vec![partition(0, 1)]), NOW, 4096);
    apply(&mut offsets, &records);
    let (records, _) = Offsets::commit(&commit_of("i", "t", NEW, vec![partition(0, 1)]), NOW, 4096);
    apply(&mut offsets, &records);
    let deleted = DeletedTopic {
        name: "t".into(),
        id: OLD,
    };
    let records = offsets.delete_topics(&[deleted]);
    apply(&mut offsets, &records);
    assert_eq!(offsets.groups().map(AsRef::as_ref).collect::<Vec<_>>(), ["i"]);
}

#[test]
fn an_import_never_replaces_what_is_here() {
    let mut offsets = three();
    let imported = |partition, offset| ImportedOffset {
        topic: "t".into(),
        topic_id: OLD,
        partition,
        offset,
        leader_epoch: -1,
        metadata: "m".into(),
    };
    let records = offsets.import(&"g".into(), &[imported(0, 99), imported(5, 50), imported(6, -1)], NOW);
    assert_eq!(records.len(), 1);
    apply(&mut offsets, &records);
    assert_eq!(fetched_offsets(&offsets, OLD, &[0, 5, 6]), [10, 50, -1]);
}

#[test]
fn all_offsets_of_a_topic_that_was_made_anew_stand_under_the_id_each_was_committed_for() {
    let mut offsets = three();
    for (topic_id, index) in [(NEW, 1), (Uuid::nil(), 5)] {
        let (records, _) = Offsets::commit(&commit_of("g", "t", topic_id, vec![partition(index, 1)]), NOW, 4096);
        apply(&mut offsets, &records);
    }
    let all: Vec<_> = offsets
        .fetch("g", None)
        .into_iter()
        .map(|(topic, offsets)| {
            let partitions: Vec<i32> = offsets.iter().map(|offset| offset.partition).collect();
            (topic.topic_id, partitions)
        })
        .collect();
    assert_eq!(all, [(Uuid::nil(), vec![5]), (OLD, vec![0, 2]), (NEW, vec![1])]);
}

#[test]
fn topics_are_told_by_every_id_that_an_offset_has() {
    let mut offsets = three();
    for (group, topic, topic_id) in [
        ("h", "t", OLD),
        ("i", "t", NEW),
        ("i", "none", Uuid::nil()),
        ("j", "u", Uuid::from_u128(3)),
    ] {
        let (records, _) = Offsets::commit(&commit_of(group, topic, topic_id, vec![partition(0, 1)]), NOW, 4096);
        apply(&mut offsets, &records);
    }
    let expected = [(OLD, "t"), (NEW, "t"), (Uuid::from_u128(3), "u")];
    assert_eq!(offsets.topics(), expected.map(|(id, name)| (id, name.into())).into());
    let gone = offsets.delete_group("j");
    apply(&mut offsets, &gone);
    assert_eq!(offsets.topics().len(), 2);
}
