//! Groups with members that change their protocol, and classic members in a consumer group.

use bytes::Bytes;

use super::consumer_client::{Client, T, at_once, beat_of, join_of, of_t, settle, shard, shard_with, static_join_of};
use super::group_test::GroupTest;
use super::requests::{REBALANCE_MS, commit_as, first_join, join_as, old_join, static_join, sync_as};
use crate::coordinator::consumer_protocol::{read_assignment, write_assignment};
use crate::coordinator::event::{EpochReason, Event};
use crate::coordinator::partitions::Partitions;
use crate::coordinator::request::{JoinGroupRequest, JoinGroupResponse, Protocol, SyncGroupRequest, Text};
use crate::coordinator::settings::{MigrationPolicy, Settings};
use crate::wire::error_code::ErrorCode;

/// Metadata (v1) of a consumer of "t" that owns these partitions of it.
pub(super) fn metadata(owned: &[i32]) -> Bytes {
    let mut bytes = vec![0, 1, 0, 0, 0, 1, 0, 1, b't', 0xff, 0xff, 0xff, 0xff];
    match owned {
        [] => bytes.extend([0, 0, 0, 0]),
        owned => {
            bytes.extend([0, 0, 0, 1, 0, 1, b't']);
            bytes.extend(i32::try_from(owned.len()).expect("few").to_be_bytes());
            bytes.extend(owned.iter().flat_map(|number| number.to_be_bytes()));
        }
    }
    bytes.into()
}

pub(super) fn owning(owned: &[i32], request: JoinGroupRequest) -> JoinGroupRequest {
    let protocol = |name: &str| Protocol {
        name: name.into(),
        metadata: metadata(owned),
    };
    JoinGroupRequest {
        protocols: vec![protocol("cooperative-sticky"), protocol("range")],
        ..request
    }
}

fn assignment(numbers: &[i32]) -> Bytes {
    write_assignment(1, &vec![("t".into(), numbers.to_vec())])
}

/// The assignment, with a byte of what only the leader's assignor understands.
fn with_user_data(assignment: &Bytes) -> Bytes {
    let (rest, _no_user_data) = assignment.split_at(assignment.len() - 4);
    Bytes::from([rest, &[0, 0, 0, 1, 7]].concat())
}

/// A classic group in Stable whose members have these partitions of "t".
pub(super) fn classic_group(test: &mut GroupTest, shares: &[&[i32]]) -> Vec<Text> {
    let tickets: Vec<_> = shares
        .iter()
        .map(|share| test.join(owning(share, old_join())))
        .collect();
    test.advance_ms(6_000);
    let joined: Vec<JoinGroupResponse> = tickets.iter().map(|ticket| test.joined(*ticket)).collect();
    let ids: Vec<Text> = joined.iter().map(|joined| joined.member_id.clone()).collect();
    let assignments = ids
        .iter()
        .cloned()
        .zip(shares.iter().map(|share| assignment(share)))
        .collect();
    test.sync(SyncGroupRequest {
        assignments,
        ..sync_as(&ids[0], 1)
    });
    for id in &ids[1..] {
        test.sync(sync_as(id, 1));
    }
    assert_eq!(&*test.state(), "Stable");
    ids
}

/// A classic member joins again with what it owns, and syncs. Its generation, and what it is told to have.
pub(super) fn rejoin(test: &mut GroupTest, id: &Text, owned: &[i32]) -> (i32, Vec<i32>) {
    let ticket = test.join(owning(owned, join_as(id)));
    let joined = test.joined(ticket);
    assert_eq!((&*joined.leader, joined.members.len()), ("", 0), "nobody leads");
    assert_eq!(joined.protocol_name.as_deref(), Some("cooperative-sticky"));
    let ticket = test.sync(sync_as(id, joined.generation_id));
    let synced = test.sync_reply(ticket);
    assert_eq!(synced.error, ErrorCode::NONE);
    let assigned = read_assignment(&synced.assignment).expect("an assignment").partitions;
    let numbers = assigned.into_iter().flat_map(|(_, numbers)| numbers).collect();
    (joined.generation_id, numbers)
}

pub(super) fn with_policy(policy: MigrationPolicy) -> GroupTest {
    shard_with(Settings {
        group_consumer_migration_policy: policy,
        ..at_once()
    })
}

