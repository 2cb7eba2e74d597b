//! How the shards ask the upstream about a group that is met for the first time.

use std::future::Future;
use std::pin::Pin;

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
