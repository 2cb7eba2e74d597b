//! Answers that are held whole.

use std::collections::BTreeMap;

use super::super::{RewriteError, has_endpoints, response};
use super::{Golden, address_of, assert_no_leak, contains, golden, sidecar};
use crate::proxy::rewrite::{Treatment, treatment};
use bytes::Bytes;

#[test]
fn every_address_is_replaced_in_every_version() {
    for golden in golden() {
        let out = golden.rewrite(&sidecar()).unwrap_or_else(|e| panic!("{golden}: {e}"));
        assert_no_leak(&golden, &out);
        for (id, _) in &golden.nodes {
            let advertised = &sidecar()[id];
            let mut there = advertised.host.clone().into_bytes();
            there.extend(i32::from(advertised.port).to_be_bytes());
            assert_eq!(
                contains(&out, &there),
                !golden.names_controllers(),
                "{golden}: node {id}"
            );
        }
    }
}

#[test]
fn an_answer_without_addresses_is_passed_on_without_a_copy() {
    let mut seen = 0;
    for golden in golden().into_iter().filter(|golden| golden.nodes.is_empty()) {
        let out = golden
            .rewrite(&BTreeMap::new())
            .unwrap_or_else(|e| panic!("{golden}: {e}"));
        assert_eq!(out, golden.body, "{golden}");
        assert_eq!(out.as_ptr(), golden.body.as_ptr(), "{golden} was copied");
        seen += 1;
    }
    assert!(seen > 60, "{seen}");
}

#[test]
fn whether_there_are_endpoints_is_seen_without_rewriting() {
    let with_endpoints = |golden: &&Golden| treatment(golden.api_key, golden.version) == Treatment::GatheredOrScrubbed;
    for golden in golden().iter().filter(with_endpoints) {
        let found = |body: &[u8]| has_endpoints(golden.api_key, golden.version, body);
        assert_eq!(found(&golden.body), Ok(!golden.nodes.is_empty()), "{golden}");
        // An answer that is cut behind its endpoints has them none the less.
        let cut = found(&golden.body[..golden.body.len() - 1]);
        assert!(cut == Ok(true) || cut.is_err(), "{golden}: {cut:?}");
    }
    assert_eq!(has_endpoints(22, 5, b"\xff\xff"), Ok(false));
}

#[test]
fn nodes_without_a_listener_are_told_with_their_addresses() {
    for golden in golden().into_iter().filter(|golden| !golden.names_controllers()) {
        let mut known = sidecar();
        known.remove(&2);
        known.remove(&70000);
        let unknown: Vec<_> = golden.nodes.iter().filter(|(id, _)| *id != 1).cloned().collect();
        match golden.rewrite(&known) {
            Ok(_) => assert!(unknown.is_empty(), "{golden}"),
            Err(error) => assert_eq!(error, RewriteError::UnknownNodes(unknown), "{golden}"),
        }
    }
    let error = RewriteError::UnknownNodes(vec![(7, address_of("h", 1)), (9, address_of("i", 2))]);
    assert_eq!(error.to_string(), "nodes without a listener: 7 at h:1, 9 at i:2");
}

#[test]
fn answers_are_handled_as_their_version_needs() {
    for golden in golden() {
        let treatment = treatment(golden.api_key, golden.version);
        let expected = match (golden.api_key, golden.version) {
            (0, ..=9) | (1, ..=15) | (55, ..=1) => Treatment::Untouched,
            (0 | 1 | 78 | 79, _) => Treatment::GatheredOrScrubbed,
            _ => Treatment::Gathered,
        };
        assert_eq!(treatment, expected, "{golden}");
    }
    assert_eq!(treatment(2, 8), Treatment::Untouched);
}

#[test]
fn answers_of_other_apis_are_not_looked_at() {
    let body = Bytes::from_static(b"\xff\xff\xff\xff\xff");
    assert_eq!(response(22, 5, body.clone(), &BTreeMap::new()), Ok(body));
}

#[test]
fn an_address_of_no_node_is_blanked() {
    // Key "k", node -1, host "leak", port 9092, error 15, no message.
    let body = b"\0\0\0\0\x02\x02k\xff\xff\xff\xff\x05leak\0\0\x23\x84\0\x0f\0\0\0";
    let blank = b"\0\0\0\0\x02\x02k\xff\xff\xff\xff\x01\xff\xff\xff\xff\0\x0f\0\0\0";
    let out = response(10, 4, Bytes::from_static(body), &sidecar());
    assert_eq!(out, Ok(Bytes::from_static(blank)));
}

#[test]
fn a_cut_answer_is_refused_if_the_cut_is_before_the_last_address() {
    for golden in golden().into_iter().filter(|golden| !golden.nodes.is_empty()) {
        let whole = golden.rewrite(&sidecar());
        for len in 0..golden.body.len() {
            let mut cut = golden.clone();
            cut.body = golden.body.slice(..len);
            match cut.rewrite(&sidecar()) {
                Err(RewriteError::Malformed(_)) => {}
                // The rest of a Metadata answer is not read; what was read is rewritten as in the whole.
                Ok(out) => {
                    let whole = whole.as_ref().expect("the whole is well-formed");
                    assert_eq!(out, whole[..out.len()], "{golden} cut at {len}");
                    assert_no_leak(&golden, &out);
                }
                Err(error) => panic!("{golden} cut at {len}: {error}"),
            }
        }
    }
}
