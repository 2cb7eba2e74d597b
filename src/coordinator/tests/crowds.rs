//! Groups of thousands.

use std::time::{Duration, Instant};

use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{SESSION_MS, join_as, old_join, sync_as};
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{SyncGroupRequest, Text};
use crate::wire::error_code::ErrorCode;

const SESSION: u64 = SESSION_MS as u64;

/// What takes seconds with some thousands of members would take minutes if each of them looked at all others.
const NOT_QUADRATIC: Duration = Duration::from_secs(20);

#[test]
fn five_thousand_members_join_together_in_one_generation() {
    const MEMBERS: usize = 5_000;
    let began = Instant::now();
    let mut test = GroupTest::new();
    let tickets: Vec<Ticket> = (0..MEMBERS).map(|_| test.join(old_join())).collect();
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let leader = test.joined(tickets[0]);
    assert_eq!((leader.generation_id, leader.members.len()), (1, MEMBERS));
    let ids: Vec<Text> = tickets.iter().map(|ticket| test.joined(*ticket).member_id).collect();
    let assignment = bytes::Bytes::from(vec![7; 100]);
    let sync = SyncGroupRequest {
        assignments: ids.iter().map(|id| (id.clone(), assignment.clone())).collect(),
        ..sync_as(&ids[0], 1)
    };
    let followers: Vec<Ticket> = ids[1..].iter().map(|id| test.sync(sync_as(id, 1))).collect();
    test.sync(sync);
    for follower in followers {
        assert_eq!(test.sync_reply(follower).assignment, assignment);
    }
    assert_eq!(&*test.state(), "Stable");
    assert_eq!(test.describe().members.len(), MEMBERS);
    for id in &ids {
        assert_eq!(test.heartbeat(id, 1), ErrorCode::NONE);
    }
    assert!(began.elapsed() < NOT_QUADRATIC, "{:?}", began.elapsed());
}

#[test]
fn a_thousand_sessions_end_in_one_moment_while_others_join() {
    const MEMBERS: usize = 1_000;
    let began = Instant::now();
    let mut test = GroupTest::new();
    let ids = test.form((0..MEMBERS).map(|_| old_join()).collect());
    test.advance_ms(SESSION - 1);
    assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
    let newcomers: Vec<Ticket> = (0..10).map(|_| test.join(old_join())).collect();
    // Somebody's request is what brings it on.
    test.stall_ms(1);
    let rejoined = test.join(join_as(&ids[0]));
    assert_eq!(test.joined(rejoined).members.len(), 11);
    for newcomer in newcomers {
        assert_eq!(test.joined(newcomer).generation_id, 2);
    }
    assert_eq!(test.view().groups[0].members.len(), 11);
    assert!(began.elapsed() < NOT_QUADRATIC, "{:?}", began.elapsed());
}
