use super::*;
use crate::upstream::mock::{broker, id, metadata, text, topic, topic_error};

fn address(port: u16) -> HostPort {
    HostPort { host: "b".into(), port }
}

#[test]
fn nodes_topics_and_coordinators_are_read() {
    let answer = metadata(
        vec![broker(1, &address(9092)), broker(2, &address(9093))],
        vec![topic("t", id(7), &[1, 2]), topic(OFFSETS_TOPIC, id(8), &[2, -1, 1])],
    );
    let cluster = picture(&answer, &Cluster::default());
    assert_eq!(cluster.cluster_id.as_deref(), Some("cluster-1"));
    assert_eq!(cluster.nodes.keys().copied().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(cluster.topics.by_id(&id(7)).map(|topic| topic.partitions), Some(2));
    assert_eq!(cluster.coordinators, [2, -1, 1]);
}

#[test]
fn a_topic_that_the_broker_stumbles_over_keeps_what_was_known() {
    let node = || vec![broker(1, &address(9092))];
    let before = metadata(node(), vec![topic("t", id(7), &[1]), topic(OFFSETS_TOPIC, id(8), &[1])]);
    let before = picture(&before, &Cluster::default());
    let stumbles = metadata(
        node(),
        vec![
            topic_error(Some("t"), id(7), ErrorCode::UNKNOWN_SERVER_ERROR),
            topic_error(Some(OFFSETS_TOPIC), id(8), ErrorCode::REQUEST_TIMED_OUT),
        ],
    );
    assert_eq!(picture(&stumbles, &before), before);
}

#[test]
fn a_topic_that_has_no_leaders_yet_exists() {
    let mut young = topic("t", id(7), &[-1, -1]);
    young.error_code = ErrorCode::LEADER_NOT_AVAILABLE.0;
    let cluster = picture(&metadata(Vec::new(), vec![young]), &Cluster::default());
    assert_eq!(cluster.topics.by_name["t"].partitions, 2);
}

#[test]
fn versions_of_nodes_that_are_gone_are_forgotten_and_others_kept() {
    let mut before = Cluster::default();
    for node in [1, 2] {
        before.versions.insert(node, Arc::default());
    }
    let cluster = picture(&metadata(vec![broker(2, &address(9092))], Vec::new()), &before);
    assert_eq!(cluster.versions.keys().copied().collect::<Vec<_>>(), [2]);
}

#[test]
fn addresses_that_cannot_be_dialled_are_left_out() {
    let nowhere = broker(1, &address(9092)).with_port(0);
    let nonsense = broker(2, &address(9092)).with_port(70_000);
    let nameless = broker(3, &address(9092)).with_host(text(""));
    let cluster = picture(
        &metadata(vec![nowhere, nonsense, nameless], Vec::new()),
        &Cluster::default(),
    );
    assert!(cluster.nodes.is_empty());
}

#[test]
fn answers_about_one_topic_tell_missing_from_unclear() {
    let answer = |error| topic_answer(&topic_error(Some("t"), id(7), error), &Racks::default());
    for error in [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, ErrorCode::UNKNOWN_TOPIC_ID] {
        assert_eq!(answer(error), TopicAnswer::Unknown);
    }
    for error in [
        ErrorCode::TOPIC_AUTHORIZATION_FAILED,
        ErrorCode::UNKNOWN_SERVER_ERROR,
        ErrorCode(4711),
    ] {
        assert_eq!(answer(error), TopicAnswer::Unclear(error));
    }
    let nameless = topic_answer(&topic_error(None, id(7), ErrorCode::NONE), &Racks::default());
    assert!(matches!(nameless, TopicAnswer::Unclear(_)));
}

#[test]
fn what_a_node_said_of_its_authorizer_counts_at_its_address_alone() {
    let mut known = picture(
        &metadata(vec![broker(1, &address(9092)), broker(2, &address(9093))], Vec::new()),
        &Cluster::default(),
    );
    known.authorizers = [(1, false), (2, false), (3, false)].into();
    let moved = metadata(vec![broker(1, &address(9092)), broker(2, &address(9094))], Vec::new());
    assert_eq!(picture(&moved, &known).authorizers, [(1, false)].into());
}
