//! Every way in which an assignment can be wrong, each with its reason.

use bytes::Bytes;

use super::*;

const T: Uuid = Uuid::from_u128(1);
const U: Uuid = Uuid::from_u128(2);

/// "a" is subscribed to "t" of two partitions, "b" to it and to "u" of one.
fn snapshot() -> Snapshot {
    let member = |topics: &[Uuid]| SnapshotMember {
        instance_id: None,
        topics: topics.into(),
    };
    let topic = |name: &str, partitions| SnapshotTopic {
        name: name.into(),
        partitions,
    };
    Snapshot {
        epoch: 7,
        members: [("a".into(), member(&[T])), ("b".into(), member(&[T, U]))].into(),
        topics: [(T, topic("t", 2)), (U, topic("u", 1))].into(),
    }
}

const LIMITS: MetadataLimits = MetadataLimits { member: 4, group: 6 };

fn given(member_id: &str, partitions: &[(Uuid, i32)]) -> InstalledMember {
    let partition = |(topic_id, partition): &(Uuid, i32)| TopicPartition {
        topic_id: *topic_id,
        partition: *partition,
    };
    InstalledMember {
        member_id: member_id.into(),
        partitions: partitions.iter().map(partition).collect(),
        metadata_version: 0,
        metadata: Bytes::new(),
    }
}

fn install(members: Vec<InstalledMember>) -> InstallAssignmentRequest {
    InstallAssignmentRequest {
        group_id: "g".into(),
        member_id: "x".into(),
        member_epoch: 1,
        group_epoch: 7,
        error: 0,
        members,
    }
}

fn reason(request: InstallAssignmentRequest) -> String {
    let refused = snapshot().check(request, LIMITS).expect_err("it is wrong");
    refused.to_string()
}

#[test]
fn an_assignment_of_every_partition_fits() {
    let told = InstalledMember {
        metadata_version: 3,
        metadata: Bytes::from_static(b"hi"),
        ..given("a", &[(T, 1)])
    };
    let installed = snapshot().check(install(vec![given("b", &[(U, 0), (T, 0)]), told]), LIMITS);
    let installed = installed.expect("it is in order");
    assert_eq!(installed["b"].partitions.len(), 2);
    assert_eq!(
        (installed["a"].metadata_version, &*installed["a"].metadata),
        (3, &b"hi"[..])
    );
    let alone = snapshot().check(install(vec![given("b", &[(U, 0), (T, 0), (T, 1)])]), LIMITS);
    assert!(alone.is_ok(), "whoever is not named gets nothing");
}

#[test]
fn each_mistake_is_named() {
    let whole = || given("b", &[(T, 0), (T, 1), (U, 0)]);
    let long = |bytes: &'static [u8]| InstalledMember {
        metadata: Bytes::from_static(bytes),
        ..given("a", &[])
    };
    let three = InstalledMember {
        metadata: Bytes::from_static(b"abc"),
        ..whole()
    };
    let table = [
        (vec![given("z", &[]), whole()], "There is no member z."),
        (vec![whole(), given("a", &[]), given("a", &[])], "Member a comes twice."),
        (
            vec![whole(), long(b"12345")],
            "The metadata of member a is 5 bytes long, at most 4 are allowed.",
        ),
        (
            vec![three, long(b"1234")],
            "All metadata is 7 bytes long, at most 6 are allowed.",
        ),
        (
            vec![given("a", &[(Uuid::nil(), 0)])],
            "There is no topic 00000000-0000-0000-0000-000000000000 that a member is subscribed to.",
        ),
        (vec![given("a", &[(T, 2)])], "There is no partition 2 of topic t."),
        (vec![given("a", &[(T, -1)])], "There is no partition -1 of topic t."),
        (
            vec![given("a", &[(U, 0)])],
            "Member a is given partition 0 of topic u, to which it is not subscribed.",
        ),
        (
            vec![whole(), given("a", &[(T, 1)])],
            "Partition 1 of topic t is given to b and to a.",
        ),
        (
            vec![given("a", &[(T, 1), (T, 1)])],
            "Partition 1 of topic t is given twice to member a.",
        ),
        (
            vec![given("a", &[(T, 0)]), given("b", &[(U, 0)])],
            "Partition 1 of topic t is given to nobody.",
        ),
        (vec![], "Partition 0 of topic t is given to nobody."),
    ];
    for (members, expected) in table {
        assert_eq!(reason(install(members)), expected);
    }
}

#[test]
fn another_epoch_or_an_error_beside_members_is_refused() {
    let members = || vec![given("b", &[(T, 0), (T, 1), (U, 0)])];
    let stale = InstallAssignmentRequest {
        group_epoch: 6,
        ..install(members())
    };
    assert_eq!(
        reason(stale),
        "It was computed for epoch 6, the last snapshot was of epoch 7."
    );
    let failed = InstallAssignmentRequest {
        error: 1,
        ..install(members())
    };
    assert_eq!(
        reason(failed),
        "It has an error and members; with an error there are to be none."
    );
}
