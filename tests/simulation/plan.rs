//! What a run is made of, drawn from its seed. Each run has only some of the faults: a fault that is always there hides
//! what the others do.

use std::sync::Arc;

use convoke::coordinator::assignor::ClassicAssignor;
use convoke::coordinator::group_patterns::GroupPatterns;
use convoke::coordinator::request::Text;
use convoke::coordinator::settings::{ClassicAssignmentRule, ExternalAssignorRule, MigrationPolicy, Settings};

use crate::computer::Deed;
use crate::topics::PATTERNS;
use convoke_support::rng::Rng;

/// Topics and their partitions.
pub(crate) const TOPICS: [(&str, i32); 3] = [("t0", 5), ("t1", 3), ("t2", 1)];
/// Where clients may be.
pub(crate) const RACKS: [Option<&str>; 3] = [None, Some("a"), Some("b")];
/// Assignors that run outside of the coordinator, as those list them who can.
pub(crate) const LISTS: [&[&str]; 4] = [&["lag"], &["lag"], &["zone", "lag"], &["zone"]];
/// The versions of members' metadata that they read; a member writes its own in the last of its own.
pub(crate) const VERSIONS: [(i16, i16); 4] = [(0, 1), (0, 1), (0, 0), (1, 1)];
/// Bytes of what an assignor may say to a member.
pub(crate) const METADATA_MAX: usize = 1_000;
/// Whatever is set, members of consumer groups and external assignors have this long at least.
pub(crate) const SHORTEST_SESSION_MS: u64 = 10_000;
/// Offsets expire within a run.
pub(crate) const SHORT_RETENTION_MS: i64 = 30_000;

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    /// Whether classic groups are assigned for here at times only.
    pub(crate) rules_change: bool,
    pub(crate) groups: Vec<GroupPlan>,
    pub(crate) consumer_groups: Vec<ConsumerGroupPlan>,
    /// Groups whose clients come by either protocol.
    pub(crate) mixed_groups: Vec<MixedPlan>,
    pub(crate) standalone: usize,
    /// How long faults happen, in milliseconds.
    pub(crate) fault_ms: u64,
    pub(crate) faults: Faults,
}

#[derive(Debug)]
pub(crate) struct GroupPlan {
    pub(crate) protocol_type: &'static str,
    pub(crate) of_changing_topics: bool,
    pub(crate) consumers: Vec<ConsumerPlan>,
    pub(crate) externals: Vec<ExternalPlan>,
}

/// A group of the consumer protocol.
#[derive(Debug)]
pub(crate) struct ConsumerGroupPlan {
    pub(crate) members: Vec<MemberPlan>,
    pub(crate) externals: Vec<ExternalPlan>,
}

/// Each client as it is by either protocol.
#[derive(Debug)]
pub(crate) struct MixedPlan {
    pub(crate) group: GroupPlan,
    pub(crate) members: Vec<MemberPlan>,
}

#[derive(Debug)]
pub(crate) struct ConsumerPlan {
    pub(crate) protocols: &'static [&'static str],
    pub(crate) is_static: bool,
    pub(crate) session_ms: i32,
    pub(crate) rebalance_ms: i32,
    /// When it first comes.
    pub(crate) start_ms: u64,
    /// JoinGroup v4 and later.
    pub(crate) knows_member_id_required: bool,
    /// JoinGroup v9.
    pub(crate) skips_assignment: bool,
    /// Planted.
    pub(crate) reads_on: bool,
}

#[derive(Debug)]
pub(crate) struct MemberPlan {
    pub(crate) is_static: bool,
    pub(crate) rebalance_ms: i32,
    /// When it first comes.
    pub(crate) start_ms: u64,
    /// Which of the patterns it is subscribed by.
    pub(crate) pattern: Option<usize>,
    /// Of one that can compute assignments.
    pub(crate) computer: Option<ComputerPlan>,
}

/// An external assignor.
#[derive(Debug)]
pub(crate) struct ExternalPlan {
    /// When it first comes.
    pub(crate) start_ms: u64,
    pub(crate) computer: ComputerPlan,
}

