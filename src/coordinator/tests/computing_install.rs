//! What is prepared, what can be installed, and what of it holds when the group moved on.

use bytes::Bytes;

use super::computing_client::{all_to, asking, assignor, install_of, of_versions, running};
use super::consumer_client::{Client, T, U, beat_of, join_of, of_t, partition, settle, shard, topics};
use super::group_test::GroupTest;
use crate::coordinator::event::{Event, PassedOverReason};
use crate::coordinator::input::Ticket;
use crate::coordinator::partitions::TopicPartition;
use crate::coordinator::request::{ConsumerGroupHeartbeatRequest, InstallAssignmentRequest, InstalledMember};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

fn to(member_id: &str, partitions: &[TopicPartition]) -> InstalledMember {
    InstalledMember {
        member_id: member_id.into(),
        partitions: partitions.to_vec(),
        metadata_version: 0,
        metadata: Bytes::new(),
    }
}

fn t(numbers: &[i32]) -> Vec<TopicPartition> {
    of_t(numbers).iter().copied().collect()
}

/// "a" and "b", which ask for "lag", of which "a" has everything; "x" has been told to compute for them.
fn wanted() -> (GroupTest, Vec<Client>) {
    let mut test = shard();
    test.register("x");
    let mut clients = Vec::new();
    for id in ["a", "b"] {
        test.poll("x");
        let join = test.send_beat(asking(id, "lag"));
        test.give_all_to(0, "x", 1);
        let mut client = Client::new(id);
        client.hear(&test.beat_reply(join));
        clients.push(client);
    }
    settle(&mut test, &mut clients);
    assert_eq!(clients[0].owned.len(), 6);
    let poll = test.poll("x");
    test.tell_topics(topics(&[("t", T, 7), ("u", U, 3)]));
    assert!(test.beat_reply(poll).should_compute_assignment);
    (test, clients)
}

#[test]
fn what_is_prepared_says_everything_that_an_assignor_needs() {
    let mut test = shard();
    let said = ConsumerGroupHeartbeatRequest {
        rack_id: Some("r".into()),
        group_instance_id: Some("i".into()),
        subscribed_topic_names: Some(vec!["u".into(), "t".into(), "gone".into()]),
        ..running("a", &[assignor("other"), of_versions(1, 2)])
    };
    test.beat(said);
    let mut described = of_versions(1, 2);
    described.reason = 5;
    described.metadata = Bytes::from_static(b"capacity 7");
    let news = ConsumerGroupHeartbeatRequest {
        client_assignors: Some(vec![assignor("other"), described]),
        group_instance_id: Some("i".into()),
        ..beat_of("a", 1)
    };
    test.beat(news);
    let prepared = test.prepare("a", 1);
    assert_eq!(
        (prepared.group_epoch, test.group_epoch()),
        (2, 2),
        "what was asked for is in what is prepared"
    );
    let member = &prepared.members[0];
    assert_eq!(
        (
            &*member.member_id,
            member.member_epoch,
            member.group_instance_id.as_deref()
        ),
        ("a", 1, Some("i"))
    );
    // "lag" is the first by name of two that it would run.
    assert_eq!(&*prepared.assignor_name, "other");
    assert_eq!(
        (member.reason, member.metadata_version, &*member.metadata),
        (0, 0, &b""[..])
    );
    assert_eq!(member.rack_id.as_deref(), Some("r"));
    assert_eq!(*member.topic_ids, [partition(T, 0).topic_id, partition(U, 0).topic_id]);
    let topics: Vec<(&str, i32)> = prepared
        .topics
        .iter()
        .map(|topic| (&*topic.name, topic.partitions))
        .collect();
    assert_eq!(topics, [("t", 6), ("u", 3)]);
    assert!(member.target.is_empty());
}

#[test]
fn a_members_metadata_is_that_for_the_assignor_that_is_wanted() {
    let mut test = shard();
    let mut described = of_versions(1, 2);
    described.reason = -1;
    described.metadata = Bytes::from_static(b"capacity 7");
    test.beat(running("a", &[described, assignor("zone")]));
    let member = test.prepare("a", 1).members.remove(0);
    assert_eq!(
        (member.reason, member.metadata_version, &*member.metadata),
        (-1, 2, &b"capacity 7"[..])
    );
}

