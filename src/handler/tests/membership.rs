//! Join, sync, heartbeat and leave.

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse,
    SyncGroupRequest, SyncGroupResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::kit::*;
use crate::wire::api::{HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP};

pub(super) fn join(group_id: &str, member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest::default()
        .with_group_id(string(group_id).into())
        .with_session_timeout_ms(10_000)
        .with_rebalance_timeout_ms(20_000)
        .with_member_id(string(member_id))
        .with_protocol_type(string("consumer"))
        .with_protocols(vec![
            JoinGroupRequestProtocol::default()
                .with_name(string("range"))
                .with_metadata(Bytes::from_static(b"subscription")),
        ])
}

pub(super) fn sync(group_id: &str, member_id: &str, generation_id: i32, version: i16) -> SyncGroupRequest {
    let request = SyncGroupRequest::default()
        .with_group_id(string(group_id).into())
        .with_generation_id(generation_id)
        .with_member_id(string(member_id))
        .with_assignments(vec![
            SyncGroupRequestAssignment::default()
                .with_member_id(string(member_id))
                .with_assignment(Bytes::from_static(b"assignment")),
        ]);
    if version < 5 {
        return request;
    }
    request
        .with_protocol_type(Some(string("consumer")))
        .with_protocol_name(Some(string("range")))
}

pub(super) fn heartbeat(group_id: &str, member_id: &str, generation_id: i32) -> HeartbeatRequest {
    HeartbeatRequest::default()
        .with_group_id(string(group_id).into())
        .with_generation_id(generation_id)
        .with_member_id(string(member_id))
}

pub(super) fn leave(group_id: &str, member_id: &str, version: i16) -> LeaveGroupRequest {
    let request = LeaveGroupRequest::default().with_group_id(string(group_id).into());
    if version < 3 {
        return request.with_member_id(string(member_id));
    }
    request.with_members(vec![MemberIdentity::default().with_member_id(string(member_id))])
}

/// Joins alone; from v4 on in two steps.
pub(super) async fn joined(setup: &Setup, group_id: &str, version: i16) -> JoinGroupResponse {
    let mut response: JoinGroupResponse = setup.ask(JOIN_GROUP, version, &join(group_id, "")).await;
    if version >= 4 {
        assert_eq!(response.error_code, 79, "v{version}");
        assert_eq!(response.generation_id, -1);
        assert!(response.member_id.starts_with("tester-"), "{}", response.member_id);
        let again = join(group_id, &response.member_id);
        response = setup.ask(JOIN_GROUP, version, &again).await;
    }
    response
}

#[tokio::test]
async fn a_member_lives_from_join_to_leave_in_every_version() {
    let setup = Setup::new().await;
    for version in 0..=9 {
        let group_id = format!("g{version}");
        let joined = joined(&setup, &group_id, version).await;
        assert_eq!(joined.error_code, 0, "v{version}");
        assert_eq!(joined.generation_id, 1);
        assert_eq!(joined.protocol_name.as_deref(), Some("range"));
        assert_eq!(joined.protocol_type.as_deref(), (version >= 7).then_some("consumer"));
        assert_eq!(joined.leader, joined.member_id);
        assert!(!joined.skip_assignment);
        assert_eq!(joined.members.len(), 1);
        assert_eq!(joined.members[0].metadata, Bytes::from_static(b"subscription"));

        let member_id = joined.member_id;
        let sync_version = version.min(5);
        let request = sync(&group_id, &member_id, 1, sync_version);
        let synced: SyncGroupResponse = setup.ask(SYNC_GROUP, sync_version, &request).await;
        assert_eq!(synced.error_code, 0, "v{sync_version}");
        assert_eq!(synced.assignment, Bytes::from_static(b"assignment"));
        let shows_protocol = sync_version >= 5;
        assert_eq!(synced.protocol_type.as_deref(), shows_protocol.then_some("consumer"));
        assert_eq!(synced.protocol_name.as_deref(), shows_protocol.then_some("range"));

        for version in versions::<HeartbeatRequest>() {
            let beat = heartbeat(&group_id, &member_id, 1);
            let response: HeartbeatResponse = setup.ask(HEARTBEAT, version, &beat).await;
            assert_eq!(response.error_code, 0, "v{version}");
            let late = heartbeat(&group_id, &member_id, 7);
            let response: HeartbeatResponse = setup.ask(HEARTBEAT, version, &late).await;
            assert_eq!(response.error_code, 22, "v{version}");
        }

        let leave_version = version.min(5);
        let request = leave(&group_id, &member_id, leave_version);
        let left: LeaveGroupResponse = setup.ask(LEAVE_GROUP, leave_version, &request).await;
        assert_eq!(left.error_code, 0);
        assert_eq!(left.members.len(), usize::from(leave_version >= 3));
        let beat = heartbeat(&group_id, &member_id, 1);
        let response: HeartbeatResponse = setup.ask(HEARTBEAT, 4, &beat).await;
        assert_eq!(response.error_code, 25);
    }
}

