//! Held against what Kafka 3.8.1, 4.1.1 and 4.4.0 answered (`tests/golden/ApiVersionsAnswers.java`).

use super::*;

const CLUSTER: &str = "BASEBASEBASEBASEBASEBA";
const NODE: i32 = 4;
const RELEASES: [(&str, i16); 3] = [("3.8.1", 3), ("4.1.1", 4), ("4.4.0", 5)];

/// A request body and what the broker answered, None if it closed the connection.
struct Golden {
    release: &'static str,
    version: i16,
    name: &'static str,
    request: Bytes,
    answer: Option<Bytes>,
}

fn golden() -> Vec<Golden> {
    let lines = include_str!("../../../tests/golden/api_versions_answers.txt").lines();
    let parse = |line: &'static str| {
        let [release, version, name, request, answer] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not five words: {line}");
        };
        Golden {
            release,
            version: version.parse().expect("a version"),
            name,
            request: unhex(request),
            answer: (answer != "closed").then(|| unhex(answer)),
        }
    };
    lines.map(parse).collect()
}

fn unhex(hex: &str) -> Bytes {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("hex") as u8;
    hex.as_bytes()
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// What a release tells in the newest version that it speaks.
fn node(release: &str) -> NodeVersions {
    let newest = RELEASES.iter().find(|(name, _)| *name == release).expect("a release").1;
    let goldens = golden();
    let plain = |golden: &&Golden| (golden.release, golden.version, golden.name) == (release, newest, "plain");
    let body = goldens
        .iter()
        .find(plain)
        .and_then(|golden| golden.answer.clone())
        .expect("captured");
    let response: ApiVersionsResponse = codec::decode_response(newest, body).expect("well-formed");
    NodeVersions {
        apis: response
            .api_keys
            .iter()
            .map(|api| (api.api_key, (api.min_version, api.max_version)))
            .collect(),
        supported_features: response
            .supported_features
            .iter()
            .map(|feature| (feature.name.to_string(), feature.min_version, feature.max_version))
            .collect(),
        finalized_features: response
            .finalized_features
            .iter()
            .map(|feature| {
                (
                    feature.name.to_string(),
                    feature.max_version_level,
                    feature.min_version_level,
                )
            })
            .collect(),
        finalized_features_epoch: response.finalized_features_epoch,
    }
}

fn levels(features: &[(String, i16, i16)]) -> Vec<(&str, i16, i16)> {
    features
        .iter()
        .map(|(name, one, other)| (name.as_str(), *one, *other))
        .collect()
}

fn this_node() -> Answering<'static> {
    Answering::Node {
        cluster_id: Some(CLUSTER),
        node_id: NODE,
    }
}

#[test]
fn what_a_broker_offers_is_written_as_the_broker_writes_it() {
    let mut seen = 0;
    for golden in golden().into_iter().filter(|golden| golden.name == "plain") {
        let newest = RELEASES
            .iter()
            .find(|(name, _)| *name == golden.release)
            .expect("a release")
            .1;
        if golden.version > newest {
            continue;
        }
        let all = Offer(node(golden.release));
        let answer = answer(golden.version, golden.request, &all, this_node()).expect("well-formed");
        assert_eq!(answer.error, ErrorCode::NONE);
        assert_eq!(
            Some(answer.body),
            golden.answer,
            "{} v{}",
            golden.release,
            golden.version
        );
        seen += 1;
    }
    assert_eq!(seen, 4 + 5 + 6);
}

#[test]
fn errors_are_those_of_the_newest_broker() {
    let mut errors = BTreeMap::new();
    for golden in golden().into_iter().filter(|golden| golden.release == "4.4.0") {
        let answer = answer(golden.version, golden.request, &Offer(node("4.4.0")), this_node());
        match golden.answer {
            None => assert!(answer.is_err(), "{}", golden.name),
            Some(broker) => {
                let answer = answer.unwrap_or_else(|e| panic!("{}: {e}", golden.name));
                let error = i16::from_be_bytes([broker[0], broker[1]]);
                assert_eq!(answer.error.0, error, "{} v{}", golden.name, golden.version);
                // Without an error only the epoch of the features differs: it grew from request to request.
                assert!(
                    error == 0 || answer.body == broker,
                    "{} v{}",
                    golden.name,
                    golden.version
                );
                *errors.entry(answer.error).or_insert(0) += 1;
            }
        }
    }
    let expected = [
        (ErrorCode(0), 12),
        (ErrorCode(35), 3),
        (ErrorCode(42), 20),
        (ErrorCode(129), 4),
    ];
    assert_eq!(errors, BTreeMap::from(expected));
}

