//! The assembled process: everything in start order, and its end.
//!
//! Start: log, admin side, bootstrap listener (bound, so that early clients wait), store, upstream, settings, shards, node
//! listeners, then clients are served. Stop: nothing new is taken in, what is under way is answered, then the store closes.

mod broker_settings;
mod open_files;
pub(crate) mod signals;
mod start;
mod status;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::admin::AdminError;
use crate::config::{Config, HostPort};
use crate::proxy::listeners::ListenerError;
use crate::store::StoreError;
use signals::Signals;
use start::Starting;

/// How long threads may go on after everything else has ended.
const THREADS_TIMEOUT: Duration = Duration::from_secs(1);

/// Is told what scripts wait for.
pub trait Announce: Send + Sync + 'static {
    /// A node got its listener.
    fn node(&self, node_id: i32, upstream: &HostPort, listen: SocketAddr);

    /// Clients are served.
    fn ready(&self, bootstrap: SocketAddr, admin: SocketAddr);
}

/// Why the process could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Listener(#[from] ListenerError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the settings do not go together: {}", .0.join("; "))]
    Settings(Vec<String>),
    #[error("cannot draw random bytes: {0}")]
    Random(getrandom::Error),
    #[error("the store's thread ended: {0}")]
    StoreThread(tokio::task::JoinError),
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// Why it could not start.
pub fn run(config: &Config, announce: Arc<dyn Announce>) -> Result<(), ServerError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(ServerError::Threads)?;
    let result = runtime.block_on(serve(config, announce));
    runtime.shutdown_timeout(THREADS_TIMEOUT);
    result
}

async fn serve(config: &Config, announce: Arc<dyn Announce>) -> Result<(), ServerError> {
    let mut signals = Signals::listen().map_err(ServerError::Signals)?;
    let starting = Starting::bind(config, announce).await?;
    let started = tokio::select! {
        started = Box::pin(starting.start()) => started?,
        signal = signals.next() => {
            tracing::info!(signal, "stopping before clients were served");
            return Ok(());
        }
    };
    let signal = signals.next().await;
    tracing::info!(signal, timeout = ?config.drain_timeout, "draining");
    tokio::select! {
        () = started.stop(config.drain_timeout) => Ok(()),
        signal = signals.next() => {
            tracing::warn!(signal, "stopping at once");
            std::process::exit(1);
        }
    }
}
