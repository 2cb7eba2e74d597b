//! `kill -9` over and over under members and a simple committer that speak exactly.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use convoke_support::Result;
use convoke_support::convoke::Convoke;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DescribeGroupsRequest, FindCoordinatorRequest, GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse,
    OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::raw::Raw;
use crate::{CONVOKE, eventually, is_retriable, kafka};

const GROUP: &str = "crashing \u{1f680} größe";
/// What quoting, text conversion or a terminating zero would change.
const ODD_BYTES: &[u8] = b"\0\x01\0\0\0\x01\0\x01t\xff\xff\xff\xff \"quoted\\\" \xc3\x28\0";
const ODD_TEXT: &str = "\0\0 \"quoted\\\" \u{1f600} ' {}";
const CRASHES: i64 = 6;
/// From a start to the first answers.
const SOON: Duration = Duration::from_secs(20);

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn group() -> GroupId {
    GroupId(text(GROUP))
}

fn topic() -> TopicName {
    TopicName(text("t"))
}

fn join(member_id: &str, instance_id: Option<&str>) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(Bytes::from_static(ODD_BYTES));
    JoinGroupRequest::default()
        .with_group_id(group())
        .with_session_timeout_ms(300_000)
        .with_rebalance_timeout_ms(300_000)
        .with_member_id(text(member_id))
        .with_group_instance_id(instance_id.map(text))
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol])
}

/// Asks until the answer is none that is retried.
fn joined(client: &mut Raw, request: &JoinGroupRequest) -> Result<JoinGroupResponse> {
    let mut answer = JoinGroupResponse::default();
    eventually("a join", || {
        answer = client.ask(5, request)?;
        Ok(!is_retriable(answer.error_code))
    })?;
    Ok(answer)
}

fn sync(client: &mut Raw, member_id: &str, generation_id: i32, to: &[&str]) -> Result<Bytes> {
    let assignments = to.iter().map(|id| {
        SyncGroupRequestAssignment::default()
            .with_member_id(text(id))
            .with_assignment(Bytes::from_static(ODD_BYTES))
    });
    let request = SyncGroupRequest::default()
        .with_group_id(group())
        .with_member_id(text(member_id))
        .with_generation_id(generation_id)
        .with_assignments(assignments.collect());
    let answer = client.ask(3, &request)?;
    match answer.error_code {
        0 => Ok(answer.assignment),
        error => Err(format!("a sync was answered with {error}").into()),
    }
}

/// A dynamic leader and a static member; their ids, and the generation.
fn form(dynamic: &mut Raw, fixed: &mut Raw) -> Result<(String, String, i32)> {
    let id = joined(dynamic, &join("", None))?.member_id.to_string();
    let mut leader = joined(dynamic, &join(&id, None))?;
    fixed.send(5, &join("", Some("i")))?;
    // Until the other's join is heard the leader is told its generation once more.
    eventually("a group of two", || {
        leader = dynamic.ask(5, &join(&id, None))?;
        Ok(leader.members.len() == 2)
    })?;
    let follower = fixed.receive::<JoinGroupRequest>(5)?;
    let (fixed_id, generation_id) = (follower.member_id.to_string(), leader.generation_id);
    sync(dynamic, &id, generation_id, &[&id, &fixed_id])?;
    sync(fixed, &fixed_id, generation_id, &[])?;
    Ok((id, fixed_id, generation_id))
}

fn beat(client: &mut Raw, member_id: &str, instance_id: Option<&str>, generation_id: i32) -> Result<i16> {
    let request = HeartbeatRequest::default()
        .with_group_id(group())
        .with_member_id(text(member_id))
        .with_group_instance_id(instance_id.map(text))
        .with_generation_id(generation_id);
    Ok(client.ask(3, &request)?.error_code)
}

