//! The coordinator's driver: one shard, loaded from the store, stepped with what comes in.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use convoke::coordinator::event::{Event, RebalanceReason};
use convoke::coordinator::input::{Input, Lsn, Now, Output, Ticket};
use convoke::coordinator::request::{Request, Response, Text};
use convoke::coordinator::shard::{Shard, ShardNumber};
use convoke::wire::error_code::ErrorCode;

use crate::checker::Floor;
use crate::store::Outcome;
use crate::topics::index_of_name;
use crate::world::{Happening, Planted, World};

/// The core takes a longer time without a step as a standstill, after which sessions begin anew.
const STALL_MS: u64 = 3_000;

/// When the run begins, on the wall.
const EPOCH_MS: i64 = 1_764_500_000_000;

#[derive(Debug)]
pub(crate) struct Server {
    seed: u64,
    shard: Option<Shard>,
    /// Counts loads; what belongs to an earlier one comes to nothing.
    load: u64,
    /// A process runs, though the shard may be loading.
    is_up: bool,
    is_stalled: bool,
    /// What came while it stood still.
    inbox: VecDeque<Happening>,
    tickets: BTreeMap<Ticket, Asked>,
    last_ticket: u64,
    appended: Lsn,
    tick_at_ms: u64,
    last_step_ms: u64,
    /// When the store began with what it is at.
    store_began_ms: u64,
    pub(crate) wall_offset_ms: i64,
}

/// A request that has not been answered.
#[derive(Debug)]
struct Asked {
    client: usize,
    connection: u64,
    call: u64,
    request: Request,
    at_ms: u64,
    floor: Floor,
}

impl Asked {
    /// Whether a member asked it that has nothing else to do but to wait for the answer.
    fn is_of(&self, id: &Text) -> bool {
        match &self.request {
            Request::Heartbeat(request) => request.member_id == *id,
            Request::OffsetCommit(request) => request.member_id == *id,
            _ => false,
        }
    }
}

impl Server {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            shard: None,
            load: 0,
            is_up: false,
            is_stalled: false,
            inbox: VecDeque::new(),
            tickets: BTreeMap::new(),
            last_ticket: 0,
            appended: Lsn(0),
            tick_at_ms: u64::MAX,
            last_step_ms: 0,
            store_began_ms: 0,
            wall_offset_ms: 0,
        }
    }

    pub(crate) const fn is_running(&self) -> bool {
        self.shard.is_some() && !self.is_stalled
    }

    pub(crate) fn is_asked(&self) -> bool {
        !self.tickets.is_empty()
    }
}

impl World {
    pub(crate) fn now(&self) -> Now {
        Now {
            monotonic_ms: self.now_ms,
            wall_ms: EPOCH_MS + i64::try_from(self.now_ms).unwrap() + self.server.wall_offset_ms,
        }
    }

    /// What happens at the server; while it stands still, all of it waits.
    pub(crate) fn on_server(&mut self, happening: Happening) -> Result<(), String> {
        if let Happening::StallEnds { load } = happening {
            if load == self.server.load && self.server.is_stalled {
                self.note(|| "the process goes on".to_owned());
                self.server.is_stalled = false;
                if self.now_ms - self.server.last_step_ms > STALL_MS {
                    self.checker.running_since(self.now_ms);
                }
                while let Some(happening) = self.server.inbox.pop_front() {
                    self.on_server(happening)?;
                }
            }
            return Ok(());
        }
        if self.server.is_stalled {
            self.server.inbox.push_back(happening);
            return Ok(());
        }
        match happening {
            Happening::Arrive {
                client,
                connection,
                call,
                request,
            } => self.arrive(client, connection, call, request),
            Happening::Written { load } if load == self.server.load => self.written(),
            Happening::Inspected { load, group_id } if load == self.server.load => {
                let result = self
                    .upstream
                    .inspect(&mut self.rng, &self.faults, self.now_ms, &group_id);
                self.note(|| format!("{group_id} is at the upstream {result:?}"));
                self.step(Input::Inspected { group_id, result })
            }
            Happening::Tick { load } if load == self.server.load && self.server.tick_at_ms <= self.now_ms => {
                self.server.tick_at_ms = u64::MAX;
                self.step(Input::Tick)
            }
            Happening::LoadEnds { load } if load == self.server.load => self.loaded(),
            _ => Ok(()),
        }
    }

