//! Every field of every response of Kafka 4.4 that may hold an address has a decision, so that a new one cannot slip
//! through.

use std::collections::BTreeSet;

use super::super::{Treatment, treatment};
use super::golden;
use crate::wire::api::{self, Route};

/// Answers that are passed on although they have fields of such names: the addresses are not the upstream's.
const CONTENT: [(i16, &str); 7] = [
    (15, "where a member connects from"),
    (29, "whom an ACL lets in"),
    (31, "whom an ACL lets in"),
    (69, "where a member connects from"),
    (77, "where a member connects from"),
    (88, "where applications find each other"),
    (89, "where applications find each other, and connect from"),
];

/// A field of a response that may hold an address, in one version.
struct AddressField {
    api_key: i16,
    path: &'static str,
    version: i16,
}

/// Reads what kafka-clients printed of its schemas (`tests/golden/MessageSchemas.java`).
fn address_fields() -> Vec<AddressField> {
    let mut response = None;
    let mut found = Vec::new();
    for line in include_str!("../../../../tests/golden/message_schemas.txt").lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["request", ..] => response = None,
            ["response", key, ..] => response = Some(key.parse().expect("a key")),
            [path, _, versions] => {
                let name = path.rsplit(['.', ']']).next().expect("a name");
                let Some(api_key) = response.filter(|_| may_hold_an_address(name)) else {
                    continue;
                };
                let (first, last) = versions.split_once('-').expect("a range");
                for version in first.parse().expect("a version")..=last.parse::<i16>().expect("a version") {
                    found.push(AddressField { api_key, path, version });
                }
            }
            _ => panic!("not a line of the listing: {line}"),
        }
    }
    found
}

fn may_hold_an_address(name: &str) -> bool {
    let name = name.split('@').next().unwrap_or_default();
    let words: Vec<_> = name.split('_').collect();
    let hit = |word: &&str| {
        matches!(
            word.trim_end_matches('s'),
            "host" | "port" | "listener" | "endpoint" | "addres" | "uri" | "url"
        )
    };
    words.iter().any(hit) && !matches!(name, "endpoint_type" | "endpoint_information_epoch")
}

#[test]
fn every_address_of_a_response_is_rewritten_refused_or_not_the_upstreams() {
    let fields = address_fields();
    let apis: BTreeSet<_> = fields.iter().map(|field| field.api_key).collect();
    assert!(apis.len() > 18, "{apis:?}");
    for AddressField { api_key, path, version } in fields {
        let api = api::find(api_key).unwrap_or_else(|| panic!("api {api_key} has no row"));
        let content = CONTENT.iter().any(|(key, _)| *key == api_key);
        match api.route {
            Route::Refuse => {}
            Route::Forward | Route::Split | Route::Own => assert!(content, "{path} of {} is passed on", api.name),
            Route::Rewrite => {
                assert_ne!(
                    treatment(api_key, version),
                    Treatment::Untouched,
                    "{path} of {} v{version}",
                    api.name
                );
            }
        }
    }
}

#[test]
fn every_version_with_addresses_has_answers_that_the_tests_look_through() {
    let with_addresses: BTreeSet<_> = golden()
        .iter()
        .filter(|golden| !golden.nodes.is_empty())
        .map(|golden| (golden.api_key, golden.version))
        .collect();
    let rewritten = |key| api::find(key).is_some_and(|api| api.route == Route::Rewrite);
    let fields = address_fields().into_iter().filter(|field| rewritten(field.api_key));
    let expected: BTreeSet<_> = fields.map(|field| (field.api_key, field.version)).collect();
    assert_eq!(with_addresses, expected);
}

#[test]
fn the_table_rewrites_what_is_rewritten() {
    for api in api::APIS {
        let mut versions = api.min..=api.max;
        let touched = versions.any(|version| treatment(api.key, version) != Treatment::Untouched);
        assert_eq!(touched, api.route == Route::Rewrite, "{}", api.name);
    }
}
