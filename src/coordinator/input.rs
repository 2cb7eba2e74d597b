//! What goes into a shard and what comes out of it.

use std::sync::Arc;

use super::event::Event;
use super::record::Record;
use super::request::{Request, Response, Text};
use super::settings::Settings;
use super::topics::Topics;

/// The driver's two clocks at the moment of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since an origin of the driver's choice; never goes back. All timers use it.
    pub monotonic_ms: u64,
    /// Milliseconds since the Unix epoch; may jump. Only timestamps that are stored use it.
    pub wall_ms: i64,
}

/// One request that waits for its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// One batch of records of one loaded shard, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

/// What a step is told.
#[derive(Debug)]
pub enum Input {
    /// A request; exactly one `Output::Reply` with the ticket follows, in this step or a later one.
    Request { ticket: Ticket, request: Request },
    /// The answer to `Output::Inspect`.
    Inspected {
        group_id: Text,
        result: Result<UpstreamGroup, InspectFailure>,
    },
    /// Every batch up to this one is durable.
    Durable(Lsn),
    /// Topics that are certainly gone upstream (confirmed twice): their offsets go too.
    TopicsDeleted(Vec<DeletedTopic>),
    /// The upstream's topics: first thing after the load, and whenever they differ from what was told before.
    Topics(Arc<Topics>),
    /// The settings changed.
    Settings(Arc<Settings>),
    /// Time has passed; due timers fire.
    Tick,
}

/// What a step asks of its driver.
#[derive(Debug)]
pub enum Output {
    /// Make these records durable, in the order of the lsn, then say `Input::Durable`.
    Append { lsn: Lsn, records: Vec<Record> },
    /// The join or sync with this ticket is its group's now: its reply may take minutes, and is not `NotOwned`.
    Admitted { ticket: Ticket },
    /// Send this reply.
    Reply { ticket: Ticket, response: Response },
    /// Ask the upstream who runs this group there and what offsets it has committed; answer with `Input::Inspected`.
    Inspect { group_id: Text },
    /// Something for logs and metrics.
    Event(Event),
}

/// A topic that was deleted (or re-created under another id).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedTopic {
    pub name: Text,
    pub id: uuid::Uuid,
}

/// What the upstream knows of a group that is met here for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamGroup {
    pub presence: Presence,
    /// Committed offsets; empty unless the group is vacant.
    pub offsets: Vec<ImportedOffset>,
}

/// Who is in a group at the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// Nobody: absent, or a classic or consumer group without members.
    Vacant,
    /// A classic or consumer group with members that go round this sidecar.
    Live {
        group_type: Text,
        protocol_type: Text,
        state: Text,
    },
    /// A share or streams group, with members or not: never ours.
    OtherType { group_type: Text },
}

/// One committed offset read from the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedOffset {
    pub topic: Text,
    pub topic_id: uuid::Uuid,
    pub partition: i32,
    pub offset: i64,
    /// -1 when unknown.
    pub leader_epoch: i32,
    pub metadata: Text,
}

/// Why the upstream could not be asked; always retriable for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectFailure {
    pub reason: String,
}
