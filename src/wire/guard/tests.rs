use super::*;
use crate::wire::schema::{
    API_VERSIONS_RESPONSE, CONSUMER_GROUP_HEARTBEAT_RESPONSE, HEARTBEAT_REQUEST, JOIN_GROUP_REQUEST, METADATA_RESPONSE,
    OFFSET_FETCH_REQUEST, PRODUCE_RESPONSE,
};

fn problem(schema: &Schema, version: i16, body: &[u8]) -> String {
    check(schema, version, body).expect_err("it is refused").to_string()
}

/// A Heartbeat v4 body without its tagged fields.
const HEARTBEAT: [u8; 9] = [2, b'g', 0, 0, 0, 1, 2, b'm', 0];

fn heartbeat(tagged: &[u8]) -> Vec<u8> {
    [&HEARTBEAT, tagged].concat()
}

#[test]
fn a_valid_body_passes_and_no_shorter_or_longer_one_does() {
    let body = heartbeat(&[0]);
    check(&HEARTBEAT_REQUEST, 4, &body).expect("valid");
    for len in 0..body.len() {
        assert!(check(&HEARTBEAT_REQUEST, 4, &body[..len]).is_err(), "{len}");
    }
    assert_eq!(
        problem(&HEARTBEAT_REQUEST, 4, &heartbeat(&[0, 0])),
        "Heartbeat request v4: 1 bytes after its end"
    );
}

#[test]
fn a_version_out_of_the_table_is_named() {
    assert_eq!(
        problem(&HEARTBEAT_REQUEST, 5, &[]),
        "Heartbeat request has no version 5"
    );
    assert_eq!(
        problem(&HEARTBEAT_REQUEST, -1, &[]),
        "Heartbeat request has no version -1"
    );
}

#[test]
fn an_array_that_claims_more_than_there_is_is_refused_before_room_is_made() {
    // The five bytes that made kafka-protocol ask for 154 GB.
    let claim = [0xff, 0xff, 0xff, 0xff, 0x07];
    let body = [&[0, 0, 0, 0][..], &claim].concat();
    assert!(problem(&METADATA_RESPONSE, 12, &body).contains("brokers: more bytes expected"));
    let mut join = vec![2, b'g', 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 2, b'c'];
    join.extend_from_slice(&claim);
    assert!(problem(&JOIN_GROUP_REQUEST, 9, &join).contains("protocols: more bytes expected"));
    let replicas = [&[0, 1, b'g'][..], &[0, 0, 0, 1, 0, 1, b't'], &[0x40, 0, 0, 0]].concat();
    assert!(problem(&OFFSET_FETCH_REQUEST, 5, &replicas).contains("partition_indexes: more bytes expected"));
}

#[test]
fn null_is_taken_only_where_kafka_takes_it() {
    let no_topics = |version| check(&OFFSET_FETCH_REQUEST, version, &[0, 1, b'g', 0xff, 0xff, 0xff, 0xff]);
    assert!(no_topics(1).is_err());
    assert!(no_topics(2).is_ok());
    let null_group = [0, 0, 0, 0, 1, 2, b'm', 0, 0];
    assert!(problem(&HEARTBEAT_REQUEST, 4, &null_group).contains("group_id: null where no null may be"));
}

#[test]
fn a_structure_that_may_be_null_says_so_first() {
    let assignment = |presence: u8, rest: &[u8]| {
        let body = [&[0; 16][..], &[presence], rest].concat();
        check(&CONSUMER_GROUP_HEARTBEAT_RESPONSE, 0, &body)
    };
    assert!(assignment(0xff, &[0]).is_ok() && assignment(0xfe, &[0]).is_ok());
    assert!(assignment(1, &[1, 0, 0]).is_ok());
    assert!(assignment(1, &[0]).is_err() && assignment(0xff, &[0, 0]).is_err());
    let odd = assignment(2, &[1, 0, 0]).expect_err("kafka-protocol takes it for null");
    assert!(
        odd.to_string()
            .contains("assignment: a structure that is neither there nor null")
    );
}

#[test]
fn tags_ascend_stay_below_two_to_the_31_and_fill_their_length() {
    check(&HEARTBEAT_REQUEST, 4, &heartbeat(&[2, 3, 1, 0xaa, 9, 0])).expect("unknown tags are skipped");
    assert!(problem(&HEARTBEAT_REQUEST, 4, &heartbeat(&[2, 9, 0, 3, 0])).contains("tags that do not ascend"));
    // kafka-protocol would count this one and not write it.
    let negative = [1, 0x80, 0x80, 0x80, 0x80, 0x08, 0];
    assert!(problem(&HEARTBEAT_REQUEST, 4, &heartbeat(&negative)).contains("beyond 2^31"));
    let api_versions = |tagged: &[u8]| [&[0, 0, 1, 0, 0, 0, 0][..], tagged].concat();
    check(&API_VERSIONS_RESPONSE, 4, &api_versions(&[1, 3, 1, 1])).expect("valid");
    let long = problem(&API_VERSIONS_RESPONSE, 4, &api_versions(&[1, 3, 2, 1, 1]));
    assert!(
        long.contains("zk_migration_ready: a tagged field with bytes after its end"),
        "{long}"
    );
    let short = problem(&API_VERSIONS_RESPONSE, 4, &api_versions(&[1, 3, 0]));
    assert!(short.contains("zk_migration_ready: more bytes expected"), "{short}");
}

#[test]
fn a_known_tag_is_refused_in_versions_that_do_not_have_it() {
    let endpoints = [1, 0, 0, 0, 0, 1, 0, 1, 1];
    check(&PRODUCE_RESPONSE, 10, &endpoints).expect("no new leaders");
    assert!(problem(&PRODUCE_RESPONSE, 9, &endpoints).contains("tag 0 is not in this version"));
}

#[test]
fn unknown_tags_are_bounded_by_the_size_of_the_body() {
    let with_tags = |count: u8| {
        let tags: Vec<u8> = (0..count).flat_map(|tag| [tag, 0]).collect();
        heartbeat(&[&[count][..], &tags].concat())
    };
    check(&HEARTBEAT_REQUEST, 4, &with_tags(4)).expect("a few are taken from every body");
    assert!(problem(&HEARTBEAT_REQUEST, 4, &with_tags(100)).contains("more unknown tagged fields"));
}

#[test]
fn text_must_be_utf_8() {
    let mut body = heartbeat(&[0]);
    body[1] = 0xff;
    assert!(problem(&HEARTBEAT_REQUEST, 4, &body).contains("group_id: text that is not UTF-8"));
}
