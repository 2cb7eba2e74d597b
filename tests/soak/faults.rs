//! What is done to Convoke, its brokers, its disk, the connections on both sides, and the members.

use std::time::Duration;

use convoke_support::Result;

use crate::relay::Weather;
use crate::world::World;
use convoke_support::rng::Rng;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    ConvokeKilled,
    ConvokeRestarted,
    ConvokePaused,
    /// For longer than a session.
    ConvokePausedLong,
    BrokerKilled,
    BrokerRestarted,
    ClientsCut,
    ClientsSlow,
    ClientsStill,
    /// For longer than a session.
    ClientsStillLong,
    BrokersCut,
    BrokersSlow,
    BrokersStill,
    DiskFull,
    MemberKilled,
    MemberClosed,
    MemberAdded,
    TopicGrown,
}

/// What only one fault at a time is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Convoke,
    Broker,
    Clients,
    Brokers,
    Disk,
    Members,
    Topic,
}

impl Kind {
    pub const ALL: [Self; 18] = [
        Self::ConvokeKilled,
        Self::ConvokeRestarted,
        Self::ConvokePaused,
        Self::ConvokePausedLong,
        Self::BrokerKilled,
        Self::BrokerRestarted,
        Self::ClientsCut,
        Self::ClientsSlow,
        Self::ClientsStill,
        Self::ClientsStillLong,
        Self::BrokersCut,
        Self::BrokersSlow,
        Self::BrokersStill,
        Self::DiskFull,
        Self::MemberKilled,
        Self::MemberClosed,
        Self::MemberAdded,
        Self::TopicGrown,
    ];

    /// Those of a short run, in its order: none takes long, none is a broker's.
    pub const SHORT: [Self; 5] = [
        Self::MemberClosed,
        Self::ConvokeKilled,
        Self::ClientsCut,
        Self::TopicGrown,
        Self::BrokersCut,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::ConvokeKilled => "Convoke killed",
            Self::ConvokeRestarted => "Convoke restarted",
            Self::ConvokePaused => "Convoke paused",
            Self::ConvokePausedLong => "Convoke paused for longer than a session",
            Self::BrokerKilled => "broker killed",
            Self::BrokerRestarted => "broker restarted",
            Self::ClientsCut => "clients' connections cut",
            Self::ClientsSlow => "clients' connections slow",
            Self::ClientsStill => "clients' connections still",
            Self::ClientsStillLong => "clients' connections still for longer than a session",
            Self::BrokersCut => "brokers' connections cut",
            Self::BrokersSlow => "brokers' connections slow",
            Self::BrokersStill => "brokers' connections still",
            Self::DiskFull => "disk full",
            Self::MemberKilled => "member killed",
            Self::MemberClosed => "member closed",
            Self::MemberAdded => "member added",
            Self::TopicGrown => "topic grown",
        }
    }

    /// Whether it ends the process of Convoke, whose memory is then another's.
    pub const fn ends_convoke(self) -> bool {
        matches!(self, Self::ConvokeKilled | Self::ConvokeRestarted)
    }

    const fn target(self) -> Target {
        match self {
            Self::ConvokeKilled | Self::ConvokeRestarted | Self::ConvokePaused | Self::ConvokePausedLong => {
                Target::Convoke
            }
            Self::BrokerKilled | Self::BrokerRestarted => Target::Broker,
            Self::ClientsCut | Self::ClientsSlow | Self::ClientsStill | Self::ClientsStillLong => Target::Clients,
            Self::BrokersCut | Self::BrokersSlow | Self::BrokersStill => Target::Brokers,
            Self::DiskFull => Target::Disk,
            Self::MemberKilled | Self::MemberClosed | Self::MemberAdded => Target::Members,
            Self::TopicGrown => Target::Topic,
        }
    }

    /// Whether both may be at a time. A topic grows through Convoke and its brokers, which have to be there.
    pub fn goes_with(self, other: Self) -> bool {
        let targets = [self.target(), other.target()];
        targets[0] != targets[1] && !targets.contains(&Target::Topic)
    }

    /// How long it lasts.
    fn lasts(self, chance: &mut Rng) -> Duration {
        match self {
            Self::ConvokeKilled | Self::ConvokeRestarted => chance.millis(0, 6_000),
            Self::ConvokePaused | Self::ClientsStill => chance.millis(500, 7_000),
            Self::ConvokePausedLong | Self::ClientsStillLong => chance.millis(12_000, 20_000),
            Self::BrokerKilled | Self::BrokerRestarted | Self::DiskFull => chance.millis(2_000, 12_000),
            Self::ClientsSlow | Self::BrokersSlow => chance.millis(3_000, 15_000),
            Self::BrokersStill => chance.millis(1_000, 15_000),
            Self::ClientsCut
            | Self::BrokersCut
            | Self::MemberKilled
            | Self::MemberClosed
            | Self::MemberAdded
            | Self::TopicGrown => Duration::ZERO,
        }
    }
}

