//! Every answer that carries addresses, as kafka-clients writes it, goes through and is read back.
//!
//! `tests/golden/RewrittenAnswers.java` made the answers.

mod decoded;
mod hostile;
mod schemas;
mod scrubbed;
mod whole;

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Addresses, RewriteError};
use crate::config::HostPort;

/// An answer as the upstream sends it.
#[derive(Debug, Clone)]
struct Golden {
    api_key: i16,
    version: i16,
    name: &'static str,
    /// The nodes that it names an address of.
    nodes: Vec<(i32, HostPort)>,
    body: Bytes,
}

impl Golden {
    fn rewrite(&self, addresses: &dyn Addresses) -> Result<Bytes, RewriteError> {
        super::response(self.api_key, self.version, self.body.clone(), addresses)
    }

    /// Whether the addresses in it are controllers', which are taken out instead of mapped.
    fn names_controllers(&self) -> bool {
        self.api_key == crate::wire::api::DESCRIBE_QUORUM || self.name == "controllers"
    }
}

impl std::fmt::Display for Golden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "api {} version {} {}", self.api_key, self.version, self.name)
    }
}

fn golden() -> Vec<Golden> {
    let lines = include_str!("../../../tests/golden/rewritten_answers.txt").lines();
    lines.map(golden_line).collect()
}

fn golden_line(line: &'static str) -> Golden {
    let [api_key, version, name, nodes, body] = line.split(' ').collect::<Vec<_>>()[..] else {
        panic!("not five words: {line}");
    };
    let nodes = nodes.split(',').filter(|node| *node != "-").map(|node| {
        let (id, address) = node.split_once('=').expect("id=address");
        let (host, port) = address.rsplit_once(':').expect("host:port");
        (
            id.parse().expect("an id"),
            address_of(host, port.parse().expect("a port")),
        )
    });
    Golden {
        api_key: api_key.parse().expect("a key"),
        version: version.parse().expect("a version"),
        name,
        nodes: nodes.collect(),
        body: unhex(body),
    }
}

fn unhex(hex: &str) -> Bytes {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("hex") as u8;
    hex.as_bytes()
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

fn address_of(host: &str, port: u16) -> HostPort {
    HostPort {
        host: host.to_owned(),
        port,
    }
}

/// Addresses of a sidecar, longer and shorter than those of the upstream.
fn sidecar() -> BTreeMap<i32, HostPort> {
    BTreeMap::from([
        (1, address_of("s1", 31001)),
        (
            2,
            address_of(&format!("{}.sidecar.example.org", "long".repeat(40)), 31002),
        ),
        (70000, address_of("::1", 31003)),
    ])
}

impl Addresses for BTreeMap<i32, HostPort> {
    fn advertised(&self, node_id: i32) -> Option<HostPort> {
        self.get(&node_id).cloned()
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Fails if any of the upstream's addresses is in the bytes of an answer.
fn assert_no_leak(golden: &Golden, out: &[u8]) {
    for (id, upstream) in &golden.nodes {
        assert!(!contains(out, upstream.host.as_bytes()), "{golden}: host of node {id}");
        let port = i32::from(upstream.port).to_be_bytes();
        // DescribeQuorum writes ports in two bytes, but those two bytes may stand anywhere by chance.
        assert!(!contains(out, &port), "{golden}: port of node {id}");
    }
}