fn commit(client: &mut Raw, member_id: &str, generation_id: i32, offset: i64) -> Result<i16> {
    let partition = OffsetCommitRequestPartition::default()
        .with_committed_offset(offset)
        .with_committed_metadata(Some(text(ODD_TEXT)));
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic())
        .with_partitions(vec![partition]);
    let request = OffsetCommitRequest::default()
        .with_group_id(group())
        .with_member_id(text(member_id))
        .with_generation_id_or_member_epoch(generation_id)
        .with_topics(vec![topic]);
    Ok(client.ask(7, &request)?.topics[0].partitions[0].error_code)
}

/// Offset and metadata that are committed.
fn committed(client: &mut Raw) -> Result<(i64, Option<String>)> {
    let topic = OffsetFetchRequestTopic::default()
        .with_name(topic())
        .with_partition_indexes(vec![0]);
    let request = OffsetFetchRequest::default()
        .with_group_id(group())
        .with_topics(Some(vec![topic]));
    let answer = client.ask(5, &request)?;
    let partition = &answer.topics[0].partitions[0];
    let metadata = partition.metadata.as_ref().map(ToString::to_string);
    Ok((partition.committed_offset, metadata))
}

/// Where the group's coordinator is, by the bootstrap address.
fn coordinator(bootstrap: &str) -> Result<String> {
    let mut client = Raw::connect(bootstrap)?;
    let mut address = String::new();
    eventually("a coordinator", || {
        let request = FindCoordinatorRequest::default().with_key(group().0);
        let found = client.ask(2, &request)?;
        address = format!("{}:{}", found.host.as_str(), found.port);
        Ok(found.error_code == 0)
    })?;
    Ok(address)
}

#[test]
fn members_and_commits_go_on_after_every_crash_where_the_coordinator_is_said_to_be() -> Result<()> {
    let kafka = kafka()?;
    let mut convoke = Convoke::start(CONVOKE, &kafka, &[])?;
    let address = coordinator(&convoke.bootstrap())?;
    assert_eq!(address, convoke.nodes()[&1]);
    let (mut dynamic, mut fixed) = (Raw::connect(&address)?, Raw::connect(&address)?);
    let (id, mut fixed_id, generation_id) = form(&mut dynamic, &mut fixed)?;
    assert_eq!(commit(&mut dynamic, &id, generation_id, 0)?, 0);
    let mut static_ids = BTreeSet::from([fixed_id.clone()]);
    for crash in 1..=CRASHES {
        convoke.kill();
        let began = Instant::now();
        convoke.restart(&kafka)?;
        assert_eq!(coordinator(&convoke.bootstrap())?, address, "it is where it was");
        let (mut dynamic, mut fixed) = (Raw::connect(&address)?, Raw::connect(&address)?);
        assert_eq!(beat(&mut dynamic, &id, None, generation_id)?, 0);
        assert_eq!(beat(&mut fixed, &fixed_id, Some("i"), generation_id)?, 0);
        let kept = (crash - 1, Some(ODD_TEXT.to_owned()));
        assert_eq!(committed(&mut dynamic)?, kept);
        assert_eq!(commit(&mut dynamic, &id, generation_id, crash)?, 0);
        let took = began.elapsed();
        assert!(took < SOON, "{took:?}");

        // The static one comes back without its id, and is told what it had.
        let back = joined(&mut fixed, &join("", Some("i")))?;
        assert_eq!((back.error_code, back.generation_id), (0, generation_id));
        assert!(
            static_ids.insert(back.member_id.to_string()),
            "{} again",
            back.member_id
        );
        assert_eq!(beat(&mut fixed, &fixed_id, Some("i"), generation_id)?, 82);
        fixed_id = back.member_id.to_string();
        assert_eq!(sync(&mut fixed, &fixed_id, generation_id, &[])?, ODD_BYTES);
        let described = DescribeGroupsRequest::default().with_groups(vec![group()]);
        let described = dynamic.ask(4, &described)?.groups.remove(0);
        assert_eq!((described.group_state.as_str(), described.members.len()), ("Stable", 2));
        for member in described.members {
            assert_eq!(
                (&member.member_metadata[..], &member.member_assignment[..]),
                (ODD_BYTES, ODD_BYTES)
            );
        }
    }
    convoke.stop()
}