/// Whoever can compute assignments.
#[derive(Debug, Clone)]
pub(crate) struct ComputerPlan {
    pub(crate) names: &'static [&'static str],
    pub(crate) versions: (i16, i16),
    /// How long it may take.
    pub(crate) timeout_ms: i32,
    /// What its program does every time. None: what it should, but for faults.
    pub(crate) always: Option<Deed>,
}

/// Each in a thousand: of a message, of an opportunity, or of a second, as said.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// The process dies, of a second.
    pub(crate) crash: u64,
    /// The process stands still, of a second.
    pub(crate) stall: u64,
    /// A transaction of the store fails.
    pub(crate) store_failure: u64,
    /// A transaction of the store takes long.
    pub(crate) store_slow: u64,
    /// The wall clock jumps, of a second.
    pub(crate) wall_jump: u64,
    /// A message is lost with its connection.
    pub(crate) loss: u64,
    /// A request comes twice.
    pub(crate) duplicate: u64,
    /// A message takes long.
    pub(crate) late: u64,
    /// A consumer dies, each time it is idle.
    pub(crate) client_crash: u64,
    /// A consumer leaves and comes back, each time it is idle.
    pub(crate) leave: u64,
    /// A consumer subscribes to something else, each time it is idle.
    pub(crate) resubscribe: u64,
    /// An inspection fails.
    pub(crate) inspect_failure: u64,
    /// Admins delete offsets and groups, each time they do something.
    pub(crate) deletion: u64,
    /// A topic goes, of a second.
    pub(crate) topic_deletion: u64,
    /// A topic is created, grows, goes or is created anew, of a second.
    pub(crate) topic_change: u64,
    /// A member takes long to give partitions up, of an assignment.
    pub(crate) slow: u64,
    /// A client of a mixed group ends, and comes back by any protocol, each time it is idle.
    pub(crate) switch: u64,
    /// Somebody sets a group's own settings, or the migration policy, of a second.
    pub(crate) reconfigure: u64,
    /// Who is to compute an assignment does something else, each time.
    pub(crate) misdeed: u64,
    /// Who can compute says something else of its assignors, each time it is idle.
    pub(crate) ask: u64,
}

impl Plan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let settings = Settings {
            group_initial_rebalance_delay_ms: *rng.pick(&[0, 200, 3000]),
            offsets_retention_check_interval_ms: *rng.pick(&[10_000, 60_000, 600_000]),
            group_consumer_session_timeout_ms: *rng.pick(&[10_000, 45_000]),
            group_consumer_min_session_timeout_ms: 10_000,
            group_consumer_heartbeat_interval_ms: 3_000,
            group_consumer_min_heartbeat_interval_ms: 3_000,
            group_consumer_assignment_interval_ms: *rng.pick(&[None, Some(0), Some(1_000)]),
            group_consumer_migration_policy: draw_policy(rng),
            group_max_size: draw_size(rng),
            group_consumer_max_size: draw_size(rng),
            offsets_retention_ms: *rng.pick(&[Settings::default().offsets_retention_ms, SHORT_RETENTION_MS]),
            external_assignors: draw_assignor_rules(rng),
            assignor_metadata_max_bytes: METADATA_MAX,
            coordinator_assigned: draw_classic_rules(rng),
            ..Settings::default()
        };
        // As many runs of each kind alone as of both in one world.
        let kinds = [
            (1, 0, 0),
            (2, 0, 0),
            (0, 1, 0),
            (0, 2, 0),
            (1, 1, 0),
            (0, 0, 1),
            (0, 0, 1),
            (0, 0, 2),
            (1, 0, 1),
        ];
        let (classic, consumer, mixed) = *rng.pick(&kinds);
        let is_computed = settings
            .coordinator_assigned
            .iter()
            .any(|rule| rule.external().is_some());
        let groups = (0..classic).map(|_| GroupPlan::draw(rng, is_computed)).collect();
        let consumer_groups = (0..consumer).map(|_| ConsumerGroupPlan::draw(rng)).collect();
        let mixed_groups = (0..mixed).map(|_| MixedPlan::draw(rng)).collect();
        Self {
            settings,
            rules_change: rng.chance(250),
            groups,
            consumer_groups,
            mixed_groups,
            standalone: rng.below(3),
            fault_ms: rng.between(30_000, 150_000),
            faults: Faults::draw(rng),
        }
    }
}

