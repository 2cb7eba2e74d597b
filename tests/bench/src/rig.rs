//! What is measured, running: one broker as in production, HAProxy and Convoke in front of it, everything on loopback.

use std::net::SocketAddr;

use convoke_support::Result;
use convoke_support::convoke::Convoke;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;

use crate::group;
use crate::haproxy::Haproxy;
use crate::wire::Client;

pub const KAFKA_VERSION: &str = "4.4.0";

/// What Kafka's own start script gives the JVM: 1 GB of heap and G1.
pub const JVM: [&str; 8] = [
    "-Xms1G",
    "-Xmx1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
];

const NODE: i32 = 1;

/// The way that requests take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Route {
    /// To the broker itself.
    Direct,
    Haproxy,
    Convoke,
}

impl Route {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Haproxy => "HAProxy",
            Self::Convoke => "Convoke",
        }
    }
}

#[derive(Debug)]
pub struct Rig {
    program: String,
    settings: Vec<String>,
    broker: SocketAddr,
    haproxy: Option<Haproxy>,
    convoke: Option<Convoke>,
    // Dropped last: the others are connected to it.
    kafka: Kafka,
}

impl Rig {
    /// Starts the broker and what the routes need; `program` is the Convoke to measure, and `settings` (`key=value`) are those
    /// of it that are not the defaults, `properties` those of the broker.
    ///
    /// # Errors
    /// When one of them does not come up.
    pub fn start(program: &str, settings: &[String], routes: &[Route], properties: &[(&str, &str)]) -> Result<Self> {
        let session_timeout_ms = group::SESSION_TIMEOUT_MS.to_string();
        let options = Options::new(KAFKA_VERSION)
            .jvm(&JVM)
            // Kafka's default; five partitions are for tests.
            .set("offsets.topic.num.partitions", "50")
            // A join storm then takes what the coordinator takes, and no fixed wait.
            .set("group.initial.rebalance.delay.ms", "0")
            // Members outlive the pauses between their rounds.
            .set("group.consumer.session.timeout.ms", &session_timeout_ms)
            .set("group.consumer.max.session.timeout.ms", &session_timeout_ms);
        let options = properties
            .iter()
            .fold(options, |options, (key, value)| options.set(key, value));
        let kafka = Kafka::start_in(Network::Loopback, options)?;
        let broker = kafka.address(NODE).parse()?;
        // Convoke takes the number of its shards from the broker's topic, so that has to be there first.
        group::wait_for_coordinator(&mut Client::connect(broker)?)?;
        let mut rig = Self {
            program: program.to_owned(),
            settings: settings.to_vec(),
            broker,
            haproxy: None,
            convoke: None,
            kafka,
        };
        if routes.contains(&Route::Haproxy) {
            rig.haproxy = Some(rig.new_haproxy()?);
        }
        if routes.contains(&Route::Convoke) {
            rig.convoke = Some(rig.new_convoke()?);
        }
        Ok(rig)
    }

    /// Another HAProxy in front of the same broker.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn new_haproxy(&self) -> Result<Haproxy> {
        Haproxy::start(self.broker)
    }

    /// Another Convoke in front of the same broker, on data of its own.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn new_convoke(&self) -> Result<Convoke> {
        let settings = self.settings.iter().flat_map(|setting| ["--set", setting]);
        Convoke::start(&self.program, &self.kafka, &settings.collect::<Vec<_>>())
    }

    /// Where clients of this route connect.
    ///
    /// # Errors
    /// When the route was not started.
    pub fn address(&self, route: Route) -> Result<SocketAddr> {
        match route {
            Route::Direct => Ok(self.broker),
            Route::Haproxy => Ok(self.haproxy.as_ref().ok_or("HAProxy does not run")?.address()),
            Route::Convoke => node_address(self.convoke.as_ref().ok_or("Convoke does not run")?),
        }
    }

    /// The process that relays, or, of the direct route, the broker's own.
    ///
    /// # Errors
    /// When the route was not started.
    pub fn process_id(&mut self, route: Route) -> Result<u32> {
        match route {
            Route::Direct => Ok(self.kafka.process_id(NODE).ok_or("the broker does not run")?),
            Route::Haproxy => Ok(self.haproxy.as_ref().ok_or("HAProxy does not run")?.process_id()),
            Route::Convoke => Ok(self.convoke.as_mut().ok_or("Convoke does not run")?.process()?.id()),
        }
    }
}

/// The address that a Convoke gives the broker's node.
///
/// # Errors
/// When it told of none.
pub fn node_address(convoke: &Convoke) -> Result<SocketAddr> {
    Ok(convoke.nodes().get(&NODE).ok_or("Convoke told of no node")?.parse()?)
}