#[test]
fn a_consumer_that_joins_a_classic_group_makes_it_a_consumer_group_in_which_nobody_loses_anything() {
    // Scenarios 110, 113.
    let mut test = shard();
    let ids = classic_group(&mut test, &[&[0, 1, 2], &[3, 4, 5]]);
    test.commit(commit_as(&ids[0], 1, 5));
    let mut c = Client::joined(&mut test, "c");
    let group = test.describe_consumer();
    assert_eq!((group.error, group.group_epoch), (ErrorCode::NONE, 2));
    assert_eq!((c.epoch, c.owned.len()), (2, 0));
    for (id, numbers) in ids.iter().zip([[0, 1, 2], [3, 4, 5]]) {
        let member = test.member(id);
        assert_eq!((member.is_classic, member.member_epoch), (true, 1));
        assert_eq!(member.assignment[0].partitions, numbers);
        assert_eq!(test.heartbeat(id, 1), ErrorCode::REBALANCE_IN_PROGRESS);
    }
    // Each gives one up, says so, and has its new share.
    for (id, owned) in ids.iter().zip([[0, 1, 2], [3, 4, 5]]) {
        let (generation_id, kept) = rejoin(&mut test, id, &owned);
        assert_eq!((generation_id, kept.len()), (1, 2));
        assert_eq!(
            test.heartbeat(id, 1),
            ErrorCode::REBALANCE_IN_PROGRESS,
            "it has not said so yet"
        );
        assert_eq!(rejoin(&mut test, id, &kept), (2, kept));
        assert_eq!(test.heartbeat(id, 2), ErrorCode::NONE);
        assert_eq!(test.heartbeat(id, 1), ErrorCode::ILLEGAL_GENERATION);
    }
    c.beat(&mut test);
    assert_eq!((c.epoch, c.owned.len()), (2, 2));
    assert_eq!(&*test.state(), "Stable");
    assert_eq!(test.fetch("t"), 5);
    assert_eq!(test.commit(commit_as(&ids[0], 2, 6)), [ErrorCode::NONE]);
    assert_eq!(test.commit(commit_as(&ids[0], 3, 6)), [ErrorCode::ILLEGAL_GENERATION]);
    let before = test.describe_consumer();
    assert_eq!(test.restarted().describe_consumer(), before);
}

