//! `convoke assignor`: an external assignor that hands each computation to a command of the user's.
//!
//! ```text
//!                 heartbeat: "compute"                    JSON, standard input
//!   Convoke ──────────────────────────▶ registration ──────────────────────────▶ command
//!           ◀────── prepare, install ── of each group ◀───────────────────────── (any language)
//!                                                          JSON, standard output
//! ```
//!
//! | module | its one job |
//! |---|---|
//! | `groups` | which groups are registered for: those that are named, and those that a pattern means |
//! | `registration` | one group: heartbeats, and when to compute |
//! | `pattern` | all groups of a pattern at once, where Convoke has a rule with it |
//! | `computation` | one computation: prepare, ask, install |
//! | `facts` | lag and racks for it |
//! | [`document`] | the JSON that the command reads and writes |
//! | [`command`] | the processes of the command: limits, restarts |
//! | `cluster` | the cluster as it is reached through Convoke |

mod cluster;
pub mod command;
mod computation;
pub mod document;
mod facts;
mod groups;
mod pattern;
mod registration;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::protocol::StrBytes;
use tokio_util::sync::CancellationToken;

use self::cluster::Cluster;
use self::command::{CommandConfig, UserCommand};
use self::groups::Groups;
use crate::config::{HostPort, SaslConfig};
use crate::server::signals::Signals;
use crate::upstream::connection::Limits;
use crate::upstream::node::Dialer;

/// How the assignor names itself to brokers (KIP-511).
const SOFTWARE_NAME: &str = "convoke-assignor";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than a heartbeat may wait at Convoke.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of the longest answer: a group of 10,000 members with 100 partitions each takes some 10 MB.
const FRAME_MAX: usize = 100 * 1024 * 1024;
const IN_FLIGHT: usize = 16;

/// What to do for whom.
#[derive(Debug, Clone)]
pub struct AssignorOptions {
    /// Where clients reach Convoke.
    pub bootstrap: Vec<HostPort>,
    pub sasl: Option<SaslConfig>,
    /// Group ids, and prefixes of group ids that end in `*`.
    pub groups: Vec<String>,
    /// What members ask for (`group.remote.assignor`).
    pub names: Vec<String>,
    /// How often to ask for a new assignment though nothing in the group has changed.
    pub every: Option<Duration>,
    pub command: CommandConfig,
}

/// What the registrations of one process share.
#[derive(Debug)]
struct Assignor {
    cluster: Arc<Cluster>,
    command: UserCommand,
    names: Vec<StrBytes>,
    every: Option<Duration>,
}

/// Computes until SIGTERM or SIGINT, then leaves the groups.
///
/// # Errors
/// Why it could not start. An address at which nobody answers is none: it is tried again.
pub fn run(config: AssignorOptions) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(config))
}

async fn serve(config: AssignorOptions) -> io::Result<()> {
    let mut signals = Signals::listen()?;
    let dialer = Dialer {
        software_name: SOFTWARE_NAME,
        sasl: config.sasl,
        own: Vec::new(),
        connect_timeout: CONNECT_TIMEOUT,
        limits: Limits {
            request_timeout: REQUEST_TIMEOUT,
            frame_max: FRAME_MAX,
            in_flight: IN_FLIGHT,
        },
    };
    let assignor = Arc::new(Assignor {
        cluster: Arc::new(Cluster::new(config.bootstrap, dialer)),
        command: UserCommand::new(config.command),
        names: config.names.into_iter().map(StrBytes::from_string).collect(),
        every: config.every,
    });
    let stop = CancellationToken::new();
    let mut serving = tokio::spawn(Groups::new(assignor, config.groups).serve(stop.clone()));
    let signal = tokio::select! {
        signal = signals.next() => signal,
        ended = &mut serving => return ended.map_err(io::Error::other),
    };
    tracing::info!(signal, "leaving the groups");
    stop.cancel();
    tokio::select! {
        ended = serving => ended.map_err(io::Error::other),
        _ = signals.next() => Err(io::Error::other("stopped at once by a second signal")),
    }
}
