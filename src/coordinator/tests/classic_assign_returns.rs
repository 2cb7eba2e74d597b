//! Static members that come back in the middle of a round, in groups that are assigned for: their first join may have been under way for
//! so long that who sent it has been a member for a while, and reads on until it is told that it is fenced.

use super::classic_assign::{Cooperative, of_t, offering, shard};
use super::classic_computing::{installed, shard as shard_outside};
use super::computing_client::install_of;
use super::consumer_migration::metadata;
use super::group_test::{GroupTest, INITIAL_DELAY_MS};
use super::requests::{SESSION_MS, join_as, static_join, subscription, sync_as};
use crate::coordinator::event::RebalanceReason;
use crate::coordinator::input::Ticket;
use crate::coordinator::request::{HeartbeatRequest, JoinGroupRequest, SyncGroupRequest, Text};
use crate::wire::error_code::ErrorCode;

const INSTANCE: &str = "i";

fn returning() -> JoinGroupRequest {
    offering("cooperative-sticky", metadata(&[]), static_join(INSTANCE))
}

/// Again, with what it has and the id that it has now.
fn rejoin(test: &mut GroupTest, member_id: &Text, owned: &[i32]) -> Ticket {
    let join = JoinGroupRequest {
        group_instance_id: Some(INSTANCE.into()),
        ..join_as(member_id)
    };
    test.join(offering("cooperative-sticky", metadata(owned), join))
}

fn sync_of(test: &mut GroupTest, member_id: &Text, generation_id: i32) -> Ticket {
    test.sync(SyncGroupRequest {
        group_instance_id: Some(INSTANCE.into()),
        ..sync_as(member_id, generation_id)
    })
}

fn synced(test: &mut GroupTest, member_id: &Text, generation_id: i32) -> Vec<i32> {
    let ticket = sync_of(test, member_id, generation_id);
    of_t(&test.sync_reply(ticket).assignment)
}

fn heartbeat(test: &mut GroupTest, member_id: &Text, generation_id: i32) -> ErrorCode {
    test.heartbeat_of(HeartbeatRequest {
        group_id: "g".into(),
        generation_id,
        member_id: member_id.clone(),
        group_instance_id: Some(INSTANCE.into()),
    })
}

fn withheld(test: &mut GroupTest) -> usize {
    test.classic_view().partitions_withheld
}

/// A static member that has all of "t", and one that has come and waits for it to join.
fn one_waits(test: &mut GroupTest) -> (Text, Cooperative, Ticket) {
    let first = test.join(returning());
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let first = test.joined(first).member_id;
    assert_eq!(synced(test, &first, 1), [0, 1, 2, 3]);
    let newcomer = Cooperative::new(test);
    let waits = newcomer.join(test);
    test.events.clear();
    (first, newcomer, waits)
}

