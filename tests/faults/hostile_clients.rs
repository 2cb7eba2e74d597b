//! Bytes that no client sends, at a Convoke in front of a real broker.

use std::io::Write;
use std::time::Duration;

use bytes::BufMut;
use convoke_support::Result;
use convoke_support::convoke::Convoke;

use crate::raw::{Raw, frame, request};
use crate::{CONVOKE, kafka, wait_for_log};

const JOIN_GROUP: i16 = 11;
const OFFSET_COMMIT: i16 = 8;
const LIST_OFFSETS: i16 = 2;
const HEARTBEAT: i16 = 12;

/// What is sent, the reason that the metric counts, and words of the line in the log.
struct Hostile {
    name: &'static str,
    bytes: Vec<u8>,
    reason: &'static str,
    said: &'static [&'static str],
}

fn hostile(name: &'static str, bytes: Vec<u8>, reason: &'static str, said: &'static [&'static str]) -> Hostile {
    Hostile {
        name,
        bytes,
        reason,
        said,
    }
}

/// A JoinGroup v2 whose list of protocols claims to have as many entries as a number can say.
fn huge_array() -> Vec<u8> {
    let mut body = Vec::new();
    let mut text = |text: &str| {
        body.put_i16(i16::try_from(text.len()).expect("short"));
        body.put_slice(text.as_bytes());
    };
    text("group");
    body.put_i32(10_000);
    body.put_i32(60_000);
    body.put_i16(0);
    body.put_i16(8);
    body.put_slice(b"consumer");
    body.put_i32(i32::MAX);
    request(JOIN_GROUP, 2, &body)
}

/// A commit that ends in the middle of its group's name.
fn truncated() -> Vec<u8> {
    request(OFFSET_COMMIT, 2, &[0, 5, b'g', b'r'])
}

fn table() -> Vec<Hostile> {
    let after_a_valid_frame = [
        &request(HEARTBEAT, 0, b"\0\x01g\0\0\0\x01\0\x01m")[..],
        b"\xff\xff\xff\xff\0rubbish",
    ]
    .concat();
    vec![
        hostile(
            "an unknown API",
            request(9_999, 0, b""),
            "unsupported_api",
            &["unknown api key 9999"],
        ),
        hostile(
            "a forwarded API too new",
            request(LIST_OFFSETS, 99, b"\0"),
            "unsupported_api",
            &["ListOffsets has no version 99"],
        ),
        hostile(
            "an owned API too new",
            request(JOIN_GROUP, 99, b"\0"),
            "unsupported_api",
            &["JoinGroup has no version 99"],
        ),
        hostile(
            "an oversized length",
            vec![0x7f, 0xff, 0xff, 0xff],
            "frame_too_long",
            &["2147483647 bytes", "limits.frame_max"],
        ),
        hostile(
            "a negative length",
            vec![0x80, 0, 0, 0],
            "malformed",
            &["a frame of -2147483648 bytes"],
        ),
        hostile(
            "a truncated body",
            truncated(),
            "refused",
            &["OffsetCommit v2", "cannot be read"],
        ),
        hostile(
            "a huge array",
            huge_array(),
            "refused",
            &["JoinGroup v2", "cannot be read"],
        ),
        hostile("an empty frame", frame(b""), "malformed", &["ends within its head"]),
        hostile(
            "rubbish after a valid frame",
            after_a_valid_frame,
            "malformed",
            &["a frame of -1 bytes"],
        ),
        hostile(
            "TLS",
            b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".to_vec(),
            "tls_bytes",
            &[
                "speaks TLS",
                "set the client's security.protocol to PLAINTEXT or SASL_PLAINTEXT",
            ],
        ),
        hostile(
            "HTTP",
            b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
            "frame_too_long",
            &["limits.frame_max"],
        ),
    ]
}

/// Of the process, in bytes.
fn resident(convoke: &Convoke) -> Result<f64> {
    convoke.metric("process_resident_memory_bytes", &[])
}

#[test]
fn each_is_told_in_the_log_and_nobody_else_notices() -> Result<()> {
    let kafka = kafka()?;
    let mut convoke = Convoke::start(CONVOKE, &kafka, &[])?;
    let address = convoke.nodes()[&1].clone();
    let mut bystander = Raw::connect(&address)?;
    assert_eq!(bystander.commit("bystander", 0)?, 0);
    let before = resident(&convoke)?;
    let mut said = Vec::new();
    for (turn, hostile) in (1..).zip(table()) {
        let ended = [&format!("reason=\"{}\"", hostile.reason)[..]];
        let name = hostile.name;
        let count = convoke.metric("convoke_connections_closed_total", &ended)?;
        let from = convoke.process()?.stderr.len();
        let mut client = Raw::connect(&address)?;
        client.stream.write_all(&hostile.bytes)?;
        let rest = client.rest()?;
        assert!(
            rest.is_empty() || name.contains("after a valid frame"),
            "{name}: {rest:?}"
        );
        crate::eventually(name, || {
            Ok(convoke.metric("convoke_connections_closed_total", &ended)? > count)
        })?;
        // Each reason has one line in five seconds.
        if !said.contains(&hostile.reason) {
            let (line, _) = wait_for_log(convoke.process()?, from, hostile.said)?;
            assert!(
                line.contains("WARN") && line.contains("peer=127.0.0.1:"),
                "{name}: {line}"
            );
            said.push(hostile.reason);
        }
        assert_eq!(bystander.commit("bystander", turn)?, 0, "{name}");
        assert_eq!(bystander.committed("bystander")?, Ok(turn), "{name}");
        assert_eq!(bystander.brokers()?, 1, "{name}");
    }
    let grown = resident(&convoke)? - before;
    assert!(grown < 32e6, "{grown} bytes more than before");
    assert_eq!(
        convoke.metric("convoke_connections_closed_total", &["reason=\"panicked\""])?,
        0.0
    );
    convoke.stop()
}

#[test]
fn a_client_that_never_reads_is_let_go_and_told_of() -> Result<()> {
    let kafka = kafka()?;
    let mut convoke = Convoke::start(CONVOKE, &kafka, &["--set", "limits.idle_timeout=2s"])?;
    let address = convoke.nodes()[&1].clone();
    let mut bystander = Raw::connect(&address)?;
    let before = resident(&convoke)?;
    let mut client = Raw::connect(&address)?;
    client.stream.set_write_timeout(Some(Duration::from_millis(500)))?;
    // ApiVersions v0 is answered here with some hundred bytes; no answer is ever taken.
    let asks = request(18, 0, b"").repeat(1_000);
    let mut turn = 0;
    while client.stream.write_all(&asks).is_ok() {
        turn += 1;
        assert_eq!(bystander.commit("bystander", turn)?, 0);
        assert!(turn < 10_000, "{turn} thousand requests are taken");
    }
    let (line, _) = wait_for_log(convoke.process()?, 0, &["the client did not take its answers for 2s"])?;
    assert!(line.contains("WARN") && line.contains("client_stalled"), "{line}");
    // Meanwhile the bystander has been idle for too long itself.
    assert_eq!(Raw::connect(&address)?.committed("bystander")?, Ok(turn));
    let grown = resident(&convoke)? - before;
    assert!(grown < 32e6, "{grown} bytes more than before");
    convoke.stop()
}
