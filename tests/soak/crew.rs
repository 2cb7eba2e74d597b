//! The clients: groups of stock consumers that come and go, and steady producers.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use convoke_support::Result;
use convoke_support::process::Process;
use convoke_support::stock::Stock;
use serde_json::{Value, json};

use crate::journal::Journal;
use convoke_support::rng::Rng;

pub const TOPIC: &str = "soak";
/// How long a client may take to close: it commits first, and waits for answers.
const CLOSING: Duration = Duration::from_secs(90);
/// Who ends by itself is started again after so long.
const RESTART: Duration = Duration::from_secs(3);
/// Members are thrown out after being silent for so long, in both protocols.
pub const SESSION: Duration = Duration::from_secs(10);

/// A place that a member of a group has, one process after the other.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub group: &'static str,
    stock: Stock,
    assignor: &'static str,
    is_static: bool,
}

const fn place(group: &'static str, stock: Stock, assignor: &'static str, is_static: bool) -> Place {
    Place {
        group,
        stock,
        assignor,
        is_static,
    }
}

/// Libraries share a group where they agree on what the protocol leaves to clients.
pub const PLACES: [Place; 14] = [
    place("eager", Stock::Java440, "range", true),
    place("eager", Stock::Librdkafka, "range", false),
    place("eager", Stock::FranzGo, "range", true),
    place("eager", Stock::FranzGo, "range", false),
    place("cooperative-java", Stock::Java440, "cooperative-sticky", false),
    place("cooperative-java", Stock::Java440, "cooperative-sticky", true),
    place("cooperative-librdkafka", Stock::Librdkafka, "cooperative-sticky", true),
    place("cooperative-librdkafka", Stock::Librdkafka, "cooperative-sticky", false),
    place("cooperative-franz-go", Stock::FranzGo, "cooperative-sticky", false),
    place("cooperative-franz-go", Stock::FranzGo, "cooperative-sticky", true),
    place("consumer", Stock::Java440Consumer, "", false),
    place("consumer", Stock::LibrdkafkaConsumer, "", true),
    place("consumer", Stock::LibrdkafkaConsumer, "", false),
    place("consumer", Stock::FranzGoConsumer, "", true),
];

/// One of each library and protocol, for a short run.
pub const FEW: [Place; 3] = [PLACES[0], PLACES[8], PLACES[12]];

/// Builds every client, where this is the first use.
pub fn build() -> Result<()> {
    [Stock::Java440, Stock::Librdkafka, Stock::FranzGo]
        .into_iter()
        .try_for_each(|stock| stock.program().map(drop))
}

/// Who runs in a place.
#[derive(Debug)]
enum State {
    Here(Running),
    /// Told to close, and killed if it has not by then.
    Closing(Running, Instant),
    /// Nobody until then.
    Empty(Instant),
}

#[derive(Debug)]
struct Running {
    name: String,
    process: Process,
}

#[derive(Debug)]
struct Slot {
    place: Place,
    number: usize,
    state: State,
    /// A place that is there for a while only: when it ends.
    until: Option<Instant>,
}

/// All clients of a run.
#[derive(Debug)]
pub struct Crew {
    journal: Arc<Journal>,
    bootstrap: String,
    slots: Vec<Slot>,
    producers: Vec<Running>,
    places: &'static [Place],
    started: usize,
    /// Clients that ended without being told to.
    pub ended_by_themselves: usize,
}

impl Crew {
    /// Starts a member in each place, and producers that send a record each `interval`.
    pub fn start(
        journal: &Arc<Journal>,
        bootstrap: &str,
        places: &'static [Place],
        interval: Duration,
    ) -> Result<Self> {
        let now = Instant::now();
        let slots = places.iter().enumerate().map(|(number, place)| Slot {
            place: *place,
            number,
            state: State::Empty(now),
            until: None,
        });
        let mut crew = Self {
            journal: Arc::clone(journal),
            bootstrap: bootstrap.to_owned(),
            slots: slots.collect(),
            producers: Vec::new(),
            places,
            started: 0,
            ended_by_themselves: 0,
        };
        for (name, stock) in [
            ("producer.java", Stock::Java440),
            ("producer.librdkafka", Stock::Librdkafka),
            ("producer.franz-go", Stock::FranzGo),
        ] {
            let config = json!({"role": "steady", "topic": TOPIC, "prefix": name, "client_id": name,
                "interval_ms": u64::try_from(interval.as_millis())?});
            crew.producers.push(crew.spawn(name.to_owned(), stock, config)?);
        }
        crew.tend()?;
        Ok(crew)
    }

