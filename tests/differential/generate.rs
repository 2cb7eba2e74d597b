//! Conversations by chance, all of it from a seed. Most of what is said is what members would say, so that groups get somewhere;
//! some of it is [wrong on purpose](wrong).

mod classic;
mod consumer;
mod offsets;
mod wrong;

use std::collections::BTreeMap;

use convoke::wire::api;

use crate::answers::Placement;
use crate::conversation::ACTORS;
use crate::step::{Ask, Group, Id, Instance, Round, Step, TopicChange};
use convoke_support::rng::Rng;

/// What a conversation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Classic,
    Consumer,
    /// Members of both protocols in one group.
    Mixed,
    /// Offsets and the administration of groups.
    Offsets,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Classic, Self::Consumer, Self::Mixed, Self::Offsets];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
            Self::Mixed => "mixed",
            Self::Offsets => "offsets",
        }
    }

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether brokers before 4.0 know what it is about.
    pub const fn is_old(self) -> bool {
        matches!(self, Self::Classic | Self::Offsets)
    }
}

/// A conversation.
#[derive(Debug, Clone)]
pub struct Conversation {
    pub placement: Placement,
    pub steps: Vec<Step>,
}

/// The versions of each API that both sides speak.
pub type Versions = BTreeMap<i16, (i16, i16)>;

/// The conversation of a seed.
pub fn conversation(kind: Kind, versions: &Versions, seed: u64) -> Conversation {
    let mut rng = Rng::new(seed.wrapping_mul(4).wrapping_add(kind as u64));
    let placement = match kind {
        Kind::Consumer | Kind::Mixed if rng.chance(500) => Placement::Any,
        _ => Placement::Exact,
    };
    // Before 4.0 a topic that goes is felt in other conversations.
    let is_old = !versions.contains_key(&api::CONSUMER_GROUP_HEARTBEAT);
    let may_have_topic = placement == Placement::Exact && kind != Kind::Offsets && !is_old;
    let mut writer = Writer {
        versions,
        placement,
        actors: *rng.pick(&[2, 3, 3, 4, 4, 5, ACTORS]),
        wrong_of_1000: [0, 60, 150, 300][rng.below(4)],
        statics: rng.word(),
        classics: rng.word(),
        is_in: [false; ACTORS],
        speaks: match kind {
            Kind::Classic => Speaks::Classic,
            Kind::Consumer => Speaks::Consumer,
            Kind::Mixed => Speaks::Both,
            Kind::Offsets if versions.contains_key(&api::CONSUMER_GROUP_HEARTBEAT) && rng.chance(300) => {
                Speaks::Consumer
            }
            Kind::Offsets => Speaks::Classic,
        },
        is_connect: kind == Kind::Classic && rng.chance(150),
        is_about_offsets: kind == Kind::Offsets,
        own_partitions: (may_have_topic && rng.chance(100)).then_some(0),
        rng,
        steps: Vec::new(),
    };
    writer.write();
    Conversation {
        placement,
        steps: writer.steps,
    }
}

/// The protocols of a conversation's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Classic,
    Consumer,
    Both,
}

/// The group that members are in; there are others, that only have offsets.
const GROUP: Group = Group::Known(0);
const GROUPS: usize = 3;

struct Writer<'a> {
    versions: &'a Versions,
    rng: Rng,
    placement: Placement,
    actors: usize,
    wrong_of_1000: u64,
    /// A bit for each actor: whether it has an instance id.
    statics: u64,
    /// A bit for each actor: which protocol it speaks where both are spoken.
    classics: u64,
    /// Whether the actor takes itself for a member.
    is_in: [bool; ACTORS],
    speaks: Speaks,
    is_connect: bool,
    is_about_offsets: bool,
    /// The partitions of the conversation's own topic, if it has one.
    own_partitions: Option<i32>,
    steps: Vec<Step>,
}

