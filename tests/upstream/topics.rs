//! Topics come, grow, go and come again under another id.

use std::sync::Arc;

use convoke::coordinator::topics::Topics;
use convoke_support::Result;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;

use tokio::time::timeout;

use crate::world::{PATIENCE, World, broker_versions};

pub fn topics(kafka: &Kafka, arguments: &[&str]) -> Result<String> {
    let bootstrap = kafka.bootstrap();
    let mut all = vec!["--bootstrap-server", &bootstrap];
    all.extend(arguments);
    kafka.tool("org.apache.kafka.tools.TopicCommand", &all)
}

#[test]
fn topics_are_followed_through_their_life() -> Result<()> {
    for version in broker_versions() {
        let kafka = Kafka::start_in(Network::Loopback, Options::new(version))?;
        let world = World::new(&kafka, None);
        world.wait("the node", |cluster| cluster.nodes.len() == 1)?;

        kafka.create_topic("orders", 2)?;
        // Asked for by name before the picture may have it, and never made by asking.
        let orders = world
            .run(async { Ok(world.cluster().find_topic("orders").await?) })?
            .ok_or("orders is not found")?;
        assert_eq!(orders.partitions, 2);
        assert!(!orders.id.is_nil());
        let (by_id, missing) = world.run(async {
            let by_id = world.cluster().find_topic_by_id(orders.id).await?;
            Ok((by_id, world.cluster().find_topic("missing").await?))
        })?;
        assert_eq!(by_id.as_ref(), Some(&orders));
        assert_eq!(missing, None);
        assert_eq!(topics(&kafka, &["--list"])?.trim(), "orders", "{version}");

        topics(&kafka, &["--alter", "--topic", "orders", "--partitions", "5"])?;
        let grown = world.run(async { Ok(world.cluster().find_partition("orders", 4).await?) })?;
        assert_eq!(grown.map(|topic| topic.partitions), Some(5), "{version}");
        world.wait("five partitions", |cluster| {
            cluster.topics.by_name["orders"].partitions == 5
        })?;

        topics(&kafka, &["--delete", "--topic", "orders"])?;
        let deleted = world.next_deletion()?;
        assert_eq!(deleted.len(), 1);
        assert_eq!((&*deleted[0].name, deleted[0].id), ("orders", orders.id));
        assert!(!world.cluster().snapshot().topics.by_name.contains_key("orders"));
        told(&world, |topics| topics.by_id(&orders.id).is_none())?;

        kafka.create_topic("orders", 1)?;
        world.wait("orders again", |cluster| cluster.topics.by_name.contains_key("orders"))?;
        let again = world.cluster().snapshot().topics.by_name["orders"].clone();
        assert_ne!(again.id, orders.id);
        told(&world, |topics| topics.by_id(&again.id) == Some(&again))?;
        topics(&kafka, &["--delete", "--topic", "orders"])?;
        kafka.create_topic("orders", 3)?;
        let deleted = world.next_deletion()?;
        assert_eq!(deleted[0].id, again.id, "{version}");
    }
    Ok(())
}

/// Waits until the coordinator is told so: a moment after the picture shows it.
fn told(world: &World, wanted: impl FnMut(&Arc<Topics>) -> bool) -> Result<()> {
    world.run(async {
        let mut told = world.cluster().topics();
        let seen = timeout(PATIENCE, told.wait_for(wanted)).await;
        seen.map_err(|_| format!("the coordinator was told of {:?}", world.cluster().told_topics()))??;
        Ok(())
    })
}

#[test]
fn a_node_that_goes_is_missed_and_noticed_when_it_is_back() -> Result<()> {
    let mut kafka = Kafka::start_in(Network::Loopback, Options::new("4.4.0"))?;
    // The first address is nobody's.
    let world = World::at(&format!("127.0.0.1:1,{}", kafka.bootstrap()), None);
    world.wait("the node", |cluster| cluster.nodes.len() == 1)?;
    kafka.kill(1);
    wait_for(&world, |reachable| !reachable)?;
    let state = world.cluster().state();
    assert!(state.last_error.is_some() && state.snapshot_age.is_some(), "{state:?}");
    let asked = world.run(async { Ok(world.cluster().find_topic("orders").await) })?;
    assert!(asked.is_err(), "out of reach must not look like no such topic");
    kafka.restart(1)?;
    wait_for(&world, |reachable| reachable)?;
    world.run(async { Ok(world.cluster().find_topic("orders").await?) })?;
    Ok(())
}

/// The state has no event of its own; what it says is read until it is as wanted.
fn wait_for(world: &World, wanted: impl Fn(bool) -> bool) -> Result<()> {
    world.run(async {
        timeout(PATIENCE, async {
            while !wanted(world.cluster().state().reachable) {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await
        .map_err(|_| format!("{:?}", world.cluster().state()).into())
    })
}
