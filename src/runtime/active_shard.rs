//! One incarnation of a shard: the loaded core and everything under way for it.
//!
//! Each turn takes what waits in the queue, steps the core with it and hands the records to the store as one batch; the next
//! batch fills while this one is written. Nothing ticks while the core has no timer armed.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, Sleep};
use uuid::Uuid;

use super::appends::Appends;
use super::clock::Clock;
use super::event_log::EventLog;
use super::inspections::Inspections;
use super::shard_task::{Command, Ended, Shared, answer, unavailable};
use crate::coordinator::input::{DeletedTopic, Input, Lsn, Now, Output, Ticket};
use crate::coordinator::record::RawRecord;
use crate::coordinator::request::{Request, Response, Text};
use crate::coordinator::settings::Settings;
use crate::coordinator::shard::Shard;
use crate::store::{Incarnation, ShardId, StateStore};
use crate::wire::error_code::ErrorCode;

/// Commands taken in one turn, and so the requests whose records share a batch.
const TURN_MAX: usize = 256;

/// A shard that is being served.
pub(super) struct ActiveShard {
    id: ShardId,
    incarnation: Incarnation,
    shard: Shard,
    store: Arc<dyn StateStore>,
    clock: Clock,
    appends: Appends,
    inspections: Inspections,
    log: EventLog,
    tickets: HashMap<Ticket, oneshot::Sender<Response>>,
    last_ticket: u64,
    outputs: Vec<Output>,
    /// What the turn has to write, and the last lsn in it.
    batch: Vec<RawRecord>,
    batch_lsn: Lsn,
    has_written: bool,
}

impl ActiveShard {
    pub(super) fn new(id: ShardId, incarnation: Incarnation, shard: Shard, shared: &Shared) -> Self {
        Self {
            id,
            incarnation,
            shard,
            store: Arc::clone(&shared.store),
            clock: shared.clock,
            appends: Appends::default(),
            inspections: Inspections::new(Arc::clone(&shared.inspector), Arc::clone(&shared.permits)),
            log: EventLog::new(Arc::clone(&shared.metrics)),
            tickets: HashMap::new(),
            last_ticket: 0,
            outputs: Vec::new(),
            batch: Vec::new(),
            batch_lsn: Lsn::default(),
            has_written: false,
        }
    }

    /// Serves until the store fails, a drain is asked for, or nobody is left to ask.
    pub(super) async fn run(
        &mut self,
        commands: &mut mpsc::Receiver<Command>,
        settings: &mut watch::Receiver<Arc<Settings>>,
    ) -> Ended {
        let mut alarm = Alarm::new();
        // What came of loading leaves with the first step.
        self.step(self.clock.now(), Input::Tick);
        loop {
            self.hand_over();
            // A full store stops everything that could add to it, timers included: heartbeats cannot come through either.
            let open = !self.appends.is_full();
            let timer = if open { self.next_timer() } else { None };
            alarm.set(timer.into_iter().chain(self.appends.slow_at()).min());
            tokio::select! {
                biased;
                durable = self.appends.durable() => match durable {
                    Ok(lsn) => self.durable(lsn),
                    Err(error) => return Ended::NotWritten(error),
                },
                (group_id, result) = self.inspections.next(), if open => {
                    self.step(self.clock.now(), Input::Inspected { group_id, result });
                }
                Ok(()) = settings.changed() => {
                    let settings = Arc::clone(&settings.borrow_and_update());
                    self.step(self.clock.now(), Input::Settings(settings));
                }
                command = commands.recv(), if open => {
                    let Some(command) = command else { return Ended::Closed };
                    if let Some(done) = self.take(command, commands) {
                        return self.drain(done).await;
                    }
                }
                () = alarm.rang() => self.appends.tell_if_slow(self.id),
            }
            if open {
                self.tick();
            }
        }
    }

    /// Whether anything of this incarnation became durable.
    pub(super) const fn has_written(&self) -> bool {
        self.has_written
    }

    /// The topics that offsets are stored for, by their ids.
    pub(super) fn topics(&self) -> BTreeMap<Uuid, Text> {
        self.shard.topics()
    }

    pub(super) fn topics_deleted(&mut self, topics: Vec<DeletedTopic>) {
        if !topics.is_empty() {
            self.step(self.clock.now(), Input::TopicsDeleted(topics));
        }
    }

