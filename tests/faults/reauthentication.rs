//! Clients that authenticate again and again (KIP-368) while what ends here is under way on the same connections, many of which
//! share a thread.

use std::thread;
use std::time::{Duration, Instant};

use convoke_support::Result;
use convoke_support::convoke::Convoke;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use kafka_protocol::messages::{SaslAuthenticateRequest, SaslHandshakeRequest};
use kafka_protocol::protocol::StrBytes;

use crate::CONVOKE;
use crate::raw::Raw;

const CLIENTS: usize = 12;
const TIMES: i64 = 4;
/// A broker closes a connection that authenticates again within a second.
const PAUSE: Duration = Duration::from_millis(1_300);
const SESSION: Duration = Duration::from_secs(15);

fn handshake() -> SaslHandshakeRequest {
    SaslHandshakeRequest::default().with_mechanism(StrBytes::from_static_str("PLAIN"))
}

fn authenticate() -> SaslAuthenticateRequest {
    SaslAuthenticateRequest::default().with_auth_bytes(b"\0admin\0admin-secret".to_vec().into())
}

/// A connection of the admin, and how long the broker says that its session lasts.
fn login(address: &str) -> Result<(Raw, i64)> {
    let mut client = Raw::connect(address)?;
    assert_eq!(client.ask(1, &handshake())?.error_code, 0);
    let answer = client.ask(2, &authenticate())?;
    assert_eq!(answer.error_code, 0, "{answer:?}");
    Ok((client, answer.session_lifetime_ms))
}

/// Sends a commit, a whole new authentication, and another commit without waiting for any answer.
fn renew(client: &mut Raw, group: &str, offset: i64) -> Result<()> {
    client.send_commit(group, offset)?;
    client.send(1, &handshake())?;
    client.send(2, &authenticate())?;
    client.send_commit(group, offset + 1)?;
    assert_eq!(client.receive_commit()?, 0, "before");
    assert_eq!(client.receive::<SaslHandshakeRequest>(1)?.error_code, 0);
    let answer = client.receive::<SaslAuthenticateRequest>(2)?;
    assert_eq!(answer.error_code, 0, "{answer:?}");
    assert_eq!(client.receive_commit()?, 0, "after");
    assert_eq!(client.committed(group)?, Ok(offset + 1));
    Ok(())
}

#[test]
fn commits_around_and_between_authentications_are_answered_in_order_for_as_long_as_sessions_are_renewed() -> Result<()>
{
    let session = SESSION.as_millis().to_string();
    let options = Options::new("4.4.0").sasl().set("connections.max.reauth.ms", &session);
    let kafka = Kafka::start_in(Network::Loopback, options)?;
    kafka.create_topic("t", 1)?;
    let mut convoke = Convoke::start(CONVOKE, &kafka, &[])?;
    let address = convoke.nodes()[&1].clone();
    let (mut lapsing, lifetime_ms) = login(&address)?;
    assert!((1..=SESSION.as_millis() as i64).contains(&lifetime_ms), "{lifetime_ms}");
    let lapses = Instant::now() + SESSION;
    assert_eq!(lapsing.commit("lapsing", 1)?, 0);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let address = address.clone();
            thread::spawn(move || -> Result<()> {
                let (mut client, _) = login(&address)?;
                let group = format!("group-{number}");
                for time in 0..TIMES {
                    thread::sleep(PAUSE);
                    renew(&mut client, &group, 10 * time)?;
                    for offset in 2..10 {
                        assert_eq!(client.commit(&group, 10 * time + offset)?, 0);
                    }
                    assert_eq!(client.brokers()?, 1, "what is forwarded goes on too");
                }
                Ok(())
            })
        })
        .collect();
    for client in clients {
        client.join().map_err(|_| "a client panicked")??;
    }
    // Whoever does not is let in until its session is over, and not after.
    thread::sleep(lapses.saturating_duration_since(Instant::now()) + Duration::from_secs(1));
    let refused = lapsing.commit("lapsing", 2);
    assert!(refused.is_err(), "{refused:?}");
    let (mut again, _) = login(&address)?;
    assert_eq!(again.committed("lapsing")?, Ok(1));
    convoke.stop()
}
