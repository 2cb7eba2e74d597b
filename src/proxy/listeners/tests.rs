use std::net::{Ipv4Addr, TcpStream};
use std::sync::Mutex;

use super::*;

fn host_port(host: &str, port: u16) -> HostPort {
    HostPort {
        host: host.to_owned(),
        port,
    }
}

fn listeners(bootstrap: &str, nodes: NodePorts, advertise: Option<(&str, &str)>) -> Listeners {
    let config = ListenConfig {
        bootstrap: host_port(bootstrap, 0),
        nodes,
        advertise: advertise.map(|(host, port)| AdvertiseTemplate {
            host: host.to_owned(),
            port: port.to_owned(),
        }),
    };
    Listeners::bind(&config, Box::new(|_| {})).expect("a free port")
}

fn cluster(nodes: &[(i32, &str, u16)]) -> Cluster {
    Cluster {
        nodes: nodes
            .iter()
            .map(|(id, host, port)| (*id, host_port(host, *port)))
            .collect(),
        ..Cluster::default()
    }
}

/// Ports that were free a moment ago, in a row.
fn free_row(len: u16) -> u16 {
    for _ in 0..100 {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let first = held.local_addr().expect("bound").port();
        let Some(last) = first.checked_add(len - 1) else {
            continue;
        };
        drop(held);
        let row: Vec<_> = (first..=last)
            .map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)))
            .collect();
        if row.iter().all(Result::is_ok) {
            return first;
        }
    }
    panic!("no {len} free ports in a row");
}

#[test]
fn each_node_gets_one_listener_and_keeps_it_when_it_moves_or_is_away() {
    let announced = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&announced);
    let config = ListenConfig {
        bootstrap: host_port("127.0.0.1", 0),
        nodes: NodePorts::Ephemeral,
        advertise: None,
    };
    let announce: Announce = Box::new(move |node| told.lock().expect("not poisoned").push((node.node_id, node.listen)));
    let listeners = Listeners::bind(&config, announce).expect("a free port");

    assert!(listeners.follow(&cluster(&[(2, "b", 9), (1, "a", 9)])).is_empty());
    let first = listeners.advertised(1, listeners.ip).expect("known");
    assert!(listeners.follow(&cluster(&[(1, "elsewhere", 10)])).is_empty());
    assert_eq!(listeners.advertised(1, listeners.ip), Some(first));
    assert_eq!(
        *listeners.node(1).expect("known").upstream(),
        host_port("elsewhere", 10)
    );
    assert_eq!(
        listeners.ensure(2, &host_port("stale", 1)).expect("known").port,
        listeners.node(2).expect("known").listen.port()
    );
    assert_eq!(
        *listeners.node(2).expect("known").upstream(),
        host_port("b", 9),
        "only the watcher moves nodes"
    );

    let announced = announced.lock().expect("not poisoned");
    assert_eq!(
        announced.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        [1, 2],
        "once each, by id"
    );
    TcpStream::connect(announced[0].1).expect("bound before it is served");
}

#[test]
fn many_callers_make_one_listener() {
    let listeners = listeners("127.0.0.1", NodePorts::Ephemeral, None);
    let ports: Vec<u16> = std::thread::scope(|scope| {
        let ask = || listeners.ensure(7, &host_port("b", 9)).expect("a free port").port;
        let callers: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        callers
            .into_iter()
            .map(|caller| caller.join().expect("no panic"))
            .collect()
    });
    assert!(ports.iter().all(|port| *port == ports[0]), "{ports:?}");
}

#[test]
fn a_base_port_is_added_to_the_node_id() {
    let base = free_row(3);
    let listeners = listeners("127.0.0.1", NodePorts::Base(base), None);
    assert_eq!(listeners.ensure(2, &host_port("b", 9)).expect("free").port, base + 2);
    for node_id in [70_000, i32::MAX] {
        let error = listeners.ensure(node_id, &host_port("b", 9)).expect_err("no such port");
        assert!(matches!(error, ListenerError::NoSuchPort { .. }), "{error}");
    }
}

#[test]
fn a_range_gives_its_lowest_free_port_and_says_when_none_is_left() {
    let first = free_row(3);
    let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 1)).expect("free");
    let listeners = listeners("127.0.0.1", NodePorts::Range { first, last: first + 2 }, None);
    let errors = listeners.follow(&cluster(&[(5, "a", 1), (9, "b", 1), (11, "c", 1)]));
    assert_eq!(listeners.advertised(5, listeners.ip).expect("known").port, first);
    assert_eq!(listeners.advertised(9, listeners.ip).expect("known").port, first + 2);
    assert_eq!(listeners.advertised(11, listeners.ip), None);
    let [error] = errors.as_slice() else {
        panic!("{errors:?}")
    };
    let text = format!(
        "node 11 gets no port: all of {first}-{} are in use; widen the range of listen.nodes",
        first + 2
    );
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_taken_port_is_named_with_what_to_do() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = taken.local_addr().expect("bound").port();
    let config = ListenConfig {
        bootstrap: host_port("127.0.0.1", port),
        nodes: NodePorts::Ephemeral,
        advertise: None,
    };
    let error = Listeners::bind(&config, Box::new(|_| {}))
        .expect_err("taken")
        .to_string();
    assert!(
        error.contains(&format!("127.0.0.1:{port}")) && error.contains("another program"),
        "{error}"
    );
}

#[test]
fn a_template_wins_over_what_is_bound() {
    let listeners = listeners(
        "127.0.0.1",
        NodePorts::Ephemeral,
        Some(("node-{node}.example", "1909{node}")),
    );
    assert_eq!(
        listeners.ensure(4, &host_port("b", 9)).expect("free"),
        host_port("node-4.example", 19094)
    );
    let error = listeners.ensure(77, &host_port("b", 9)).expect_err("190977 is no port");
    assert!(matches!(error, ListenerError::AdvertisedPort { .. }), "{error}");
}

#[test]
fn a_wildcard_listener_tells_clients_the_address_they_reached() {
    let listeners = listeners("0.0.0.0", NodePorts::Ephemeral, None);
    listeners.ensure(1, &host_port("b", 9)).expect("free");
    let told = |local: &str| {
        listeners
            .advertised(1, local.parse().expect("an address"))
            .expect("known")
            .host
    };
    assert_eq!(told("10.1.2.3"), "10.1.2.3");
    assert_eq!(told("::ffff:10.1.2.3"), "10.1.2.3");
}
