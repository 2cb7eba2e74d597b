//! What the store and the upstream have to say to the shards, for one task that tells them.
//!
//! The store's thread makes batches of many shards durable at once. Were each shard to wait for its own, that thread would
//! wake as many tasks; so it wakes this one, which goes through the shards. A thread that serves clients has such a task of its
//! own for the batches that its clients are answered after: waking a task of the same thread takes no system call.

use std::cell::RefCell;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendError;

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

type Report = (Addressee, News);

/// Where reports go. A channel holds no more than one report for each batch that is under way and for each group that the
/// upstream is asked about.
#[derive(Debug, Clone)]
pub(super) struct Reports(Arc<Channel>);

#[derive(Debug)]
struct Channel {
    sender: mpsc::UnboundedSender<Report>,
    /// Where reports go that nobody receives any more.
    instead: Option<Reports>,
}

thread_local! {
    /// Of a thread that has a task of its own for them.
    static OF_THIS_THREAD: RefCell<Option<Reports>> = const { RefCell::new(None) };
}

impl Reports {
    pub(super) fn new() -> (Self, ReportReceiver) {
        Self::with(None)
    }

    fn with(instead: Option<Self>) -> (Self, ReportReceiver) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let channel = Channel {
            sender,
            instead: instead.clone(),
        };
        (Self(Arc::new(channel)), ReportReceiver { receiver, instead })
    }

    /// From now on the outcomes of batches that this thread hands over are for this receiver, as long as it is there.
    pub(super) fn of_this_thread(&self) -> ReportReceiver {
        let (reports, receiver) = Self::with(Some(self.clone()));
        OF_THIS_THREAD.set(Some(reports));
        receiver
    }

    /// For the store, to tell what became of a batch.
    pub(super) fn outcome(&self, to: Addressee, lsn: Lsn) -> Outcome {
        let reports = OF_THIS_THREAD.with_borrow(|own| own.as_ref().unwrap_or(self).clone());
        Outcome::told_to(move |result| reports.send((to, News::Appended(lsn, result))))
    }

    /// For a question about a group.
    pub(super) fn inspection(&self, to: Addressee, group_id: Text) -> Inspecting {
        Inspecting {
            reports: self.clone(),
            to,
            asked: Some(group_id),
        }
    }

    fn send(&self, report: Report) {
        // Where nobody receives and nobody does instead, there is nobody to be told any more.
        if let Err(SendError(report)) = self.0.sender.send(report)
            && let Some(instead) = &self.0.instead
        {
            instead.send(report);
        }
    }
}

/// Where reports come out. Dropped, it leaves what it has not given out to whoever receives instead.
#[derive(Debug)]
pub(super) struct ReportReceiver {
    receiver: mpsc::UnboundedReceiver<Report>,
    instead: Option<Reports>,
}

impl ReportReceiver {
    /// The next one; none when nobody can report any more.
    pub(super) async fn next(&mut self) -> Option<Report> {
        self.receiver.recv().await
    }
}

impl Drop for ReportReceiver {
    fn drop(&mut self) {
        let Some(instead) = &self.instead else { return };
        self.receiver.close();
        while let Ok(report) = self.receiver.try_recv() {
            instead.send(report);
        }
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
            self.reports.send((self.to, News::Inspected(group_id, result)));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn received(receiver: &mut ReportReceiver) -> Vec<u64> {
        let reports = std::iter::from_fn(|| receiver.receiver.try_recv().ok());
        let lsns = reports.filter_map(|(_, news)| match news {
            News::Appended(Lsn(lsn), _) => Some(lsn),
            News::Inspected(..) => None,
        });
        lsns.collect()
    }

    #[test]
    fn a_thread_hears_of_its_own_batches_and_when_it_has_ended_the_task_for_all_does() {
        let (reports, mut of_all) = Reports::new();
        let to = Addressee {
            shard: ShardId(0),
            incarnation: Incarnation(1),
        };
        let told = |lsn| reports.outcome(to, Lsn(lsn)).tell(Ok(()));
        told(1);
        assert_eq!(received(&mut of_all), [1]);

        let mut own = reports.of_this_thread();
        told(2);
        assert_eq!((received(&mut own), received(&mut of_all)), (vec![2], vec![]));
        std::thread::scope(|threads| threads.spawn(|| told(3)).join()).expect("another thread");
        assert_eq!((received(&mut own), received(&mut of_all)), (vec![], vec![3]));

        let under_way = reports.outcome(to, Lsn(4));
        told(5);
        drop(own);
        under_way.tell(Ok(()));
        told(6);
        assert_eq!(received(&mut of_all), [5, 4, 6]);
    }
}
