//! The harness itself: brokers start, are out of reach of clients, and leave nothing behind.

use std::net::TcpStream;
use std::time::Duration;

use convoke_support::Result;
use convoke_support::kafka::{Kafka, Options};

#[test]
fn a_broker_of_each_line_serves_and_is_out_of_reach_of_clients() -> Result<()> {
    for version in ["3.8.1", "4.4.0"] {
        let kafka = Kafka::start(Options::new(version))?;
        kafka.create_topic("t", 3)?;
        let listed = kafka.tool(
            "org.apache.kafka.tools.TopicCommand",
            &["--bootstrap-server", &kafka.bootstrap(), "--list"],
        )?;
        assert_eq!(listed.trim(), "t");
        if kafka.network.isolates() {
            let address = kafka.address(1).parse()?;
            TcpStream::connect_timeout(&address, Duration::from_millis(500)).expect_err("clients reach the broker");
        }
    }
    Ok(())
}

#[test]
fn a_node_of_three_can_be_killed_and_started_again() -> Result<()> {
    let mut kafka = Kafka::start(Options::new("4.4.0").nodes(3))?;
    kafka.kill(2);
    kafka.restart(2)?;
    kafka.create_topic("t", 1)
}

#[test]
fn a_sasl_listener_takes_its_users() -> Result<()> {
    Kafka::start(Options::new("4.1.1").sasl())?.create_topic("t", 1)
}