#[tokio::test]
async fn a_join_error_echoes_the_member_and_its_protocol_name_is_null_from_v7_on() {
    let setup = Setup::new().await;
    for version in versions::<JoinGroupRequest>() {
        for (group_id, error) in [("", 24), ("g", 25)] {
            let request = join(group_id, "somebody");
            let response: JoinGroupResponse = setup.ask(JOIN_GROUP, version, &request).await;
            assert_eq!(response.error_code, error, "v{version} {group_id:?}");
            assert_eq!(response.generation_id, -1);
            assert_eq!(response.member_id.as_str(), "somebody");
            assert_eq!(response.leader.as_str(), "");
            assert_eq!(response.protocol_name.as_deref(), (version < 7).then_some(""));
            assert!(response.members.is_empty());
        }
        let impatient = join("g", "").with_session_timeout_ms(1);
        let response: JoinGroupResponse = setup.ask(JOIN_GROUP, version, &impatient).await;
        assert_eq!(response.error_code, 26, "v{version}");
    }
}

#[tokio::test]
async fn without_a_rebalance_timeout_the_session_timeout_is_it() {
    use crate::coordinator::request::{Request, Response};
    let setup = Setup::new().await;
    for (version, said, expected) in [
        (0, 20_000, 10_000),
        (1, 20_000, 20_000),
        (1, -1, 10_000),
        (3, -1, 10_000),
    ] {
        let group_id = format!("g{version}{said}");
        let request = join(&group_id, "").with_rebalance_timeout_ms(said);
        let joined: JoinGroupResponse = setup.ask(JOIN_GROUP, version, &request).await;
        assert_eq!(joined.error_code, 0, "v{version}");
        let views = setup.services.coordinator.call_all(Request::View).await;
        let groups = views.into_iter().flat_map(|(_, response)| match response {
            Response::View(view) => view.groups,
            other => panic!("{other:?}"),
        });
        let group = groups
            .into_iter()
            .find(|group| *group.group_id == *group_id)
            .expect("it joined");
        assert_eq!(group.members[0].rebalance_timeout_ms, expected);
        assert_eq!(&*group.members[0].client_host, "/127.0.0.1");
    }
}

#[tokio::test]
async fn a_static_member_keeps_its_place_and_the_old_id_is_fenced() {
    let setup = Setup::new().await;
    let with_instance = |member_id: &str| join("g", member_id).with_group_instance_id(Some(string("i")));
    let first: JoinGroupResponse = setup.ask(JOIN_GROUP, 5, &with_instance("")).await;
    assert_eq!(first.error_code, 0, "a static member joins in one step");
    assert_eq!(first.members[0].group_instance_id.as_deref(), Some("i"));
    let old_id = first.member_id;
    let synced: SyncGroupResponse = setup.ask(SYNC_GROUP, 3, &sync("g", &old_id, 1, 3)).await;
    assert_eq!(synced.error_code, 0);
    for version in [5, 9] {
        let again: JoinGroupResponse = setup.ask(JOIN_GROUP, version, &with_instance("")).await;
        assert_eq!((again.error_code, again.generation_id), (0, 1), "v{version}");
        assert_eq!(again.skip_assignment, version == 9);
    }
    let beat = heartbeat("g", &old_id, 1).with_group_instance_id(Some(string("i")));
    for version in 3..=4 {
        let response: HeartbeatResponse = setup.ask(HEARTBEAT, version, &beat).await;
        assert_eq!(response.error_code, 82, "v{version}");
    }
    for version in 3..=5 {
        let by_old_id = MemberIdentity::default()
            .with_member_id(old_id.clone())
            .with_group_instance_id(Some(string("i")));
        let stranger = MemberIdentity::default().with_member_id(string("stranger"));
        let request = LeaveGroupRequest::default()
            .with_group_id(string("g").into())
            .with_members(vec![by_old_id, stranger]);
        let left: LeaveGroupResponse = setup.ask(LEAVE_GROUP, version, &request).await;
        assert_eq!(left.error_code, 0);
        let errors: Vec<_> = left.members.iter().map(|member| member.error_code).collect();
        assert_eq!(errors, [82, 25], "v{version}");
        assert_eq!(left.members[0].group_instance_id.as_deref(), Some("i"));
    }
}

