//! Nodes that appear, move, or find no port while clients are served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use convoke::config::{HostPort, NodePorts};
use kafka_protocol::messages::MetadataResponse;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use tokio::io::AsyncReadExt;

use crate::fixture::Fixture;
use crate::frames::{list_offsets, offsets, request, response};
use crate::mock::{Mock, NODE_ID, metadata};
use crate::raw::{Raw, soon};

const METADATA: i16 = 3;
const SECOND: i32 = 2;
const OFTEN: Duration = Duration::from_millis(50);

/// Asks for Metadata through the proxy, the upstream answering with both nodes; what the client hears of the second one.
async fn second_as_told(fixture: &mut Fixture, second: SocketAddr) -> HostPort {
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    let ask = request(METADATA, 1, 9, &[0xff; 4]);
    client.send(&ask).await;
    assert_eq!(upstream.frame().await, ask);
    let nodes = [(NODE_ID, fixture.mock.address), (SECOND, second)].into();
    upstream.send(&response(METADATA, 1, 9, &metadata(&nodes, 1))).await;
    let mut body = Bytes::from(client.frame().await).slice(8..);
    let told = MetadataResponse::decode(&mut body, 1).expect("readable");
    let of = |id: i32| {
        let broker = told
            .brokers
            .iter()
            .find(|broker| broker.node_id.0 == id)
            .expect("both nodes");
        HostPort {
            host: broker.host.to_string(),
            port: u16::try_from(broker.port).expect("a port"),
        }
    };
    assert_eq!(of(NODE_ID).port, fixture.node().port());
    of(SECOND)
}

/// Sends a request to this address and sees it arrive at this node.
async fn reaches(address: SocketAddr, node: &mut Mock) {
    let mut client = Raw::connect(address).await;
    client.send(&list_offsets(1)).await;
    let mut upstream = node.client().await;
    assert_eq!(upstream.frame().await, list_offsets(1));
    upstream.send(&offsets(1)).await;
    assert_eq!(client.frame().await, offsets(1));
}

/// Waits until the node's listener is there.
async fn listener_of_second(fixture: &Fixture) -> SocketAddr {
    let ip = fixture.node().ip();
    let found = async {
        loop {
            if let Some(told) = fixture.listeners.advertised(SECOND, ip) {
                return told.port;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    SocketAddr::new(ip, soon("a listener", found).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_an_answer_names_first_has_its_listener_before_the_client_hears_of_it() {
    let mut fixture = Fixture::start().await;
    let mut second = Mock::joining(Arc::clone(&fixture.mock.nodes)).await;
    let told = second_as_told(&mut fixture, second.address).await;
    assert_ne!(told.port, second.address.port());
    let address = SocketAddr::new(told.host.parse().expect("an address"), told.port);
    reaches(address, &mut second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_joins_the_cluster_gets_a_listener_and_keeps_it_when_it_moves() {
    let fixture = Fixture::with(|config| config.upstream.metadata_refresh = OFTEN).await;
    let nodes = &fixture.mock.nodes;
    let mut second = Mock::joining(Arc::clone(nodes)).await;
    nodes.lock().expect("not poisoned").insert(SECOND, second.address);
    let address = listener_of_second(&fixture).await;
    reaches(address, &mut second).await;

    let mut moved = Mock::joining(Arc::clone(nodes)).await;
    nodes.lock().expect("not poisoned").insert(SECOND, moved.address);
    second.stop_listening().await;
    // Until the move is seen connections end where the node was, which is closed to them.
    soon("the move", async {
        loop {
            let mut client = Raw::connect(address).await;
            client.send(&list_offsets(1)).await;
            if moved.has_client().await {
                return;
            }
        }
    })
    .await;
    assert_eq!(listener_of_second(&fixture).await, address);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_node_that_the_cluster_lists_no_more_are_turned_away_until_it_is_back() {
    const API_VERSIONS: i16 = 18;
    let fixture = Fixture::with(|config| {
        config.upstream.metadata_refresh = OFTEN;
        config.upstream.request_timeout = Duration::from_secs(3600);
    })
    .await;
    let nodes = &fixture.mock.nodes;
    let mut second = Mock::joining(Arc::clone(nodes)).await;
    nodes.lock().expect("not poisoned").insert(SECOND, second.address);
    let address = listener_of_second(&fixture).await;
    let is_answered = || async move {
        let mut client = Raw::connect(address).await;
        client.send(&request(API_VERSIONS, 0, 1, &[])).await;
        matches!(client.stream.read(&mut [0]).await, Ok(1..))
    };
    soon("its versions", async { while !is_answered().await {} }).await;

    nodes.lock().expect("not poisoned").remove(&SECOND);
    second.stop_listening().await;
    soon("the end of a connection, long before a request's time is over", async {
        while is_answered().await {}
    })
    .await;

    let back = Mock::joining(Arc::clone(nodes)).await;
    nodes.lock().expect("not poisoned").insert(SECOND, back.address);
    soon("its versions again", async { while !is_answered().await {} }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_a_port_is_out_of_reach_and_the_others_are_not() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = free.local_addr().expect("bound").port();
    let mut fixture = Fixture::with(|config| {
        drop(free);
        config.listen.nodes = NodePorts::Range {
            first: port,
            last: port,
        };
    })
    .await;
    assert_eq!(fixture.node().port(), port);
    let told = second_as_told(&mut fixture, SocketAddr::from(([127, 0, 0, 1], 9))).await;
    assert_eq!(told.host, "node-2.has-no-convoke-listener.invalid");
    assert!(fixture.metric("convoke_listener_failures_total") >= 1.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_changes_topics_has_the_cluster_looked_at_soon() {
    const CREATE_TOPICS: i16 = 19;
    let mut fixture = Fixture::start().await;
    let second = Mock::joining(Arc::clone(&fixture.mock.nodes)).await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    // By itself the picture would be looked at in a minute.
    fixture
        .mock
        .nodes
        .lock()
        .expect("not poisoned")
        .insert(SECOND, second.address);
    let ask = request(CREATE_TOPICS, 2, 9, &[0; 9]);
    client.send(&ask).await;
    assert_eq!(upstream.frame().await, ask);
    let answer = response(CREATE_TOPICS, 2, 9, &[0; 8]);
    upstream.send(&answer).await;
    assert_eq!(client.frame().await, answer);
    listener_of_second(&fixture).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_an_answer_names_first_is_asked_for_at_once() {
    let mut fixture = Fixture::start().await;
    let (mut client, mut upstream) = fixture.client_and_upstream().await;
    for (error, name) in [(3, "not-yet-made"), (0, "made-just-now")] {
        let ask = request(METADATA, 1, 9, &[0xff; 4]);
        client.send(&ask).await;
        assert_eq!(upstream.frame().await, ask);
        let topic = MetadataResponseTopic::default()
            .with_error_code(error)
            .with_name(Some(StrBytes::from_static_str(name).into()));
        let answer = MetadataResponse::default().with_topics(vec![topic]);
        let mut body = BytesMut::new();
        answer.encode(&mut body, 1).expect("writable");
        upstream.send(&response(METADATA, 1, 9, &body)).await;
        client.frame().await;
    }
    let asked_for = |name: &str| {
        let questions = fixture.mock.questions.lock().expect("not poisoned");
        let names = |question: &Vec<u8>| question.windows(name.len()).any(|bytes| bytes == name.as_bytes());
        questions.iter().any(names)
    };
    let asked = async {
        while !asked_for("made-just-now") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("a question for the new topic", asked).await;
    assert!(!asked_for("not-yet-made"));
}
