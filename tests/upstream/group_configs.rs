//! What single groups were given for themselves.

use std::collections::BTreeMap;

use convoke::coordinator::request::Text;
use convoke::coordinator::settings::GroupConfig;
use convoke_support::Result;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;

use crate::world::World;

fn configs(kafka: &Kafka, class: &str, arguments: &[&str]) -> Result<String> {
    let bootstrap = kafka.bootstrap();
    let mut all = vec!["--bootstrap-server", &bootstrap, "--entity-type", "groups"];
    all.extend(arguments);
    kafka.tool(class, &all)
}

#[test]
fn what_the_stock_tool_gives_a_group_is_read_back_where_there_is_such_a_thing() -> Result<()> {
    let old = Kafka::start_in(Network::Loopback, Options::new("3.8.1"))?;
    let world = World::new(&old, None);
    world.wait("the node", |cluster| cluster.nodes.len() == 1)?;
    let configs_of = |world: &World| world.run(async { Ok(world.upstream.group_configs().await?) });
    assert_eq!(configs_of(&world)?, BTreeMap::new());
    drop((world, old));

    let versions = [
        ("4.1.1", "kafka.admin.ConfigCommand"),
        ("4.4.0", "org.apache.kafka.tools.ConfigCommand"),
    ];
    for (version, class) in versions {
        let kafka = Kafka::start_in(Network::Loopback, Options::new(version))?;
        let world = World::new(&kafka, None);
        world.wait("the node", |cluster| cluster.nodes.len() == 1)?;
        assert_eq!(configs_of(&world)?, BTreeMap::new(), "{version}");
        let both = "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=6000";
        configs(
            &kafka,
            class,
            &["--entity-name", "orders", "--alter", "--add-config", both],
        )?;
        let told = until(|| configs_of(&world), |told| !told.is_empty())?;
        let own = GroupConfig {
            session_timeout_ms: Some(50_000),
            heartbeat_interval_ms: Some(6_000),
            assignment_interval_ms: None,
        };
        assert_eq!(told, BTreeMap::from([(Text::from("orders"), own)]), "{version}");
        let neither = "consumer.session.timeout.ms,consumer.heartbeat.interval.ms";
        configs(
            &kafka,
            class,
            &["--entity-name", "orders", "--alter", "--delete-config", neither],
        )?;
        until(
            || configs_of(&world),
            |told| told.values().all(|own| *own == GroupConfig::default()),
        )?;
    }
    Ok(())
}

/// Asks until the broker has heard of what the controller was told.
fn until<T>(ask: impl Fn() -> Result<T>, wanted: impl Fn(&T) -> bool) -> Result<T> {
    let started = std::time::Instant::now();
    loop {
        let told = ask()?;
        if wanted(&told) {
            return Ok(told);
        }
        if started.elapsed() > crate::world::PATIENCE {
            return Err("the broker never told what its tool was told".into());
        }
    }
}