#[test]
fn forwarded_and_owned_apis_are_offered_as_far_as_the_upstream_has_them() {
    for (release, _) in RELEASES {
        let upstream = node(release);
        let offer = Offer::of(&upstream, TopicIds::Given);
        for api in api::APIS {
            let offered = offer.versions().apis.get(&api.key).copied();
            let both = upstream
                .apis
                .get(&api.key)
                .and_then(|range| meet(*range, (api.min, api.max)));
            match api.route {
                Route::Refuse => assert_eq!(offered, None, "{}", api.name),
                _ if api.key == api::API_VERSIONS => assert_eq!(offered, Some((0, 5))),
                _ if CONSUMER_GROUPS.contains(&api.key) => assert_eq!(offered, Some((api.min, api.max)), "{release}"),
                Route::Forward | Route::Rewrite | Route::Split => {
                    assert_eq!(offered, both, "{} of {release}", api.name)
                }
                Route::Own => assert_eq!(
                    offered,
                    Some(both.unwrap_or((api.min, api.max))),
                    "{} of {release}",
                    api.name
                ),
            }
        }
        assert!(offer.versions().apis.keys().all(|key| api::find(*key).is_some()));
    }
}

#[test]
fn ranges_that_clients_trip_over_are_right() {
    let offer = |release| Offer::of(&node(release), TopicIds::Given);
    // Brokers list 0 for Produce whatever they take; that stays (KAFKA-18659).
    assert!(RELEASES.iter().all(|(release, _)| offer(release).has(api::PRODUCE, 0)));
    // librdkafka up to 2.10 takes a broker without it for one without groups.
    assert!(
        RELEASES
            .iter()
            .all(|(release, _)| offer(release).has(api::JOIN_GROUP, 0))
    );
    // Groups of 3.8 and 4.1 stay forwardable; 9 is never capped away.
    for (release, offsets) in [("3.8.1", 9), ("4.1.1", 9), ("4.4.0", 10)] {
        for key in [api::OFFSET_COMMIT, api::OFFSET_FETCH] {
            assert!(
                offer(release).has(key, offsets) && !offer(release).has(key, offsets + 1),
                "{key} of {release}"
            );
        }
    }
    assert!(!offer("3.8.1").has(api::METADATA, 13) && offer("4.4.0").has(api::METADATA, 13));
    assert!(!offer("4.4.0").has(i16::MAX, 0) && !offer("4.4.0").has(-1, 0));
}

#[test]
fn an_owned_api_that_the_upstream_lacks_is_offered_as_we_have_it() {
    let mut upstream = node("3.8.1");
    upstream.apis.remove(&api::OFFSET_DELETE);
    upstream.apis.insert(api::HEARTBEAT, (90, 95));
    upstream.apis.remove(&api::METADATA);
    let offer = Offer::of(&upstream, TopicIds::Given);
    assert_eq!(offer.versions().apis.get(&api::OFFSET_DELETE), Some(&(0, 0)));
    assert_eq!(offer.versions().apis.get(&api::HEARTBEAT), Some(&(0, 4)));
    assert_eq!(offer.versions().apis.get(&api::METADATA), None);
}

/// librdkafka speaks the protocol only where version 1 of the heartbeat is offered.
#[test]
fn consumer_groups_are_offered_whatever_the_upstream_has_if_its_topics_have_ids() {
    let mut upstream = node("3.8.1");
    assert_eq!(
        upstream.apis.get(&api::CONSUMER_GROUP_HEARTBEAT),
        Some(&(0, 0)),
        "it refuses it"
    );
    for _ in 0..2 {
        let offer = Offer::of(&upstream, TopicIds::Given);
        for api in CONSUMER_GROUPS.into_iter().filter_map(api::find) {
            let offered = offer.versions().apis.get(&api.key).copied();
            assert_eq!(offered, Some((api.min, api.max)), "{}", api.name);
        }
        assert!(offer.has(api::CONSUMER_GROUP_HEARTBEAT, 1));
        let offer = Offer::of(&upstream, TopicIds::Missing);
        assert!(
            CONSUMER_GROUPS
                .iter()
                .all(|key| !offer.versions().apis.contains_key(key))
        );
        // The same where they are not even listed.
        upstream.apis.retain(|key, _| !CONSUMER_GROUPS.contains(key));
    }
}