#[test]
fn what_the_former_self_may_read_goes_to_nobody_else_until_the_new_one_is_heard() {
    let mut test = shard(None);
    let (former, mut newcomer, waits) = one_waits(&mut test);
    let back = test.join(returning());
    let back = test.joined(back).member_id;
    assert!(!newcomer.sync(&mut test, waits));
    assert_eq!((&newcomer.owned[..], withheld(&mut test)), (&[][..], 2));
    assert_eq!(heartbeat(&mut test, &former, 1), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(test.began_because(), []);
    // It was a new process: the next round begins as soon as it is known, and gives what was held back.
    let kept = synced(&mut test, &back, 2);
    assert_eq!(test.began_because(), [RebalanceReason::PartitionsWithheld]);
    let waits = newcomer.join(&mut test);
    rejoin(&mut test, &back, &kept);
    newcomer.sync(&mut test, waits);
    assert_eq!(synced(&mut test, &back, 3), kept);
    assert_eq!((newcomer.owned.len(), kept.len(), withheld(&mut test)), (2, 2, 0));
    assert_eq!(test.began_because().len(), 1);
}

#[test]
fn the_next_round_waits_until_everybody_has_heard_of_this_one() {
    let mut test = shard(None);
    let (_, mut newcomer, waits) = one_waits(&mut test);
    let back = test.join(returning());
    let back = test.joined(back).member_id;
    synced(&mut test, &back, 2);
    assert_eq!(test.began_because(), []);
    newcomer.sync(&mut test, waits);
    assert_eq!(test.began_because(), [RebalanceReason::PartitionsWithheld]);
}

#[test]
fn a_join_that_nobody_waits_for_any_more_keeps_nothing_from_the_others_for_ever() {
    let mut test = shard(None);
    let (_, mut newcomer, waits) = one_waits(&mut test);
    test.join(returning());
    newcomer.sync(&mut test, waits);
    for _ in 0..SESSION_MS / 1_000 {
        test.heartbeat(&newcomer.id, newcomer.generation_id);
        test.advance_ms(1_000);
    }
    assert_eq!(test.began_because(), [RebalanceReason::SessionExpired]);
    let waits = newcomer.join(&mut test);
    newcomer.sync(&mut test, waits);
    assert_eq!(newcomer.owned, [0, 1, 2, 3]);
}

#[test]
fn who_fenced_itself_by_its_own_late_join_comes_back_and_the_group_settles() {
    let mut test = shard(None);
    let (former, mut newcomer, waits) = one_waits(&mut test);
    test.join(returning());
    newcomer.sync(&mut test, waits);
    assert_eq!(heartbeat(&mut test, &former, 1), ErrorCode::FENCED_INSTANCE_ID);
    let back = test.join(returning());
    assert_eq!(test.began_because(), [RebalanceReason::StaticMemberReplaced]);
    let waits = newcomer.join(&mut test);
    let back = test.joined(back).member_id;
    newcomer.sync(&mut test, waits);
    let kept = synced(&mut test, &back, 3);
    let waits = newcomer.join(&mut test);
    rejoin(&mut test, &back, &kept);
    newcomer.sync(&mut test, waits);
    assert_eq!((newcomer.owned.len(), withheld(&mut test)), (2, 0));
}

#[test]
fn one_that_comes_back_while_nothing_moves_away_from_it_costs_nobody_a_round() {
    let mut test = shard(None);
    let (_, mut newcomer, waits) = one_waits(&mut test);
    let back = test.join(returning());
    let back = test.joined(back).member_id;
    newcomer.sync(&mut test, waits);
    let kept = synced(&mut test, &back, 2);
    let waits = newcomer.join(&mut test);
    rejoin(&mut test, &back, &kept);
    newcomer.sync(&mut test, waits);
    synced(&mut test, &back, 3);
    test.events.clear();
    // While the group is stable nobody notices; in a round for another reason it keeps what it had.
    let again = test.join(returning());
    let again = test.joined(again).member_id;
    assert_eq!(synced(&mut test, &again, 3), kept);
    assert_eq!(test.began_because(), []);
    // It is subscribed to a topic more, which there is not.
    let more = [&[0, 1, 0, 0, 0, 2, 0, 1, b'z'], &metadata(&[])[6..]].concat();
    let again = test.join(offering("cooperative-sticky", more.into(), static_join(INSTANCE)));
    let waits = newcomer.join(&mut test);
    let again = test.joined(again).member_id;
    newcomer.sync(&mut test, waits);
    assert_eq!(synced(&mut test, &again, 4), kept);
    assert_eq!(withheld(&mut test), 0);
    assert_eq!(test.began_because(), [RebalanceReason::StaticMemberReplaced]);
}

#[test]
fn under_an_eager_protocol_nothing_is_withheld() {
    let mut test = shard(None);
    let eager = || offering("range", subscription(&["t"]), static_join(INSTANCE));
    let first = test.join(eager());
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let first = test.joined(first).member_id;
    assert_eq!(synced(&mut test, &first, 1), [0, 1, 2, 3]);
    let second = test.member_id();
    let waits = test.join(offering("range", subscription(&["t"]), join_as(&second)));
    let back = test.join(eager());
    let back = test.joined(back).member_id;
    test.joined(waits);
    let given = test.sync(sync_as(&second, 2));
    assert_eq!(of_t(&test.sync_reply(given).assignment).len(), 2);
    assert_eq!((synced(&mut test, &back, 2).len(), withheld(&mut test)), (2, 0));
}

#[test]
fn one_that_is_heard_while_an_external_assignor_computes_has_no_former_self() {
    let mut test = shard_outside();
    let first = test.join(returning());
    test.advance_ms(2 * INITIAL_DELAY_MS);
    let first = test.joined(first).member_id;
    test.told();
    test.give_all_to(0, "x", 1);
    assert_eq!(synced(&mut test, &first, 1), [0, 1, 2, 3]);
    let newcomer = Cooperative::new(&mut test);
    let waits = newcomer.join(&mut test);
    let back = test.join(returning());
    let back = test.joined(back).member_id;
    test.joined(waits);
    let kept = sync_of(&mut test, &back, 2);
    let given = test.sync(sync_as(&newcomer.id, 2));
    test.told();
    let prepared = test.prepare("x", 1);
    let had = prepared.members.iter().find(|member| member.member_id == back);
    assert_eq!(had.expect("a member").target.len(), 4);
    let members = vec![installed(&back, &[3]), installed(&newcomer.id, &[0, 1, 2])];
    assert_eq!(
        test.install(install_of("x", 1, &prepared, members)),
        (ErrorCode::NONE, None)
    );
    assert_eq!(of_t(&test.sync_reply(kept).assignment), [3]);
    assert_eq!(of_t(&test.sync_reply(given).assignment), [0, 1, 2]);
    assert_eq!(withheld(&mut test), 0);
}