#[test]
fn a_member_without_metadata_is_prepared_with_none_and_its_target() {
    let (mut test, _) = wanted();
    let prepared = test.prepare("x", 1);
    let sizes: Vec<(i8, i16, usize, usize)> = prepared
        .members
        .iter()
        .map(|member| {
            (
                member.reason,
                member.metadata_version,
                member.metadata.len(),
                member.target.len(),
            )
        })
        .collect();
    assert_eq!(sizes, [(0, 0, 0, 6), (0, 0, 0, 0)]);
    assert_eq!(&*prepared.assignor_name, "lag");
}

#[test]
fn who_may_prepare_and_install_is_checked_in_order() {
    let (mut test, clients) = wanted();
    assert_eq!(test.try_prepare("z", 1).error, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(test.try_prepare("x", 2).error, ErrorCode::STALE_MEMBER_EPOCH);
    assert_eq!(test.try_prepare("a", 1).error, ErrorCode::STALE_MEMBER_EPOCH);
    let other = test.try_prepare("a", clients[0].epoch);
    assert_eq!(other.error, ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(
        other
            .error_message
            .is_some_and(|message| message.contains("not to be computed by"))
    );
    let prepared = test.prepare("x", 1);
    for (member_id, epoch, error) in [
        ("z", 1, ErrorCode::UNKNOWN_MEMBER_ID),
        ("x", 0, ErrorCode::STALE_MEMBER_EPOCH),
        ("a", clients[0].epoch, ErrorCode::UNKNOWN_MEMBER_ID),
    ] {
        let install = install_of(member_id, epoch, &prepared, all_to(&prepared, 0));
        assert_eq!(test.install(install).0, error);
    }
    assert_eq!(
        test.install(install_of("x", 1, &prepared, all_to(&prepared, 0))).0,
        ErrorCode::NONE
    );
    let again = install_of("x", 1, &prepared, all_to(&prepared, 0));
    assert_eq!(test.install(again).0, ErrorCode::UNKNOWN_MEMBER_ID, "it is over");
}

#[test]
fn nonsense_is_refused_with_its_reason_and_changes_nothing() {
    let (mut test, _) = wanted();
    let prepared = test.prepare("x", 1);
    let records = test.records.len();
    let twice = vec![to("a", &t(&[0, 1, 2, 3, 4, 5, 6])), to("b", &t(&[3]))];
    let (error, message) = test.install(install_of("x", 1, &prepared, twice));
    assert_eq!(
        (error, message.as_deref()),
        (
            ErrorCode::INVALID_ASSIGNMENT,
            Some("Partition 3 of topic t is given to a and to b.")
        )
    );
    assert_eq!((test.records.len(), &*test.state()), (records, "Assigning"));
    let refused = test
        .events
        .iter()
        .filter(|event| matches!(event, Event::ComputationRefused { .. }));
    assert_eq!(refused.count(), 1);
    let right = vec![to("a", &t(&[0, 1, 2, 3])), to("b", &t(&[4, 5, 6]))];
    assert_eq!(test.install(install_of("x", 1, &prepared, right)).0, ErrorCode::NONE);
}

#[test]
fn the_third_nonsense_passes_it_over() {
    let (mut test, _) = wanted();
    let prepared = test.prepare("x", 1);
    for _ in 0..3 {
        assert_eq!(test.passed_over(), []);
        let install = install_of("x", 1, &prepared, vec![to("z", &[])]);
        assert_eq!(test.install(install).0, ErrorCode::INVALID_ASSIGNMENT);
    }
    assert_eq!(test.passed_over(), [("x".into(), PassedOverReason::Refused)]);
    assert_eq!(test.computed_by().as_deref(), Some("uniform"));
}

#[test]
fn what_nobody_asked_to_compute_from_is_refused() {
    let (mut test, _) = wanted();
    let install = InstallAssignmentRequest {
        group_id: "g".into(),
        member_id: "x".into(),
        member_epoch: 1,
        group_epoch: 4,
        error: 0,
        members: Vec::new(),
    };
    let (error, message) = test.install(install);
    assert_eq!(error, ErrorCode::INVALID_ASSIGNMENT);
    assert!(message.is_some_and(|message| message.contains("PrepareAssignment comes first")));
}

#[test]
fn an_error_is_of_the_last_snapshot_too() {
    let (mut test, _) = wanted();
    let failed = |group_epoch| InstallAssignmentRequest {
        group_id: "g".into(),
        member_id: "x".into(),
        member_epoch: 1,
        group_epoch,
        error: 3,
        members: Vec::new(),
    };
    assert_eq!(
        test.install(failed(4)).0,
        ErrorCode::INVALID_ASSIGNMENT,
        "none was given"
    );
    let old = test.prepare("x", 1).group_epoch;
    test.send_beat(asking("c", "lag"));
    let new = test.prepare("x", 1).group_epoch;
    assert_eq!(test.install(failed(old)).0, ErrorCode::INVALID_ASSIGNMENT);
    assert_eq!(test.passed_over(), []);
    assert_eq!(test.install(failed(new)).0, ErrorCode::NONE);
    assert_eq!(test.passed_over(), [("x".into(), PassedOverReason::Failed)]);
}

#[test]
fn only_the_last_snapshot_counts() {
    let (mut test, _) = wanted();
    let old = test.prepare("x", 1);
    test.send_beat(asking("c", "lag"));
    let new = test.prepare("x", 1);
    assert_eq!(new.group_epoch, old.group_epoch + 1);
    let (error, message) = test.install(install_of("x", 1, &old, all_to(&old, 0)));
    assert_eq!(error, ErrorCode::INVALID_ASSIGNMENT);
    assert!(message.is_some_and(|message| message.starts_with("It was computed for epoch")));
    assert_eq!(
        test.install(install_of("x", 1, &new, all_to(&new, 2))).0,
        ErrorCode::NONE
    );
    assert_eq!(&*test.state(), "Reconciling");
}

#[test]
fn what_still_holds_of_a_stale_assignment_is_installed_and_the_next_is_wanted_at_once() {
    let (mut test, mut clients) = wanted();
    let prepared = test.prepare("x", 1);
    // One goes, one comes, and one subscribes to something else.
    test.beat(beat_of("b", -1));
    let join = test.send_beat(asking("c", "lag"));
    let install = vec![to("a", &t(&[0, 1, 2, 3])), to("b", &t(&[4, 5, 6]))];
    let poll = test.poll("x");
    assert_eq!(test.install(install_of("x", 1, &prepared, install)).0, ErrorCode::NONE);
    let group = test.describe_consumer();
    assert_eq!(
        (group.assignment_epoch, group.group_epoch, &*group.state),
        (prepared.group_epoch, prepared.group_epoch + 2, "Assigning")
    );
    let told = clients[0].beat(&mut test);
    assert_eq!(told.assignment.map(|assigned| assigned.len()), Some(4));
    assert!(!test.is_answered(join), "it waits for the next");
    assert!(test.beat_reply(poll).should_compute_assignment);
    test.give_all_to(1, "x", 1);
    let mut late = Client::new("c");
    late.hear(&test.beat_reply(join));
    clients.remove(1);
    clients.push(late);
    settle(&mut test, &mut clients);
    assert_eq!(clients[1].owned.len(), 7);
}

#[test]
fn topics_that_are_no_longer_subscribed_to_are_left_out_of_a_stale_assignment() {
    let mut test = shard();
    let both = ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(vec!["t".into(), "u".into()]),
        ..running("a", &[assignor("lag")])
    };
    assert!(test.beat(both).should_compute_assignment);
    let prepared = test.prepare("a", 1);
    let only_t = ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(vec!["t".into()]),
        ..beat_of("a", 1)
    };
    test.beat(only_t);
    test.install(install_of("a", 1, &prepared, all_to(&prepared, 0)));
    let told = test.beat(beat_of("a", 1)).assignment.expect("something");
    assert_eq!(*told, of_t(&[0, 1, 2, 3, 4, 5]));
}