#[test]
fn what_waits_in_a_classic_group_is_asked_to_come_again() {
    // Scenario 111.
    let mut test = shard();
    let ids = classic_group(&mut test, &[&[0, 1, 2], &[3, 4, 5]]);
    let ticket = test.join(owning(&[], join_as(&ids[0])));
    assert!(!test.is_answered(ticket));
    Client::joined(&mut test, "c");
    assert_eq!(test.join_reply(ticket).error, ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(rejoin(&mut test, &ids[0], &[0, 1, 2]).0, 1);
}

#[test]
fn a_group_that_may_not_or_cannot_change_stays_what_it_is() {
    // Scenarios 79, 112.
    for policy in [MigrationPolicy::Disabled, MigrationPolicy::Downgrade] {
        let mut test = with_policy(policy);
        classic_group(&mut test, &[&[0, 1, 2, 3, 4, 5]]);
        assert_eq!(test.beat_error(join_of("c")), ErrorCode::GROUP_ID_NOT_FOUND);
    }
    let mut test = shard();
    // Its assignments are no consumers'.
    test.stable_group(1);
    let refused = test.beat(join_of("c"));
    assert_eq!(refused.error, ErrorCode::GROUP_ID_NOT_FOUND);
    assert!(
        refused
            .error_message
            .is_some_and(|message| message.ends_with("protocol is malformed."))
    );
    let mut test = shard();
    let ticket = test.join(owning(&[], old_join()));
    test.advance_ms(6_000);
    let id = test.joined(ticket).member_id;
    test.sync(SyncGroupRequest {
        assignments: vec![(id.clone(), with_user_data(&assignment(&[0])))],
        ..sync_as(&id, 1)
    });
    let refused = test.beat(join_of("c"));
    assert_eq!(refused.error, ErrorCode::GROUP_ID_NOT_FOUND);
    assert!(
        refused
            .error_message
            .is_some_and(|message| message.contains("an unsupported custom assignor is in use"))
    );
    let mut test = shard_with(Settings {
        group_consumer_max_size: 1,
        ..at_once()
    });
    let ids = classic_group(&mut test, &[&[0, 1, 2], &[3, 4, 5]]);
    assert_eq!(test.beat_error(join_of("c")), ErrorCode::GROUP_ID_NOT_FOUND);
    let mut test = shard();
    let ticket = test.join(JoinGroupRequest {
        protocol_type: "connect".into(),
        ..old_join()
    });
    test.advance_ms(3_000);
    test.joined(ticket);
    assert_eq!(test.beat_error(join_of("c")), ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(test.list(&[], &["classic"]).groups.len(), 1);
    drop(ids);
}

#[test]
fn a_consumer_that_is_refused_changes_nothing() {
    let mut test = shard_with(Settings {
        group_consumer_max_size: 2,
        ..at_once()
    });
    let ids = classic_group(&mut test, &[&[0, 1, 2], &[3, 4, 5]]);
    let written = test.records.len();
    assert_eq!(test.beat_error(join_of("c")), ErrorCode::GROUP_MAX_SIZE_REACHED);
    assert_eq!(test.records.len(), written);
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
}

#[test]
fn a_classic_consumer_joins_a_consumer_group() {
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    let ticket = test.join(owning(&[], first_join()));
    let id = test.join_reply(ticket).member_id;
    assert_eq!(test.join_reply(ticket).error, ErrorCode::MEMBER_ID_REQUIRED);
    let (generation_id, assigned) = rejoin(&mut test, &id, &[]);
    assert_eq!((generation_id, assigned), (3, vec![]));
    assert_eq!(test.heartbeat(&id, 3), ErrorCode::NONE, "what it waits for is held");
    a.beat(&mut test);
    a.beat(&mut test);
    assert_eq!(
        test.heartbeat(&id, 3),
        ErrorCode::REBALANCE_IN_PROGRESS,
        "it is free now"
    );
    let (generation_id, assigned) = rejoin(&mut test, &id, &[]);
    assert_eq!((generation_id, assigned.len()), (3, 3));
    assert_eq!(&*test.state(), "Stable");
    assert_eq!(test.leave(&[(&id, None)]), [ErrorCode::NONE]);
    a.beat(&mut test);
    assert_eq!(a.owned.len(), 6);
}

#[test]
fn a_classic_consumer_that_does_not_fit_is_refused() {
    // Scenario 118.
    let mut test = with_policy(MigrationPolicy::Disabled);
    Client::joined(&mut test, "a");
    let ticket = test.join(owning(&[], old_join()));
    assert_eq!(test.join_reply(ticket).error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let mut test = shard();
    Client::joined(&mut test, "a");
    let ticket = test.join(owning(&[], old_join()));
    test.joined(ticket);
    let refused = [
        JoinGroupRequest {
            protocol_type: "connect".into(),
            ..owning(&[], old_join())
        },
        JoinGroupRequest {
            protocols: vec![Protocol {
                name: "other".into(),
                metadata: metadata(&[]),
            }],
            ..old_join()
        },
        JoinGroupRequest {
            protocols: vec![Protocol {
                name: "range".into(),
                metadata: Bytes::from_static(b"?"),
            }],
            ..old_join()
        },
    ];
    for request in refused {
        let ticket = test.join(request);
        let refused = test.join_reply(ticket);
        assert_eq!(refused.error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        assert_eq!(&*refused.member_id, "", "it is no member");
    }
}

#[test]
fn a_classic_consumer_need_not_say_what_it_subscribes_to_before_it_has_an_id() {
    let mut test = shard();
    Client::joined(&mut test, "a");
    let ticket = test.join(JoinGroupRequest {
        protocols: vec![Protocol {
            name: "range".into(),
            metadata: Bytes::new(),
        }],
        ..first_join()
    });
    let asked = test.join_reply(ticket);
    assert_eq!(
        (asked.error, asked.member_id.is_empty()),
        (ErrorCode::MEMBER_ID_REQUIRED, false)
    );
}

#[test]
fn a_classic_member_that_misses_its_join_or_sync_is_fenced() {
    // Scenario 114.
    let is_fenced = |test: &GroupTest, expected: EpochReason| {
        test.events
            .iter()
            .any(|event| matches!(event, Event::ConsumerMemberRemoved { reason, .. } if *reason == expected))
    };
    let mut test = shard();
    let ids = classic_group(&mut test, &[&[0, 1, 2, 3, 4, 5]]);
    let mut c = Client::joined(&mut test, "c");
    for _ in 0..REBALANCE_MS / 5_000 {
        assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::REBALANCE_IN_PROGRESS);
        c.beat(&mut test);
        test.advance_ms(5_000);
    }
    assert!(is_fenced(&test, EpochReason::JoinTimedOut));
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::UNKNOWN_MEMBER_ID);
    c.beat(&mut test);
    assert_eq!(c.owned.len(), 6);

    let ticket = test.join(owning(&[], old_join()));
    let joined = test.joined(ticket);
    for _ in 0..REBALANCE_MS / 5_000 {
        test.heartbeat(&joined.member_id, joined.generation_id);
        c.beat(&mut test);
        test.advance_ms(5_000);
    }
    assert!(is_fenced(&test, EpochReason::SyncTimedOut));
}

#[test]
fn a_consumer_takes_the_place_of_a_classic_static_member() {
    let mut test = shard();
    Client::joined(&mut test, "b");
    let ticket = test.join(owning(&[], static_join("i")));
    let old_id = test.joined(ticket).member_id;
    let response = test.beat(static_join_of("a", "i"));
    assert_eq!(response.error, ErrorCode::NONE);
    assert!(!test.member("a").is_classic);
    assert_eq!(test.heartbeat(&old_id, 3), ErrorCode::UNKNOWN_MEMBER_ID);
}

/// Its process ended without a word, as those of static members do, and starts anew with the new protocol.
#[test]
fn a_static_member_of_a_classic_group_comes_back_as_a_consumer_and_has_its_part_at_once() {
    let mut test = shard();
    let tickets = [
        test.join(owning(&[], static_join("i"))),
        test.join(owning(&[], old_join())),
    ];
    test.advance_ms(6_000);
    let ids = tickets.map(|ticket| test.joined(ticket).member_id);
    let shares = [assignment(&[0, 1, 2]), assignment(&[3, 4, 5])];
    test.sync(SyncGroupRequest {
        assignments: ids.iter().cloned().zip(shares).collect(),
        ..sync_as(&ids[0], 1)
    });
    test.sync(sync_as(&ids[1], 1));
    test.commit(commit_as(&ids[0], 1, 5));
    let back = test.beat(static_join_of("a", "i"));
    assert_eq!(
        (back.error, back.assignment),
        (ErrorCode::NONE, Some(of_t(&[0, 1, 2]).into()))
    );
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(test.fetch("t"), 5);
    assert_eq!(test.describe_consumer().members.len(), 2);
    assert_eq!(test.restarted().describe_consumer(), test.describe_consumer());
}

#[test]
fn a_classic_member_of_a_consumer_group_has_the_session_that_it_asked_for() {
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    let ticket = test.join(owning(&[], old_join()));
    let joined = test.joined(ticket);
    let sync = test.sync(sync_as(&joined.member_id, joined.generation_id));
    assert_eq!(test.sync_reply(sync).error, ErrorCode::NONE);
    for _ in 0..4 {
        test.advance_ms(9_000);
        assert_ne!(
            test.heartbeat(&joined.member_id, joined.generation_id),
            ErrorCode::UNKNOWN_MEMBER_ID
        );
        a.beat(&mut test);
        rejoin(&mut test, &joined.member_id, &[]);
    }
    test.advance_ms(10_000);
    assert_eq!(
        test.heartbeat(&joined.member_id, joined.generation_id),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    settle(&mut test, &mut [a]);
    assert_eq!(test.member("a").assignment[0].partitions.len(), 6);
}

#[test]
fn a_rolling_restart_to_the_new_protocol_and_back_has_one_owner_for_each_partition() {
    let mut test = shard();
    let ids = classic_group(&mut test, &[&[0, 1, 2], &[3, 4, 5]]);
    test.leave(&[(&ids[1], None)]);
    let ticket = test.join(owning(&[0, 1, 2], join_as(&ids[0])));
    assert_eq!(test.joined(ticket).generation_id, 2);
    test.sync(SyncGroupRequest {
        assignments: vec![(ids[0].clone(), assignment(&[0, 1, 2, 3, 4, 5]))],
        ..sync_as(&ids[0], 2)
    });
    let mut a = Client::joined(&mut test, "a");
    assert_eq!(test.heartbeat(&ids[0], 2), ErrorCode::REBALANCE_IN_PROGRESS);
    let (_, kept) = rejoin(&mut test, &ids[0], &[0, 1, 2, 3, 4, 5]);
    rejoin(&mut test, &ids[0], &kept);
    a.beat(&mut test);
    let both: Partitions = a.owned.iter().copied().chain(of_t(&kept).iter().copied()).collect();
    assert_eq!(both, of_t(&[0, 1, 2, 3, 4, 5]));
    assert_eq!((a.owned.len(), kept.len()), (3, 3));
    test.leave(&[(&ids[0], None)]);
    settle(&mut test, &mut [a.clone()]);
    assert_eq!(test.member("a").assignment[0].topic_id.as_u128(), T);
    let ticket = test.join(owning(&[], old_join()));
    let id = test.joined(ticket).member_id;
    test.beat(beat_of("a", -1));
    assert_eq!(&*test.list(&[], &[]).groups[0].group_type, "classic");
    let ticket = test.join(owning(&[], join_as(&id)));
    assert_eq!(test.joined(ticket).leader, id);
}

#[test]
fn what_cooperative_members_read_on_in_a_round_that_is_given_up_stays_their_own() {
    let mut test = shard();
    let ids = classic_group(&mut test, &[&[0, 1, 2], &[3, 4, 5]]);
    let tickets = [
        test.join(owning(&[0, 1, 2], join_as(&ids[0]))),
        test.join(owning(&[3, 4, 5], join_as(&ids[1]))),
    ];
    for ticket in tickets {
        assert_eq!(test.joined(ticket).generation_id, 2);
    }
    // Nobody has synced, and the next round begins.
    test.join(owning(&[], old_join()));
    let c = Client::joined(&mut test, "c");
    assert_eq!(c.owned.len(), 0);
    for (id, numbers) in ids.iter().zip([[0, 1, 2], [3, 4, 5]]) {
        assert_eq!(test.member(id).assignment[0].partitions, numbers);
    }
}

#[test]
fn a_classic_member_that_leaves_out_its_instance_keeps_it() {
    let mut test = shard();
    Client::joined(&mut test, "a");
    let ticket = test.join(owning(&[], static_join("i")));
    let id = test.joined(ticket).member_id;
    let ticket = test.join(owning(&[], join_as(&id)));
    assert_eq!(test.joined(ticket).member_id, id);
    assert_eq!(test.member(&id).group_instance_id.as_deref(), Some("i"));
    assert_eq!(test.leave(&[("", Some("i"))]), [ErrorCode::NONE]);
}

#[test]
fn who_asks_for_an_id_is_given_one_before_its_subscription_is_read() {
    let mut test = shard();
    Client::joined(&mut test, "a");
    let unreadable = |member_id: &str| {
        let mut request = owning(&[], join_as(&member_id.into()));
        request.require_known_member_id = true;
        request.protocols[0].metadata = Bytes::from_static(b"\xff");
        request
    };
    let ticket = test.join(unreadable(""));
    let given = test.join_reply(ticket);
    assert_eq!(given.error, ErrorCode::MEMBER_ID_REQUIRED);
    let ticket = test.join(unreadable(&given.member_id));
    let refused = test.join_reply(ticket);
    assert_eq!(
        (refused.error, &*refused.member_id),
        (ErrorCode::INCONSISTENT_GROUP_PROTOCOL, "")
    );
}

#[test]
fn a_group_that_cannot_become_one_of_consumers_says_why() {
    let mut test = with_policy(MigrationPolicy::Disabled);
    classic_group(&mut test, &[&[0]]);
    let refused = test.beat(join_of("c"));
    let why = "Cannot upgrade classic group g to consumer group because online upgrade is disabled.";
    assert_eq!(
        (refused.error, refused.error_message.as_deref()),
        (ErrorCode::GROUP_ID_NOT_FOUND, Some(why))
    );
}

#[test]
fn a_classic_member_that_was_taken_out_is_told_so_before_it_comes_in_again() {
    let mut test = shard();
    Client::joined(&mut test, "a");
    let id = test.member_id();
    test.leave(&[(&id, None)]);
    let ticket = test.join(owning(&[3], join_as(&id)));
    assert_eq!(test.join_reply(ticket).error, ErrorCode::UNKNOWN_MEMBER_ID);
    let ticket = test.join(owning(&[], join_as(&id)));
    assert_eq!(test.joined(ticket).member_id, id, "an id that was handed out");
}