#[test]
fn features_without_their_apis_are_hidden() {
    let offer = Offer::of(&node("4.4.0"), TopicIds::Given);
    let supported = [
        ("eligible.leader.replicas.version", 0, 1),
        ("group.version", 0, 1),
        ("kraft.version", 0, 1),
        ("metadata.version", 7, 33),
        ("share.version", 0, 2),
        ("streams.version", 0, 1),
    ];
    let mut shown = levels(&offer.versions().supported_features);
    shown.sort_unstable();
    assert_eq!(shown, supported);
    let mut finalized = levels(&offer.versions().finalized_features);
    finalized.sort_unstable();
    let expected = [
        ("eligible.leader.replicas.version", 1, 1),
        ("group.version", 1, 1),
        ("metadata.version", 33, 33),
        ("share.version", 2, 2),
        ("streams.version", 1, 1),
    ];
    assert_eq!(finalized, expected);
    assert_eq!(
        offer.versions().finalized_features_epoch,
        node("4.4.0").finalized_features_epoch
    );
    assert!(offer.versions().finalized_features_epoch >= 0);
}

#[test]
fn a_feature_goes_as_far_as_its_apis() {
    let level = |name: &str, apis: &[(i16, (i16, i16))]| highest_level(name, &apis.iter().copied().collect());
    let data = [(0, (0, 13)), (26, (0, 5))];
    let with = |max| [data.as_slice(), &[(28, (0, max))]].concat();
    assert_eq!(level("transaction.version", &data), None);
    assert_eq!(level("transaction.version", &with(4)), Some(1));
    assert_eq!(level("transaction.version", &with(6)), Some(2));
    assert_eq!(
        level("transaction.version", &[(0, (0, 11)), (26, (0, 5)), (28, (0, 5))]),
        Some(1)
    );
    assert_eq!(level("group.version", &data), None);
    assert_eq!(level("group.version", &[(68, (0, 1))]), Some(1));
    assert_eq!(level("metadata.version", &[]), Some(i16::MAX));
    assert_eq!(level("of.the.future", &data), None);
}

#[test]
fn a_level_that_is_cut_is_cut_in_both_lists() {
    let upstream = NodeVersions {
        apis: BTreeMap::from([(76, (1, 1)), (78, (1, 2)), (79, (1, 2))]),
        supported_features: vec![
            ("share.version".to_owned(), 0, 7),
            ("metadata.version".to_owned(), 7, 33),
        ],
        finalized_features: vec![("share.version".to_owned(), 5, 5)],
        finalized_features_epoch: 12,
    };
    let offer = Offer::of(&upstream, TopicIds::Given);
    assert_eq!(
        levels(&offer.versions().supported_features),
        [("share.version", 0, 2), ("metadata.version", 7, 33)]
    );
    assert_eq!(levels(&offer.versions().finalized_features), [("share.version", 2, 2)]);
}

#[test]
fn supported_features_from_zero_are_left_out_up_to_version_3() {
    let offer = Offer::of(&node("4.4.0"), TopicIds::Given);
    let request = |version| {
        golden()
            .into_iter()
            .find(|g| (g.version, g.name) == (version, "plain"))
            .expect("captured")
            .request
    };
    for (version, names) in [(3, 1), (4, 6), (5, 6)] {
        let answer = answer(version, request(version), &offer, Answering::Anyone).expect("well-formed");
        let read: ApiVersionsResponse = codec::decode_response(version, answer.body).expect("well-formed");
        assert_eq!(read.supported_features.len(), names, "v{version}");
        assert_eq!(read.finalized_features.len(), 5, "v{version}");
        assert_eq!(read.finalized_features_epoch, offer.versions().finalized_features_epoch);
    }
}