    pub fn groups(&self) -> Vec<&'static str> {
        let mut groups: Vec<_> = self.places.iter().map(|place| place.group).collect();
        groups.dedup();
        groups
    }

    fn spawn(&self, name: String, stock: Stock, mut config: Value) -> Result<Running> {
        config["bootstrap"] = json!(self.bootstrap);
        // A topic that grows is read from soon.
        config["metadata_max_age_ms"] = json!(5000);
        let (program, arguments) = stock.program()?;
        let mut command = Command::new(program);
        command.args(arguments).arg(config.to_string());
        let (journal, member) = (Arc::clone(&self.journal), name.clone());
        let process = Process::spawn_heard(&name, command, move |stream, line| {
            journal.member_said(&member, stream, line);
        })?;
        Ok(Running { name, process })
    }

    fn join(&mut self, place: Place, number: usize) -> Result<Running> {
        self.started += 1;
        let name = format!(
            "{}.{}.{}",
            place.group,
            place.stock.classic().name().replace(' ', "-"),
            self.started
        );
        let mut config = json!({"role": "consumer", "group": place.group, "topics": [TOPIC], "client_id": name,
            "protocol": place.stock.protocol(), "assignor": place.assignor,
            "session_timeout_ms": u64::try_from(SESSION.as_millis())?, "heartbeat_ms": 1000});
        if place.is_static {
            config["instance_id"] = json!(format!("{}-{number}", place.group));
        }
        self.spawn(name, place.stock, config)
    }

    /// Takes in who has ended, starts who is due, and ends who is overdue.
    pub fn tend(&mut self) -> Result<()> {
        let now = Instant::now();
        for mut slot in std::mem::take(&mut self.slots) {
            let is_over = slot.until.is_some_and(|until| until <= now);
            let has_ended = match &mut slot.state {
                State::Here(running) | State::Closing(running, _) => running.process.has_ended(),
                State::Empty(_) => false,
            };
            slot.state = match slot.state {
                State::Empty(_) if is_over => continue,
                State::Empty(until) if until <= now => State::Here(self.join(slot.place, slot.number)?),
                State::Here(running) if has_ended => {
                    self.ended_by_themselves += 1;
                    self.gone(&running);
                    self.journal.event("client ended", &last_words(&running));
                    State::Empty(now + RESTART)
                }
                State::Here(running) if is_over => closing(running),
                State::Closing(running, _) if has_ended => {
                    self.gone(&running);
                    State::Empty(now)
                }
                State::Closing(mut running, deadline) if deadline <= now => {
                    self.journal
                        .event("client hangs", &format!("{} does not close", running.name));
                    running.process.kill();
                    self.gone(&running);
                    State::Empty(now)
                }
                other => other,
            };
            self.slots.push(slot);
        }
        for producer in &mut self.producers {
            if producer.process.has_ended() {
                return Err(format!("a producer has ended\n{}", producer.process.report()).into());
            }
        }
        Ok(())
    }

    fn gone(&self, running: &Running) {
        running.process.stdout.wait_end();
        self.journal.ended(&running.name);
    }

    /// SIGKILL for one of the members, who comes again after `away`.
    pub fn kill_one(&mut self, chance: &mut Rng, away: Duration) -> Option<String> {
        let at = self.somebody(chance)?;
        let empty = State::Empty(Instant::now() + away);
        let State::Here(mut running) = std::mem::replace(&mut self.slots[at].state, empty) else {
            return None;
        };
        running.process.kill();
        self.gone(&running);
        Some(running.name)
    }

    /// Tells one of the members to close; another comes in its place.
    pub fn close_one(&mut self, chance: &mut Rng) -> Option<String> {
        let at = self.somebody(chance)?;
        let empty = State::Empty(Instant::now());
        let State::Here(running) = std::mem::replace(&mut self.slots[at].state, empty) else {
            return None;
        };
        let name = running.name.clone();
        self.slots[at].state = closing(running);
        Some(name)
    }

    /// One member more in some group, for a while.
    pub fn add_one(&mut self, chance: &mut Rng, stay: Duration) -> String {
        let place = Place {
            is_static: false,
            ..*chance.pick(self.places)
        };
        let now = Instant::now();
        self.slots.push(Slot {
            place,
            number: self.started,
            state: State::Empty(now),
            until: Some(now + stay),
        });
        format!("{} in {}", place.stock.name(), place.group)
    }

    fn somebody(&self, chance: &mut Rng) -> Option<usize> {
        let here = |slot: &Slot| matches!(slot.state, State::Here(_)) && slot.until.is_none();
        let here: Vec<_> = (0..self.slots.len()).filter(|at| here(&self.slots[*at])).collect();
        (!here.is_empty()).then(|| *chance.pick(&here))
    }

    /// Ends the producers, once all that they sent is acknowledged.
    pub fn stop_producers(&mut self) -> Result<()> {
        end_all(&mut std::mem::take(&mut self.producers))
    }

    /// Closes every member.
    pub fn close_all(&mut self) -> Result<()> {
        let running = self.slots.drain(..).filter_map(|slot| match slot.state {
            State::Here(running) | State::Closing(running, _) => Some(running),
            State::Empty(_) => None,
        });
        let mut running: Vec<_> = running.collect();
        end_all(&mut running)?;
        running.iter().for_each(|running| self.gone(running));
        Ok(())
    }
}

/// It has ended when it does not read any more, too.
fn closing(mut running: Running) -> State {
    let _ = running.process.send_line("close");
    State::Closing(running, Instant::now() + CLOSING)
}

fn end_all(running: &mut [Running]) -> Result<()> {
    for one in running.iter_mut() {
        let _ = one.process.send_line("close");
    }
    for one in running {
        one.process.wait(CLOSING)?;
        one.process.stdout.wait_end();
    }
    Ok(())
}

/// Why somebody ended, as far as it said.
fn last_words(running: &Running) -> String {
    let (said, log) = (running.process.stdout.tail(1), running.process.stderr.tail(3));
    format!("{} {log} {said}", running.name)
        .replace('\n', " | ")
        .chars()
        .take(400)
        .collect()
}
