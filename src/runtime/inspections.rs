//! The inspections that one shard has under way.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::{Id, JoinSet};

use super::inspector::{GroupInspector, Inspection};
use crate::coordinator::input::InspectFailure;
use crate::coordinator::request::Text;

/// How many of all shards run at a time is bounded by the shared permits.
pub(super) struct Inspections {
    inspector: Arc<dyn GroupInspector>,
    permits: Arc<Semaphore>,
    running: JoinSet<Inspection>,
    groups: HashMap<Id, Text>,
}

impl Inspections {
    pub(super) fn new(inspector: Arc<dyn GroupInspector>, permits: Arc<Semaphore>) -> Self {
        Self {
            inspector,
            permits,
            running: JoinSet::new(),
            groups: HashMap::new(),
        }
    }

    /// Starts one, as soon as a permit is free.
    pub(super) fn start(&mut self, group_id: Text) {
        let inspector = Arc::clone(&self.inspector);
        let permits = Arc::clone(&self.permits);
        let asked = Arc::clone(&group_id);
        let handle = self.running.spawn(async move {
            let Ok(_permit) = permits.acquire_owned().await else {
                return Err(failure("the coordinator is stopping"));
            };
            inspector.inspect(&asked).await
        });
        self.groups.insert(handle.id(), group_id);
    }

    /// The next one to end; pending while none runs. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> (Text, Inspection) {
        loop {
            let Some(ended) = self.running.join_next_with_id().await else {
                return std::future::pending().await;
            };
            let (id, result) = match ended {
                Ok((id, result)) => (id, result),
                Err(error) => (error.id(), Err(failure(&error.to_string()))),
            };
            if let Some(group_id) = self.groups.remove(&id) {
                return (group_id, result);
            }
        }
    }
}

fn failure(reason: &str) -> InspectFailure {
    InspectFailure {
        reason: reason.to_owned(),
    }
}
