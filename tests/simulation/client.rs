//! What all clients have in common: one request at a time over one connection.

use std::collections::BTreeSet;

use convoke::coordinator::request::{Request, Response, Text};
use convoke::wire::error_code::ErrorCode;

use crate::computer::Computer;
use crate::consumer::Consumer;
use crate::external::External;
use crate::member::Member;
use crate::mixed::Mixed;
use crate::plan::Faults;
use crate::standalone::Standalone;
use crate::topics::{Picture, Place};
use convoke_support::rng::Rng;

/// How long a client waits before it asks again for what it was about to get.
pub(crate) const RETRY_BACKOFF_MS: u64 = 100;
/// How long a group that refuses a client is left alone.
pub(crate) const REFUSED_MS: u64 = 3_000;

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
    /// The upstream's topics as a client would be told of them.
    pub(crate) picture: &'a Picture,
    /// The last number that anybody took, an offset to commit or another; each is another.
    pub(crate) last_number: &'a mut i64,
}

impl Surroundings<'_> {
    pub(crate) fn fresh_number(&mut self) -> i64 {
        *self.last_number += 1;
        *self.last_number
    }
}

#[derive(Debug)]
pub(crate) enum Role {
    Consumer(Consumer),
    Member(Member),
    Mixed(Box<Mixed>),
    External(External),
    Standalone(Standalone),
}

/// A client of a group, by the protocol that it speaks now.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Speaker<'a> {
    Classic(&'a Consumer),
    Consumer(&'a Member),
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

    /// `None` for one that is in no group.
    pub(crate) fn speaker(&self) -> Option<Speaker<'_>> {
        match &self.role {
            Role::Consumer(consumer) => Some(Speaker::Classic(consumer)),
            Role::Member(member) => Some(Speaker::Consumer(member)),
            Role::Mixed(mixed) => Some(mixed.speaker()),
            Role::External(_) | Role::Standalone(_) => None,
        }
    }

    /// Who can compute assignments, and the id that it has.
    pub(crate) fn computer(&self) -> Option<(&Text, &Computer)> {
        match (&self.role, self.speaker()) {
            (Role::External(external), _) => Some((&external.member_id, &external.computer)),
            (_, Some(Speaker::Consumer(member))) => Some((&member.member_id, member.computer.as_ref()?)),
            _ => None,
        }
    }

    pub(crate) fn next(&mut self, around: &mut Surroundings<'_>) -> Wish {
        match &mut self.role {
            Role::Consumer(consumer) => consumer.next(around),
            Role::Member(member) => member.next(around),
            Role::Mixed(mixed) => mixed.next(around),
            Role::External(external) => external.next(around),
            Role::Standalone(standalone) => standalone.next(around),
        }
    }

    pub(crate) fn on_response(&mut self, response: Response, around: &mut Surroundings<'_>) -> Result<(), String> {
        self.in_flight = false;
        match &mut self.role {
            Role::Consumer(consumer) => consumer.on_response(response, around),
            Role::Member(member) => member.on_response(response, around),
            Role::Mixed(mixed) => mixed.on_response(response, around),
            Role::External(external) => external.on_response(response, around),
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
            Role::Mixed(mixed) => mixed.on_lost(around),
            Role::External(external) => external.on_lost(around),
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
            Role::Mixed(mixed) => mixed.crash(around),
            Role::External(external) => external.crash(around),
            Role::Standalone(_) => {}
        }
    }
}

impl<'a> Speaker<'a> {
    pub(crate) fn group_id(self) -> &'a Text {
        match self {
            Self::Classic(consumer) => &consumer.group_id,
            Self::Consumer(member) => &member.group_id,
        }
    }

    pub(crate) fn member_id(self) -> &'a Text {
        match self {
            Self::Classic(consumer) => &consumer.member_id,
            Self::Consumer(member) => &member.member_id,
        }
    }

    /// Its generation or its epoch.
    pub(crate) fn epoch(self) -> i32 {
        match self {
            Self::Classic(consumer) => consumer.generation_id,
            Self::Consumer(member) => member.epoch,
        }
    }

    /// What it reads from.
    pub(crate) fn reads(self) -> BTreeSet<Place> {
        match self {
            Self::Classic(consumer) => consumer.reads(),
            Self::Consumer(member) => member.reads(),
        }
    }

    /// The topics that it wants.
    pub(crate) fn wanted(self) -> BTreeSet<usize> {
        match self {
            Self::Classic(consumer) => consumer.topics.clone(),
            Self::Consumer(member) => member.wanted(),
        }
    }

    /// In its group, with nothing to be done but to live.
    pub(crate) fn is_settled(self) -> bool {
        match self {
            Self::Classic(consumer) => consumer.is_stable(),
            Self::Consumer(member) => member.is_settled(),
        }
    }

    /// It does not run, or not yet.
    pub(crate) fn is_away(self) -> bool {
        match self {
            Self::Classic(consumer) => consumer.is_away(),
            Self::Consumer(member) => member.is_away(),
        }
    }

    /// Why the group would not have it when it came last: for its protocol or for its size.
    pub(crate) fn refusal(self) -> Option<ErrorCode> {
        match self {
            Self::Classic(consumer) => consumer.refusal,
            Self::Consumer(member) => member.refusal,
        }
    }

    /// Whether the group was full when it came.
    pub(crate) fn found_no_room(self) -> bool {
        self.refusal() == Some(ErrorCode::GROUP_MAX_SIZE_REACHED)
    }
}
