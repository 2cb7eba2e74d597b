//! Rewritten and scrubbed answers as a stock decoder reads them. kafka-protocol ends at ShareFetch and
//! ShareAcknowledge v1; their second version has the same layout, or one more number.

use bytes::{Buf, Bytes};
use kafka_protocol::messages::{
    BrokerId, DescribeClusterResponse, DescribeQuorumResponse, FetchResponse, FindCoordinatorResponse,
    MetadataResponse, ProduceResponse, ShareAcknowledgeResponse, ShareFetchResponse,
};
use kafka_protocol::protocol::{Decodable, Message, StrBytes};

use super::super::EndpointScrubber;
use super::{Golden, golden, sidecar};

/// Decodes answers that are known to be well-formed.
fn decode<T: Decodable>(golden: &Golden, mut body: Bytes) -> T {
    let decoded = T::decode(&mut body, golden.version).unwrap_or_else(|e| panic!("{golden}: {e}"));
    assert!(!body.has_remaining(), "{golden}: {} bytes are left", body.remaining());
    decoded
}

fn scrubbed(golden: &Golden) -> Option<Bytes> {
    let mut out = golden.body.to_vec();
    EndpointScrubber::new(golden.api_key, golden.version, out.len())?
        .feed(&mut out)
        .unwrap_or_else(|e| panic!("{golden}: {e}"));
    Some(out.into())
}

fn of<T: Message>(api_key: i16) -> impl Iterator<Item = Golden> {
    let versions = T::VERSIONS;
    golden()
        .into_iter()
        .filter(move |golden| golden.api_key == api_key && (versions.min..=versions.max).contains(&golden.version))
}

/// Sets an address to what clients are told for the node.
fn readdress(id: BrokerId, host: &mut StrBytes, port: &mut i32) {
    if let Some(advertised) = sidecar().get(&id.0) {
        *host = StrBytes::from_string(advertised.host.clone());
        *port = i32::from(advertised.port);
    }
}

/// Compares what is read from rewritten and scrubbed answers with what is read from the upstream's, changed by `change`
/// and with the endpoints and the filler's tagged field taken out by `strip`.
fn compare<T: Decodable + Message + PartialEq + std::fmt::Debug>(
    api_key: i16,
    change: impl Fn(&mut T, &Golden),
    strip: impl Fn(&mut T, bool),
) {
    let mut seen = 0;
    for golden in of::<T>(api_key) {
        let rewritten: T = decode(
            &golden,
            golden.rewrite(&sidecar()).unwrap_or_else(|e| panic!("{golden}: {e}")),
        );
        let mut expected: T = decode(&golden, golden.body.clone());
        change(&mut expected, &golden);
        assert_eq!(rewritten, expected, "{golden}");
        if let Some(body) = scrubbed(&golden) {
            let mut scrubbed: T = decode(&golden, body);
            strip(&mut scrubbed, false);
            strip(&mut expected, true);
            assert_eq!(scrubbed, expected, "{golden}");
        }
        seen += 1;
    }
    assert!(seen >= 3, "api {api_key}: {seen} answers");
}

/// The tagged field that stands where the endpoints stood.
const UNUSED_TAG: i32 = 0x7f;

#[test]
fn metadata() {
    compare::<MetadataResponse>(
        3,
        |answer, _| {
            for broker in &mut answer.brokers {
                readdress(broker.node_id, &mut broker.host, &mut broker.port);
            }
        },
        |_, _| {},
    );
}

#[test]
fn topics_in_metadata_are_those_that_exist() {
    let answers: Vec<_> = golden().into_iter().filter(|golden| golden.api_key == 3).collect();
    assert!(answers.iter().any(|golden| !existing(golden).is_empty()));
    for golden in answers {
        let read = super::super::topics_in_metadata(golden.version, &golden.body).expect("readable");
        let read: Vec<_> = read.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        assert_eq!(read, existing(&golden), "{golden}");
        for len in 0..golden.body.len() {
            let _ = super::super::topics_in_metadata(golden.version, &golden.body[..len]);
        }
    }
}

