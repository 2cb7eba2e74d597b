//! Our own client against real brokers of each supported line: settings, the picture of the cluster, groups and offsets.

mod group_configs;
mod groups;
mod long_ids;
mod raw;
mod rights;
mod sasl;
mod stored_topics;
mod topics;
mod world;

use convoke::upstream::settings;
use convoke_support::Result;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;

use world::{World, broker_versions};

#[test]
fn a_cluster_is_described_and_its_settings_are_read() -> Result<()> {
    for version in broker_versions() {
        let kafka = Kafka::start_in(Network::Loopback, Options::new(version).set("group.max.size", "77"))?;
        let world = World::new(&kafka, None);
        world.run(async {
            let cluster = world.cluster().ready().await;
            assert_eq!(cluster.nodes.len(), 1, "{version}");
            assert_eq!(cluster.nodes[&1].to_string(), kafka.address(1));
            assert!(cluster.cluster_id.is_some());
            let versions = &cluster.versions[&1];
            assert!(versions.apis.len() > 50, "{version}: {} apis", versions.apis.len());
            assert!(
                versions
                    .finalized_features
                    .iter()
                    .any(|(name, ..)| name == "metadata.version")
            );

            let broker = world.upstream.broker_settings().await?;
            let settings = settings::build(&broker, &Default::default()).map_err(|problems| problems.join("; "))?;
            assert_eq!(settings.group_max_size, 77);
            assert_eq!(settings.group_initial_rebalance_delay_ms, 300);
            assert_eq!(settings.group_max_session_timeout_ms, 1_800_000);
            assert_eq!(settings.offset_metadata_max_bytes, 4_096);
            assert_eq!(settings.offsets_retention_ms, 10_080 * 60_000);
            assert_eq!(settings::offsets_partitions(&broker, &Default::default()), 5);

            let state = world.cluster().state();
            assert!(state.reachable && state.last_error.is_none(), "{state:?}");
            assert_eq!(state.nodes_connected, 1);
            Ok(())
        })?;
    }
    Ok(())
}
