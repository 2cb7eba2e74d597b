//! What all clients have in common: one request at a time over one connection.

use convoke::coordinator::request::{Request, Response};

use crate::consumer::Consumer;
use crate::member::Member;
use crate::plan::Faults;
use crate::rng::Rng;
use crate::standalone::Standalone;

/// What a client does next.
#[derive(Debug)]
pub(crate) enum Wish {
    /// The request, and how long it waits for the answer before it gives the connection up.
    Send(Box<Request>, u64),
    WakeAt(u64),
}

/// What a client may use.
pub(crate) struct Surroundings<'a> {
    pub(crate) now_ms: u64,
    pub(crate) rng: &'a mut Rng,
    pub(crate) faults: &'a Faults,
    /// The last offset that anybody committed; each is another.
    pub(crate) last_offset: &'a mut i64,
}

impl Surroundings<'_> {
    pub(crate) fn fresh_offset(&mut self) -> i64 {
        *self.last_offset += 1;
        *self.last_offset
    }
}

#[derive(Debug)]
pub(crate) enum Role {
    Consumer(Consumer),
    Member(Member),
    Standalone(Standalone),
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) role: Role,
    /// Counts connections; an answer over an older one reaches nobody.
    pub(crate) connection: u64,
    /// Counts requests.
    pub(crate) call: u64,
    pub(crate) in_flight: bool,
}

impl Client {
    pub(crate) const fn new(role: Role) -> Self {
        Self {
            role,
            connection: 0,
            call: 0,
            in_flight: false,
        }
    }

    pub(crate) fn next(&mut self, around: &mut Surroundings<'_>) -> Wish {
        match &mut self.role {
            Role::Consumer(consumer) => consumer.next(around),
            Role::Member(member) => member.next(around),
            Role::Standalone(standalone) => standalone.next(around),
        }
    }

    pub(crate) fn on_response(&mut self, response: Response, around: &mut Surroundings<'_>) -> Result<(), String> {
        self.in_flight = false;
        match &mut self.role {
            Role::Consumer(consumer) => consumer.on_response(response, around),
            Role::Member(member) => member.on_response(response, around),
            Role::Standalone(standalone) => standalone.on_response(&response),
        }
    }

    /// The connection is gone, and the answer with it.
    pub(crate) fn on_lost(&mut self, around: &mut Surroundings<'_>) {
        self.connection += 1;
        self.in_flight = false;
        match &mut self.role {
            Role::Consumer(consumer) => consumer.on_lost(around),
            Role::Member(member) => member.on_lost(around),
            Role::Standalone(_) => {}
        }
    }

    /// The process dies in the middle of a request; it comes back later.
    pub(crate) fn on_crash(&mut self, around: &mut Surroundings<'_>) {
        self.connection += 1;
        self.in_flight = false;
        match &mut self.role {
            Role::Consumer(consumer) => consumer.crash(around),
            Role::Member(member) => member.crash(around),
            Role::Standalone(_) => {}
        }
    }
}
