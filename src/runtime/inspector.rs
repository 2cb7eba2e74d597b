//! How the shards ask the upstream about a group that is met for the first time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::reports::Addressee;
use super::shard_task::Shared;
use crate::coordinator::input::{InspectFailure, UpstreamGroup};
use crate::coordinator::request::Text;

/// What the upstream knows of a group, or why it could not be asked.
pub type Inspection = Result<UpstreamGroup, InspectFailure>;

/// An inspection under way; it owns all it needs.
pub type InspectionFuture = Pin<Box<dyn Future<Output = Inspection> + Send>>;

/// Asks the upstream who runs a group there and what offsets it has committed.
pub trait GroupInspector: Send + Sync + 'static {
    /// Resolves within the upstream's own time-outs; a failure is retriable for the client.
    fn inspect(&self, group_id: &Text) -> InspectionFuture;
}

/// Asks as soon as a permit is free, and reports the answer to the shard. How many questions of all shards are asked at a
/// time is bounded by the permits.
pub(super) fn inspect(shared: &Shared, from: Addressee, group_id: Text) {
    let permits = Arc::clone(&shared.permits);
    let inspector = Arc::clone(&shared.inspector);
    let inspecting = shared.reports.inspection(from, Arc::clone(&group_id));
    tokio::spawn(async move {
        // Dropped unanswered where this panics.
        if let Ok(_permit) = permits.acquire().await {
            inspecting.answered(inspector.inspect(&group_id).await);
        }
    });
}
