//! Heartbeats of both protocols, OffsetCommit and OffsetFetch at the broker's own coordinator and at Convoke.

use std::collections::BTreeMap;

use convoke_support::Result;

use crate::closed_loop::Repeated;
use crate::consumer::{self, Consumer};
use crate::group::{self, Member};
use crate::messages;
use crate::rig::{Rig, Route};
use crate::wire::{Client, frame};
use crate::work::Work;

/// Partitions of a commit and of a fetch.
const PARTITIONS: i32 = 10;
const TOPIC: &str = "bench-offsets";

/// The members of each coordinator, every one alone in a group of its own.
#[derive(Debug)]
pub struct Groups {
    members: BTreeMap<Route, Vec<Member>>,
    consumers: BTreeMap<Route, Vec<Consumer>>,
}

impl Groups {
    /// Joins `count` groups of each protocol at each of the routes that are coordinators, and commits once for each classic one.
    ///
    /// # Errors
    /// When a member cannot join.
    pub fn prepare(rig: &Rig, routes: &[Route], count: u32) -> Result<Self> {
        let mut broker = Client::connect(rig.address(Route::Direct)?)?;
        messages::create_topic(&mut broker, TOPIC, PARTITIONS, &[])?;
        let mut members: BTreeMap<Route, Vec<Member>> = BTreeMap::new();
        let mut consumers: BTreeMap<Route, Vec<Consumer>> = BTreeMap::new();
        for &route in routes {
            let mut client = Client::connect(rig.address(route)?)?;
            for number in 0..count {
                let member = group::join_alone(&mut client, &format!("bench-{}-{number}", route.name()))?;
                let commit = messages::offset_commit(&member, TOPIC, PARTITIONS);
                let answer = client.exchange(&frame(&commit, messages::OFFSET_COMMIT)?)?;
                messages::verify_offset_commit(&answer)?;
                members.entry(route).or_default().push(member);
                let group_id = format!("bench-consumer-{}-{number}", route.name());
                let consumer = consumer::join_alone(&mut client, &group_id, TOPIC, usize::try_from(PARTITIONS)?)?;
                consumers.entry(route).or_default().push(consumer);
            }
        }
        Ok(Self { members, consumers })
    }

    /// The requests of a work at a coordinator, one a member; none for works of another kind.
    ///
    /// # Errors
    /// When one cannot be encoded.
    pub fn requests(&self, work: Work, route: Route) -> Result<Vec<Repeated>> {
        if work == Work::ConsumerHeartbeat {
            let consumers = self.consumers.get(&route).into_iter().flatten();
            return consumers.map(consumer_heartbeat).collect();
        }
        let members = self.members.get(&route).into_iter().flatten();
        members.filter_map(|member| request(work, member).transpose()).collect()
    }
}

fn request(work: Work, member: &Member) -> Result<Option<Repeated>> {
    let (frame, verify): (_, crate::expectation::Verify) = match work {
        Work::Heartbeat => (
            frame(&messages::heartbeat(member), messages::HEARTBEAT)?,
            messages::verify_heartbeat,
        ),
        Work::OffsetCommit => {
            let request = messages::offset_commit(member, TOPIC, PARTITIONS);
            (
                frame(&request, messages::OFFSET_COMMIT)?,
                messages::verify_offset_commit,
            )
        }
        Work::OffsetFetch => {
            let request = messages::offset_fetch(member, TOPIC, PARTITIONS);
            (frame(&request, messages::OFFSET_FETCH)?, messages::verify_offset_fetch)
        }
        _ => return Ok(None),
    };
    Ok(Some(Repeated {
        frame,
        verify,
        walk: None,
    }))
}

fn consumer_heartbeat(consumer: &Consumer) -> Result<Repeated> {
    Ok(Repeated {
        frame: frame(&consumer.heartbeat(), consumer::HEARTBEAT)?,
        verify: consumer::verify_heartbeat,
        walk: None,
    })
}
