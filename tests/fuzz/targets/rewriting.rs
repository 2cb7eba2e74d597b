//! Answers that carry addresses: rewritten whole, and scrubbed in pieces.

use std::sync::LazyLock;

use bytes::Bytes;
use convoke::config::HostPort;
use convoke::proxy::rewrite::{
    Addresses, EndpointScrubber, RewriteError, Treatment, has_endpoints, response, treatment,
};
use convoke::wire::api::APIS;
use convoke::wire::schema::{self, Schema};
use convoke::wire::{guard, lenient};

use super::{Target, number, unhex};
use crate::bodies::{self, Random};

/// Every API and version whose answers are not passed on untouched.
static REWRITTEN: LazyLock<Vec<(i16, i16)>> = LazyLock::new(|| {
    let all = APIS
        .iter()
        .flat_map(|api| (api.min..=api.max).map(|version| (api.key, version)));
    all.filter(|(key, version)| treatment(*key, *version) != Treatment::Untouched)
        .collect()
});

static GOLDEN: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("../../golden/rewritten_answers.txt").lines().collect());

/// The table of an API's answers.
fn schema_of(api_key: i16) -> Option<&'static Schema> {
    let mut schemas = schema::ALL.iter().copied();
    schemas.find(|schema| schema.api_key == api_key && schema.name.ends_with("response"))
}

pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "answers rewritten whole".to_owned(),
            reads: &[
                "proxy/rewrite/splice.rs",
                "proxy/rewrite/walker.rs",
                "proxy/rewrite/metadata.rs",
                "proxy/rewrite/find_coordinator.rs",
                "proxy/rewrite/describe_cluster.rs",
                "proxy/rewrite/describe_quorum.rs",
                "proxy/rewrite/node_endpoints.rs",
            ],
            seed: Box::new(seed),
            run: Box::new(|mut input| {
                let (api_key, version) = choose(&mut input);
                number(&mut input);
                whole(api_key, version, input);
            }),
            // A host of ours in the place of an empty one, and the names of nodes that are not known.
            held_per_byte: 64,
        },
        Target {
            name: "answers scrubbed in pieces".to_owned(),
            reads: &["proxy/rewrite/scrubber.rs", "proxy/rewrite/walker.rs"],
            seed: Box::new(seed),
            run: Box::new(|mut input| {
                let (api_key, version) = choose(&mut input);
                let cuts = number(&mut input);
                in_pieces(api_key, version, cuts, input);
            }),
            held_per_byte: 8,
        },
    ]
}

fn choose(input: &mut &[u8]) -> (i16, i16) {
    REWRITTEN[number(input) % REWRITTEN.len()]
}

/// Where the sidecar's listeners are: each node but every seventh has one.
struct Listeners;

impl Addresses for Listeners {
    fn advertised(&self, node_id: i32) -> Option<HostPort> {
        (node_id % 7 != 6).then(|| HostPort {
            host: "sidecar.example".to_owned(),
            port: 19_092,
        })
    }
}

fn whole(api_key: i16, version: i16, body: &[u8]) {
    let body = Bytes::copy_from_slice(body);
    let found = has_endpoints(api_key, version, &body);
    match response(api_key, version, body.clone(), &Listeners) {
        Ok(out) => {
            if treatment(api_key, version) == Treatment::GatheredOrScrubbed && found == Ok(false) {
                assert_eq!(out, body);
            }
            assert_still_valid(api_key, version, &body, &out);
        }
        Err(RewriteError::UnknownNodes(nodes)) => assert!(!nodes.is_empty()),
        Err(RewriteError::Malformed(_)) => {}
    }
}

/// Cut at a few places or after every byte, an answer comes out the same.
fn in_pieces(api_key: i16, version: i16, cuts: usize, body: &[u8]) {
    let Some(at_once) = scrubbed(api_key, version, body, body.len().max(1)) else {
        return;
    };
    for size in [1, 1 + cuts] {
        let in_pieces = scrubbed(api_key, version, body, size).expect("endpoints");
        assert_eq!(in_pieces.is_ok(), at_once.is_ok(), "in pieces of {size}");
        if let (Ok(one), Ok(other)) = (&at_once, &in_pieces) {
            assert_eq!(one, other, "in pieces of {size}");
        }
    }
    if let Ok(out) = at_once {
        assert_eq!(out.len(), body.len());
        assert_still_valid(api_key, version, body, &out);
        assert!(has_endpoints(api_key, version, &out) != Ok(true), "endpoints are left");
    }
}

fn scrubbed(api_key: i16, version: i16, body: &[u8], size: usize) -> Option<Result<Vec<u8>, RewriteError>> {
    let mut scrubber = EndpointScrubber::new(api_key, version, body.len())?;
    let mut out = body.to_vec();
    let fed = out.chunks_mut(size).try_for_each(|chunk| scrubber.feed(chunk));
    Some(fed.map(|()| out))
}

fn assert_still_valid(api_key: i16, version: i16, body: &[u8], out: &[u8]) {
    let schema = schema_of(api_key).expect("a table");
    if guard::check(schema, version, body).is_ok() {
        // A tag that got another number may stand out of order, which clients do not mind.
        lenient::plain(schema, version, out).expect("what was valid is valid still");
    }
}

/// What Kafka wrote, or what the table says.
fn seed(random: &mut Random) -> Vec<u8> {
    let (api_key, version, body) = if random.below(2) == 0 {
        let (api_key, version) = REWRITTEN[random.below(REWRITTEN.len())];
        let schema = schema_of(api_key).expect("a table");
        (api_key, version, bodies::valid(schema, version, 2, random))
    } else {
        let words: Vec<_> = GOLDEN[random.below(GOLDEN.len())].split(' ').collect();
        let number = |word: &str| word.parse::<i16>().expect("a number");
        (number(words[0]), number(words[1]), unhex(words[4]))
    };
    let place = REWRITTEN.iter().position(|pair| *pair == (api_key, version));
    let place = place.and_then(|place| u8::try_from(place).ok()).unwrap_or(0);
    [&[place, random.byte()], &body[..]].concat()
}