#[test]
fn a_group_that_changes_all_the_time_gets_targets_all_the_same() {
    let mut test = shard();
    test.register("x");
    let mut members = vec!["m0".to_owned()];
    let mut poll = test.poll("x");
    test.send_beat(asking("m0", "lag"));
    for number in 1..20 {
        assert!(test.beat_reply(poll).should_compute_assignment, "round {number}");
        let prepared = test.prepare("x", 1);
        let id = format!("m{number}");
        test.send_beat(asking(&id, "lag"));
        members.push(id);
        poll = test.poll("x");
        test.install(install_of("x", 1, &prepared, all_to(&prepared, 0)));
    }
    let installed = test
        .events
        .iter()
        .filter(|event| matches!(event, Event::ComputationInstalled { .. }));
    assert_eq!(installed.count(), 19);
    assert_eq!((test.passed_over(), test.fell_back()), (vec![], vec![]));
}

#[test]
fn two_targets_never_have_the_same_partition() {
    // "b" takes the place of the static member that is not in the snapshot under its new id.
    let (mut test, _) = wanted();
    let prepared = test.prepare("x", 1);
    let twin = ConsumerGroupHeartbeatRequest {
        group_instance_id: Some("i".into()),
        ..asking("c", "lag")
    };
    test.send_beat(twin);
    test.install(install_of("x", 1, &prepared, all_to(&prepared, 1)));
    let group = test.describe_consumer();
    let sizes: Vec<usize> = group
        .members
        .iter()
        .map(|member| {
            member
                .target_assignment
                .iter()
                .map(|topic| topic.partitions.len())
                .sum()
        })
        .collect();
    assert_eq!(sizes, [0, 7, 0]);
}