/// A fault under way.
#[derive(Debug)]
pub struct Fault {
    pub kind: Kind,
    pub lasts: Duration,
    node: i32,
}

impl Fault {
    /// Does it.
    pub fn begin(kind: Kind, world: &mut World) -> Result<Self> {
        let lasts = kind.lasts(&mut world.chance);
        let node = world.some_node();
        let mut detail = format!("for {:.1} s", lasts.as_secs_f32());
        if kind.target() == Target::Broker {
            detail = format!("node {node}, {detail}");
        }
        let said = world.journal.clone();
        if lasts > Duration::ZERO {
            said.event("fault", &format!("{}: {detail}", kind.name()));
        }
        let chance = &mut world.chance;
        match kind {
            Kind::ConvokeKilled => world.sidecar.kill(),
            Kind::ConvokeRestarted => world.sidecar.stop()?,
            Kind::ConvokePaused | Kind::ConvokePausedLong => world.sidecar.pause(),
            Kind::BrokerKilled => world.kafka.kill(node),
            Kind::BrokerRestarted => world.kafka.stop(node)?,
            Kind::ClientsCut => {
                world.clients.cut();
                detail = "all of them".to_owned();
            }
            Kind::ClientsSlow => world.clients.weather(Weather::Slow(chance.millis(20, 300))),
            Kind::ClientsStill | Kind::ClientsStillLong => world.clients.weather(Weather::Still),
            Kind::BrokersCut => {
                world.brokers.cut();
                detail = "all of them".to_owned();
            }
            Kind::BrokersSlow => world.brokers.weather(Weather::Slow(chance.millis(20, 300))),
            Kind::BrokersStill => world.brokers.weather(Weather::Still),
            Kind::DiskFull => world.fill_disk()?,
            Kind::MemberKilled => {
                let away = chance.millis(0, 15_000);
                detail = world
                    .crew
                    .kill_one(chance, away)
                    .unwrap_or_else(|| "nobody is there".to_owned());
            }
            Kind::MemberClosed => {
                detail = world
                    .crew
                    .close_one(chance)
                    .unwrap_or_else(|| "nobody is there".to_owned());
            }
            Kind::MemberAdded => {
                let stay = chance.millis(20_000, 60_000);
                detail = world.crew.add_one(chance, stay);
            }
            Kind::TopicGrown => detail = world.grow_topic()?,
        }
        if lasts == Duration::ZERO {
            said.event("fault", &format!("{}: {detail}", kind.name()));
        }
        Ok(Self { kind, lasts, node })
    }

    /// Undoes it.
    pub fn end(&self, world: &mut World) -> Result<()> {
        match self.kind {
            Kind::ConvokeKilled | Kind::ConvokeRestarted => world.sidecar.start()?,
            Kind::ConvokePaused | Kind::ConvokePausedLong => world.sidecar.go_on(),
            Kind::BrokerKilled | Kind::BrokerRestarted => world.kafka.restart(self.node)?,
            Kind::ClientsSlow | Kind::ClientsStill | Kind::ClientsStillLong => world.clients.weather(Weather::Fair),
            Kind::BrokersSlow | Kind::BrokersStill => world.brokers.weather(Weather::Fair),
            Kind::DiskFull => world.free_disk()?,
            Kind::ClientsCut
            | Kind::BrokersCut
            | Kind::MemberKilled
            | Kind::MemberClosed
            | Kind::MemberAdded
            | Kind::TopicGrown => return Ok(()),
        }
        world.journal.event("over", self.kind.name());
        Ok(())
    }
}