#[tokio::test]
async fn the_error_of_a_lone_leaver_is_hoisted_below_v3() {
    let setup = Setup::new().await;
    joined(&setup, "g", 0).await;
    for group_id in ["g", "unknown"] {
        for version in versions::<LeaveGroupRequest>() {
            let request = leave(group_id, "stranger", version);
            let (left, counted) = setup
                .exchange::<LeaveGroupResponse>(
                    LEAVE_GROUP,
                    version,
                    encode(&request, version),
                    &mut Upstream::unused(),
                )
                .await;
            assert_eq!(counted.0, 25);
            if version < 3 {
                assert_eq!(left.error_code, 25, "v{version} {group_id}");
            } else {
                assert_eq!(left.error_code, 0, "v{version} {group_id}");
                assert_eq!(left.members[0].error_code, 25);
            }
        }
    }
}

#[tokio::test]
async fn sync_v5_must_name_the_protocol_whatever_the_group() {
    let setup = Setup::new().await;
    let complete = sync("g", "m", 1, 5);
    for request in [
        complete.clone().with_protocol_type(None),
        complete.clone().with_protocol_name(None),
        complete
            .clone()
            .with_protocol_name(None)
            .with_group_id(StrBytes::default().into()),
    ] {
        let response: SyncGroupResponse = setup.ask(SYNC_GROUP, 5, &request).await;
        assert_eq!(response.error_code, 23);
    }
    let response: SyncGroupResponse = setup.ask(SYNC_GROUP, 5, &complete).await;
    assert_eq!(response.error_code, 25);
}

#[tokio::test]
async fn an_empty_group_id_is_invalid_for_members() {
    let setup = Setup::new().await;
    for version in versions::<SyncGroupRequest>() {
        let response: SyncGroupResponse = setup.ask(SYNC_GROUP, version, &sync("", "m", 1, version)).await;
        assert_eq!(response.error_code, 24, "v{version}");
    }
    for version in versions::<HeartbeatRequest>() {
        let response: HeartbeatResponse = setup.ask(HEARTBEAT, version, &heartbeat("", "m", 1)).await;
        assert_eq!(response.error_code, 24, "v{version}");
    }
    for version in versions::<LeaveGroupRequest>() {
        let response: LeaveGroupResponse = setup.ask(LEAVE_GROUP, version, &leave("", "m", version)).await;
        assert_eq!(response.error_code, 24, "v{version}");
    }
}

#[tokio::test]
async fn nothing_that_enters_state_keeps_the_frame_alive() {
    let setup = Setup::new().await;
    let frame = encode(&join("g", "").with_reason(Some(string(&"x".repeat(1_000)))), 8);
    let (response, _) = setup
        .exchange::<JoinGroupResponse>(JOIN_GROUP, 8, frame.clone(), &mut Upstream::unused())
        .await;
    let again = encode(&join("g", &response.member_id), 8);
    setup
        .exchange::<JoinGroupResponse>(JOIN_GROUP, 8, again.clone(), &mut Upstream::unused())
        .await;
    assert!(frame.is_unique() && again.is_unique());
}

#[test]
fn a_reason_is_cut_to_what_a_log_line_bears() {
    use crate::handler::join_group::reason;
    assert_eq!(reason(None), None);
    assert_eq!(reason(Some(&string(""))), None);
    assert_eq!(reason(Some(&string("rebalance"))).as_deref(), Some("rebalance"));
    let cut = reason(Some(&string(&"é".repeat(1_000)))).expect("words");
    assert_eq!(cut.chars().count(), 255);
}