    fn arrive(&mut self, client: usize, connection: u64, call: u64, mut request: Request) -> Result<(), String> {
        if !self.server.is_up {
            self.at(1, Happening::Lost { client, connection });
            return Ok(());
        }
        if self.server.shard.is_none() {
            let error = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
            self.answer(client, connection, call, Response::Unavailable { error });
            return Ok(());
        }
        self.server.last_ticket += 1;
        let ticket = Ticket(self.server.last_ticket);
        let floor = self.checker.on_request(&request, self.now_ms);
        let asked = Asked {
            client,
            connection,
            call,
            request: request.clone(),
            at_ms: self.now_ms,
            floor,
        };
        self.server.tickets.insert(ticket, asked);
        if self.planted == Planted::SwappedShares
            && let Request::InstallAssignment(install) = &mut request
            && let [first, second, ..] = &mut install.members[..]
        {
            std::mem::swap(&mut first.partitions, &mut second.partitions);
        }
        self.step(Input::Request { ticket, request })
    }

    /// Steps the shard and does what it asks for.
    pub(crate) fn step(&mut self, input: Input) -> Result<(), String> {
        let now = self.now();
        self.checker.steps_at(now);
        let Some(shard) = &mut self.server.shard else {
            return Ok(());
        };
        let mut outputs = Vec::new();
        shard.step(now, input, &mut outputs);
        self.server.last_step_ms = self.now_ms;
        for output in outputs {
            self.on_output(output)?;
        }
        self.go_on();
        Ok(())
    }

    fn on_output(&mut self, output: Output) -> Result<(), String> {
        match output {
            Output::Append { lsn, records } => {
                self.note(|| format!("append {} {records:?}", lsn.0));
                if lsn.0 != self.server.appended.0 + 1 {
                    return Err(format!("{lsn:?} follows {:?}", self.server.appended));
                }
                self.server.appended = lsn;
                self.check_expiry(&records)?;
                self.store.append(lsn, &records);
                if self.planted == Planted::EarlyDurable {
                    self.step(Input::Durable(lsn))?;
                }
            }
            Output::Admitted { .. } => {}
            Output::Reply { ticket, response } => self.reply(ticket, response)?,
            Output::Inspect { group_id } => {
                let (load, delay_ms) = (self.server.load, self.rng.between(1, 1_500));
                self.at(delay_ms, Happening::Inspected { load, group_id });
            }
            Output::Event(event) => {
                self.note(|| format!("{event:?}"));
                self.checker.on_event(self.now_ms, &event)?;
                self.check_removal(&event)?;
                self.check_passed_over(&event)?;
            }
        }
        Ok(())
    }

    /// A member whose answer is held for the store's sake is not silent: it waits.
    fn check_removal(&self, event: &Event) -> Result<(), String> {
        let Event::MemberRemoved { member_id, reason, .. } = event else {
            return Ok(());
        };
        if !matches!(reason, RebalanceReason::SessionExpired | RebalanceReason::SyncTimedOut) {
            return Ok(());
        }
        let is_held = |asked: &&Asked| asked.is_of(member_id) && asked.at_ms + STALL_MS < self.now_ms;
        let held = self.server.tickets.values().find(is_held);
        match held {
            Some(asked) => Err(format!(
                "{member_id} is removed by {reason:?}, and waits for the answer to {asked:?}"
            )),
            None => Ok(()),
        }
    }

    fn reply(&mut self, ticket: Ticket, response: Response) -> Result<(), String> {
        let Some(asked) = self.server.tickets.remove(&ticket) else {
            return Err(format!(
                "{ticket:?} is answered a second time, or was never asked: {response:?}"
            ));
        };
        if let Response::ResolveRegexes { patterns } = &response {
            return self.resolve(asked, patterns);
        }
        let is_parked =
            matches!(asked.request, Request::JoinGroup(_) | Request::SyncGroup(_)) && asked.at_ms < self.now_ms;
        if self.planted == Planted::ForgottenReply && is_parked && self.rng.chance(50) {
            self.server.tickets.insert(ticket, asked);
            return Ok(());
        }
        self.checker
            .on_reply(&asked.request, &asked.floor, asked.at_ms, &response, &self.upstream)?;
        self.forward(&asked.request, &response)?;
        self.answer(asked.client, asked.connection, asked.call, response);
        Ok(())
    }

