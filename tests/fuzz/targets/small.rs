//! What is opaque to the protocol but read all the same, text, the answer to ApiVersions, and the heartbeat's fields of our own.

use std::borrow::Cow;

use bytes::Bytes;
use convoke::admin::assignment;
use convoke::coordinator::consumer_protocol;
use convoke::proxy::api_versions::{Answering, Offer, TopicIds, answer};
use convoke::upstream::cluster::NodeVersions;
use convoke::wire::assignment::heartbeat::{
    VERSION, assigned_by, client_assignors, groups_to_compute, should_compute_assignment,
};
use convoke::wire::codec::{decode_request, decode_response};
use convoke::wire::schema::{
    API_VERSIONS_REQUEST, CONSUMER_GROUP_HEARTBEAT_REQUEST, CONSUMER_GROUP_HEARTBEAT_RESPONSE,
};
use convoke::wire::text;
use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

use super::{Target, number};
use crate::bodies::{self, Random};

pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "assignments".to_owned(),
            reads: &["admin/assignment.rs"],
            seed: Box::new(|_| b"\0\x01\0\0\0\x01\0\x01t\0\0\0\x02\0\0\0\x02\0\0\0\0\xff\xff\xff\xff".to_vec()),
            run: Box::new(|input| {
                let topics = assignment::decode(input).into_iter().flatten();
                let held: usize = topics.map(|(_, partitions)| 4 * partitions.len()).sum();
                assert!(held <= input.len());
            }),
            held_per_byte: 64,
        },
        Target {
            name: "consumers' metadata".to_owned(),
            reads: &["coordinator/consumer_protocol.rs"],
            seed: Box::new(|random| {
                let said: &[u8] = b"\0\x03\0\0\0\x01\0\x01t\0\0\0\x04\0\0\0\x05\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\x07\0\0\0\x05\0\x01r";
                let remembered: &[u8] = b"\0\0\0\x01\0\x01t\0\0\0\x02\0\0\0\x07\0\0\0\x08\0\0\0\x09";
                [said, remembered][random.below(2)].to_vec()
            }),
            run: Box::new(|input| {
                let held = |partitions: &consumer_protocol::NamedPartitions| -> usize {
                    partitions.iter().map(|(_, numbers)| 6 + 4 * numbers.len()).sum()
                };
                if let Some(said) = consumer_protocol::read_subscription(input) {
                    assert!(held(&said.owned) + said.user_data.len() + 2 * said.topics.len() <= input.len());
                }
                if let Some((previous, _)) = consumer_protocol::read_sticky_user_data(input) {
                    assert!(held(&previous) <= input.len());
                }
                let _ = consumer_protocol::read_assignment(input);
                let _ = consumer_protocol::read_cooperative_user_data(input);
            }),
            held_per_byte: 64,
        },
        Target {
            name: "text".to_owned(),
            reads: &["wire/text.rs"],
            seed: Box::new(|random| {
                (0..8)
                    .map(|_| [b'a', 0xc3, 0xa9, 0xed, 0xa0, 0x80, 0xf0, 0x9f][random.below(8)])
                    .collect()
            }),
            run: Box::new(|input| {
                let text = text::as_java(input);
                assert_eq!(std::str::from_utf8(input).is_ok(), matches!(text, Cow::Borrowed(_)));
                assert!(text.len() <= 3 * input.len());
            }),
            held_per_byte: 8,
        },
        Target {
            name: "ApiVersions answered".to_owned(),
            reads: &["proxy/api_versions.rs"],
            seed: Box::new(api_versions),
            run: Box::new(|mut input| {
                let version = i16::try_from(number(&mut input)).unwrap_or_default() - 1;
                let answering = Answering::Node {
                    cluster_id: Some("cluster"),
                    node_id: 1,
                };
                let offer = Offer::of(&NodeVersions::default(), TopicIds::Given);
                let answered = answer(version, Bytes::copy_from_slice(input), &offer, answering);
                assert!(answered.is_ok() || API_VERSIONS_REQUEST.has_version(version));
            }),
            held_per_byte: 64,
        },
        Target {
            name: "client assignors in a heartbeat".to_owned(),
            reads: &["wire/assignment/heartbeat.rs"],
            seed: Box::new(|random| bodies::valid(&CONSUMER_GROUP_HEARTBEAT_REQUEST, VERSION, 2, random)),
            run: Box::new(|input| {
                let request = decode_request::<ConsumerGroupHeartbeatRequest>(VERSION, Bytes::copy_from_slice(input));
                let assignors = request.map(|request| client_assignors(&request).expect("the guard passed it"));
                let metadata = assignors
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|assignor| assignor.metadata.len());
                assert!(metadata.sum::<usize>() <= input.len());
            }),
            held_per_byte: 64,
        },
        Target {
            name: "what a heartbeat's answer says of client assignors".to_owned(),
            reads: &["wire/assignment/heartbeat.rs"],
            seed: Box::new(|random| bodies::valid(&CONSUMER_GROUP_HEARTBEAT_RESPONSE, VERSION, 2, random)),
            run: Box::new(|input| {
                let body = Bytes::copy_from_slice(input);
                if let Ok(response) = decode_response::<ConsumerGroupHeartbeatResponse>(VERSION, body) {
                    should_compute_assignment(&response).expect("the guard passed it");
                    groups_to_compute(&response).expect("the guard passed it");
                    if let Some(assignment) = &response.assignment {
                        assigned_by(assignment).expect("the guard passed it");
                    }
                }
            }),
            held_per_byte: 64,
        },
    ]
}

fn api_versions(random: &mut Random) -> Vec<u8> {
    let version = random.below(7);
    let known = i16::try_from(version).unwrap_or_default().min(API_VERSIONS_REQUEST.max);
    let body = bodies::valid(&API_VERSIONS_REQUEST, known, 2, random);
    [&[u8::try_from(version + 1).unwrap_or_default()], &body[..]].concat()
}
