//! Bytes that no broker sends: an error or a pass, never a panic, a hang or memory out of proportion.

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::super::{EndpointScrubber, response};
use super::{Golden, golden, sidecar};

fn both_ways(api_key: i16, version: i16, body: &[u8], cuts: &[Index]) {
    let _ = response(api_key, version, Bytes::copy_from_slice(body), &sidecar());
    let Some(mut scrubber) = EndpointScrubber::new(api_key, version, body.len()) else {
        return;
    };
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
    cuts.sort_unstable();
    let mut out = body.to_vec();
    let mut from = 0;
    for to in cuts.into_iter().chain([body.len()]) {
        if scrubber.feed(&mut out[from..to]).is_err() {
            return;
        }
        from = to;
    }
    assert_eq!(out.len(), body.len());
}

fn api() -> impl Strategy<Value = (i16, i16)> {
    select(
        golden()
            .iter()
            .map(|golden| (golden.api_key, golden.version))
            .collect::<Vec<_>>(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_bytes_never_panic(
        (api_key, version) in api(),
        body in proptest::collection::vec(any::<u8>(), 0..400),
        cuts in proptest::collection::vec(any::<Index>(), 0..5),
    ) {
        both_ways(api_key, version, &body, &cuts);
    }

    #[test]
    fn changed_answers_never_panic(
        golden in select(golden()),
        changes in proptest::collection::vec((any::<Index>(), select(vec![0x00, 0x01, 0x02, 0x7f, 0x80, 0xff])), 1..6),
        end in any::<Index>(),
        cuts in proptest::collection::vec(any::<Index>(), 0..5),
    ) {
        let Golden { api_key, version, body, .. } = golden;
        let mut body = body.to_vec();
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        both_ways(api_key, version, &body, &cuts);
        both_ways(api_key, version, &body[..end.index(body.len())], &cuts);
    }
}

#[test]
fn lengths_of_billions_are_refused_at_once() {
    // Produce v13, Fetch v18, ShareFetch v2: the first array claims 2^32 - 2 elements.
    let cases: [(i16, i16, &[u8]); 3] = [
        (0, 13, b"\xff\xff\xff\xff\x0f\0\0\0\0"),
        (1, 18, b"\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\x0f\0"),
        (78, 2, b"\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\x0f\0"),
    ];
    for (api_key, version, body) in cases {
        assert!(response(api_key, version, Bytes::from_static(body), &sidecar()).is_err());
        let mut scrubber = EndpointScrubber::new(api_key, version, body.len()).expect("endpoints");
        assert!(scrubber.feed(&mut body.to_vec()).is_err());
    }
    // Metadata v1 and v13: brokers.
    for (version, body) in [(1, &b"\x7f\xff\xff\xff"[..]), (13, b"\0\0\0\0\xff\xff\xff\xff\x0f")] {
        assert!(response(3, version, Bytes::from_static(body), &sidecar()).is_err());
    }
}
