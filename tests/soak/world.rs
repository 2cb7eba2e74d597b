//! Everything that a run consists of: brokers, Convoke, the relays on both sides of it, the clients, the journal and the judge.

use std::sync::Arc;
use std::time::{Duration, Instant};

use convoke_support::Result;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use tokio::runtime::Runtime;

use crate::admin::Admin;
use crate::crew::{self, Crew, SESSION, TOPIC};
use crate::faults::{Fault, Kind};
use crate::journal::{Journal, ON_THE_WAY, now};
use crate::judge::Judge;
use crate::options::Run;
use crate::relay::Relay;
use crate::sidecar::{self, Sidecar, Usage};
use convoke_support::rng::Rng;

/// After a fault every group commits again within this; members' sessions, and clients' own waits, take most of it.
const RECOVERS: Duration = Duration::from_secs(120);
/// How often things are looked after.
const TICK: Duration = Duration::from_millis(200);
/// So late a look is worth a line.
const STARVED: Duration = Duration::from_secs(2);
const PARTITIONS: u32 = 6;
const PARTITIONS_MOST: u32 = 24;

pub struct World {
    // Dropped in this order: clients first, brokers last.
    pub crew: Crew,
    admin: Admin,
    pub sidecar: Sidecar,
    pub clients: Relay,
    pub brokers: Relay,
    pub kafka: Kafka,
    pub journal: Arc<Journal>,
    pub judge: Judge,
    pub chance: Rng,
    pub broken: usize,
    /// The longest that this process, and so perhaps everybody, waited for a processor.
    pub starved: Duration,
    /// Of a Convoke that nobody has connected to.
    pub at_rest: Usage,
    nodes: i32,
    partitions: u32,
    disk_is_full: bool,
    /// Convoke is to be started when the disk is free.
    waits_for_disk: bool,
    /// Of the relays.
    _runtime: Runtime,
}

impl World {
    /// Starts everything and waits until each group has made progress.
    pub fn start(run: &Run, program: &str, journal: &Arc<Journal>) -> Result<Self> {
        // First, since that may take long the first time.
        crew::build()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let session = SESSION.as_millis().to_string();
        let options = Options::new("4.4.0")
            .nodes(run.nodes)
            .relay(sidecar::FOR_CONVOKE)
            .set("min.insync.replicas", &run.nodes.min(2).to_string())
            .set("group.consumer.min.session.timeout.ms", &session)
            .set("group.consumer.session.timeout.ms", &session)
            .set("group.consumer.min.heartbeat.interval.ms", "1000")
            .set("group.consumer.heartbeat.interval.ms", "1000");
        let kafka = Kafka::start_in(Network::Loopback, options)?;
        let brokers = Relay::start(runtime.handle(), &kafka.relayed())?;
        let upstream: Vec<_> = kafka.relayed().iter().map(|(at, _)| at.to_string()).collect();
        let mut sidecar = Sidecar::new(program, upstream.join(","), u16::try_from(run.nodes)?, journal)?;
        let clients = Relay::start(runtime.handle(), &sidecar.routes())?;
        sidecar.start()?;
        sidecar.wait_ready()?;
        let at_rest = sidecar.usage();
        let mut admin = Admin::start(&sidecar.bootstrap())?;
        admin.create_topic(TOPIC, PARTITIONS)?;
        Ok(Self {
            crew: Crew::start(journal, &sidecar.bootstrap(), run.places, run.interval)?,
            admin,
            sidecar,
            clients,
            brokers,
            kafka,
            journal: Arc::clone(journal),
            judge: Judge::new(run.places.iter().map(|place| place.group)),
            chance: Rng::new(run.seed),
            broken: 0,
            starved: Duration::ZERO,
            at_rest,
            nodes: run.nodes,
            partitions: PARTITIONS,
            disk_is_full: false,
            waits_for_disk: false,
            _runtime: runtime,
        })
    }

    /// An invariant does not hold.
    pub fn broken(&mut self, what: &str) {
        self.broken += 1;
        self.journal.event("BROKEN", what);
    }

    /// Lets time pass, and looks after everything meanwhile.
    pub fn pass(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        loop {
            self.tick()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let sleep = left.min(TICK);
            let asleep = Instant::now();
            std::thread::sleep(sleep);
            let starved = asleep.elapsed().saturating_sub(sleep);
            if starved > STARVED {
                self.journal.event(
                    "starved",
                    &format!("the run itself waited {starved:.1?} for a processor"),
                );
            }
            self.starved = self.starved.max(starved);
        }
    }

