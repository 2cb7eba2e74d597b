//! The run: virtual time, the network, the clients, and the order in which things happen.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use convoke::coordinator::input::{DeletedTopic, Input};
use convoke::coordinator::request::{Request, Response, Text};
use convoke::coordinator::settings::Settings;
use uuid::Uuid;

use crate::checker::Checker;
use crate::client::{Client, Role, Surroundings, Wish};
use crate::plan::{Faults, Plan, TOPICS};
use crate::server::Server;
use crate::store::Store;
use crate::topics::Picture;
use crate::upstream::Upstream;
use convoke_support::rng::Rng;

/// How long a world without faults may take until every group is stable: the longest session, then the longest rebalance,
/// twice over.
const SETTLE_MS: u64 = 300_000;
/// When nothing that was late, lost or given up in the time of faults has an effect any more: the latest message, then the
/// longest session.
const LATEST_MS: u64 = 45_000;
/// How long it must then stay as it is over a restart or a pause.
const CALM_MS: u64 = 40_000;
/// No answer takes longer than this when nothing is parked.
const LAST_ANSWERS_MS: u64 = 5_000;

/// A place where the run itself does something wrong, so that the checker can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    Nothing,
    /// The store says "durable" when it is only told to write.
    EarlyDurable,
    /// A parked join or sync is forgotten now and then.
    ForgottenReply,
    /// A load misses a record now and then.
    LostRecord,
    /// Members say that they gave partitions up, and read on.
    ReadsOn,
    /// The coordinator is not told that topics change.
    UntoldTopics,
    /// Classic members say that they have nothing, and read on.
    ClassicReadsOn,
    /// The coordinator is told of a far shorter retention than there is.
    EarlyExpiry,
    /// The coordinator is told of no limit to the size of groups.
    NoLimit,
    /// What is computed for one member is installed for another.
    SwappedShares,
}

#[derive(Debug)]
pub(crate) enum Happening {
    Wake {
        client: usize,
        call: u64,
    },
    Timeout {
        client: usize,
        call: u64,
    },
    ClientCrash {
        client: usize,
        call: u64,
    },
    Arrive {
        client: usize,
        connection: u64,
        call: u64,
        request: Request,
    },
    Answer {
        client: usize,
        connection: u64,
        call: u64,
        response: Response,
    },
    Lost {
        client: usize,
        connection: u64,
    },
    /// Of the load with this number, as all that follow.
    Written {
        load: u64,
    },
    Inspected {
        load: u64,
        group_id: Text,
    },
    Tick {
        load: u64,
    },
    LoadEnds {
        load: u64,
    },
    StallEnds {
        load: u64,
    },
    /// Once a second: chance and checks.
    Second,
}

pub(crate) struct World {
    pub(crate) now_ms: u64,
    pub(crate) rng: Rng,
    pub(crate) plan: Plan,
    pub(crate) settings: Settings,
    /// Those in force now.
    pub(crate) faults: Faults,
    pub(crate) planted: Planted,
    pub(crate) server: Server,
    pub(crate) store: Store,
    pub(crate) upstream: Upstream,
    pub(crate) checker: Checker,
    pub(crate) picture: Picture,
    queue: BTreeMap<(u64, u64), Happening>,
    queued: u64,
    pub(crate) clients: Vec<Client>,
    pub(crate) groups: Vec<Text>,
    pub(crate) last_number: i64,
    /// Nothing that was wrong has an effect any more.
    pub(crate) is_calm: bool,
    /// Nobody asks anything new.
    frozen: bool,
    transcript: Option<String>,
}

