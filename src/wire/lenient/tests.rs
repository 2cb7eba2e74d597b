use super::*;
use crate::wire::guard;
use crate::wire::schema::{
    API_VERSIONS_RESPONSE, CONSUMER_GROUP_HEARTBEAT_RESPONSE, HEARTBEAT_REQUEST, JOIN_GROUP_REQUEST,
    LEAVE_GROUP_REQUEST, OFFSET_FETCH_REQUEST,
};

fn made_plain(schema: &Schema, version: i16, body: &[u8]) -> Vec<u8> {
    let plain = plain(schema, version, body).expect("a broker takes it");
    guard::check(schema, version, &plain).expect("the guard takes what is plain");
    plain.to_vec()
}

fn problem(schema: &Schema, version: i16, body: &[u8]) -> String {
    plain(schema, version, body).expect_err("it is refused").to_string()
}

/// A Heartbeat v4 body with tagged fields and what follows them.
fn heartbeat(tagged: &[u8]) -> Vec<u8> {
    [&[2, b'g', 0, 0, 0, 1, 2, b'm', 0], tagged].concat()
}

#[test]
fn a_body_without_oddities_stays_as_it_is() {
    let join = [
        &[0, 1, b'g', 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0xff, 0xff][..],
        &[0, 1, b'c', 0, 0, 0, 1, 0, 1, b'r', 0, 0, 0, 2, 0xff, 0xfe],
    ];
    for (schema, version, body) in [
        (&HEARTBEAT_REQUEST, 4, heartbeat(&[0])),
        (&JOIN_GROUP_REQUEST, 5, join.concat()),
        (
            &OFFSET_FETCH_REQUEST,
            2,
            [&[0, 1, b'g'][..], &[0xff, 0xff, 0xff, 0xff]].concat(),
        ),
    ] {
        assert_eq!(made_plain(schema, version, &body), body, "{}", schema.name);
    }
}

#[test]
fn text_that_is_not_utf_8_is_replaced_and_its_length_with_it() {
    let mut body = heartbeat(&[0]);
    body[1] = 0xff;
    let expected = [&[4, 0xef, 0xbf, 0xbd, 0, 0, 0, 1][..], &[2, b'm', 0, 0]];
    assert_eq!(made_plain(&HEARTBEAT_REQUEST, 4, &body), expected.concat());
    let leave = [0, 2, b'g', 0xff, 0, 1, 0xc0];
    let expected = [0, 4, b'g', 0xef, 0xbf, 0xbd, 0, 3, 0xef, 0xbf, 0xbd];
    assert_eq!(made_plain(&LEAVE_GROUP_REQUEST, 2, &leave), expected);
}

#[test]
fn a_length_that_grows_by_a_byte_is_written_whole() {
    let group_id = [b'x'; 126];
    let body = [&[128, 1][..], &group_id, &[0xff, 0, 0, 0, 1, 2, b'm', 0, 0]].concat();
    let expected = [&[130, 1][..], &group_id, &[0xef, 0xbf, 0xbd, 0, 0, 0, 1, 2, b'm', 0, 0]].concat();
    assert_eq!(made_plain(&HEARTBEAT_REQUEST, 4, &body), expected);
}

#[test]
fn what_follows_the_end_is_left_out() {
    assert_eq!(
        made_plain(&HEARTBEAT_REQUEST, 4, &heartbeat(&[0, 1, 2, 3])),
        heartbeat(&[0])
    );
}

#[test]
fn unknown_tagged_fields_are_left_out_whatever_their_order_and_number() {
    let many = [&[100][..], &[7, 0].repeat(100)].concat();
    let huge = [1, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0xaa];
    for tagged in [&[2, 9, 0, 3, 1, 0xaa][..], &[2, 5, 0, 5, 0], &many, &huge] {
        let body = heartbeat(tagged);
        assert_eq!(made_plain(&HEARTBEAT_REQUEST, 4, &body), heartbeat(&[0]), "{tagged:?}");
    }
}

#[test]
fn known_tagged_fields_are_kept_in_order_and_the_last_of_several_counts() {
    let start = [0, 0, 1, 0, 0, 0, 0];
    // A feature whose name is not UTF-8, the flag twice, an unknown one.
    let tagged = [&[4, 3, 1, 0, 0, 8][..], &[2, 2, 0xff, 0, 1, 0, 2, 0], &[99, 0, 3, 1, 1]].concat();
    let expected = [&[2, 0, 10][..], &[2, 4, 0xef, 0xbf, 0xbd, 0, 1, 0, 2, 0], &[3, 1, 1]].concat();
    assert_eq!(
        made_plain(&API_VERSIONS_RESPONSE, 4, &[&start[..], &tagged].concat()),
        [&start[..], &expected].concat()
    );
}

#[test]
fn a_structure_that_may_be_null_is_marked_as_kafka_marks_it() {
    for (presence, rest, expected) in [(0xfe, &[0][..], 0xff), (0, &[1, 0, 0], 1), (0x7f, &[1, 0, 0], 1)] {
        let body = |presence| [&[0; 16][..], &[presence], rest].concat();
        let made = made_plain(&CONSUMER_GROUP_HEARTBEAT_RESPONSE, 0, &body(presence));
        assert_eq!(made, body(expected));
    }
}

#[test]
fn what_a_broker_refuses_is_refused_and_named() {
    for len in 0..heartbeat(&[0]).len() {
        assert!(plain(&HEARTBEAT_REQUEST, 4, &heartbeat(&[0])[..len]).is_err(), "{len}");
    }
    let null = [0, 0, 0, 0, 1, 2, b'm', 0, 0];
    assert_eq!(
        problem(&HEARTBEAT_REQUEST, 4, &null),
        "Heartbeat request v4, group_id: null where no null may be"
    );
    let claim = [
        2, b'g', 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 2, b'c', 0xff, 0xff, 0xff, 0xff, 0x07,
    ];
    assert!(problem(&JOIN_GROUP_REQUEST, 9, &claim).contains("more bytes expected"));
    assert!(problem(&HEARTBEAT_REQUEST, 4, &heartbeat(&[1, 9, 5])).contains("tagged fields: more bytes expected"));
    assert!(problem(&HEARTBEAT_REQUEST, 5, &[]).contains("has no version 5"));
}

#[test]
fn a_text_that_grows_beyond_what_a_length_can_say_is_refused() {
    let body = [&[0x2e, 0xe0][..], &[0xff; 12_000], &[0, 0, 0, 1, 0, 1, b'm']].concat();
    assert!(problem(&HEARTBEAT_REQUEST, 2, &body).contains("group_id: text of more than 32767 bytes"));
}
