//! What the store and the upstream have to say to the shards, for one task that tells them.
//!
//! The store's thread makes batches of many shards durable at once. Were each shard to wait for its own, that thread would
//! wake as many tasks; so it wakes this one, which goes through the shards.

use tokio::sync::mpsc;

use super::inspector::Inspection;
use crate::coordinator::input::{InspectFailure, Lsn};
use crate::coordinator::request::Text;
use crate::store::{Incarnation, Outcome, ShardId, StoreError};

/// Which loading of which shard something is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Addressee {
    pub(super) shard: ShardId,
    pub(super) incarnation: Incarnation,
}

#[derive(Debug)]
pub(super) enum News {
    /// What became of the batch up to this lsn.
    Appended(Lsn, Result<(), StoreError>),
    /// What the upstream says of a group.
    Inspected(Text, Inspection),
}

/// Where reports go. The channel holds no more than one report for each batch that is under way and for each group that the
/// upstream is asked about.
#[derive(Debug, Clone)]
pub(super) struct Reports(mpsc::UnboundedSender<(Addressee, News)>);

pub(super) type ReportReceiver = mpsc::UnboundedReceiver<(Addressee, News)>;

impl Reports {
    pub(super) fn new() -> (Self, ReportReceiver) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// For the store, to tell what became of a batch.
    pub(super) fn outcome(&self, to: Addressee, lsn: Lsn) -> Outcome {
        let reports = self.clone();
        Outcome::told_to(move |result| reports.send(to, News::Appended(lsn, result)))
    }

    /// For a question about a group.
    pub(super) fn inspection(&self, to: Addressee, group_id: Text) -> Inspecting {
        Inspecting {
            reports: self.clone(),
            to,
            asked: Some(group_id),
        }
    }

    fn send(&self, to: Addressee, news: News) {
        // Nobody is there to be told any more.
        let _ = self.0.send((to, news));
    }
}

/// A question under way. Dropped without an answer, it reports that there is none.
#[derive(Debug)]
pub(super) struct Inspecting {
    reports: Reports,
    to: Addressee,
    asked: Option<Text>,
}

impl Inspecting {
    pub(super) fn answered(mut self, result: Inspection) {
        self.report(result);
    }

    fn report(&mut self, result: Inspection) {
        if let Some(group_id) = self.asked.take() {
            self.reports.send(self.to, News::Inspected(group_id, result));
        }
    }
}

impl Drop for Inspecting {
    fn drop(&mut self) {
        self.report(Err(InspectFailure {
            reason: "the question ended without an answer".to_owned(),
        }));
    }
}