#[test]
fn the_intersection_has_what_all_nodes_have() {
    assert_eq!(intersection(std::iter::empty()), None);
    assert_eq!(intersection([&node("4.1.1")]), Some(node("4.1.1")));
    let mut newer = node("4.4.0");
    newer.finalized_features_epoch = 900;
    let both = intersection([&newer, &node("4.1.1")]).expect("two nodes");
    assert_eq!(
        both,
        intersection([&node("4.1.1"), &newer])
            .map(|mut other| {
                other
                    .supported_features
                    .sort_by_key(|feature| both.supported_features.iter().position(|f| f.0 == feature.0));
                other
                    .finalized_features
                    .sort_by_key(|feature| both.finalized_features.iter().position(|f| f.0 == feature.0));
                other
            })
            .expect("two nodes")
    );
    assert_eq!(both.apis[&api::OFFSET_COMMIT], (2, 9));
    assert!(!both.apis.contains_key(&88) && both.apis.contains_key(&76));
    assert!(
        both.supported_features
            .contains(&("metadata.version".to_owned(), 7, 27))
    );
    assert!(
        both.finalized_features
            .contains(&("metadata.version".to_owned(), 27, 27))
    );
    assert!(
        !both
            .finalized_features
            .iter()
            .any(|(name, ..)| name == "streams.version")
    );
    assert_eq!(both.finalized_features_epoch, node("4.1.1").finalized_features_epoch);
}

#[test]
fn a_convoke_that_takes_us_for_a_broker_is_refused() {
    for (name, error) in [
        ("convoke", ErrorCode::POLICY_VIOLATION),
        ("convoke-tool", ErrorCode::NONE),
    ] {
        let request = ApiVersionsRequest {
            client_software_name: StrBytes::from_static_str(name),
            client_software_version: StrBytes::from_static_str("1"),
            ..ApiVersionsRequest::default()
        };
        for version in 3..=5 {
            let mut body = BytesMut::new();
            codec::encode(&request, version, &mut body).expect("ours");
            let answer = answer(version, body.freeze(), &Offer(node("4.4.0")), Answering::Anyone);
            assert_eq!(answer.expect("well-formed").error, error, "{name} v{version}");
        }
    }
}

#[test]
fn the_node_that_a_client_means_is_compared_with_the_one_it_has_reached() {
    let ask = |cluster_id: Option<&str>, node_id, answering| {
        let request = ApiVersionsRequest {
            client_software_name: StrBytes::from_static_str("client"),
            client_software_version: StrBytes::from_static_str("1"),
            cluster_id: cluster_id.map(|id| StrBytes::from_string(id.to_owned())),
            node_id,
        };
        let mut body = BytesMut::new();
        codec::encode(&request, 5, &mut body).expect("ours");
        answer(5, body.freeze(), &Offer(node("4.4.0")), answering)
            .expect("well-formed")
            .error
    };
    let unknown_cluster = Answering::Node {
        cluster_id: None,
        node_id: NODE,
    };
    for answering in [Answering::Anyone, Answering::Bootstrap, this_node(), unknown_cluster] {
        assert_eq!(ask(None, -1, answering), ErrorCode::NONE, "{answering:?}");
        assert_eq!(
            ask(Some(CLUSTER), -1, answering),
            ErrorCode::INVALID_REQUEST,
            "{answering:?}"
        );
        assert_eq!(ask(None, NODE, answering), ErrorCode::INVALID_REQUEST, "{answering:?}");
    }
    for (answering, right, other_node, other_cluster) in [
        (Answering::Anyone, 0, 0, 0),
        (Answering::Bootstrap, 129, 129, 129),
        (this_node(), 0, 129, 129),
        (unknown_cluster, 0, 129, 0),
    ] {
        assert_eq!(ask(Some(CLUSTER), NODE, answering), ErrorCode(right), "{answering:?}");
        assert_eq!(
            ask(Some(CLUSTER), NODE + 1, answering),
            ErrorCode(other_node),
            "{answering:?}"
        );
        assert_eq!(
            ask(Some("another"), NODE, answering),
            ErrorCode(other_cluster),
            "{answering:?}"
        );
    }
}