impl Writer<'_> {
    fn write(&mut self) {
        let turns = self.rng.between(6, 22);
        for _ in 0..turns {
            let actor = self.rng.below(self.actors);
            if let Some(partitions) = self.own_partitions
                && self.rng.chance(150)
            {
                self.change_topic(partitions);
            } else if self.rng.below(100) < if self.is_about_offsets { 75 } else { 22 } {
                self.about_offsets(actor);
            } else if self.is_classic(actor) {
                self.as_classic_member(actor);
            } else {
                self.as_consumer(actor);
            }
        }
        self.look_at_everything();
    }

    fn change_topic(&mut self, has: i32) {
        let more = i32::try_from(self.rng.below(3)).unwrap_or(0) + has + 1;
        let change = match has {
            0 => TopicChange::Created(more),
            _ if self.rng.chance(400) => TopicChange::Deleted,
            _ => TopicChange::Grown(more),
        };
        self.own_partitions = Some(change.partitions());
        self.steps.push(Step {
            actor: 0,
            lane: 0,
            group: GROUP,
            version: 0,
            ask: Ask::Topic(change),
        });
        // Kafka's group hears of it with the next heartbeat of a consumer.
        self.let_another_be_heard();
    }

    fn is_classic(&self, actor: usize) -> bool {
        match self.speaks {
            Speaks::Classic => true,
            Speaks::Consumer => false,
            Speaks::Both => self.classics >> actor & 1 == 1,
        }
    }

    /// Where exact placement is compared, ids given by coordinators must not decide it, so members of mixed groups are static.
    fn must_be_static(&self) -> bool {
        self.speaks == Speaks::Both && self.placement == Placement::Exact
    }

    fn instance(&self, actor: usize) -> Instance {
        if self.must_be_static() || self.statics >> (2 * actor) & 3 == 0 {
            Instance::Own
        } else {
            Instance::None
        }
    }

    /// Says something in some version, on the actor's own connection or, if that may be held up, on a second one; or something
    /// like it that is wrong.
    fn say(&mut self, actor: usize, ask: Ask) {
        let Some(version) = ask.api_key().and_then(|key| self.version(key)) else {
            return;
        };
        self.say_in(version, actor, ask);
    }

    fn say_in(&mut self, version: i16, actor: usize, ask: Ask) {
        let lane = if self.rng.chance(120) { actor + ACTORS } else { actor };
        let mut step = Step {
            actor,
            lane,
            group: GROUP,
            version,
            ask,
        };
        if self.rng.chance(self.wrong_of_1000) {
            wrong::make(&mut step, &mut self.rng, self.placement);
        }
        if let Ask::Beat(beat) = &step.ask
            && self.placement == Placement::Exact
            && beat.epoch == Round::Exactly(0)
            && !matches!(beat.id, Id::Chosen | Id::ChosenAnew | Id::Stranger)
        {
            // The id may be empty, for which only v0 gets one made: its order among the others would be chance.
            step.version = step.version.max(1);
        }
        self.steps.push(step);
    }

    /// The newest version more often than others.
    fn version(&mut self, api_key: i16) -> Option<i16> {
        let (mut min, max) = *self.versions.get(&api_key)?;
        if api_key == api::JOIN_GROUP && self.must_be_static() {
            // Before that there are no static members.
            min = 5;
        }
        if self.rng.chance(500) {
            return Some(max);
        }
        let count = usize::try_from(max - min).ok()? + 1;
        Some(min + i16::try_from(self.rng.below(count)).ok()?)
    }

    /// All actors that take themselves for members, in any order.
    fn members(&mut self) -> Vec<usize> {
        let mut members: Vec<usize> = (0..self.actors).filter(|actor| self.is_in[*actor]).collect();
        self.rng.shuffle(&mut members);
        members
    }

    fn other(&mut self) -> usize {
        self.rng.below(self.actors)
    }

    fn look_at_everything(&mut self) {
        let groups: Vec<Group> = (0..GROUPS).map(Group::Known).collect();
        let asks = [
            Ask::Describe {
                groups: groups.clone(),
                operations: false,
            },
            Ask::DescribeConsumers {
                groups: groups.clone(),
                operations: false,
            },
            Ask::List {
                states: Vec::new(),
                types: Vec::new(),
            },
            Ask::Fetch {
                groups,
                member: None,
                topics: None,
                stable: true,
            },
        ];
        for ask in asks {
            let newest = ask.api_key().and_then(|key| self.versions.get(&key));
            if let Some((_, version)) = newest {
                self.steps.push(Step {
                    actor: 0,
                    lane: 2 * ACTORS,
                    group: GROUP,
                    version: *version,
                    ask,
                });
            }
        }
    }
}
