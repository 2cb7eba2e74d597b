//! What single groups were given for themselves.

use std::collections::BTreeMap;

use convoke::coordinator::group_config::GroupConfig;
use convoke::coordinator::request::Text;
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
    world.wait("the node's versions", |cluster| cluster.versions.len() == 1)?;
    let configs_of = |world: &World| {
        let listed = world.run(async { Ok(world.upstream.group_configs().await?) })?;
        listed.ok_or_else(|| "groups with settings are not listed".into())
    };
    assert!(!world.upstream.cluster().snapshot().has_group_configs());
    assert_eq!(configs_of(&world)?, BTreeMap::new());
    drop((world, old));

    let versions = [
        ("4.1.1", "kafka.admin.ConfigCommand"),
        ("4.4.0", "org.apache.kafka.tools.ConfigCommand"),
    ];
    for (version, class) in versions {
        let kafka = Kafka::start_in(Network::Loopback, Options::new(version))?;
        let world = World::new(&kafka, None);
        world.wait("the node's versions", |cluster| cluster.versions.len() == 1)?;
        assert!(world.upstream.cluster().snapshot().has_group_configs(), "{version}");
        assert_eq!(configs_of(&world)?, BTreeMap::new(), "{version}");
        give(&kafka, class)?;
        let told = until(|| configs_of(&world), |told| !told.is_empty())?;
        assert_eq!(told, given(), "{version}");
        let neither = "consumer.session.timeout.ms,consumer.heartbeat.interval.ms";
        configs(
            &kafka,
            class,
            &["--entity-name", "orders", "--alter", "--delete-config", neither],
        )?;
        until(|| configs_of(&world), BTreeMap::is_empty)?;
    }
    Ok(())
}

#[test]
fn brokers_that_do_not_tell_which_groups_have_settings_are_asked_about_each() -> Result<()> {
    let kafka = Kafka::start_in(Network::Loopback, Options::new("4.0.0"))?;
    let world = World::new(&kafka, None);
    world.wait("the node's versions", |cluster| cluster.versions.len() == 1)?;
    assert!(world.upstream.cluster().snapshot().has_group_configs());
    assert_eq!(world.run(async { Ok(world.upstream.group_configs().await?) })?, None);
    give(&kafka, "kafka.admin.ConfigCommand")?;
    // More than one question holds.
    let mut group_ids: Vec<Text> = (0..1_000).map(|number| Text::from(format!("other-{number}"))).collect();
    group_ids.push(Text::from("orders"));
    let told = until(
        || world.run(async { Ok(world.upstream.configs_of_groups(&group_ids).await?) }),
        |told| !told.is_empty(),
    )?;
    assert_eq!(told, given());
    Ok(())
}

/// Gives a group settings of its own.
fn give(kafka: &Kafka, class: &str) -> Result<String> {
    let both = "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=6000";
    configs(
        kafka,
        class,
        &["--entity-name", "orders", "--alter", "--add-config", both],
    )
}

/// Those settings.
fn given() -> BTreeMap<Text, GroupConfig> {
    let own = GroupConfig {
        session_timeout_ms: Some(50_000),
        heartbeat_interval_ms: Some(6_000),
        assignment_interval_ms: None,
    };
    BTreeMap::from([(Text::from("orders"), own)])
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