fn existing(golden: &Golden) -> Vec<(String, usize)> {
    let answer: MetadataResponse = decode(golden, golden.body.clone());
    let topics = answer.topics.iter().filter(|topic| matches!(topic.error_code, 0 | 5));
    topics
        .filter_map(|topic| Some((topic.name.as_ref()?.to_string(), topic.partitions.len())))
        .collect()
}

#[test]
fn find_coordinator() {
    compare::<FindCoordinatorResponse>(
        10,
        |answer, _| {
            readdress(answer.node_id, &mut answer.host, &mut answer.port);
            for found in &mut answer.coordinators {
                readdress(found.node_id, &mut found.host, &mut found.port);
            }
        },
        |_, _| {},
    );
}

#[test]
fn describe_cluster() {
    compare::<DescribeClusterResponse>(
        60,
        |answer, golden| {
            if golden.names_controllers() {
                answer.brokers.clear();
            }
            for broker in &mut answer.brokers {
                readdress(broker.broker_id, &mut broker.host, &mut broker.port);
            }
        },
        |_, _| {},
    );
}

#[test]
fn describe_quorum() {
    compare::<DescribeQuorumResponse>(
        55,
        |answer, _| {
            for node in &mut answer.nodes {
                node.listeners.clear();
            }
        },
        |_, _| {},
    );
}

#[test]
fn produce() {
    compare::<ProduceResponse>(
        0,
        |answer, _| {
            for node in &mut answer.node_endpoints {
                readdress(node.node_id, &mut node.host, &mut node.port);
            }
        },
        |answer, endpoints| {
            answer.unknown_tagged_fields.remove(&UNUSED_TAG);
            if endpoints {
                answer.node_endpoints.clear();
            }
        },
    );
}

#[test]
fn fetch() {
    compare::<FetchResponse>(
        1,
        |answer, _| {
            for node in &mut answer.node_endpoints {
                readdress(node.node_id, &mut node.host, &mut node.port);
            }
        },
        |answer, endpoints| {
            answer.unknown_tagged_fields.remove(&UNUSED_TAG);
            if endpoints {
                answer.node_endpoints.clear();
            }
        },
    );
}

#[test]
fn share_fetch() {
    compare::<ShareFetchResponse>(
        78,
        |answer, _| {
            for node in &mut answer.node_endpoints {
                readdress(node.node_id, &mut node.host, &mut node.port);
            }
        },
        |answer, endpoints| {
            answer.unknown_tagged_fields.remove(&UNUSED_TAG);
            if endpoints {
                answer.node_endpoints.clear();
            }
        },
    );
}

#[test]
fn share_acknowledge() {
    compare::<ShareAcknowledgeResponse>(
        79,
        |answer, _| {
            for node in &mut answer.node_endpoints {
                readdress(node.node_id, &mut node.host, &mut node.port);
            }
        },
        |answer, endpoints| {
            answer.unknown_tagged_fields.remove(&UNUSED_TAG);
            if endpoints {
                answer.node_endpoints.clear();
            }
        },
    );
}

#[test]
fn tagged_fields_that_nobody_knows_survive() {
    let tagged: Vec<_> = golden().into_iter().filter(|golden| golden.name == "tagged").collect();
    assert_eq!(tagged.len(), 6);
    for golden in tagged {
        let out = golden.rewrite(&sidecar()).unwrap_or_else(|e| panic!("{golden}: {e}"));
        let mut end = b"\x5a\x04kept\xac\x02\xc8\x01".to_vec();
        end.extend([0; 200]);
        assert!(out.ends_with(&end), "{golden}");
        // They survive the scrubber too, unless it had to fill the frame up.
        if let Some(out) = scrubbed(&golden).filter(|_| matches!(golden.api_key, 0 | 1)) {
            assert!(out.ends_with(&end), "{golden}");
        }
    }
}