    /// The heartbeat comes again with what its patterns stand for.
    fn resolve(&mut self, asked: Asked, patterns: &[Text]) -> Result<(), String> {
        let Asked {
            client,
            connection,
            call,
            request: Request::ConsumerGroupHeartbeat(mut request),
            ..
        } = asked
        else {
            return Err(format!("{patterns:?} are to be resolved for {asked:?}"));
        };
        request.resolved = Some(self.picture.resolve(patterns));
        let request = Request::ConsumerGroupHeartbeat(request);
        let delay_ms = self.rng.between(0, 50);
        self.at(
            delay_ms,
            Happening::Arrive {
                client,
                connection,
                call,
                request,
            },
        );
        Ok(())
    }

    /// A commit that is not ours goes on to the upstream, which takes it from anybody while nobody is in the group.
    fn forward(&mut self, request: &Request, response: &Response) -> Result<(), String> {
        let (Request::OffsetCommit(commit), Response::NotOwned) = (request, response) else {
            return Ok(());
        };
        if self.upstream.takes_commits(&commit.group_id, self.now_ms) {
            for topic in &commit.topics {
                let index = index_of_name(&topic.name)?;
                for partition in &topic.partitions {
                    self.upstream
                        .commit(&commit.group_id, (index, partition.partition), partition.offset);
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, client: usize, connection: u64, call: u64, response: Response) {
        if self.rng.chance(self.faults.loss) {
            let delay_ms = self.rng.between(1, 500);
            self.at(delay_ms, Happening::Lost { client, connection });
            return;
        }
        let delay_ms = self.travel_ms();
        self.at(
            delay_ms,
            Happening::Answer {
                client,
                connection,
                call,
                response,
            },
        );
    }

    /// For how long the store has been at what it writes.
    pub(crate) fn store_took_ms(&self) -> u64 {
        match self.store.is_idle() {
            true => 0,
            false => self.now_ms - self.server.store_began_ms,
        }
    }

    /// What follows every step: the store writes what it was given, and the shard is stepped again when it wants.
    fn go_on(&mut self) {
        if let Some(took_ms) = self.store.begin(&mut self.rng, &self.faults) {
            self.server.store_began_ms = self.now_ms;
            let load = self.server.load;
            self.at(took_ms, Happening::Written { load });
        }
        self.arm_tick();
    }

    fn arm_tick(&mut self) {
        let Some(deadline_ms) = self.server.shard.as_ref().and_then(Shard::next_deadline) else {
            return;
        };
        let at_ms = deadline_ms.min(self.server.last_step_ms + 1_000).max(self.now_ms + 1);
        if at_ms < self.server.tick_at_ms || self.server.tick_at_ms <= self.now_ms {
            self.server.tick_at_ms = at_ms;
            let load = self.server.load;
            self.at(at_ms - self.now_ms, Happening::Tick { load });
        }
    }

    fn written(&mut self) -> Result<(), String> {
        match self.store.finish(&mut self.rng, &self.faults) {
            Outcome::Durable(lsn, records) => {
                self.note(|| format!("durable {}", lsn.0));
                self.checker.on_durable(&records)?;
                self.step(Input::Durable(lsn))
            }
            Outcome::Failed(records) => {
                self.note(|| format!("the store fails; {} records are durable all the same", records.len()));
                self.checker.on_durable(&records)?;
                self.unload()
            }
        }
    }

    /// The store failed: everybody who waits is told, and the shard is loaded anew.
    fn unload(&mut self) -> Result<(), String> {
        let Some(shard) = self.server.shard.take() else {
            return Ok(());
        };
        let waiting: BTreeSet<Ticket> = self.server.tickets.keys().copied().collect();
        let answers = shard.unload(ErrorCode::NOT_COORDINATOR);
        let answered: BTreeSet<Ticket> = answers.iter().map(|(ticket, _)| *ticket).collect();
        if answers.len() != answered.len() || answered != waiting {
            return Err(format!("unloading answered {answered:?}, {waiting:?} wait"));
        }
        for (ticket, response) in answers {
            self.reply(ticket, response)?;
        }
        let delay_ms = self.rng.between(0, 2_000);
        self.load_after(delay_ms);
        Ok(())
    }

    /// The process dies, and another starts.
    pub(crate) fn crash(&mut self) -> Result<(), String> {
        self.note(|| "the process dies".to_owned());
        self.server.shard = None;
        self.server.is_up = false;
        self.server.is_stalled = false;
        self.server.inbox.clear();
        for (_, asked) in std::mem::take(&mut self.server.tickets) {
            let (client, connection) = (asked.client, asked.connection);
            self.at(1, Happening::Lost { client, connection });
        }
        let survived = self.store.interrupt(&mut self.rng);
        self.checker.on_durable(&survived)?;
        let delay_ms = self.rng.between(100, 4_000);
        self.load_after(delay_ms);
        Ok(())
    }

    pub(crate) fn load_after(&mut self, delay_ms: u64) {
        self.server.load += 1;
        let load = self.server.load;
        self.at(delay_ms, Happening::LoadEnds { load });
    }

    pub(crate) fn stall(&mut self, for_ms: u64) {
        if self.server.is_running() {
            self.note(|| format!("the process stands still for {for_ms}"));
            self.server.is_stalled = true;
            let load = self.server.load;
            self.at(for_ms, Happening::StallEnds { load });
        }
    }

    fn loaded(&mut self) -> Result<(), String> {
        let mut shard = self.load_shard();
        if self.planted == Planted::LostRecord && self.rng.chance(300) {
            let mut records = self.store.load(&mut self.rng);
            records.pop();
            shard = self.new_shard();
            records.iter().for_each(|record| shard.replay(record));
            shard.loaded(self.now());
        }
        self.note(|| "the shard is loaded".to_owned());
        self.server.is_up = true;
        self.server.shard = Some(shard);
        self.server.appended = Lsn(0);
        self.server.tick_at_ms = u64::MAX;
        self.server.last_step_ms = self.now_ms;
        self.checker.running_since(self.now_ms);
        self.checker.told.loaded();
        self.arm_tick();
        self.tell_topics()
    }

    pub(crate) fn load_shard(&mut self) -> Shard {
        let mut shard = self.new_shard();
        for record in self.store.load(&mut self.rng) {
            shard.replay(&record);
        }
        shard.loaded(self.now());
        shard
    }

    fn new_shard(&self) -> Shard {
        let seed = self.server.seed ^ (self.server.load << 40);
        Shard::new(ShardNumber(0), self.told_settings(), seed)
    }

    /// Asks the running shard something that it can answer at once.
    pub(crate) fn ask(&mut self, request: Request) -> Result<Option<Response>, String> {
        let now = self.now();
        let Some(shard) = self.server.shard.as_mut().filter(|_| !self.server.is_stalled) else {
            return Ok(None);
        };
        // What has run out of its time meanwhile goes with this step, too.
        self.checker.steps_at(now);
        let ticket = Ticket(u64::MAX);
        let mut outputs = Vec::new();
        shard.step(now, Input::Request { ticket, request }, &mut outputs);
        self.server.last_step_ms = self.now_ms;
        let mut answer = None;
        for output in outputs {
            match output {
                Output::Reply { ticket: of, response } if of == ticket => answer = Some(response),
                other => self.on_output(other)?,
            }
        }
        self.go_on();
        Ok(answer)
    }

    /// Nobody waits for anything, and the shard knows it.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        if let Some((ticket, asked)) = self.server.tickets.first_key_value() {
            return Err(format!("{ticket:?} was never answered: {asked:?}"));
        }
        let shard = self.server.shard.take();
        let left = shard
            .map(|shard| shard.unload(ErrorCode::NOT_COORDINATOR))
            .unwrap_or_default();
        match left.is_empty() {
            true => Ok(()),
            false => Err(format!("the shard holds answers for {left:?}")),
        }
    }
}
