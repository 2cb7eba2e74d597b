//! What our own user may not see is never taken for something that is not there.

use std::time::Duration;

use convoke::config::{SaslConfig, SaslMechanism};
use convoke::coordinator::input::Presence;
use convoke_support::Result;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;

use crate::world::World;

fn acls(kafka: &Kafka, arguments: &[&str]) -> Result<()> {
    let (bootstrap, client) = (kafka.bootstrap(), kafka.admin_properties()?);
    let client = client.to_string_lossy();
    let mut all = vec!["--bootstrap-server", &bootstrap, "--command-config", &client];
    all.extend(arguments);
    kafka.tool("org.apache.kafka.tools.AclCommand", &all).map(drop)
}

fn failure(world: &World) -> Result<String> {
    world.run(async {
        let failure = world
            .upstream
            .inspect("g")
            .await
            .err()
            .ok_or("the inspection succeeded")?;
        Ok(failure.reason)
    })
}

#[test]
fn missing_rights_are_named_and_hide_nothing() -> Result<()> {
    let options = Options::new("4.4.0").sasl().authorizer();
    let kafka = Kafka::start_in(Network::Loopback, options)?;
    kafka.create_topic("orders", 1)?;
    let alice = SaslConfig {
        mechanism: SaslMechanism::ScramSha512,
        username: "alice".to_owned(),
        password: "alice-secret".to_owned(),
    };
    let world = World::new(&kafka, Some(alice));
    world.wait("the node", |cluster| !cluster.versions.is_empty())?;
    let (settings, orders) = world.run(async {
        let settings = world.upstream.broker_settings().await;
        Ok((settings, world.cluster().find_topic("orders").await))
    })?;
    let settings = settings.expect_err("settings are shown").to_string();
    assert!(settings.contains("DescribeConfigs on the cluster"), "{settings}");
    let orders = orders.expect_err("the topic is shown").to_string();
    assert!(orders.contains("Describe on every topic"), "{orders}");
    let reason = failure(&world)?;
    assert!(reason.contains("Describe on every group"), "{reason}");

    let describe = ["--add", "--allow-principal", "User:alice", "--operation", "Describe"];
    acls(
        &kafka,
        &[&describe[..], &["--group", "*", "--topic", "orders"]].concat(),
    )?;
    world.wait("orders", |cluster| cluster.topics.by_name.contains_key("orders"))?;
    let reason = failure(&world)?;
    assert!(reason.contains("Describe on every topic"), "{reason}");

    // A right that is withdrawn takes the topic out of the list, and is no deletion.
    let withdraw = [
        "--remove",
        "--force",
        "--allow-principal",
        "User:alice",
        "--operation",
        "Describe",
    ];
    acls(&kafka, &[&withdraw[..], &["--topic", "orders"]].concat())?;
    world.wait("no orders", |cluster| !cluster.topics.by_name.contains_key("orders"))?;
    world.run(async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(
            world.deleted.lock().await.try_recv().is_err(),
            "a hidden topic counts as deleted"
        );
        Ok(())
    })?;

    acls(&kafka, &[&describe[..], &["--topic", "*"]].concat())?;
    world.wait("orders again", |cluster| cluster.topics.by_name.contains_key("orders"))?;
    let found = world.run(async {
        world
            .upstream
            .inspect("g")
            .await
            .map_err(|failure| failure.reason.into())
    })?;
    assert_eq!(found.presence, Presence::Vacant);
    Ok(())
}
