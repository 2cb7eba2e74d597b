//! The HTTP side: `/metrics`, `/healthz`, `/readyz`, `/groups`. Read-only and without authentication, so it is bound to
//! loopback unless told otherwise.
//!
//! | path | answer |
//! |---|---|
//! | `/metrics` | Prometheus text |
//! | `/healthz` | 200 while the process serves |
//! | `/readyz` | 200 when clients are served, else 503; JSON with the reasons |
//! | `/groups` | JSON: every group that is coordinated here |

pub mod assignment;
mod groups;
mod places;
mod readiness;
mod server;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use readiness::{Listening, Readiness, Shards, UpstreamHealth};
pub use server::{Admin, AdminError};

use crate::coordinator::request::ShardView;
use crate::coordinator::topics::Topics;

/// A future that a subject gives out.
pub type SubjectFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the admin side shows; the assembled process, or a stand-in in tests.
pub trait Subject: Send + Sync + 'static {
    /// How things are now.
    fn readiness(&self) -> Readiness;

    /// Every shard's view; `None` for a shard that cannot tell now.
    fn views(&self) -> SubjectFuture<'_, Vec<Option<ShardView>>>;

    /// The upstream's topics, which consumer groups know by their ids alone.
    fn topics(&self) -> Arc<Topics>;

    /// All metrics as text, with the gauges about groups counted from these views. May take milliseconds.
    ///
    /// # Errors
    /// Why there is no text.
    fn metrics(&self, views: &[ShardView]) -> Result<String, String>;
}
