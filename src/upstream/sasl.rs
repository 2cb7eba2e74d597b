//! The client's side of SASL PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677) as a pure state machine.
//!
//! ```text
//! PLAIN   start ── message ──▶ any final answer ──▶ done
//! SCRAM   start ── client-first ──▶ server-first ── client-final ──▶ server-final (signature checked) ──▶ done
//! ```
//! As Kafka's own client does, names and passwords are used as UTF-8 without SASLprep.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};

use crate::config::{SaslConfig, SaslMechanism};

use std::num::NonZeroU32;

/// RFC 7677 section 4: fewer make a stolen exchange cheap to search.
const MIN_ITERATIONS: u32 = 4_096;
/// A server may not make us work for longer than a fraction of a second; Kafka itself stores at most 16,384.
const MAX_ITERATIONS: u32 = 131_072;
/// Longer messages are no SCRAM that a broker sends.
const MAX_MESSAGE: usize = 8_192;

impl SaslMechanism {
    /// The name in SaslHandshake.
    #[must_use]
    pub const fn wire_name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

/// Why an exchange cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaslError {
    #[error("the server's message is not SCRAM: {0}")]
    Malformed(&'static str),
    #[error("the server reports {0:?}")]
    Server(String),
    #[error("the server asks for {0} iterations, between {MIN_ITERATIONS} and {MAX_ITERATIONS} are taken")]
    Iterations(u32),
    #[error(
        "the server does not know our password: its signature is wrong, so it may not be the server it claims to be"
    )]
    ServerSignature,
    #[error("a message came after the exchange had ended")]
    Ended,
}

/// What the other side is to get next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Send(Vec<u8>),
    Done,
}

/// One authentication.
#[derive(Debug)]
pub enum Exchange {
    Plain,
    Scram(Box<Scram>),
}

impl Exchange {
    /// The exchange and its first message. `nonce` is fresh and printable, without a comma.
    #[must_use]
    pub fn start(config: &SaslConfig, nonce: &str) -> (Self, Vec<u8>) {
        let hash = match config.mechanism {
            SaslMechanism::Plain => {
                let message = format!("\0{}\0{}", config.username, config.password);
                return (Self::Plain, message.into_bytes());
            }
            SaslMechanism::ScramSha256 => &SHA_256,
            SaslMechanism::ScramSha512 => &SHA_512,
        };
        let (scram, first) = Scram::start(hash, &config.username, &config.password, nonce);
        (Self::Scram(Box::new(scram)), first)
    }

    /// Takes the server's answer to the last message.
    ///
    /// # Errors
    /// When the server is not to be trusted or refuses; the connection is to be closed.
    pub fn step(&mut self, challenge: &[u8]) -> Result<Step, SaslError> {
        match self {
            // A broker says no to PLAIN by an error code, so any answer is a yes.
            Self::Plain => Ok(Step::Done),
            Self::Scram(scram) => scram.step(challenge),
        }
    }
}

/// The hash functions of one SCRAM mechanism.
struct Hash {
    digest: &'static digest::Algorithm,
    hmac: hmac::Algorithm,
    pbkdf2: pbkdf2::Algorithm,
}

static SHA_256: Hash = Hash {
    digest: &digest::SHA256,
    hmac: hmac::HMAC_SHA256,
    pbkdf2: pbkdf2::PBKDF2_HMAC_SHA256,
};

static SHA_512: Hash = Hash {
    digest: &digest::SHA512,
    hmac: hmac::HMAC_SHA512,
    pbkdf2: pbkdf2::PBKDF2_HMAC_SHA512,
};

/// The client of one SCRAM exchange.
pub struct Scram {
    hash: &'static Hash,
    password: String,
    nonce: String,
    client_first_bare: String,
    state: ScramState,
}

enum ScramState {
    AwaitServerFirst,
    AwaitServerFinal {
        server_key: hmac::Key,
        auth_message: String,
    },
    Ended,
}

impl std::fmt::Debug for Scram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scram").finish_non_exhaustive()
    }
}

impl Scram {
    fn start(hash: &'static Hash, username: &str, password: &str, nonce: &str) -> (Self, Vec<u8>) {
        let name = username.replace('=', "=3D").replace(',', "=2C");
        let client_first_bare = format!("n={name},r={nonce}");
        let first = format!("n,,{client_first_bare}").into_bytes();
        let scram = Self {
            hash,
            password: password.to_owned(),
            nonce: nonce.to_owned(),
            client_first_bare,
            state: ScramState::AwaitServerFirst,
        };
        (scram, first)
    }

