//! A broker that closes connections as soon as nothing has been said on them for a while.

use std::thread;
use std::time::Duration;

use convoke_support::Result;
use convoke_support::convoke::Convoke;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;

use crate::raw::Raw;
use crate::{CONVOKE, eventually};

/// `connections.max.idle.ms` of the broker.
const IDLE: Duration = Duration::from_secs(2);
const CLIENTS: usize = 200;

#[test]
fn clients_that_are_silent_for_longer_than_the_broker_bears_notice_nothing_and_leave_nothing_behind() -> Result<()> {
    let idle_ms = IDLE.as_millis().to_string();
    let options = Options::new("4.4.0").set("connections.max.idle.ms", &idle_ms);
    let kafka = Kafka::start_in(Network::Loopback, options)?;
    kafka.create_topic("t", 1)?;
    let mut convoke = Convoke::start(CONVOKE, &kafka, &["--set", "upstream.metadata_refresh=500ms"])?;
    let address = convoke.nodes()[&1].clone();
    let mut patient = Raw::connect(&address)?;
    assert_eq!((patient.brokers()?, patient.commit("group", 1)?), (1, 0));
    let files = || convoke.metric("process_open_fds", &[]);
    let before = files()?;

    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = Raw::connect(&address)?;
        assert_eq!(client.brokers()?, 1);
        clients.push(client);
    }
    assert!(
        files()? >= before + 2.0 * CLIENTS as f64,
        "each has its connection to the broker"
    );
    // What the broker has closed is let go of, though the clients are still there.
    eventually("the end of the broker's connections", || {
        Ok(files()? <= before + 1.2 * CLIENTS as f64)
    })?;
    for client in &mut clients {
        assert_eq!(client.brokers()?, 1, "on the same connection");
    }
    drop(clients);
    eventually("the end of the clients' connections", || Ok(files()? <= before + 5.0))?;

    // The length of the silence is what is tried.
    thread::sleep(2 * IDLE);
    assert_eq!((patient.brokers()?, patient.commit("group", 2)?), (1, 0));
    assert_eq!(patient.committed("group")?, Ok(2));
    assert_eq!(convoke.get("/readyz")?.0, 200);
    convoke.stop()
}
