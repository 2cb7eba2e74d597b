//! Groups without members change their protocol with the first member that comes.

use super::consumer_client::{Client, beat_of, join_of, shard};
use super::requests::{commit_as, commit_of, first_join, join_as, old_join};
use crate::coordinator::event::Event;
use crate::wire::error_code::ErrorCode;

#[test]
fn an_empty_classic_group_becomes_a_consumer_group_and_keeps_its_offsets() {
    // Scenario 117.
    let mut test = shard();
    let ids = test.stable_group(1);
    test.commit(commit_as(&ids[0], 1, 5));
    test.leave(&[(&ids[0], None)]);
    assert_eq!(&*test.state(), "Empty");
    let a = Client::joined(&mut test, "a");
    assert_eq!((a.epoch, test.fetch("t")), (2, 5));
    assert_eq!(test.list(&[], &["consumer"]).groups.len(), 1);
    assert!(
        test.events
            .iter()
            .any(|event| matches!(event, Event::GroupConverted { to: "consumer", .. }))
    );
    let mut again = test.restarted();
    assert_eq!(again.describe_consumer(), test.describe_consumer());
}

#[test]
fn committed_offsets_alone_make_no_obstacle() {
    let mut test = shard();
    test.commit(commit_of(5));
    Client::joined(&mut test, "a");
    assert_eq!(test.fetch("t"), 5);
    let mut again = test.restarted();
    assert_eq!(again.describe_consumer(), test.describe_consumer());
}

#[test]
fn an_empty_consumer_group_becomes_a_classic_group_and_keeps_its_offsets() {
    // Scenario 117.
    let mut test = shard();
    let a = Client::joined(&mut test, "a");
    test.commit(commit_as(&a.id, 2, 5));
    test.beat(beat_of("a", -1));
    let ticket = test.join(old_join());
    test.advance_ms(3_000);
    assert_eq!(test.joined(ticket).generation_id, 1);
    assert_eq!(test.fetch("t"), 5);
    assert_eq!(test.list(&[], &["classic"]).groups.len(), 1);
    let mut again = test.restarted();
    assert_eq!(again.list(&[], &["classic"]).groups.len(), 1);
}

#[test]
fn a_refused_join_converts_nothing() {
    let mut test = shard();
    Client::joined(&mut test, "a");
    test.beat(beat_of("a", -1));
    let ticket = test.join(join_as(&"stranger".into()));
    assert_ne!(test.join_reply(ticket).error, ErrorCode::NONE);
    assert_eq!(test.list(&[], &["consumer"]).groups.len(), 1);
}

#[test]
fn an_id_that_was_handed_out_does_not_survive_the_conversion() {
    let mut test = shard();
    let ticket = test.join(first_join());
    let id = test.join_reply(ticket).member_id;
    Client::joined(&mut test, "a");
    test.advance_ms(20_000);
    assert_eq!(test.leave(&[(&id, None)]), [ErrorCode::UNKNOWN_MEMBER_ID]);
    assert_eq!(test.beat(beat_of("a", 2)).error, ErrorCode::NONE);
    assert_eq!(test.beat_error(join_of("")), ErrorCode::INVALID_REQUEST);
}
