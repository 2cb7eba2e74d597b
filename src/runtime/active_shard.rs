//! One incarnation of a shard: the loaded core and everything under way for it.
//!
//! Whoever has something for the shard steps the core and takes the answers along; records go to the store as they come, and
//! once many batches are on their way those that follow are collected into one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::appends::Appends;
use super::event_log::EventLog;
use super::inspector::{Inspection, inspect};
use super::reports::Addressee;
use super::shard_task::Shared;
use super::waiting::{Teller, Told, Waiting};
use crate::coordinator::event::Event;
use crate::coordinator::input::{DeletedTopic, Input, Lsn, Now, Output, Ticket};
use crate::coordinator::record::RawRecord;
use crate::coordinator::request::{Request, Response, Text};
use crate::coordinator::settings::Settings;
use crate::coordinator::shard::Shard;
use crate::coordinator::topics::Topics;
use crate::store::{Incarnation, ShardId};
use crate::wire::error_code::ErrorCode;

/// Requests whose records are collected in one batch while the store has as many batches as it may; then the shard is full.
const COLLECTED_MAX: usize = 256;

/// What becomes of a request.
#[derive(Debug)]
pub(super) enum Asked {
    Answered(Response),
    /// It is answered later.
    Waits(Waiting),
    /// It is answered later, by its group.
    Admitted(Waiting),
    /// The shard takes nothing in at the moment; how long the request may wait until it does.
    Refused(Request, Duration),
}

/// A shard that is being served.
pub(super) struct ActiveShard {
    address: Addressee,
    shard: Shard,
    shared: Arc<Shared>,
    appends: Appends,
    log: EventLog,
    tickets: HashMap<Ticket, Teller>,
    last_ticket: u64,
    outputs: Vec<Output>,
    /// What is not handed over yet, the last lsn in it, and of how many requests it is.
    batch: Vec<RawRecord>,
    batch_lsn: Lsn,
    collected: usize,
    has_written: bool,
    is_draining: bool,
    /// When the shard's task looks next, in monotonic milliseconds.
    looks_at_ms: u64,
}

impl ActiveShard {
    pub(super) fn new(id: ShardId, incarnation: Incarnation, shard: Shard, shared: Arc<Shared>) -> Self {
        Self {
            address: Addressee { shard: id, incarnation },
            shard,
            appends: Appends::default(),
            log: EventLog::new(Arc::clone(&shared.metrics)),
            shared,
            tickets: HashMap::new(),
            last_ticket: 0,
            outputs: Vec::new(),
            batch: Vec::new(),
            batch_lsn: Lsn::default(),
            collected: 0,
            has_written: false,
            is_draining: false,
            looks_at_ms: 0,
        }
    }

    /// What came of loading leaves with the first step.
    pub(super) fn begin(&mut self, topics: Arc<Topics>) {
        self.set_topics(topics);
    }

    /// Takes a request, unless the store is so far behind that it would only fill memory.
    pub(super) fn ask(&mut self, request: Request) -> Asked {
        if self.is_draining {
            return Asked::Answered(Response::Unavailable {
                error: ErrorCode::NOT_COORDINATOR,
            });
        }
        if self.is_full() {
            return Asked::Refused(request, Duration::from_millis(self.shard.patience_ms()));
        }
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        let stepped = self.step_for(ticket, Input::Request { ticket, request });
        if let Some(response) = stepped.answered {
            return Asked::Answered(response);
        }
        let (teller, waiting) = Waiting::new();
        self.tickets.insert(ticket, teller);
        if stepped.admitted {
            Asked::Admitted(waiting)
        } else {
            Asked::Waits(waiting)
        }
    }

    /// The oldest batch is durable, which goes up to this lsn.
    pub(super) fn durable(&mut self, lsn: Lsn) {
        self.has_written = true;
        self.appends.ended(self.now().monotonic_ms);
        self.step(Input::Durable(lsn));
    }

    /// The upstream has told of a group.
    pub(super) fn inspected(&mut self, group_id: Text, result: Inspection) {
        if !self.is_draining {
            self.step(Input::Inspected { group_id, result });
        }
    }

    pub(super) fn set_settings(&mut self, settings: Arc<Settings>) {
        self.step(Input::Settings(settings));
    }

    pub(super) fn set_topics(&mut self, topics: Arc<Topics>) {
        self.step(Input::Topics(topics));
    }

    pub(super) fn topics_deleted(&mut self, topics: &[DeletedTopic]) {
        if !topics.is_empty() {
            self.step(Input::TopicsDeleted(topics.to_vec()));
        }
    }

    /// Fires due timers and says, in monotonic milliseconds, when to look again. The core wants a step every second while
    /// members could time out, and takes a longer gap as a standstill of the process.
    pub(super) fn look(&mut self) -> u64 {
        let now = self.now();
        self.appends.tell_if_slow(self.address.shard, now.monotonic_ms);
        if self
            .timer_ms()
            .is_some_and(|deadline_ms| deadline_ms <= now.monotonic_ms)
        {
            if self.is_full() {
                self.give_up(now);
            } else {
                self.step(Input::Tick);
            }
        }
        self.hand_over();
        self.looks_at_ms = self.due_ms();
        self.looks_at_ms
    }