/// The one that allows most is the one that shows most.
pub(crate) fn draw_policy(rng: &mut Rng) -> MigrationPolicy {
    match rng.chance(500) {
        true => MigrationPolicy::Bidirectional,
        false => *rng.pick(&MigrationPolicy::ALL),
    }
}

fn draw_size(rng: &mut Rng) -> i32 {
    match rng.chance(850) {
        true => i32::MAX,
        false => *rng.pick(&[2, 3]),
    }
}

/// None, one that lets members ask for an assignor that nobody offers, or one that they all have.
fn draw_assignor_rules(rng: &mut Rng) -> Arc<[ExternalAssignorRule]> {
    let rule = |always| ExternalAssignorRule {
        name: "lag".into(),
        groups: GroupPatterns::new(&["consumers-*".to_owned(), "mixed-0".to_owned()]),
        always,
    };
    let rules = [None, Some(rule(false)), Some(rule(true))];
    rng.pick(&rules).iter().cloned().collect()
}

/// Who assigns for the classic groups: their leaders, the coordinator with whatever assignor, or somebody else.
fn draw_classic_rules(rng: &mut Rng) -> Arc<[ClassicAssignmentRule]> {
    let rule = |assignor: Option<&str>, fallback| ClassicAssignmentRule {
        groups: GroupPatterns::new(&["group-*".to_owned(), "changing-*".to_owned(), "mixed-*".to_owned()]),
        assignor: assignor.map(Text::from),
        fallback,
    };
    let named = ClassicAssignor::NAMES.map(Some);
    let fallbacks = [None, Some(ClassicAssignor::Range), Some(ClassicAssignor::Sticky)];
    match rng.below(4) {
        0 => [rule(
            *rng.pick(&[None, None, named[0], named[1], named[2], named[3]]),
            None,
        )]
        .into(),
        1 => [rule(Some("lag"), *rng.pick(&fallbacks))].into(),
        _ => Arc::default(),
    }
}

impl GroupPlan {
    fn draw(rng: &mut Rng, is_computed: bool) -> Self {
        let protocol_type = if rng.chance(850) { "consumer" } else { "connect" };
        const LISTS: [&[&str]; 6] = [
            &["range"],
            &["cooperative-sticky", "range"],
            &["cooperative-sticky", "range"],
            &["cooperative-sticky"],
            &["sticky"],
            &["roundrobin"],
        ];
        let protocols = *rng.pick(&LISTS);
        let statics = *rng.pick(&[0, 0, 500, 1000]);
        let consumers = (0..rng.between(1, 5))
            .map(|_| ConsumerPlan::draw(rng, protocols, statics))
            .collect();
        Self {
            protocol_type,
            of_changing_topics: protocol_type == "consumer" && rng.chance(400),
            consumers,
            externals: match is_computed {
                true => ExternalPlan::draw_some(rng),
                false => Vec::new(),
            },
        }
    }
}

impl ConsumerPlan {
    fn draw(rng: &mut Rng, protocols: &'static [&'static str], statics: u64) -> Self {
        Self {
            protocols,
            is_static: rng.chance(statics),
            session_ms: *rng.pick(&[6_000, 10_000, 30_000]),
            rebalance_ms: *rng.pick(&[5_000, 20_000, 60_000]),
            start_ms: draw_start(rng),
            knows_member_id_required: rng.chance(800),
            skips_assignment: rng.chance(500),
            reads_on: false,
        }
    }
}

