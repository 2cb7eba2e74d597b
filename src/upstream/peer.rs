//! What is at an address that should be a broker's: this very process, another Convoke, a web server, TLS.

use std::net::SocketAddr;

use tokio::net::TcpStream;

use super::UpstreamError;
use super::connection::CLIENT_ID;
use crate::wire::codec::WireError;

/// A TLS record that is an alert, of version 3.x: how a TLS listener answers what is not TLS.
const TLS_ALERT: [u8; 2] = [0x15, 0x03];
/// Of what a peer sent, so many bytes are shown.
const SHOWN: usize = 16;
const WHAT_TO_DO: &str = "set upstream.bootstrap to the HOST:PORT of the brokers' own listeners";

/// Whoever dials: the proxy its brokers, or an assignor its Convoke.
const WHERE: &str = "give the HOST:PORT of a Kafka listener (upstream.bootstrap, or --bootstrap of `convoke assignor`)";

/// Whether a connection ends in this process, at one of the addresses that it listens on.
pub(super) fn is_own(stream: &TcpStream, own: &[SocketAddr]) -> bool {
    let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else {
        return false;
    };
    let (peer_ip, local_ip) = (peer.ip().to_canonical(), local.ip().to_canonical());
    let on_this_machine = peer_ip == local_ip || peer_ip.is_loopback();
    own.iter().any(|own| {
        let ip = own.ip().to_canonical();
        own.port() == peer.port() && (ip == peer_ip || ip.is_unspecified() && on_this_machine)
    })
}

pub(super) fn ourselves(address: String) -> UpstreamError {
    UpstreamError::Unusable {
        address,
        reason: format!("it is this Convoke itself; {WHAT_TO_DO}"),
    }
}

pub(super) fn another_convoke(address: String) -> UpstreamError {
    UpstreamError::Unusable {
        address,
        reason: format!("a Convoke answers there, and one cannot stand in front of another; {WHAT_TO_DO}"),
    }
}

/// Whether who asks for our api versions is a Convoke that takes us for a broker. By its software's name (KIP-511): nothing
/// else tells it from other clients.
pub(crate) fn is_convoke(software_name: &str) -> bool {
    software_name == CLIENT_ID
}

/// The first bytes of a peer were no frame.
pub(super) fn no_broker(address: String, sent: &[u8], error: &WireError) -> UpstreamError {
    let reason = if sent.starts_with(b"HTTP") {
        format!("it answers with HTTP; {WHERE}")
    } else if sent.starts_with(&TLS_ALERT) {
        "it answers with TLS, which Convoke does not speak yet; give it a PLAINTEXT or SASL_PLAINTEXT listener"
            .to_owned()
    } else {
        let shown = sent.get(..SHOWN).unwrap_or(sent).escape_ascii();
        format!("its first bytes \"{shown}\" are no answer of a broker ({error}); {WHERE}")
    };
    UpstreamError::Unusable { address, reason }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use kafka_protocol::messages::ApiVersionsResponse;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::net::TcpListener;

    use super::*;
    use crate::config::HostPort;
    use crate::upstream::mock::{Asked, dialer, serve};
    use crate::upstream::node::Node;
    use crate::wire::error_code::ErrorCode;

    /// What comes of a connection to something that says this, whatever it is asked; nothing at all if `None`.
    async fn met(sends: Option<&'static [u8]>) -> Result<Arc<Node>, UpstreamError> {
        let (ours, mut theirs) = duplex(1024);
        tokio::spawn(async move {
            let asked = theirs.read(&mut [0; 1024]).await;
            if let (Ok(_), Some(bytes)) = (asked, sends) {
                let _ = theirs.write_all(bytes).await;
            }
            std::future::pending::<()>().await;
        });
        dialer(None).greet(ours, "there:9092".into()).await
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_broker_is_named() {
        for (sends, said) in [
            (&b"HTTP/1.0 200 OK\r\n"[..], "it answers with HTTP"),
            (b"\x15\x03\x03\0\x02\x02\x28", "it answers with TLS"),
            (
                b"220 mail\r\n",
                "its first bytes \"220 mail\\r\\n\" are no answer of a broker",
            ),
        ] {
            let error = met(Some(sends)).await.expect_err("no broker");
            assert!(matches!(error, UpstreamError::Unusable { .. }), "{error:?}");
            let error = error.to_string();
            assert!(error.contains(said) && error.contains("there:9092"), "{error}");
        }
        let silent = met(None).await.expect_err("no broker").to_string();
        assert!(
            silent.contains("it took the connection and did not answer within 2000 ms"),
            "{silent}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn another_convoke_is_named() {
        let (ours, theirs) = duplex(1024);
        let refusal = |asked: &Asked| {
            let error = ErrorCode::POLICY_VIOLATION.0;
            asked.answer(&ApiVersionsResponse::default().with_error_code(error))
        };
        tokio::spawn(serve(theirs, Arc::new(refusal), Arc::default()));
        let error = dialer(None)
            .greet(ours, "there:9092".into())
            .await
            .expect_err("no broker");
        assert!(error.to_string().contains("a Convoke answers there"), "{error}");
    }

    #[tokio::test]
    async fn a_connection_to_oneself_is_noticed_before_anything_is_sent() {
        let bound = TcpListener::bind("0.0.0.0:0").await.expect("a free port");
        let own = bound.local_addr().expect("bound");
        let mut dialer = dialer(None);
        dialer.own = vec![own];
        for host in ["127.0.0.1", "127.0.0.2", "localhost"] {
            let address = HostPort {
                host: host.to_owned(),
                port: own.port(),
            };
            let error = dialer.dial(&address).await.expect_err("ourselves");
            assert!(
                error.to_string().contains("it is this Convoke itself"),
                "{host}: {error}"
            );
        }
        // The same port of one address is not another address's.
        dialer.own = vec![SocketAddr::from(([127, 0, 0, 3], own.port()))];
        dialer.limits.request_timeout = Duration::from_millis(50);
        let address = HostPort {
            host: "127.0.0.1".to_owned(),
            port: own.port(),
        };
        let error = dialer.dial(&address).await.expect_err("silence");
        assert!(error.to_string().contains("did not answer"), "{error}");
    }
}
