//! What is durable goes on after a restart as if nothing had been.

use super::consumer_client::{Client, join_of, settle, shard, shard_with, topics};
use super::consumer_migration::classic_group;
use super::requests::SESSION_MS;
use crate::coordinator::settings::Settings;

#[test]
fn members_go_on_with_their_epochs_and_nothing_moves() {
    let mut test = shard();
    let mut clients = [Client::joined(&mut test, "a"), Client::joined(&mut test, "b")];
    settle(&mut test, &mut clients);
    let before = test.describe_consumer();
    let mut again = test.restarted();
    assert_eq!(again.describe_consumer(), before);
    for client in &mut clients {
        let response = client.beat(&mut again);
        assert_eq!(response.assignment, None);
    }
    assert_eq!(again.records, []);
    assert_eq!(again.describe_consumer(), before);
}

#[test]
fn a_restart_at_any_point_of_a_rebalance_ends_well() {
    // After every record that was ever written.
    let mut test = shard();
    let a = Client::joined(&mut test, "a");
    let b = Client::joined(&mut test, "b");
    let c = Client::joined(&mut test, "c");
    settle(&mut test, &mut [a, b, c]);
    let all = test.records.clone();
    for end in 0..=all.len() {
        let mut test = shard();
        test.records = all[..end].to_vec();
        let mut test = test.restarted();
        let mut clients = ["a", "b", "c"].map(Client::new);
        for client in &mut clients {
            client.hear(&test.beat(join_of(&client.id)));
        }
        settle(&mut test, &mut clients);
        let mut numbers: Vec<i32> = clients.iter().flat_map(Client::numbers).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5], "after {end} records");
    }
}

#[test]
fn topics_that_changed_meanwhile_are_noticed() {
    let mut test = shard();
    let mut a = Client::joined(&mut test, "a");
    let mut again = test.restarted();
    again.tell_topics(topics(&[("t", 1, 9)]));
    a.beat(&mut again);
    assert_eq!(a.owned.len(), 9);
}

#[test]
fn sessions_begin_anew() {
    let mut test = shard_with(Settings::default());
    let ticket = test.send_beat(join_of("a"));
    test.advance_ms(20);
    assert!(test.is_answered(ticket));
    let mut again = test.restarted();
    again.advance_ms(44_999);
    assert_eq!(&*again.state(), "Stable");
    again.advance_ms(1);
    assert_eq!(&*again.state(), "Empty");
}

#[test]
fn a_classic_member_has_its_own_session_then_too() {
    let mut test = shard();
    classic_group(&mut test, &[&[0, 1, 2, 3, 4, 5]]);
    Client::joined(&mut test, "a");
    let mut again = test.restarted();
    again.advance_ms(SESSION_MS.unsigned_abs().into());
    let left = again.describe_consumer().members;
    assert_eq!(left.iter().map(|member| &*member.member_id).collect::<Vec<_>>(), ["a"]);
}
