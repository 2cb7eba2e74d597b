//! How the shards have topics looked for that were deleted while nobody could tell them.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::coordinator::request::Text;

/// Finds out which topics are gone.
pub trait TopicChecker: Send + Sync + 'static {
    /// Takes topics, by their ids, that stored offsets belong to. Those that are certainly gone upstream come back, some
    /// time later, through [`Coordinator::topics_deleted`].
    ///
    /// [`Coordinator::topics_deleted`]: super::Coordinator::topics_deleted
    fn check(&self, topics: BTreeMap<Uuid, Text>);
}
