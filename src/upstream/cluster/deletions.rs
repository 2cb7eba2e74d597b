//! Which vanished topics are certainly gone. Offsets of a deleted topic are deleted for good, so a topic that only fell
//! out of one answer (a right withdrawn, a broker that lags behind) must never count as deleted.
//!
//! A topic id counts as deleted when brokers were asked for that very id and answered UNKNOWN_TOPIC_ID twice, at least
//! [`BETWEEN`] apart, and by two different brokers where the cluster has more than one. A topic without an id is never
//! deleted here.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::metadata::TopicAnswer;
use super::{Cluster, Topics};
use crate::coordinator::input::DeletedTopic;
use crate::coordinator::request::Text;

/// The time between the two answers that confirm a deletion.
pub const BETWEEN: Duration = Duration::from_secs(1);

/// Topic ids that were seen, by us or by whoever has offsets of theirs, and are not listed.
#[derive(Debug, Default)]
pub struct Deletions {
    vanished: BTreeMap<Uuid, Vanished>,
}

#[derive(Debug)]
struct Vanished {
    name: Text,
    /// Which node said first that it does not know the id, and when.
    denied: Option<(i32, Instant)>,
    confirmed: bool,
}

impl Deletions {
    /// Takes topics that were there once, by their ids; those that the next picture does not have are to be asked for.
    pub fn look_for(&mut self, topics: BTreeMap<Uuid, Text>) {
        for (id, name) in topics {
            self.vanished.entry(id).or_insert_with(|| Vanished {
                name,
                denied: None,
                confirmed: false,
            });
        }
    }

    /// Compares two pictures: ids that vanished are to be asked for, ids that are back are forgotten.
    pub fn compare(&mut self, before: &Topics, after: &Topics) {
        let gone = before.name_by_id.iter();
        let gone = gone.filter(|(id, _)| !after.name_by_id.contains_key(id));
        self.look_for(gone.map(|(id, name)| (*id, name.clone())).collect());
        self.vanished.retain(|id, _| !after.name_by_id.contains_key(id));
    }

    /// Whether the topic vanished, and nobody could say yet that it is gone.
    #[must_use]
    pub fn is_undecided(&self, id: &Uuid) -> bool {
        self.vanished.get(id).is_some_and(|vanished| !vanished.confirmed)
    }

    /// Whether the topic was missed, gone for certain or not.
    #[must_use]
    pub fn has_vanished(&self, id: &Uuid) -> bool {
        self.vanished.contains_key(id)
    }

    /// When the next question is due; `None` if there is none.
    #[must_use]
    pub fn next_question(&self) -> Option<Instant> {
        let open = self.vanished.values().filter(|vanished| !vanished.confirmed);
        open.filter_map(|vanished| vanished.denied.map(|(_, at)| at + BETWEEN))
            .min()
    }

    /// The ids that `node` is to be asked for now: never denied, or denied by another node long enough ago
    /// (by the same one, if it is all the cluster has).
    #[must_use]
    pub fn questions(&self, node: i32, cluster: &Cluster, now: Instant) -> Vec<Uuid> {
        let alone = cluster.nodes.len() <= 1;
        let due = |vanished: &Vanished| match vanished.denied {
            _ if vanished.confirmed => false,
            None => true,
            Some((first, at)) => now >= at + BETWEEN && (alone || first != node),
        };
        let due = self.vanished.iter().filter(|(_, vanished)| due(vanished));
        due.map(|(id, _)| *id).collect()
    }

    /// Takes a node's answer for an id that it was asked for.
    pub fn answered(&mut self, id: Uuid, node: i32, answer: &TopicAnswer, now: Instant) {
        let Some(vanished) = self.vanished.get_mut(&id) else {
            return;
        };
        match (answer, vanished.denied) {
            (TopicAnswer::Found(_), _) => {
                self.vanished.remove(&id);
            }
            (TopicAnswer::Unclear(_), _) => vanished.denied = None,
            (TopicAnswer::Unknown, None) => vanished.denied = Some((node, now)),
            (TopicAnswer::Unknown, Some(_)) => vanished.confirmed = true,
        }
    }

    /// The topics that are certainly gone and not yet handed over.
    #[must_use]
    pub fn confirmed(&self) -> Vec<DeletedTopic> {
        let confirmed = self.vanished.iter().filter(|(_, vanished)| vanished.confirmed);
        confirmed
            .map(|(id, vanished)| DeletedTopic {
                name: vanished.name.clone(),
                id: *id,
            })
            .collect()
    }

    /// Forgets what was handed over.
    pub fn handed_over(&mut self) {
        self.vanished.retain(|_, vanished| !vanished.confirmed);
    }
}

#[cfg(test)]
mod tests;