    fn step(&mut self, challenge: &[u8]) -> Result<Step, SaslError> {
        // Whatever is wrong with a message, no other one may take its place.
        let state = std::mem::replace(&mut self.state, ScramState::Ended);
        if challenge.len() > MAX_MESSAGE {
            return Err(SaslError::Malformed("it is too long"));
        }
        let message = std::str::from_utf8(challenge).map_err(|_| SaslError::Malformed("it is not UTF-8"))?;
        match state {
            ScramState::AwaitServerFirst => self.on_server_first(message),
            ScramState::AwaitServerFinal {
                server_key,
                auth_message,
            } => on_server_final(message, &server_key, &auth_message),
            ScramState::Ended => Err(SaslError::Ended),
        }
    }

    fn on_server_first(&mut self, server_first: &str) -> Result<Step, SaslError> {
        let ServerFirst {
            nonce,
            salt,
            iterations,
        } = ServerFirst::parse(server_first)?;
        let ours = nonce.strip_prefix(self.nonce.as_str());
        if ours.is_none_or(str::is_empty) {
            return Err(SaslError::Malformed("its nonce does not continue ours"));
        }
        // "biws" is base64 of "n,,", the channel binding that the first message announced.
        let without_proof = format!("c=biws,r={nonce}");
        let auth_message = format!("{},{server_first},{without_proof}", self.client_first_bare);
        let (proof, server_key) = self.prove(&salt, iterations, &auth_message);
        self.state = ScramState::AwaitServerFinal {
            server_key,
            auth_message,
        };
        let client_final = format!("{without_proof},p={}", STANDARD.encode(proof));
        Ok(Step::Send(client_final.into_bytes()))
    }

    /// RFC 5802 section 3: the client's proof and the key that the server's signature is checked with.
    fn prove(&self, salt: &[u8], iterations: NonZeroU32, auth_message: &str) -> (Vec<u8>, hmac::Key) {
        let mut salted = vec![0; self.hash.digest.output_len()];
        pbkdf2::derive(
            self.hash.pbkdf2,
            iterations,
            salt,
            self.password.as_bytes(),
            &mut salted,
        );
        let salted = hmac::Key::new(self.hash.hmac, &salted);
        let client_key = hmac::sign(&salted, b"Client Key");
        let stored_key = digest::digest(self.hash.digest, client_key.as_ref());
        let signature = hmac::sign(
            &hmac::Key::new(self.hash.hmac, stored_key.as_ref()),
            auth_message.as_bytes(),
        );
        let proof = client_key
            .as_ref()
            .iter()
            .zip(signature.as_ref())
            .map(|(key, signature)| key ^ signature)
            .collect();
        let server_key = hmac::sign(&salted, b"Server Key");
        (proof, hmac::Key::new(self.hash.hmac, server_key.as_ref()))
    }
}

struct ServerFirst<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: NonZeroU32,
}

impl<'a> ServerFirst<'a> {
    fn parse(message: &'a str) -> Result<Self, SaslError> {
        let mut fields = message.split(',');
        let mut field = |name: &str| fields.next().and_then(|field| field.strip_prefix(name));
        // An error may take the place of the first message, and "m=" announces an extension that must be understood.
        if let Some(error) = message.strip_prefix("e=") {
            return Err(SaslError::Server(error.to_owned()));
        }
        let nonce = field("r=").ok_or(SaslError::Malformed("it has no nonce"))?;
        let salt = field("s=").ok_or(SaslError::Malformed("it has no salt"))?;
        let salt = STANDARD
            .decode(salt)
            .map_err(|_| SaslError::Malformed("its salt is not base64"))?;
        if salt.is_empty() {
            return Err(SaslError::Malformed("its salt is empty"));
        }
        let iterations = field("i=").ok_or(SaslError::Malformed("it has no iteration count"))?;
        let iterations: u32 = iterations
            .parse()
            .map_err(|_| SaslError::Malformed("its iteration count is not a number"))?;
        let in_range = (MIN_ITERATIONS..=MAX_ITERATIONS).contains(&iterations);
        let iterations = NonZeroU32::new(iterations)
            .filter(|_| in_range)
            .ok_or(SaslError::Iterations(iterations))?;
        Ok(Self {
            nonce,
            salt,
            iterations,
        })
    }
}

fn on_server_final(message: &str, server_key: &hmac::Key, auth_message: &str) -> Result<Step, SaslError> {
    let field = message.split(',').next().unwrap_or_default();
    if let Some(error) = field.strip_prefix("e=") {
        return Err(SaslError::Server(error.to_owned()));
    }
    let signature = field
        .strip_prefix("v=")
        .ok_or(SaslError::Malformed("it has no signature"))?;
    let signature = STANDARD
        .decode(signature)
        .map_err(|_| SaslError::Malformed("its signature is not base64"))?;
    hmac::verify(server_key, auth_message.as_bytes(), &signature).map_err(|_| SaslError::ServerSignature)?;
    Ok(Step::Done)
}

#[cfg(test)]
mod tests;
