use super::*;

fn handshake(mechanism: &str, version: i16) -> Sent {
    Sent::Handshake {
        version,
        mechanism: mechanism.to_owned(),
    }
}

fn authenticate_v1(error: i16, token: &[u8], lifetime_ms: i64) -> Vec<u8> {
    let mut body = error.to_be_bytes().to_vec();
    body.extend_from_slice(&(-1_i16).to_be_bytes());
    body.extend_from_slice(&i32::try_from(token.len()).expect("short").to_be_bytes());
    body.extend_from_slice(token);
    body.extend_from_slice(&lifetime_ms.to_be_bytes());
    body
}

fn authenticate_v2(error: i16, token: &[u8], lifetime_ms: i64) -> Vec<u8> {
    let mut body = error.to_be_bytes().to_vec();
    body.push(0);
    body.push(u8::try_from(token.len() + 1).expect("short"));
    body.extend_from_slice(token);
    body.extend_from_slice(&lifetime_ms.to_be_bytes());
    body.push(0);
    body
}

fn answer(state: &mut SaslState, sent: Sent, body: &[u8], now_ms: u64) {
    state.sent();
    assert_eq!(state.admits(true, now_ms), Admission::Wait);
    state.answered(sent, body, now_ms);
}

#[test]
fn without_sasl_requests_are_let_in_only_where_the_upstream_does_not_ask_for_it() {
    let state = SaslState::new();
    assert_eq!(state.admits(false, 0), Admission::Admitted);
    assert!(matches!(state.admits(true, 0), Admission::Refused(_)));
    assert!(!state.is_bound_to_upstream());
}

#[test]
fn plain_is_done_after_one_token_and_its_session_ends() {
    let mut state = SaslState::new();
    answer(&mut state, handshake("PLAIN", 1), &[0, 0], 0);
    assert!(matches!(state.admits(true, 0), Admission::Refused(_)));
    answer(
        &mut state,
        Sent::Authenticate { version: 2 },
        &authenticate_v2(0, b"", 1000),
        100,
    );
    assert_eq!(state.admits(true, 1100), Admission::Admitted);
    assert!(matches!(state.admits(true, 1101), Admission::Refused(_)));
}

#[test]
fn scram_is_done_with_the_servers_signature_and_not_before() {
    let mut state = SaslState::new();
    answer(&mut state, handshake("SCRAM-SHA-512", 1), &[0, 0], 0);
    let first = authenticate_v1(0, b"r=abc,s=def,i=4096", 0);
    answer(&mut state, Sent::Authenticate { version: 1 }, &first, 0);
    assert!(
        matches!(state.admits(true, 0), Admission::Refused(_)),
        "half an exchange lets nobody in"
    );
    answer(
        &mut state,
        Sent::Authenticate { version: 1 },
        &authenticate_v1(0, b"v=sig", 0),
        0,
    );
    assert_eq!(state.admits(true, u64::MAX), Admission::Admitted);
}

#[test]
fn an_oauth_servers_reason_for_refusing_is_not_success() {
    let mut state = SaslState::new();
    answer(&mut state, handshake("OAUTHBEARER", 1), &[0, 0], 0);
    let challenge = authenticate_v2(0, b"{\"status\":\"invalid_token\"}", 0);
    answer(&mut state, Sent::Authenticate { version: 2 }, &challenge, 0);
    assert!(matches!(state.admits(false, 0), Admission::Refused(_)));
}

#[test]
fn a_refused_exchange_stays_refused_until_a_new_one() {
    let mut state = SaslState::new();
    answer(&mut state, handshake("PLAIN", 1), &[0, 0], 0);
    answer(
        &mut state,
        Sent::Authenticate { version: 2 },
        &authenticate_v2(58, b"", 0),
        0,
    );
    assert!(matches!(state.admits(false, 0), Admission::Refused(_)));
}

#[test]
fn re_authentication_opens_an_exchange_again_and_renews_the_session() {
    let mut state = SaslState::new();
    answer(&mut state, handshake("PLAIN", 1), &[0, 0], 0);
    answer(
        &mut state,
        Sent::Authenticate { version: 2 },
        &authenticate_v2(0, b"", 1000),
        0,
    );
    answer(&mut state, handshake("PLAIN", 1), &[0, 0], 900);
    assert!(matches!(state.admits(true, 900), Admission::Refused(_)));
    answer(
        &mut state,
        Sent::Authenticate { version: 2 },
        &authenticate_v2(0, b"", 1000),
        900,
    );
    assert_eq!(state.admits(true, 1800), Admission::Admitted);
}

#[test]
fn a_handshake_that_a_plaintext_listener_refuses_changes_nothing() {
    let mut state = SaslState::new();
    answer(&mut state, handshake("PLAIN", 1), &[0, 34], 0);
    answer(
        &mut state,
        Sent::Authenticate { version: 2 },
        &authenticate_v2(34, b"", 0),
        0,
    );
    assert_eq!(state.admits(false, 0), Admission::Admitted);
}

#[test]
fn after_a_handshake_of_version_0_tokens_are_bare_until_the_exchange_ends() {
    let mut state = SaslState::new();
    state.sent();
    assert_eq!(state.next_frame(), NextFrame::Wait);
    state.answered(handshake("SCRAM-SHA-256", 0), &[0, 0], 0);
    assert_eq!(state.next_frame(), NextFrame::Token);
    answer(&mut state, Sent::Token, b"r=abc", 0);
    assert_eq!(state.next_frame(), NextFrame::Token);
    answer(&mut state, Sent::Token, b"v=sig", 0);
    assert_eq!(state.next_frame(), NextFrame::Request);
    assert_eq!(state.admits(true, 0), Admission::Admitted);
}

#[test]
fn an_answer_that_cannot_be_read_is_a_failure() {
    let mut state = SaslState::new();
    answer(&mut state, handshake("PLAIN", 1), &[0, 0], 0);
    answer(
        &mut state,
        Sent::Authenticate { version: 2 },
        &[0, 0, 0xff, 0xff, 0xff, 0xff, 0xff],
        0,
    );
    assert!(matches!(state.admits(false, 0), Admission::Refused(_)));
}

#[test]
fn the_mechanism_is_read_from_the_handshake() {
    assert_eq!(
        handshake_mechanism(&[0, 5, b'P', b'L', b'A', b'I', b'N']).as_deref(),
        Some("PLAIN")
    );
    assert_eq!(handshake_mechanism(&[0, 6, b'P']), None);
    assert_eq!(handshake_mechanism(&[0xff, 0xff]), None);
}
