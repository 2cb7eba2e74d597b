//! What a relay keeps resident: when it has just started, and for each of a thousand connections that have been used once.

use std::net::SocketAddr;
use std::time::Duration;

use convoke_support::Result;
use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest};
use kafka_protocol::protocol::StrBytes;

use crate::messages::METADATA;
use crate::results::Sample;
use crate::rig::{Rig, Route, node_address};
use crate::usage;
use crate::wire::{Client, accepted};
use crate::work::Figure;

pub const CONNECTIONS: u16 = 1_000;

const API_VERSIONS: i16 = 3;

/// Nothing tells when a process has come to rest.
const REST: Duration = Duration::from_millis(500);

/// Measures a new process of the route; none for the direct one.
///
/// # Errors
/// When it cannot be started or a connection is refused.
pub fn round(rig: &Rig, route: Route) -> Result<Option<Sample>> {
    match route {
        Route::Direct => Ok(None),
        Route::Haproxy => {
            let haproxy = rig.new_haproxy()?;
            measure(haproxy.address(), haproxy.process_id()).map(Some)
        }
        Route::Convoke => {
            let mut convoke = rig.new_convoke()?;
            let process = convoke.process()?.id();
            let sample = measure(node_address(&convoke)?, process)?;
            convoke.stop()?;
            Ok(Some(sample))
        }
    }
}

fn measure(address: SocketAddr, process: u32) -> Result<Sample> {
    std::thread::sleep(REST);
    let idle = usage::resident(process)?;
    let connections = (0..CONNECTIONS).map(|_| used(address)).collect::<Result<Vec<_>>>()?;
    std::thread::sleep(REST);
    let connected = usage::resident(process)?;
    drop(connections);
    Ok([
        (Figure::IdleResidentMb, idle / 1e6),
        (
            Figure::KilobytesPerConnection,
            (connected - idle) / f64::from(CONNECTIONS) / 1e3,
        ),
    ]
    .into())
}

/// A connection that has done what every client does first.
fn used(address: SocketAddr) -> Result<Client> {
    let mut client = Client::connect(address)?;
    let request = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("convoke-bench"))
        .with_client_software_version(StrBytes::from_static_str("1"));
    accepted(client.call(&request, API_VERSIONS)?.error_code)?;
    let request = MetadataRequest::default().with_topics(Some(Vec::new()));
    let brokers = client.call(&request, METADATA)?.brokers;
    if brokers.is_empty() {
        return Err("metadata without brokers".into());
    }
    Ok(client)
}
