//! Answers whose addresses are taken out as they stream by.

use super::super::scrubber::Filler;
use super::super::{EndpointScrubber, RewriteError};
use super::{Golden, assert_no_leak, golden};
use crate::wire::reader::Reader;

fn streamed() -> Vec<Golden> {
    let goldens = golden().into_iter();
    goldens.filter(|golden| scrubber(golden).is_some()).collect()
}

fn scrubber(golden: &Golden) -> Option<EndpointScrubber> {
    EndpointScrubber::new(golden.api_key, golden.version, golden.body.len())
}

/// Feeds the answer in chunks that end at the given places.
fn scrub(golden: &Golden, cuts: &[usize]) -> Result<Vec<u8>, RewriteError> {
    let mut out = golden.body.to_vec();
    let mut scrubber = scrubber(golden).expect("an answer with endpoints");
    let mut from = 0;
    for to in cuts.iter().copied().chain([out.len()]) {
        scrubber.feed(&mut out[from..to])?;
        from = to;
    }
    Ok(out)
}

#[test]
fn the_addresses_are_gone_and_the_length_is_the_same() {
    for golden in streamed() {
        let out = scrub(&golden, &[]).unwrap_or_else(|e| panic!("{golden}: {e}"));
        assert_eq!(out.len(), golden.body.len(), "{golden}");
        assert_no_leak(&golden, &out);
        assert_eq!(out != golden.body, !golden.nodes.is_empty(), "{golden}");
    }
}

#[test]
fn every_way_to_cut_the_answer_gives_the_same() {
    for golden in streamed() {
        let whole = scrub(&golden, &[]);
        let len = golden.body.len();
        for cut in 0..=len {
            assert_eq!(scrub(&golden, &[cut]), whole, "{golden} cut at {cut}");
            assert_eq!(
                scrub(&golden, &[cut, (cut + 1).min(len)]),
                whole,
                "{golden} cut around byte {cut}"
            );
        }
        assert_eq!(
            scrub(&golden, &(0..len).collect::<Vec<_>>()),
            whole,
            "{golden} byte by byte"
        );
    }
}

#[test]
fn bytes_that_the_hint_names_may_pass_unseen() {
    for golden in streamed() {
        let whole = scrub(&golden, &[]).unwrap_or_else(|e| panic!("{golden}: {e}"));
        let mut out = golden.body.to_vec();
        let mut scrubber = scrubber(&golden).expect("an answer with endpoints");
        let (mut at, mut passed) = (0, 0);
        while at < out.len() {
            let hint = scrubber.skip_hint();
            if hint > 0 {
                scrubber.pass(hint);
                at += hint;
                passed += hint;
            } else {
                scrubber
                    .feed(&mut out[at..=at])
                    .unwrap_or_else(|e| panic!("{golden}: {e}"));
                at += 1;
            }
        }
        assert_eq!(out, whole, "{golden}");
        // More than the records of a Fetch or ShareFetch.
        let records = match golden.api_key {
            1 => 300,
            78 => 200,
            _ => 0,
        };
        assert!(passed > records, "{golden}: {passed}");
    }
}

#[test]
fn a_cut_answer_is_refused_when_its_last_byte_is_there() {
    for golden in streamed() {
        for len in 1..golden.body.len() {
            let mut cut = golden.clone();
            cut.body = golden.body.slice(..len);
            match scrub(&cut, &[len / 2]) {
                Err(_) => {}
                // The array of the share APIs is filled up to the end of the frame, whatever follows it.
                Ok(out) => {
                    assert!(matches!(golden.api_key, 78 | 79), "{golden} cut at {len}");
                    assert_no_leak(&golden, &out);
                }
            }
        }
    }
}

#[test]
fn more_bytes_than_the_frame_has_are_refused() {
    for golden in streamed() {
        let mut scrubber = scrubber(&golden).expect("an answer with endpoints");
        let mut longer = golden.body.to_vec();
        longer.push(0);
        assert!(
            matches!(scrubber.feed(&mut longer), Err(RewriteError::Malformed(_))),
            "{golden}"
        );
    }
}

#[test]
fn an_id_of_the_endpoints_that_is_padded_is_renamed_too() {
    // Produce v13: no topics, throttle time, one tagged field: id 0 in one to five bytes, three bytes of content.
    for width in 1..=5 {
        let mut body = b"\x01\0\0\0\0\x01".to_vec();
        body.extend(vec![0x80; width - 1]);
        body.extend(b"\0\x03abc");
        for cut in 0..body.len() {
            let mut out = body.clone();
            let (first, second) = out.split_at_mut(cut);
            let mut scrubber = EndpointScrubber::new(0, 13, body.len()).expect("endpoints");
            scrubber
                .feed(first)
                .and_then(|()| scrubber.feed(second))
                .expect("well-formed");
            let mut reader = Reader::new(&out[6..]);
            let id = reader.unsigned_varint().expect("an id");
            assert!(id != 0 && i32::try_from(id).is_ok(), "{id}");
            assert!(out.ends_with(b"\x03\0\0\0"), "{out:?}");
        }
    }
}

#[test]
fn the_filler_fits_every_length() {
    let around = |edge: usize| edge - 300..edge + 300;
    for len in (5..300).chain(around(1 << 14)).chain(around(1 << 21)) {
        let filler = Filler::new(len).unwrap_or_else(|| panic!("{len} bytes"));
        let mut out = vec![0xee; len];
        filler.write(0, &mut out);
        let mut reader = Reader::new(&out);
        assert_eq!(reader.compact_len(), Ok(Some(0)), "{len} bytes");
        assert_eq!(reader.unsigned_varint(), Ok(1), "{len} bytes");
        assert_eq!(reader.unsigned_varint(), Ok(0x7f), "{len} bytes");
        let size = reader.unsigned_varint().expect("a size") as usize;
        assert_eq!(reader.position() + size, len, "{len} bytes");
    }
    assert!(Filler::new(4).is_some() && Filler::new(3).is_none());
}
