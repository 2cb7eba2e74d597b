//! DescribeGroups, ListGroups and the view for people.

use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{REBALANCE_MS, SESSION_MS, commit_of, join_as, old_join, protocols, static_join};
use crate::coordinator::request::{DescribedMember, JoinGroupRequest, MemberView};
use crate::wire::error_code::ErrorCode;

#[test]
fn a_member_keeps_the_client_that_it_came_with_first() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    let before = test.describe().members[0].clone();
    let elsewhere = JoinGroupRequest {
        client_id: "another".into(),
        client_host: "/10.9.8.7".into(),
        ..join_as(&ids[0])
    };
    let ticket = test.join(elsewhere);
    assert_eq!(test.joined(ticket).generation_id, 2);
    let after = test.describe().members[0].clone();
    assert_eq!(
        (after.client_id, after.client_host),
        (before.client_id, before.client_host)
    );
}

#[test]
fn a_stable_group_is_described_with_protocol_metadata_and_assignments() {
    let mut test = GroupTest::new();
    let ids = test.form(vec![old_join(), static_join("i")]);
    let described = test.describe();
    assert_eq!((described.error, &*described.state), (ErrorCode::NONE, "Stable"));
    assert_eq!(
        (&*described.protocol_type, &*described.protocol_name),
        ("consumer", "range")
    );
    let member = |place: usize, instance_id: Option<&str>| DescribedMember {
        member_id: ids[place].clone(),
        group_instance_id: instance_id.map(Into::into),
        client_id: "client".into(),
        client_host: "/10.0.0.1".into(),
        metadata: protocols(&["range"])[0].metadata.clone(),
        assignment: format!("a{place}").into(),
    };
    assert_eq!(described.members, [member(0, None), member(1, Some("i"))]);
}

#[test]
fn a_group_that_rebalances_is_described_without_protocol_and_metadata() {
    // 140
    let mut test = GroupTest::new();
    let ids = test.stable_group(2);
    test.join(join_as(&ids[0]));
    let described = test.describe();
    assert_eq!(
        (&*described.state, &*described.protocol_name),
        ("PreparingRebalance", "")
    );
    let shown: Vec<_> = described
        .members
        .iter()
        .map(|member| (&member.metadata[..], &member.assignment[..]))
        .collect();
    assert_eq!(shown, [(&b""[..], &b"a0"[..]), (&b""[..], &b"a1"[..])]);
    test.join(join_as(&ids[1]));
    assert_eq!(
        (&*test.describe().state, &*test.describe().protocol_name),
        ("CompletingRebalance", "")
    );
}

#[test]
fn a_group_of_ours_that_does_not_exist_any_more_is_described_as_dead() {
    // 140
    let mut test = GroupTest::new();
    test.commit(commit_of(1));
    test.delete_group();
    let described = test.describe();
    assert_eq!(
        (described.error, &*described.state, described.members),
        (ErrorCode::NONE, "Dead", Vec::new())
    );
}

#[test]
fn groups_are_listed_by_state_whatever_the_case_and_the_blanks_of_the_filter() {
    // 141
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    let count = |test: &mut GroupTest, states: &[&str], types: &[&str]| test.list(states, types).groups.len();
    assert_eq!(count(&mut test, &[], &[]), 1);
    assert_eq!(count(&mut test, &["stable", " Empty "], &[]), 1);
    assert_eq!(count(&mut test, &["empty"], &[]), 0);
    assert_eq!(count(&mut test, &["bogus"], &[]), 0);
    test.leave(&[(&ids[0], None)]);
    assert_eq!(count(&mut test, &[" Empty "], &[]), 1);
    assert_eq!(count(&mut test, &[], &["CLASSIC"]), 1);
    assert_eq!(count(&mut test, &[], &["consumer"]), 0);
    assert_eq!(count(&mut test, &[], &["bogus"]), 0);
}

#[test]
fn a_list_names_every_group_of_ours_whatever_the_filters() {
    let mut test = GroupTest::new();
    test.commit(commit_of(1));
    let listed = test.list(&["Stable"], &[]);
    assert_eq!(listed.groups, []);
    assert_eq!(listed.owned, ["g".into()]);
    test.delete_group();
    let listed = test.list(&[], &[]);
    assert_eq!(listed.groups, []);
    assert_eq!(listed.owned, ["g".into()]);
}

#[test]
fn a_group_that_only_has_offsets_is_listed_as_empty_without_a_protocol_type() {
    let mut test = GroupTest::new();
    test.commit(commit_of(1));
    let listed = test.list(&[], &[]).groups;
    assert_eq!(
        (&*listed[0].state, &*listed[0].protocol_type, &*listed[0].group_type),
        ("Empty", "", "classic")
    );
}

#[test]
fn the_view_shows_who_is_parked_and_how_many_offsets_there_are() {
    let mut test = GroupTest::new();
    test.commit(commit_of(1));
    let ticket = test.join(JoinGroupRequest {
        client_host: "/10.9.8.7".into(),
        ..old_join()
    });
    let view = test.view();
    assert_eq!((view.parked_joins, view.parked_syncs), (1, 0));
    assert_eq!(view.groups[0].offsets, 1);
    assert!(view.groups[0].members[0].parked);
    test.advance_ms(INITIAL_DELAY_MS);
    let id = test.joined(ticket).member_id;
    let view = test.view();
    assert_eq!((view.parked_joins, &*view.groups[0].state), (0, "CompletingRebalance"));
    assert_eq!(view.groups[0].state_since_ms, test.wall_ms());
    assert_eq!(view.groups[0].leader.as_ref(), Some(&id));
    assert_eq!(
        view.groups[0].members,
        [MemberView {
            member_id: id,
            group_instance_id: None,
            client_id: "client".into(),
            client_host: "/10.9.8.7".into(),
            session_timeout_ms: SESSION_MS,
            rebalance_timeout_ms: REBALANCE_MS,
            assignment: "".into(),
            parked: false,
            consumer: None,
        }]
    );
}