    /// Answers everything that is parked or held with the error.
    pub(super) fn unload(mut self, error: ErrorCode) {
        for (ticket, response) in self.shard.unload(error) {
            if let Some(reply) = self.tickets.remove(&ticket) {
                answer(reply, response);
            }
        }
        for reply in self.tickets.into_values() {
            answer(reply, unavailable(error));
        }
    }

    /// Takes the command and what else waits, as far as one turn goes. `Some` when told to drain.
    fn take(&mut self, first: Command, commands: &mut mpsc::Receiver<Command>) -> Option<oneshot::Sender<()>> {
        let now = self.clock.now();
        let mut next = Some(first);
        for _ in 0..TURN_MAX {
            match next.take().or_else(|| commands.try_recv().ok())? {
                Command::Request { request, reply } => self.request(now, request, reply),
                Command::TopicsDeleted(topics) => self.step(now, Input::TopicsDeleted(topics.to_vec())),
                Command::Drain(done) => return Some(done),
            }
        }
        None
    }

    fn request(&mut self, now: Now, request: Request, reply: oneshot::Sender<Response>) {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.tickets.insert(ticket, reply);
        self.step(now, Input::Request { ticket, request });
    }

    fn durable(&mut self, lsn: Lsn) {
        self.has_written = true;
        self.step(self.clock.now(), Input::Durable(lsn));
    }

    /// Fires due timers. The core wants a step every second while members could time out, and takes a longer gap as a
    /// standstill of the process.
    fn tick(&mut self) {
        let now = self.clock.now();
        let deadline = self.shard.next_deadline();
        if deadline.is_some_and(|deadline| deadline <= now.monotonic_ms) {
            self.step(now, Input::Tick);
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.shard.next_deadline().map(|deadline| self.clock.instant(deadline))
    }

    fn step(&mut self, now: Now, input: Input) {
        let mut outputs = std::mem::take(&mut self.outputs);
        self.shard.step(now, input, &mut outputs);
        for output in outputs.drain(..) {
            match output {
                Output::Reply { ticket, response } => {
                    if let Some(reply) = self.tickets.remove(&ticket) {
                        answer(reply, response);
                    }
                }
                Output::Append { lsn, records } => {
                    self.batch_lsn = lsn;
                    self.batch.extend(records.iter().map(|record| record.to_raw()));
                }
                Output::Inspect { group_id } => self.inspections.start(group_id),
                Output::Event(event) => self.log.tell(&event),
            }
        }
        self.outputs = outputs;
    }

    /// Gives the turn's records to the store.
    fn hand_over(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        let append = self.store.append(self.id, self.incarnation, batch);
        self.appends.push(self.batch_lsn, append);
    }

    /// Makes what is under way durable, so that those who wait for it get their true answer.
    async fn drain(&mut self, done: oneshot::Sender<()>) -> Ended {
        loop {
            self.hand_over();
            if self.appends.is_empty() {
                return Ended::Drained(done);
            }
            match self.appends.durable().await {
                Ok(lsn) => self.durable(lsn),
                Err(error) => {
                    tracing::error!(
                        shard = self.id.0,
                        "not everything could be written before the stop: {error}"
                    );
                    return Ended::Drained(done);
                }
            }
        }
    }
}

/// A timer that is only moved when it has to ring earlier: deadlines move with every heartbeat, and one needless ring costs
/// less than moving it each time.
struct Alarm {
    sleep: Pin<Box<Sleep>>,
    set_for: Option<Instant>,
}

impl Alarm {
    fn new() -> Self {
        Self {
            sleep: Box::pin(tokio::time::sleep_until(Instant::now())),
            set_for: None,
        }
    }

    fn set(&mut self, wake_at: Option<Instant>) {
        if let Some(wake_at) = wake_at
            && self.set_for.is_none_or(|set_for| wake_at < set_for)
        {
            self.sleep.as_mut().reset(wake_at);
            self.set_for = Some(wake_at);
        }
    }

    /// Pending while it is not set.
    async fn rang(&mut self) {
        if self.set_for.is_none() {
            std::future::pending::<()>().await;
        }
        self.sleep.as_mut().await;
        self.set_for = None;
    }
}
