use super::*;

/// Only so that the example of RFC 5802 can be run.
static SHA_1: Hash = Hash {
    digest: &digest::SHA1_FOR_LEGACY_USE_ONLY,
    hmac: hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
    pbkdf2: pbkdf2::PBKDF2_HMAC_SHA1,
};

fn client(hash: &'static Hash) -> Scram {
    Scram::start(hash, "user", "pencil", "fyko+d2lbbFgONRv9qkxdawL").0
}

fn sent(step: Result<Step, SaslError>) -> String {
    match step {
        Ok(Step::Send(message)) => String::from_utf8(message).unwrap(),
        other => panic!("not a message: {other:?}"),
    }
}

/// A server-first message that is right but for what is replaced in it.
fn server_first(replace: &str, with: &str) -> String {
    "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096".replace(replace, with)
}

#[test]
fn the_example_of_rfc_5802_is_followed() {
    let (mut scram, first) = Scram::start(&SHA_1, "user", "pencil", "fyko+d2lbbFgONRv9qkxdawL");
    assert_eq!(first, b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL");
    let last = sent(scram.step(server_first("", "").as_bytes()));
    assert_eq!(
        last,
        "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
    );
    assert_eq!(scram.step(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ="), Ok(Step::Done));
}

#[test]
fn the_example_of_rfc_7677_is_followed() {
    let config = SaslConfig {
        mechanism: SaslMechanism::ScramSha256,
        username: "user".into(),
        password: "pencil".into(),
    };
    let (mut exchange, first) = Exchange::start(&config, "rOprNGfwEbeRWgbNEkqO");
    assert_eq!(first, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
    let server_first = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    assert_eq!(
        sent(exchange.step(server_first)),
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    );
    let done = exchange.step(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    assert_eq!(done, Ok(Step::Done));
}

/// Expected values computed with Python's hashlib.
#[test]
fn sha_512_with_a_name_that_needs_escapes_agrees_with_another_implementation() {
    let config = SaslConfig {
        mechanism: SaslMechanism::ScramSha512,
        username: "ka,f=ka".into(),
        password: "pässword".into(),
    };
    let (mut exchange, first) = Exchange::start(&config, "abcdefgh");
    assert_eq!(first, b"n,,n=ka=2Cf=3Dka,r=abcdefgh");
    assert_eq!(
        sent(exchange.step(b"r=abcdefghijklmnop,s=AAECA3NhbHR5,i=8192")),
        "c=biws,r=abcdefghijklmnop,\
         p=oFu3XdNkpZw5leFROu+c1ECR5Y65z9fmAzX0jMVDSvxSAtLc3INaT5wnfUeKYD4xYNqA7iq512BLBI4QwJq8eA=="
    );
    let done =
        exchange.step(b"v=k6zoP0o4fjEZFIvUC20O1k8zV14QdeSWzrGY1USKpQT9veTbI48cIvx/aw+o3pV7OR0i/BfBzjaLYBaEM4m5xQ==");
    assert_eq!(done, Ok(Step::Done));
}

#[test]
fn plain_sends_name_and_password_once() {
    let config = SaslConfig {
        mechanism: SaslMechanism::Plain,
        username: "u".into(),
        password: "p".into(),
    };
    let (mut exchange, first) = Exchange::start(&config, "");
    assert_eq!(first, b"\0u\0p");
    assert_eq!(exchange.step(b""), Ok(Step::Done));
}

#[test]
fn a_server_that_does_not_know_the_password_is_found_out() {
    let mut scram = client(&SHA_256);
    sent(scram.step(server_first("", "").as_bytes()));
    let forged = format!("v={}", STANDARD.encode([7; 32]));
    assert_eq!(scram.step(forged.as_bytes()), Err(SaslError::ServerSignature));
}

#[test]
fn a_server_may_not_skip_its_proof() {
    let mut scram = client(&SHA_256);
    assert!(scram.step(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=").is_err());
    let mut scram = client(&SHA_256);
    sent(scram.step(server_first("", "").as_bytes()));
    assert_eq!(scram.step(b""), Err(SaslError::Malformed("it has no signature")));
    assert_eq!(scram.step(b"v=AAAA"), Err(SaslError::Ended));
}

#[test]
fn iteration_counts_out_of_bounds_are_refused_before_any_work() {
    for count in ["0", "1", "4095", "131073", "4294967295"] {
        let message = server_first("4096", count);
        let refused = client(&SHA_256).step(message.as_bytes());
        assert_eq!(refused, Err(SaslError::Iterations(count.parse().unwrap())));
    }
}

#[test]
fn a_nonce_that_does_not_continue_ours_is_refused() {
    let expected = Err(SaslError::Malformed("its nonce does not continue ours"));
    let other = server_first("fyko", "okyf");
    assert_eq!(client(&SHA_256).step(other.as_bytes()), expected);
    let nothing_added = server_first("3rfcNHYJY1ZVvWVs7j", "");
    assert_eq!(client(&SHA_256).step(nothing_added.as_bytes()), expected);
}

#[test]
fn messages_that_are_not_scram_are_refused() {
    let longest = format!("r={}", "a".repeat(MAX_MESSAGE));
    let cases: [&[u8]; 9] = [
        b"",
        b"\xff\xfe",
        b"m=ext,r=fyko+d2lbbFgONRv9qkxdawLx,s=QSXC,i=4096",
        b"r=fyko+d2lbbFgONRv9qkxdawLx",
        b"r=fyko+d2lbbFgONRv9qkxdawLx,s=QSXC",
        b"r=fyko+d2lbbFgONRv9qkxdawLx,s=!,i=4096",
        b"r=fyko+d2lbbFgONRv9qkxdawLx,s=,i=4096",
        b"r=fyko+d2lbbFgONRv9qkxdawLx,s=QSXC,i=-1",
        longest.as_bytes(),
    ];
    for case in cases {
        let answer = client(&SHA_256).step(case);
        assert!(matches!(answer, Err(SaslError::Malformed(_))), "{case:?}: {answer:?}");
    }
}

#[test]
fn the_servers_own_error_is_passed_on() {
    let expected = Err(SaslError::Server("unknown-user".into()));
    assert_eq!(client(&SHA_256).step(b"e=unknown-user"), expected);
    let mut scram = client(&SHA_256);
    sent(scram.step(server_first("", "").as_bytes()));
    assert_eq!(scram.step(b"e=unknown-user"), expected);
}

#[test]
fn the_password_is_not_printed() {
    let scram = client(&SHA_256);
    assert!(!format!("{scram:?}").contains("pencil"));
}

#[test]
fn a_message_that_cannot_be_read_ends_the_exchange() {
    for unreadable in [&b"r=\xff"[..], &[b'x'; MAX_MESSAGE + 1]] {
        let mut scram = client(&SHA_256);
        assert!(matches!(scram.step(unreadable), Err(SaslError::Malformed(_))));
        assert_eq!(scram.step(server_first("", "").as_bytes()), Err(SaslError::Ended));
    }
}