    fn tick(&mut self) -> Result<()> {
        self.crew.tend()?;
        self.hear(false);
        if let Some(report) = self.sidecar.has_ended() {
            if self.disk_is_full {
                self.journal.event("convoke ended", "it does not start on a full disk");
                self.waits_for_disk = true;
            } else {
                self.broken(&format!("convoke has ended by itself\n{report}"));
                self.sidecar.start()?;
            }
        }
        Ok(())
    }

    /// Tells the judge what was told.
    pub fn hear(&mut self, all: bool) {
        for (at, told) in self.journal.take(all) {
            self.judge.hear(at, told);
        }
        for (at, what) in self.judge.take_broken() {
            self.broken(&format!("{what} (at {at})"));
        }
    }

    /// Waits until each group has committed what it had not begun to commit before now, and says how long that took. What counts
    /// are turns of this loop, since clients, too, do nothing while a machine that has other work lets nobody run.
    pub fn recover(&mut self) -> Result<Duration> {
        let (since, began) = (now(), Instant::now());
        let mut waiting = self.crew.groups();
        for _ in 0..RECOVERS.as_millis() / TICK.as_millis() {
            waiting.retain(|group| !self.journal.progressed(group, since));
            if waiting.is_empty() {
                return Ok(began.elapsed());
            }
            self.pass(TICK)?;
        }
        let groups = self.sidecar.get("/groups").map(|(_, page)| page);
        let groups = groups.unwrap_or_else(|error| error.to_string());
        std::fs::write(self.journal.folder().join(format!("standstill-{since}.json")), groups)?;
        self.broken(&format!(
            "no progress in {waiting:?} after {RECOVERS:?}; /groups is kept in standstill-{since}.json"
        ));
        Ok(began.elapsed())
    }

    /// One or two faults, from their beginning until every group has recovered.
    pub fn suffer(&mut self, kinds: &[Kind]) -> Result<Duration> {
        let mut faults = Vec::new();
        for kind in kinds {
            faults.push(Fault::begin(*kind, self)?);
        }
        faults.sort_by_key(|fault| fault.lasts);
        let mut passed = Duration::ZERO;
        for fault in faults {
            self.pass(fault.lasts.saturating_sub(passed))?;
            passed = passed.max(fault.lasts);
            fault.end(self)?;
        }
        self.recover()
    }

    pub fn some_node(&mut self) -> i32 {
        1 + i32::try_from(self.chance.below(usize::try_from(self.nodes).unwrap_or(1))).unwrap_or_default()
    }

    pub fn fill_disk(&mut self) -> Result<()> {
        self.disk_is_full = true;
        self.sidecar.fill_disk()
    }

    pub fn free_disk(&mut self) -> Result<()> {
        self.disk_is_full = false;
        self.sidecar.free_disk()?;
        if std::mem::take(&mut self.waits_for_disk) {
            self.sidecar.start()?;
        }
        Ok(())
    }

    pub fn grow_topic(&mut self) -> Result<String> {
        if self.partitions >= PARTITIONS_MOST {
            return Ok("it is large enough".to_owned());
        }
        self.partitions += 1;
        self.admin.grow_topic(TOPIC, self.partitions)?;
        Ok(format!("{} partitions", self.partitions))
    }

    /// Ends the load and everybody who was part of it, and lets the judge have its last word.
    pub fn finish(&mut self) -> Result<()> {
        self.journal.event("end", "the producers stop");
        self.crew.stop_producers()?;
        // Only then the judge knows of all that was sent.
        self.pass(ON_THE_WAY)?;
        let groups = self.crew.groups();
        let mut behind = Vec::new();
        for _ in 0..RECOVERS.as_secs() {
            self.pass(Duration::from_secs(1))?;
            behind = groups.iter().map(|group| (*group, self.judge.behind(group))).collect();
            if behind.iter().all(|(_, behind)| behind.is_empty()) {
                break;
            }
        }
        for (group, behind) in behind.into_iter().filter(|(_, behind)| !behind.is_empty()) {
            self.broken(&format!(
                "{group} does not come to the end (partition, committed, sent): {behind:?}"
            ));
        }
        let committed = self.admin.committed(&groups)?;
        self.crew.close_all()?;
        self.hear(true);
        self.judge.finish(now(), &committed);
        self.hear(true);
        self.admin.close()
    }

    /// Where the relays and Convoke are, for the first line.
    pub fn describe(&self) -> String {
        let disk = if self.sidecar.can_be_full() {
            "a disk of its own"
        } else {
            "a folder (no mounting here: the disk is never full)"
        };
        format!("{} nodes, {} partitions, data in {disk}", self.nodes, self.partitions)
    }

    pub const fn partitions(&self) -> u32 {
        self.partitions
    }
}
