//! Another cluster at the address where the own one was: restored wrongly, a name moved, a port handed on.

use convoke_support::convoke::Convoke;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use convoke_support::{Result, ports};

use crate::raw::Raw;
use crate::{CONVOKE, eventually, kafka, wait_for_log};

/// A cluster of its own at this address.
fn cluster_at(address: &str) -> Result<Kafka> {
    let controller = format!("127.0.0.1:{}", ports::free(1)?);
    let options = Options::new("4.4.0")
        .set("listeners", &format!("CLIENT://{address},CONTROLLER://{controller}"))
        .set("advertised.listeners", &format!("CLIENT://{address}"))
        .set("controller.quorum.voters", &format!("1@{controller}"));
    Kafka::start_in(Network::Loopback, options)
}

#[test]
fn nobody_is_served_in_front_of_another_cluster_and_all_are_when_the_own_one_is_back() -> Result<()> {
    let mut own = kafka()?;
    let refresh = ["--set", "upstream.metadata_refresh=500ms"];
    let mut convoke = Convoke::start(CONVOKE, &own, &refresh)?;
    let address = convoke.nodes()[&1].clone();
    let mut before = Raw::connect(&address)?;
    assert_eq!(before.commit("group", 7)?, 0);

    own.stop(1)?;
    let other = cluster_at(&own.address(1))?;
    let said = ["ERROR", "belongs to cluster", "correct upstream.bootstrap"];
    wait_for_log(convoke.process()?, 0, &said)?;
    let (status, report) = convoke.get("/readyz")?;
    assert_eq!(status, 503, "{report}");
    assert!(report.contains("belongs to cluster"), "{report}");
    // What the state here says of offsets is about other records: on an old connection and on a new one.
    for client in [&mut before, &mut Raw::connect(&address)?] {
        assert!(client.committed("group").is_err());
        assert_eq!(client.rest()?, b"");
    }
    assert!(Raw::connect(&address)?.brokers().is_err());
    assert!(Raw::connect(&convoke.bootstrap())?.brokers().is_err());
    let reason = ["reason=\"other_cluster\""];
    eventually("the end of four connections", || {
        Ok(convoke.metric("convoke_connections_closed_total", &reason)? >= 4.0)
    })?;
    let closed = [
        "WARN",
        "other_cluster",
        "another cluster answers at the upstream's addresses",
    ];
    wait_for_log(convoke.process()?, 0, &closed)?;
    drop(other);

    own.restart(1)?;
    eventually("a ready Convoke", || Ok(convoke.get("/readyz")?.0 == 200))?;
    let mut after = Raw::connect(&address)?;
    assert_eq!(after.committed("group")?, Ok(7));
    assert_eq!(after.brokers()?, 1);
    convoke.stop()
}