impl MixedPlan {
    /// Eager members, cooperative ones, and both on the way from one to the other.
    fn draw(rng: &mut Rng) -> Self {
        const RANGE: &[&str] = &["range"];
        const STICKY: &[&str] = &["cooperative-sticky"];
        const BOTH: &[&str] = &["cooperative-sticky", "range"];
        const LISTS: [&[&[&str]]; 4] = [&[RANGE], &[STICKY], &[STICKY, BOTH], &[BOTH]];
        let lists = *rng.pick(&LISTS);
        let statics = *rng.pick(&[0, 500, 1000]);
        let computers = *rng.pick(&[0, 500]);
        let (mut consumers, mut members) = (Vec::new(), Vec::new());
        for _ in 0..rng.between(2, 5) {
            let protocols = *rng.pick(lists);
            let classic = ConsumerPlan::draw(rng, protocols, statics);
            members.push(MemberPlan {
                is_static: classic.is_static,
                ..MemberPlan::draw(rng, 0, 200, computers)
            });
            consumers.push(classic);
        }
        let group = GroupPlan {
            protocol_type: "consumer",
            of_changing_topics: true,
            consumers,
            externals: ExternalPlan::draw_some(rng),
        };
        Self { group, members }
    }
}

impl ConsumerGroupPlan {
    fn draw(rng: &mut Rng) -> Self {
        let statics = *rng.pick(&[0, 0, 500, 1000]);
        let patterns = *rng.pick(&[0, 0, 500, 1000]);
        let computers = *rng.pick(&[0, 500, 1000, 1000]);
        let count = rng.between(1, 5);
        Self {
            members: (0..count)
                .map(|_| MemberPlan::draw(rng, statics, patterns, computers))
                .collect(),
            externals: ExternalPlan::draw_some(rng),
        }
    }
}

impl MemberPlan {
    fn draw(rng: &mut Rng, statics: u64, patterns: u64, computers: u64) -> Self {
        let computer = rng.chance(computers).then(|| ComputerPlan::draw(rng));
        Self {
            is_static: rng.chance(statics),
            rebalance_ms: match &computer {
                Some(computer) => computer.timeout_ms,
                None => *rng.pick(&[5_000, 20_000, 60_000]),
            },
            start_ms: draw_start(rng),
            pattern: rng.chance(patterns).then(|| rng.below(PATTERNS.len())),
            computer,
        }
    }
}

impl ExternalPlan {
    fn draw_some(rng: &mut Rng) -> Vec<Self> {
        let count = *rng.pick(&[0, 0, 1, 2]);
        let draw = |_| Self {
            start_ms: draw_start(rng),
            computer: ComputerPlan::draw(rng),
        };
        (0..count).map(draw).collect()
    }
}

impl ComputerPlan {
    fn draw(rng: &mut Rng) -> Self {
        Self {
            names: *rng.pick(&LISTS),
            versions: *rng.pick(&VERSIONS),
            timeout_ms: *rng.pick(&[5_000, 20_000]),
            always: rng.chance(350).then(|| *rng.pick(&Deed::BAD)),
        }
    }
}

/// When a client first comes, in milliseconds.
fn draw_start(rng: &mut Rng) -> u64 {
    *rng.pick(&[0, 0, 10, 2_000, 20_000])
}

impl Faults {
    fn draw(rng: &mut Rng) -> Self {
        let mut some = |of_1000: u64| if rng.chance(350) { of_1000 } else { 0 };
        Self {
            crash: some(30),
            stall: some(30),
            store_failure: some(20),
            store_slow: some(50),
            wall_jump: some(30),
            loss: some(20),
            duplicate: some(30),
            late: some(30),
            client_crash: some(15),
            leave: some(15),
            resubscribe: some(15),
            inspect_failure: some(300),
            deletion: some(300),
            topic_deletion: some(10),
            topic_change: some(60),
            slow: some(200),
            switch: some(20) + some(40),
            reconfigure: some(60),
            misdeed: some(300) + some(500),
            ask: some(30),
        }
    }
}