#[test]
fn metadata_comes_to_its_member_though_its_partitions_stay() {
    let mut test = shard();
    let mut a = Client::new("a");
    a.hear(&test.beat(running("a", &[of_versions(0, 1)])));
    let told = |test: &mut GroupTest, a: &mut Client, version: i16, metadata: &'static [u8]| {
        let prepared = test.prepare("a", a.epoch);
        let mut members = all_to(&prepared, 0);
        members[0].metadata_version = version;
        members[0].metadata = Bytes::from_static(metadata);
        assert_eq!(
            test.install(install_of("a", a.epoch, &prepared, members)).0,
            ErrorCode::NONE
        );
        let told = a.beat(test);
        assert_eq!(told.assignment.map(|assigned| assigned.len()), Some(6));
        let by = told.assigned_by;
        assert_eq!((by.error, by.metadata_version, &*by.metadata), (0, version, metadata));
    };
    told(&mut test, &mut a, 1, b"first");
    a.beat(&mut test);
    let mut asks = of_versions(0, 1);
    asks.reason = 1;
    let again = ConsumerGroupHeartbeatRequest {
        client_assignors: Some(vec![asks]),
        ..beat_of("a", a.epoch)
    };
    assert!(test.beat(again).should_compute_assignment);
    told(&mut test, &mut a, 0, b"second");
    let full = ConsumerGroupHeartbeatRequest {
        topic_partitions: Some((*a.owned).clone()),
        member_epoch: a.epoch,
        ..join_of("a")
    };
    let mut test = test.restarted();
    assert_eq!(&*test.beat(full).assigned_by.metadata, b"second", "it is durable");
}

#[test]
fn who_asks_for_all_metadata_to_be_more_than_there_is_room_for_is_refused() {
    let mut test = super::consumer_client::shard_with(Settings {
        assignor_metadata_group_max_bytes: 10,
        ..super::consumer_client::at_once()
    });
    let with = |id: &str, bytes: usize| {
        let mut described = assignor("lag");
        described.metadata = vec![0; bytes].into();
        running(id, &[described])
    };
    assert_eq!(test.beat(with("a", 6)).error, ErrorCode::NONE);
    let refused = test.beat(with("b", 5));
    assert_eq!(refused.error, ErrorCode::INVALID_REQUEST);
    let ticket: Ticket = test.send_beat(with("b", 4));
    test.advance_ms(3_000);
    assert_eq!(test.beat_reply(ticket).error, ErrorCode::NONE);
}
