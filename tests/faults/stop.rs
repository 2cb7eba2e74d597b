//! SIGTERM while clients commit and members wait for their groups.

use std::io;
use std::time::{Duration, Instant};

use convoke_support::Result;
use convoke_support::convoke::Convoke;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::{GroupId, JoinGroupRequest, JoinGroupResponse, SyncGroupRequest};
use kafka_protocol::protocol::StrBytes;

use crate::committers::{Committers, expect_kept};
use crate::raw::Raw;
use crate::{CONVOKE, eventually, is_retriable, kafka};

const COMMITTERS: usize = 30;
const PARKED_JOINS: usize = 40;
/// `drain_timeout`, and what a busy machine takes on top.
const DRAIN: Duration = Duration::from_secs(8);
const SLACK: Duration = Duration::from_secs(7);

fn join(group: &str, member_id: &str) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(StrBytes::from_static_str("range"))
        .with_metadata(vec![7; 1000].into());
    JoinGroupRequest::default()
        .with_group_id(GroupId(StrBytes::from_string(group.to_owned())))
        .with_session_timeout_ms(300_000)
        .with_rebalance_timeout_ms(300_000)
        .with_member_id(StrBytes::from_string(member_id.to_owned()))
        .with_protocol_type(StrBytes::from_static_str("consumer"))
        .with_protocols(vec![protocol])
}

fn joined(client: &mut Raw, group: &str) -> Result<JoinGroupResponse> {
    let mut answer = JoinGroupResponse::default();
    eventually("a join", || {
        answer = client.ask(3, &join(group, ""))?;
        Ok(!is_retriable(answer.error_code))
    })?;
    match answer.error_code {
        0 => Ok(answer),
        error => Err(format!("a join was answered with {error}").into()),
    }
}

/// A group whose first member is awaited by all others, who are parked.
fn parked_joins(address: &str) -> Result<(Raw, Vec<Raw>)> {
    let mut first = Raw::connect(address)?;
    joined(&mut first, "joining")?;
    let mut parked = Vec::new();
    for _ in 0..PARKED_JOINS {
        let mut client = Raw::connect(address)?;
        client.send(3, &join("joining", ""))?;
        parked.push(client);
    }
    Ok((first, parked))
}

/// A group of two, whose follower is parked in its sync.
fn parked_sync(address: &str) -> Result<(Raw, Raw)> {
    let (mut leader, mut follower) = (Raw::connect(address)?, Raw::connect(address)?);
    let first = joined(&mut leader, "syncing")?;
    follower.send(3, &join("syncing", ""))?;
    // The follower's join may be heard only after the leader's: then that one has the answer to its first once more.
    eventually("a group of two", || {
        let again: JoinGroupResponse = leader.ask(3, &join("syncing", &first.member_id))?;
        Ok(again.members.len() == 2)
    })?;
    let joined = follower.receive::<JoinGroupRequest>(3)?;
    let sync = SyncGroupRequest::default()
        .with_group_id(GroupId(StrBytes::from_static_str("syncing")))
        .with_generation_id(joined.generation_id)
        .with_member_id(joined.member_id);
    follower.send(3, &sync)?;
    Ok((leader, follower))
}

/// An answer that makes the member look for its coordinator, or the end of the connection, in good order.
fn expect_turned_away(outcome: Result<i16>) -> Result<()> {
    match outcome {
        Ok(error) if is_retriable(error) => Ok(()),
        Ok(error) => Err(format!("a parked request was answered with {error}").into()),
        Err(error) => {
            let ended = error.downcast_ref::<io::Error>().map(io::Error::kind);
            match ended {
                Some(io::ErrorKind::UnexpectedEof) => Ok(()),
                _ => Err(format!("a parked request: {error}").into()),
            }
        }
    }
}

#[test]
fn a_stop_under_load_answers_all_who_wait_ends_in_time_and_loses_nothing() -> Result<()> {
    let kafka = kafka()?;
    let mut convoke = Convoke::start(CONVOKE, &kafka, &[])?;
    let address = convoke.nodes()[&1].clone();
    let (_first, mut joins) = parked_joins(&address)?;
    let (_leader, mut sync) = parked_sync(&address)?;
    let committers = Committers::start(&address, COMMITTERS);
    eventually("all that is to wait", || {
        let parked = convoke.metric("convoke_parked_requests", &[])?;
        Ok(parked as usize == PARKED_JOINS + 1 && committers.all_beyond(&[10; COMMITTERS]))
    })?;

    let process = convoke.process()?;
    let told = Instant::now();
    process.terminate();
    for client in &mut joins {
        expect_turned_away(client.receive::<JoinGroupRequest>(3).map(|answer| answer.error_code))?;
    }
    expect_turned_away(sync.receive::<SyncGroupRequest>(3).map(|answer| answer.error_code))?;
    let answered = told.elapsed();
    let status = process.wait(DRAIN + SLACK)?;
    let took = told.elapsed();
    assert_eq!(status.code(), Some(0), "{}", process.report());
    assert!(took < DRAIN + SLACK, "{took:?}");
    println!("all who waited were answered after {answered:?}, the process ended after {took:?}");
    let acknowledged = committers.end()?;

    convoke.restart(&kafka)?;
    expect_kept(&convoke.nodes()[&1].clone(), &acknowledged)?;
    convoke.stop()
}
