//! What a client's SASL frames tell about it, followed while they pass: the upstream authenticates, this only listens.
//!
//! ```text
//!  None ──handshake accepted──▶ Open ──last answer accepted──▶ Authenticated ──handshake accepted──▶ Open …
//!                                 └──refused──▶ Failed                (re-authentication, KIP-368)
//! ```
//! A broker takes nothing but SASL frames while an exchange is open, and closes the connection otherwise. What ends here
//! must not be easier to reach than what is forwarded, so it waits for the answers of all SASL frames that were sent, and is
//! let in by [`SaslState::admits`]. That an answer is the last one of its exchange is read from the answer itself, by the rules
//! of the mechanism: a client that has only begun one is not taken for authenticated.
//! With SaslHandshake v0 the frames after it are bare tokens without a head (before KIP-152).
//!
//! Follows Kafka's `SaslServerAuthenticator`.

use crate::wire::error_code::ErrorCode;
use crate::wire::text;

/// What of SASL was sent upstream and waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    Handshake {
        version: i16,
        mechanism: String,
    },
    Authenticate {
        version: i16,
    },
    /// A token without a head, after a handshake of version 0.
    Token,
}

/// Whether a request that ends here may be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Admitted,
    /// Answers to SASL frames are on their way; ask again when they have come.
    Wait,
    /// A broker would close the connection; the words are for the log.
    Refused(&'static str),
}

/// What the next frame of a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextFrame {
    Request,
    Token,
    /// Answers to SASL frames are on their way; ask again when they have come.
    Wait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    None,
    Open,
    Authenticated,
    Failed,
}

/// The state of one client connection.
#[derive(Debug)]
pub struct SaslState {
    phase: Phase,
    mechanism: String,
    /// The exchange that is open was begun by a handshake of version 0.
    bare: bool,
    unanswered: usize,
    /// Monotonic milliseconds.
    session_ends_at: Option<u64>,
}

impl Default for SaslState {
    fn default() -> Self {
        Self::new()
    }
}

impl SaslState {
    pub const fn new() -> Self {
        Self {
            phase: Phase::None,
            mechanism: String::new(),
            bare: false,
            unanswered: 0,
            session_ends_at: None,
        }
    }

    /// A SASL frame goes upstream.
    pub const fn sent(&mut self) {
        self.unanswered += 1;
    }

    /// The answer to the eldest SASL frame came. `body` follows the response head (a bare token is all body).
    pub fn answered(&mut self, sent: Sent, body: &[u8], now_ms: u64) {
        self.unanswered = self.unanswered.saturating_sub(1);
        match sent {
            Sent::Handshake { version, mechanism } => {
                if error_of(body) == Some(ErrorCode::NONE) {
                    self.phase = Phase::Open;
                    self.mechanism = mechanism;
                    self.bare = version == 0;
                }
            }
            Sent::Authenticate { version } => self.authenticate_answered(version, body, now_ms),
            Sent::Token => {
                if self.phase == Phase::Open && self.is_last(body) {
                    self.authenticated(0, now_ms);
                }
            }
        }
    }

    fn authenticate_answered(&mut self, version: i16, body: &[u8], now_ms: u64) {
        if self.phase != Phase::Open {
            return;
        }
        match read_authenticate(version, body) {
            Some((ErrorCode::NONE, token, lifetime_ms)) => {
                if self.is_last(token) {
                    self.authenticated(lifetime_ms, now_ms);
                }
            }
            _ => self.phase = Phase::Failed,
        }
    }

    fn authenticated(&mut self, lifetime_ms: i64, now_ms: u64) {
        self.phase = Phase::Authenticated;
        self.bare = false;
        self.session_ends_at = u64::try_from(lifetime_ms)
            .ok()
            .filter(|ms| *ms > 0)
            .map(|ms| now_ms.saturating_add(ms));
    }

    /// Whether the server's token ends the exchange. SCRAM ends with the server's signature (RFC 5802); an AWS_MSK_IAM server
    /// answers once, with a document; all others end with nothing left to say (OAUTHBEARER says why it refuses, RFC 7628).
    fn is_last(&self, token: &[u8]) -> bool {
        match self.mechanism.as_str() {
            "SCRAM-SHA-256" | "SCRAM-SHA-512" => token.starts_with(b"v="),
            "AWS_MSK_IAM" => true,
            _ => token.is_empty(),
        }
    }

    /// What the next frame is, to be asked before each frame once a handshake of version 0 was sent.
    pub const fn next_frame(&self) -> NextFrame {
        if self.unanswered > 0 {
            return NextFrame::Wait;
        }
        match self.phase {
            Phase::Open if self.bare => NextFrame::Token,
            _ => NextFrame::Request,
        }
    }

    /// Whether a request that ends here may be looked at. `required`: the upstream lets nobody in without SASL.
    pub fn admits(&self, required: bool, now_ms: u64) -> Admission {
        if self.unanswered > 0 {
            return Admission::Wait;
        }
        match self.phase {
            Phase::None if required => Admission::Refused("a request before authentication"),
            Phase::Open => Admission::Refused("a request while a SASL exchange is open"),
            Phase::Failed => Admission::Refused("a request after authentication failed"),
            Phase::Authenticated if self.session_ends_at.is_some_and(|end| now_ms > end) => {
                Admission::Refused("a request after the session ended without re-authentication")
            }
            Phase::None | Phase::Authenticated => Admission::Admitted,
        }
    }

    pub fn is_authenticated(&self) -> bool {
        self.phase == Phase::Authenticated
    }

    /// Whether the upstream connection stands for a user: another one could not take its place.
    pub fn is_bound_to_upstream(&self) -> bool {
        self.phase != Phase::None || self.unanswered > 0
    }
}

/// The mechanism of a SaslHandshake request body (v0 and v1 alike).
pub fn handshake_mechanism(body: &[u8]) -> Option<String> {
    let (len, rest) = body.split_first_chunk()?;
    let len = usize::try_from(i16::from_be_bytes(*len)).ok()?;
    Some(text::as_java(rest.get(..len)?).into_owned())
}

fn error_of(body: &[u8]) -> Option<ErrorCode> {
    body.first_chunk().map(|code| ErrorCode(i16::from_be_bytes(*code)))
}

/// Error, token and session lifetime of a SaslAuthenticate answer: `error_code error_message auth_bytes session_lifetime_ms(v1+)`,
/// compact lengths in v2.
fn read_authenticate(version: i16, body: &[u8]) -> Option<(ErrorCode, &[u8], i64)> {
    let error = error_of(body)?;
    let rest = body.get(2..)?;
    let (_, rest) = if version >= 2 { compact(rest)? } else { short(rest)? };
    let (token, rest) = if version >= 2 { compact(rest)? } else { long(rest)? };
    let lifetime = match version {
        ..1 => 0,
        _ => i64::from_be_bytes(*rest.first_chunk()?),
    };
    Some((error, token, lifetime))
}

/// A nullable string.
fn short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(i16::from_be_bytes(*len)).unwrap_or(0))
}

/// Bytes.
fn long(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(i32::from_be_bytes(*len)).unwrap_or(0))
}

/// A compact string or compact bytes: an unsigned varint of the length plus one, 0 for null.
fn compact(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let len = usize::try_from(value).ok()?.saturating_sub(1);
            return bytes.get(index + 1..)?.split_at_checked(len);
        }
    }
    None
}

#[cfg(test)]
mod tests;
