//! SASL: what passes between a client and the upstream, and our own exchange with it.

use convoke::config::{SaslConfig, SaslMechanism};
use convoke::proxy::sasl::{Admission, NextFrame, SaslState, Sent, handshake_mechanism};
use convoke::upstream::sasl::{Exchange, Step};

use super::{Target, number, part, put_part};
use crate::bodies::Random;

const NONCE: &str = "nonce";

pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "passing SASL frames".to_owned(),
            reads: &["proxy/sasl.rs", "wire/text.rs"],
            seed: Box::new(passing),
            run: Box::new(follow),
            held_per_byte: 8,
        },
        Target {
            name: "SCRAM messages".to_owned(),
            reads: &["upstream/sasl.rs"],
            seed: Box::new(scram),
            run: Box::new(exchange),
            held_per_byte: 16,
        },
    ]
}

/// A handshake and answers to it, to tokens and to authentications.
fn passing(random: &mut Random) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..=random.below(4) {
        let (kind, body): (u8, &[u8]) = match random.below(6) {
            0 => (0, b"\0\0\0\0\0\x01\0\x05PLAIN"),
            1 => (1, b"\0\0\0\0\0\0"),
            2 => (3, b"\0\0\xff\xff\0\0\0\0\0\0\0\0\0\0\x03\xe8"),
            3 => (4, b"\0\0\0\x01\0\0\0\0\0\0\x03\xe8\0"),
            4 => (2, b"\0\0\xff\xff\0\0\0\x07v=abcde"),
            _ => (5, b"v=abcde"),
        };
        input.push(kind);
        put_part(body, &mut input);
    }
    input
}

fn follow(mut input: &[u8]) {
    let mut state = SaslState::new();
    let mut now_ms = 0_u64;
    while !input.is_empty() {
        let kind = number(&mut input) % 6;
        let body = part(&mut input);
        let version = i16::try_from(kind).unwrap_or_default();
        let sent = match kind {
            0 | 1 => Sent::Handshake {
                version,
                mechanism: handshake_mechanism(body).unwrap_or_default(),
            },
            2..=4 => Sent::Authenticate { version: version - 2 },
            _ => Sent::Token,
        };
        state.sent();
        assert_eq!(state.next_frame(), NextFrame::Wait);
        assert_eq!(state.admits(true, now_ms), Admission::Wait);
        state.answered(sent, body, now_ms);
        assert!(state.next_frame() != NextFrame::Wait);
        let admitted = state.admits(true, now_ms) == Admission::Admitted;
        assert!(!admitted || state.is_authenticated(), "let in without authentication");
        now_ms = now_ms.saturating_add(1000);
    }
}

/// The mechanism, and two messages of a server.
fn scram(random: &mut Random) -> Vec<u8> {
    let mut input = vec![random.byte()];
    let salts = ["c2FsdA==", "QSXCR+Q6sek8bf92", "="];
    let iterations = ["4096", "4097", "1", "131073", "x"][random.below(8).min(4)];
    let first = format!("r={NONCE}more,s={},i={iterations}", salts[random.below(3)]);
    put_part(first.as_bytes(), &mut input);
    put_part(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=", &mut input);
    input
}

fn exchange(mut input: &[u8]) {
    let mechanisms = [
        SaslMechanism::ScramSha256,
        SaslMechanism::ScramSha512,
        SaslMechanism::Plain,
    ];
    let config = SaslConfig {
        mechanism: mechanisms[number(&mut input) % 3],
        username: "user".to_owned(),
        password: "pencil".to_owned(),
    };
    let (mut exchange, first) = Exchange::start(&config, NONCE);
    assert!(!first.is_empty());
    let is_plain = matches!(exchange, Exchange::Plain);
    for round in 0..3 {
        match exchange.step(part(&mut input)) {
            Ok(Step::Send(_)) => assert!(round == 0 && !is_plain),
            // Nobody but who knows the password can make the signature.
            Ok(Step::Done) => assert!(is_plain),
            Err(_) => {}
        }
    }
}