    /// Whether the shard's task should look earlier than it would.
    pub(super) fn needs_a_look(&self) -> bool {
        self.due_ms() < self.looks_at_ms || (self.is_draining && self.is_drained())
    }

    /// Takes nothing in any more; what is under way still becomes durable.
    pub(super) const fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Whether everything that was taken in is durable.
    pub(super) const fn is_drained(&self) -> bool {
        self.appends.is_empty() && self.batch.is_empty()
    }

    pub(super) const fn is_full(&self) -> bool {
        self.appends.is_full() && self.collected >= COLLECTED_MAX
    }

    pub(super) const fn incarnation(&self) -> Incarnation {
        self.address.incarnation
    }

    /// Whether anything of this incarnation became durable.
    pub(super) const fn has_written(&self) -> bool {
        self.has_written
    }

    /// The topics that offsets are stored for, by their ids.
    pub(super) fn topics(&self) -> BTreeMap<Uuid, Text> {
        self.shard.topics()
    }

    /// Answers everything that is parked or held with the error.
    pub(super) fn unload(mut self, error: ErrorCode) {
        for (ticket, response) in self.shard.unload(error) {
            if let Some(teller) = self.tickets.remove(&ticket) {
                tell(teller, Told::Answered(response));
            }
        }
        for teller in self.tickets.into_values() {
            tell(teller, Told::Answered(Response::Unavailable { error }));
        }
    }

    /// Gives what has been collected to the store, if it may have one more batch.
    pub(super) fn hand_over(&mut self) {
        if self.batch.is_empty() || self.appends.is_full() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        self.collected = 0;
        self.appends.begun(self.now().monotonic_ms);
        let outcome = self.shared.reports.outcome(self.address, self.batch_lsn);
        let Addressee { shard, incarnation } = self.address;
        self.shared.store.append(shard, incarnation, batch, outcome);
    }

    fn now(&self) -> Now {
        self.shared.clock.now()
    }

    /// A full store stops everything that could add to it, timers included: heartbeats cannot come through either. Whoever
    /// waits for it is not to wait for ever.
    fn timer_ms(&self) -> Option<u64> {
        if self.is_full() {
            self.shard.gives_up_at()
        } else {
            self.shard.next_deadline()
        }
    }

    /// Has those who waited for too long try again.
    fn give_up(&mut self, now: Now) {
        let mut outputs = std::mem::take(&mut self.outputs);
        self.shard.give_up(now, &mut outputs);
        for output in outputs.drain(..) {
            if let Output::Reply { ticket, response } = output
                && let Some(teller) = self.tickets.remove(&ticket)
            {
                tell(teller, Told::Answered(response));
            }
        }
        self.outputs = outputs;
    }

    fn due_ms(&self) -> u64 {
        let due = self.timer_ms().into_iter().chain(self.appends.slow_at_ms());
        due.min().unwrap_or(u64::MAX)
    }

    fn step(&mut self, input: Input) {
        // No request has this number.
        self.step_for(Ticket(0), input);
    }

    /// Steps the core and tells whoever has something to be told; what is for `asking` is handed back.
    fn step_for(&mut self, asking: Ticket, input: Input) -> Stepped {
        let mut stepped = Stepped::default();
        let mut outputs = std::mem::take(&mut self.outputs);
        let began = Instant::now();
        self.shard.step(self.shared.clock.at(began), input, &mut outputs);
        for output in outputs.drain(..) {
            match output {
                Output::Admitted { ticket } if ticket == asking => stepped.admitted = true,
                Output::Admitted { ticket } => {
                    if let Some(teller) = self.tickets.get_mut(&ticket) {
                        let (next, waiting) = Waiting::new();
                        tell(std::mem::replace(teller, next), Told::Admitted(waiting));
                    }
                }
                Output::Reply { ticket, response } if ticket == asking => stepped.answered = Some(response),
                Output::Reply { ticket, response } => {
                    if let Some(teller) = self.tickets.remove(&ticket) {
                        tell(teller, Told::Answered(response));
                    }
                }
                Output::Append { lsn, records } => {
                    self.batch_lsn = lsn;
                    self.collected += 1;
                    self.batch.extend(records.iter().map(|record| record.to_raw()));
                }
                Output::Inspect { group_id } => inspect(&self.shared, self.address, group_id),
                Output::Event(event) => {
                    let took = began.elapsed();
                    // Nearly all of such a step is the assignor's.
                    match &event {
                        Event::TargetComputed { .. } => self.shared.metrics.consumer_groups.target_computed(took),
                        Event::ClassicAssigned { assignor, .. } => {
                            self.shared.metrics.classic_groups.assigned(assignor, took);
                        }
                        _ => {}
                    }
                    self.log.tell(&event, took);
                }
            }
        }
        self.outputs = outputs;
        stepped
    }
}

/// What a step brought for the request that it was made for.
#[derive(Default)]
struct Stepped {
    admitted: bool,
    answered: Option<Response>,
}

/// Tells one who waits; whoever went away does not need it.
fn tell(teller: Teller, told: Told) {
    let _ = teller.send(told);
}
