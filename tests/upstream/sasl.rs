//! Our own credentials at a real SASL listener.

use convoke::config::{SaslConfig, SaslMechanism};
use convoke_support::Result;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;

use crate::world::{PATIENCE, World, broker_versions};

const MECHANISMS: [SaslMechanism; 3] = [
    SaslMechanism::Plain,
    SaslMechanism::ScramSha256,
    SaslMechanism::ScramSha512,
];

fn credentials(mechanism: SaslMechanism, password: &str) -> SaslConfig {
    SaslConfig {
        mechanism,
        username: "convoke".to_owned(),
        password: password.to_owned(),
    }
}

#[test]
fn every_mechanism_gets_in_and_stays_in_when_sessions_are_short() -> Result<()> {
    for version in broker_versions() {
        // The broker closes a connection whose session of two seconds is over.
        let kafka = Kafka::start_in(
            Network::Loopback,
            Options::new(version).sasl().set("connections.max.reauth.ms", "2000"),
        )?;
        for mechanism in MECHANISMS {
            let world = World::new(&kafka, Some(credentials(mechanism, "convoke-secret")));
            world.wait("the node", |cluster| !cluster.versions.is_empty())?;
            world.run(async {
                let mut asked = 0;
                let started = tokio::time::Instant::now();
                while started.elapsed().as_secs() < 5 {
                    world.upstream.broker_settings().await?;
                    asked += 1;
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
                assert!(asked > 5);
                let state = world.cluster().state();
                assert_eq!(
                    state.failures, 0,
                    "{version} {mechanism:?}: a connection was lost: {state:?}"
                );
                Ok(())
            })?;
        }
    }
    Ok(())
}

#[test]
fn a_refusal_says_what_to_change() -> Result<()> {
    let kafka = Kafka::start_in(Network::Loopback, Options::new("4.4.0").sasl())?;
    for mechanism in MECHANISMS {
        let world = World::new(&kafka, Some(credentials(mechanism, "wrong")));
        let error = first_error(&world)?;
        assert!(
            error.contains("refused our credentials: SASL_AUTHENTICATION_FAILED"),
            "{mechanism:?}: {error}"
        );
        assert!(error.contains("check upstream.sasl"), "{error}");
    }
    let without = first_error(&World::new(&kafka, None))?;
    assert!(without.contains("set upstream.sasl"), "{without}");

    let plain = Kafka::start_in(Network::Loopback, Options::new("4.4.0"))?;
    let needless = World::new(&plain, Some(credentials(SaslMechanism::Plain, "convoke-secret")));
    let error = first_error(&needless)?;
    assert!(error.contains("its listener takes no SASL"), "{error}");
    Ok(())
}

fn first_error(world: &World) -> Result<String> {
    world.run(async {
        let waiting = async {
            loop {
                if let Some(error) = world.cluster().state().last_error {
                    return error;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let error = tokio::time::timeout(PATIENCE, waiting).await;
        error.map_err(|_| "it got in".into())
    })
}