impl World {
    pub(crate) fn new(seed: u64, planted: Planted, with_transcript: bool) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::draw(&mut rng);
        let mut world = Self {
            now_ms: 0,
            server: Server::new(seed),
            rng,
            faults: Faults::default(),
            planted,
            store: Store::default(),
            upstream: Upstream::default(),
            checker: Checker::default(),
            picture: Picture::default(),
            queue: BTreeMap::new(),
            queued: 0,
            clients: Vec::new(),
            groups: Vec::new(),
            last_number: 1_000,
            is_calm: false,
            frozen: false,
            transcript: with_transcript.then(String::new),
            settings: plan.settings.clone(),
            plan,
        };
        world.populate();
        world
    }

    pub(crate) fn transcript(&self) -> &str {
        self.transcript.as_deref().unwrap_or_default()
    }

    pub(crate) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(transcript) = &mut self.transcript {
            let _ = writeln!(transcript, "{:>8}  {}", self.now_ms, what());
        }
    }

    pub(crate) fn at(&mut self, delay_ms: u64, happening: Happening) {
        self.queue.insert((self.now_ms + delay_ms, self.queued), happening);
        self.queued += 1;
    }

    /// The whole run. Says what did not hold.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        self.faults = std::mem::take(&mut self.plan.faults);
        // A clock that jumps says nothing of how old anything is.
        let is_steady = self.faults.wall_jump == 0;
        self.checker.retention_ms = is_steady.then_some(self.settings.offsets_retention_ms);
        self.at(1_000, Happening::Second);
        self.load_after(10);
        for client in 0..self.clients.len() {
            self.pump(client);
        }
        self.run_until(self.plan.fault_ms)?;

        self.note(|| "faults end".to_owned());
        self.faults = Faults::default();
        self.run_until(self.now_ms + LATEST_MS)?;
        self.is_calm = true;
        self.settle()?;
        self.disturb()?;

        self.note(|| "the last answers".to_owned());
        self.frozen = true;
        let give_up_ms = self.now_ms + LAST_ANSWERS_MS;
        while self.server.is_asked() && self.now_ms < give_up_ms {
            self.run_until(self.now_ms + 10)?;
        }
        self.check_replay()?;
        self.end()
    }

    fn settle(&mut self) -> Result<(), String> {
        let give_up_ms = self.now_ms + SETTLE_MS;
        while let Some(why) = self.unsettled()? {
            if self.now_ms > give_up_ms {
                return Err(format!("did not settle: {why}"));
            }
            self.run_until(self.now_ms + 1_000)?;
        }
        Ok(())
    }

    /// A group that is settled does not notice that the coordinator restarts, or stands still for a while.
    fn disturb(&mut self) -> Result<(), String> {
        // A heartbeat may have been under way when the last rebalance ended.
        self.run_until(self.now_ms + 1_000)?;
        if let Some(why) = self.unsettled()? {
            return Err(format!("did not stay settled: {why}"));
        }
        let rebalances = self.checker.rebalances;
        match self.rng.below(3) {
            0 => self.crash()?,
            1 => self.stall(20_000),
            _ => {}
        }
        self.run_until(self.now_ms + CALM_MS)?;
        if self.checker.rebalances != rebalances {
            return Err("a settled group rebalanced for no reason of its own".to_owned());
        }
        self.settle()
    }

    fn run_until(&mut self, end_ms: u64) -> Result<(), String> {
        while let Some(entry) = self.queue.first_entry() {
            let at_ms = entry.key().0;
            if at_ms > end_ms {
                break;
            }
            let happening = entry.remove();
            self.now_ms = at_ms;
            self.happen(happening)?;
        }
        self.now_ms = end_ms;
        Ok(())
    }

    fn happen(&mut self, happening: Happening) -> Result<(), String> {
        match happening {
            Happening::Wake { client, call } => {
                if self.clients[client].call == call {
                    self.pump(client);
                    self.check_readers()?;
                }
            }
            Happening::Timeout { client, call } => {
                if self.clients[client].call == call && self.clients[client].in_flight {
                    self.note(|| format!("client {client} gives up waiting"));
                    self.lose(client);
                }
            }
            Happening::ClientCrash { client, call } => {
                if self.clients[client].call == call && self.clients[client].in_flight {
                    self.note(|| format!("client {client} dies"));
                    self.with_client(client, |client, around| client.on_crash(around));
                    self.pump(client);
                }
            }
            Happening::Lost { client, connection } => {
                if self.clients[client].connection == connection && self.clients[client].in_flight {
                    self.lose(client);
                }
            }
            Happening::Answer {
                client,
                connection,
                call,
                response,
            } => {
                let is_awaited = self.clients[client].connection == connection
                    && self.clients[client].call == call
                    && self.clients[client].in_flight;
                if is_awaited {
                    self.note(|| format!("client {client} hears {}", brief(&response)));
                    self.with_client(client, |client, around| client.on_response(response, around))?;
                    self.pump(client);
                    self.check_readers()?;
                }
            }
            Happening::Second => {
                self.second()?;
                self.at(1_000, Happening::Second);
            }
            other => self.on_server(other)?,
        }
        Ok(())
    }

    fn lose(&mut self, client: usize) {
        self.with_client(client, |client, around| client.on_lost(around));
        self.pump(client);
    }

    fn with_client<T>(&mut self, client: usize, act: impl FnOnce(&mut Client, &mut Surroundings<'_>) -> T) -> T {
        let mut around = Surroundings {
            now_ms: self.now_ms,
            rng: &mut self.rng,
            faults: &self.faults,
            picture: &self.picture,
            last_number: &mut self.last_number,
        };
        act(&mut self.clients[client], &mut around)
    }

    /// Lets the client do what it wants next.
    fn pump(&mut self, client: usize) {
        if self.frozen || self.clients[client].in_flight {
            return;
        }
        match self.with_client(client, Client::next) {
            Wish::WakeAt(at_ms) => {
                let call = self.clients[client].call;
                self.at(
                    at_ms.saturating_sub(self.now_ms).max(1),
                    Happening::Wake { client, call },
                );
            }
            Wish::Send(request, timeout_ms) => self.send(client, *request, timeout_ms),
        }
    }

    fn send(&mut self, client: usize, request: Request, timeout_ms: u64) {
        self.clients[client].call += 1;
        self.clients[client].in_flight = true;
        let (connection, call) = (self.clients[client].connection, self.clients[client].call);
        self.note(|| format!("client {client} asks {request:?}"));
        self.at(timeout_ms, Happening::Timeout { client, call });
        if self.rng.chance(self.faults.client_crash) {
            let delay_ms = self.rng.between(0, 8_000);
            self.at(delay_ms, Happening::ClientCrash { client, call });
        }
        // What a heartbeat of the consumer protocol changes is told once, to whoever sent it last: one that comes twice over two
        // connections would be an answer that nobody misses.
        let is_mixed = matches!(self.clients[client].role, Role::Mixed(_));
        let may_come_twice = match &request {
            Request::ConsumerGroupHeartbeat(_) => false,
            // Nor is what a cooperative member says to have true for ever, which the coordinator goes by where it assigns.
            Request::JoinGroup(join) => !is_mixed && self.settings.classic_assignment(&join.group_id).is_none(),
            _ => !is_mixed,
        };
        if may_come_twice && self.rng.chance(self.faults.duplicate) {
            // Over a connection that nobody reads any more.
            let (delay_ms, request) = (self.travel_ms() + self.rng.between(0, 3_000), request.clone());
            let connection = u64::MAX;
            self.at(
                delay_ms,
                Happening::Arrive {
                    client,
                    connection,
                    call,
                    request,
                },
            );
        }
        if self.rng.chance(self.faults.loss) {
            self.note(|| "  ... which is lost".to_owned());
            let delay_ms = self.rng.between(1, 500);
            self.at(delay_ms, Happening::Lost { client, connection });
            return;
        }
        let delay_ms = self.travel_ms();
        self.at(
            delay_ms,
            Happening::Arrive {
                client,
                connection,
                call,
                request,
            },
        );
    }

    pub(crate) fn travel_ms(&mut self) -> u64 {
        match self.rng.chance(self.faults.late) {
            true => self.rng.between(100, 15_000),
            false => self.rng.between(0, 3),
        }
    }

    /// What chance does once a second.
    fn second(&mut self) -> Result<(), String> {
        if self.rng.chance(self.faults.crash) {
            self.crash()?;
        }
        if self.rng.chance(self.faults.stall) {
            let for_ms = self.rng.between(500, 30_000);
            self.stall(for_ms);
        }
        if self.rng.chance(self.faults.wall_jump) {
            let by_ms = i64::try_from(self.rng.between(0, 7_200_000)).unwrap() - 3_600_000;
            self.server.wall_offset_ms += by_ms;
            self.note(|| format!("the wall clock jumps by {by_ms}"));
        }
        if self.rng.chance(self.faults.topic_deletion) && self.server.is_running() {
            let topic = self.rng.below(TOPICS.len());
            self.note(|| format!("topic {} is deleted", TOPICS[topic].0));
            self.checker.topic_deleted(topic);
            self.upstream.delete_topic(topic);
            let deleted = DeletedTopic {
                name: TOPICS[topic].0.into(),
                id: Uuid::from_u128(1),
            };
            self.step(Input::TopicsDeleted(vec![deleted]))?;
        }
        if self.rng.chance(self.faults.topic_change) && self.server.is_running() {
            self.change_topic()?;
        }
        if self.rng.chance(self.faults.reconfigure) {
            self.reconfigure()?;
        }
        if self.rng.chance(100) {
            self.check_replay()?;
        }
        self.check_waits()?;
        let has_limit = self.settings.group_max_size.min(self.settings.group_consumer_max_size) < i32::MAX;
        if has_limit && let Some(view) = self.view()? {
            self.check_sizes(&view)?;
        }
        Ok(())
    }
}

fn brief(response: &Response) -> String {
    let mut text = format!("{response:?}");
    if text.len() > 300 {
        text.truncate(text.floor_char_boundary(300));
        text.push_str("...");
    }
    text
}
